/* Losses that are means over the last axis of a function of each pair of numbers. */
#include <math.h>

#include "loss_internal.h"

typedef struct Elementwise Elementwise;

struct Elementwise {
    CornuLoss    base;
    CornuTensor *(*each)(const Elementwise *self, CornuTensor *t, CornuTensor *p);
    double       delta;
};

/* Both of one shape: Keras broadcasts an axis of extent 1, of labels or of predictions. */
static bool broadcast_pair(const char *who, CornuTensor **y_true, CornuTensor **y_pred)
{
    *y_true = cornu_op_convert(cornu__match_ranks(*y_true, *y_pred), CORNU_F32);
    if (!*y_true || !*y_pred) return false;
    const CornuShape t = cornu_tensor_shape(*y_true), p = cornu_tensor_shape(*y_pred);
    CornuShape       both = p;
    bool             fits = t.rank == p.rank;
    for (int i = 0; fits && i < p.rank; i++) {
        if (p.extent[i] == 1 && i > 0) both.extent[i] = t.extent[i];
        fits = t.extent[i] == both.extent[i] || (t.extent[i] == 1 && i > 0);
    }
    if (fits) {
        *y_true = cornu_op_broadcast(*y_true, both);
        *y_pred = cornu_op_broadcast(*y_pred, both);
        return *y_true && *y_pred;
    }
    CornuText a, b;
    cornu__fail_null(CORNU_ERR_SHAPE, "%s: y_true is %s, y_pred %s; expected the same, or an axis "
                     "of extent 1 after the batch's", who, cornu_shape_print(&a, t),
                     cornu_shape_print(&b, p));
    return false;
}

static CornuTensor *elementwise_call(const CornuLoss *self, CornuTensor *y_true,
                                     CornuTensor *y_pred)
{
    const Elementwise *loss = (const Elementwise *)self;
    if (!broadcast_pair(self->name, &y_true, &y_pred)) return NULL;
    CornuTensor *each = loss->each(loss, y_true, y_pred);
    if (!each || cornu_tensor_shape(each).rank < 2) return each;
    return cornu_op_reduce_mean(each, cornu__last_axis(each), false);
}

/* ---- Errors ---- */

static CornuTensor *squared(const Elementwise *self, CornuTensor *t, CornuTensor *p)
{
    (void)self;
    return cornu_op_square(cornu_op_subtract(t, p));
}

static CornuTensor *absolute(const Elementwise *self, CornuTensor *t, CornuTensor *p)
{
    (void)self;
    return cornu_op_absolute(cornu_op_subtract(t, p));
}

static CornuTensor *at_least(CornuTensor *x, double least)
{
    return cornu_op_maximum(x, cornu_op_constant_like(x, least));
}

static CornuTensor *percentage(const Elementwise *self, CornuTensor *t, CornuTensor *p)
{
    CornuTensor *size = at_least(cornu_op_absolute(t), CORNU__EPSILON);
    return cornu_op_scale(cornu_op_divide(absolute(self, t, p), size), 100.0);
}

/* log(1 + max(x, 1e-7)) */
static CornuTensor *logarithm(CornuTensor *x)
{
    return cornu_op_log(cornu_op_shift(at_least(x, CORNU__EPSILON), 1.0));
}

static CornuTensor *logarithmic(const Elementwise *self, CornuTensor *t, CornuTensor *p)
{
    return squared(self, logarithm(p), logarithm(t));
}

static CornuTensor *huber(const Elementwise *self, CornuTensor *t, CornuTensor *p)
{
    const double delta = self->delta;
    CornuTensor *error = cornu_op_subtract(p, t), *size = cornu_op_absolute(error);
    CornuTensor *small = cornu_op_scale(cornu_op_square(error), 0.5);
    CornuTensor *large = cornu_op_shift(cornu_op_scale(size, delta), -0.5 * delta * delta);
    CornuTensor *is_small = cornu_op_compare(size, CORNU_LESS_EQUAL,
                                             cornu_op_constant_like(size, delta));
    return cornu_op_select(is_small, small, large);
}

/* log cosh e = e + softplus(-2 e) - log 2 */
static CornuTensor *log_cosh(const Elementwise *self, CornuTensor *t, CornuTensor *p)
{
    (void)self;
    CornuTensor *error = cornu_op_subtract(p, t);
    CornuTensor *soft = cornu_op_softplus(cornu_op_scale(error, -2.0));
    return cornu_op_shift(cornu_op_add(error, soft), -log(2.0));
}

