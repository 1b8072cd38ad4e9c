/* Convolutions of sequences, images and volumes as functions (tensor/function_internal.h). A
 * sequence is an image of one row; the depth of a volume is gathered into channels
 * (depth_internal.h). */
#include "../../../tensor/function_internal.h"
#include "convolution_internal.h"
#include "depth_internal.h"

/* Numbers of a function for each axis, as those of the last axes of three; others are `usual`. */
static void spread(const double *numbers, int axes, int64_t usual, int64_t to[3])
{
    for (int i = 0; i < 3; i++) to[i] = i < 3 - axes ? usual : (int64_t)numbers[i - (3 - axes)];
}

/* The extents of the kernel along the spatial axes, likewise. */
static void spread_size(CornuTensor *kernel, int axes, int64_t to[3])
{
    const CornuShape shape = cornu_tensor_shape(kernel);
    for (int i = 0; i < 3; i++) to[i] = i < 3 - axes ? 1 : shape.extent[i - (3 - axes)];
}

/* (n, a, b) as (1, n, a, b) */
static CornuTensor *as_rows(CornuTensor *kernel)
{
    const CornuShape k = cornu_tensor_shape(kernel);
    return cornu_op_reshape(kernel, cornu_shape(1, k.extent[0], k.extent[1], k.extent[2]));
}

/* Numbers: the padding, groups, strides and dilation. */
static CornuTensor *conv(CornuTensor *const *in, int count, const double *numbers)
{
    const int         axes = cornu_tensor_shape(in[0]).rank - 2;
    const int64_t     groups = (int64_t)numbers[1];
    CornuVolumeWindow w = { .padding = (CornuPadding)numbers[0] };
    CornuTensor      *x = in[0], *kernel = in[1], *y;
    spread_size(kernel, axes, w.size);
    spread(numbers + 2, axes, 1, w.strides);
    spread(numbers + 2 + axes, axes, 1, w.dilation);
    if (axes == 3) {
        y = cornu__convolve_volume(x, kernel, &w, groups);
    } else {
        const CornuKernelWindow window = cornu__kernel_window(w.padding, w.size + 1, w.strides + 1,
                                                              w.dilation + 1);
        if (axes == 1) kernel = as_rows(kernel);
        if (axes == 1) x = cornu__as_image(x);
        if (!x) return NULL;
        const CornuConvolution c = cornu__convolution(&window, cornu_tensor_shape(x), groups);
        y = cornu_op_conv2d(x, kernel, &c);
        if (axes == 1) y = cornu__as_sequence(y);
    }
    return count > 2 ? cornu_op_add(y, in[2]) : y;
}

CornuTensor *cornu__conv(CornuTensor *x, CornuTensor *kernel, CornuTensor *bias,
                         const CornuConv *how)
{
    static const CornuFunction function = CORNU__FUNCTION("conv", .formula = conv);
    double numbers[CORNU_OP_NUMBERS] = { how->padding, (double)how->groups };
    if (!x || !kernel || cornu_error_pending()) return NULL;
    const int axes = cornu_tensor_shape(x).rank - 2;
    for (int i = 0; i < axes; i++) {
        numbers[2 + i] = (double)how->strides[i];
        numbers[2 + axes + i] = (double)how->dilation[i];
    }
    return cornu__function(&function, (CornuTensor *[]){ x, kernel, bias }, bias ? 3 : 2, numbers,
                           2 + 2 * axes);
}

/* ---- Transposed ---- */

/* The convolution that maps the result to x; its padding is negative where it skips rows. */
static CornuTensor *transposed(CornuTensor *x, CornuTensor *kernel, CornuTensor *bias,
                               const CornuConvTranspose *how)
{
    const CornuShape s = cornu_tensor_shape(x), k = cornu_tensor_shape(kernel);
    const int        axes = s.rank - 2;
    CornuConvolution plane = { .groups = 1 };
    CornuDepth       depth = { 0 };
    int64_t          out[3], low, high;
    for (int i = 0; i < 3; i++) {
        const int           at = i - (3 - axes);   /* of x; sequences have one row */
        CornuTransposedAxis axis = { how->padding, 1, 1, 1, 0 };
        if (at >= 0)
            axis = (CornuTransposedAxis){ how->padding, k.extent[at], how->strides[at],
                                          how->dilation[at], how->output_padding[at] };
        cornu__transposed_axis(&axis, at < 0 ? 1 : s.extent[at + 1], &low, &high, &out[i]);
        if (i == 0) {
            depth = (CornuDepth){ axis.size, axis.stride, axis.dilation, low, high };
            continue;
        }
        plane.strides[i - 1] = axis.stride;
        plane.dilation[i - 1] = axis.dilation;
        plane.low[i - 1] = low;
        plane.high[i - 1] = high;
    }
    if (axes == 1) x = cornu__as_image(x);
    if (axes == 3) x = cornu_op_reshape(x, cornu_shape(s.extent[0] * s.extent[1], s.extent[2],
                                                       s.extent[3], s.extent[4]));
    kernel = axes == 1 ? as_rows(kernel) : axes == 3 ? cornu__flat_kernel(kernel) : kernel;
    CornuTensor *y = cornu_op_conv2d_grad_input(x, kernel, out[1], out[2], &plane);
    if (axes == 1) y = cornu__as_sequence(y);
    if (axes == 3) y = cornu__scatter_planes(y, s.extent[0], &depth, out[0]);
    return bias ? cornu_op_add(y, bias) : y;
}

/* Numbers: the padding, strides, output_padding and, of fewer than three axes, the dilation. */
static CornuTensor *conv_transpose(CornuTensor *const *in, int count, const double *numbers)
{
    const int axes = cornu_tensor_shape(in[0]).rank - 2;
    int64_t   n[3][3] = { { 1, 1, 1 }, { 0 }, { 1, 1, 1 } };
    for (int i = 0; i < axes; i++)
        for (int k = 0; k < (axes < 3 ? 3 : 2); k++)
            n[k][i] = (int64_t)numbers[1 + k * axes + i];
    return transposed(in[0], in[1], count > 2 ? in[2] : NULL,
                      &(CornuConvTranspose){ (CornuPadding)numbers[0], n[0], n[2], n[1] });
}

CornuTensor *cornu__conv_transpose(CornuTensor *x, CornuTensor *kernel, CornuTensor *bias,
                                   const CornuConvTranspose *how)
{
    static const CornuFunction function = CORNU__FUNCTION("conv_transpose",
                                                          .formula = conv_transpose);
    double numbers[CORNU_OP_NUMBERS] = { how->padding };
    if (!x || !kernel || cornu_error_pending()) return NULL;
    const int axes = cornu_tensor_shape(x).rank - 2;
    for (int i = 0; i < axes; i++) {
        numbers[1 + i] = (double)how->strides[i];
        numbers[1 + axes + i] = (double)how->output_padding[i];
        if (axes < 3) numbers[1 + 2 * axes + i] = (double)how->dilation[i];
        else if (how->dilation[i] != 1) return transposed(x, kernel, bias, how);
    }
    return cornu__function(&function, (CornuTensor *[]){ x, kernel, bias }, bias ? 3 : 2, numbers,
                           axes < 3 ? 1 + 3 * axes : 1 + 2 * axes);
}
