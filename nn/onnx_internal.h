/*
 * Models as ONNX files, to be run elsewhere: out only, for inference, opset 17, in f32.
 *
 * onnx.c writes the file, onnx_layers.c has a rule for each class of layers: what it is in nodes.
 * Values are numbers; those of a layer's tensors have the layout that they have here (NHWC, (B, T,
 * C)), rules transpose where an operator wants another one. The batch is open.
 * Source: github.com/onnx/onnx, docs/Operators.md, onnx/onnx.proto.
 */
#ifndef CORNU_NN_ONNX_INTERNAL_H
#define CORNU_NN_ONNX_INTERNAL_H

#include "files_internal.h"
#include "model_internal.h"

typedef struct CornuOnnx CornuOnnx;

/* An attribute of a node: what is not NULL, or else the whole number. */
typedef struct {
    const char    *name;
    const char    *text;                /* a text, or with `texts` as many, NUL behind each */
    const int64_t *numbers;             /* a list of `count` */
    int            count, texts;
    const double  *number;
    int64_t        whole;
} CornuOnnxAttribute;

enum { CORNU_ONNX_ABSENT = -1 };        /* an optional input that is not given */

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

/* A constant, copied: f32 or i64. */
int cornu__onnx_constant(CornuOnnx *to, CornuArray array);
int cornu__onnx_numbers(CornuOnnx *to, const int64_t *numbers, int count);
int cornu__onnx_scalar(CornuOnnx *to, double value);

/* Weight i of a layer: a constant that is there once, and its numbers. */
int          cornu__onnx_weight(CornuOnnx *to, const CornuLayer *layer, int i);
const float *cornu__onnx_values(CornuOnnx *to, const CornuLayer *layer, int i);

/* What a layer's class says of it in nodes, from the values that come in, whose shapes are given;
 * *out is its result. CORNU_ERR_UNSUPPORTED naming what ONNX does not have. */
CornuStatus cornu__onnx_layer(CornuOnnx *to, const CornuLayer *layer, const int *in,
                              const CornuShape *shapes, int in_count, int *out);

/* Likewise of a model in the model: its layers' nodes. Sets all results. */
CornuStatus cornu__onnx_model(CornuOnnx *to, const CornuModel *model, const int *in, int *out);

#endif
