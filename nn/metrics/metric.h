/*
 * Metrics by Keras' names and formulas (keras/src/metrics), accumulated on the device: a metric
 * has states, small variables that every step updates and every epoch starts from zero, and its
 * result is read from them.
 *
 *     cornu_compile(model, …, .metrics = { CORNU_ACCURACY, cornu_metric("mse") })
 *
 * Those with arguments are in metrics.h. What was accumulated is read by the functions of model.h.
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

/* What a step gives a metric. On a device with several shards y_true, y_pred and valid are one
 * shard's; states are shared, so what goes into them passes through cornu_op_all_reduce. */
typedef struct {
    CornuTensor *y_true;   /* as stored            */
    CornuTensor *y_pred;   /* f32                  */
    CornuTensor *valid;    /* bool (B): which rows */
    CornuTensor *mask;     /* bool (B, T): which steps of them; NULL: all of the valid rows' */
    CornuTensor *count;    /* i64 scalar: how many valid rows there are on all shards */
    CornuTensor *weight;   /* f32 (B), or (B, T): sample weights, for .weighted_metrics; NULL: 1 */
} CornuMetricCall;

/* A user's own metric is a struct that begins with this one. */
struct CornuMetric {
    const char *name;                   /* its key in logs */
    int         state_count;
    CornuType   states[CORNU_MAX_STATES];
    /* What can be known only when shapes are; may be NULL. */
    CornuStatus (*build)(CornuMetric *self, CornuShape y_true, CornuShape y_pred);
    /* Records new[i], the states after a batch, from old[i]. */
    CornuStatus (*update)(const CornuMetric *self, const CornuMetricCall *call,
                          CornuTensor *const *old, CornuTensor **new_states);
    double (*result)(const CornuMetric *self, const CornuArray *states);
    /* Of a result that is a vector, element i of so many, known after build; logs show `result`,
     * which is their mean. NULL: there is only the one. */
    int64_t result_count;
    double (*result_at)(const CornuMetric *self, const CornuArray *states, int64_t i);
    void   (*free)(CornuMetric *self);  /* frees self too; NULL: the caller's */
    /* For files: Keras' class, and the config it was made with; NULL for a user's own. */
    const CornuSerializableClass *kind;
    const void             *config;
    bool taken;   /* as a loss's */
};

/* The mean of values over all valid rows so far, weighted by the sample weights; `values` as a
 * loss's call (loss.h). The states are a sum and the sum of the weights, both f64. The name is
 * copied, here and in all that follow. */
typedef CornuTensor *CornuMetricValues(CornuTensor *y_true, CornuTensor *y_pred);
CornuMetric *cornu_mean_metric(const char *name, CornuMetricValues *values);

/* The mean of a loss's values, Keras' metrics.BinaryCrossentropy(from_logits=True) for example. The
 * loss is taken; its reduction does not matter. As in Keras labels that it ignores count as 0, and
 * do not count where sample weights or a mask of the predictions say what does. */
CornuMetric *cornu_loss_metric(const char *name, CornuLoss *loss);

/*
 * A metric by Keras' string, with the usual arguments; it keeps this name.
 *   accuracy acc           by the shapes of the data as Keras does: predictions (B, 1) are binary;
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
void         cornu_metric_free(CornuMetric *metric);

#define CORNU_ACCURACY                    cornu_metric("accuracy")
#define CORNU_BINARY_ACCURACY             cornu_metric("binary_accuracy")
#define CORNU_CATEGORICAL_ACCURACY        cornu_metric("categorical_accuracy")
#define CORNU_SPARSE_CATEGORICAL_ACCURACY cornu_metric("sparse_categorical_accuracy")

#ifdef __cplusplus
}
#endif
#endif
