/*
 * Loading ONNX files as models, each node a layer (layer_internal.h).
 *
 * The graph is traced twice, with other sizes of its open extents (extents.c), the batch being one:
 * what differs depends on them. What is known and does not differ is a constant. What is known and
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
    CornuShape       shapes[CORNU_READ_RUNS];   /* of the tensors of the runs */
    CornuType        type;       /* of a tensor; what differs is CORNU_NONE */
    int              node;       /* that computes it; -1: an input or initializer */
    bool             known, same; /* in both runs; a constant: equal in both, and not by chance */
    bool             varies;     /* equal by chance, or computed from what is */
    bool             parameter;  /* a float initializer, or computed from one */
    bool             literal;    /* likewise, but from a Constant node */
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

/* An open extent of one or several axes of the inputs. */
typedef struct {
    const char *symbol;
    bool        rows;            /* of an axis 0 */
    int64_t     usual, size[CORNU_READ_RUNS];
} CornuReadExtent;

typedef struct {
    CornuArena       arena;
    CornuReadModel   model;
    CornuLookup      names;      /* numbers of values */
    CornuReadValue  *values;
    CornuReadTraced *traced;
    int64_t          batch;      /* rows of every batch; 0: any */
    bool             function;   /* axis 0 is not one batch of all */
    CornuInputShapes *shapes;    /* or NULL */
    CornuReadExtent *extents;
    int              extent_count;
    int              extent_at[CORNU_MAX_MODEL_TENSORS][CORNU_MAX_RANK];   /* -1: a known one */
    int              reached;    /* nodes traced in the last run, those of subgraphs, too */
    int64_t          searched;   /* the cost of the search of sizes so far */
    int              budget;     /* of ops that may still be recorded */
} CornuReadLoad;

static inline CornuReadValue *cornu__read_value(CornuReadLoad *load, const char *name)
{
    const int at = *name ? cornu__lookup_find(&load->names, name) : -1;
    return at < 0 ? NULL : &load->values[at];
}

/* Rewrites what the layers cannot express: calls of functions, more operands than a layer takes. */
CornuStatus cornu__read_prepare(CornuReadLoad *load);

/* Adds nodes for outputs that turned out to be known, which make tensors of them; false: there are
 * none. The graph is to be traced again. */
CornuStatus cornu__read_record_outputs(CornuReadLoad *load, bool *added);

/* A node Identity of a value, whose name and result are NAME followed by `suffix`. */
CornuStatus cornu__read_identity(CornuReadLoad *load, const char *from, const char *suffix,
                                 CornuReadNode *node);

/* Part of it: nodes for weights that several nodes share. */
CornuStatus cornu__read_tie(CornuReadLoad *load);

/* Whether an operand of the node is trained if it is a constant. */
bool cornu__read_trains(const CornuReadNode *node, int operand);

/* Fills values and traced, and finds out whether it is a function. */
CornuStatus cornu__read_trace(CornuReadLoad *load);

/* Part of it: traces with the sizes of `extents`; or with the first ones alone. */
CornuStatus cornu__read_run(CornuReadLoad *load, CornuDevice *device, bool single);

/* Whether axes 0 of the inputs that are open have the same name. */
bool cornu__read_names_batch(const CornuReadLoad *load);

/* The types of the inputs with the first sizes. */
void cornu__read_first_types(const CornuReadLoad *load, CornuType *types);

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
