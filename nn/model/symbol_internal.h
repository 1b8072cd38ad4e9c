/* Symbols and nodes, the calls that return them. */
#ifndef CORNU_NN_SYMBOL_INTERNAL_H
#define CORNU_NN_SYMBOL_INTERNAL_H

#include "functional.h"
#include "../layers/layer_internal.h"

typedef struct CornuNode CornuNode;

/* The argument `training` that a call in a file was recorded with, which is kept. It has no effect,
 * as in Keras 3.15, where predict, evaluate and fit set the argument of every layer; layers whose
 * argument is true by default, the augmentations, are recorded with it.
 * Source: keras/src/models/functional.py, operation_fn. */
typedef enum { CORNU_NOT_FORCED, CORNU_FORCED_INFERENCE, CORNU_FORCED_TRAINING } CornuForced;

struct CornuSymbol {
    CornuNode *node;   /* the call that returns it */
    int        index;  /* among its outputs        */
    CornuType  type;   /* axis 0 is CORNU_NONE, but for those of a function: CornuInputLayer */
};

/* A call of a layer, or an input. References its layer and the nodes it depends on. */
struct CornuNode {
    int          owners;    /* references: dependent calls, models, the thread */
    CornuLayer  *layer;
    int          number;    /* earlier calls of the layer */
    CornuSymbol **in;       /* the operands, then masks given for some of them */
    CornuSymbol *out;
    int          in_count, mask_count, out_count;
    int         *mask_of;   /* per mask, in[in_count + i]: the operand that it is for */
    CornuForced  training;  /* of this call, whatever the model does */
    bool         reverse;   /* see CornuLayer */
    CornuNode   *next, *previous; /* in the thread's list */
    bool         in_session;   /* in the list that cornu_clear_session frees */
    int          stamp, at; /* of the last walk over nodes, and its mark */
};

/* The layer of an input. */
typedef struct {
    CornuLayer base;
    CornuDtype dtype;       /* f32: see CornuInputConfig */
    double     scale;
    int64_t    batch_size;  /* 0: any */
    bool       whole;       /* of a function: its type is all of the data's, of any rank */
} CornuInputLayer;

extern const CornuLayerClass cornu__input_class;

/* Checks an input's settings. Messages begin with `who` and put `prefix` before "shape"; *type is
 * the input's type, of rank 1 if no shape is given. */
CornuStatus cornu__input_check(const CornuInputConfig *config, const char *who, const char *prefix,
                               CornuType *type);

/* An input from checked settings, without references yet. NULL with a pending error. */
CornuNode *cornu__input_node(const CornuInputConfig *config, CornuType type);

/* Likewise of a function (CornuModel.function), whose `type` is whole. */
CornuNode *cornu__whole_input_node(const CornuInputConfig *config, CornuType type);

/* Whether the node is one of cornu_input, not a call of a layer. */
static inline bool cornu__node_is_input(const CornuNode *node)
{
    return node->layer->kind == &cornu__input_class;
}

static inline bool cornu__symbol_is_whole(const CornuSymbol *input)
{
    return ((const CornuInputLayer *)input->node->layer)->whole;
}

/* What a call has besides its operands. */
typedef struct {
    CornuSymbol *masks[CORNU_MAX_LAYER_TENSORS];   /* of each operand; NULL: its own */
    CornuForced  training;
    bool         reverse;
} CornuCallOptions;

/* A call of a named layer, which is built if necessary; without references yet. NULL with a pending
 * error; the layer is not taken then. options may be NULL. */
CornuNode *cornu__call_node(CornuLayer *layer, CornuSymbol *const *in, int count,
                            const CornuCallOptions *options);

/* cornu_call_from with options: names and takes the layer, and keeps the node for the thread. */
CornuSymbol *cornu__call_with(CornuLayer *layer, CornuSymbol *const *in, int count,
                              const CornuCallOptions *options);

/* The number of symbols that the node depends on: operands and masks. */
static inline int cornu__node_symbols(const CornuNode *node)
{
    return node->in_count + node->mask_count;
}

/* Adds a reference, and drops one; the last one frees the node. */
CornuNode *cornu__node_ref(CornuNode *node);
void       cornu__node_unref(CornuNode *node);

/* "dense_1[0][0]", Keras' name of a tensor. */
const char *cornu__symbol_print(CornuText *to, const CornuSymbol *symbol);

/* Puts a node on the thread's list, so that it lives until a model takes it or the session ends.
 * Its first symbol; NULL for NULL. */
CornuSymbol *cornu__node_keep(CornuNode *node);

/* Removes a node from the thread's list, once a model references it. */
void cornu__node_detach(CornuNode *node);

/* For a walk over nodes: a new stamp. */
int cornu__next_stamp(void);

#endif
