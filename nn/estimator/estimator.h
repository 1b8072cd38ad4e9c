/*
 * TPUEstimator: TensorFlow 1's way to train on a TPU. A model_fn says what the network is, an
 * input_fn what its data are; all that is learned is in checkpoints in model_dir, from which
 * training goes on, and which evaluation and prediction read.
 *
 *     static CornuTPUEstimatorSpec *model_fn(CornuSymbol *const *features,
 *                                            CornuSymbol *const *labels, CornuModeKeys mode,
 *                                            const CornuEstimatorParams *params)
 *     {
 *         CornuSymbol *x = cornu_call(cornu_dense(32, .activation = CORNU_RELU), features[0]);
 *         CornuSymbol *logits = cornu_call(cornu_dense(10), x);
 *         if (mode == CORNU_MODE_PREDICT)
 *             return cornu_tpu_estimator_spec(mode, .predictions = {
 *                 { "probabilities", cornu_call(cornu_softmax(), logits) } });
 *         CornuLoss *loss = cornu_sparse_categorical_crossentropy(.from_logits = true);
 *         if (mode == CORNU_MODE_EVAL)
 *             return cornu_tpu_estimator_spec(mode, .loss = { { loss, labels[0], logits } },
 *                                             .eval_metrics = { { CORNU_ACCURACY, labels[0],
 *                                                                 logits } });
 *         return cornu_tpu_estimator_spec(mode, .loss = { { loss, labels[0], logits } },
 *             .train_op = cornu_cross_shard_optimizer(cornu_sgd(.learning_rate = 0.05)));
 *     }
 *
 *     CornuTPUEstimator *estimator = cornu_tpu_estimator(
 *         model_fn, .use_tpu = true, .train_batch_size = 1024, .eval_batch_size = 1024,
 *         .config = cornu_run_config(.model_dir = "out", .tpu_config = cornu_tpu_config(50, 8)));
 *     cornu_estimator_train(estimator, train_input_fn, .max_steps = 1000);
 *     cornu_estimator_evaluate(estimator, eval_input_fn, .steps = 9, .results = &results);
 *
 * model_fn is called anew by each of these functions, and its layers are recorded once into a step
 * that is compiled, as in cornu_fit; iterations_per_loop are steps_per_execution there. Default
 * names of layers begin anew in each call, so that the weights of all modes have the same names, by
 * which checkpoints hold them. Symbols that the thread has made before and not put into a model
 * count among these names: make models of them first, or none.
 *
 * In model_dir, as in TensorFlow's:
 *
 *     checkpoint                        a string: the name of the newest checkpoint, and of all
 *     model.ckpt-300.safetensors        the state after step 300: weights, the optimizer's
 *                                       variables, and the position in the data (backup.h)
 *     events.out.tfevents.…             for TensorBoard: loss, global_step/sec, examples/sec
 *     eval/, eval_NAME/                 likewise of evaluations: their results
 *
 * A training that was stopped in whatever way goes on from the newest checkpoint, also in the data,
 * and ends with the same bits as if it had not been stopped. If model_fn or the data have changed
 * since, it goes on all the same, as in TensorFlow, and says in a warning (log.h) what differs:
 * another learning rate applies, other data begin at their beginning.
 *
 * Events, checkpoints and results are logged (log.h, info) in TensorFlow's words. An estimator is
 * used by one thread at a time, and by one process: several that train together use cornu_fit.
 *
 * Source: tensorflow_estimator/python/estimator/tpu/tpu_estimator.py; .../estimator/estimator.py.
 */
#ifndef CORNU_NN_ESTIMATOR_H
#define CORNU_NN_ESTIMATOR_H

#include "run_config.h"
#include "spec.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CornuTPUEstimator CornuTPUEstimator;

/* TensorFlow's params. */
typedef struct {
    int64_t     batch_size;   /* for input_fn that of the mode; for model_fn the rows of a shard */
    bool        use_tpu;
    const void *own;          /* .params of the estimator */
} CornuEstimatorParams;

/* Returns data in batches of params->batch_size rows: the features, then the labels; without labels
 * also to predict. The estimator takes the data set. */
typedef CornuDataset *CornuInputFn(const CornuEstimatorParams *params);

/* The features are the first components of the data, the labels the others, NULL to predict; each
 * is a symbol for cornu_call or, for labels, for the spec alone. Scalars have the shape (B, 1).
 * Returns NULL, with a pending error, if the network cannot be made. */
typedef CornuTPUEstimatorSpec *CornuModelFn(CornuSymbol *const *features,
                                            CornuSymbol *const *labels, CornuModeKeys mode,
                                            const CornuEstimatorParams *params);

typedef struct {
    char           unset;
    CornuModelFn  *model_fn;           /* required */
    const char    *model_dir;          /* default that of .config, else a new folder in TMPDIR, with
                                          a warning; copied */
    CornuRunConfig config;             /* cornu_run_config(…) */
    const void    *params;             /* the caller's, passed on */
    bool           use_tpu;            /* else all runs on a cpu, without shards, and .tpu_config,
                                          .master and .evaluation_master do not matter. (True by
                                          default in TensorFlow) */
    int64_t        train_batch_size;   /* of all shards together, a multiple of their number; */
    int64_t        eval_batch_size;    /* each is required by its function                    */
    int64_t        predict_batch_size;
    bool           no_eval_on_tpu;     /* TensorFlow's eval_on_tpu = False: on a cpu */
    const char    *feature_names[CORNU_MAX_MODEL_TENSORS]; /* of the features, in their order: the
                                          inputs of exported models; default one, "features";
                                          copied */
} CornuTPUEstimatorConfig;

/* Makes model_dir, and checks that it can be written. Devices open when they are first used. NULL
 * with a pending error. */
