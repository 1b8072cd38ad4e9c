/* Source: keras/src/optimizers/ftrl.py. */
#include <float.h>

#include "optimizer_internal.h"

typedef struct {
    CornuOptimizer base;
    double         learning_rate_power, initial_accumulator_value;
    double         l1_regularization_strength, l2_regularization_strength;
    double         l2_shrinkage_regularization_strength, beta;
} Ftrl;

static int ftrl_slots(const CornuOptimizer *self, const char *name[CORNU_MAX_SLOTS],
                      int group[CORNU_MAX_SLOTS])
{
    (void)self;
    name[0] = "accumulator", group[0] = 0;
    name[1] = "linear", group[1] = 0;
    return 2;
}

static double initial(const CornuOptimizer *self, int slot)
{
    return slot == 0 ? ((const Ftrl *)self)->initial_accumulator_value : 0.0;
}

/* n^p, p = -learning_rate_power */
static CornuTensor *raised(const Ftrl *self, CornuTensor *n)
{
    if (self->learning_rate_power == -0.5) return cornu_op_sqrt(n);
    return n ? cornu_op_power(n, cornu_op_constant_like(n, -self->learning_rate_power)) : NULL;
}

static CornuTensor *ftrl_update(const CornuOptimizer *self, const CornuUpdate *u,
                                CornuTensor **new_slot)
{
    const Ftrl  *ftrl = (const Ftrl *)self;
    CornuTensor *n = cornu_op_add(u->slot[0], cornu_op_square(u->gradient));
    CornuTensor *top = raised(ftrl, n);
    CornuTensor *sigma = cornu_op_divide(cornu_op_subtract(top, raised(ftrl, u->slot[0])),
                                         u->learning_rate);
    CornuTensor *g = u->gradient;
    const double shrinkage = ftrl->l2_shrinkage_regularization_strength;
    if (shrinkage > 0.0) g = cornu_op_add(g, cornu_op_scale(u->w, 2.0 * shrinkage));
    CornuTensor *z = cornu_op_add(u->slot[1],
                                  cornu_op_subtract(g, cornu_op_multiply(sigma, u->w)));
    if (!z) return NULL;
    CornuTensor *clipped = cornu_op_clip(z, -ftrl->l1_regularization_strength,
                                         ftrl->l1_regularization_strength);

    /* 2 l2 = 2 l2_regularization_strength + beta / learning_rate */
    CornuTensor *twice_l2 = cornu_op_shift(
        cornu_op_divide(cornu_op_constant_like(u->learning_rate, ftrl->beta), u->learning_rate),
        2.0 * ftrl->l2_regularization_strength);
    CornuTensor *quadratic = cornu_op_add(cornu_op_divide(top, u->learning_rate), twice_l2);
    new_slot[0] = n;
    new_slot[1] = z;
    return cornu_op_divide(cornu_op_subtract(clipped, z), quadratic);
}

static CornuOptimizer *ftrl_from(const void *config) { return cornu_ftrl_from(config); }

static const CornuOptimizerField fields[] = {
    CORNU__OPTIMIZER_NUMBER(CornuFtrlConfig, Ftrl, learning_rate_power),
    CORNU__OPTIMIZER_NUMBER(CornuFtrlConfig, Ftrl, initial_accumulator_value),
    CORNU__OPTIMIZER_NUMBER(CornuFtrlConfig, Ftrl, l1_regularization_strength),
    CORNU__OPTIMIZER_NUMBER(CornuFtrlConfig, Ftrl, l2_regularization_strength),
    CORNU__OPTIMIZER_NUMBER(CornuFtrlConfig, Ftrl, l2_shrinkage_regularization_strength),
    CORNU__OPTIMIZER_NUMBER(CornuFtrlConfig, Ftrl, beta),
    { 0 },
};

const CornuOptimizerClass cornu__ftrl_class = {
    .class_name = "Ftrl", .size = sizeof(Ftrl), .slots = ftrl_slots, .initial = initial,
    .update = ftrl_update, .fields = fields, .config_size = sizeof(CornuFtrlConfig),
    .from = ftrl_from,
};

CornuOptimizer *cornu_ftrl_from(const CornuFtrlConfig *config)
{
    CornuOptimizer *optimizer = cornu__optimizer_create(
        &cornu__ftrl_class, config->learning_rate != 0.0,
        CORNU__OPTIMIZER_ARGUMENTS(config, 0.001));
    optimizer = CORNU__OPTIMIZER_SET(optimizer, Ftrl, config, learning_rate_power, 1, -0.5,
                                     -FLT_MAX, 0.0);
    optimizer = CORNU__OPTIMIZER_SET(optimizer, Ftrl, config, initial_accumulator_value, 2, 0.1,
                                     0.0, FLT_MAX);
    optimizer = CORNU__OPTIMIZER_SET(optimizer, Ftrl, config, l1_regularization_strength, 3, 0.0,
                                     0.0, FLT_MAX);
    optimizer = CORNU__OPTIMIZER_SET(optimizer, Ftrl, config, l2_regularization_strength, 4, 0.0,
                                     0.0, FLT_MAX);
    optimizer = CORNU__OPTIMIZER_SET(optimizer, Ftrl, config, l2_shrinkage_regularization_strength,
                                     5, 0.0, 0.0, FLT_MAX);
    return CORNU__OPTIMIZER_SET(optimizer, Ftrl, config, beta, 6, 0.0, 0.0, FLT_MAX);
}
