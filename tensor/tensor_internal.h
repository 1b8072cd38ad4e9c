/* Shared by the files of tensor/: the structs, recording, the gradient rules. */
#ifndef CORNU_TENSOR_TENSOR_INTERNAL_H
#define CORNU_TENSOR_TENSOR_INTERNAL_H

#include "../device/memory_internal.h"
#include "../device/mesh/partition.h"
#include "../device/ops/rules.h"
#include "ops.h"

/* A part of a packed variable; `part` is NULL once it has left. */
typedef struct {
    CornuVariable *part;
    int64_t        first, count;   /* elements */
} CornuSegment;

struct CornuVariable {
    CornuDevice   *device;
    CornuBuffer   *buffer;         /* NULL for a part */
    CornuType      type;           /* without the axis of shards */
    char          *name;
    CornuUse       use;
    CornuDtype     precision;
    CornuVariable *whole;          /* the packed variable that contains it, or NULL */
    int64_t        first;          /* the index of its first element there */
    CornuSpread    spread, made;   /* in graphs; as it was asked for */
    CornuLayout    layout;         /* how the mesh cuts it; graphs record it whole */
    bool           sparse_gradient;
    CornuStatus  (*draw)(const void *of, CornuArray to);   /* what it has until it is written; */
    const void    *drawn_of;       /* NULL: that is in memory */
    double         filled;         /* of one that is filled with a number */
    /* Of a packed variable: */
    CornuSegment  *segments;
    int            segment_count;
    int            users;          /* reference count: its parts, and graphs that read it */
};

/* ---- Values that are drawn later (variable.c) ---- */

/* Whether it has no memory yet, as of a device whose groups of processes are still to be dealt the
 * variables: its value is better drawn when it has, by those who have it. */
bool        cornu__variable_waits(const CornuVariable *variable);
/* Until it is written its value is what `draw` makes; `of` lives so long. */
void        cornu__variable_draw_later(CornuVariable *variable,
                                       CornuStatus (*draw)(const void *of, CornuArray to),
                                       const void *of);
/* Fills it with a number, now or later. */
CornuStatus cornu__variable_fill(CornuVariable *variable, double value);
/* Draws it, and the parts of a packed one, where this process has memory for it. */
CornuStatus cornu__variable_settle(CornuVariable *variable);

/* The bytes that a shard has of it. */
int64_t     cornu__variable_shard_bytes(const CornuVariable *variable);

/* The type of one shard's value in a graph. */
CornuType cornu__variable_shard_type(const CornuVariable *variable);

/* Drops a reference; the last one frees the packed variable. */
void cornu__whole_release(CornuVariable *whole);

/* The parts of a packed variable start at multiples of this many elements. */
int64_t cornu__segment_of(CornuDtype dtype);

/* ---- Parts of shards (parts.c) ---- */

/* The type of a buffer in which each shard has one of these. */
CornuType   cornu__parts_type(const CornuDevice *device, CornuType part);
/* The number, among the shards that share a batch, of the part that a shard has. */
int         cornu__part_of_shard(const CornuDevice *device, int shard);

/* Copies an array that begins at element `first` of the parts of all shards that share a batch, in
 * their order. Shards that differ along other axes of the mesh have the same. */
CornuStatus cornu__parts_write(CornuBuffer *buffer, int64_t first, CornuArray from);
CornuStatus cornu__parts_read(const CornuBuffer *buffer, int64_t first, CornuArray to);

/* Copies the whole of what the mesh has cut. */
CornuStatus cornu__slices_write(CornuBuffer *buffer, CornuLayout layout, CornuArray from);
CornuStatus cornu__slices_read(const CornuBuffer *buffer, CornuLayout layout, CornuArray to);

struct CornuTensor {
    CornuGraph *graph;
    CornuValue  value;
};

/* x where y = op(x) for an op of one operand, perhaps converted to another type of floats: of y's
 * type. NULL, without an error, where y is made otherwise. */
CornuTensor *cornu__argument_of(CornuTensor *y, CornuOpId op);

/* Records an op with `count` operands. Fills `out` and returns out[0]; NULL with an error pending,
 * the first one, if an operand is NULL or operands belong to different graphs. */
