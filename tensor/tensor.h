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
/* From shard to shard, as what each makes of its own data does; false where it is computed once for
 * all. */
bool        cornu_tensor_varies(const CornuTensor *tensor);

/* ---- Variables ---- */

/* How the shards of a device have a variable. */
typedef enum {
    CORNU_SHARED,       /* all in common                                                       */
    CORNU_SLICED,       /* of packed variables: each holds one of as many equal slices, which is
                           what cornu_read gives in a graph, and cornu_assign takes            */
    CORNU_DUPLICATED,   /* of packed variables: each holds a whole of its own. Shard 0's is read
                           from outside a graph, all are written                               */
    CORNU_PER_SHARD     /* of no packed ones: each holds a value of its own of the variable's
                           type, which belongs to the rows that it is dealt. Arrays written and
                           read have a leading axis more, the shard                            */
} CornuSpread;

typedef struct {
    char         unset;
    CornuDevice *device;   /* required */
    CornuType    type;     /* required */
    const char  *name;     /* copied */
    CornuUse     use;      /* what its memory counts as; default CORNU_USE_OTHER */
    CornuSpread  spread;   /* default CORNU_SHARED, else CORNU_PER_SHARD */
    bool         for_packing; /* it gets its memory by cornu_variable_pack, and waits for that */
} CornuVariableConfig;

/* All zeros. */
CornuVariable *cornu_variable_create_from(const CornuVariableConfig *config);
#define cornu_variable_create(...) \
    cornu_variable_create_from(&(CornuVariableConfig){ .unset = 0, __VA_ARGS__ })
void           cornu_variable_free(CornuVariable *variable);
CornuType      cornu_variable_type(const CornuVariable *variable);
/* That of the arrays which are read and written: per shard, with the shards' axis in front. */
CornuType      cornu_variable_host_type(const CornuVariable *variable);
const char    *cornu_variable_name(const CornuVariable *variable); /* "" if it has none */
CornuDevice   *cornu_variable_device(const CornuVariable *variable);

/* Copies a host array in or out, of the variable's host type. */
CornuStatus cornu_variable_write(CornuVariable *variable, CornuArray from);
CornuStatus cornu_variable_read(const CornuVariable *variable, CornuArray to);
/* How many values it has: the device's shards' for one that is duplicated, as the parts of such a
 * whole are; else one. Value i alone, of the same type as the above. */
int         cornu_variable_value_count(const CornuVariable *variable);
CornuStatus cornu_variable_write_value(CornuVariable *variable, int i, CornuArray from);
CornuStatus cornu_variable_read_value(const CornuVariable *variable, int i, CornuArray to);
/* Copies the value of a variable of the same type, which may be on another device. */
CornuStatus cornu_variable_copy(CornuVariable *to, const CornuVariable *from);

/*
 * Several variables packed into one flat one, so that one op treats them all. They stay what they
 * are to whoever reads, writes, assigns or frees them; only where they live changes, and their
 * values are kept. In the whole each begins at a multiple of 64 bytes; zeros are between them and
 * at the end, where its extent is rounded up to 64 bytes for every shard of the device.
 *
 * The parts are of one dtype, on one device, each there once, none per shard. The whole belongs to
 * them and is freed with the last one; parts of another whole leave that. A graph that read a part
 * before cannot be run any more, which is CORNU_ERR_ARGUMENT. Packing the parts of a whole again
 * gives that whole.
 */
CornuVariable *cornu_variable_pack(CornuVariable *const *parts, int count, CornuSpread spread,
                                   const char *name);

/* For scalars of any dtype. */
CornuStatus cornu_variable_set(CornuVariable *variable, double value);
CornuStatus cornu_variable_get(const CornuVariable *variable, double *value);

#ifdef __cplusplus
}
#endif
#endif
