/*
 * Writing models as ONNX files, for inference by other programs, in f32.
 *
 * onnx.c writes the file, nodes.c its graph. A layer is written as the ops that it records, and the
 * functions that have operators (recorded_internal.h). Values are referred to by numbers; 0 is
 * none. Tensors between layers keep Cornu's axes (NHWC, (B, T, C)), and what needs others
 * transposes. A transpose is written only when a node reads it, so that one that the next layer
 * undoes never is. The batch is open.
 *
 * The default is opset 18, of December 2022, the first in which all reductions take their axes in
 * the same way and Resize has an attribute for its axes; runtimes of recent years have it, and
 * exporters write it by default. For others, to->opset, rules and cornu__onnx_reduce choose.
 * Source: github.com/onnx/onnx, docs/Operators.md, onnx/onnx.proto.
 */
#ifndef CORNU_NN_ONNX_INTERNAL_H
#define CORNU_NN_ONNX_INTERNAL_H

#include "../../../device/files/protobuf_internal.h"
#include "../files_internal.h"
#include "../../model/model_internal.h"

typedef struct CornuOnnx CornuOnnx;

enum { CORNU_ONNX_NONE = 0 };           /* also an omitted optional input */

/* TensorProto.DataType */
enum { CORNU_ONNX_FLOAT = 1, CORNU_ONNX_UINT8 = 2, CORNU_ONNX_INT8 = 3, CORNU_ONNX_INT32 = 6,
       CORNU_ONNX_INT64 = 7, CORNU_ONNX_BOOL = 9 };

/* An attribute of a node: the pointer that is not NULL, or else the integer. */
typedef struct {
    const char    *name;
    const char    *text;                /* a string, or `texts` strings, each followed by NUL */
    const int64_t *integers;            /* a list of `count` */
    const double  *numbers;             /* likewise; a single one if count is 0 */
    const CornuMessage *graph;          /* a body */
    int            count, texts;
    int64_t        whole;
} CornuOnnxAttribute;

/* Adds a node and returns its first result; the others have the numbers after it. Out of memory,
 * the graph records the failure and later calls do nothing. C leaves open in which order a call's
 * arguments are evaluated, so at most one of them may add to the graph: files must not depend on
 * the compiler. */
int cornu__onnx_node(CornuOnnx *to, const char *operator, const int *in, int in_count,
                     const CornuOnnxAttribute *attributes, int attribute_count, int out_count);
/* A node with attributes, at least one, and one result. */
#define CORNU__ONNX_NODE(to, operator, in, ...)                                  \
    cornu__onnx_node((to), (operator), (in), (int)(sizeof(in) / sizeof *(in)),   \
                     (const CornuOnnxAttribute[]){ __VA_ARGS__ },                \
                     (int)(sizeof((const CornuOnnxAttribute[]){ __VA_ARGS__ }) / \
                           sizeof(CornuOnnxAttribute)), 1)

/* ---- Bodies of loops ---- */

/* A graph in an attribute. Nodes added between the first two calls are in it; of the graph around
 * they may read what is written before. `in` gets its inputs; types are TensorProto.DataType. */
typedef struct {
    CornuMessage around, body;
    int          first, extents;        /* values and extents from these numbers on are its own */
} CornuOnnxBody;
CornuOnnxBody cornu__onnx_begin_body(CornuOnnx *to, int in_count, int *in);
void          cornu__onnx_end_body(CornuOnnx *to, CornuOnnxBody *body, const int *in,
                                   const int *in_types, int in_count, const int *out,
                                   const int *out_types, int out_count);
void          cornu__onnx_free_body(CornuOnnxBody *body);

/* ---- Layout ---- */

/* Axis i of the result is axis order[i] of x. */
int cornu__onnx_transpose(CornuOnnx *to, int x, const int64_t *order, int rank);

/* The values in their stored order. If all, apart from scalars and absent ones, are transposes by
 * the same order, `lying` are their sources, axis i of a value is axis order[i] of its source, and
 * the rank is returned. Else `lying` are the values themselves, order is 0, 1, …, and 0 is
 * returned. */
int cornu__onnx_lying(const CornuOnnx *to, const int *in, int count, int *lying,
                      int64_t order[CORNU_MAX_RANK]);

/* A node of an elementwise operator with one result, stored in the order of its operands. */
int cornu__onnx_elementwise(CornuOnnx *to, const char *operator, const int *in, int in_count,
                            const CornuOnnxAttribute *attributes, int attribute_count);

/* ---- Constants ---- */

/* A constant, which is copied: f32, i64 or bool. */
int cornu__onnx_constant(CornuOnnx *to, CornuArray array);
/* One of any TensorProto.DataType, by its packed elements. */
int cornu__onnx_raw(CornuOnnx *to, int type, CornuShape shape, const void *bytes, size_t size);
int cornu__onnx_integers(CornuOnnx *to, const int64_t *integers, int count);
int cornu__onnx_scalar(CornuOnnx *to, double value);
int cornu__onnx_filled(CornuOnnx *to, CornuShape shape, float value);

/* Memory for a new constant, which the caller releases; NULL, recorded in the graph, when out of
 * memory. */
float *cornu__onnx_room(CornuOnnx *to, CornuShape shape);

/* ---- Weights: weights.c ---- */

/* A constant of a weight's numbers: reordered, then of another shape. */
typedef struct {
    const float *numbers;
    CornuShape   own;                     /* their shape */
    const int   *blocks;                  /* NULL, or which of equal parts of the last axis are */
    int          block_count;             /* its first, second, … */
    int          order[CORNU_MAX_RANK];   /* axis i is axis order[i] of own */
    CornuShape   shape;                   /* of as many numbers, or of more, which are 0 */
    double       factor;
    int          value;
} CornuOnnxForm;

