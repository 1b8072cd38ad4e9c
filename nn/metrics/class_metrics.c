/* Metrics of classes: F-scores, and intersection over union. Source:
 * keras/src/metrics/f_score_metrics.py, iou_metrics.py. */
#include <math.h>

#include "../fields/field_internal.h"
#include "metric_internal.h"

/* ---- F-scores ---- */

typedef struct {
    CornuMetric  base;
    CornuAverage average;
    double       beta, threshold;   /* threshold 0: the largest of a row */
    int64_t      classes;
} FScore;

enum { TP, FP, FN };

static CornuStatus build_f_score(CornuMetric *self, CornuShape y_true, CornuShape y_pred)
{
    FScore   *score = (FScore *)self;
    CornuText a, b;
    if (y_pred.rank != 2 || y_true.rank != 2)
        return cornu__fail(CORNU_ERR_SHAPE, "metric %s: y_true is %s, y_pred %s; expected (B, C)",
                           self->name, cornu_shape_print(&a, y_true),
                           cornu_shape_print(&b, y_pred));
    score->classes = y_pred.extent[1];
    for (int i = 0; i < self->state_count; i++)
        self->states[i] = cornu_type(CORNU_F64, score->classes);
    if (score->average == CORNU_NO_AVERAGE) self->result_count = score->classes;
    return CORNU_OK;
}

/* Which predictions count as positive, f32. */
static CornuTensor *decide(const FScore *score, CornuTensor *p)
{
    CornuTensor *yes;
    if (score->threshold > 0.0) {
        yes = cornu_op_compare(p, CORNU_GREATER, cornu_op_constant_like(p, score->threshold));
        return cornu_op_convert(yes, CORNU_F32);
    }
    CornuTensor *most = cornu_op_reduce_max(p, cornu__last_axis(p), true);
    CornuTensor *size = cornu_op_absolute(p);
    CornuTensor *seen = cornu_op_compare(size, CORNU_GREATER, cornu_op_constant_like(p, 1e-9));
    yes = cornu_op_compare(p, CORNU_GREATER_EQUAL, most);
    return cornu_op_multiply(cornu_op_convert(yes, CORNU_F32), cornu_op_convert(seen, CORNU_F32));
}

/* Weighted sums over the rows of x. */
static CornuTensor *column_sums(CornuTensor *x, const CornuMetricCall *call)
{
    CornuTensor *weighted = cornu__valid_rows(cornu__weighted(x, call), call->valid);
    return weighted ? cornu_op_reduce_sum(weighted, 1, false) : NULL;
}

static CornuStatus update_f_score(const CornuMetric *self, const CornuMetricCall *call,
                                  CornuTensor *const *old, CornuTensor **new_states)
{
    CornuTensor *t = call->y_true;
    if (!call->y_pred || !cornu__same_shapes(self->name, &t, call->y_pred))
        return cornu_error_status();
    CornuTensor *p = decide((const FScore *)self, call->y_pred);
    CornuTensor *parts[] = { [TP] = cornu_op_multiply(p, t),
                             [FP] = cornu_op_multiply(p, cornu__one_minus(t)),
                             [FN] = cornu_op_multiply(cornu__one_minus(p), t) };
    for (int i = 0; i < 3; i++)
        if (!(new_states[i] = cornu__accumulate(old[i], column_sums(parts[i], call))))
            return cornu_error_status();
    return CORNU_OK;
}

static double f_score(const FScore *score, double tp, double fp, double fn)
{
    const double precision = tp / (tp + fp + CORNU__EPSILON);
    const double recall = tp / (tp + fn + CORNU__EPSILON), square = score->beta * score->beta;
    return (1.0 + square) * precision * recall / (square * precision + recall + CORNU__EPSILON);
}

static double f_score_at(const CornuMetric *self, const CornuArray *states, int64_t i)
{
    return f_score((const FScore *)self, cornu__numbers(states[TP])[i],
                   cornu__numbers(states[FP])[i], cornu__numbers(states[FN])[i]);
}

static double f_score_result(const CornuMetric *self, const CornuArray *states)
{
    const FScore *score = (const FScore *)self;
    double        sum[3] = { 0 }, mean = 0.0, weighted = 0.0;
    for (int64_t i = 0; i < score->classes; i++) {
        for (int s = 0; s < 3; s++) sum[s] += cornu__numbers(states[s])[i];
        const double each = f_score_at(self, states, i);
        mean += each;
        weighted += each * (cornu__numbers(states[TP])[i] + cornu__numbers(states[FN])[i]);
    }
    switch (score->average) {
    case CORNU_MICRO: return f_score(score, sum[TP], sum[FP], sum[FN]);
    case CORNU_WEIGHTED: return weighted / (sum[TP] + sum[FN] + CORNU__EPSILON);
    default: return mean / (double)score->classes;
    }
}

