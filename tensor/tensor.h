/*
 * Tensors and variables.
 *
 * A tensor is a value in a graph: something an op will compute when the graph runs. It belongs
 * to its graph and is freed with it; never free one yourself. A variable is a value that outlives
 * graphs: a weight, an optimizer's slot, a counter. It lives on a device and is freed by its
 * creator, or by the model that it was given to.
 *
 * Functions that return a tensor return NULL if an operand is NULL and keep the first error, so
 * that a chain of calls is checked once, at its end.
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

CornuType   cornu_tensor_type(const CornuTensor *tensor);   /* dtype and shape  */
CornuShape  cornu_tensor_shape(const CornuTensor *tensor);  /* that of its type */
CornuGraph *cornu_tensor_graph(const CornuTensor *tensor);  /* which owns it    */
/* Whether the value may vary from shard to shard: whether it depends on a shard's own data. */
bool        cornu_tensor_varies(const CornuTensor *tensor);

/* ---- Variables ---- */

/* How a variable is spread over the shards of a device. */
typedef enum {
    CORNU_SHARED,       /* one value, common to all shards                                     */
    CORNU_SLICED,       /* each shard holds one of as many equal slices of axis 0, which
                           cornu_read returns in a graph and cornu_assign takes; the last ones
                           have further rows if the extent does not divide                     */
    CORNU_DUPLICATED,   /* packed variables only: each shard holds a complete copy. From outside
                           a graph shard 0's is read, and all are written                      */
    CORNU_PER_SHARD     /* variables that are not packed: each shard holds its own value of the
                           variable's type, for its own rows. Arrays written and read have an
                           extra leading axis, the shard                                       */
} CornuSpread;

typedef struct {
    char         unset;
    CornuDevice *device;   /* required */
    CornuType    type;     /* required */
    const char  *name;     /* copied */
    CornuUse     use;      /* what its memory counts as; default CORNU_USE_OTHER */
    CornuSpread  spread;   /* default CORNU_SHARED; not CORNU_DUPLICATED. On a device with one shard
                              CORNU_SLICED is as CORNU_SHARED in graphs */
    CornuDtype   precision; /* of an f32: bf16 or f16 if its values are to be rounded to that by
                               whoever assigns it; default f32 */
    const struct CornuLayout *layout; /* how the device's mesh cuts it (device/mesh/partition.h);
                               default: not. Graphs read and assign the whole, as all else does */
    bool         for_packing; /* no memory until cornu_variable_pack provides it */
    bool         sparse_gradient; /* a table (V, C) of which an optimizer updates the rows that were
                                looked up; it is not packed */
} CornuVariableConfig;

/* A variable of zeros, which the caller frees. NULL with a pending error: CORNU_ERR_ARGUMENT
 * without a device or for a spread that it cannot have, CORNU_ERR_MEMORY as for a buffer
 * (device.h). */
CornuVariable *cornu_variable_create_from(const CornuVariableConfig *config);
#define cornu_variable_create(...) \
    cornu_variable_create_from(&(CornuVariableConfig){ .unset = 0, __VA_ARGS__ })
/* Once; graphs that read or assign it must not run any more. NULL is ignored. */
void           cornu_variable_free(CornuVariable *variable);
/* The type that it was made with: of a sliced one the whole, per shard that of one shard's
 * value. */
CornuType      cornu_variable_type(const CornuVariable *variable);
/* The type of arrays read and written: with CORNU_PER_SHARD it has a leading axis, the shards. */
CornuType      cornu_variable_host_type(const CornuVariable *variable);
const char    *cornu_variable_name(const CornuVariable *variable); /* "" if it has none */
CornuDevice   *cornu_variable_device(const CornuVariable *variable); /* that has its memory */
bool           cornu_variable_has_sparse_gradient(const CornuVariable *variable); /* as made */
CornuDtype     cornu_variable_precision(const CornuVariable *variable); /* as made, f32 at first */
CornuSpread    cornu_variable_spread(const CornuVariable *variable);   /* as it was made */
/* Whether each shard has a slice of it in a graph: CORNU_SLICED on a device with several. */
bool           cornu_variable_is_sliced(const CornuVariable *variable);
/* How the device's mesh cuts it. */
const struct CornuLayout *cornu_variable_layout(const CornuVariable *variable);
/* Whether the device's mesh cuts it. */
bool           cornu_variable_is_cut(const CornuVariable *variable);

/* Copies a host array of the variable's host type to the device. */
CornuStatus cornu_variable_write(CornuVariable *variable, CornuArray from);
/* Copies the value to a host array of that type. */
CornuStatus cornu_variable_read(const CornuVariable *variable, CornuArray to);
/* The number of values: one per shard if the variable, or the packed variable that contains it, is
 * duplicated, else 1. */
int         cornu_variable_value_count(const CornuVariable *variable);
/* Writes value i of these alone, of the host type. */
CornuStatus cornu_variable_write_value(CornuVariable *variable, int i, CornuArray from);
/* Reads value i of these. */
CornuStatus cornu_variable_read_value(const CornuVariable *variable, int i, CornuArray to);
/* Copies the value of a variable of the same type, which may be on another device. */
CornuStatus cornu_variable_copy(CornuVariable *to, const CornuVariable *from);

/*
 * Packs several variables into a flat one, so that one op can process them all. The parts are
 * read, written, assigned and freed as before and keep their values; only their memory moves. In
 * the packed variable each part starts at a multiple of 64 bytes, with zeros in the gaps and at the
 * end, where the extent is rounded up to 64 bytes for every shard of the device.
 *
 * The parts have one dtype and one device, are all different, and none is CORNU_PER_SHARD. The
 * packed variable belongs to its parts and is freed with the last one; parts of another packed
 * variable leave that one. A graph that has read a part cannot be run again (CORNU_ERR_ARGUMENT).
 * Packing the same parts again returns the same variable.
 */
CornuVariable *cornu_variable_pack(CornuVariable *const *parts, int count, CornuSpread spread,
                                   const char *name);

/* Sets a variable that is a scalar, of any dtype. */
CornuStatus cornu_variable_set(CornuVariable *variable, double value);
/* Reads a scalar. */
CornuStatus cornu_variable_get(const CornuVariable *variable, double *value);

#ifdef __cplusplus
}
#endif
#endif
