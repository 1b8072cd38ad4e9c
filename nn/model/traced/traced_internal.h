/* The struct of a traced layer, for files. */
#ifndef CORNU_NN_TRACED_INTERNAL_H
#define CORNU_NN_TRACED_INTERNAL_H

#include "../../formats/json_internal.h"
#include "../model_internal.h"
#include "traced.h"

/* A graph: a function whose inputs are the operands, then the weights that it reads, and whose
 * outputs are the results, then losses, then the values of weights that it assigns. */
typedef struct {
    CornuModel *model;
    int         operands, results, losses;
    int         read_count;
    const CornuWeight **reads;
    int         assigned_count, assigned[CORNU_MAX_MODEL_TENSORS];  /* places among the layer's
                                                                       weights, its own first */
    bool        training_only, inference_only, computes_mask, computes_states;
} CornuTracedGraph;

/* An input of graphs that reads a weight, the layer's own or of a layer that it calls. */
typedef struct {
    CornuNode         *node;
    const CornuWeight *weight;
} CornuTracedRead;

typedef struct {
    CornuLayer        base;
    char             *class_name, *module, *registered_name;
    json_t           *config;
    json_t           *attributes;   /* [name of a layer, attribute], in Keras' order */
    bool              supports_masking;
    CornuTracedRead  *reads;        /* the inputs of graphs that read weights */
    int               read_count, read_space;
    CornuTracedGraph  graphs[CORNU_MAX_WRAPPED];
    int               graph_count;
} CornuTraced;

extern const CornuLayerClass cornu__traced_class;

/* The layer as a traced one; NULL if it is another one. */
static inline CornuTraced *cornu__as_traced(const CornuLayer *layer)
{
    return layer->kind == &cornu__traced_class ? (CornuTraced *)(uintptr_t)layer : NULL;
}

/* What a graph computes. */
typedef enum { CORNU_TRACED_RESULTS, CORNU_TRACED_MASK, CORNU_TRACED_STATES } CornuTracedComputes;

static inline CornuTracedComputes cornu__traced_computes(const CornuTracedGraph *graph)
{
    return graph->computes_mask ? CORNU_TRACED_MASK
         : graph->computes_states ? CORNU_TRACED_STATES : CORNU_TRACED_RESULTS;
}

/* The first graph for operands of these types that computes that, or NULL. */
const CornuTracedGraph *cornu__traced_graph_for(const CornuTraced *traced, const CornuType *types,
                                                int count, bool training,
                                                CornuTracedComputes what);

/* Of the class (traced_call.c). */
CornuTensor *cornu__traced_call_many(CornuLayer *layer, const CornuCall *call,
                                     CornuTensor *const *in, int in_count, CornuTensor **out);
CornuTensor *cornu__traced_mask_many(CornuLayer *layer, const CornuCall *call,
                                     CornuTensor *const *in, int in_count,
                                     CornuTensor *const *masks, CornuTensor **out_masks);
extern const struct CornuCell cornu__traced_cell;

/* cornu_traced_weight with the arguments as an object; and back, of weight i. */
CornuSymbol *cornu__traced_add_weight(CornuTraced *traced, const json_t *arguments);
json_t      *cornu__traced_weight_to_json(const CornuTraced *traced, int i);

/* The attribute, or path of attributes, that a layer called by its graphs is; default its name. */
const char *cornu__traced_attribute(const CornuTraced *traced, const CornuLayer *inner);
/* Adds pairs as they are in files; false if they are not such. */
bool        cornu__traced_set_attributes(CornuTraced *traced, const json_t *pairs);

/* Adds a graph, whose model it takes, also on failure. */
CornuStatus cornu__traced_add_graph(CornuTraced *traced, CornuTracedGraph graph);

/* The place of a weight among the layer's, or -1. */
int cornu__traced_place(const CornuTraced *traced, const CornuWeight *weight);

#endif
