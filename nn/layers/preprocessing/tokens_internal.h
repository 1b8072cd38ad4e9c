/* A set of strings, each with its place, which is the order in which they came. */
#ifndef CORNU_NN_TOKENS_INTERNAL_H
#define CORNU_NN_TOKENS_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#include "../../../device/status.h"

typedef struct {
    const char *text;          /* NUL-terminated, of the set */
    int64_t     count;         /* for the caller: how often, in how many documents, in which last */
    int64_t     documents, last;
} CornuToken;

/* A set of strings with places in the order in which they came; all zeros is the empty one. */
typedef struct {
    CornuToken *items;         /* by place */
    int         count, space;
    int32_t    *slots;         /* place + 1 by hash, 0 where there is none */
    int64_t     slot_count;    /* a power of two */
    char       *block;         /* of texts: the newest; it begins with the pointer to the last
                                  one */
    size_t      left;          /* bytes in it */
} CornuTokens;

/* The place of a string, -1 if it is not in the set. */
int64_t cornu__tokens_find(const CornuTokens *tokens, const char *text, size_t length);

/* The place in *place, of a copy if it was not there; *added: whether that is so.
 * CORNU_ERR_UNSUPPORTED above 2^31 - 1. */
CornuStatus cornu__tokens_add(CornuTokens *tokens, const char *text, size_t length, int64_t *place,
                              bool *added);

void cornu__tokens_free(CornuTokens *tokens);

#endif
