#define _XOPEN_SOURCE 700    /* realpath */

#include "file_internal.h"

#include "../log_internal.h"
#include "../memory_internal.h"
#include "../open.h"
#include "../processes/processes_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void release(CornuNewFile *file)
{
    cornu__release(file->path);
    cornu__release(file->target);
    cornu__release(file->temporary);
    *file = (CornuNewFile){ 0 };
}

/* Length of the folder part including its slash; 0 for "name". */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* Opens a new file beside the target: FOLDER/.NAME.PID-N. */
static int open_temporary(CornuNewFile *file, mode_t mode)
{
    const size_t folder = folder_length(file->target), size = strlen(file->target) + 40;
    file->temporary = cornu__allocate(size, 1);
    if (!file->temporary) return -1;
    for (int n = 0; n < 100; n++) {
        snprintf(file->temporary, size, "%.*s.%s.%ld-%d", (int)folder, file->target,
                 file->target + folder, (long)getpid(), n);
        int descriptor = cornu__open(file->temporary, O_WRONLY | O_CREAT | O_EXCL, mode);
        if (descriptor >= 0 || errno != EEXIST) return descriptor;
    }
    return -1;
}

static CornuStatus fail(CornuNewFile *file, const char *what)
{
    const CornuStatus kind = errno == ENOMEM ? CORNU_ERR_MEMORY : CORNU_ERR_FILE;
    CornuStatus status = cornu__fail(kind, "%s: %s: %s", file->path, what,
                                     cornu__open_error(errno));
    cornu__log(CORNU_LOG_ERROR, "%s: %s", file->path, what);
    cornu__file_abandon(file);
    return status;
}

CornuStatus cornu__file_create(CornuNewFile *file, const char *path)
{
    *file = (CornuNewFile){ .path = cornu__copy_text(path) };
    char *resolved = realpath(path, NULL);
    file->target = cornu__copy_text(resolved ? resolved : path);
    free(resolved);
    if (!file->path || !file->target) {
        release(file);
        return CORNU_ERR_MEMORY;
    }

    struct stat old;
    const bool writes = cornu__processes_writes(), exists = stat(file->target, &old) == 0;
    if (writes && exists && S_ISDIR(old.st_mode)) {
        errno = EISDIR;
        return fail(file, "cannot be written");
    }
    int descriptor;
    if (!writes || (exists && !S_ISREG(old.st_mode))) {
        descriptor = cornu__open(writes ? file->target : "/dev/null", O_WRONLY, 0);
    } else {
        descriptor = open_temporary(file, 0666);
        if (descriptor < 0) {
            cornu__release(file->temporary);      /* nothing to remove */
            file->temporary = NULL;
        } else if (exists) {
            (void)!fchmod(descriptor, old.st_mode & 0777);
        }
    }
    if (descriptor < 0) return fail(file, "cannot be written");
    file->stream = fdopen(descriptor, "wb");
    if (!file->stream) {
        close(descriptor);
        return fail(file, "cannot be written");
    }
    return CORNU_OK;
}

/* Devices and pipes cannot be synced. */
static bool sync_descriptor(int descriptor)
{
    return fsync(descriptor) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS;
}

CornuStatus cornu__file_commit(CornuNewFile *file)
{
    if (ferror(file->stream) || fflush(file->stream) != 0 ||
        !sync_descriptor(fileno(file->stream)))
        return fail(file, "cannot be written");
    FILE      *stream = file->stream;
    const long bytes = ftell(stream);   /* -1 for a pipe */
    file->stream = NULL;
    if (fclose(stream) != 0) return fail(file, "cannot be written");
    if (file->temporary) {
        if (rename(file->temporary, file->target) != 0) return fail(file, "cannot be replaced");
        cornu__sync_folder_of(file->target);
    }
    if (cornu__processes_writes())
        cornu__log(CORNU_LOG_INFO, "wrote %s: %ld bytes", file->path, bytes);
    release(file);
    return CORNU_OK;
}

void cornu__file_abandon(CornuNewFile *file)
{
    if (file->stream) fclose(file->stream);
    if (file->temporary) unlink(file->temporary);
    release(file);
}

