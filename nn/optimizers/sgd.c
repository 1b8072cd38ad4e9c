/* Source: keras/src/optimizers/sgd.py. */
#include "optimizer_internal.h"

typedef struct {
    CornuOptimizer base;
    double         momentum;
    bool           nesterov;
} Sgd;

static int sgd_slots(const CornuOptimizer *self, const char *name[CORNU_MAX_SLOTS],
                     int group[CORNU_MAX_SLOTS])
{
    name[0] = "momentum";
    group[0] = 0;
    return ((const Sgd *)self)->momentum != 0.0 ? 1 : 0;
}

static CornuTensor *sgd_update(const CornuOptimizer *self, const CornuUpdate *u,
                               CornuTensor **new_slot)
{
    const Sgd *sgd = (const Sgd *)self;
    if (sgd->momentum != 0.0)
        return cornu_op_momentum_update(u->w, u->slot[0], u->gradient, u->learning_rate,
                                        sgd->momentum, sgd->nesterov, &new_slot[0]);
    return cornu_op_subtract(u->w, cornu_op_multiply(u->gradient, u->learning_rate));
}

static CornuOptimizer *sgd_from(const void *config) { return cornu_sgd_from(config); }

static const CornuOptimizerField fields[] = {
    CORNU__OPTIMIZER_NUMBER(CornuSgdConfig, Sgd, momentum),
    CORNU__OPTIMIZER_FLAG(CornuSgdConfig, Sgd, nesterov),
    { 0 },
};

const CornuOptimizerClass cornu__sgd_class = {
    .class_name = "SGD", .size = sizeof(Sgd), .slots = sgd_slots, .update = sgd_update,
    .fields = fields, .config_size = sizeof(CornuSgdConfig), .from = sgd_from,
};

CornuOptimizer *cornu_sgd_from(const CornuSgdConfig *config)
{
    CornuOptimizer *optimizer = cornu__optimizer_create(
        &cornu__sgd_class, config->learning_rate != 0.0,
        CORNU__OPTIMIZER_ARGUMENTS(config, 0.01));
    optimizer = CORNU__OPTIMIZER_SET(optimizer, Sgd, config, momentum, 1, 0.0, 0.0, 1.0);
    if (optimizer) ((Sgd *)optimizer)->nesterov = config->nesterov;
    return optimizer;
}
