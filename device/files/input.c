#include "input_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../open.h"

CornuStatus cornu__input_open(CornuInput *input, const char *path)
{
    struct stat about;
    *input = (CornuInput){ .descriptor = cornu__open(path, O_RDONLY, 0) };
    if (input->descriptor < 0 || fstat(input->descriptor, &about)) {
        const char *reason = cornu__open_error(errno);
        cornu__input_close(input);
        return cornu__fail(CORNU_ERR_FILE, "cannot be read: %s", reason);
    }
    if (!S_ISREG(about.st_mode)) {
        cornu__input_close(input);
        return cornu__fail(CORNU_ERR_FILE, "is a %s, expected a file",
                           cornu__file_kind(about.st_mode));
    }
    input->size = about.st_size;
    return CORNU_OK;
}

void cornu__input_close(CornuInput *input)
{
    if (input->descriptor >= 0) close(input->descriptor);
    if (input->close) input->close(input->own);
    *input = (CornuInput){ .descriptor = -1, .size = input->size };
}

CornuStatus cornu__input_read(const CornuInput *input, int64_t at, void *to, size_t size)
{
    char *next = to;
    if (input->read) return input->read(input->own, at, to, size);
    while (size > 0) {
        const ssize_t got = pread(input->descriptor, next, size, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return cornu__fail(CORNU_ERR_FILE, "cannot be read: %s", strerror(errno));
        if (got == 0)
            return cornu__fail(CORNU_ERR_FILE, "ends at byte %lld, before %zu bytes that it had: "
                               "it was changed while being read", (long long)at, size);
        next += got;
        at += got;
        size -= (size_t)got;
    }
    return CORNU_OK;
}
