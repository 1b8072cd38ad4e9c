/*
 * Metrics with arguments, by Keras' names, formulas and defaults (keras/src/metrics); metric.h has
 * those without.
 *
 *     cornu_compile(model, …, .metrics = { cornu_auc(.curve = CORNU_PR), cornu_precision() })
 *
 * `name` is the key in logs, by default the function's. Results cover all rows since the start of
 * the epoch or evaluation, on all shards; sample weights apply in .weighted_metrics. As in Keras,
 * only means apply the masks of layers.
 */
#ifndef CORNU_NN_METRICS_H
#define CORNU_NN_METRICS_H

#include "../config/keywords.h"
#include "metric.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Means: y_true and y_pred as in the losses of these names ---- */

typedef struct {
    char        unset;
    double      threshold;   /* default 0.5, CORNU_ZERO: predictions above it are 1 */
    const char *name;
} CornuBinaryAccuracyConfig;

/* The frequency of predictions that, as 0 or 1, are equal to their labels. */
CornuMetric *cornu_binary_accuracy_from(const CornuBinaryAccuracyConfig *config);
#define cornu_binary_accuracy(...) \
    cornu_binary_accuracy_from(&(CornuBinaryAccuracyConfig){ .unset = 0, __VA_ARGS__ })

typedef struct {
    char        unset;
    int64_t     k;           /* default 5 */
    const char *name;
    bool        from_sorted_ids; /* for the sparse one only: y_pred (…, N) are class numbers, best
                                    first, of which the first k count */
} CornuTopKConfig;

/* The frequency of labels with fewer than k predictions above theirs. Labels are one-hot. */
CornuMetric *cornu_top_k_categorical_accuracy_from(const CornuTopKConfig *config);
#define cornu_top_k_categorical_accuracy(...) \
    cornu_top_k_categorical_accuracy_from(&(CornuTopKConfig){ .unset = 0, __VA_ARGS__ })
/* Likewise of class numbers; one outside [0, C) is CORNU_ERR_VALUE when the step runs. */
CornuMetric *cornu_sparse_top_k_categorical_accuracy_from(const CornuTopKConfig *config);
#define cornu_sparse_top_k_categorical_accuracy(...) \
    cornu_sparse_top_k_categorical_accuracy_from(&(CornuTopKConfig){ .unset = 0, __VA_ARGS__ })

typedef struct {
    char        unset;
    int64_t     axis;        /* of the vectors; not the batch's; default: the last one */
    const char *name;        /* default cosine_similarity, … */
} CornuSimilarityConfig;

/* The cosine of the angle between y_true and y_pred. */
CornuMetric *cornu_cosine_similarity_metric_from(const CornuSimilarityConfig *config);
#define cornu_cosine_similarity_metric(...) \
    cornu_cosine_similarity_metric_from(&(CornuSimilarityConfig){ .unset = 0, __VA_ARGS__ })
/* Pearson's correlation of y_true and y_pred. */
CornuMetric *cornu_pearson_correlation_from(const CornuSimilarityConfig *config);
#define cornu_pearson_correlation(...) \
    cornu_pearson_correlation_from(&(CornuSimilarityConfig){ .unset = 0, __VA_ARGS__ })
/* Lin's concordance correlation, as Keras computes it. */
CornuMetric *cornu_concordance_correlation_from(const CornuSimilarityConfig *config);
#define cornu_concordance_correlation(...) \
    cornu_concordance_correlation_from(&(CornuSimilarityConfig){ .unset = 0, __VA_ARGS__ })

/* The frequency of y_pred equal to y_true, element by element. */
typedef struct {
    char        unset;
    const char *name;        /* default accuracy */
} CornuEqualityConfig;

CornuMetric *cornu_equality_accuracy_from(const CornuEqualityConfig *config);
#define cornu_equality_accuracy(...) \
    cornu_equality_accuracy_from(&(CornuEqualityConfig){ .unset = 0, __VA_ARGS__ })

/* ---- Counts of binary decisions ----
 *
 * y_true and y_pred of one shape; a label that is not 0 is positive, a prediction above a threshold
 * says so. For several thresholds the result is a vector, in their order. The state of each of
 * these metrics is a histogram, f64 (thresholds + 1, labels, 2): how many predictions are above j
 * of the thresholds, of positive ([…][0]) and of negative ones; labels is 1 unless kept apart.
 */

enum { CORNU_MAX_THRESHOLDS = 32 };

