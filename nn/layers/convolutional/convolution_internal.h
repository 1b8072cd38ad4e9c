/* Shared by the convolution layers: two-dimensional windows, weights, bias and activation. A
 * sequence (B, T, C) is an image of one row. */
#ifndef CORNU_NN_LAYERS_CONVOLUTION_INTERNAL_H
#define CORNU_NN_LAYERS_CONVOLUTION_INTERNAL_H

#include "../layer_internal.h"

/* Resolved arguments, each {h, w}. */
typedef struct {
    CornuPadding padding;
    int64_t      size[2], strides[2], dilation[2];
} CornuKernelWindow;

/* For kind->resolve: resolves squares, lists and defaults to as many extents as there are axes, and
 * sets the squares to 0. Those of sequences, which have one extent n, are { 1, n }. "causal" is an
 * error. */
CornuStatus cornu__resolve_window(const CornuLayer *layer, CornuPadding padding, int64_t *kernel,
                                  int64_t *kernel_size, int64_t *stride, int64_t *strides,
                                  int64_t *dilation_rate);

/* For class tables: the rows of a window's fields, for images and for sequences. */
#define CORNU__WINDOW_FIELDS(Config)                                        \
    { "kernel_size", CORNU_FIELD_PAIR, offsetof(Config, kernel_size) },     \
    { "strides", CORNU_FIELD_PAIR, offsetof(Config, strides) },             \
    { "dilation_rate", CORNU_FIELD_PAIR, offsetof(Config, dilation_rate) }
#define CORNU__ROW_WINDOW_FIELDS(Config)                                         \
    { "kernel_size", CORNU_FIELD_SINGLE, offsetof(Config, kernel_size[1]) },     \
    { "strides", CORNU_FIELD_SINGLE, offsetof(Config, strides[1]) },             \
    { "dilation_rate", CORNU_FIELD_SINGLE, offsetof(Config, dilation_rate[1]) }

/* CORNU_ERR_SHAPE unless the input has so many axes between batch and channels and, without
 * padding, at least the extents of the dilated kernel. */
CornuStatus cornu__kernel_fits(CornuPadding padding, int axes, const int64_t *size,
                               const int64_t *dilation, CornuShape input);

CornuKernelWindow cornu__kernel_window(CornuPadding padding, const int64_t size[2],
                                       const int64_t strides[2], const int64_t dilation[2]);

/* CORNU_ERR_ARGUMENT unless `groups` divides the filters. */
CornuStatus cornu__check_groups(const char *name, int64_t groups, int64_t filters);

/* CORNU_ERR_SHAPE unless `groups` divides the channels of the input. */
CornuStatus cornu__check_channels(CornuShape input, int64_t groups);

/* CORNU_ERR_SHAPE unless the input is (B, H, W, C) and, without padding, at least as large as the
 * window. */
CornuStatus cornu__window_fits(const CornuKernelWindow *window, CornuShape input);

/* Likewise for a window of one row and an input (B, T, C). */
CornuStatus cornu__row_window_fits(const CornuKernelWindow *window, CornuShape input);

CornuConvolution cornu__convolution(const CornuKernelWindow *window, CornuShape image,
                                    int64_t groups);

/* One axis of a transposed convolution; output_padding 0 is Keras' None, CORNU_ZERO is 0. */
typedef struct {
    CornuPadding padding;
    int64_t      size, stride, dilation, output_padding;
} CornuTransposedAxis;

/* The padding of the convolution that maps the output, of extent `out`, to x; it is negative where
 * that skips rows. */
void cornu__transposed_axis(const CornuTransposedAxis *axis, int64_t extent, int64_t *low,
                            int64_t *high, int64_t *out);

/* None stays all 0; { n } stands for all axes. CORNU_ERR_ARGUMENT unless below the strides. */
CornuStatus cornu__resolve_output_padding(const char *name, int axes, const int64_t *strides,
                                          int64_t *padding);

/* For kind->build: declares the next weight with its regularizer and constraint. */
CornuStatus cornu__declare_weight(CornuLayer *layer, const char *name, CornuShape shape,
                                  CornuInitializer initializer, CornuRegularizer regularizer,
                                  CornuConstraint constraint);

/* Whether it may depend on an axis, such as the last, which with channels first is a spatial
 * one. */
bool cornu__along_axes(CornuActivation activation);

/* For kind->call: weight `bias`, or NULL for no bias; and the activation of y. */
CornuTensor *cornu__bias(CornuLayer *layer, const CornuCall *call, bool none, int bias);
CornuTensor *cornu__activate_channels(CornuLayer *layer, const CornuCall *call,
                                      CornuActivation activation, CornuTensor *y);

/* ---- Functions: of x (B, …, C) with one to three axes between, plus the bias (F) or NULL.
 * Arguments are of each of these axes. ---- */

/* The kernel is (…, C / groups, F). */
typedef struct {
    CornuPadding   padding;
    const int64_t *strides, *dilation;
    int64_t        groups;
} CornuConv;
CornuTensor *cornu__conv(CornuTensor *x, CornuTensor *kernel, CornuTensor *bias,
                         const CornuConv *how);

/* The kernel is (…, F, C). */
typedef struct {
    CornuPadding   padding;
    const int64_t *strides, *dilation, *output_padding;
} CornuConvTranspose;
CornuTensor *cornu__conv_transpose(CornuTensor *x, CornuTensor *kernel, CornuTensor *bias,
                                   const CornuConvTranspose *how);

/* (B, T, C) as (B, 1, T, C), and back. */
CornuTensor *cornu__as_image(CornuTensor *x);
CornuTensor *cornu__as_sequence(CornuTensor *x);

#endif
