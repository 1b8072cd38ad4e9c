/* One tensor of a request: nested lists of JSON to a host array. */
#ifndef CORNU_SERVE_TENSOR_H
#define CORNU_SERVE_TENSOR_H

#include "json.h"

/* A deeper list is refused: models have at most CORNU_MAX_RANK axes. */
enum { TENSOR_MAX_RANK = CORNU_MAX_RANK + 1 };

typedef struct {
    CornuDtype dtype;
    int        rank;
    int64_t    extent[TENSOR_MAX_RANK];
    char      *data;                   /* owned; of strings, where each begins in `text` */
    int64_t    count, space;           /* elements */
    char      *text;                   /* owned: all strings, each with a zero after it */
    size_t     text_count, text_space;
} Tensor;

void tensor_free(Tensor *tensor);

/* "float", "int32": TensorFlow's name. */
const char *tensor_dtype_name(CornuDtype dtype);

/* Sets the rank to that of a value: how many lists its first element is in. The extents are those
 * of the first lists that are appended. */
bool tensor_rank(Tensor *tensor, Json value, Problem *problem);

/* Appends the elements of a value, which must have the extents; moves *at from it to its end. */
bool tensor_append(Tensor *tensor, Json *at, Problem *problem);

/* Appends one element, a number, a string or { "b64": … }. */
bool tensor_append_element(Tensor *tensor, Json value, Problem *problem);

/* The elements, char pointers in place of where strings begin; the tensor has none any more. Its
 * strings are in *text, to be freed after them. */
void *tensor_take(Tensor *tensor, char **text);

#endif
