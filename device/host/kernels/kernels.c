/*
 * The kernels that all host devices share, by op, in the order in which they are asked.
 */
#include "kernels.h"

#include "../../inference_internal.h"
#include "collective.h"

/* Ops of training alone: a library without them has other ways to compute them, as for any op
 * without a kernel. */
#define TRAINS(kernel) CORNU__FULL(kernel, NULL)

CornuKernels cornu__host_kernels[CORNU_OP_COUNT] = {
    [CORNU_OP_MATMUL]              = { &cornu__host_matmul },
    [CORNU_OP_RESAMPLE]            = { &cornu__host_resample },
    [CORNU_OP_CONV2D] = {
        &cornu__host_conv2d_winograd,
        &cornu__host_conv2d_shifted,
        &cornu__host_conv2d_few,
        &cornu__host_conv2d_padded,
        &cornu__host_conv2d,
    },
    [CORNU_OP_CONV2D_GRAD_INPUT] = {
        &cornu__host_conv2d_grad_input_winograd,
        &cornu__host_conv2d_grad_input_few,
        &cornu__host_conv2d_grad_input_padded,
        &cornu__host_conv2d_grad_input,
    },
    [CORNU_OP_CONV2D_GRAD_FILTER] = {
        TRAINS(&cornu__host_conv2d_grad_filter_few),
        TRAINS(&cornu__host_conv2d_grad_filter_winograd),
        TRAINS(&cornu__host_conv2d_grad_filter_tiles),
        TRAINS(&cornu__host_conv2d_grad_filter_pooled),
        TRAINS(&cornu__host_conv2d_grad_filter_packed),
        TRAINS(&cornu__host_conv2d_grad_filter),
    },
    [CORNU_OP_GROUPED_CONV2D]      = { &cornu__host_depthwise },
    [CORNU_OP_GROUPED_CONV2D_GRAD_INPUT]  = { &cornu__host_depthwise_grad_input },
    [CORNU_OP_GROUPED_CONV2D_GRAD_FILTER] = { TRAINS(&cornu__host_depthwise_grad_filter) },
    [CORNU_OP_MAX_POOL2D]          = { &cornu__host_max_pool2d },
    [CORNU_OP_MAX_POOL2D_GRAD]     = { TRAINS(&cornu__host_max_pool2d_grad) },
    [CORNU_OP_AVERAGE_POOL2D]      = { &cornu__host_average_pool2d },
    [CORNU_OP_AVERAGE_POOL2D_GRAD] = { TRAINS(&cornu__host_average_pool2d_grad) },
    [CORNU_OP_BATCH_NORM]          = { TRAINS(&cornu__host_batch_norm) },
    [CORNU_OP_BATCH_NORM_GRAD]     = { TRAINS(&cornu__host_batch_norm_grad) },
    [CORNU_OP_LSTM]                = { &cornu__host_recurrent },
    [CORNU_OP_LSTM_GRAD]           = { TRAINS(&cornu__host_recurrent_grad) },
    [CORNU_OP_GRU]                 = { &cornu__host_recurrent },
    [CORNU_OP_GRU_GRAD]            = { TRAINS(&cornu__host_recurrent_grad) },
    [CORNU_OP_ATTENTION]           = { &cornu__host_attention_one, &cornu__host_attention },
    [CORNU_OP_ATTENTION_GRAD]      = { TRAINS(&cornu__host_attention_grad) },
    [CORNU_OP_SOFTMAX]             = { &cornu__host_softmax },
    [CORNU_OP_LOG_SOFTMAX]         = { &cornu__host_log_softmax },
    [CORNU_OP_SPARSE_CROSS_ENTROPY] = { TRAINS(&cornu__host_sparse_cross_entropy) },
    [CORNU_OP_REDUCE_SUM]          = { &cornu__host_reduce_sum },
    [CORNU_OP_REDUCE_MAX]          = { &cornu__host_reduce_max },
    [CORNU_OP_ARGMAX]              = { &cornu__host_argmax },
    [CORNU_OP_ONE_HOT]             = { &cornu__host_one_hot },
    [CORNU_OP_REPLICA_ID]          = { &cornu__host_replica_id },
    [CORNU_OP_ALL_REDUCE]          = { &cornu__host_all_reduce },
    [CORNU_OP_REDUCE_SCATTER]      = { &cornu__host_reduce_scatter },
    [CORNU_OP_ALL_GATHER]          = { &cornu__host_all_gather },
    [CORNU_OP_SHARD_SLICE]         = { &cornu__host_shard_slice },
    [CORNU_OP_TRANSPOSE]           = { &cornu__host_transpose },
    [CORNU_OP_SLICE]               = { &cornu__host_slice },
    [CORNU_OP_PAD]                 = { &cornu__host_pad },
    [CORNU_OP_CONCAT]              = { &cornu__host_concat },
    [CORNU_OP_FLIP]                = { &cornu__host_flip },
    [CORNU_OP_GATHER]              = { &cornu__host_gather },
    [CORNU_OP_GATHER_GRAD]         = { TRAINS(&cornu__host_gather_grad) },
    [CORNU_OP_PACK]                = { &cornu__host_pack },
    [CORNU_OP_UNIQUE_ROWS]         = { TRAINS(&cornu__host_unique_rows) },
    [CORNU_OP_SCATTER_ROWS]        = { TRAINS(&cornu__host_scatter_rows) },
    [CORNU_OP_CUSTOM]              = { &cornu__host_custom },
};
