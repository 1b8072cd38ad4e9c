/* Source: keras/src/optimizers/adagrad.py. */
#include <float.h>

#include "optimizer_internal.h"

typedef struct {
    CornuOptimizer base;
    double         initial_accumulator_value, epsilon;
} Adagrad;

static int adagrad_slots(const CornuOptimizer *self, const char *name[CORNU_MAX_SLOTS],
                         int group[CORNU_MAX_SLOTS])
{
    (void)self;
    name[0] = "accumulator", group[0] = 0;
    return 1;
}

static double initial(const CornuOptimizer *self, int slot)
{
    (void)slot;
    return ((const Adagrad *)self)->initial_accumulator_value;
}

static CornuTensor *adagrad_update(const CornuOptimizer *self, const CornuUpdate *u,
                                   CornuTensor **new_slot)
{
    CornuTensor *sum = new_slot[0] = cornu_op_add(u->slot[0], cornu_op_square(u->gradient));
    CornuTensor *root = cornu_op_sqrt(cornu_op_shift(sum, ((const Adagrad *)self)->epsilon));
    CornuTensor *step = cornu_op_multiply(u->gradient, u->learning_rate);
    return cornu_op_subtract(u->w, cornu_op_divide(step, root));
}

static CornuOptimizer *adagrad_from(const void *config) { return cornu_adagrad_from(config); }

static const CornuOptimizerField fields[] = {
    CORNU__OPTIMIZER_NUMBER(CornuAdagradConfig, Adagrad, initial_accumulator_value),
    CORNU__OPTIMIZER_NUMBER(CornuAdagradConfig, Adagrad, epsilon),
    { 0 },
};

const CornuOptimizerClass cornu__adagrad_class = {
    .class_name = "Adagrad", .size = sizeof(Adagrad), .slots = adagrad_slots, .initial = initial,
    .update = adagrad_update, .fields = fields, .config_size = sizeof(CornuAdagradConfig),
    .from = adagrad_from,
};

CornuOptimizer *cornu_adagrad_from(const CornuAdagradConfig *config)
{
    CornuOptimizer *optimizer = cornu__optimizer_create(
        &cornu__adagrad_class, config->learning_rate != 0.0,
        CORNU__OPTIMIZER_ARGUMENTS(config, 0.001));
    optimizer = CORNU__OPTIMIZER_SET(optimizer, Adagrad, config, initial_accumulator_value, 1, 0.1,
                                     0.0, FLT_MAX);
    return CORNU__OPTIMIZER_SET(optimizer, Adagrad, config, epsilon, 2, 1e-7, 0.0, FLT_MAX);
}
