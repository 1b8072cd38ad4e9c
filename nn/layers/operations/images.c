/* Operations of keras.ops.image and on pixels, with channels last. */
#include "operation_internal.h"

#include "../reshaping/resampling_internal.h"

#include <string.h>

/* x (B, H, W, C) of floats, of (H, W, C) as a batch of one; NULL with a pending error */
static CornuTensor *image(const CornuOperands *o, int *rank)
{
    CornuTensor *x = cornu__operand_float(o);
    if (!x) return NULL;
    *rank = cornu_tensor_shape(x).rank;
    if ((*rank == 4 || *rank == 3) &&
        !strcmp(cornu__argument_text(o, "data_format", "channels_last"), "channels_last"))
        return cornu__as_batch(x);
    return cornu__operation_refuse(o, "expected images (B, H, W, C) or (H, W, C), channels last");
}

/* Whole numbers become such again: keras/src/ops/image.py, _resize. The conversion saturates. */
static CornuTensor *as_given(const CornuOperands *o, CornuTensor *resized)
{
    CornuTensor     *x = cornu__operand_x(o);
    const CornuDtype dtype = x ? cornu_tensor_type(x).dtype : CORNU_F32;
    if (!resized || cornu_dtype_is_float(dtype)) return resized;
    return cornu_op_convert(cornu__round(resized), dtype);
}

CornuTensor *cornu__operation_resize(const CornuOperands *o)
{
    static const struct { const char *name; CornuInterpolation interpolation; } known[] = {
        { "bilinear", CORNU_BILINEAR }, { "nearest", CORNU_NEAREST }, { "bicubic", CORNU_BICUBIC },
        { "lanczos3", CORNU_LANCZOS3 }, { "lanczos5", CORNU_LANCZOS5 },
    };
    int             rank;
    CornuTensor    *x = image(o, &rank);
    const char     *given = cornu__argument_text(o, "interpolation", "bilinear");
    CornuResampling how = { .antialias = cornu__argument_flag(o, "antialias") };
    int64_t         size[CORNU_MAX_RANK];
    size_t          at = 0;
    if (!x) return NULL;
    if (cornu__argument_flag(o, "crop_to_aspect_ratio") ||
        cornu__argument_flag(o, "pad_to_aspect_ratio"))
        return cornu__operation_refuse(o, "an aspect ratio is kept by the layer Resizing alone");
    while (at < sizeof known / sizeof *known && strcmp(given, known[at].name)) at++;
    if (at == sizeof known / sizeof *known || cornu__argument_list(o, "size", -1, size) != 2 ||
        size[0] < 1 || size[1] < 1)
        return cornu__operation_refuse(o, "expected a size of two numbers and bilinear, nearest, "
                                          "bicubic, lanczos3 or lanczos5");
    how.interpolation = known[at].interpolation;
    return as_given(o, cornu__of_batch(cornu__resize(x, size[0], size[1], &how), rank));
}

/* The blocks of each pixel's channels, first the rows, as (B, H, b, W, b, C). */
CornuTensor *cornu__operation_depth_to_space(const CornuOperands *o)
{
    static const int order[] = { 0, 1, 3, 2, 4, 5 };
    int           rank;
    CornuTensor  *x = image(o, &rank);
    const int64_t b = cornu__argument_integer(o, "block_size", 1);
    if (!x) return NULL;
    const CornuShape s = cornu_tensor_shape(x);
    if (b < 1 || s.extent[3] % (b * b))
        return cornu__operation_refuse(o, "the square of block_size does not divide the channels");
    const int64_t C = s.extent[3] / (b * b);
    x = cornu_op_reshape(x, cornu_shape(s.extent[0], s.extent[1], s.extent[2], b, b, C));
    x = cornu_op_reshape(cornu_op_transpose(x, order),
                         cornu_shape(s.extent[0], s.extent[1] * b, s.extent[2] * b, C));
    return cornu__of_batch(x, rank);
}

CornuTensor *cornu__operation_space_to_depth(const CornuOperands *o)
{
    static const int order[] = { 0, 1, 3, 2, 4, 5 };
    int           rank;
    CornuTensor  *x = image(o, &rank);
    const int64_t b = cornu__argument_integer(o, "block_size", 1);
    if (!x) return NULL;
    const CornuShape s = cornu_tensor_shape(x);
    if (b < 1 || s.extent[1] % b || s.extent[2] % b)
        return cornu__operation_refuse(o, "block_size does not divide height and width");
    const int64_t H = s.extent[1] / b, W = s.extent[2] / b, C = s.extent[3];
    x = cornu_op_reshape(x, cornu_shape(s.extent[0], H, b, W, b, C));
    x = cornu_op_reshape(cornu_op_transpose(x, order),
                         cornu_shape(s.extent[0], H, W, b * b * C));
    return cornu__of_batch(x, rank);
}
