/*
 * Training, evaluation, prediction: fit, evaluate, predict, and single batches.
 *
 * Data are a data set of (x, y) or arrays .x and .y, of any number type: bytes stay bytes until the
 * step converts them. A data set stays the caller's. Arrays and unbatched data sets are batched by
 * batch_size (default 32), which is an error with a batched data set. A trailing axis of extent 1
 * of x may be omitted or added. A partial last batch counts exactly as its rows; cornu_predict
 * computes that many, rounded up to a power of two. The result of a row does not depend on other
 * rows, nor do its bits on how many are computed; but on "cpu" the last ones may in products of
 * fewer than 16 rows by a transposed matrix, such as weights tied to an embedding, and on "pjrt".
 * It is otherwise with a graph from a file that computes along axis 0: all rows are one batch, or
 * it is CORNU_ERR_SHAPE, naming the layer; a function has no batches (cornu_model_is_function). The
 * default of a model with a batch size is that.
 *
 * A step is compiled for each batch size, and for each value of extents that the model leaves open
 * (CORNU_NONE); the eight most recently used are kept. All elements of a data set have one shape,
 * which may differ between calls: pad sequences of different lengths to one length, or use a data
 * set per length.
 *
 * With several inputs or outputs an element of a data set has a component for each, inputs first;
 * arrays are given as .xs and .ys, in the model's order, or by the names of inputs and outputs, as
 * Keras' dictionaries (functional.h):
 *
 *     .xs_by_name = { { "title", titles }, { "body", bodies } }, .ys_by_name = { { "price", y } }
 *
 * Sample weights multiply the values of losses and weighted metrics: an additional component of a
 * data set, or an array .sample_weight, (N), or (N, T) for a weight per step. With several outputs
 * there is one for all of them or, as .sample_weights, one for each; by name, outputs that are not
 * named weigh 1. Any number type.
 *
 * Keras' validation_data is such data, too:
 *
 *     cornu_fit(model, .x = x, .y = y, .validation_data = { .x = test_x, .y = test_y });
 */
#ifndef CORNU_NN_FIT_H
#define CORNU_NN_FIT_H

#include "../../datasets/pipeline/dataset.h"
#include "../formats/safetensors.h"
#include "../model/callback.h"
#include "history.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The members of CornuData: a data set, or arrays. Functions that take data have them among their
 * arguments. */
#define CORNU_DATA_MEMBERS                                               \
    CornuDataset   *data;                                                \
    CornuArray      x, y;                                                \
    CornuArray      xs[CORNU_MAX_MODEL_TENSORS];                         \
    CornuArray      ys[CORNU_MAX_MODEL_TENSORS];                         \
    CornuNamedArray xs_by_name[CORNU_MAX_MODEL_TENSORS];                 \
    CornuNamedArray ys_by_name[CORNU_MAX_MODEL_TENSORS];                 \
    CornuArray      sample_weight;                                       \
    CornuArray      sample_weights[CORNU_MAX_MODEL_TENSORS];             \
    CornuNamedArray sample_weights_by_name[CORNU_MAX_MODEL_TENSORS]

typedef struct {
    CORNU_DATA_MEMBERS;
} CornuData;

/* What is printed: nothing, a bar, or a line per epoch. Auto, the default, is a bar on a terminal
 * and lines elsewhere. Keras' numbers work too: an explicit 0 is silent, 1 a bar, 2 lines. */
typedef enum { CORNU_AUTO = -1, CORNU_BAR = 1, CORNU_LINES = 2, CORNU_SILENT = 3 } CornuVerbose;

enum { CORNU_MAX_CALLBACKS = 16 };

typedef struct {
    char           unset;
    const char    *written;              /* source of the call, see keywords.h */
    CornuModel    *model;
    CORNU_DATA_MEMBERS;                  /* of CornuData: what it trains on */
    CornuArray     class_weight;         /* (classes): the weight of each class' samples; classes
                                            after the end have 1. Labels are one-hot, or class
                                            numbers: each of several, (N, T) with a loss of class
                                            numbers, has its own weight. Not applied to validation
                                            samples */
    int64_t        batch_size;           /* default 32 */
    int64_t        epochs;               /* default 1: the index after the last, see initial_epoch;
                                            0, or CORNU_ZERO, for none */
    CornuVerbose   verbose;
    CornuCallback *callbacks[CORNU_MAX_CALLBACKS]; /* taken: freed when fit returns. NULLs among
                                            them are skipped */
    double         validation_split;     /* this fraction, from the end of the data, is held out */
    CornuData      validation_data;      /* evaluated after epochs; default none */
    bool           no_shuffle;           /* else unbatched data are shuffled for each epoch */
    int64_t        initial_epoch;        /* index of the first epoch */
    int64_t        steps_per_epoch;      /* default: all batches. With fewer, the next epoch
                                            continues where this one ended */
    int64_t        validation_steps;     /* default: all batches */
    int64_t        validation_batch_size;/* default batch_size */
    int64_t        validation_freq;      /* default 1: epochs between validations */
} CornuFitConfig;

/* Trains. The caller frees the history. NULL on failure, also when the loss becomes NaN or infinite
 * (CORNU_ERR_VALUE, naming epoch and steps); the weights then stay as they are. */
