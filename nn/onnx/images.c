/* Edges and sizes of images, and numbers in place of pixels. */
#include "rules_internal.h"

#include <math.h>

#include "../../device/memory_internal.h"

/* Rows and columns at the four sides. */
static void edges_of(const CornuOnnxCall *call, const char *argument, int64_t edges[2][2])
{
    const int64_t *given = cornu__onnx_argument(call->layer, argument);
    for (int i = 0; i < 4; i++) edges[i / 2][i % 2] = cornu__integer(given[i], 0);
}

/* For each axis as the image lies, before and behind it. */
static CornuStatus zero_padding(const CornuOnnxCall *call)
{
    CornuOnnx *to = call->to;
    int64_t    edges[2][2], order[CORNU_MAX_RANK], pads[8] = { 0 };
    int        x;
    edges_of(call, "padding", edges);
    cornu__onnx_lying(to, call->in, 1, &x, order);
    for (int i = 0; i < 4; i++) pads[order[1 + i / 2] + 4 * (i % 2)] = edges[i / 2][i % 2];
    *call->out = cornu__onnx_transpose(
        to, joined(to, "Pad", x, cornu__onnx_integers(to, pads, 8)), order, 4);
    return CORNU_OK;
}

static CornuStatus cropping(const CornuOnnxCall *call)
{
    CornuOnnx *to = call->to;
    int64_t    edges[2][2], order[CORNU_MAX_RANK];
    int        x;
    edges_of(call, "cropping", edges);
    cornu__onnx_lying(to, call->in, 1, &x, order);
    for (int i = 0; i < 2; i++)
        x = cornu__onnx_slice(to, x, order[1 + i], edges[i][0],
                              call->shapes[0].extent[1 + i] - edges[i][1]);
    *call->out = cornu__onnx_transpose(to, x, order, 4);
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

/* The size alone is nearest or linear. */
static CornuStatus check_resize(const CornuLayer *layer)
{
    static const char *const flags[] = { "antialias", "crop_to_aspect_ratio",
                                         "pad_to_aspect_ratio" };
    const CornuInterpolation how =
        *(const CornuInterpolation *)cornu__onnx_argument(layer, "interpolation");
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (cornu__onnx_argument(layer, flags[i]) && flag(layer, flags[i]))
            return cornu__onnx_refuse(layer, flags[i], "where images are resized to a size alone");
    if (how == CORNU_NEAREST || how == CORNU_BILINEAR) return CORNU_OK;
    return cornu__onnx_refuse(layer, cornu_interpolation_name(how), "whose weights at the edges "
                              "are others");
}

/* To the result's size: UpSampling2D and Resizing. */
static CornuStatus resize(const CornuOnnxCall *call)
{
    CORNU__TRY(check_resize(call->layer));
    CornuOnnx     *to = call->to;
    const int64_t *from = call->shapes[0].extent, *size = call->results[0].extent;
    const CornuInterpolation *how = cornu__onnx_argument(call->layer, "interpolation");
    int64_t        order[CORNU_MAX_RANK];
    int            x;
    cornu__onnx_lying(to, call->in, 1, &x, order);
    if (*how == CORNU_NEAREST) {
        for (int i = 1; i < 3; i++)
            if (size[i] != from[i]) CORNU__TRY(pick(to, order[i], from[i], size[i], &x));
    } else {
        const int in[] = { x, CORNU_ONNX_NONE, CORNU_ONNX_NONE,
                           cornu__onnx_integers(to, size + 1, 2) };
        x = CORNU__ONNX_NODE(to, "Resize", in, { .name = "mode", .text = "linear" },
                             { .name = "axes", .integers = order + 1, .count = 2 });
    }
    *call->out = cornu__onnx_transpose(to, x, order, 4);
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
