/* Losses that are means over the last axis of something made of each pair of numbers. */
#include <math.h>

#include "../loss_internal.h"

typedef struct Elementwise Elementwise;

struct Elementwise {
    CornuLoss    base;
    CornuTensor *(*each)(const Elementwise *self, CornuTensor *t, CornuTensor *p);
    double       delta;
};

static CornuTensor *call(const CornuLoss *self, CornuTensor *y_true, CornuTensor *y_pred)
{
    const Elementwise *loss = (const Elementwise *)self;
    if (!y_pred || !cornu__same_shapes(self->name, &y_true, y_pred)) return NULL;
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

/* Labels of -1 and 1, from those of 0 and 1 where the batch on all shards has no others. */
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

static CornuLoss *create(Elementwise loss)
{
    loss.base.call = call;
    Elementwise *made = cornu__loss_create(sizeof *made, &loss.base);
    if (!made) return NULL;
    loss.base.free = made->base.free;
    *made = loss;
    return &made->base;
}

CornuLoss *cornu_mean_squared_error_from(const CornuLossConfig *config)
{
    return create((Elementwise){ { .name = "mean_squared_error", .reduction = config->reduction },
                                 squared, 0.0 });
}

CornuLoss *cornu_mean_absolute_error_from(const CornuLossConfig *config)
{
    return create((Elementwise){ { .name = "mean_absolute_error", .reduction = config->reduction },
                                 absolute, 0.0 });
}

CornuLoss *cornu_mean_absolute_percentage_error_from(const CornuLossConfig *config)
{
    return create((Elementwise){ { .name = "mean_absolute_percentage_error",
                                   .reduction = config->reduction }, percentage, 0.0 });
}

CornuLoss *cornu_mean_squared_logarithmic_error_from(const CornuLossConfig *config)
{
    return create((Elementwise){ { .name = "mean_squared_logarithmic_error",
                                   .reduction = config->reduction }, logarithmic, 0.0 });
}

CornuLoss *cornu_log_cosh_from(const CornuLossConfig *config)
{
    return create((Elementwise){ { .name = "log_cosh", .reduction = config->reduction },
                                 log_cosh, 0.0 });
}

CornuLoss *cornu_poisson_from(const CornuLossConfig *config)
{
    return create((Elementwise){ { .name = "poisson", .reduction = config->reduction },
                                 poisson, 0.0 });
}

CornuLoss *cornu_huber_from(const CornuHuberConfig *config)
{
    const double delta = cornu__number(config->delta, 1.0);
    if (!cornu_error_pending() && !(delta > 0.0))
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "huber: .delta is %g, expected more than 0",
                                delta);
    return create((Elementwise){ { .name = "huber", .reduction = config->reduction },
                                 huber, delta });
}

CornuLoss *cornu_hinge_from(const CornuLossConfig *config)
{
    return create((Elementwise){ { .name = "hinge", .reduction = config->reduction,
                                   .across_rows = true }, hinge, 0.0 });
}

CornuLoss *cornu_squared_hinge_from(const CornuLossConfig *config)
{
    return create((Elementwise){ { .name = "squared_hinge", .reduction = config->reduction,
                                   .across_rows = true }, squared_hinge, 0.0 });
}
