/*
 * Downloading by curl, or else wget, in a process of its own. libcurl would bring a TLS stack into
 * every program that links the library, for files that most machines fetch once; the command is
 * already set up for the machine's proxies and certificates, and is needed only when there is
 * something to download. We watch its output file for progress and check length and SHA-256.
 */
#define _DEFAULT_SOURCE    /* flock */

#include "download_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../device/log_internal.h"
#include "../../device/open.h"
#include "../../device/hash/sha256_internal.h"
#include "../../device/system/clock_internal.h"
#include "program_internal.h"

enum { ARGUMENT_SIZE = 64, COMPLAINT_SIZE = 256 };

/* Starts curl, or wget if curl is not installed. */
static CornuStatus start_download(const char *url, const char *path,
                                  CornuDownloadPatience patience, CornuProgram *program)
{
    char seconds[ARGUMENT_SIZE], to_connect[ARGUMENT_SIZE], to_resolve[ARGUMENT_SIZE];
    snprintf(seconds, sizeof seconds, "%d", patience.connect);
    snprintf(to_connect, sizeof to_connect, "--connect-timeout=%d", patience.connect);
    snprintf(to_resolve, sizeof to_resolve, "--dns-timeout=%d", patience.connect);
    const char *const curl[] = { "curl", "--silent", "--show-error", "--fail", "--location",
                                 "--no-buffer", "--proto", "=http,https", "--connect-timeout",
                                 seconds, "--output", path, "--url", url, NULL };
    const char *const wget[] = { "wget", "--no-verbose", "--tries=1", to_connect, to_resolve,
                                 "-O", path, "--", url, NULL };
    int error = cornu__program_start(program, curl, NULL, false);
    if (error == ENOENT) error = cornu__program_start(program, wget, NULL, false);
    if (error == ENOENT)
        return cornu__fail(CORNU_ERR_DATA, "neither curl nor wget is installed");
    if (error)
        return cornu__fail(CORNU_ERR_DATA, "curl cannot be started: %s", strerror(error));
    return CORNU_OK;
}

static int64_t size_of(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 ? (int64_t)status.st_size : 0;
}

/* Updates *received and *grown; an error if the download should stop. curl and wget detect stalls
 * differently, so we watch the file grow. */
static CornuStatus judge(const char *path, const CornuDataFile *file,
                         const CornuDataSearch *search, int stall, int64_t *received,
                         double *grown)
{
    int64_t bytes = size_of(path);
    if (bytes != *received) *grown = cornu__seconds();
    *received = bytes;
    if (bytes > file->bytes)
        return cornu__fail(CORNU_ERR_DATA, "received more than the expected %lld bytes",
                           (long long)file->bytes);
    if (cornu__seconds() - *grown > stall)
        return cornu__fail(CORNU_ERR_DATA, "received nothing for %d seconds after %lld of %lld "
                           "bytes", stall, (long long)bytes, (long long)file->bytes);
    if (search->progress && !search->progress(search->context, file, bytes))
        return cornu__fail(CORNU_ERR_INTERRUPTED, "stopped on request");
    return CORNU_OK;
}

/* Collects the program's error messages, as one line, until it closes its end of the pipe by
 * exiting; terminates it if the download should stop. */
static CornuStatus watch(const CornuProgram *program, const char *path, const CornuDataFile *file,
                         const CornuDataSearch *search, int stall, char said[COMPLAINT_SIZE])
{
    enum { BETWEEN_LOOKS_MS = 100 };
    CornuStatus status = CORNU_OK;
    int64_t     received = 0;
    double      grown = cornu__seconds();
    for (;;) {
        struct pollfd wait = { .fd = program->complaints, .events = POLLIN };
        if (poll(&wait, 1, BETWEEN_LOOKS_MS) > 0 &&
            !cornu__program_hear(program->complaints, said, COMPLAINT_SIZE))
            return status;
        if (status != CORNU_OK) continue;
        status = judge(path, file, search, stall, &received, &grown);
        if (status != CORNU_OK) kill(program->child, SIGTERM);
    }
}

/* Downloads to `path`. */
static CornuStatus fetch(const char *url, const char *path, const CornuDataFile *file,
                         const CornuDataSearch *search, CornuDownloadPatience patience)
{
    CornuProgram program;
    char         said[COMPLAINT_SIZE] = "";
    CORNU__TRY(start_download(url, path, patience, &program));
    CornuStatus status = watch(&program, path, file, search, patience.stall, said);
    const int   result = cornu__program_end(&program, false);
    if (status != CORNU_OK) return status;
    if (result == 0) return CORNU_OK;
    for (size_t end = strlen(said); end > 0 && said[end - 1] == ' '; end--) said[end - 1] = '\0';
    return cornu__fail(CORNU_ERR_DATA, "%s", said[0] ? said : "the download failed");
}

