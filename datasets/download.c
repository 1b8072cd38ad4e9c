#include "download_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../device/log_internal.h"
#include "sha256_internal.h"

extern char **environ;

enum { ARGUMENT_SIZE = 64, COMPLAINT_SIZE = 256 };

/* mkdir -p */
static CornuStatus make_folders(const char *folder)
{
    char path[CORNU_PATH_SIZE];
    snprintf(path, sizeof path, "%s", folder);
    for (char *slash = path + 1;; slash++) {
        if (*slash != '/' && *slash != '\0') continue;
        char kept = *slash;
        *slash = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            return cornu__fail(CORNU_ERR_FILE, "%s: the folder cannot be made: %s", path,
                               strerror(errno));
        *slash = kept;
        if (!kept) return CORNU_OK;
    }
}

/* Starts program with its complaints going to a pipe: *complaints is the end to read. Returns
 * 0, or an error number. */
static int start(const char *const *arguments, pid_t *child, int *complaints)
{
    int ends[2];
    if (pipe(ends) != 0) return errno;
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (!error) {
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
        /* The strings are not changed: POSIX keeps the type for history's sake. */
        error = posix_spawnp(child, arguments[0], &actions, NULL, (char *const *)arguments,
                             environ);
        posix_spawn_file_actions_destroy(&actions);
    }
    close(ends[1]);
    if (error)
        close(ends[0]);
    else
        *complaints = ends[0];
    return error;
}

/* Starts curl, or wget where there is no curl. */
static CornuStatus start_download(const char *url, const char *path,
                                  CornuDownloadPatience patience, pid_t *child, int *complaints)
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
    int error = start(curl, child, complaints);
    if (error == ENOENT) error = start(wget, child, complaints);
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

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Looks how much has come, *received before. An error is a reason to stop. The programs' own ways
 * to notice a stall differ, so we watch the file grow. */
static CornuStatus judge(const char *path, const CornuDataFile *file,
                         const CornuDataSearch *search, int stall, int64_t *received,
                         double *grown)
{
    int64_t bytes = size_of(path);
    if (bytes != *received) *grown = now();
    *received = bytes;
    if (bytes > file->bytes)
        return cornu__fail(CORNU_ERR_DATA, "more than the %lld bytes of the file came",
                           (long long)file->bytes);
    if (now() - *grown > stall)
        return cornu__fail(CORNU_ERR_DATA, "no byte came for %d seconds after %lld of %lld",
                           stall, (long long)bytes, (long long)file->bytes);
    if (search->progress && !search->progress(search->context, file, bytes))
        return cornu__fail(CORNU_ERR_INTERRUPTED, "stopped on request");
    return CORNU_OK;
}

/* Reads what the child complains of, in one line, until it closes its end of the pipe, which it
 * does by ending; ends it if there is reason to. */
static CornuStatus watch(pid_t child, int complaints, const char *path, const CornuDataFile *file,
                         const CornuDataSearch *search, int stall, char said[COMPLAINT_SIZE])
{
    enum { BETWEEN_LOOKS_MS = 100 };
    CornuStatus status = CORNU_OK;
    int64_t     received = 0;
    double      grown = now();
    size_t      used = 0;
    for (;;) {
        struct pollfd wait = { .fd = complaints, .events = POLLIN };
        if (poll(&wait, 1, BETWEEN_LOOKS_MS) > 0) {
            char    text[COMPLAINT_SIZE];
            ssize_t got = read(complaints, text, sizeof text);
            if (got <= 0) return status;
            for (ssize_t i = 0; i < got && used < COMPLAINT_SIZE - 1; i++)
                said[used++] = text[i] == '\n' ? ' ' : text[i];
            said[used] = '\0';
        }
        if (status != CORNU_OK) continue;
        status = judge(path, file, search, stall, &received, &grown);
        if (status != CORNU_OK) kill(child, SIGTERM);
    }
}

/* Runs the child to its end. */
static CornuStatus fetch(const char *url, const char *path, const CornuDataFile *file,
                         const CornuDataSearch *search, CornuDownloadPatience patience)
{
    pid_t child = -1;
    int   complaints = -1, result;
    char  said[COMPLAINT_SIZE] = "";
    CORNU__TRY(start_download(url, path, patience, &child, &complaints));
    CornuStatus status = watch(child, complaints, path, file, search, patience.stall, said);
    close(complaints);
    while (waitpid(child, &result, 0) < 0 && errno == EINTR) continue;
    if (status != CORNU_OK) return status;
    if (WIFEXITED(result) && WEXITSTATUS(result) == 0) return CORNU_OK;
    for (size_t end = strlen(said); end > 0 && said[end - 1] == ' '; end--) said[end - 1] = '\0';
    return cornu__fail(CORNU_ERR_DATA, "%s", said[0] ? said : "the download failed");
}

static CornuStatus verify(const char *path, const CornuDataFile *file)
{
    int64_t bytes = size_of(path);
    if (bytes != file->bytes)
        return cornu__fail(CORNU_ERR_DATA, "%lld bytes came, expected %lld", (long long)bytes,
                           (long long)file->bytes);
    char sum[CORNU__SHA256_TEXT];
    CORNU__TRY(cornu__sha256_file(path, sum));
    if (strcmp(sum, file->sha256) != 0)
        return cornu__fail(CORNU_ERR_DATA, "wrong checksum: SHA-256 is %s, expected %s", sum,
                           file->sha256);
    return CORNU_OK;
}

CornuStatus cornu__download(const char *url, const char *folder, const CornuDataFile *file,
                            const CornuDataSearch *search, CornuDownloadPatience patience)
{
    char path[CORNU_PATH_SIZE], temporary[CORNU_PATH_SIZE];
    if (snprintf(temporary, sizeof temporary, "%s/%s.XXXXXX", folder, file->name) >=
        (int)sizeof temporary)
        return cornu__fail(CORNU_ERR_FILE, "%s: the path is too long", folder);
    snprintf(path, sizeof path, "%s/%s", folder, file->name);
    CORNU__TRY(make_folders(folder));
    int descriptor = mkstemp(temporary);
    if (descriptor < 0)
        return cornu__fail(CORNU_ERR_FILE, "%s: no file can be made there: %s", folder,
                           strerror(errno));
    fchmod(descriptor, 0644); /* mkstemp's is for secrets */
    close(descriptor);
    cornu__log(CORNU_LOG_INFO, "downloading %s to %s", url, folder);
    CornuStatus status = fetch(url, temporary, file, search, patience);
    if (status == CORNU_OK) status = verify(temporary, file);
    if (status == CORNU_OK && rename(temporary, path) != 0)
        status = cornu__fail(CORNU_ERR_FILE, "%s: cannot be renamed to %s: %s", temporary, path,
                             strerror(errno));
    if (status != CORNU_OK) unlink(temporary);
    if (status == CORNU_OK && search->progress)
        search->progress(search->context, file, file->bytes);
    return status;
}
