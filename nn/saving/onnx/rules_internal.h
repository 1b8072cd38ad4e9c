/*
 * What writes ONNX nodes: layers are what they record (recorded_internal.h), but for those of
 * imported nodes, which are written as they were read.
 */
#ifndef CORNU_NN_ONNX_RULES_INTERNAL_H
#define CORNU_NN_ONNX_RULES_INTERNAL_H

#include "../../layers/arguments_internal.h"
#include "onnx_internal.h"

/* "dense: WHAT is not available in ONNX files, WHY", CORNU_ERR_UNSUPPORTED. */
CornuStatus cornu__onnx_refuse(const CornuLayer *layer, const char *what, const char *why);

/* Writes a call of a layer, CornuOnnxNode, of imported nodes: imported.c. */
CornuStatus cornu__onnx_imported(const CornuOnnxCall *call);

/* ---- Nodes ---- */

/* Elementwise operators of one and two operands. */
static inline int one(CornuOnnx *to, const char *operator, int x)
{
    return cornu__onnx_elementwise(to, operator, &x, 1, NULL, 0);
}

static inline int two(CornuOnnx *to, const char *operator, int a, int b)
{
    return cornu__onnx_elementwise(to, operator, (const int[]){ a, b }, 2, NULL, 0);
}

static inline int scaled(CornuOnnx *to, int x, double factor)
{
    return two(to, "Mul", x, cornu__onnx_scalar(to, factor));
}

static inline int shifted(CornuOnnx *to, int x, double offset)
{
    return two(to, "Add", x, cornu__onnx_scalar(to, offset));
}

/* Other operators of two operands, which are not reordered. */
static inline int joined(CornuOnnx *to, const char *operator, int a, int b)
{
    return cornu__onnx_node(to, operator, (const int[]){ a, b }, 2, NULL, 0, 1);
}

/* condition ? a : b */
static inline int selected(CornuOnnx *to, int condition, int a, int b)
{
    return cornu__onnx_elementwise(to, "Where", (const int[]){ condition, a, b }, 3, NULL, 0);
}

static inline int cast(CornuOnnx *to, int x, int64_t type)
{
    const CornuOnnxAttribute attribute = { .name = "to", .whole = type };
    return cornu__onnx_elementwise(to, "Cast", &x, 1, &attribute, 1);
}

/* A reduction, such as "ReduceMean", of x of this rank over the axes, given as bits; `keep` keeps
 * them with extent 1. */
int cornu__onnx_reduce(CornuOnnx *to, const char *operator, int x, int rank, int64_t axes,
                       bool keep);

/* The first of `count` equal parts of x along an axis; the others have the numbers after it. */
int cornu__onnx_split(CornuOnnx *to, int x, int64_t axis, int count);

/* Elements begin to end - 1 along an axis. */
int cornu__onnx_slice(CornuOnnx *to, int x, int64_t axis, int64_t begin, int64_t end);

/* The shape of x without its extents before "start", or from "end" on; this axis. */
int cornu__onnx_part_of_shape(CornuOnnx *to, int x, const char *which, int64_t axis);

/* Converts images of any rank from (B, H, W, C) to (B, C, H, W), as ONNX has them, and back. */
int cornu__onnx_channels_first(CornuOnnx *to, int x, int rank);
int cornu__onnx_channels_last(CornuOnnx *to, int x, int rank);

int cornu__onnx_clip(CornuOnnx *to, int x, double low, double high);
int cornu__onnx_softmax(CornuOnnx *to, int x, int64_t axis);

#endif
