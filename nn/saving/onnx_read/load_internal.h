/*
 * Loading ONNX files as models, each node a layer (layer_internal.h).
 *
 * The graph is traced twice, with other sizes of the batch and of the other open extents: what
 * differs depends on them. What is known and does not differ is a constant. What is known and
 * differs, such as a shape with the batch in it, is computed again in the layers that use it.
 */
#ifndef CORNU_NN_ONNX_LOAD_INTERNAL_H
#define CORNU_NN_ONNX_LOAD_INTERNAL_H

#include "../../model/model_internal.h"
#include "layer_internal.h"

enum { CORNU_READ_RUNS = 2 };

/* A value of the graph. */
typedef struct {
    const char      *name;
    CornuReadOperand runs[CORNU_READ_RUNS];   /* tensors live as long as the trace */
    CornuType        type;       /* of a tensor; what differs is CORNU_NONE */
    int              node;       /* that computes it; -1: an input or initializer */
    bool             known, same; /* in both runs; equal in both */
    bool             parameter;  /* a float initializer, or computed from one */
    bool             wanted;     /* by a node, or an output of the graph */
    CornuSymbol     *symbol;     /* of a tensor */
} CornuReadValue;

/* A node after the trace. */
typedef struct {
    bool           real;         /* it has results that are tensors: it becomes a layer */
    CornuReadRole *roles;        /* of its operands */
    CornuArray    *made;         /* constants that its ops need */
    int            made_count;
} CornuReadTraced;

typedef struct {
    CornuArena       arena;
    CornuReadModel   model;
    CornuLookup      names;      /* numbers of values */
    CornuReadValue  *values;
    CornuReadTraced *traced;
    int64_t          batch;      /* rows of every batch; 0: any */
} CornuReadLoad;

static inline CornuReadValue *cornu__read_value(CornuReadLoad *load, const char *name)
{
    const int at = *name ? cornu__lookup_find(&load->names, name) : -1;
    return at < 0 ? NULL : &load->values[at];
}

/* Rewrites what the layers cannot express: calls of functions, more operands than a layer takes. */
CornuStatus cornu__read_prepare(CornuReadLoad *load);

/* Part of it: nodes for weights that several nodes share. */
CornuStatus cornu__read_tie(CornuReadLoad *load);

/* Whether an operand of the node is trained if it is a constant. */
bool cornu__read_trains(const CornuReadNode *node, int operand);

/* Fills values and traced. */
CornuStatus cornu__read_trace(CornuReadLoad *load);

/* The graph of node i as a layer's argument, the values that are its inputs, and those whose
 * numbers its weights get. */
typedef struct {
    char            *text;       /* of the layer's config; released by the caller */
    CornuReadValue  *in[CORNU_MAX_LAYER_TENSORS], *out[CORNU_MAX_LAYER_TENSORS];
    CornuReadTensor *weights;
    int              in_count, out_count, weight_count;
} CornuReadPiece;
CornuStatus cornu__read_piece(CornuReadLoad *load, int i, CornuReadPiece *piece);

/* Whether the node passes its operand on, so that it need not be a layer. Nodes that name an output
 * of the graph are. */
bool cornu__read_passes(const CornuReadLoad *load, const CornuReadNode *node);

/* The roles of known operands that are weights of a layer: CORNU_READ_VALUE for those that are
 * not. */
CornuReadRole cornu__read_role(const CornuReadNode *node, int operand, const CornuReadValue *value);

#endif
