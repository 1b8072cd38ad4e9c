/* Symbols and the calls that give them, as models keep them. */
#ifndef CORNU_NN_SYMBOL_INTERNAL_H
#define CORNU_NN_SYMBOL_INTERNAL_H

#include "functional.h"
#include "../layers/layer_internal.h"

typedef struct CornuNode CornuNode;

struct CornuSymbol {
    CornuNode *node;   /* the call that gives it */
    int        index;  /* among what that gives  */
    CornuType  type;   /* axis 0 is CORNU_NONE   */
};

/* A call of a layer; of an input, its beginning. It holds its layer and the calls it depends on. */
struct CornuNode {
    int          owners;    /* calls that depend on it, models, the thread */
    CornuLayer  *layer;
    int          number;    /* calls of the layer that came before */
    CornuSymbol *in[CORNU_MAX_LAYER_TENSORS];
    CornuSymbol  out[CORNU_MAX_LAYER_TENSORS];
    int          in_count, out_count;
    CornuNode   *next, *previous; /* of those that are the thread's */
    bool         kept;      /* it is one of them */
    int          stamp, at; /* of the last walk over nodes, and what that noted */
};

/* The layer of an input. */
typedef struct {
    CornuLayer base;
    CornuDtype dtype;       /* f32: see CornuInputConfig */
    double     scale;
    int64_t    batch_size;  /* 0: any */
} CornuInputLayer;

extern const CornuLayerClass cornu__input_class;

/* Checks an input's settings, which messages of `who` call ".shape" with `prefix` between; *type is
 * what it gives, of rank 1 where no shape is given. */
CornuStatus cornu__input_check(const CornuInputConfig *config, const char *who, const char *prefix,
                               CornuType *type);

/* An input of checked settings that is nobody's yet. NULL with a pending error. */
CornuNode *cornu__input_node(const CornuInputConfig *config, CornuType type);

/* The call of a layer that has its name, which is built here if it was not; nobody's yet. NULL
 * with a pending error; the layer is not taken then. */
CornuNode *cornu__call_node(CornuLayer *layer, CornuSymbol *const *in, int count);

CornuNode *cornu__node_ref(CornuNode *node);
void       cornu__node_unref(CornuNode *node);

/* "dense_1[0][0]", as Keras says where a tensor comes from. */
const char *cornu__symbol_print(CornuText *to, const CornuSymbol *symbol);

/* No more the thread's: a model holds it. */
void cornu__node_detach(CornuNode *node);

/* For a walk over nodes: a stamp that none has yet. */
int cornu__next_stamp(void);

#endif
