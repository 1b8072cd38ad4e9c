/* Metrics by name, and what they share. */
#include "metric.h"

#include <string.h>

#include "../device/nearest.h"
#include "metric_internal.h"

static void free_metric(CornuMetric *metric) { cornu__release(metric); }

void *cornu__metric_create(size_t size, const CornuMetric *base)
{
    if (cornu_error_pending()) return NULL;
    CornuMetric *metric = cornu__allocate(1, size);
    if (!metric) return cornu__null();
    *metric = *base;
    if (!metric->free) metric->free = free_metric;
    return metric;
}

void cornu_metric_free(CornuMetric *metric)
{
    if (metric && metric->free) metric->free(metric);
}

CornuTensor *cornu__accumulate(CornuTensor *old, CornuTensor *more)
{
    return cornu_op_add(old, cornu_op_all_reduce(cornu_op_convert(more, CORNU_F64)));
}

double cornu__mean_of_results(const CornuMetric *self, const CornuArray *states)
{
    double sum = 0.0;
    for (int64_t i = 0; i < self->result_count; i++) sum += self->result_at(self, states, i);
    return cornu__ratio(sum, (double)self->result_count);
}

/* ---- By name ---- */

typedef enum {
    ACCURACY, CROSSENTROPY, BINARY_ACCURACY, CATEGORICAL_ACCURACY, SPARSE_ACCURACY, TOP_K,
    SPARSE_TOP_K, LOSS, ROOT, COSINE, PEARSON, CONCORDANCE, R2, PRECISION, RECALL, AUC,
    TRUE_POSITIVES, TRUE_NEGATIVES, FALSE_POSITIVES, FALSE_NEGATIVES, F1, FBETA, BINARY_IOU
} Kind;

static const struct {
    const char *name;
    Kind        kind;
    const char *loss;   /* if not of the same name */
} known[] = {
    { "accuracy", ACCURACY, 0 }, { "acc", ACCURACY, 0 },
    { "crossentropy", CROSSENTROPY, 0 }, { "ce", CROSSENTROPY, 0 },
    { "binary_accuracy", BINARY_ACCURACY, 0 },
    { "categorical_accuracy", CATEGORICAL_ACCURACY, 0 },
    { "sparse_categorical_accuracy", SPARSE_ACCURACY, 0 },
    { "top_k_categorical_accuracy", TOP_K, 0 },
    { "sparse_top_k_categorical_accuracy", SPARSE_TOP_K, 0 },
    { "binary_crossentropy", LOSS, 0 }, { "bce", LOSS, 0 }, { "BCE", LOSS, 0 },
    { "categorical_crossentropy", LOSS, 0 }, { "sparse_categorical_crossentropy", LOSS, 0 },
    { "kl_divergence", LOSS, 0 }, { "poisson", LOSS, 0 }, { "hinge", LOSS, 0 },
    { "squared_hinge", LOSS, 0 }, { "categorical_hinge", LOSS, 0 },
    { "log_cosh_error", LOSS, "log_cosh" },
    { "mean_squared_error", LOSS, 0 }, { "mse", LOSS, 0 }, { "MSE", LOSS, 0 },
    { "mean_absolute_error", LOSS, 0 }, { "mae", LOSS, 0 }, { "MAE", LOSS, 0 },
    { "mean_absolute_percentage_error", LOSS, 0 }, { "mape", LOSS, 0 }, { "MAPE", LOSS, 0 },
    { "mean_squared_logarithmic_error", LOSS, 0 }, { "msle", LOSS, 0 }, { "MSLE", LOSS, 0 },
    { "root_mean_squared_error", ROOT, 0 }, { "cosine_similarity", COSINE, 0 },
    { "pearson_correlation", PEARSON, 0 }, { "concordance_correlation", CONCORDANCE, 0 },
    { "r2_score", R2, 0 }, { "precision", PRECISION, 0 }, { "recall", RECALL, 0 },
    { "auc", AUC, 0 }, { "AUC", AUC, 0 }, { "true_positives", TRUE_POSITIVES, 0 },
    { "true_negatives", TRUE_NEGATIVES, 0 }, { "false_positives", FALSE_POSITIVES, 0 },
    { "false_negatives", FALSE_NEGATIVES, 0 }, { "f1_score", F1, 0 }, { "fbeta_score", FBETA, 0 },
    { "binary_io_u", BINARY_IOU, 0 },
};

static CornuMetric *usual(Kind kind, const char *name, const char *loss)
{
    switch (kind) {
    case ACCURACY: return cornu__accuracy(name);
    case CROSSENTROPY: return cornu__crossentropy(name);
    case BINARY_ACCURACY: return cornu_binary_accuracy(.name = name);
    case CATEGORICAL_ACCURACY: return cornu__categorical_accuracy(name);
    case SPARSE_ACCURACY: return cornu__sparse_categorical_accuracy(name);
    case TOP_K: return cornu_top_k_categorical_accuracy(.name = name);
    case SPARSE_TOP_K: return cornu_sparse_top_k_categorical_accuracy(.name = name);
    case LOSS: return cornu_loss_metric(name, cornu_loss(loss ? loss : name));
    case ROOT: return cornu__root_mean_squared_error(name);
    case COSINE: return cornu_cosine_similarity_metric(.name = name);
    case PEARSON: return cornu_pearson_correlation(.name = name);
    case CONCORDANCE: return cornu_concordance_correlation(.name = name);
    case R2: return cornu_r2_score(.name = name);
    case PRECISION: return cornu_precision(.name = name);
    case RECALL: return cornu_recall(.name = name);
    case AUC: return cornu_auc(.name = name);
    case TRUE_POSITIVES: return cornu_true_positives(.name = name);
    case TRUE_NEGATIVES: return cornu_true_negatives(.name = name);
    case FALSE_POSITIVES: return cornu_false_positives(.name = name);
    case FALSE_NEGATIVES: return cornu_false_negatives(.name = name);
    case F1: return cornu_f1_score(.name = name);
    case FBETA: return cornu_fbeta_score(.name = name);
    case BINARY_IOU: return cornu_binary_iou(.name = name);
    }
    return NULL;
}

CornuMetric *cornu_metric(const char *name)
{
    enum { KNOWN = sizeof known / sizeof *known };
    const char *names[KNOWN];
    for (int i = 0; i < KNOWN; i++) {
        names[i] = known[i].name;
        if (name && !strcmp(name, names[i]))
            return usual(known[i].kind, names[i], known[i].loss);
    }
    const char *near = name ? cornu__nearest(name, names, KNOWN) : NULL;
    return cornu__fail_null(CORNU_ERR_ARGUMENT, "metric \"%s\" is not known%s%s%s",
                            name ? name : "(NULL)", near ? "; is \"" : "", near ? near : "",
                            near ? "\" meant?" : "");
}
