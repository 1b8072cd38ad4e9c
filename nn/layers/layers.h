/*
 * The layers, with Keras' names, arguments and defaults (keras/src/layers). Each constructor
 * returns a layer for cornu_model_add, or NULL with a pending error that names an invalid argument.
 *
 * Every layer has .name and .dtype, the name of its precision policy (policy.h), by default the
 * model's. Regularizers (regularizers.h) of weights and of a layer's output, the latter divided by
 * the rows of the batch, are added to the loss; a weight's constraint (constraints.h) is applied
 * after each update. An activity_regularizer inside TimeDistributed has no effect, as in Keras;
 * that of simple_rnn works here, while Keras 3.15 ignores it.
 *
 * This header includes those of the other layers: activation_layers.h, attention.h, core.h,
 * normalization.h, position.h, spatial.h, random.h.
 */
#ifndef CORNU_NN_LAYERS_H
#define CORNU_NN_LAYERS_H

#include "activations.h"
#include "layer.h"
#include "activation_layers.h"
#include "attention.h"
#include "core.h"
#include "normalization.h"
#include "position.h"
#include "spatial.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y = activation(x kernel + bias) on the last axis: x (B, …, C), kernel (C, units). */
typedef struct {
    char             unset;
    int64_t          units;               /* required, at least 1 */
    CornuActivation  activation;
    bool             no_bias;
    CornuInitializer kernel_initializer;  /* default glorot_uniform */
    CornuInitializer bias_initializer;    /* default zeros          */
    CornuRegularizer kernel_regularizer, bias_regularizer, activity_regularizer;
    CornuConstraint  kernel_constraint, bias_constraint;
    const char      *name;
    bool             frozen;              /* Keras' trainable = False */
    const char      *dtype;
} CornuDenseConfig;

CornuLayer *cornu_dense_from(const CornuDenseConfig *config);
#define cornu_dense(...) cornu_dense_from(&(CornuDenseConfig){ .unset = 0, __VA_ARGS__ })

/* y = activation(x * kernel + bias): x (B, H, W, C), kernel (h, w, C / groups, filters); C and
 * filters are split into groups that are convolved separately. Positional sizes are square; giving
 * a size both ways is an error. */
typedef struct {
    char             unset;
    int64_t          filters, kernel, stride; /* filters and kernel are required */
    CornuPadding     padding;
    int64_t          kernel_size[2], strides[2], dilation_rate[2]; /* {h, w}; {n} is square */
    int64_t          groups;              /* default 1; divides C and filters */
    CornuDataFormat  data_format;
    CornuActivation  activation;
    bool             no_bias;
    CornuInitializer kernel_initializer;  /* default glorot_uniform */
    CornuInitializer bias_initializer;    /* default zeros          */
    CornuRegularizer kernel_regularizer, bias_regularizer, activity_regularizer;
    CornuConstraint  kernel_constraint, bias_constraint;
    const char      *name;
    bool             frozen;
    const char      *dtype;
} CornuConv2dConfig;

CornuLayer *cornu_conv2d_from(const CornuConv2dConfig *config);
#define cornu_conv2d(...) cornu_conv2d_from(&(CornuConv2dConfig){ .unset = 0, __VA_ARGS__ })

/* The maximum, or the mean, of each window of (B, H, W, C). Padding counts in neither. */
typedef struct {
    char         unset;
    int64_t      pool, stride;            /* square; stride defaults to the pool */
    CornuPadding padding;
    int64_t      pool_size[2], strides[2];/* {h, w}; {n} is square. Default of max: 2 */
    CornuDataFormat data_format;
    const char  *name;
    const char  *dtype;
} CornuPooling2dConfig;

CornuLayer *cornu_max_pooling2d_from(const CornuPooling2dConfig *config);
CornuLayer *cornu_average_pooling2d_from(const CornuPooling2dConfig *config);
#define cornu_max_pooling2d(...) \
    cornu_max_pooling2d_from(&(CornuPooling2dConfig){ .unset = 0, __VA_ARGS__ })
#define cornu_average_pooling2d(...) \
    cornu_average_pooling2d_from(&(CornuPooling2dConfig){ .unset = 0, __VA_ARGS__ })

/* Reshapes (B, …) to (B, n), elements in the order of channels last. */
typedef struct {
    char            unset;
    CornuDataFormat data_format;
    const char     *name;
    const char     *dtype;
} CornuFlattenConfig;