CornuTPUEstimator *cornu_tpu_estimator_from(const CornuTPUEstimatorConfig *config);
#define cornu_tpu_estimator(...) \
    cornu_tpu_estimator_from(&(CornuTPUEstimatorConfig){ .unset = 0, __VA_ARGS__ })
/* Closes its devices; NULL is ignored. */
void cornu_tpu_estimator_free(CornuTPUEstimator *estimator);

/* The folder, .model_dir or the one made. Owned by the estimator. */
const char *cornu_estimator_model_dir(const CornuTPUEstimator *estimator);
/* The path of the newest checkpoint in it, valid until the next call; NULL if there is none. */
const char *cornu_estimator_latest_checkpoint(CornuTPUEstimator *estimator);

/* ---- Training ---- */

typedef struct {
    char               unset;
    CornuTPUEstimator *estimator;
    CornuInputFn      *input_fn;                /* required */
    int64_t            steps;                   /* one of these two: steps from now on, or until */
    int64_t            max_steps;               /* this global step                              */
    CornuCallback     *hooks[CORNU_MAX_HOOKS];  /* taken; batches are counted as global steps */
} CornuEstimatorTrainConfig;

/* Trains from the newest checkpoint on until the step is reached, the data end, or a hook stops it
 * (cornu_model_stop_training); the last state is in a checkpoint then. Does nothing if the step is
 * reached already. CORNU_ERR_FILE if another process trains in this folder. */
CornuStatus cornu_estimator_train_from(const CornuEstimatorTrainConfig *config);
#define cornu_estimator_train(...) \
    cornu_estimator_train_from(&(CornuEstimatorTrainConfig){ .unset = 0, __VA_ARGS__ })

/* ---- Evaluation ---- */

enum { CORNU_RESULT_NAME = 64 };

/* "loss", then the metrics of the spec. */
typedef struct {
    int64_t global_step;                        /* of the checkpoint */
    int     count;
    struct {
        char   name[CORNU_RESULT_NAME];
        double value;
    } items[1 + CORNU_MAX_METRICS];
} CornuEvaluation;

/* The value of that name; NAN if there is none. */
double cornu_evaluation_get(const CornuEvaluation *results, const char *name);

typedef struct {
    char               unset;
    CornuTPUEstimator *estimator;
    CornuInputFn      *input_fn;                /* required */
    int64_t            steps;                   /* batches; default all */
    CornuCallback     *hooks[CORNU_MAX_HOOKS];  /* taken */
    const char        *checkpoint_path;         /* default the newest; with or without the suffix */
    const char        *name;                    /* of the folder for events: "eval_NAME" */
    CornuEvaluation   *results;                 /* may be NULL */
} CornuEstimatorEvaluateConfig;

/* Evaluates a checkpoint or, without one, the initial weights, with a warning. A last batch may be
 * partial. Another process may train in the folder meanwhile. */
CornuStatus cornu_estimator_evaluate_from(const CornuEstimatorEvaluateConfig *config);
#define cornu_estimator_evaluate(...) \
    cornu_estimator_evaluate_from(&(CornuEstimatorEvaluateConfig){ .unset = 0, __VA_ARGS__ })

/* ---- Prediction ----
 *
 *     CornuPredictions *predictions = cornu_estimator_predict(estimator, predict_input_fn);
 *     const CornuPrediction *one;
 *     while (!(status = cornu_predictions_next(predictions, &one)) && one)
 *         show(cornu_prediction_get(one, "probabilities"));
 *     cornu_predictions_free(predictions);
 */

typedef struct {
    char               unset;
    CornuTPUEstimator *estimator;
    CornuInputFn      *input_fn;                /* required; labels are ignored */
    const char        *checkpoint_path;         /* as above */
    bool               no_yield_single_examples; /* whole batches */
} CornuEstimatorPredictConfig;

typedef struct CornuPredictions CornuPredictions;

/* The predictions of the spec, f32: of one row, without the axis of the batch, or of a batch's
 * rows. */
typedef struct {
    const CornuNamedArray *arrays;              /* sorted by name */
    int                    count;
} CornuPrediction;

/* Opens a generator, which computes a batch when its first row is wanted. Free it before the
 * estimator. NULL with a pending error. */
CornuPredictions *cornu_estimator_predict_from(const CornuEstimatorPredictConfig *config);
#define cornu_estimator_predict(...) \
    cornu_estimator_predict_from(&(CornuEstimatorPredictConfig){ .unset = 0, __VA_ARGS__ })

/* The next one, valid until the next call; NULL after the last. */
CornuStatus cornu_predictions_next(CornuPredictions *predictions,
                                   const CornuPrediction **prediction);
/* Closes the generator; NULL is ignored. */
void        cornu_predictions_free(CornuPredictions *predictions);

/* The array of that name; without data if there is none. */
CornuArray cornu_prediction_get(const CornuPrediction *prediction, const char *name);

/* ---- Export ---- */

typedef struct {
    char               unset;
    CornuTPUEstimator *estimator;
    const char        *path;                    /* required: .keras, .onnx, .safetensors (files.h);
                                                   its folder is made if absent */
    CornuInputFn      *input_fn;                /* required: the types of its features are those of
                                                   the exported model; nothing is read */
    const char        *checkpoint_path;         /* as above */
} CornuEstimatorExportConfig;

/* TensorFlow's export_saved_model: the model that predicts, with the weights of a checkpoint, in a
 * file of Cornu's formats; outputs are the spec's export_outputs, or the predictions. */
CornuStatus cornu_estimator_export_from(const CornuEstimatorExportConfig *config);
#define cornu_estimator_export(...) \
    cornu_estimator_export_from(&(CornuEstimatorExportConfig){ .unset = 0, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