const CornuFieldKind cornu_field_average = {
    .name = "average", CORNU__FIELD_OF_WORDS(CornuAverage),
    .words = { [CORNU_MICRO] = "micro", [CORNU_MACRO] = "macro", [CORNU_WEIGHTED] = "weighted" },
};

#define FIELD(Config, name, kind) { #name, CORNU_FIELD_##kind, offsetof(Config, name) }
static const CornuField fbeta_fields[] = {
    FIELD(CornuFBetaConfig, average, AVERAGE), FIELD(CornuFBetaConfig, beta, NUMBER_OR_DEFAULT),
    FIELD(CornuFBetaConfig, threshold, NUMBER_OR_NONE), { 0 },
};
static const CornuField f1_fields[] = {
    FIELD(CornuF1Config, average, AVERAGE), FIELD(CornuF1Config, threshold, NUMBER_OR_NONE), { 0 },
};
CORNU__SERIALIZABLE_CLASS(fbeta_score, "FBetaScore", "fbeta_score", CornuFBetaConfig,
                          .fields = fbeta_fields);
CORNU__SERIALIZABLE_CLASS(f1_score, "F1Score", "f1_score", CornuF1Config, .fields = f1_fields);

static CornuMetric *create_f_score(const CornuSerializableClass *kind, const void *config,
                                   FScore score)
{
    const char *name = kind->name;
    if (cornu__refused()) return NULL;
    if (!(score.beta > 0.0))
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: .beta is %g, expected more than 0", name,
                                score.beta);
    if (!(score.threshold >= 0.0 && score.threshold <= 1.0))
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: .threshold is %g, expected above 0 and at "
                                "most 1", name, score.threshold);
    if ((unsigned)score.average > CORNU_WEIGHTED)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: .average is %d, expected "
                                "CORNU_NO_AVERAGE, CORNU_MICRO, CORNU_MACRO or CORNU_WEIGHTED",
                                name, (int)score.average);
    FScore *made = cornu__metric_create(sizeof *made, &(CornuMetric){
        .kind = kind, .state_count = 3, .build = build_f_score, .update = update_f_score,
        .result = f_score_result,
        .result_at = score.average == CORNU_NO_AVERAGE ? f_score_at : NULL }, config);
    if (!made) return NULL;
    score.base = made->base;
    *made = score;
    return &made->base;
}

CornuMetric *cornu_fbeta_score_from(const CornuFBetaConfig *config)
{
    return create_f_score(&cornu__fbeta_score_class, config, (FScore){
        .average = config->average, .beta = config->beta != 0.0 ? config->beta : 1.0,
        .threshold = config->threshold });
}

CornuMetric *cornu_f1_score_from(const CornuF1Config *config)
{
    return create_f_score(&cornu__f1_score_class, config, (FScore){
        .average = config->average, .beta = 1.0, .threshold = config->threshold });
}

/* ---- Intersection over union ---- */

typedef struct {
    CornuMetric base;
    int64_t     classes, ignored;
    uint64_t    targets;
    bool        one_hot_true, one_hot_pred, ignores, binary;
    double      threshold;
} Iou;

/* Class numbers, i32 (N). */
static CornuTensor *class_numbers(CornuTensor *x, bool one_hot)
{
    if (!x) return NULL;
    if (one_hot) {
        CornuTensor *f32 = cornu_op_convert(x, CORNU_F32);
        x = f32 ? cornu_op_argmax(f32, cornu_tensor_shape(f32).rank - 1) : NULL;
    }
    if (!x) return NULL;
    const int64_t count = cornu_shape_count(cornu_tensor_shape(x));
    return cornu_op_reshape(cornu_op_convert(x, CORNU_I32), cornu_shape(count));
}

/* x where it is a class, else 0, and *weight 0. */
static CornuTensor *in_bounds(const Iou *iou, CornuTensor *x, CornuTensor **weight)
{
    if (!x || !*weight) return NULL;
    CornuTensor *held = cornu_op_clip(x, 0.0, (double)(iou->classes - 1));
    CornuTensor *within = cornu_op_compare(held, CORNU_EQUAL, x);
    *weight = cornu_op_select(within, *weight, cornu_op_constant_like(*weight, 0.0));
    return held;
}