CornuLayer *cornu_flatten_from(const CornuFlattenConfig *config);
#define cornu_flatten(...) cornu_flatten_from(&(CornuFlattenConfig){ .unset = 0, __VA_ARGS__ })

/* Reshapes (B, …) to (B, target_shape…); one extent may be CORNU_NONE.
 * cornu_reshape(.target_shape = { 28, 28, 1 }) */
typedef struct {
    char        unset;
    int64_t     target_shape[CORNU_MAX_RANK]; /* required; ends at the first 0 */
    const char *name;
    const char *dtype;
} CornuReshapeConfig;

CornuLayer *cornu_reshape_from(const CornuReshapeConfig *config);
#define cornu_reshape(...) cornu_reshape_from(&(CornuReshapeConfig){ .unset = 0, __VA_ARGS__ })

/* In training each element is 0 with probability rate, else x / (1 - rate). */
typedef struct {
    char        unset;
    double      rate;                     /* 0 to 1 */
    int64_t     noise_shape[CORNU_MAX_RANK]; /* of the draws, broadcast to x: CORNU_NONE is x's
                                             extent; default all of them. Dropout, AlphaDropout */
    const char *name;
    const char *dtype;
} CornuDropoutConfig;

CornuLayer *cornu_dropout_from(const CornuDropoutConfig *config);
#define cornu_dropout(...) cornu_dropout_from(&(CornuDropoutConfig){ .unset = 0, __VA_ARGS__ })

/* y = gamma (x - mean) / sqrt(variance + epsilon) + beta per channel, the last axis. Training
 * uses the statistics of the batch's valid rows and updates the moving ones:
 * moving = momentum moving + (1 - momentum) batch. Inference, and a frozen layer, use these.
 * On a device with several shards, each shard normalizes with the statistics of its own rows, and
 * the moving ones follow the mean over the shards that have a row. With `synchronized`, all shards
 * use the statistics of the whole batch; the variance is then the mean of the squares minus the
 * square of the mean. Steps that a mask leaves out, (B, T) or all axes but the last one, do not
 * count, but are normalized.
 * With `renorm`, training corrects each batch towards the moving statistics: with s the root of the
 * batch's variance + epsilon, and m' and s' of moving averages kept for that,
 *     y = (x' r + d) gamma + beta   r = clip(s / s', rmin, rmax)   d = clip((m - m') / s', dmax)
 * where x' is x normalized as without, and r and d carry no gradient.
 * Source: keras/src/layers/normalization/batch_normalization.py; Ioffe, "Batch Renormalization",
 * arXiv 1702.03275. */
typedef struct {
    char             unset;
    int64_t          axis;                /* of the channels: default -1, the last */
    double           momentum;            /* default 0.99, or CORNU_ZERO  */
    double           epsilon;             /* default 0.001, or CORNU_ZERO */
    bool             no_center, no_scale; /* without beta, without gamma  */
    CornuInitializer beta_initializer, gamma_initializer;         /* default zeros, ones */
    CornuInitializer moving_mean_initializer, moving_variance_initializer;  /* likewise */
    CornuRegularizer beta_regularizer, gamma_regularizer;
    CornuConstraint  beta_constraint, gamma_constraint;
    const char      *name;
    bool             frozen;
    const char      *dtype;
    bool             synchronized;
    bool             renorm;
    double           renorm_clipping[3];  /* rmax, rmin, dmax; 0: none, CORNU_ZERO is 0 */
    double           renorm_momentum;     /* default 0.99, or CORNU_ZERO */
} CornuBatchNormalizationConfig;

CornuLayer *cornu_batch_normalization_from(const CornuBatchNormalizationConfig *config);
#define cornu_batch_normalization(...) \
    cornu_batch_normalization_from(&(CornuBatchNormalizationConfig){ .unset = 0, __VA_ARGS__ })

typedef struct {
    char            unset;
    CornuActivation activation;
    const char     *name;
    const char     *dtype;
} CornuActivationConfig;

CornuLayer *cornu_activation_from(const CornuActivationConfig *config);
#define cornu_activation(...) \
    cornu_activation_from(&(CornuActivationConfig){ .unset = 0, __VA_ARGS__ })

