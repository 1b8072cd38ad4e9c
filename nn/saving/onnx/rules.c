#include "extents_internal.h"
#include "rules_internal.h"

#include <string.h>

#include "../../../device/memory_internal.h"

CornuStatus cornu__onnx_refuse(const CornuLayer *layer, const char *what, const char *why)
{
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: %s is not available in ONNX files, %s",
                       cornu_layer_name(layer), what, why);
}

/* ---- Nodes ---- */

/* Reduces x in its stored order. Axes that are dropped leave gaps in the order of the others. */
int cornu__onnx_reduce(CornuOnnx *to, const char *operator, int x, int rank, int64_t axes,
                       bool keep)
{
    int64_t order[CORNU_MAX_RANK], reduced[CORNU_MAX_RANK], rest[CORNU_MAX_RANK] = { 0 };
    int     count = 0, left = 0, lying;
    cornu__onnx_lying(to, &x, 1, &lying, order);
    for (int i = 0; i < rank; i++) {
        if (axes >> i & 1) {
            reduced[count++] = order[i];
            continue;
        }
        for (int k = 0; k < rank; k++)
            rest[left] += !(axes >> k & 1) && order[k] < order[i];
        left++;
    }
    const bool listed = to->opset < 18 && strcmp(operator, "ReduceSum") != 0;
    const int  in[] = { lying,
                        listed ? CORNU_ONNX_NONE : cornu__onnx_integers(to, reduced, count) };
    const CornuOnnxAttribute attributes[] = {
        { .name = "keepdims", .whole = keep },
        { .name = "axes", .integers = reduced, .count = count },
    };
    const int y = cornu__onnx_node(to, operator, in, 2, attributes, listed ? 2 : 1, 1);
    return keep ? cornu__onnx_transpose(to, y, order, rank)
                : cornu__onnx_transpose(to, y, rest, left);
}

int cornu__onnx_split(CornuOnnx *to, int x, int64_t axis, int count)
{
    const CornuOnnxAttribute attributes[] = { { .name = "axis", .whole = axis },
                                              { .name = "num_outputs", .whole = count } };
    return cornu__onnx_node(to, "Split", &x, 1, attributes, to->opset < 18 ? 1 : 2, count);
}

int cornu__onnx_clip(CornuOnnx *to, int x, double low, double high)
{
    int in[] = { x, cornu__onnx_scalar(to, low), CORNU_ONNX_NONE };
    in[2] = cornu__onnx_scalar(to, high);
    return cornu__onnx_elementwise(to, "Clip", in, 3, NULL, 0);
}

int cornu__onnx_softmax(CornuOnnx *to, int x, int64_t axis)
{
    const int in[] = { x };
    return CORNU__ONNX_NODE(to, "Softmax", in, { .name = "axis", .whole = axis });
}

int cornu__onnx_slice(CornuOnnx *to, int x, int64_t axis, int64_t begin, int64_t end)
{
    const int in[] = { x, cornu__onnx_vector(to, &begin, 1), cornu__onnx_vector(to, &end, 1),
                       cornu__onnx_integers(to, &axis, 1) };
    return cornu__onnx_node(to, "Slice", in, 4, NULL, 0, 1);
}

/* Opset 15 has attributes of Shape for it. */
int cornu__onnx_part_of_shape(CornuOnnx *to, int x, const char *which, int64_t axis)
{
    const CornuOnnxAttribute attribute = { .name = which, .whole = axis };
    const bool               start = !strcmp(which, "start");
    if (to->opset >= 15) return cornu__onnx_node(to, "Shape", &x, 1, &attribute, 1, 1);
    const int shape = cornu__onnx_node(to, "Shape", &x, 1, NULL, 0, 1);
    return cornu__onnx_slice(to, shape, 0, start ? axis : 0, start ? INT32_MAX : axis);
}

int cornu__onnx_channels_first(CornuOnnx *to, int x, int rank)
{
    int64_t order[CORNU_MAX_RANK] = { 0, rank - 1 };
    for (int i = 2; i < rank; i++) order[i] = i - 1;
    return cornu__onnx_transpose(to, x, order, rank);
}

int cornu__onnx_channels_last(CornuOnnx *to, int x, int rank)
{
    int64_t order[CORNU_MAX_RANK] = { 0 };
    for (int i = 1; i < rank; i++) order[i] = i + 1 < rank ? i + 1 : 1;
    return cornu__onnx_transpose(to, x, order, rank);
}
