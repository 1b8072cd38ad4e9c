#include "key_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../system/environment_internal.h"
#include "../open.h"
#include "../status_internal.h"

/* A shorter secret could be found by trying: who is connected to sees a code made with it. */
enum { LEAST = 16, MOST = 4096 };

#define HOW "`head -c 24 /dev/urandom | base64` makes one"

static CornuStatus use(CornuKey *key, const char *from, const char *secret, size_t size)
{
    CornuSha256 sum;
    if (size < LEAST)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s has a key of %zu characters, expected at least "
                           "%d; " HOW, from, size, LEAST);
    cornu__sha256_begin(&sum);
    cornu__sha256_add(&sum, secret, size);
    cornu__sha256_digest(&sum, key->bytes);
    return CORNU_OK;
}

static CornuStatus check_file(const char *path, int file)
{
    struct stat is;
    if (fstat(file, &is) || !S_ISREG(is.st_mode))
        return cornu__fail(CORNU_ERR_ARGUMENT, "CORNU_KEY_FILE: %s is not a file", path);
    if (is.st_uid != geteuid() && is.st_uid != 0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "CORNU_KEY_FILE: %s belongs to another user", path);
    if (is.st_mode & (S_IRWXG | S_IRWXO))
        return cornu__fail(CORNU_ERR_ARGUMENT, "CORNU_KEY_FILE: other users may use %s, whose mode "
                           "is %04o, expected 0600 or 0400; chmod 600 makes it so", path,
                           (unsigned)(is.st_mode & 07777));
    return CORNU_OK;
}

static CornuStatus read_file(CornuKey *key, const char *path)
{
    char      secret[MOST + 1];
    size_t    size = 0;
    ssize_t   n = 0;
    const int file = cornu__open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    if (file < 0)
        return cornu__fail(CORNU_ERR_FILE, "CORNU_KEY_FILE: %s: %s", path,
                           cornu__open_error(errno));
    CornuStatus status = check_file(path, file);
    while (!status && size < sizeof secret &&
           (n = read(file, secret + size, sizeof secret - size)) > 0)
        size += (size_t)n;
    close(file);
    if (!status && n < 0)
        status = cornu__fail(CORNU_ERR_FILE, "CORNU_KEY_FILE: %s cannot be read", path);
    if (!status && size > MOST)
        status = cornu__fail(CORNU_ERR_ARGUMENT, "CORNU_KEY_FILE: %s has more than %d bytes", path,
                             MOST);
    while (size > 0 && (secret[size - 1] == '\n' || secret[size - 1] == '\r')) size--;
    if (!status) status = use(key, "the file CORNU_KEY_FILE", secret, size);
    memset(secret, 0, sizeof secret);
    return status;
}

CornuStatus cornu__key_read(CornuKey *key, const char *secret)
{
    const char *given = cornu__environment("CORNU_KEY");
    const char *path = cornu__environment("CORNU_KEY_FILE");
    if (secret) return use(key, ".key", secret, strlen(secret));
    if (given) return use(key, "CORNU_KEY", given, strlen(given));
    if (path) return read_file(key, path);
    return cornu__fail(CORNU_ERR_ARGUMENT, "the processes have no key to know each other by: set "
                       "CORNU_KEY to the same secret on all of them, or CORNU_KEY_FILE to a file "
                       "with it; " HOW);
}

CornuStatus cornu__random_bytes(void *bytes, size_t size)
{
    const int file = cornu__open("/dev/urandom", O_RDONLY | O_CLOEXEC, 0);
    size_t    got = 0;
    ssize_t   n;
    while (file >= 0 && got < size && (n = read(file, (char *)bytes + got, size - got)) > 0)
        got += (size_t)n;
    if (file >= 0) close(file);
    return got == size ? CORNU_OK
                       : cornu__fail(CORNU_ERR_PROCESS, "/dev/urandom gives no random bytes");
}