/* A layer as the activation of others, Keras' Dense(10, activation=LeakyReLU(0.1)):
 *     cornu_dense(10, .activation = cornu_activation_of(cornu_leaky_relu(0.1)))
 * Takes the layer, which has one input and one output; recurrent layers take a relu, leaky_relu,
 * elu, softmax or activation only. Equal layers give the same value, which stays valid; each layer
 * with the activation has weights of its own for it. On failure the default activation, with a
 * pending error. */
CornuActivation cornu_activation_of(CornuLayer *layer);

/* y = x scale + offset */
typedef struct {
    char         unset;
    double       scale;                   /* required, or scales; CORNU_ZERO for 0 */
    double       offset;
    CornuNumbers scales, offsets;         /* in place of them: arrays, broadcast to x */
    const char  *name;
    const char  *dtype;
} CornuRescalingConfig;

CornuLayer *cornu_rescaling_from(const CornuRescalingConfig *config);
#define cornu_rescaling(...) \
    cornu_rescaling_from(&(CornuRescalingConfig){ .unset = 0, __VA_ARGS__ })

/* ---- Layers with several inputs: for cornu_call (functional.h) ----
 *
 *     x = cornu_call(cornu_add(), x, shortcut);
 *
 * Element by element, with broadcasting: all axes but the batch are aligned at the right; a tensor
 * of lower rank gets extents of 1 after the batch. Source: keras/src/layers/merging.
 */
typedef struct {
    char        unset;
    const char *name;
    const char *dtype;
} CornuMergeLayerConfig;

CornuLayer *cornu_add_from(const CornuMergeLayerConfig *config);
CornuLayer *cornu_subtract_from(const CornuMergeLayerConfig *config);   /* a - b: two inputs */
CornuLayer *cornu_multiply_from(const CornuMergeLayerConfig *config);
CornuLayer *cornu_average_from(const CornuMergeLayerConfig *config);
CornuLayer *cornu_maximum_from(const CornuMergeLayerConfig *config);
CornuLayer *cornu_minimum_from(const CornuMergeLayerConfig *config);
#define cornu_add(...) cornu_add_from(&(CornuMergeLayerConfig){ .unset = 0, __VA_ARGS__ })
#define cornu_subtract(...) cornu_subtract_from(&(CornuMergeLayerConfig){ .unset = 0, __VA_ARGS__ })
#define cornu_multiply(...) cornu_multiply_from(&(CornuMergeLayerConfig){ .unset = 0, __VA_ARGS__ })
#define cornu_average(...) cornu_average_from(&(CornuMergeLayerConfig){ .unset = 0, __VA_ARGS__ })
#define cornu_maximum(...) cornu_maximum_from(&(CornuMergeLayerConfig){ .unset = 0, __VA_ARGS__ })
#define cornu_minimum(...) cornu_minimum_from(&(CornuMergeLayerConfig){ .unset = 0, __VA_ARGS__ })

/* Concatenates along an axis; the other extents are equal. */
typedef struct {
    char        unset;
    int64_t     axis;                     /* default -1, the last one; 0 is the batch */
    const char *name;
    const char *dtype;
} CornuConcatenateConfig;

CornuLayer *cornu_concatenate_from(const CornuConcatenateConfig *config);
#define cornu_concatenate(...) \
    cornu_concatenate_from(&(CornuConcatenateConfig){ .unset = 0, __VA_ARGS__ })

/* Dot products of two tensors along an axis of each: (B, …) with the remaining axes of the first
 * tensor, then those of the second; (B, 1) if there are none. */
typedef struct {
    char        unset;
    int64_t     axes;                     /* of both; required, or the next */
    bool        normalize;                /* l2-normalizes both first, which gives cosines */
    int64_t     both_axes[2];             /* of each */
    const char *name;
    const char *dtype;
} CornuDotConfig;

CornuLayer *cornu_dot_from(const CornuDotConfig *config);
#define cornu_dot(...) cornu_dot_from(&(CornuDotConfig){ .unset = 0, __VA_ARGS__ })

/* ---- Sequences: (B, T, C) ----
 *
 * A mask (B, T) marks the valid steps. Embedding with .mask_zero and Masking create one; it
 * propagates through all layers that keep the time axis. Recurrent layers skip the steps where it
 * is false, and losses and metrics do not count them.
 */

