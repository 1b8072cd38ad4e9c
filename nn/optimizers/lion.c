/* Source: keras/src/optimizers/lion.py. */
#include <float.h>

#include "optimizer_internal.h"

typedef struct {
    CornuOptimizer base;
    double         beta_1, beta_2;
} Lion;

static int lion_slots(const CornuOptimizer *self, const char *name[CORNU_MAX_SLOTS],
                      int group[CORNU_MAX_SLOTS])
{
    (void)self;
    name[0] = "momentum", group[0] = 0;
    return 1;
}

/* beta m + (1 - beta) g, beta in f32: Keras subtracts after rounding */
static CornuTensor *between(const CornuUpdate *u, double beta)
{
    return cornu_op_add(cornu_op_scale(u->slot[0], beta),
                        cornu_op_scale(u->gradient, 1.0 - (float)beta));
}

static CornuTensor *lion_update(const CornuOptimizer *self, const CornuUpdate *u,
                                CornuTensor **new_slot)
{
    const Lion *lion = (const Lion *)self;
    new_slot[0] = between(u, lion->beta_2);
    CornuTensor *direction = cornu_op_sign(between(u, lion->beta_1));
    return cornu_op_subtract(u->w, cornu_op_multiply(direction, u->learning_rate));
}

static CornuOptimizer *lion_from(const void *config) { return cornu_lion_from(config); }

static const CornuOptimizerField fields[] = {
    CORNU__OPTIMIZER_NUMBER(CornuLionConfig, Lion, beta_1),
    CORNU__OPTIMIZER_NUMBER(CornuLionConfig, Lion, beta_2),
    { 0 },
};

const CornuOptimizerClass cornu__lion_class = {
    .class_name = "Lion", .size = sizeof(Lion), .slots = lion_slots, .update = lion_update,
    .fields = fields, .config_size = sizeof(CornuLionConfig), .from = lion_from,
};

CornuOptimizer *cornu_lion_from(const CornuLionConfig *config)
{
    CornuOptimizer *optimizer = cornu__optimizer_create(
        &cornu__lion_class, config->learning_rate != 0.0,
        CORNU__OPTIMIZER_ARGUMENTS(config, 0.001));
    optimizer = CORNU__OPTIMIZER_SET(optimizer, Lion, config, beta_1, 1, 0.9, FLT_MIN, 1.0);
    return CORNU__OPTIMIZER_SET(optimizer, Lion, config, beta_2, 2, 0.99, 0.0, 1.0);
}
