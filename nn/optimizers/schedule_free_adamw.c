/* Source: keras/src/optimizers/schedule_free_adamw.py. */
#include <float.h>

#include "optimizer_internal.h"

typedef struct {
    CornuMoments moments;
    int64_t      warmup_steps;
} ScheduleFree;

/* learning_rate min(t / warmup_steps, 1) */
static CornuTensor *warmup(const CornuOptimizer *self, const CornuUpdate *u)
{
    const double steps = (double)((const ScheduleFree *)self)->warmup_steps;
    if (steps == 0.0 || !u->iteration) return u->learning_rate;
    CornuTensor *part = cornu_op_divide(u->iteration, cornu_op_constant_like(u->iteration, steps));
    return cornu_op_multiply(u->learning_rate,
                             cornu_op_minimum(part, cornu_op_constant_like(part, 1.0)));
}

static CornuTensor *rest(CornuTensor *x) { return cornu_op_shift(cornu_op_negative(x), 1.0); }

/* The weights may have been loaded after build, so z begins with them in the first step, too. */
static CornuTensor *schedule_free_update(const CornuOptimizer *self, const CornuUpdate *u,
                                         CornuTensor **new_slot)
{
    const CornuMoments *free = (const CornuMoments *)self;
    if (!u->w || !u->iteration) return NULL;
    /* as f32: Keras subtracts after rounding */
    const double beta_1 = (double)(float)free->beta_1, beta_2 = (double)(float)free->beta_2;
    CornuTensor *t = u->iteration, *one = cornu_op_constant_like(t, 1.0);
    CornuTensor *z = cornu_op_select(cornu_op_compare(t, CORNU_EQUAL, one), u->w_before,
                                     u->slot[0]);
    CornuTensor *v = cornu__moved(u->slot[1], cornu_op_square(u->gradient), beta_2);
    CornuTensor *below = cornu_op_shift(
        cornu_op_sqrt(cornu_op_divide(v, cornu__bias_correction(u, free->beta_2))), free->epsilon);
    CornuTensor *step = cornu_op_divide(cornu_op_multiply(u->learning_rate, u->gradient), below);
    CornuTensor *new_z = cornu_op_subtract(z, step);
    CornuTensor *x = cornu_op_divide(cornu_op_subtract(u->w, cornu_op_scale(z, 1.0 - beta_1)),
                                     cornu_op_constant_like(z, beta_1));
    CornuTensor *weight = cornu_op_divide(one, t);
    CornuTensor *new_x = cornu_op_add(cornu_op_multiply(rest(weight), x),
                                      cornu_op_multiply(weight, new_z));
    new_slot[0] = new_z;
    new_slot[1] = v;
    return cornu_op_add(cornu_op_scale(new_z, 1.0 - beta_1), cornu_op_scale(new_x, beta_1));
}

static CornuOptimizer *schedule_free_from(const void *config)
{
    return cornu_schedule_free_adamw_from(config);
}

static const CornuOptimizerField fields[] = {
    CORNU__OPTIMIZER_NUMBER(CornuScheduleFreeConfig, CornuMoments, beta_1),
    CORNU__OPTIMIZER_NUMBER(CornuScheduleFreeConfig, CornuMoments, beta_2),
    CORNU__OPTIMIZER_NUMBER(CornuScheduleFreeConfig, CornuMoments, epsilon),
    CORNU__OPTIMIZER_FIELD(CornuScheduleFreeConfig, ScheduleFree, warmup_steps, INTEGER),
    { 0 },
};

const CornuOptimizerClass cornu__schedule_free_adamw_class = {
    .class_name = "ScheduleFreeAdamW", .size = sizeof(ScheduleFree), .slots = cornu__moments_slots,
    .schedule = warmup, .update = schedule_free_update, .weight_slot = 1, .fields = fields,
    .config_size = sizeof(CornuScheduleFreeConfig), .from = schedule_free_from,
};

CornuOptimizer *cornu_schedule_free_adamw_from(const CornuScheduleFreeConfig *config)
{
    CornuOptimizer *optimizer = cornu__moments_create(
        &cornu__schedule_free_adamw_class, config->learning_rate != 0.0,
        CORNU__OPTIMIZER_ARGUMENTS(config, 0.0025), CORNU__WRITTEN(config, beta_1, 1),
        CORNU__WRITTEN(config, beta_2, 2),
        CORNU__WRITTEN(config, epsilon, 3) == 0.0 ? 1e-8 : CORNU__WRITTEN(config, epsilon, 3));
    const int64_t steps = cornu__integer(config->warmup_steps, 0);
    optimizer = cornu__optimizer_expect(optimizer, "warmup_steps", (double)steps, 0.0, FLT_MAX);
    if (!optimizer) return NULL;
    optimizer = cornu__optimizer_expect(optimizer, "beta_1",
                                        ((CornuMoments *)optimizer)->beta_1, FLT_MIN, 1.0);
    if (optimizer) ((ScheduleFree *)optimizer)->warmup_steps = steps;
    return optimizer;
}
