#include "convolution_internal.h"
#include "depth_internal.h"

#include "../../../device/integer_internal.h"

/* Every stride-th of the planes of x (B, D, n, C) from `first` on, `count` of them. */
static CornuTensor *every(CornuTensor *x, int64_t first, int64_t count, int64_t stride)
{
    if (!x) return NULL;
    const CornuShape s = cornu_tensor_shape(x);
    const int64_t    B = s.extent[0], n = s.extent[2], C = s.extent[3];
    x = cornu_op_slice(x, (const int64_t[]){ 0, first, 0, 0 },
                       (const int64_t[]){ B, count * stride, n, C });
    if (stride == 1) return x;
    x = cornu_op_reshape(x, cornu_shape(B, count, stride, n, C));
    return cornu_op_slice(x, (const int64_t[]){ 0, 0, 0, 0, 0 },
                          (const int64_t[]){ B, count, 1, n, C });
}

/* Each tap's planes are sliced and laid side by side along the channels. */
CornuTensor *cornu__gather_planes(CornuTensor *x, const CornuDepth *depth, int64_t groups)
{
    if (!x) return NULL;
    const CornuShape s = cornu_tensor_shape(x);
    const int64_t    B = s.extent[0], D = s.extent[1], H = s.extent[2], W = s.extent[3];
    const int64_t    C = s.extent[4], reach = depth->dilation * (depth->size - 1) + 1;
    const int64_t    count = (D + depth->low + depth->high - reach) / depth->stride + 1;
    /* So that all strides are whole. */
    const int64_t    whole = reach - 1 + count * depth->stride;
    const int64_t    high = larger(whole - D - depth->low, 0);
    if (depth->size == 1 && depth->stride == 1)
        return cornu_op_reshape(x, cornu_shape(B * D, H, W, C));
    x = cornu_op_pad(cornu_op_reshape(x, cornu_shape(B, D, H * W, C)),
                     (const int64_t[]){ 0, depth->low, 0, 0 }, (const int64_t[]){ 0, high, 0, 0 },
                     0.0);
    CornuTensor **taps = cornu__allocate((size_t)depth->size, sizeof(CornuTensor *));
    if (!taps) return cornu__null();
    for (int64_t u = 0; u < depth->size; u++)
        taps[u] = cornu_op_reshape(every(x, u * depth->dilation, count, depth->stride),
                                   cornu_shape(B * count * H * W, groups, C / groups));
    x = cornu_op_concat(taps, (int)depth->size, 2);
    cornu__release(taps);
    return cornu_op_reshape(x, cornu_shape(B * count, H, W, depth->size * C));
}

/* Each tap's planes, with stride - 1 planes of zeros after each, are added at their place. */
CornuTensor *cornu__scatter_planes(CornuTensor *y, int64_t rows, const CornuDepth *depth,
                                   int64_t out)
{
    if (!y) return NULL;
    const CornuShape s = cornu_tensor_shape(y);
    const int64_t    B = rows, D = s.extent[0] / rows, n = s.extent[1] * s.extent[2];
    const int64_t    F = s.extent[3] / depth->size, reach = depth->dilation * (depth->size - 1);
    const int64_t    whole = D * depth->stride + reach, after = depth->low + out;
    CornuTensor     *sum = NULL;
    y = cornu_op_reshape(y, cornu_shape(B * D, 1, n, depth->size * F));
    for (int64_t u = 0; u < depth->size; u++) {
        const int64_t first = u * depth->dilation;
        CornuTensor  *tap = cornu_op_slice(y, (const int64_t[]){ 0, 0, 0, u * F },
                                           (const int64_t[]){ B * D, 1, n, F });
        if (depth->stride > 1)
            tap = cornu_op_pad(tap, (const int64_t[]){ 0, 0, 0, 0 },
                               (const int64_t[]){ 0, depth->stride - 1, 0, 0 }, 0.0);
        tap = cornu_op_reshape(tap, cornu_shape(B, D * depth->stride, n, F));
        if (reach > 0)
            tap = cornu_op_pad(tap, (const int64_t[]){ 0, first, 0, 0 },
                               (const int64_t[]){ 0, reach - first, 0, 0 }, 0.0);
        sum = sum ? cornu_op_add(sum, tap) : tap;
    }
    const int64_t before = larger(-depth->low, 0), beyond = larger(after - whole, 0);
    if (before || beyond)
        sum = cornu_op_pad(sum, (const int64_t[]){ 0, before, 0, 0 },
                           (const int64_t[]){ 0, beyond, 0, 0 }, 0.0);
    sum = cornu_op_slice(sum, (const int64_t[]){ 0, depth->low + before, 0, 0 },
                         (const int64_t[]){ B, out, n, F });
    return cornu_op_reshape(sum, cornu_shape(B, out, s.extent[1], s.extent[2], F));
}

/* (d, h, w, from, to) as (h, w, d from, to): the taps of each group next to each other, as
 * gathered planes have them. */
CornuTensor *cornu__flat_kernel(CornuTensor *kernel)
{
    static const int axes[] = { 1, 2, 0, 3, 4 };
    if (!kernel) return NULL;
    const CornuShape k = cornu_tensor_shape(kernel);
    return cornu_op_reshape(cornu_op_transpose(kernel, axes),
                            cornu_shape(k.extent[1], k.extent[2], k.extent[0] * k.extent[3],
                                        k.extent[4]));
}

CornuTensor *cornu__convolve_volume(CornuTensor *x, CornuTensor *kernel,
                                    const CornuVolumeWindow *w, int64_t groups)
{
    if (!x || !kernel) return NULL;
    const CornuKernelWindow window = cornu__kernel_window(w->padding, w->size + 1, w->strides + 1,
                                                          w->dilation + 1);
    const int64_t           rows = cornu_tensor_shape(x).extent[0];
    CornuDepth              depth = { w->size[0], w->strides[0], w->dilation[0], 0, 0 };
    cornu__padding(w->padding, cornu_tensor_shape(x).extent[1], depth.size, depth.stride,
                   depth.dilation, &depth.low, &depth.high);
    x = cornu__gather_planes(x, &depth, groups);
    if (!x) return NULL;
    const CornuConvolution plane = cornu__convolution(&window, cornu_tensor_shape(x), groups);
    CornuTensor           *y = cornu_op_conv2d(x, cornu__flat_kernel(kernel), &plane);
    if (!y) return NULL;
    const CornuShape s = cornu_tensor_shape(y);
    return cornu_op_reshape(y, cornu_shape(rows, s.extent[0] / rows, s.extent[1], s.extent[2],
                                           s.extent[3]));
}
