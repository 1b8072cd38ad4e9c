/* The losses, with Keras' names, arguments and formulas; loss.h says what all do. */
#ifndef CORNU_NN_LOSSES_H
#define CORNU_NN_LOSSES_H

#include "loss.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Of classes. `axis` is that of the classes, not the batch's; default the last one. ----
 *
 * Where y_pred is what a softmax along the last axis, or a sigmoid, gives (a last layer's
 * activation, say, in fit and in hand-written steps alike), the sparse, categorical, binary and
 * binary focal crossentropies use its argument, the logits, as Keras on TensorFlow does:
 * probabilities that round to 0 or 1 lose neither value nor gradient. With .from_logits that is
 * logged as a warning. */

typedef struct {
    char           unset;
    bool           from_logits;   /* else y_pred are probabilities */
    int64_t        ignore_class;  /* the class to ignore; default none, CORNU_ZERO for 0 */
    int64_t        axis;
    CornuReduction reduction;
    const char    *name;
} CornuSparseCrossentropyConfig;

/* Labels (B, …) or (B, …, 1), whole numbers of any dtype, against y_pred (B, …, C):
 *   - log p[label], p = clip(y_pred / sum(y_pred), 1e-7, 1 - 1e-7), or softmax of logits.
 * p of predictions that sum to 0 is 1e-7, not NaN. A label outside [0, C) that is not ignored, or
 * a fractional one, is CORNU_ERR_VALUE when the step runs. The mean is over the labels that are
 * not ignored. */
CornuLoss *cornu_sparse_categorical_crossentropy_from(const CornuSparseCrossentropyConfig *config);
#define cornu_sparse_categorical_crossentropy(...) \
    cornu_sparse_categorical_crossentropy_from(    \
        &(CornuSparseCrossentropyConfig){ .unset = 0, __VA_ARGS__ })

typedef struct {
    char           unset;
    bool           from_logits;
    double         label_smoothing;   /* 0 to 1: y_true becomes y_true (1 - s) + s / classes */
    int64_t        axis;
    CornuReduction reduction;
    const char    *name;
} CornuCrossentropyConfig;

/* y_true (B, …, C), as y_pred: - sum over C of y_true log p. */
CornuLoss *cornu_categorical_crossentropy_from(const CornuCrossentropyConfig *config);
#define cornu_categorical_crossentropy(...) \
    cornu_categorical_crossentropy_from(&(CornuCrossentropyConfig){ .unset = 0, __VA_ARGS__ })

/* y_true and y_pred (B, …, N): the mean over N of - y log p - (1 - y) log(1 - p), with
 * p = clip(y_pred, 1e-7, 1 - 1e-7), or sigmoid of logits. Smoothing: y (1 - s) + s / 2. */
CornuLoss *cornu_binary_crossentropy_from(const CornuCrossentropyConfig *config);
#define cornu_binary_crossentropy(...) \
    cornu_binary_crossentropy_from(&(CornuCrossentropyConfig){ .unset = 0, __VA_ARGS__ })

typedef struct {
    char           unset;
    double         alpha;             /* default 0.25; CORNU_ZERO */
    double         gamma;             /* default 2; CORNU_ZERO    */
    bool           from_logits;
    double         label_smoothing;
    int64_t        axis;
    CornuReduction reduction;
    const char    *name;
} CornuCategoricalFocalConfig;

/* - sum over C of alpha (1 - p)^gamma y_true log p, with categorical_crossentropy's p; logits pass
 * through softmax first. Source: Lin et al., "Focal Loss for Dense Object Detection", arXiv
 * 1708.02002. */
CornuLoss *cornu_categorical_focal_crossentropy_from(const CornuCategoricalFocalConfig *config);
#define cornu_categorical_focal_crossentropy(...) \
    cornu_categorical_focal_crossentropy_from(    \
        &(CornuCategoricalFocalConfig){ .unset = 0, __VA_ARGS__ })

typedef struct {
    char           unset;
    bool           apply_class_balancing;
    double         alpha;             /* default 0.25; CORNU_ZERO. With class balancing, alpha is
                                         the weight of y = 1, 1 - alpha that of y = 0 */
    double         gamma;             /* default 2; CORNU_ZERO */
    bool           from_logits;
    double         label_smoothing;
    int64_t        axis;
    CornuReduction reduction;
    const char    *name;
} CornuBinaryFocalConfig;

/* The mean over N of (1 - q)^gamma times the binary crossentropy, q = y p + (1 - y)(1 - p). */
CornuLoss *cornu_binary_focal_crossentropy_from(const CornuBinaryFocalConfig *config);
#define cornu_binary_focal_crossentropy(...) \
    cornu_binary_focal_crossentropy_from(&(CornuBinaryFocalConfig){ .unset = 0, __VA_ARGS__ })

