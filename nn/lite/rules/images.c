/* Padding, cropping and resizing images, and rescaling pixels. */
#include "rules_internal.h"

/* For each axis between batch and channels, the rows before it and the rows after it. */
static void edges_of(const CornuLiteCall *call, const char *argument, int64_t *low, int64_t *high)
{
    const int64_t *edges = cornu__layer_argument(call->layer, argument);
    for (int i = 0; i < call->shapes[0].rank; i++) {
        const bool inner = i > 0 && i + 1 < call->shapes[0].rank;
        low[i] = inner ? cornu__integer(edges[2 * (i - 1)], 0) : 0;
        high[i] = inner ? cornu__integer(edges[2 * (i - 1) + 1], 0) : 0;
    }
}

static CornuStatus zero_padding(const CornuLiteCall *call)
{
    int64_t low[CORNU_MAX_RANK], high[CORNU_MAX_RANK];
    edges_of(call, "padding", low, high);
    *call->out = cornu__lite_pad(call->to, call->in[0], low, high);
    return CORNU_OK;
}

/* STRIDED_SLICE ignores the ends of axes whose bit is in end_mask: of the batch. */
static CornuStatus cropping(const CornuLiteCall *call)
{
    CornuLiteGraph *graph = call->to->graph;
    const int       rank = call->shapes[0].rank;
    int64_t         low[CORNU_MAX_RANK], high[CORNU_MAX_RANK];
    int32_t         begin[CORNU_MAX_RANK], end[CORNU_MAX_RANK], stride[CORNU_MAX_RANK];
    edges_of(call, "cropping", low, high);
    for (int i = 0; i < rank; i++) {
        begin[i] = (int32_t)low[i];
        end[i] = i ? (int32_t)(call->shapes[0].extent[i] - high[i]) : 0;
        stride[i] = 1;
    }
    int in[] = { call->in[0], 0, 0, 0 };
    in[1] = cornu__lite_add_integers(graph, begin, rank);
    in[2] = cornu__lite_add_integers(graph, end, rank);
    in[3] = cornu__lite_add_integers(graph, stride, rank);
    *call->out = cornu__lite_node(call->to, CORNU_LITE_STRIDED_SLICE, in, 4, call->results[0],
                                  &(CornuLiteOptions){ .begin_mask = 1, .end_mask = 1 });
    return CORNU_OK;
}

/* Of images (B, H, W, C) to the extents of the result; pixels have their centres at 0.5, 1.5, …
 * A sequence is an image with one column. */
static CornuStatus resize(const CornuLiteCall *call, CornuInterpolation how)
{
    CornuLite             *to = call->to;
    const CornuShape       from = call->shapes[0], size = call->results[0];
    const CornuLiteOptions options = { .half_pixel_centers = true };
    const bool             sequence = from.rank == 3;
    if (from.rank > 4 || (how != CORNU_NEAREST && how != CORNU_BILINEAR))
        return cornu__lite_refuse(call->layer, "this interpolation",
                                  "which has \"nearest\" and \"bilinear\" of images");
    const CornuShape made = sequence ? cornu_shape(CORNU_NONE, size.extent[1], 1, size.extent[2])
                                     : size;
    const int32_t    extents[] = { (int32_t)made.extent[1], (int32_t)made.extent[2] };
    int              in[] = { call->in[0], 0 };
    if (sequence)
        in[0] = cornu__lite_reshape(to, in[0], cornu_shape(CORNU_NONE, from.extent[1], 1,
                                                           from.extent[2]));
    in[1] = cornu__lite_add_integers(to->graph, extents, 2);
    const int y = cornu__lite_node(to, how == CORNU_NEAREST ? CORNU_LITE_RESIZE_NEAREST_NEIGHBOR
                                                            : CORNU_LITE_RESIZE_BILINEAR,
                                   in, 2, made, &options);
    *call->out = sequence ? cornu__lite_reshape(to, y, size) : y;
    return CORNU_OK;
}

static CornuStatus up_sampling(const CornuLiteCall *call)
{
    const CornuInterpolation *how = cornu__layer_argument(call->layer, "interpolation");
    return resize(call, how ? *how : CORNU_NEAREST);
}

static CornuStatus resizing(const CornuLiteCall *call)
{
    const CornuLayer *layer = call->layer;
    const bool        ratio = flag(layer, "crop_to_aspect_ratio") ||
                              flag(layer, "pad_to_aspect_ratio");
    if (ratio || flag(layer, "antialias"))
        return cornu__lite_refuse(layer, ratio ? "keeping the aspect ratio" : "antialias",
                                  "which this version has no operators for");
    return resize(call, *(const CornuInterpolation *)cornu__layer_argument(layer,
                                                                           "interpolation"));
}

static int numbers_or(const CornuLiteCall *call, const char *name)
{
    const CornuNumbers *numbers = cornu__layer_numbers(call->layer, name);
    if (numbers->values) return cornu__lite_numbers(call->to, numbers, call->shapes[0].rank);
    return cornu__lite_add_scalar(call->to->graph, (float)number(call->layer, name));
}

static CornuStatus rescaling(const CornuLiteCall *call)
{
    const bool offset = cornu__layer_numbers(call->layer, "offset")->values ||
                        number(call->layer, "offset") != 0.0;
    const int  y = cornu__lite_two(call->to, CORNU_LITE_MUL, call->in[0],
                                   numbers_or(call, "scale"));
    *call->out = offset ? cornu__lite_two(call->to, CORNU_LITE_ADD, y, numbers_or(call, "offset"))
                        : y;
    return CORNU_OK;
}

const CornuLiteRow cornu__lite_images[] = {
    { "Cropping1D", cropping },
    { "Cropping2D", cropping },
    { "Cropping3D", cropping },
    { "Rescaling", rescaling },
    { "Resizing", resizing },
    { "UpSampling1D", up_sampling },
    { "UpSampling2D", up_sampling },
    { "ZeroPadding1D", zero_padding },
    { "ZeroPadding2D", zero_padding },
    { "ZeroPadding3D", zero_padding },
    { 0 },
};
