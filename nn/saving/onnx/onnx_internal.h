/*
 * Models as ONNX files, to be run elsewhere: out only, for inference, opset 18, in f32.
 *
 * onnx.c writes the file, nodes.c its graph; a rule says what a class of layers is in nodes. Values
 * are numbers, 0 is none. Those of a layer's tensors have the axes that they have here (NHWC, (B,
 * T, C)), and rules transpose where an operator wants others. A transpose is written only when a
 * node reads it, so one that the next rule takes back is none. The batch is open.
 *
 * Opset 18, of December 2022, is the first in which all reductions take their axes alike and Resize
 * says which axes it is about; runtimes of the last years have it, exporters write it by default.
 * Source: github.com/onnx/onnx, docs/Operators.md, onnx/onnx.proto.
 */
#ifndef CORNU_NN_ONNX_INTERNAL_H
#define CORNU_NN_ONNX_INTERNAL_H

#include "../../formats/protobuf_internal.h"
#include "../files_internal.h"
#include "../../model/model_internal.h"

typedef struct CornuOnnx CornuOnnx;

enum { CORNU_ONNX_NONE = 0 };           /* also an optional input that is not given */

/* TensorProto.DataType */
enum { CORNU_ONNX_FLOAT = 1, CORNU_ONNX_INT32 = 6, CORNU_ONNX_INT64 = 7, CORNU_ONNX_BOOL = 9 };

/* An attribute of a node: what is not NULL, or else the whole number. */
typedef struct {
    const char    *name;
    const char    *text;                /* a text, or with `texts` as many, NUL behind each */
    const int64_t *integers;            /* a list of `count` */
    const double  *numbers;             /* likewise, or with a count of 0 a single one */
    int            count, texts;
    int64_t        whole;
} CornuOnnxAttribute;

/* Adds a node; returns its first result, the others are numbered on from it. Without memory the
 * failure is kept, and what follows does nothing. */
int cornu__onnx_node(CornuOnnx *to, const char *operator, const int *in, int in_count,
                     const CornuOnnxAttribute *attributes, int attribute_count, int out_count);
/* The same with attributes, one at least, and one result. */
#define CORNU__ONNX_NODE(to, operator, in, ...)                                  \
    cornu__onnx_node((to), (operator), (in), (int)(sizeof(in) / sizeof *(in)),   \
                     (const CornuOnnxAttribute[]){ __VA_ARGS__ },                \
                     (int)(sizeof((const CornuOnnxAttribute[]){ __VA_ARGS__ }) / \
                           sizeof(CornuOnnxAttribute)), 1)

/* ---- Layout ---- */

/* Axis i of the result is axis order[i] of x. */
int cornu__onnx_transpose(CornuOnnx *to, int x, const int64_t *order, int rank);

/* The values as they lie. If all, scalars and absent ones aside, are transposes of others by one
 * order, `lying` are those others, and axis i of a value is their axis order[i]; this returns the
 * rank. Else they are the values themselves, order is 0, 1, …, and this returns 0. */
int cornu__onnx_lying(const CornuOnnx *to, const int *in, int count, int *lying,
                      int64_t order[CORNU_MAX_RANK]);

/* A node of an operator that works element by element, of one result, which lies as what it is made
 * of does. */
int cornu__onnx_elementwise(CornuOnnx *to, const char *operator, const int *in, int in_count,
                            const CornuOnnxAttribute *attributes, int attribute_count);

/* ---- Constants ---- */

/* A constant, copied: f32, i64 or bool. */
int cornu__onnx_constant(CornuOnnx *to, CornuArray array);
int cornu__onnx_integers(CornuOnnx *to, const int64_t *integers, int count);
int cornu__onnx_scalar(CornuOnnx *to, double value);
int cornu__onnx_filled(CornuOnnx *to, CornuShape shape, float value);

/* Weight i of a layer as a constant, which is there once however often the layer is called; for
 * that a layer's rule asks for a weight always in the same form. Its form may be another: its axes
 * in an order, NULL for their own, and then of `shape`. */
int cornu__onnx_weight(CornuOnnx *to, const CornuLayer *layer, int i);
int cornu__onnx_weight_as(CornuOnnx *to, const CornuLayer *layer, int i, const int *order,
                          CornuShape shape);

/* The weight's numbers; and the place that says which constant stands for it, 0 until one does, for
 * rules that make it themselves. */
const float *cornu__onnx_values(const CornuOnnx *to, const CornuLayer *layer, int i);
int         *cornu__onnx_place(const CornuOnnx *to, const CornuLayer *layer, int i);

/* ---- Layers and models ---- */

/* A call of a layer on values, with the mask of each, bool (B, T), or none; and room for what it
 * gives. All shapes have an open batch. */
typedef struct {
    CornuOnnx        *to;
    const CornuLayer *layer;
    const int        *in, *masks;
    const CornuShape *shapes;           /* of what comes in */
    int               in_count;
    const CornuShape *results;          /* of what it gives */
    int              *out, *out_masks;
} CornuOnnxCall;

/* Writes a call. CORNU_ERR_UNSUPPORTED naming what ONNX does not have, and why. */
typedef CornuStatus CornuOnnxRule(const CornuOnnxCall *call);

/* ---- The graph, for nodes.c and onnx.c ---- */

/* What is known of a value. A transpose knows what it is one of: never of another transpose. */
typedef struct {
    int     source;                       /* 0: it is none */
    int64_t order[CORNU_MAX_RANK];
    int     rank;                         /* of a transpose */
    bool    pending;                      /* no node has read it yet */
    bool    scalar;                       /* a constant without axes */
} CornuOnnxValue;

struct CornuOnnx {
    const CornuModel  *model;
    const CornuValues *weights;
    CornuMessage       nodes, constants;  /* fields of the graph */
    CornuOnnxValue    *values;            /* by number; 0 stands for none */
    int                count, space;      /* of values, that one included */
    int               *places;            /* the constant of each weight; 0: none yet */
    CornuOnnxRule     *layer;             /* writes a layer, for rules of layers around others */
};

/* A new one; 0 without memory. */
int cornu__onnx_value(CornuOnnx *to, CornuOnnxValue value);

/* The name of a value, unlike any layer's; "" for an absent input. */
typedef struct { char text[24]; } CornuOnnxName;
const char *cornu__onnx_name(CornuOnnxName *name, int value);

/* Begins a node, whose operands and results are named next; cornu__end_field ends it. */
size_t cornu__onnx_begin_node(CornuOnnx *to, const char *operator);

/* Writes the transpose that a value stands for, before a node reads it, unless that is done. */
void cornu__onnx_put_transpose(CornuOnnx *to, int value);

#endif