typedef struct {
    char           unset;
    double         q;   /* above 0 and below 1; default 0.5 */
    CornuReduction reduction;
    const char    *name;
} CornuGeneralizedCrossentropyConfig;

/* (1 - p[label]^q) / q, labels as sparse_categorical_crossentropy's; y_pred are probabilities, used
 * unchanged. It tends to the crossentropy for q near 0, to the absolute error near 1. Source: Zhang
 * and Sabuncu, "Generalized Cross Entropy Loss", arXiv 1805.07836. */
CornuLoss *cornu_categorical_generalized_cross_entropy_from(
    const CornuGeneralizedCrossentropyConfig *config);
#define cornu_categorical_generalized_cross_entropy(...) \
    cornu_categorical_generalized_cross_entropy_from(    \
        &(CornuGeneralizedCrossentropyConfig){ .unset = 0, __VA_ARGS__ })

/* - log of the probability that the logits y_pred (B, T, C) spell the labels y_true (B, N): class 0
 * is the blank, and a repeated class counts once unless a blank separates the two. Trailing zeros
 * pad a row of labels. The T steps run in sequence; for the gradient each keeps 2 N + 1 numbers per
 * row. Labels that do not fit in T steps cost about 1e5. A label outside [0, C) is CORNU_ERR_VALUE
 * when the step runs. Source: Graves et al., "Connectionist Temporal Classification", ICML 2006, as
 * computed by optax, and hence by Keras (keras/src/backend/jax/nn.py). */
CornuLoss *cornu_ctc_from(const CornuLossConfig *config);
#define cornu_ctc(...) cornu_ctc_from(&(CornuLossConfig){ .unset = 0, __VA_ARGS__ })

/* The sum over C of t log(t / p), both clipped to [1e-7, 1]. */
CornuLoss *cornu_kl_divergence_from(const CornuLossConfig *config);
#define cornu_kl_divergence(...) \
    cornu_kl_divergence_from(&(CornuLossConfig){ .unset = 0, __VA_ARGS__ })

/* ---- Of numbers: y_true and y_pred (B, …, N), the mean over N of … ----
 * As in Keras an axis of extent 1 after the batch's, of either, is broadcast. */

/* (t - p)^2 */
CornuLoss *cornu_mean_squared_error_from(const CornuLossConfig *config);
#define cornu_mean_squared_error(...) \
    cornu_mean_squared_error_from(&(CornuLossConfig){ .unset = 0, __VA_ARGS__ })

/* |t - p| */
CornuLoss *cornu_mean_absolute_error_from(const CornuLossConfig *config);
#define cornu_mean_absolute_error(...) \
    cornu_mean_absolute_error_from(&(CornuLossConfig){ .unset = 0, __VA_ARGS__ })

/* 100 |t - p| / max(|t|, 1e-7) */
CornuLoss *cornu_mean_absolute_percentage_error_from(const CornuLossConfig *config);
#define cornu_mean_absolute_percentage_error(...) \
    cornu_mean_absolute_percentage_error_from(&(CornuLossConfig){ .unset = 0, __VA_ARGS__ })

/* (log(1 + max(t, 1e-7)) - log(1 + max(p, 1e-7)))^2 */
CornuLoss *cornu_mean_squared_logarithmic_error_from(const CornuLossConfig *config);
#define cornu_mean_squared_logarithmic_error(...) \
    cornu_mean_squared_logarithmic_error_from(&(CornuLossConfig){ .unset = 0, __VA_ARGS__ })

/* log(cosh(p - t)) */
CornuLoss *cornu_log_cosh_from(const CornuLossConfig *config);
#define cornu_log_cosh(...) cornu_log_cosh_from(&(CornuLossConfig){ .unset = 0, __VA_ARGS__ })

/* p - t log(p + 1e-7) */
CornuLoss *cornu_poisson_from(const CornuLossConfig *config);
#define cornu_poisson(...) cornu_poisson_from(&(CornuLossConfig){ .unset = 0, __VA_ARGS__ })

typedef struct {
    char           unset;
    double         delta;   /* default 1 */
    CornuReduction reduction;
    const char    *name;
} CornuHuberConfig;

/* e^2 / 2 where |e| <= delta, else delta |e| - delta^2 / 2; e = p - t. */
CornuLoss *cornu_huber_from(const CornuHuberConfig *config);
#define cornu_huber(...) cornu_huber_from(&(CornuHuberConfig){ .unset = 0, __VA_ARGS__ })

