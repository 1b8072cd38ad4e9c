#include "open.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory_internal.h"

int cornu__above_standard(int descriptor)
{
    if (descriptor < 0 || descriptor > STDERR_FILENO) return descriptor;
    const int above = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    const int error = errno;
    close(descriptor);
    errno = error;
    return above;
}

int cornu__open(const char *path, int flags, mode_t mode)
{
    const int file = cornu__above_standard(open(path, flags | O_NONBLOCK | O_CLOEXEC, mode));
    if (file >= 0) fcntl(file, F_SETFL, fcntl(file, F_GETFL) & ~O_NONBLOCK);
    return file;
}

const char *cornu__file_kind(mode_t mode)
{
    return S_ISDIR(mode) ? "folder" : S_ISFIFO(mode) ? "pipe" : S_ISSOCK(mode) ? "socket"
         : S_ISREG(mode) ? "file" : "device";
}

CornuStatus cornu__open_to_read(const char *path, FILE **file)
{
    struct stat info;
    const int   descriptor = cornu__open(path, O_RDONLY, 0);
    *file = NULL;
    if (descriptor >= 0 && fstat(descriptor, &info) == 0 && !S_ISREG(info.st_mode)) {
        close(descriptor);
        return cornu__fail(CORNU_ERR_FILE, "%s: is a %s, expected a file", path,
                           cornu__file_kind(info.st_mode));
    }
    if (descriptor >= 0) *file = fdopen(descriptor, "rb");
    if (*file) return CORNU_OK;
    const int error = errno;
    if (descriptor >= 0) close(descriptor);
    return cornu__fail(CORNU_ERR_FILE, "%s: cannot be opened: %s", path, cornu__open_error(error));
}

const char *cornu__open_error(int error)
{
    return error == ENXIO ? "a pipe without a reader, or a device that does not exist"
                          : strerror(error);
}

/* ---- Folders ---- */

void cornu__sync_folder_of(const char *path)
{
    char *folder = cornu__copy_text(path);
    if (!folder) return;
    char *slash = strrchr(folder, '/');
    if (slash) slash[1] = '\0';
    const int descriptor = cornu__open(slash ? folder : ".", O_RDONLY | O_DIRECTORY, 0);
    if (descriptor >= 0) {
        fsync(descriptor);    /* some file systems cannot */
        close(descriptor);
    }
    cornu__release(folder);
}

CornuStatus cornu__make_folder(const char *path, bool *made)
{
    *made = mkdir(path, 0777) == 0;
    if (!*made && errno != EEXIST)
        return cornu__fail(CORNU_ERR_FILE, "%s: the folder cannot be made: %s", path,
                           strerror(errno));
    if (*made) cornu__sync_folder_of(path);
    return CORNU_OK;
}

CornuStatus cornu__make_folders_above(const char *path)
{
    bool  made;
    char *folder = cornu__copy_text(path);
    if (!folder) return CORNU_ERR_MEMORY;
    CornuStatus status = CORNU_OK;
    for (char *c = folder + 1; *c && status == CORNU_OK; c++) {
        if (*c != '/') continue;
        *c = '\0';
        status = cornu__make_folder(folder, &made);
        *c = '/';
    }
    cornu__release(folder);
    return status;
}
