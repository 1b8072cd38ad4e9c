#include "unpack.h"

#include <limits.h>
#include <stdlib.h>
#include <strings.h>
#include <zlib.h>

enum { GZIP_ALONE = 16 };   /* added to the bits of inflate's window */

bool unpack_is_gzip(const char *encoding, Problem *problem)
{
    if (!encoding || !*encoding || !strcasecmp(encoding, "identity")) return false;
    if (!strcasecmp(encoding, "gzip") || !strcasecmp(encoding, "x-gzip")) return true;
    return problem_set(problem, CODE_INVALID_ARGUMENT, "Content-Encoding is %.100s, expected gzip "
                       "or none", encoding);
}

/* A body that needs `most` bytes has room for one more, by which a larger one shows. */
static bool grow(char **to, size_t *space, size_t most, bool (*reserve)(void *, size_t),
                 void *context, Problem *problem)
{
    size_t more = *space ? *space : 65536;
    if (more > most + 1 - *space) more = most + 1 - *space;
    if (more == 0)
        return problem_set(problem, CODE_TOO_LARGE, "The body of the request is too large, "
                           "expected at most %.4g MiB (--max-body) when it is unpacked",
                           (double)most / 1048576);
    char *grown = reserve(context, more) ? realloc(*to, *space + more) : NULL;
    if (!grown)
        return problem_set(problem, CODE_UNAVAILABLE, "No room for the body of the request beside "
                           "those of others");
    *to = grown;
    *space += more;
    return true;
}

bool unpack(const char *from, size_t size, size_t most, bool (*reserve)(void *context, size_t more),
            void *context, char **to, size_t *length, Problem *problem)
{
    z_stream stream = { .next_in = (Bytef *)(void *)from };
    size_t   space = 0, left = size;
    int      status = inflateInit2(&stream, MAX_WBITS + GZIP_ALONE);
    bool     good = status == Z_OK ||
                problem_set(problem, CODE_RESOURCE_EXHAUSTED, "no memory to unpack the body");
    *to = NULL;
    *length = 0;
    while (good && (status != Z_STREAM_END || left > 0)) {
        if (status == Z_STREAM_END) inflateReset(&stream);   /* another member follows */
        if (*length == space && !(good = grow(to, &space, most, reserve, context, problem))) break;
        const size_t room = space - *length;
        stream.avail_in = left < UINT_MAX ? (uInt)left : UINT_MAX;
        stream.avail_out = room < UINT_MAX ? (uInt)room : UINT_MAX;
        stream.next_out = (Bytef *)(void *)(*to + *length);
        const uInt in = stream.avail_in, out = stream.avail_out;
        status = inflate(&stream, Z_NO_FLUSH);
        left -= in - stream.avail_in;
        *length += out - stream.avail_out;
        const bool stuck = in == stream.avail_in && out == stream.avail_out;
        if ((status != Z_OK && status != Z_STREAM_END) || (stuck && status == Z_OK))
            good = problem_set(problem, CODE_INVALID_ARGUMENT, "The body of the request is not "
                               "gzip, or cut off, as its Content-Encoding says");
    }
    if (good && *length > most) good = grow(to, &space, most, reserve, context, problem);
    inflateEnd(&stream);
    return good;
}
