/*
 * A model's own training step: Keras' train_step, test_step and predict_step. What a function here
 * records is the step that cornu_fit, cornu_evaluate and cornu_train_on_batch run; callbacks,
 * history, validation, backups and progress bars work as ever.
 *
 *     static CornuStatus train(CornuOwnStep *self, CornuStepCall *step)
 *     {
 *         CornuTensor *code = cornu_step_call(step, encoder, step->x[0]);
 *         CornuTensor *again = cornu_step_call(step, decoder, code);
 *         CornuTensor *loss = cornu_step_mean(step, squares(step->x[0], again));
 *         cornu_step_minimize(step, NULL, loss);
 *         return cornu_step_log(step, "loss", loss, NULL);
 *     }
 *
 *     static CornuOwnStep own = { .train = train, .logs = { "loss" }, .own_data = true, .xs = 1 };
 *     cornu_compile(model, .optimizer = cornu_adam(), .step = &own);
 *     cornu_fit(model, .x = images, .epochs = 10);
 *
 * The functions run when a step is recorded, once for each type of the data, not for each batch.
 * What they record runs in its order: a call of a layer after an update of its weights has the new
 * ones (cornu_graph_set_sequential). Several optimizers: .optimizers of cornu_compile; they train,
 * and backups keep them, as one. The model's weights are those of all its layers; several models
 * that do not feed each other are one with the inputs and outputs of all:
 *
 *     cornu_model(.inputs = { z, image }, .outputs = { cornu_call(cornu_as_layer(generator), z),
 *                                                      cornu_call(cornu_as_layer(judge), image) })
 *
 * A function given NULL, or with an error pending, does nothing and keeps the first error, which
 * the recording of the step ends with: statuses need not be checked. Own steps do not train as
 * pipelines.
 */
#ifndef CORNU_NN_OWN_STEP_H
#define CORNU_NN_OWN_STEP_H

#include "../layers/layer_class.h"
#include "../metrics/metric.h"
#include "../optimizers/optimizer.h"
#include "callback.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CORNU_MAX_STEP_LOGS = 32 };

typedef struct CornuOwnStep CornuOwnStep;

/* What a step is recorded from. On a device of several shards these are one shard's rows, but for a
 * step of .valid_rows. */
typedef struct CornuStepCall {
    CornuModel  *model;
    CornuGraph  *graph;
    bool         training;
    CornuTensor *x[CORNU_MAX_MODEL_TENSORS], *y[CORNU_MAX_MODEL_TENSORS]; /* (B, …), as stored */
    CornuTensor *weights[CORNU_MAX_MODEL_TENSORS];   /* sample weights, as stored */
    int          x_count, y_count, weight_count;     /* those of y and weights may be changed: */
    CornuTensor *valid;      /* bool (B): which rows are; those that fill up the batch are not */
    CornuTensor *count;      /* i64 scalars: the number of valid rows; */
    CornuTensor *total;      /* that on all shards; */
    CornuTensor *position;   /* the place of row 0 in the batch; */
    CornuTensor *iteration;  /* the optimizer's; and the model's seed, of what is random */
    CornuTensor *seed;
    struct CornuStep *step;  /* internal, as the next ones */
    CornuTensor *added;      /* what layers added to the loss */
    int          calls, draws;
    bool         penalized;  /* weights are part of it */
    CornuStatus  failed;     /* the first failure */
} CornuStepCall;

/* An own step is a struct that begins with this one. It outlives the model, or has `free`. */
struct CornuOwnStep {
    /* Each may be NULL: then the model's losses and metrics (compile.h) are that step. */
    CornuStatus (*train)(CornuOwnStep *self, CornuStepCall *step);
    CornuStatus (*test)(CornuOwnStep *self, CornuStepCall *step);
    /* Sets y[i] to the predictions, f32 (B, …) as output i of the model. */
    CornuStatus (*predict)(CornuOwnStep *self, CornuStepCall *step, CornuTensor **y);
    const char *logs[CORNU_MAX_STEP_LOGS];   /* the names that train and test log */
    bool        more_logs;   /* names that are not listed are added when they are logged: results of
                                cornu_evaluate and others have room for CORNU_MAX_STEP_LOGS more */
    bool        own_updates; /* weights are trained without the model's optimizers, which have no
                                variables for them */
    bool        own_data;    /* batches are `xs` arrays x and `ys` arrays y of any types; else those
                                of the model's inputs and outputs */
    int         xs, ys;
    int         test_xs, test_ys;   /* those of test; test_xs 0: `xs` and `ys` */
    bool        valid_rows;  /* batches have no rows that fill them up: a partial one is a step of
                                its own. The step is recorded of whole batches, for one shard,
                                however many the device has (cornu_graph_set_whole_batch); of
                                several processes each shard has its rows */
    void      (*free)(CornuOwnStep *self);   /* frees self, too; NULL: the caller's */
    bool        taken;
};

