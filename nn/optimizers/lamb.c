/* Source: keras/src/optimizers/lamb.py. */
#include "optimizer_internal.h"

static CornuTensor *norm(CornuTensor *x) { return cornu_op_sqrt(cornu_op_sum(cornu_op_square(x))); }

CornuTensor *cornu__norm_ratio(CornuTensor *w, CornuTensor *u, double factor)
{
    if (!w || !u) return NULL;
    CornuTensor *of_w = norm(w), *of_u = norm(u), *zero = cornu_op_constant_like(of_w, 0.0);
    CornuTensor *one = cornu_op_constant_like(of_w, 1.0);
    CornuTensor *divisible = cornu_op_compare(of_u, CORNU_GREATER, zero);
    CornuTensor *ratio = cornu_op_divide(of_w, cornu_op_select(divisible, of_u, one));
    if (factor != 1.0) ratio = cornu_op_scale(ratio, factor);
    ratio = cornu_op_select(divisible, ratio, one);
    return cornu_op_select(cornu_op_compare(of_w, CORNU_GREATER, zero), ratio, one);
}

static CornuTensor *lamb_update(const CornuOptimizer *self, int i, const CornuUpdate *u,
                                CornuTensor **new_slot)
{
    const CornuMoments *lamb = (const CornuMoments *)self;
    (void)i;
    new_slot[0] = cornu__moved(u->slot[0], u->gradient, lamb->beta_1);
    new_slot[1] = cornu__moved(u->slot[1], cornu_op_square(u->gradient), lamb->beta_2);
    CornuTensor *m = cornu_op_divide(new_slot[0], cornu__bias_correction(u, lamb->beta_1));
    CornuTensor *v = cornu_op_divide(new_slot[1], cornu__bias_correction(u, lamb->beta_2));
    CornuTensor *step = cornu_op_divide(m, cornu_op_shift(cornu_op_sqrt(v), lamb->epsilon));
    CornuTensor *rate = cornu_op_multiply(cornu__norm_ratio(u->w, step, 1.0), u->learning_rate);
    return cornu_op_subtract(u->w, cornu_op_multiply(rate, step));
}

static CornuOptimizer *lamb_from(const void *config) { return cornu_lamb_from(config); }

const CornuOptimizerClass cornu__lamb_class = {
    .class_name = "Lamb", .size = sizeof(CornuMoments), .slots = cornu__moments_slots,
    .update_weight = lamb_update, .fields = cornu__moments_fields,
    .config_size = sizeof(CornuMomentsConfig), .from = lamb_from,
};

CornuOptimizer *cornu_lamb_from(const CornuMomentsConfig *config)
{
    return cornu__moments_from(&cornu__lamb_class, config);
}
