/* Losses of whole vectors along an axis: directions, margins between classes, overlaps. */
#include "loss_internal.h"

typedef struct {
    CornuLoss base;
    int64_t   axis;
} Cosine;

static CornuTensor *cosine_call(const CornuLoss *self, CornuTensor *y_true, CornuTensor *y_pred)
{
    const int64_t axis = ((const Cosine *)self)->axis;
    if (!y_pred || !cornu__same_shapes(self->name, &y_true, y_pred)) return NULL;
    return cornu_op_negative(cornu__cosine(cornu__axis_last(self->name, y_true, axis),
                                           cornu__axis_last(self->name, y_pred, axis)));
}

static const CornuField cosine_fields[] = {
    { "axis", CORNU_FIELD_INTEGER_OR_DEFAULT, offsetof(CornuCosineSimilarityConfig, axis) },
    { "reduction", CORNU_FIELD_REDUCTION, offsetof(CornuCosineSimilarityConfig, reduction) },
    { 0 },
};
CORNU__SERIALIZABLE_CLASS(cosine_similarity, "CosineSimilarity", "cosine_similarity",
                          CornuCosineSimilarityConfig, .fields = cosine_fields);

CornuLoss *cornu_cosine_similarity_from(const CornuCosineSimilarityConfig *config)
{
    Cosine *loss = cornu__loss_create(sizeof *loss, &(CornuLoss){
        .kind = &cornu__cosine_similarity_class, .call = cosine_call,
        .reduction = config->reduction }, config);
    if (!loss) return NULL;
    loss->axis = config->axis;
    return &loss->base;
}

static CornuTensor *categorical_hinge_call(const CornuLoss *self, CornuTensor *y_true,
                                           CornuTensor *y_pred)
{
    if (!y_pred || !cornu__same_shapes(self->name, &y_true, y_pred)) return NULL;
    const int64_t last = cornu__last_axis(y_pred);
    CornuTensor *right = cornu_op_reduce_sum(cornu_op_multiply(y_true, y_pred), last, false);
    CornuTensor *wrong = cornu_op_reduce_max(
        cornu_op_multiply(cornu__one_minus(y_true), y_pred), last, false);
    return cornu_op_relu(cornu_op_shift(cornu_op_subtract(wrong, right), 1.0));
}

CORNU__SERIALIZABLE_CLASS(categorical_hinge, "CategoricalHinge", "categorical_hinge",
                          CornuLossConfig, .fields = cornu__loss_fields);

CornuLoss *cornu_categorical_hinge_from(const CornuLossConfig *config)
{
    return cornu__loss_create(sizeof(CornuLoss), &(CornuLoss){
        .kind = &cornu__categorical_hinge_class, .call = categorical_hinge_call,
        .reduction = config->reduction }, config);
}

/* ---- Overlaps ---- */

typedef struct {
    CornuLoss base;
    double    alpha, beta;
    int64_t   axis[CORNU_MAX_RANK];
} Overlap;

/* The sum over the axes; without any, over the whole batch on all shards. */
static CornuTensor *sum(const Overlap *loss, CornuTensor *x)
{
    if (!x) return NULL;
    const int rank = cornu_tensor_shape(x).rank;
    int64_t   set = 0;
    for (int i = 0; i < CORNU_MAX_RANK && loss->axis[i]; i++) {
        const int64_t given = loss->axis[i], axis = given < 0 ? given + rank : given;
        if (axis < 1 || axis >= rank)
            return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: .axis has %lld, expected 1 to %d, as "
                                    "axis 0 is the batch's, or none for all", loss->base.name,
                                    (long long)(given == CORNU_ZERO ? 0 : given), rank - 1);
        set |= INT64_C(1) << axis;
    }
    return set ? cornu_op_reduce_sum(x, set, false) : cornu_op_all_reduce(cornu_op_sum(x));
}

/* 1 - a / (b + 1e-7) */
static CornuTensor *one_minus_ratio(CornuTensor *a, CornuTensor *b)
{
    return cornu__one_minus(cornu_op_divide(a, cornu_op_shift(b, CORNU__EPSILON)));
}

static CornuTensor *tversky_call(const CornuLoss *self, CornuTensor *y_true, CornuTensor *y_pred)
{
    const Overlap *loss = (const Overlap *)self;
    if (!y_pred || !cornu__same_shapes(self->name, &y_true, y_pred)) return NULL;
    CornuTensor *both = sum(loss, cornu_op_multiply(y_true, y_pred));
    CornuTensor *missed = sum(loss, cornu_op_multiply(cornu__one_minus(y_pred), y_true));
    CornuTensor *wrong = sum(loss, cornu_op_multiply(y_pred, cornu__one_minus(y_true)));
    CornuTensor *all = cornu_op_add(both, cornu_op_scale(missed, loss->alpha));
    return one_minus_ratio(both, cornu_op_add(all, cornu_op_scale(wrong, loss->beta)));
}

static CornuTensor *dice_call(const CornuLoss *self, CornuTensor *y_true, CornuTensor *y_pred)
{
    const Overlap *loss = (const Overlap *)self;
    if (!y_pred || !cornu__same_shapes(self->name, &y_true, y_pred)) return NULL;
    CornuTensor *both = sum(loss, cornu_op_multiply(y_true, y_pred));
    return one_minus_ratio(cornu_op_scale(both, 2.0),
                           cornu_op_add(sum(loss, y_true), sum(loss, y_pred)));
}

#define FIELD(Config, name, kind) { #name, CORNU_FIELD_##kind, offsetof(Config, name) }
static const CornuField tversky_fields[] = {
    FIELD(CornuTverskyConfig, alpha, NUMBER_OR_DEFAULT),
    FIELD(CornuTverskyConfig, beta, NUMBER_OR_DEFAULT),
    FIELD(CornuTverskyConfig, axis, ROW_AXES_OR_NONE),
    FIELD(CornuTverskyConfig, reduction, REDUCTION), { 0 },
};
static const CornuField dice_fields[] = {
    FIELD(CornuDiceConfig, axis, ROW_AXES_OR_NONE),
    FIELD(CornuDiceConfig, reduction, REDUCTION), { 0 },
};
CORNU__SERIALIZABLE_CLASS(tversky, "Tversky", "tversky", CornuTverskyConfig,
                          .fields = tversky_fields);
CORNU__SERIALIZABLE_CLASS(dice, "Dice", "dice", CornuDiceConfig, .fields = dice_fields);

static CornuLoss *overlap_create(Overlap loss, const int64_t *axis, const void *config)
{
    loss.base.across_rows = axis[0] == 0;
    Overlap *made = cornu__loss_create(sizeof *made, &loss.base, config);
    if (!made) return NULL;
    loss.base = made->base;
    *made = loss;
    for (int i = 0; i < CORNU_MAX_RANK; i++) made->axis[i] = axis[i];
    return &made->base;
}

CornuLoss *cornu_tversky_from(const CornuTverskyConfig *config)
{
    return overlap_create((Overlap){
        .base = { .kind = &cornu__tversky_class, .call = tversky_call,
                  .reduction = config->reduction },
        .alpha = cornu__number(config->alpha, 0.5), .beta = cornu__number(config->beta, 0.5) },
        config->axis, config);
}

CornuLoss *cornu_dice_from(const CornuDiceConfig *config)
{
    return overlap_create((Overlap){
        .base = { .kind = &cornu__dice_class, .call = dice_call, .reduction = config->reduction } },
        config->axis, config);
}
