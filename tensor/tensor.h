/*
 * Tensors and variables.
 *
 * A tensor is a value in a graph: something an op will compute when the graph runs. It belongs
 * to its graph and is freed with it; nobody frees a tensor. A variable is a value that outlives
 * graphs: a weight, an optimizer's slot, a counter. It lives on a device and is freed by
 * whoever made it, or by the model it was given to.
 *
 * Every function that returns a tensor returns NULL when an operand is NULL, keeping the first
 * error, so a chain of calls is checked once, at its end.
 */
#ifndef CORNU_TENSOR_TENSOR_H
#define CORNU_TENSOR_TENSOR_H

#include "../device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CornuGraph    CornuGraph;
typedef struct CornuTensor   CornuTensor;
typedef struct CornuVariable CornuVariable;

CornuType   cornu_tensor_type(const CornuTensor *tensor);
CornuShape  cornu_tensor_shape(const CornuTensor *tensor);
CornuGraph *cornu_tensor_graph(const CornuTensor *tensor);

/* ---- Variables ---- */

typedef struct {
    char         unset;
    CornuDevice *device;   /* required */
    CornuType    type;     /* required */
    const char  *name;     /* copied */
    CornuUse     use;      /* what its memory counts as; default CORNU_USE_OTHER */
} CornuVariableConfig;

/* All zeros. */
CornuVariable *cornu_variable_create_from(const CornuVariableConfig *config);
#define cornu_variable_create(...) \
    cornu_variable_create_from(&(CornuVariableConfig){ .unset = 0, __VA_ARGS__ })
void           cornu_variable_free(CornuVariable *variable);
CornuType      cornu_variable_type(const CornuVariable *variable);
const char    *cornu_variable_name(const CornuVariable *variable); /* "" if it has none */
CornuDevice   *cornu_variable_device(const CornuVariable *variable);

/* Copies a host array of the same type in or out. */
CornuStatus cornu_variable_write(CornuVariable *variable, CornuArray from);
CornuStatus cornu_variable_read(const CornuVariable *variable, CornuArray to);

/* Copies the value of a variable of the same type, which may be on another device. */
CornuStatus cornu_variable_copy(CornuVariable *to, const CornuVariable *from);

/* For scalars of any dtype. */
CornuStatus cornu_variable_set(CornuVariable *variable, double value);
CornuStatus cornu_variable_get(const CornuVariable *variable, double *value);

#ifdef __cplusplus
}
#endif
#endif
