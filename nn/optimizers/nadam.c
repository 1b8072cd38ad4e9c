/* Source: keras/src/optimizers/nadam.py. */
#include "optimizer_internal.h"

/* u_t = beta_1 (1 - 0.96^t / 2) */
static CornuTensor *momentum(const CornuOptimizer *self, CornuTensor *t)
{
    if (!t) return NULL;
    CornuTensor *power = cornu_op_power(cornu_op_constant_like(t, 0.96), t);
    return cornu_op_scale(cornu_op_shift(cornu_op_scale(power, -0.5), 1.0),
                          ((const CornuMoments *)self)->beta_1);
}

/* p_t = u_1 u_2 … u_t */
static CornuTensor *momentum_product(const CornuOptimizer *self, const CornuUpdate *u)
{
    return cornu_op_multiply(u->number, momentum(self, u->iteration));
}

static CornuTensor *rest(CornuTensor *x) { return cornu_op_shift(cornu_op_negative(x), 1.0); }

/* mean + (x - mean)(1 - beta), beta in f32: unlike in Adam, Keras subtracts after rounding. */
static CornuTensor *moved(CornuTensor *mean, CornuTensor *x, double beta)
{
    return cornu_op_add(mean, cornu_op_scale(cornu_op_subtract(x, mean), 1.0 - (float)beta));
}

static CornuTensor *nadam_update(const CornuOptimizer *self, const CornuUpdate *u,
                                 CornuTensor **new_slot)
{
    const CornuMoments *nadam = (const CornuMoments *)self;
    CornuTensor *now = momentum(self, u->iteration);
    CornuTensor *next = momentum(self, cornu_op_shift(u->iteration, 1.0));
    CornuTensor *of_m = cornu_op_divide(next, rest(cornu_op_multiply(u->number, next)));
    CornuTensor *of_g = cornu_op_divide(rest(now), rest(u->number));
    new_slot[0] = moved(u->slot[0], u->gradient, nadam->beta_1);
    new_slot[1] = moved(u->slot[1], cornu_op_square(u->gradient), nadam->beta_2);
    CornuTensor *m = cornu_op_add(cornu_op_multiply(new_slot[0], of_m),
                                  cornu_op_multiply(u->gradient, of_g));
    CornuTensor *v = cornu_op_divide(new_slot[1], cornu__bias_correction(u, nadam->beta_2));
    CornuTensor *below = cornu_op_shift(cornu_op_sqrt(v), nadam->epsilon);
    return cornu_op_subtract(u->w, cornu_op_divide(cornu_op_multiply(m, u->learning_rate), below));
}

static CornuOptimizer *nadam_from(const void *config) { return cornu_nadam_from(config); }

const CornuOptimizerClass cornu__nadam_class = {
    .class_name = "Nadam", .size = sizeof(CornuMoments), .slots = cornu__moments_slots,
    .update = nadam_update, .number_name = "u_product", .first_number = 1.0,
    .number = momentum_product, .fields = cornu__moments_fields,
    .config_size = sizeof(CornuMomentsConfig), .from = nadam_from,
};

CornuOptimizer *cornu_nadam_from(const CornuMomentsConfig *config)
{
    return cornu__moments_from(&cornu__nadam_class, config);
}
