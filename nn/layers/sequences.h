/*
 * Layers over sequences (B, T, C): embeddings, masks, recurrent layers.
 *
 * A mask (B, T) marks the valid steps. Embedding with .mask_zero and Masking create one; it
 * propagates through all layers that keep the time axis. Recurrent layers skip the steps where it
 * is false, and losses and metrics do not count them.
 */
#ifndef CORNU_NN_LAYERS_SEQUENCES_H
#define CORNU_NN_LAYERS_SEQUENCES_H

#include "activations.h"
#include "layer.h"
#include "spatial.h"

#ifdef __cplusplus
extern "C" {
#endif

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

CornuLayer *cornu_lstm_from(const CornuRecurrentConfig *config);        /* states h, c */
CornuLayer *cornu_gru_from(const CornuRecurrentConfig *config);         /* state h     */
CornuLayer *cornu_simple_rnn_from(const CornuRecurrentConfig *config);  /* state h     */
#define cornu_lstm(...) cornu_lstm_from(&(CornuRecurrentConfig){ .unset = 0, __VA_ARGS__ })
#define cornu_gru(...)  cornu_gru_from(&(CornuRecurrentConfig){ .unset = 0, __VA_ARGS__ })
#define cornu_simple_rnn(...) \
    cornu_simple_rnn_from(&(CornuRecurrentConfig){ .unset = 0, __VA_ARGS__ })

/* The cells of these layers: one step x (B, C) and, further inputs of cornu_layer_call_many, the
 * states give the output (B, units) and the next states. The arguments after recurrent_dropout but
 * .name, .frozen and .dtype are those of cornu_rnn. */
CornuLayer *cornu_lstm_cell_from(const CornuRecurrentConfig *config);
CornuLayer *cornu_gru_cell_from(const CornuRecurrentConfig *config);         /* likewise, state h */
CornuLayer *cornu_simple_rnn_cell_from(const CornuRecurrentConfig *config);  /* likewise, state h */
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

/* Runs a cell over (B, T, C): cornu_rnn(cornu_lstm_cell(64)) is cornu_lstm(64). A cell may also be
 * a traced layer of a step and states (model/traced/traced.h). The cell is taken, also on failure.
 * Source: keras/src/layers/rnn/rnn.py. */
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

CornuLayer *cornu_conv_lstm1d_from(const CornuConvLstmConfig *config);  /* (B, T, W, C)       */
CornuLayer *cornu_conv_lstm2d_from(const CornuConvLstmConfig *config);  /* (B, T, H, W, C)    */
CornuLayer *cornu_conv_lstm3d_from(const CornuConvLstmConfig *config);  /* (B, T, D, H, W, C) */
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
#endif