CornuTensor *cornu__record(CornuOpId id, const CornuAttributes *attributes,
                           CornuTensor *const *in, int count, CornuTensor **out);

/* The common cases: no operands; no attributes and one output. */
CornuTensor *cornu__record0(CornuGraph *graph, CornuOpId id, const CornuAttributes *attributes);
CornuTensor *cornu__record1(CornuOpId id, CornuTensor *x);
CornuTensor *cornu__record2(CornuOpId id, CornuTensor *a, CornuTensor *b);

/* d_x[i] = the sum over k of the gradients of y[k] with respect to x[i], weighted by d_y[k], which
 * has the type of y[k]. */
typedef CornuStatus CornuWeightedGradients(CornuTensor *const *y, CornuTensor *const *d_y,
                                           int y_count, CornuTensor *const *x, int count,
                                           CornuTensor **d_x);

/* A recorded op as its gradient rule sees it. */
typedef struct {
    CornuGraph             *graph;
    CornuOpId               id;
    const CornuAttributes  *attributes;
    CornuTensor           **in;
    CornuTensor           **out;
    int                     in_count, out_count;
    const bool             *wanted;      /* wanted[i]: whether d_x[i] will be used */
    CornuWeightedGradients *gradients;   /* for a rule that differentiates a program of its own */
} CornuRecorded;

/* Records the gradient with respect to each operand that is wanted: d_x[i] stays NULL if it has
 * none. d_y[i] is NULL if the loss does not depend on output i. */
typedef void CornuGradient(const CornuRecorded *op, CornuTensor *const *d_y, CornuTensor **d_x);

/* Markers in place of a rule: no gradient flows (a step, a random number); the gradient is that of
 * the op's decomposition. */
CornuGradient cornu__no_gradient, cornu__gradient_of_decomposition;
#define CORNU_NO_GRADIENT               cornu__no_gradient
#define CORNU_GRADIENT_OF_DECOMPOSITION cornu__gradient_of_decomposition

#define CORNU_OP(ID, name, ...) \
    extern CornuGradient *const cornu__##name##_gradient;
#include "../device/ops/ops.def"
#undef CORNU_OP

/* Over a mesh each shard is to have this slice of the tensor, once it is made. */
CornuStatus cornu__tensor_lay(CornuTensor *x, CornuLayout layout);

/* The current scope, "" if there is none. */
const char *cornu__scope(const CornuGraph *graph);

/* Broadcasts the operands of an elementwise op to one shape; false with a pending error naming
 * both shapes. */
bool cornu__broadcast_operands(CornuOpId id, CornuTensor **x, int count);

CornuAttributes cornu__shape_attributes(CornuShape shape);

/* Records a reduction over `axes`: x itself if there are none. */
CornuTensor *cornu__reduce(CornuOpId id, CornuTensor *x, int64_t axes, bool keep);
/* `reduced`, of the shape of that reduction's result, broadcast to the shape of its operand. */
CornuTensor *cornu__broadcast_reduced(const CornuRecorded *op, CornuTensor *reduced);

/* The rule of each op. */
extern CornuGradient *const *const cornu__gradient_rules[CORNU_OP_COUNT];

/* a' b (M, N) over the rows of a (…, M) and b (…, N): all their axes but the last. */
CornuTensor *cornu__product_over_rows(CornuTensor *a, CornuTensor *b, CornuDtype dtype);

/* The dtype of the gradient with respect to x: its own, but f32 if x is bf16 that was converted
 * from f32, as weights are under mixed precision: products accumulate in f32 and reach the weight
 * unrounded. In f16 they are rounded, as in Keras: what exceeds its range makes a loss scale
 * smaller. */
CornuDtype cornu__gradient_dtype(const CornuTensor *x);

/* At most *budget ops more are recorded in the graph; NULL: any number. Returns how many it has,
 * for spend, which ends the limit and takes those that were recorded since then from the budget. */
int  cornu__graph_limit(CornuGraph *graph, const int *budget);
void cornu__graph_spend(CornuGraph *graph, int *budget, int before);

#endif