static CornuStatus update_iou(const CornuMetric *self, const CornuMetricCall *call,
                              CornuTensor *const *old, CornuTensor **new_states)
{
    const Iou   *iou = (const Iou *)self;
    CornuTensor *p = call->y_pred;
    if (iou->binary && p)
        p = cornu_op_compare(p, CORNU_GREATER_EQUAL, cornu_op_constant_like(p, iou->threshold));
    p = class_numbers(p, iou->one_hot_pred);
    CornuTensor *t = class_numbers(call->y_true, iou->one_hot_true);
    if (!t || !p) return cornu_error_status();
    const CornuShape shape = cornu_tensor_shape(p);
    CornuText        a, b;
    if (!cornu_shape_equal(shape, cornu_tensor_shape(t)))
        return cornu__fail(CORNU_ERR_SHAPE, "metric %s: y_true is %s, y_pred %s; expected a label "
                           "for each prediction", self->name,
                           cornu_shape_print(&a, cornu_tensor_shape(call->y_true)),
                           cornu_shape_print(&b, cornu_tensor_shape(call->y_pred)));
    CornuShape each = cornu_tensor_shape(call->y_pred);
    if (iou->one_hot_pred) each.extent[--each.rank] = 0;
    CornuTensor *ones = cornu_op_constant(cornu_tensor_graph(p), cornu_type_from(CORNU_F32, each),
                                          1.0);
    CornuTensor *weight = cornu_op_reshape(cornu__value_weights(ones, call), shape);
    if (iou->ignores && weight) {
        CornuTensor *counts = cornu_op_compare(
            t, CORNU_NOT_EQUAL, cornu_op_constant_like(t, (double)iou->ignored));
        weight = cornu_op_select(counts, weight, cornu_op_constant_like(weight, 0.0));
    }
    t = in_bounds(iou, t, &weight);
    p = in_bounds(iou, p, &weight);
    if (!t || !p) return cornu_error_status();
    CornuTensor *row = cornu_op_multiply(t, cornu_op_constant_like(t, (double)iou->classes));
    CornuTensor *sums = cornu_op_segment_sum(
        cornu_op_reshape(weight, cornu_shape(shape.extent[0], 1)), cornu_op_add(row, p),
        iou->classes * iou->classes);
    new_states[0] = cornu__accumulate(old[0], cornu_op_reshape(sums, self->states[0].shape));
    return new_states[0] ? CORNU_OK : cornu_error_status();
}

static double iou_result(const CornuMetric *self, const CornuArray *states)
{
    const Iou    *iou = (const Iou *)self;
    const double *matrix = cornu__numbers(states[0]);
    double        sum = 0.0, seen = 0.0;
    for (int64_t c = 0; c < iou->classes; c++) {
        double all = -matrix[c * iou->classes + c];
        if (iou->targets && !(c < 64 && iou->targets >> c & 1)) continue;
        for (int64_t k = 0; k < iou->classes; k++)
            all += matrix[c * iou->classes + k] + matrix[k * iou->classes + c];
        if (all <= 1e-9) continue;
        sum += matrix[c * iou->classes + c] / (all + CORNU__EPSILON);
        seen += 1.0;
    }
    return sum / (seen + CORNU__EPSILON);
}

/* Keras' MeanIoU covers all classes, IoU some. */
static const CornuField mean_iou_fields[] = {
    FIELD(CornuIouConfig, num_classes, INTEGER),
    FIELD(CornuIouConfig, ignore_class, INTEGER_OR_NONE),
    { "sparse_y_true", CORNU_FIELD_NOT, offsetof(CornuIouConfig, one_hot_y_true) },
    { "sparse_y_pred", CORNU_FIELD_NOT, offsetof(CornuIouConfig, one_hot_y_pred) }, { 0 },
};
static const CornuField iou_fields[] = {
    FIELD(CornuIouConfig, num_classes, INTEGER),
    { "target_class_ids", CORNU_FIELD_CLASSES, offsetof(CornuIouConfig, target_classes) },
    FIELD(CornuIouConfig, ignore_class, INTEGER_OR_NONE),
    { "sparse_y_true", CORNU_FIELD_NOT, offsetof(CornuIouConfig, one_hot_y_true) },
    { "sparse_y_pred", CORNU_FIELD_NOT, offsetof(CornuIouConfig, one_hot_y_pred) }, { 0 },
};
static const CornuField binary_iou_fields[] = {
    { "target_class_ids", CORNU_FIELD_CLASSES, offsetof(CornuBinaryIouConfig, target_classes) },
    FIELD(CornuBinaryIouConfig, threshold, NUMBER_OR_DEFAULT), { 0 },
};

CORNU__SERIALIZABLE_CLASS(mean_iou, "MeanIoU", "mean_io_u", CornuIouConfig,
                          .fields = mean_iou_fields, .dtype = "int32");
