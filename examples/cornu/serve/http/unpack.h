/* Bodies that are sent with Content-Encoding: gzip. */
#ifndef CORNU_SERVE_UNPACK_H
#define CORNU_SERVE_UNPACK_H

#include "../json/reply.h"

/* Whether a header's value, NULL for none, says that the body is packed; false with a problem also
 * if it is in another way. */
bool unpack_is_gzip(const char *encoding, Problem *problem);

/* Unpacks gzip's bytes, of one member or several, into *to, which the caller frees: at most `most`
 * bytes. `reserve` is asked before it grows by so many. */
bool unpack(const char *from, size_t size, size_t most, bool (*reserve)(void *context, size_t more),
            void *context, char **to, size_t *length, Problem *problem);

#endif