static bool stat_folder_of(const char *target, struct stat *folder)
{
    char *path = cornu__copy_text(target);
    if (!path) return false;
    path[folder_length(target)] = '\0';
    const bool found = stat(*path ? path : ".", folder) == 0;
    cornu__release(path);
    return found;
}

bool cornu__file_is_same(const CornuNewFile *a, const CornuNewFile *b)
{
    struct stat folder[2];
    if (!a->temporary || !b->temporary) return false;   /* nothing is replaced */
    if (strcmp(a->target + folder_length(a->target), b->target + folder_length(b->target)) != 0)
        return false;
    return stat_folder_of(a->target, &folder[0]) && stat_folder_of(b->target, &folder[1]) &&
           folder[0].st_dev == folder[1].st_dev && folder[0].st_ino == folder[1].st_ino;
}

CornuStatus cornu_file_check(const char *path)
{
    CORNU__NEED(path);
    struct stat old;
    if (!cornu__processes_writes()) return CORNU_OK;
    if (stat(path, &old) == 0 && S_ISFIFO(old.st_mode)) {
        /* Opening it would wait for a reader, and closing it would end the input of one. */
        if (access(path, W_OK) == 0) return CORNU_OK;
        return cornu__fail(CORNU_ERR_FILE, "%s: cannot be written: %s", path, strerror(errno));
    }
    CornuNewFile file;
    CORNU__TRY(cornu__file_create(&file, path));
    /* One byte does not fit on a full disk; /dev/full refuses even a write of none. */
    const size_t bytes = file.temporary ? 1 : 0;
    if (write(fileno(file.stream), "", bytes) < 0) return fail(&file, "cannot be written");
    cornu__file_abandon(&file);
    return CORNU_OK;
}

CornuStatus cornu_file_write(const char *path, const void *bytes, size_t size)
{
    CORNU__NEED(path);
    if (size > 0) CORNU__NEED(bytes);
    CornuNewFile file;
    CORNU__TRY(cornu__file_create(&file, path));
    fwrite(bytes, 1, size, file.stream);
    return cornu__file_commit(&file);
}

static CornuStatus read_bytes(CornuFileBytes *file, int descriptor)
{
    for (size_t at = 0; at < file->size;) {
        const ssize_t got = read(descriptor, file->bytes + at, file->size - at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return cornu__fail(CORNU_ERR_FILE, "cannot be read: %s", strerror(errno));
        if (got == 0)
            return cornu__fail(CORNU_ERR_FILE, "ends after %zu of %zu bytes: it was changed while "
                               "being read", at, file->size);
        at += (size_t)got;
    }
    return CORNU_OK;
}

CornuStatus cornu__file_read(CornuFileBytes *file, const char *path)
{
    size_t whole;
    CORNU__TRY(cornu__file_read_first(file, path, SIZE_MAX, &whole));
    cornu__log(CORNU_LOG_INFO, "read %s: %zu bytes", path, file->size);
    return CORNU_OK;
}

CornuStatus cornu__file_read_first(CornuFileBytes *file, const char *path, size_t most,
                                   size_t *whole)
{
    int descriptor = cornu__open(path, O_RDONLY, 0);
    struct stat info;
    *file = (CornuFileBytes){ 0 };
    *whole = 0;
    if (descriptor < 0 || fstat(descriptor, &info) != 0) {
        CornuStatus status = cornu__fail(CORNU_ERR_FILE, "cannot be read: %s", strerror(errno));
        if (descriptor >= 0) close(descriptor);
        return status;
    }
    CornuStatus status = CORNU_OK;
    if (!S_ISREG(info.st_mode)) {
        status = cornu__fail(CORNU_ERR_FILE, "is a %s, expected a file",
                             cornu__file_kind(info.st_mode));
    } else if (info.st_size > 0) {
        *whole = (size_t)info.st_size;
        file->size = *whole < most ? *whole : most;
        file->bytes = cornu__allocate(file->size, 1);
        status = file->bytes ? read_bytes(file, descriptor) : CORNU_ERR_MEMORY;
    }
    close(descriptor);
    if (status) cornu__file_release(file);
    return status;
}

void cornu__file_release(CornuFileBytes *file)
{
    cornu__release(file->bytes);
    *file = (CornuFileBytes){ 0 };
}
