/* One tensor of a request: nested lists of JSON to a host array. */
#ifndef CORNU_SERVE_TENSOR_H
#define CORNU_SERVE_TENSOR_H

#include <jansson.h>

#include "reply.h"

/* A deeper list is refused: models have at most CORNU_MAX_RANK axes. */
enum { TENSOR_MAX_RANK = CORNU_MAX_RANK + 1 };

typedef struct {
    CornuDtype dtype;
    int        rank;
    int64_t    extent[TENSOR_MAX_RANK];
    char      *data;                   /* owned; strings are, too */
    int64_t    count, space;           /* elements */
} Tensor;

void tensor_free(Tensor *tensor);

/* "float", "int32": TensorFlow's name. */
const char *tensor_dtype_name(CornuDtype dtype);

/* Sets the extents to those of a value: a list's length, then those of its first element. */
bool tensor_shape(Tensor *tensor, const json_t *value, Problem *problem);

/* Appends the elements of a value, which must have the extents. */
bool tensor_append(Tensor *tensor, const json_t *value, Problem *problem);

/* Appends one element, a number, a string or { "b64": … }. */
bool tensor_append_element(Tensor *tensor, const json_t *value, Problem *problem);

#endif