CornuHistory *cornu_fit_from(const CornuFitConfig *config);
#define cornu_fit(...) \
    cornu_fit_from(&(CornuFitConfig){ .unset = 0, .written = #__VA_ARGS__, __VA_ARGS__ })

/* The arguments of evaluate and of predict. */
typedef struct {
    char           unset;
    const char    *written;              /* the call, see keywords.h */
    CornuModel    *model;
    CORNU_DATA_MEMBERS;                  /* predict takes x alone; the y of a data set it ignores */
    int64_t        batch_size;
    CornuVerbose   verbose;
    int64_t        steps;                /* default: all batches */
    CornuCallback *callbacks[CORNU_MAX_CALLBACKS];
    double        *results;              /* of evaluate, cornu_model_metric_count() numbers; may be
                                            NULL */
    CornuArray     to;                   /* f32 (rows, …): gets the predictions, one row per row
                                            of the data; evaluate need not store them */
    CornuArray     tos[CORNU_MAX_MODEL_TENSORS]; /* in place of .to: of each output */
    CornuNamedArray tos_by_name[CORNU_MAX_MODEL_TENSORS];
} CornuEvaluateConfig;

typedef CornuEvaluateConfig CornuPredictConfig;

/* Computes the loss and the metrics of data without training. CORNU_ERR_ARGUMENT for a model that
 * is not compiled. */
CornuStatus cornu_evaluate_from(const CornuEvaluateConfig *config);
#define cornu_evaluate(...) \
    cornu_evaluate_from(&(CornuEvaluateConfig){ .unset = 0, .written = #__VA_ARGS__, __VA_ARGS__ })

/* Also of a model that is not compiled, say a loaded one: on the device of the strategy in scope,
 * else a "cpu" device of its own. Likewise cornu_predict_on_batch. */
CornuStatus cornu_predict_from(const CornuPredictConfig *config);
#define cornu_predict(...) \
    cornu_predict_from(&(CornuPredictConfig){ .unset = 0, .written = #__VA_ARGS__, __VA_ARGS__ })

typedef struct {
    char        unset;
    CornuModel *model;
    CornuArray  x, y;
    double     *values;                  /* cornu_model_metric_count() numbers; may be NULL */
    CornuArray  sample_weight;
    CornuArray  class_weight;            /* as in fit; allocates an array of weights per call */
} CornuOnBatchConfig;

/* One step on one batch; without `values` it may return before a pjrt device has ended it. As in
 * Keras, `values` are those of this batch: metrics are reset first if they are wanted. */
CornuStatus cornu_train_on_batch_from(const CornuOnBatchConfig *config);
#define cornu_train_on_batch(...) \
    cornu_train_on_batch_from(&(CornuOnBatchConfig){ .unset = 0, __VA_ARGS__ })
/* Likewise without training: the loss and the metrics of one batch. */
CornuStatus cornu_test_on_batch_from(const CornuOnBatchConfig *config);
#define cornu_test_on_batch(...) \
    cornu_test_on_batch_from(&(CornuOnBatchConfig){ .unset = 0, __VA_ARGS__ })
/* Predicts one batch: `to` gets f32 (rows, …). */
CornuStatus cornu_predict_on_batch(CornuModel *model, CornuArray x, CornuArray to);
/* cornu_train_on_batch for several inputs or outputs: an array of each, in the model's order. */
CornuStatus cornu_train_on_batch_many(CornuModel *model, const CornuArray *x, const CornuArray *y,
                                      double *values);
/* cornu_test_on_batch for several, likewise. */
CornuStatus cornu_test_on_batch_many(CornuModel *model, const CornuArray *x, const CornuArray *y,
                                     double *values);
/* cornu_predict_on_batch for several: an array of each input, and of each output. */
CornuStatus cornu_predict_on_batch_many(CornuModel *model, const CornuArray *x,
                                        const CornuArray *to);
/* Sets to[i] to the type of output i for such a batch, f32, also where shapes of the model have
 * extents that differ from batch to batch. */
CornuStatus cornu_model_predict_types(CornuModel *model, const CornuArray *x, CornuType *to);
/* Arrays by the names of inputs, in the model's order: to[i] is that of input i. `count` entries,
 * or those up to the first without a name; each name once. */
CornuStatus cornu_model_order_inputs(const CornuModel *model, const CornuNamedArray *arrays,
                                     int count, CornuArray *to);
/* Likewise by the names of outputs. */
CornuStatus cornu_model_order_outputs(const CornuModel *model, const CornuNamedArray *arrays,
                                      int count, CornuArray *to);
/* Sets the states of the loss' mean and of all metrics back to zeros, as fit does for each
 * epoch. */
CornuStatus cornu_model_reset_metrics(CornuModel *model);

/* Resets the states of stateful layers to zeros. As in Keras, states otherwise carry over from
 * batch to batch, from epoch to epoch and from training to evaluation. All batches must have the
 * same number of rows, all valid. Compiling and moving the model reset the states too. */
CornuStatus cornu_model_reset_states(CornuModel *model);

#ifdef __cplusplus
}
#endif
#endif
