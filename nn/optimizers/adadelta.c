/* Source: keras/src/optimizers/adadelta.py. */
#include <float.h>

#include "optimizer_internal.h"

typedef struct {
    CornuOptimizer base;
    double         rho, epsilon;
} Adadelta;

static int adadelta_slots(const CornuOptimizer *self, const char *name[CORNU_MAX_SLOTS],
                          int group[CORNU_MAX_SLOTS])
{
    (void)self;
    name[0] = "accumulated_grad", group[0] = 0;
    name[1] = "accumulated_delta_var", group[1] = 0;
    return 2;
}

/* rho mean + (1 - rho) x^2 */
static CornuTensor *mean_square(const Adadelta *self, CornuTensor *mean, CornuTensor *x)
{
    return cornu_op_add(cornu_op_scale(mean, self->rho),
                        cornu_op_scale(cornu_op_square(x), 1.0 - self->rho));
}

static CornuTensor *root(const Adadelta *self, CornuTensor *mean)
{
    return cornu_op_sqrt(cornu_op_shift(mean, self->epsilon));
}

static CornuTensor *adadelta_update(const CornuOptimizer *self, const CornuUpdate *u,
                                    CornuTensor **new_slot)
{
    const Adadelta *adadelta = (const Adadelta *)self;
    new_slot[0] = mean_square(adadelta, u->slot[0], u->gradient);
    CornuTensor *d = cornu_op_negative(
        cornu_op_divide(cornu_op_multiply(root(adadelta, u->slot[1]), u->gradient),
                        root(adadelta, new_slot[0])));
    new_slot[1] = mean_square(adadelta, u->slot[1], d);
    return cornu_op_add(u->w, cornu_op_multiply(d, u->learning_rate));
}

static CornuOptimizer *adadelta_from(const void *config) { return cornu_adadelta_from(config); }

static const CornuOptimizerField fields[] = {
    CORNU__OPTIMIZER_NUMBER(CornuAdadeltaConfig, Adadelta, rho),
    CORNU__OPTIMIZER_NUMBER(CornuAdadeltaConfig, Adadelta, epsilon),
    { 0 },
};

const CornuOptimizerClass cornu__adadelta_class = {
    .class_name = "Adadelta", .size = sizeof(Adadelta), .slots = adadelta_slots,
    .update = adadelta_update, .fields = fields, .config_size = sizeof(CornuAdadeltaConfig),
    .from = adadelta_from,
};

CornuOptimizer *cornu_adadelta_from(const CornuAdadeltaConfig *config)
{
    CornuOptimizer *optimizer = cornu__optimizer_create(
        &cornu__adadelta_class, config->learning_rate != 0.0,
        CORNU__OPTIMIZER_ARGUMENTS(config, 0.001));
    optimizer = CORNU__OPTIMIZER_SET(optimizer, Adadelta, config, rho, 1, 0.95, 0.0, 1.0);
    return CORNU__OPTIMIZER_SET(optimizer, Adadelta, config, epsilon, 2, 1e-7, 0.0, FLT_MAX);
}
