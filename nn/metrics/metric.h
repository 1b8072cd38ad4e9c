/*
 * Metrics by Keras' names and formulas (keras/src/metrics), accumulated on the device: a metric has
 * states, small variables that each step updates and each epoch resets to zero; its result is
 * computed from them.
 *
 *     cornu_compile(model, …, .metrics = { CORNU_ACCURACY, cornu_metric("mse") })
 *
 * metrics.h has metrics with arguments; compile.h reads results.
 */
#ifndef CORNU_NN_METRIC_H
#define CORNU_NN_METRIC_H

#include "../../tensor/ops.h"
#include "../losses/loss.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CornuMetric CornuMetric;

enum { CORNU_MAX_STATES = 8 };

/* The input of a metric in a step. On a device with several shards y_true, y_pred and valid are one
 * shard's; states are common to all, so new values for them pass through cornu_op_all_reduce. */
typedef struct {
    CornuTensor *y_true;   /* as stored            */
    CornuTensor *y_pred;   /* f32                  */
    CornuTensor *valid;    /* bool (B): which rows */
    CornuTensor *mask;     /* bool (B, T): the steps that count; NULL: all of the valid rows' */
    CornuTensor *count;    /* i64 scalar: the number of valid rows on all shards */
    CornuTensor *weight;   /* f32 (B), or (B, T): sample weights, for .weighted_metrics; NULL: 1 */
} CornuMetricCall;

/* A custom metric is a struct that begins with this one. */
struct CornuMetric {
    const char *name;                   /* its key in logs */
    int         state_count;
    CornuType   states[CORNU_MAX_STATES];
    /* Called once shapes are known, before the states are made; may be NULL. */
    CornuStatus (*build)(CornuMetric *self, CornuShape y_true, CornuShape y_pred);
    /* Records new[i], the states after a batch, from old[i]. */
    CornuStatus (*update)(const CornuMetric *self, const CornuMetricCall *call,
                          CornuTensor *const *old, CornuTensor **new_states);
    double (*result)(const CornuMetric *self, const CornuArray *states);
    /* For a vector result: element i of result_count, which is known after build; logs show
     * `result`, the mean. NULL: a single result. */
    int64_t result_count;
    double (*result_at)(const CornuMetric *self, const CornuArray *states, int64_t i);
    void   (*free)(CornuMetric *self);  /* frees self, too; NULL: the caller's */
    /* For files: Keras' class, and the constructor's config; NULL for a custom metric. */
    const CornuSerializableClass *kind;
    const void             *config;
    const char             *dtype;      /* Keras', for files alone; NULL: the kind's */
    const char             *record;  /* as a loss's */
    bool taken;   /* likewise */
    bool valid_rows;   /* likewise */
};

/* What a mean is of: as a loss's call (loss.h), f32 values whose axis 0 is the batch. */
typedef CornuTensor *CornuMetricValues(CornuTensor *y_true, CornuTensor *y_pred);

/* The mean of values over all valid rows so far, weighted by the sample weights. The states are a
 * sum and the sum of the weights, both f64. The name is copied, here and below. */
CornuMetric *cornu_mean_metric(const char *name, CornuMetricValues *values);

/* The mean of a loss's values, such as Keras' metrics.BinaryCrossentropy(from_logits=True). Takes
 * the loss; its reduction does not matter. As in Keras labels that the loss ignores count as 0, or
 * not at all where there are sample weights or a mask of the predictions. */
CornuMetric *cornu_loss_metric(const char *name, CornuLoss *loss);

/*
 * A metric by Keras' string, with default arguments; the string is its name.
 *   accuracy acc           by the shapes of the data, as Keras: predictions (B, 1) are binary;
 *   crossentropy ce        labels of lower rank, or (B, 1), are sparse; else categorical
 *   binary_accuracy categorical_accuracy sparse_categorical_accuracy top_k_categorical_accuracy
 *   sparse_top_k_categorical_accuracy
 *   binary_crossentropy bce categorical_crossentropy sparse_categorical_crossentropy kl_divergence
 *   poisson hinge squared_hinge categorical_hinge log_cosh_error mean_squared_error mse
 *   mean_absolute_error mae mean_absolute_percentage_error mape mean_squared_logarithmic_error msle
 *                          means of the losses; aliases also in capitals
 *   root_mean_squared_error cosine_similarity (the cosine itself) pearson_correlation
 *   concordance_correlation r2_score
 *   precision recall auc true_positives true_negatives false_positives false_negatives f1_score
 *   fbeta_score binary_io_u
 */
CornuMetric *cornu_metric(const char *name);
/* Frees a metric that was never given to a model. NULL is ignored. */
void         cornu_metric_free(CornuMetric *metric);

/* ---- For steps recorded by hand ---- */

/* The states of a metric on a device. */
typedef struct CornuMetricStates CornuMetricStates;

/* Takes neither the metric nor the device, which both must live longer. */
CornuMetricStates *cornu_metric_states_create(CornuMetric *metric, CornuDevice *device);
/* Graphs that update them must not run any more. NULL is ignored. */
void               cornu_metric_states_free(CornuMetricStates *states);
/* Keras' update_state: records that every run of the graph of y_pred adds a batch: y_true as
 * stored, y_pred any float, both (B, …), the weights (B) or (B, T), or NULL. */
CornuStatus cornu_metric_states_record(CornuMetricStates *states, CornuTensor *y_true,
                                       CornuTensor *y_pred, CornuTensor *sample_weight);
/* The number of results: 1, or of a vector, once it has been updated, that of its elements. */
int64_t     cornu_metric_states_count(const CornuMetricStates *states);
/* Keras' result, of so many elements; 0 before the first update. */
CornuStatus cornu_metric_states_result(CornuMetricStates *states, double *values);
/* Keras' reset_state. */
CornuStatus cornu_metric_states_reset(CornuMetricStates *states);

#define CORNU_ACCURACY                    cornu_metric("accuracy")
#define CORNU_BINARY_ACCURACY             cornu_metric("binary_accuracy")
#define CORNU_CATEGORICAL_ACCURACY        cornu_metric("categorical_accuracy")
#define CORNU_SPARSE_CATEGORICAL_ACCURACY cornu_metric("sparse_categorical_accuracy")

#ifdef __cplusplus
}
#endif
#endif
