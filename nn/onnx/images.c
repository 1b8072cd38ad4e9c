/* Edges and sizes of images, and numbers in place of pixels. */
#include "rules_internal.h"

#include <math.h>

#include "../../device/memory_internal.h"

/* Of each axis between batch and channels, how many rows before it, and how many behind it. */
static int64_t edge_of(const CornuOnnxCall *call, const char *argument, int axis, bool behind)
{
    const int64_t *edges = cornu__onnx_argument(call->layer, argument);
    return cornu__integer(edges[2 * (axis - 1) + behind], 0);
}

/* For each axis as the image lies, before them all and behind them all. */
static CornuStatus zero_padding(const CornuOnnxCall *call)
{
    CornuOnnx *to = call->to;
    const int  rank = call->shapes[0].rank;
    int64_t    order[CORNU_MAX_RANK], pads[2 * CORNU_MAX_RANK] = { 0 };
    int        x;
    cornu__onnx_lying(to, call->in, 1, &x, order);
    for (int i = 1; i + 1 < rank; i++) {
        pads[order[i]] = edge_of(call, "padding", i, false);
        pads[rank + order[i]] = edge_of(call, "padding", i, true);
    }
    x = joined(to, "Pad", x, cornu__onnx_integers(to, pads, 2 * rank));
    *call->out = cornu__onnx_transpose(to, x, order, rank);
    return CORNU_OK;
}

static CornuStatus cropping(const CornuOnnxCall *call)
{
    CornuOnnx *to = call->to;
    const int  rank = call->shapes[0].rank;
    int64_t    order[CORNU_MAX_RANK];
    int        x;
    cornu__onnx_lying(to, call->in, 1, &x, order);
    for (int i = 1; i + 1 < rank; i++)
        x = cornu__onnx_slice(to, x, order[i], edge_of(call, "cropping", i, false),
                              call->shapes[0].extent[i] - edge_of(call, "cropping", i, true));
    *call->out = cornu__onnx_transpose(to, x, order, rank);
    return CORNU_OK;
}

/* The nearest pixels along an axis, by number: which these are depends on rounding where two are
 * equally near, and so with Resize on who runs it. */
static CornuStatus pick(CornuOnnx *to, int64_t axis, int64_t from, int64_t count, int *x)
{
    int64_t *numbers = cornu__allocate((size_t)count, sizeof *numbers);
    if (!numbers) return CORNU_ERR_MEMORY;
    for (int64_t i = 0; i < count; i++)   /* as in layers/resampling.c, in f32 */
        numbers[i] = (int64_t)floorf(((float)i + 0.5f) * (float)from / (float)count);
    const int in[] = { *x, cornu__onnx_integers(to, numbers, (int)count) };
    *x = CORNU__ONNX_NODE(to, "Gather", in, { .name = "axis", .whole = axis });
    cornu__release(numbers);
    return CORNU_OK;
}

/* To the result's size: UpSampling2D and Resizing. */
static CornuStatus resize(const CornuOnnxCall *call)
{
    CornuOnnx     *to = call->to;
    const int      rank = call->shapes[0].rank;
    const int64_t *from = call->shapes[0].extent, *size = call->results[0].extent;
    const CornuInterpolation *how = cornu__onnx_argument(call->layer, "interpolation");
    int64_t        order[CORNU_MAX_RANK];
    int            x;
    cornu__onnx_lying(to, call->in, 1, &x, order);
    if (*how == CORNU_NEAREST) {
        for (int i = 1; i + 1 < rank; i++)
            if (size[i] != from[i]) CORNU__TRY(pick(to, order[i], from[i], size[i], &x));
    } else {
        const int in[] = { x, CORNU_ONNX_NONE, CORNU_ONNX_NONE,
                           cornu__onnx_integers(to, size + 1, rank - 2) };
        x = CORNU__ONNX_NODE(to, "Resize", in, { .name = "mode", .text = "linear" },
                             { .name = "axes", .integers = order + 1, .count = rank - 2 });
    }
    *call->out = cornu__onnx_transpose(to, x, order, rank);
    return CORNU_OK;
}

static CornuStatus rescaling(const CornuOnnxCall *call)
{
    *call->out = shifted(call->to, scaled(call->to, call->in[0], number(call->layer, "scale")),
                         number(call->layer, "offset"));
    return CORNU_OK;
}

const CornuOnnxRow cornu__onnx_images[] = {
    { "Cropping2D", cropping },
    { "Rescaling", rescaling },
    { "Resizing", resize },
    { "UpSampling2D", resize },
    { "ZeroPadding2D", zero_padding },
    { 0 },
};