/* Calls a layer of the model, or a model in it, or the model itself (cornu_as_layer). Integers are
 * converted to f32 unless the layer takes them. Each call draws random numbers of its own. */
CornuTensor *cornu_step_call(CornuStepCall *step, CornuLayer *layer, CornuTensor *x);
/* With several inputs or outputs, as cornu_layer_call_many. */
CornuTensor *cornu_step_call_many(CornuStepCall *step, CornuLayer *layer, CornuTensor *const *in,
                                  int in_count, CornuTensor **out, int out_count);

/* The seed of the next such call, for other calls (cornu_model_call, cornu_layer_call). */
CornuTensor *cornu_step_seed(CornuStepCall *step);

/* Random numbers, f32, uniform in [0, 1): others in each step and call. Axis 0 is the batch's. */
CornuTensor *cornu_step_uniform(CornuStepCall *step, CornuShape shape);
/* Likewise normal ones of mean 0 and deviation 1. */
CornuTensor *cornu_step_normal(CornuStepCall *step, CornuShape shape);

/* The mean of values (B, …) of the valid rows, each of its own: a scalar, of which a shard has its
 * part, as a loss should be. */
CornuTensor *cornu_step_mean(CornuStepCall *step, CornuTensor *values);

/* What layers have added to the loss in calls so far, and the regularizers of the model's weights:
 * the sum of Keras' model.losses, a scalar. */
CornuTensor *cornu_step_added_loss(CornuStepCall *step);

/* Keras' compute_loss: the losses of cornu_compile for predictions of all outputs, with sample
 * weights, and cornu_step_added_loss. Its labels and weights are step->y and step->weights, which
 * may be set to other tensors before. In a step of .valid_rows, in one process, predictions may
 * have other rows than the batch: CORNU_ERR_SHAPE else. */
CornuTensor *cornu_step_compute_loss(CornuStepCall *step, CornuTensor *const *y_pred);
/* Keras' compute_metrics: updates the metrics of cornu_compile, likewise. */
CornuStatus  cornu_step_compute_metrics(CornuStepCall *step, CornuTensor *const *y_pred);

/* Updates the optimizer's weights by the gradient of the loss: the optimizer is the model's, or one
 * of .optimizers (cornu_model_optimizer_at); NULL: the model's, all weights. For other gradients:
 * cornu_gradients, by cornu_read of its weights after all updates so far, and
 * cornu_optimizer_apply. */
CornuStatus cornu_step_minimize(CornuStepCall *step, CornuOptimizer *optimizer, CornuTensor *loss);

/* Logs a mean over the steps since the metrics were reset, Keras' Mean: of a scalar, or of values
 * (B, …) of the valid rows. weight: a scalar or, of values, (B); NULL: the number of valid rows of
 * a scalar, so that partial batches count exactly, and 1 for each value. CORNU_ERR_ARGUMENT for a
 * name that is not among .logs, or has another kind. */
CornuStatus cornu_step_log(CornuStepCall *step, const char *name, CornuTensor *values,
                           CornuTensor *weight);
/* Logs the last step's value, a scalar, as Keras does with logs that are not metrics. */
CornuStatus cornu_step_log_last(CornuStepCall *step, const char *name, CornuTensor *value);
/* Logs a metric, which the model takes; the same one each time. weight: (B) or (B, T); or NULL. */
CornuStatus cornu_step_log_metric(CornuStepCall *step, const char *name, CornuMetric *metric,
                                  CornuTensor *y_true, CornuTensor *y_pred, CornuTensor *weight);
/* A log that this step updates is not among its results, as one that Keras' train_step does not
 * return; another name changes nothing. */
CornuStatus cornu_step_hide_log(CornuStepCall *step, const char *name);

#ifdef __cplusplus
}
#endif
#endif