/* Looks up rows of a table (input_dim, output_dim): indices (B, …) below input_dim give
 * (B, …, output_dim). Integers are taken as stored, floats are truncated. An index out of range,
 * and NaN, is CORNU_ERR_VALUE when the step runs.
 *
 * With sparse_gradient the gradient is a list of rows, and a step takes no longer for a larger
 * table: the optimizer reads and writes the rows of weights and slots that the batch looks up, each
 * once with the sum of its gradients, and leaves the others as they are, their slots too. This is
 * what TensorFlow does with sparse gradients (IndexedSlices) in Adagrad, Ftrl, RMSprop, Adadelta
 * and SGD with momentum, and LazyAdam and tf.tpu.experimental.embedding in Adam; with SGD the
 * result is that of the dense gradient, to the bit on one shard. Every optimizer but those that
 * need whole weights takes part (Lamb, Muon, Adafactor), without weight_decay, use_ema,
 * gradient_accumulation_steps and groups of shards; the table has neither regularizer nor
 * constraint, and nothing but lookups reads it. Keras' files do not hold the flag.
 * Source: keras/src/layers/core/embedding.py. */
typedef struct {
    char             unset;
    int64_t          input_dim, output_dim;   /* required, at least 1 */
    CornuInitializer embeddings_initializer;  /* default random_uniform */
    CornuRegularizer embeddings_regularizer, activity_regularizer;
    CornuConstraint  embeddings_constraint;
    bool             mask_zero;               /* index 0 is padding, and masked */
    bool             sparse_gradient;         /* steps touch only the rows that are looked up */
    const char      *name;
    bool             frozen;
    const char      *dtype;
} CornuEmbeddingConfig;

CornuLayer *cornu_embedding_from(const CornuEmbeddingConfig *config);
#define cornu_embedding(...) \
    cornu_embedding_from(&(CornuEmbeddingConfig){ .unset = 0, __VA_ARGS__ })

/* Masks the steps of (B, T, C) whose elements all equal mask_value, and sets them to 0.
 * Source: keras/src/layers/core/masking.py. */
typedef struct {
    char        unset;
    double      mask_value;
    const char *name;
    const char *dtype;
} CornuMaskingConfig;

CornuLayer *cornu_masking_from(const CornuMaskingConfig *config);
#define cornu_masking(...) cornu_masking_from(&(CornuMaskingConfig){ .unset = 0, __VA_ARGS__ })

/*
 * Recurrent layers: x (B, T, C) gives the last output (B, units) or, with return_sequences, all of
 * them (B, T, units). `ops.h` has the equations. Weights: kernel (C, G units), recurrent_kernel
 * (units, G units), bias, with G gates side by side:
 *     lstm        i f c o; bias (4 units), ones for f at first unless no_unit_forget_bias
 *     gru         z r h; bias (2, 3 units), one for each product, or (3 units) with no_reset_after,
 *                 where the reset is applied before the product instead of after it
 *     simple_rnn  no gates, so no recurrent_activation
 * cornu_layer_call_many also takes Keras' initial_state after x, and with return_state returns the
 * final states after the output: h (B, units), and for lstm c.
 * Source: keras/src/layers/rnn.
 */
typedef struct {
    char             unset;
    int64_t          units;                   /* required, at least 1 */
    CornuActivation  activation;              /* default tanh    */
    CornuActivation  recurrent_activation;    /* default sigmoid */
    bool             no_bias;
    CornuInitializer kernel_initializer;      /* default glorot_uniform */
    CornuInitializer recurrent_initializer;   /* default orthogonal     */
    CornuInitializer bias_initializer;        /* default zeros          */
    bool             no_unit_forget_bias;     /* lstm's */
    bool             no_reset_after;          /* gru's  */
    CornuRegularizer kernel_regularizer, recurrent_regularizer, bias_regularizer;
    CornuRegularizer activity_regularizer;
    CornuConstraint  kernel_constraint, recurrent_constraint, bias_constraint;
    double           dropout;                 /* of the input, from 0 to below 1               */
    double           recurrent_dropout;       /* of the state. Masks are shared by all steps   */
                                              /* and differ per gate with recurrent_dropout    */
    bool             return_sequences;
    bool             return_state;            /* several outputs: not in a Sequential model */
    bool             go_backwards;            /* from the last step; outputs in that order */
    bool             stateful;                /* each row continues from the final state of
                                                 that row in the previous batch, until
                                                 cornu_model_reset_states */
    bool             unroll;                  /* has no effect: steps are compiled either way */
    bool             zero_output_for_mask;    /* masked steps give zeros, not the last output */
    const char      *name;
    bool             frozen;
    const char      *dtype;
} CornuRecurrentConfig;

