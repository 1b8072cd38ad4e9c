/*
 * What a model_fn returns: TensorFlow's TPUEstimatorSpec. See estimator.h.
 *
 * TensorFlow's loss is a tensor; here it is a CornuLoss (loss.h) with the two symbols that it
 * compares, of which the step takes the mean over the valid rows of all shards. Several of them are
 * summed. So train_op is the optimizer alone, which minimizes it. A metric likewise.
 *
 * Source: tensorflow_estimator/python/estimator/tpu/tpu_estimator.py, TPUEstimatorSpec.
 */
#ifndef CORNU_NN_SPEC_H
#define CORNU_NN_SPEC_H

#include "../model/functional.h"

#ifdef __cplusplus
extern "C" {
#endif

/* TensorFlow's ModeKeys. */
typedef enum { CORNU_MODE_TRAIN = 1, CORNU_MODE_EVAL, CORNU_MODE_PREDICT } CornuModeKeys;

typedef struct {
    CornuLoss   *loss;          /* taken */
    CornuSymbol *labels;        /* one of those that model_fn was given */
    CornuSymbol *predictions;   /* such as the logits */
} CornuSpecLoss;

typedef struct {
    CornuMetric *metric;        /* taken; its name is that of the result */
    CornuSymbol *labels, *predictions;
} CornuSpecMetric;

typedef struct {
    const char  *name;          /* copied */
    CornuSymbol *symbol;
} CornuNamedSymbol;

enum { CORNU_MAX_HOOKS = 7 };

typedef struct {
    char             unset;
    CornuModeKeys    mode;                                  /* required */
    CornuNamedSymbol predictions[CORNU_MAX_MODEL_TENSORS];  /* required to predict */
    CornuSpecLoss    loss[CORNU_MAX_MODEL_TENSORS];         /* required to train and evaluate; their
                                                               sum; one for each symbol at most */
    double           loss_weights[CORNU_MAX_MODEL_TENSORS]; /* in the sum; default 1, CORNU_ZERO for
                                                               0 */
    CornuOptimizer  *train_op;                              /* required to train: minimizes the
                                                               loss; taken */
    CornuSpecMetric  eval_metrics[CORNU_MAX_METRICS];
    CornuNamedSymbol export_outputs[CORNU_MAX_MODEL_TENSORS]; /* the outputs of an exported model;
                                                               default the predictions */
    CornuCallback   *host_call;                             /* called after each loop of training;
                                                               taken */
    CornuCallback   *training_hooks[CORNU_MAX_HOOKS];       /* of cornu_estimator_train, of … */
    CornuCallback   *evaluation_hooks[CORNU_MAX_HOOKS];     /* taken */
} CornuTPUEstimatorSpecConfig;

typedef struct CornuTPUEstimatorSpec CornuTPUEstimatorSpec;

/* For the estimator, which takes it. NULL with a pending error, also if one of the arguments is the
 * result of a failure; what is taken is freed then. */
CornuTPUEstimatorSpec *cornu_tpu_estimator_spec_from(const CornuTPUEstimatorSpecConfig *config);
#define cornu_tpu_estimator_spec(...) \
    cornu_tpu_estimator_spec_from(&(CornuTPUEstimatorSpecConfig){ .unset = 0, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