typedef struct {
    char        unset;
    double      thresholds[CORNU_MAX_THRESHOLDS]; /* 0 to 1, CORNU_ZERO for 0; default 0.5 */
    const char *name;
} CornuCountConfig;

/* The positive labels whose predictions say so. */
CornuMetric *cornu_true_positives_from(const CornuCountConfig *config);
#define cornu_true_positives(...) \
    cornu_true_positives_from(&(CornuCountConfig){ .unset = 0, __VA_ARGS__ })
/* The negative labels whose predictions say so. */
CornuMetric *cornu_true_negatives_from(const CornuCountConfig *config);
#define cornu_true_negatives(...) \
    cornu_true_negatives_from(&(CornuCountConfig){ .unset = 0, __VA_ARGS__ })
/* The negative labels whose predictions say positive. */
CornuMetric *cornu_false_positives_from(const CornuCountConfig *config);
#define cornu_false_positives(...) \
    cornu_false_positives_from(&(CornuCountConfig){ .unset = 0, __VA_ARGS__ })
/* The positive labels whose predictions say negative. */
CornuMetric *cornu_false_negatives_from(const CornuCountConfig *config);
#define cornu_false_negatives(...) \
    cornu_false_negatives_from(&(CornuCountConfig){ .unset = 0, __VA_ARGS__ })

typedef struct {
    char        unset;
    double      thresholds[CORNU_MAX_THRESHOLDS]; /* default 0.5, or none with top_k */
    int64_t     top_k;      /* only the k largest predictions of a row may be positive */
    int64_t     class_id;   /* the class, of the last axis, that alone counts; CORNU_ZERO for 0 */
    const char *name;
} CornuPrecisionConfig;

/* true positives / (true + false positives); 0 if the divisor is 0. */
CornuMetric *cornu_precision_from(const CornuPrecisionConfig *config);
#define cornu_precision(...) \
    cornu_precision_from(&(CornuPrecisionConfig){ .unset = 0, __VA_ARGS__ })
/* true positives / (true positives + false negatives), likewise. */
CornuMetric *cornu_recall_from(const CornuPrecisionConfig *config);
#define cornu_recall(...) cornu_recall_from(&(CornuPrecisionConfig){ .unset = 0, __VA_ARGS__ })

typedef struct {
    char        unset;
    double      value;            /* the required specificity, …; 0 to 1 */
    int64_t     num_thresholds;   /* default 200, evenly from 0 to 1; 1: 0.5 */
    int64_t     class_id;         /* as above */
    const char *name;
} CornuAtConfig;

/* The best sensitivity over the thresholds where the specificity is at least `value`. */
CornuMetric *cornu_sensitivity_at_specificity_from(const CornuAtConfig *config);
#define cornu_sensitivity_at_specificity(...) \
    cornu_sensitivity_at_specificity_from(&(CornuAtConfig){ .unset = 0, __VA_ARGS__ })
/* The best specificity where the sensitivity is. */
CornuMetric *cornu_specificity_at_sensitivity_from(const CornuAtConfig *config);
#define cornu_specificity_at_sensitivity(...) \
    cornu_specificity_at_sensitivity_from(&(CornuAtConfig){ .unset = 0, __VA_ARGS__ })
/* The best precision where the recall is. */
CornuMetric *cornu_precision_at_recall_from(const CornuAtConfig *config);
#define cornu_precision_at_recall(...) \
    cornu_precision_at_recall_from(&(CornuAtConfig){ .unset = 0, __VA_ARGS__ })
/* The best recall where the precision is. */
CornuMetric *cornu_recall_at_precision_from(const CornuAtConfig *config);
#define cornu_recall_at_precision(...) \
    cornu_recall_at_precision_from(&(CornuAtConfig){ .unset = 0, __VA_ARGS__ })

/* The ROC curve, of true and false positive rates, or recall and precision; the latter with Davis
 * and Goadrich's interpolation ("The relationship between Precision-Recall and ROC curves",
 * 2006). */
typedef enum { CORNU_ROC, CORNU_PR, CORNU_PRGAIN } CornuCurve;
typedef enum { CORNU_INTERPOLATION, CORNU_MINORING, CORNU_MAJORING } CornuSummation;