typedef struct {
    char           unset;
    int64_t        axis;   /* default: the last one */
    CornuReduction reduction;
    const char    *name;
} CornuCosineSimilarityConfig;

/* - the cosine of the angle between the vectors t and p along the axis; 0 if one of them is 0. */
CornuLoss *cornu_cosine_similarity_from(const CornuCosineSimilarityConfig *config);
#define cornu_cosine_similarity(...) \
    cornu_cosine_similarity_from(&(CornuCosineSimilarityConfig){ .unset = 0, __VA_ARGS__ })

/* ---- Of margins. Where all labels t of a batch are 0 or 1, 0 becomes -1. ---- */

/* The mean over N of max(1 - t p, 0). */
CornuLoss *cornu_hinge_from(const CornuLossConfig *config);
#define cornu_hinge(...) cornu_hinge_from(&(CornuLossConfig){ .unset = 0, __VA_ARGS__ })
/* The mean over N of max(1 - t p, 0)^2. */
CornuLoss *cornu_squared_hinge_from(const CornuLossConfig *config);
#define cornu_squared_hinge(...) \
    cornu_squared_hinge_from(&(CornuLossConfig){ .unset = 0, __VA_ARGS__ })

/* max(1 + max over C of (1 - t) p - sum over C of t p, 0); t is 0 or 1, not converted to signs. */
CornuLoss *cornu_categorical_hinge_from(const CornuLossConfig *config);
#define cornu_categorical_hinge(...) \
    cornu_categorical_hinge_from(&(CornuLossConfig){ .unset = 0, __VA_ARGS__ })

/* ---- Of overlaps: sums over `axis` of y_true and y_pred of one shape ---- */

typedef struct {
    char           unset;
    double         alpha, beta;            /* default 0.5; CORNU_ZERO */
    int64_t        axis[CORNU_MAX_RANK];   /* axes other than the batch's, up to the first 0;
                                              negative ones count from the end. Default: all axes,
                                              for one loss of the whole batch */
    CornuReduction reduction;
    const char    *name;
} CornuTverskyConfig;

/* 1 - tp / (tp + alpha sum((1 - p) t) + beta sum(p (1 - t)) + 1e-7), tp = sum(t p).
 * Source: Salehi et al., "Tversky loss function for image segmentation", arXiv 1706.05721. */
CornuLoss *cornu_tversky_from(const CornuTverskyConfig *config);
#define cornu_tversky(...) cornu_tversky_from(&(CornuTverskyConfig){ .unset = 0, __VA_ARGS__ })

typedef struct {
    char           unset;
    int64_t        axis[CORNU_MAX_RANK];   /* as tversky's */
    CornuReduction reduction;
    const char    *name;
} CornuDiceConfig;

/* 1 - 2 sum(t p) / (sum(t) + sum(p) + 1e-7) */
CornuLoss *cornu_dice_from(const CornuDiceConfig *config);
#define cornu_dice(...) cornu_dice_from(&(CornuDiceConfig){ .unset = 0, __VA_ARGS__ })

/* ---- Of pairs ---- */

typedef struct {
    char           unset;
    double         gamma;            /* default 80; CORNU_ZERO */
    double         margin;           /* default 0.4; CORNU_ZERO */
    bool           keep_diagonal;    /* a row is also compared with itself */
    CornuReduction reduction;
    const char    *name;
} CornuCircleConfig;

/* Classes y_true (B) of embeddings y_pred (B, N) of length 1, with d = max(1 - y_pred y_pred^T, 0):
 *   log(1 + sum over rows of the same class of exp(gamma max(d + m, 0) (d - m))
 *         * sum over rows of other classes of exp(gamma max(1 + m - d, 0) (1 - m - d)))
 * Rows are those of the whole batch, of all shards. The mean is over losses above 0. Source: Sun et
 * al., "Circle Loss", arXiv 2002.10857. */
CornuLoss *cornu_circle_from(const CornuCircleConfig *config);
#define cornu_circle(...) cornu_circle_from(&(CornuCircleConfig){ .unset = 0, __VA_ARGS__ })

#define CORNU_SPARSE_CATEGORICAL_CROSSENTROPY cornu_loss("sparse_categorical_crossentropy")
#define CORNU_CATEGORICAL_CROSSENTROPY        cornu_loss("categorical_crossentropy")
#define CORNU_BINARY_CROSSENTROPY             cornu_loss("binary_crossentropy")
#define CORNU_MEAN_SQUARED_ERROR              cornu_loss("mean_squared_error")

#ifdef __cplusplus
}
#endif
#endif
