/*
 * Layers as LiteRT operators. Most are written as the ops that they record (by_ops.c names them,
 * recorded_internal.h has the writers); where LiteRT has an operator that is more, a rule
 * translates the layer. A class has a row in the table of its family; its rule sets call->out.
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
    const CornuShape *shapes;         /* of the inputs */
    int               in_count;
    const CornuShape *results;        /* of the outputs */
    int              *out;
} CornuLiteCall;

/* CORNU_ERR_UNSUPPORTED naming what LiteRT does not have, and the reason. */
typedef CornuStatus CornuLiteRule(const CornuLiteCall *call);

typedef struct { const char *class_name; CornuLiteRule *rule; } CornuLiteRow;

#define FAMILY(name) extern const CornuLiteRow cornu__lite_##name[];
#include "families.def"
#undef FAMILY

/* The tables of families, each ended by a row without a name; NULL ends the list. */
extern const CornuLiteRow *const cornu__lite_families[];

/* Finds the rule of the layer and applies it. */
CornuStatus cornu__lite_layer(const CornuLiteCall *call);

/* "dense: WHAT is not available in .tflite files, WHY", CORNU_ERR_UNSUPPORTED. */
CornuStatus cornu__lite_refuse(const CornuLayer *layer, const char *what, const char *why);

/* Writes a layer op by op, as it is recorded: recorded.c. */
CornuLiteRule cornu__lite_recorded;

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
 * another one reads the result, so that transposes that cancel are never written (views.c). */
int cornu__lite_turn(CornuLite *to, int x, const int *order);

/* If x is the result of such a transpose, what it is of, else CORNU_LITE_NONE; and the order. */
int cornu__lite_source(const CornuLite *to, int x, int order[CORNU_MAX_RANK]);

/* The extents of x for two sizes of an open batch (recorded_internal.h); where none are noted, an
 * open extent is the batch. */
void       cornu__lite_note(CornuLite *to, int x, CornuShape first, CornuShape second);
CornuShape cornu__lite_noted(const CornuLite *to, int x, int world);

/* Adds the transpose if x is one that is not added yet. */
void cornu__lite_settle(CornuLite *to, int x);

/* Padding with zeros before and after each axis. */
int cornu__lite_pad(CornuLite *to, int x, const int64_t *low, const int64_t *high);

/* The shape of a tensor. */
static inline CornuShape shape_of(const CornuLite *to, int tensor)
{
    if (tensor < 0) return (CornuShape){ 0 };
    return to->graph->tensors[tensor].shape;
}

/* ---- Constants ---- */

/* The numbers of weight i of a layer. */
const float *cornu__lite_values(const CornuLite *to, const CornuLayer *layer, int i);

/* Weight i as a constant: with its axes in `order`, NULL for their own, and then of `shape`. */
int cornu__lite_weight(CornuLite *to, const CornuLayer *layer, int i);
int cornu__lite_weight_as(CornuLite *to, const CornuLayer *layer, int i, const int *order,
                          CornuShape shape);

/* A constant of zeros, which the caller fills in its data. */
int    cornu__lite_room(CornuLite *to, const char *what, CornuShape shape);
float *cornu__lite_data(CornuLite *to, int constant);       /* NULL when out of memory */

/* A layer's list of numbers, which broadcasts to x of this rank. */
int cornu__lite_numbers(CornuLite *to, const CornuNumbers *numbers, int rank);

/* ---- Activations ---- */

/* x after the activation of the layer, in the shape of its result. */
CornuStatus cornu__lite_activated(const CornuLiteCall *call, int x, int *y);

CornuStatus cornu__lite_activate(CornuLite *to, CornuActivation activation, int x, int *y);

#endif
