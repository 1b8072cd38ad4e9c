/* The kernels that host devices share. Those that move elements, reduce or find indices take every
 * dtype. */
#ifndef CORNU_DEVICE_HOST_KERNELS_H
#define CORNU_DEVICE_HOST_KERNELS_H

#include "kernel.h"

extern const CornuKernel cornu__host_transpose, cornu__host_slice, cornu__host_pad,
                         cornu__host_concat, cornu__host_pack, cornu__host_flip;  /* shape.c */
extern const CornuKernel cornu__host_reduce_sum, cornu__host_reduce_max;  /* reduce.c */
extern const CornuKernel cornu__host_argmax, cornu__host_one_hot;         /* index.c  */
extern const CornuKernel cornu__host_gather;                              /* gather.c */

extern const CornuKernel cornu__host_unique_rows, cornu__host_scatter_rows; /* rows.c */

extern const CornuKernel cornu__host_custom;   /* of registered ops */

/* Of f32 and bf16, sums in f32. */
extern const CornuKernel cornu__host_gather_grad;

/* Of f32 and bf16. */
extern const CornuKernel cornu__host_max_pool2d, cornu__host_max_pool2d_grad,
                         cornu__host_average_pool2d, cornu__host_average_pool2d_grad;
extern const CornuKernel cornu__host_batch_norm, cornu__host_batch_norm_grad;
extern const CornuKernel cornu__host_resample;   /* of f32 */
extern const CornuKernel cornu__host_softmax, cornu__host_log_softmax;
extern const CornuKernel cornu__host_sparse_cross_entropy;

/* In the device's precision. */
extern const CornuKernel cornu__host_matmul, cornu__host_matmul_few,
                         cornu__host_matmul_summed;   /* over shards: matmul_transposed.c */
extern const CornuKernel cornu__host_conv2d, cornu__host_conv2d_grad_input,
                         cornu__host_conv2d_grad_filter;
/* Of calls with few filters, or where x has few channels; of f32 with 3 x 3 or 5 x 5 taps, where
 * that has fewer multiplications; otherwise those above. */
extern const CornuKernel cornu__host_conv2d_few,
                         cornu__host_conv2d_grad_input_few;   /* conv2d_few.c */
extern const CornuKernel cornu__host_conv2d_shifted;          /* conv2d_shifted.c */
extern const CornuKernel cornu__host_conv2d_grad_filter_few;  /* conv2d_filter_few.c */
extern const CornuKernel cornu__host_conv2d_winograd,         /* conv2d_winograd.c */
                         cornu__host_conv2d_grad_input_winograd;
extern const CornuKernel cornu__host_conv2d_grad_filter_winograd;   /* conv2d_filter_winograd.c */
/* On tile registers; joined with a max pooling of two by two; from packed copies:
 * conv2d_filter_tiles.c, _pooled.c and _packed.c. */
extern const CornuKernel cornu__host_conv2d_grad_filter_tiles,
                         cornu__host_conv2d_grad_filter_pooled,
                         cornu__host_conv2d_grad_filter_packed;
/* On tile registers. */
extern const CornuKernel cornu__host_conv2d_padded,
                         cornu__host_conv2d_grad_input_padded;   /* conv2d_padded.c */
/* Of f32 and bf16, a group for each channel. */
extern const CornuKernel cornu__host_depthwise, cornu__host_depthwise_grad_input,
                         cornu__host_depthwise_grad_filter;
/* Of f32 and bf16, f32 where the device multiplies f32. */
extern const CornuKernel cornu__host_attention, cornu__host_attention_one;
extern const CornuKernel cornu__host_attention_grad;
extern const CornuKernel cornu__host_recurrent;   /* lstm and gru */
extern const CornuKernel cornu__host_recurrent_grad;

/* All of these and those of collective.h, by op. */
extern CornuKernels cornu__host_kernels[CORNU_OP_COUNT];

#endif