static CornuStatus verify(const char *path, const CornuDataFile *file)
{
    int64_t bytes = size_of(path);
    if (bytes != file->bytes)
        return cornu__fail(CORNU_ERR_DATA, "received %lld bytes, expected %lld", (long long)bytes,
                           (long long)file->bytes);
    char sum[CORNU__SHA256_TEXT];
    CORNU__TRY(cornu__sha256_file(path, sum));
    if (strcmp(sum, file->sha256) != 0)
        return cornu__fail(CORNU_ERR_DATA, "wrong checksum: SHA-256 is %s, expected %s", sum,
                           file->sha256);
    return CORNU_OK;
}

/* ---- The temporary file FOLDER/.NAME.cornu-XXXXXX, locked while it is written ---- */

static const char suffix[] = ".cornu-XXXXXX";

static bool is_temporary(const char *name, const CornuDataFile *file)
{
    const size_t length = strlen(file->name), mark = strlen(suffix) - 6;
    return name[0] == '.' && !strncmp(name + 1, file->name, length) &&
           !strncmp(name + 1 + length, suffix, mark) && strlen(name) == 1 + length + mark + 6;
}

/* Removes temporary files of killed downloads, which are not locked. */
static void remove_leftovers(const char *folder, const CornuDataFile *file)
{
    char path[CORNU_PATH_SIZE];
    DIR *directory = opendir(folder);
    for (const struct dirent *entry; directory && (entry = readdir(directory));) {
        if (!is_temporary(entry->d_name, file) ||
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= (int)sizeof path)
            continue;
        const int left = cornu__open(path, O_RDONLY | O_NOFOLLOW, 0);
        if (left >= 0 && flock(left, LOCK_EX | LOCK_NB) == 0) unlink(path);
        if (left >= 0) close(left);
    }
    if (directory) closedir(directory);
}

/* Creates and locks a temporary file and returns its descriptor; -1 on failure. */
static int open_temporary(char path[CORNU_PATH_SIZE], const char *folder, const CornuDataFile *file)
{
    for (int tries = 0; tries < 3; tries++) {
        struct stat info;
        snprintf(path, CORNU_PATH_SIZE, "%s/.%s%s", folder, file->name, suffix);
        const int descriptor = cornu__above_standard(mkstemp(path));
        if (descriptor < 0) return -1;
        fcntl(descriptor, F_SETFD, FD_CLOEXEC);
        fchmod(descriptor, 0644);    /* mkstemp's mode is private */
        flock(descriptor, LOCK_EX | LOCK_NB);
        /* Another process may have removed it as a leftover before it was locked. */
        if (fstat(descriptor, &info) == 0 && info.st_nlink > 0) return descriptor;
        close(descriptor);
    }
    return -1;
}

CornuStatus cornu__download(const char *url, const char *folder, const CornuDataFile *file,
                            const CornuDataSearch *search, CornuDownloadPatience patience)
{
    char path[CORNU_PATH_SIZE], temporary[CORNU_PATH_SIZE];
    if (snprintf(path, sizeof path, "%s/.%s%s", folder, file->name, suffix) >= (int)sizeof path)
        return cornu__fail(CORNU_ERR_FILE, "%s: the path is too long", folder);
    snprintf(path, sizeof path, "%s/%s", folder, file->name);
    CORNU__TRY(cornu__make_folders_above(path));
    remove_leftovers(folder, file);
    const int descriptor = open_temporary(temporary, folder, file);
    if (descriptor < 0)
        return cornu__fail(CORNU_ERR_FILE, "%s: cannot create a file there: %s", folder,
                           strerror(errno));
    cornu__log(CORNU_LOG_INFO, "downloading %s to %s", url, folder);
    CornuStatus status = fetch(url, temporary, file, search, patience);
    if (status == CORNU_OK) status = verify(temporary, file);
    if (status == CORNU_OK && rename(temporary, path) != 0)
        status = cornu__fail(CORNU_ERR_FILE, "%s: cannot be renamed to %s: %s", temporary, path,
                             strerror(errno));
    if (status != CORNU_OK) unlink(temporary);
    close(descriptor);
    if (status == CORNU_OK && search->progress)
        search->progress(search->context, file, file->bytes);
    return status;
}
