/*
 * Layers as LiteRT operators. They are written as the ops that they record (recorded_internal.h).
 * Tensors are referred to by their numbers in the graph; images are NHWC in Cornu as in LiteRT.
 *
 * C leaves open in which order a call's arguments are evaluated, so at most one of them may add to
 * the graph: files must not depend on the compiler.
 */
#ifndef CORNU_NN_LITE_RULES_INTERNAL_H
#define CORNU_NN_LITE_RULES_INTERNAL_H

#include "../../layers/arguments_internal.h"
#include "from_model.h"

/* What the rules add to. */
typedef struct {
    CornuLiteGraph    *graph;
    const CornuModel  *model;
    const CornuValues *weights;
    const char        *name;          /* of the layer that is written, for its tensors */
    int64_t            rows;          /* of a batch that the model fixes, or CORNU_NONE: open */
    struct CornuLiteView *views;      /* of each tensor, views.c */
    int                view_space;
} CornuLite;

/* A call of a layer. Shapes have CORNU_NONE for the batch, unless it is fixed, and nowhere else. */
typedef struct {
    CornuLite        *to;
    const CornuLayer *layer;          /* NULL for the activation alone, of one operand: */
    CornuActivation   activation;
    const int        *in;
    const int        *masks;          /* of each input, bool, or CORNU_LITE_NONE; NULL for none */
    const CornuShape *shapes;         /* of the inputs */
    int               in_count;
    int              *out, *out_masks;   /* NULL: masks of results are not asked for */
} CornuLiteCall;

/* "dense: WHAT is not available in .tflite files, WHY", CORNU_ERR_UNSUPPORTED. */
CornuStatus cornu__lite_refuse(const CornuLayer *layer, const char *what, const char *why);

/* Writes a layer op by op, as it is recorded: recorded.c. */
CornuStatus cornu__lite_recorded(const CornuLiteCall *call);

/* ---- Operators, with one result of this shape, f32 unless the name says otherwise ---- */

int cornu__lite_node(CornuLite *to, CornuLiteCode code, const int *in, int in_count,
                     CornuShape shape, const CornuLiteOptions *options);
int cornu__lite_node_of(CornuLite *to, CornuLiteCode code, const int *in, int in_count,
                        CornuLiteDtype dtype, CornuShape shape, const CornuLiteOptions *options);

/* The extent of the result along each axis, aligned at the right: that which is not 1. */
CornuShape cornu__lite_joined(CornuShape a, CornuShape b);

/* Elementwise, of a and b, of equal rank or one of them without axes. */
int cornu__lite_two(CornuLite *to, CornuLiteCode code, int a, int b);

/* code(x, value) */
int cornu__lite_with(CornuLite *to, CornuLiteCode code, int x, double value);

int cornu__lite_reshape(CornuLite *to, int x, CornuShape shape);

/* A reduction over the axes, given as bits; `keep` keeps them with extent 1. */
int cornu__lite_reduce(CornuLite *to, CornuLiteCode code, int x, int64_t axes, bool keep);

/* Axis i of the result is axis order[i] of x: an operator TRANSPOSE, which is not added before
 * another one reads the result, so that transposes that cancel are never written (views.c); of a
 * constant, the constant so. */
int cornu__lite_turn(CornuLite *to, int x, const int *order);

/* If x is the result of such a transpose, what it is of, else CORNU_LITE_NONE; and the order. */
int cornu__lite_source(const CornuLite *to, int x, int order[CORNU_MAX_RANK]);

/* The extents of x for two sizes of an open batch (recorded_internal.h); where none are noted, an
 * open extent is the batch. */
void       cornu__lite_note(CornuLite *to, int x, CornuShape first, CornuShape second);
CornuShape cornu__lite_noted(const CornuLite *to, int x, int world);

/* Adds the transpose if x is one that is not added yet. */
void cornu__lite_settle(CornuLite *to, int x);

/* The shape of a tensor. */
static inline CornuShape shape_of(const CornuLite *to, int tensor)
{
    if (tensor < 0) return (CornuShape){ 0 };
    return to->graph->tensors[tensor].shape;
}

/* ---- Constants ---- */

/* The numbers of weight i of a layer. */
const float *cornu__lite_values(const CornuLite *to, const CornuLayer *layer, int i);

/* Weight i as a constant. */
int cornu__lite_weight(CornuLite *to, const CornuLayer *layer, int i);

/* A constant of zeros, which the caller fills in its data. */
int    cornu__lite_room(CornuLite *to, const char *what, CornuShape shape);
float *cornu__lite_data(CornuLite *to, int constant);       /* NULL when out of memory */

/* ---- Activations ---- */

CornuStatus cornu__lite_activate(CornuLite *to, CornuActivation activation, int x, int *y);

#endif