/* The value of this form. It is written when a node reads it, once for all who ask for the form. */
int cornu__onnx_form(CornuOnnx *to, CornuOnnxForm form);

/* Weight i of a layer: as it is, or with its axes in `order`, NULL for their own, and then of
 * `shape`. */
int cornu__onnx_weight(CornuOnnx *to, const CornuLayer *layer, int i);
int cornu__onnx_weight_as(CornuOnnx *to, const CornuLayer *layer, int i, const int *order,
                          CornuShape shape);

/* The form that a value is of; NULL if it is not of a weight. */
const CornuOnnxForm *cornu__onnx_form_of(const CornuOnnx *to, int value);

/* The value transposed, of another shape of as many numbers, or multiplied, as another form; none
 * if there is no such form. */
int cornu__onnx_turned_weight(CornuOnnx *to, int value, const int64_t *order, int rank);
int cornu__onnx_shaped_weight(CornuOnnx *to, int value, CornuShape shape);
int cornu__onnx_scaled_weight(CornuOnnx *to, int value, double factor);

/* ---- Extents that are unknown until the model runs: extents_internal.h ---- */

/* Shapes have a handle in place of such an extent; CORNU_NONE is the batch. */
bool cornu__onnx_is_open(int64_t extent);

/* An i64 vector of extents, known or not. */
int cornu__onnx_vector(CornuOnnx *to, const int64_t *extents, int count);

/* ---- Layers and models ---- */

/* A call of a layer on values, each with its mask, bool (B, T), or none; and room for the results.
 * All shapes have an open batch; other extents may be open. */
typedef struct {
    CornuOnnx        *to;
    const CornuLayer *layer;
    const int        *in, *masks;
    const CornuShape *mask_shapes;      /* of masks given to this call, of any rank; of rank 0, or
                                           NULL for all: the mask comes with the input */
    const CornuShape *shapes;           /* of the inputs */
    const CornuDtype *dtypes;           /* likewise, as the layer gets them in Cornu */
    int               in_count;
    int              *out, *out_masks;
} CornuOnnxCall;

/* ---- The graph, for nodes.c and onnx.c ---- */

/* What is known of a value. The source of a transpose is never a transpose itself. */
typedef struct {
    int     source;                       /* of a transpose; 0: it is not one */
    int64_t order[CORNU_MAX_RANK];
    int     rank;                         /* of a transpose */
    bool    pending;                      /* no node has read it yet */
    bool    constant, scalar;             /* not of a body alone; one without axes */
    float   number;                       /* of a scalar that is pending */
    int     form;                         /* of a weight, 1 + its number; 0: it is not of one */
} CornuOnnxValue;

enum { CORNU_ONNX_WORLDS = 3 };

/* An open extent, of extents.c: of an axis of a value, factor a + offset, or a b. */
typedef struct {
    int64_t numbers[CORNU_ONNX_WORLDS];
    enum { CORNU_ONNX_AXIS, CORNU_ONNX_LINEAR, CORNU_ONNX_PRODUCT } kind;
    int     value, axis;                  /* 0: the value is not yet written */
    int64_t factor, offset;
    int     a, b;
    bool    of_batch;
    int     vector;                       /* its i64 vector of one; 0: not yet */
} CornuOnnxExtent;

struct CornuOnnx {
    const CornuModel  *model;
    const CornuValues *weights;
    CornuMessage       nodes, constants;  /* fields of the graph */
    CornuOnnxValue    *values;            /* by number; 0 is unused */
    int                count, space;      /* of values, including number 0 */
    CornuOnnxForm     *forms;
    int                form_count, form_space;
    int                opset;
    const char        *label;             /* a name for nodes, NULL for none */
    CornuOnnxExtent   *extents;           /* the batch is number 0 */
    int                extent_count, extent_space;
    int                attempt, unknown;  /* the numbers of the worlds, and of open extents */
    bool               pending;           /* an extent was read that is not written yet */
};

/* ---- The file around the graph: file.c ---- */

/* An input under this name, TensorProto.DataType and shape; the value to use. */
int cornu__onnx_put_input(CornuOnnx *to, CornuMessage *graph, const char *name, int type,
                          CornuShape shape);
void cornu__onnx_put_output(CornuOnnx *to, CornuMessage *graph, const char *name, int type,
                            CornuShape shape, int value);

/* Puts a file, whose graph `put` fills: its inputs and outputs directly, its nodes by the functions
 * above. cornu__onnx_free in any case. */
typedef CornuStatus CornuOnnxGraph(CornuOnnx *to, CornuMessage *graph, const void *context);
CornuStatus cornu__onnx_put_file(CornuOnnx *to, CornuMessage *file, const char *name,
                                 CornuOnnxGraph *put, const void *context);
void        cornu__onnx_free(CornuOnnx *to);

/* A new value; 0 when out of memory. */
int cornu__onnx_value(CornuOnnx *to, CornuOnnxValue value);

/* The name of a value, which no layer has; "" for an absent input. */
typedef struct { char text[24]; } CornuOnnxName;
const char *cornu__onnx_name(CornuOnnxName *name, int value);

/* Begins a node, whose operands and results are named next; cornu__end_field ends it. */
size_t cornu__onnx_begin_node(CornuOnnx *to, const char *operator);

/* Writes a pending transpose, weight or scalar before a node reads it; and what that takes. */
void cornu__onnx_put_pending(CornuOnnx *to, int value);
void cornu__onnx_put_weight(CornuOnnx *to, int value);
void cornu__onnx_put_tensor(CornuOnnx *to, int value, int type, CornuShape shape,
                            const void *bytes, size_t size);

#endif
