/*
 * Metrics by Keras' names and formulas (keras/src/metrics), accumulated on the device: a metric
 * has states, small variables that every step updates and every epoch starts from zero, and its
 * result is read from them.
 *
 *     cornu_compile(model, …, .metrics = { CORNU_ACCURACY, cornu_metric("mse") })
 */
#ifndef CORNU_NN_METRIC_H
#define CORNU_NN_METRIC_H

#include "../tensor/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CornuMetric CornuMetric;

enum { CORNU_MAX_STATES = 4 };

/* What a step gives a metric. On a device with several shards y_true, y_pred and valid are one
 * shard's; states are shared, so what goes into them passes through cornu_op_all_reduce. */
typedef struct {
    CornuTensor *y_true;   /* as stored            */
    CornuTensor *y_pred;   /* f32                  */
    CornuTensor *valid;    /* bool (B): which rows */
    CornuTensor *mask;     /* bool (B, T): which steps of them; NULL: all of the valid rows' */
    CornuTensor *count;    /* i64 scalar: how many, on all shards */
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
    void   (*free)(CornuMetric *self);  /* frees self too; NULL: the caller's */
};

/* The mean of values over all valid rows so far; `values` as a loss's call (loss.h). The states
 * are an f64 sum and an i64 count. The name is not copied. */
typedef CornuTensor *CornuMetricValues(CornuTensor *y_true, CornuTensor *y_pred);
CornuMetric *cornu_mean_metric(const char *name, CornuMetricValues *values);

/* "accuracy" and "acc", resolved by the shapes of the data as Keras does: predictions (B, 1) are
 * binary; labels of lower rank, or (B, 1), are sparse; else categorical. Likewise "crossentropy"
 * and "ce". "binary_accuracy", "categorical_accuracy", "sparse_categorical_accuracy",
 * "binary_crossentropy", "categorical_crossentropy", "sparse_categorical_crossentropy",
 * "mean_squared_error" and "mse". The metric keeps this name. */
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