typedef struct {
    char           unset;
    int64_t        num_thresholds;     /* default 200, at least 2: evenly from 0 to 1 */
    CornuCurve     curve;
    CornuSummation summation_method;
    const char    *name;
    double         thresholds[CORNU_MAX_THRESHOLDS]; /* instead of num_thresholds: ascending; 0 and
                                                        1 are added */
    bool           multi_label;        /* (B, N): the mean of the columns' areas */
    bool           from_logits;
    double         label_weights[CORNU_MAX_THRESHOLDS]; /* of the N columns, 0 or more, CORNU_ZERO
                                                           for 0; default all equal. They weigh
                                                           areas with multi_label, else
                                                           predictions */
    int64_t        num_labels;         /* N, with multi_label; optional */
} CornuAucConfig;

/* The area under the curve. */
CornuMetric *cornu_auc_from(const CornuAucConfig *config);
#define cornu_auc(...) cornu_auc_from(&(CornuAucConfig){ .unset = 0, __VA_ARGS__ })

/* ---- Of classes: y_true and y_pred (B, C) ---- */

/* CORNU_NO_AVERAGE: a vector; logs show its mean. */
typedef enum { CORNU_NO_AVERAGE, CORNU_MICRO, CORNU_MACRO, CORNU_WEIGHTED } CornuAverage;

typedef struct {
    char         unset;
    CornuAverage average;
    double       beta;        /* default 1 */
    double       threshold;   /* above 0, at most 1: predictions above it are positive; default: the
                                 largest of a row is */
    const char  *name;
} CornuFBetaConfig;

/* (1 + beta^2) precision recall / (beta^2 precision + recall) of each class. The states are the
 * true positives, false positives and false negatives of each, f64 (C). */
CornuMetric *cornu_fbeta_score_from(const CornuFBetaConfig *config);
#define cornu_fbeta_score(...) \
    cornu_fbeta_score_from(&(CornuFBetaConfig){ .unset = 0, __VA_ARGS__ })

typedef struct {
    char         unset;
    CornuAverage average;
    double       threshold;
    const char  *name;
} CornuF1Config;

/* fbeta_score with beta 1. */
CornuMetric *cornu_f1_score_from(const CornuF1Config *config);
#define cornu_f1_score(...) cornu_f1_score_from(&(CornuF1Config){ .unset = 0, __VA_ARGS__ })

typedef struct {
    char        unset;
    int64_t     num_classes;        /* required */
    uint64_t    target_classes;     /* bit i selects class i, of the first 64; default all */
    int64_t     ignore_class;       /* the label to ignore; CORNU_ZERO for 0 */
    bool        one_hot_y_true;     /* Keras' sparse_y_true = False: (…, C), the largest counts */
    bool        one_hot_y_pred;
    const char *name;
} CornuIouConfig;

/* Intersection over union: the mean of tp / (tp + fp + fn) over the classes that occur. Labels and
 * predictions are class numbers of any shape; those outside [0, num_classes) are ignored. The state
 * is the confusion matrix, f64 (labels, predictions). */
CornuMetric *cornu_mean_iou_from(const CornuIouConfig *config);
#define cornu_mean_iou(...) cornu_mean_iou_from(&(CornuIouConfig){ .unset = 0, __VA_ARGS__ })

typedef struct {
    char        unset;
    uint64_t    target_classes;     /* bits 0 and 1; default both */
    double      threshold;          /* default 0.5, CORNU_ZERO: predictions at or above it are 1 */
    const char *name;
} CornuBinaryIouConfig;

/* mean_iou of two classes: labels 0 and 1, and numbers on either side of the threshold. */
CornuMetric *cornu_binary_iou_from(const CornuBinaryIouConfig *config);
#define cornu_binary_iou(...) \
    cornu_binary_iou_from(&(CornuBinaryIouConfig){ .unset = 0, __VA_ARGS__ })

/* ---- Of numbers: y_true and y_pred (B, N) ---- */

typedef enum {
    CORNU_UNIFORM_AVERAGE, CORNU_VARIANCE_WEIGHTED_AVERAGE, CORNU_NO_AGGREGATION
} CornuAggregation;

typedef struct {
    char             unset;
    CornuAggregation class_aggregation;
    int64_t          num_regressors;   /* of the adjusted score; default none */
    const char      *name;
} CornuR2ScoreConfig;

/* The coefficient of determination, 1 - sum((t - p)^2) / sum((t - mean t)^2), of each column. The
 * states are sum(t), sum(t^2), sum((t - p)^2) and the sum of weights, f64 (N), and the number of
 * rows, f64. */
CornuMetric *cornu_r2_score_from(const CornuR2ScoreConfig *config);
#define cornu_r2_score(...) \
    cornu_r2_score_from(&(CornuR2ScoreConfig){ .unset = 0, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