CornuLayer *cornu_lstm_from(const CornuRecurrentConfig *config);
CornuLayer *cornu_gru_from(const CornuRecurrentConfig *config);
CornuLayer *cornu_simple_rnn_from(const CornuRecurrentConfig *config);
#define cornu_lstm(...) cornu_lstm_from(&(CornuRecurrentConfig){ .unset = 0, __VA_ARGS__ })
#define cornu_gru(...)  cornu_gru_from(&(CornuRecurrentConfig){ .unset = 0, __VA_ARGS__ })
#define cornu_simple_rnn(...) \
    cornu_simple_rnn_from(&(CornuRecurrentConfig){ .unset = 0, __VA_ARGS__ })

/* The cells of these layers: one step x (B, C) and, further inputs of cornu_layer_call_many, the
 * states give the output (B, units) and the next states. The arguments after recurrent_dropout but
 * .name, .frozen and .dtype are those of cornu_rnn. */
CornuLayer *cornu_lstm_cell_from(const CornuRecurrentConfig *config);
CornuLayer *cornu_gru_cell_from(const CornuRecurrentConfig *config);
CornuLayer *cornu_simple_rnn_cell_from(const CornuRecurrentConfig *config);
#define cornu_lstm_cell(...) \
    cornu_lstm_cell_from(&(CornuRecurrentConfig){ .unset = 0, __VA_ARGS__ })
#define cornu_gru_cell(...) \
    cornu_gru_cell_from(&(CornuRecurrentConfig){ .unset = 0, __VA_ARGS__ })
#define cornu_simple_rnn_cell(...) \
    cornu_simple_rnn_cell_from(&(CornuRecurrentConfig){ .unset = 0, __VA_ARGS__ })

/* Cells one after another, as one: each takes the output of the one before. The states are those of
 * the first cell, then those of the second, … The cells are taken, also on failure. Together they
 * have at most CORNU_MAX_LAYER_STATES states. Source: keras/src/layers/rnn/stacked_rnn_cells.py. */
typedef struct {
    char        unset;
    CornuLayer *cells[CORNU_MAX_WRAPPED];     /* at least one, up to the first NULL */
    const char *name;
    bool        frozen;
    const char *dtype;
} CornuStackedRnnCellsConfig;

CornuLayer *cornu_stacked_rnn_cells_from(const CornuStackedRnnCellsConfig *config);
#define cornu_stacked_rnn_cells(...) \
    cornu_stacked_rnn_cells_from(&(CornuStackedRnnCellsConfig){ .unset = 0, __VA_ARGS__ })

/* Runs a cell over (B, T, C): cornu_rnn(cornu_lstm_cell(64)) is cornu_lstm(64). The cell is taken,
 * also on failure. Source: keras/src/layers/rnn/rnn.py. */
typedef struct {
    char             unset;
    CornuLayer      *cell;                    /* required */
    bool             return_sequences;        /* as above */
    bool             return_state;
    bool             go_backwards;
    bool             stateful;
    bool             unroll;
    bool             zero_output_for_mask;
    CornuRegularizer activity_regularizer;
    const char      *name;
    bool             frozen;
    const char      *dtype;
} CornuRnnConfig;

CornuLayer *cornu_rnn_from(const CornuRnnConfig *config);
#define cornu_rnn(...) cornu_rnn_from(&(CornuRnnConfig){ .unset = 0, __VA_ARGS__ })

/* An LSTM whose products are convolutions: x (B, T, H, W, C) gives (B, H', W', filters) or, with
 * return_sequences, (B, T, H', W', filters), and so do the states h and c. Weights: kernel
 * (h, w, C, 4 filters), convolved with x as conv2d does; recurrent_kernel (h, w, filters,
 * 4 filters), convolved with h, whose extents it keeps; bias (4 filters); gates i f c o.
 * conv_lstm1d takes (B, T, W, C), and a window of one extent, .kernel_size = { 3 }; conv_lstm3d
 * takes (B, T, D, H, W, C), and a window {d, h, w}.
 * Source: keras/src/layers/rnn/conv_lstm.py; Shi et al., "Convolutional LSTM Network", arXiv
 * 1506.04214. */