static CornuTensor *poisson(const Elementwise *self, CornuTensor *t, CornuTensor *p)
{
    (void)self;
    CornuTensor *log_p = cornu_op_log(cornu_op_shift(p, CORNU__EPSILON));
    return cornu_op_subtract(p, cornu_op_multiply(t, log_p));
}

/* ---- Margins ---- */

/* Labels of -1 and 1: converted from 0 and 1 if the batch, on all shards, has no others. */
static CornuTensor *signed_labels(CornuTensor *t)
{
    CornuTensor *others = cornu_op_multiply(t, cornu__one_minus(t));
    if (!others) return NULL;
    others = cornu_op_compare(others, CORNU_NOT_EQUAL, cornu_op_constant_like(others, 0.0));
    CornuTensor *count = cornu_op_all_reduce(cornu_op_sum(cornu_op_convert(others, CORNU_I64)));
    CornuTensor *binary = cornu_op_compare(count, CORNU_EQUAL, cornu_op_constant_like(count, 0.0));
    return cornu_op_select(binary, cornu_op_shift(cornu_op_scale(t, 2.0), -1.0), t);
}

static CornuTensor *hinge(const Elementwise *self, CornuTensor *t, CornuTensor *p)
{
    (void)self;
    return cornu_op_relu(cornu__one_minus(cornu_op_multiply(signed_labels(t), p)));
}

static CornuTensor *squared_hinge(const Elementwise *self, CornuTensor *t, CornuTensor *p)
{
    return cornu_op_square(hinge(self, t, p));
}

/* ---- Constructors ---- */

static const CornuField huber_fields[] = {
    { "delta", CORNU_FIELD_NUMBER_OR_DEFAULT, offsetof(CornuHuberConfig, delta) },
    { "reduction", CORNU_FIELD_REDUCTION, offsetof(CornuHuberConfig, reduction) }, { 0 },
};

CORNU__SERIALIZABLE_CLASS(huber, "Huber", "huber", CornuHuberConfig, .fields = huber_fields);

static CornuLoss *create_elementwise(Elementwise loss, const void *config)
{
    loss.base.call = elementwise_call;
    Elementwise *made = cornu__loss_create(sizeof *made, &loss.base, config);
    if (!made) return NULL;
    loss.base = made->base;
    *made = loss;
    return &made->base;
}

/* A loss without arguments of its own. */
static CornuLoss *plain(const CornuLossConfig *config, Elementwise loss)
{
    loss.base.reduction = config->reduction;
    return create_elementwise(loss, config);
}

#define LOSS(name, class_name, function, compares_rows)                                     \
    CORNU__SERIALIZABLE_CLASS(name, class_name, #name, CornuLossConfig,                     \
                              .fields = cornu__loss_fields);                                \
    CornuLoss *cornu_##name##_from(const CornuLossConfig *config)                           \
    {                                                                                       \
        return plain(config, (Elementwise){ .base = { .kind = &cornu__##name##_class,       \
                                                      .across_rows = compares_rows },       \
                                            .each = function });                            \
    }
LOSS(mean_squared_error, "MeanSquaredError", squared, false)
LOSS(mean_absolute_error, "MeanAbsoluteError", absolute, false)
LOSS(mean_absolute_percentage_error, "MeanAbsolutePercentageError", percentage, false)
LOSS(mean_squared_logarithmic_error, "MeanSquaredLogarithmicError", logarithmic, false)
LOSS(log_cosh, "LogCosh", log_cosh, false)
LOSS(poisson, "Poisson", poisson, false)
LOSS(hinge, "Hinge", hinge, true)
LOSS(squared_hinge, "SquaredHinge", squared_hinge, true)

CornuLoss *cornu_huber_from(const CornuHuberConfig *config)
{
    const double delta = cornu__number(config->delta, 1.0);
    if (!cornu_error_pending() && !(delta > 0.0))
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "huber: .delta is %g, expected more than 0",
                                delta);
    return create_elementwise((Elementwise){
        .base = { .kind = &cornu__huber_class, .reduction = config->reduction },
        .each = huber, .delta = delta }, config);
}
