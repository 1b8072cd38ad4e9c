/* What the convolution family shares: windows in two dimensions, weights, and the end of a call. A
 * sequence (B, T, C) is an image of one row. */
#ifndef CORNU_NN_LAYERS_CONVOLUTION_INTERNAL_H
#define CORNU_NN_LAYERS_CONVOLUTION_INTERNAL_H

#include "../layer_internal.h"

/* Arguments that are resolved: {h, w} each. */
typedef struct {
    CornuPadding padding;
    int64_t      size[2], strides[2], dilation[2];
} CornuKernelWindow;

/* For constructors: puts into the pairs what was given as squares, as pairs or not at all; the
 * squares are 0 then. "causal" is refused. */
typedef CornuStatus CornuResolveWindow(const char *name, CornuPadding padding, int64_t *kernel,
                                       int64_t kernel_size[2], int64_t *stride, int64_t strides[2],
                                       int64_t dilation_rate[2]);
CornuResolveWindow cornu__resolve_window;

/* Likewise for layers over sequences, whose windows have one extent: the pairs are { 1, n }. */
CornuResolveWindow cornu__resolve_row_window;

/* For class tables: the rows of a window's fields, of images and of sequences. */
#define CORNU__WINDOW_FIELDS(Config)                                        \
    { "kernel_size", CORNU_FIELD_PAIR, offsetof(Config, kernel_size) },     \
    { "strides", CORNU_FIELD_PAIR, offsetof(Config, strides) },             \
    { "dilation_rate", CORNU_FIELD_PAIR, offsetof(Config, dilation_rate) }
#define CORNU__ROW_WINDOW_FIELDS(Config)                                         \
    { "kernel_size", CORNU_FIELD_SINGLE, offsetof(Config, kernel_size[1]) },     \
    { "strides", CORNU_FIELD_SINGLE, offsetof(Config, strides[1]) },             \
    { "dilation_rate", CORNU_FIELD_SINGLE, offsetof(Config, dilation_rate[1]) }

CornuKernelWindow cornu__kernel_window(CornuPadding padding, const int64_t size[2],
                                       const int64_t strides[2], const int64_t dilation[2]);

/* CORNU_ERR_ARGUMENT unless so many groups divide the filters. */
CornuStatus cornu__check_groups(const char *name, int64_t groups, int64_t filters);

/* CORNU_ERR_SHAPE unless they divide the channels of the input. */
CornuStatus cornu__check_channels(CornuShape input, int64_t groups);

/* CORNU_ERR_SHAPE unless the input has this rank and the window fits into the image somewhere;
 * without padding it may not. */
CornuStatus cornu__window_fits(const CornuKernelWindow *window, CornuShape input);

/* Likewise for a window of one row: the input has to be (B, T, C). */
CornuStatus cornu__row_window_fits(const CornuKernelWindow *window, CornuShape input);

CornuConvolution cornu__convolution(const CornuKernelWindow *window, CornuShape image,
                                    int64_t groups);

/* Of resolved arguments: the convolution that makes x (B, H, W, C) of the transposed one's result
 * (B, out[0], out[1], filters); it pads less than 0 where rows are left over. */
CornuConvolution cornu__transposed_convolution(const CornuConv2dTransposeConfig *config,
                                               CornuShape x, int64_t out[2]);

/* For kind->build: the next weight and the rules for it. */
CornuStatus cornu__declare_weight(CornuLayer *layer, const char *name, CornuShape shape,
                                  CornuInitializer initializer, CornuRegularizer regularizer,
                                  CornuConstraint constraint);

/* For kind->call: activation(y + weight number `bias`), which is -1 for none. */
CornuTensor *cornu__bias_and_activate(CornuLayer *layer, const CornuCall *call, CornuTensor *y,
                                      int bias, CornuActivation activation);

/* (B, T, C) as (B, 1, T, C), and back. */
CornuTensor *cornu__as_image(CornuTensor *x);
CornuTensor *cornu__as_sequence(CornuTensor *x);

#endif