typedef struct {
    char             unset;
    int64_t          filters, kernel, stride; /* square; filters and kernel are required */
    CornuPadding     padding;                 /* of the convolution of x */
    int64_t          kernel_size[3], strides[3], dilation_rate[3]; /* {h, w}; {n} is square */
    CornuActivation  activation;              /* default tanh    */
    CornuActivation  recurrent_activation;    /* default sigmoid */
    bool             no_bias;
    CornuInitializer kernel_initializer;      /* default glorot_uniform */
    CornuInitializer recurrent_initializer;   /* default orthogonal     */
    CornuInitializer bias_initializer;        /* default zeros          */
    bool             no_unit_forget_bias;
    CornuRegularizer kernel_regularizer, recurrent_regularizer, bias_regularizer;
    CornuRegularizer activity_regularizer;
    CornuConstraint  kernel_constraint, recurrent_constraint, bias_constraint;
    double           dropout, recurrent_dropout; /* masks are shared by all steps, one per gate */
    bool             return_sequences;        /* these six as above */
    bool             return_state;
    bool             go_backwards;
    bool             stateful;
    bool             unroll;
    bool             zero_output_for_mask;
    const char      *name;
    bool             frozen;
    const char      *dtype;
} CornuConvLstmConfig;

CornuLayer *cornu_conv_lstm1d_from(const CornuConvLstmConfig *config);
CornuLayer *cornu_conv_lstm2d_from(const CornuConvLstmConfig *config);
CornuLayer *cornu_conv_lstm3d_from(const CornuConvLstmConfig *config);
#define cornu_conv_lstm1d(...) \
    cornu_conv_lstm1d_from(&(CornuConvLstmConfig){ .unset = 0, __VA_ARGS__ })
#define cornu_conv_lstm2d(...) \
    cornu_conv_lstm2d_from(&(CornuConvLstmConfig){ .unset = 0, __VA_ARGS__ })
#define cornu_conv_lstm3d(...) \
    cornu_conv_lstm3d_from(&(CornuConvLstmConfig){ .unset = 0, __VA_ARGS__ })

/* How two outputs are merged: concatenated, a + b, a b, (a + b) / 2, or not at all. */
typedef enum {
    CORNU_MERGE_CONCAT, CORNU_MERGE_SUM, CORNU_MERGE_MUL, CORNU_MERGE_AVE, CORNU_MERGE_NONE
} CornuMerge;

/* "concat", "sum", "mul", "ave"; NULL for CORNU_MERGE_NONE and unknown values. */
const char *cornu_merge_name(CornuMerge merge);

/* A recurrent layer and one that runs backwards; both outputs are in the order of time:
 * cornu_bidirectional(cornu_lstm(64)). Both layers are taken, also on failure. Where they return
 * sequences, masked steps give zeros. Where they return states, those of the forward layer follow
 * the output or outputs, then those of the backward layer; initial states are further inputs in the
 * same order. Source: keras/src/layers/rnn/bidirectional.py. */
typedef struct {
    char        unset;
    CornuLayer *layer;                        /* required: rnn, lstm, gru, simple_rnn */
    CornuMerge  merge_mode;
    CornuLayer *backward_layer;               /* default: a copy of layer with go_backwards */
    const char *name;
    bool        frozen;
    const char *dtype;
} CornuBidirectionalConfig;

CornuLayer *cornu_bidirectional_from(const CornuBidirectionalConfig *config);
#define cornu_bidirectional(...) \
    cornu_bidirectional_from(&(CornuBidirectionalConfig){ .unset = 0, __VA_ARGS__ })

/* Applies the layer to each step of (B, T, …) separately, with shared weights. A mask (B, T, …) is
 * the layer's, step by step, and goes on to the output; one (B, T) of steps that have more than one
 * axis only goes on. The layer is taken, also on failure.
 * Source: keras/src/layers/rnn/time_distributed.py. */
typedef struct {
    char        unset;
    CornuLayer *layer;                        /* required */
    const char *name;
    bool        frozen;
    const char *dtype;
} CornuTimeDistributedConfig;

CornuLayer *cornu_time_distributed_from(const CornuTimeDistributedConfig *config);
#define cornu_time_distributed(...) \
    cornu_time_distributed_from(&(CornuTimeDistributedConfig){ .unset = 0, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif

#include "augmentation.h"
#include "categories.h"
#include "text_layers.h"
#include "random.h"
#include "spectrograms.h"

#endif