CORNU__SERIALIZABLE_CLASS_OF(iou, cornu_mean_iou_from, "IoU", "io_u", CornuIouConfig,
                             .fields = iou_fields, .dtype = "int32");
/* Keras has classes of their own for one-hot labels, whose predictions are one-hot unless
 * sparse_y_pred. */
typedef struct {
    int64_t     num_classes;
    uint64_t    target_classes;
    int64_t     ignore_class;
    bool        sparse_y_pred;
    const char *name;
} OneHotIouConfig;

static const CornuField one_hot_mean_iou_fields[] = {
    FIELD(OneHotIouConfig, num_classes, INTEGER),
    FIELD(OneHotIouConfig, ignore_class, INTEGER_OR_NONE),
    FIELD(OneHotIouConfig, sparse_y_pred, FLAG), { 0 },
};
static const CornuField one_hot_iou_fields[] = {
    FIELD(OneHotIouConfig, num_classes, INTEGER),
    { "target_class_ids", CORNU_FIELD_CLASSES, offsetof(OneHotIouConfig, target_classes) },
    FIELD(OneHotIouConfig, ignore_class, INTEGER_OR_NONE),
    FIELD(OneHotIouConfig, sparse_y_pred, FLAG), { 0 },
};
static CornuMetric *one_hot_mean_iou(const OneHotIouConfig *config);
static CornuMetric *one_hot_iou(const OneHotIouConfig *config);
CORNU__SERIALIZABLE_CLASS_OF(one_hot_mean_iou, one_hot_mean_iou, "OneHotMeanIoU",
                             "one_hot_mean_io_u", OneHotIouConfig,
                             .fields = one_hot_mean_iou_fields, .dtype = "int32");
CORNU__SERIALIZABLE_CLASS_OF(one_hot_iou, one_hot_iou, "OneHotIoU", "one_hot_io_u", OneHotIouConfig,
                             .fields = one_hot_iou_fields, .dtype = "int32");
CORNU__SERIALIZABLE_CLASS(binary_iou, "BinaryIoU", "binary_io_u", CornuBinaryIouConfig,
                          .fields = binary_iou_fields, .dtype = "int32");

static CornuMetric *create_iou(const CornuSerializableClass *kind, const void *config, Iou iou)
{
    const char *name = kind->name;
    if (cornu__refused()) return NULL;
    if (iou.classes < 1 || iou.classes > 46340)   /* so that the square fits an i32 */
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: .num_classes is %lld, expected 1 to 46340",
                                name, (long long)iou.classes);
    if (iou.classes < 64 && iou.targets >> iou.classes)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: .target_classes are 0x%llx, expected bits "
                                "of %lld classes", name, (unsigned long long)iou.targets,
                                (long long)iou.classes);
    Iou *made = cornu__metric_create(sizeof *made, &(CornuMetric){
        .kind = kind, .state_count = 1,
        .states = { cornu_type(CORNU_F64, iou.classes, iou.classes) }, .update = update_iou,
        .result = iou_result }, config);
    if (!made) return NULL;
    iou.base = made->base;
    *made = iou;
    return &made->base;
}

static CornuMetric *one_hot(const CornuSerializableClass *kind, const OneHotIouConfig *config)
{
    return create_iou(kind, config, (Iou){
        .classes = config->num_classes, .targets = config->target_classes, .one_hot_true = true,
        .one_hot_pred = !config->sparse_y_pred, .ignores = config->ignore_class != 0,
        .ignored = cornu__integer(config->ignore_class, 0) });
}

static CornuMetric *one_hot_mean_iou(const OneHotIouConfig *config)
{
    return one_hot(&cornu__one_hot_mean_iou_class, config);
}

static CornuMetric *one_hot_iou(const OneHotIouConfig *config)
{
    return one_hot(&cornu__one_hot_iou_class, config);
}

CornuMetric *cornu_mean_iou_from(const CornuIouConfig *config)
{
    return create_iou(config->target_classes ? &cornu__iou_class : &cornu__mean_iou_class, config,
                      (Iou){ .classes = config->num_classes, .targets = config->target_classes,
                             .one_hot_true = config->one_hot_y_true,
                             .one_hot_pred = config->one_hot_y_pred,
                             .ignores = config->ignore_class != 0,
                             .ignored = cornu__integer(config->ignore_class, 0) });
}

CornuMetric *cornu_binary_iou_from(const CornuBinaryIouConfig *config)
{
    return create_iou(&cornu__binary_iou_class, config, (Iou){
        .classes = 2, .targets = config->target_classes, .binary = true,
        .threshold = cornu__number(config->threshold, 0.5) });
}
