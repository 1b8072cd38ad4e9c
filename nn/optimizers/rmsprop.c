/* Source: keras/src/optimizers/rmsprop.py. */
#include <float.h>

#include "optimizer_internal.h"

typedef struct {
    CornuOptimizer base;
    double         rho, momentum, epsilon, initial_velocity;
    bool           centered;
} Rmsprop;

/* velocity, then momentum if there is one, then average_gradient if centered */
static int rmsprop_slots(const CornuOptimizer *self, const char *name[CORNU_MAX_SLOTS],
                         int group[CORNU_MAX_SLOTS])
{
    const Rmsprop *rmsprop = (const Rmsprop *)self;
    int            count = 0;
    name[count++] = "velocity";
    if (rmsprop->momentum > 0.0) name[count++] = "momentum";
    if (rmsprop->centered) name[count++] = "average_gradient";
    for (int i = 0; i < count; i++) group[i] = i;
    return count;
}

static double initial(const CornuOptimizer *self, int slot)
{
    return slot == 0 ? ((const Rmsprop *)self)->initial_velocity : 0.0;
}

static CornuTensor *rmsprop_update(const CornuOptimizer *self, const CornuUpdate *u,
                                   CornuTensor **new_slot)
{
    const Rmsprop *rmsprop = (const Rmsprop *)self;
    const double   rho = rmsprop->rho;
    CornuTensor   *w = cornu_op_rmsprop_update(u->w, u->slot[0], u->gradient, u->learning_rate,
                                               rho, rmsprop->epsilon, &new_slot[0]);
    if (!w || (!rmsprop->centered && !(rmsprop->momentum > 0.0))) return w;

    /* The weight's own step: learning_rate g / sqrt(v - mean(g)^2 + epsilon) */
    CornuTensor *spread = new_slot[0];
    if (rmsprop->centered) {
        const int s = rmsprop->momentum > 0.0 ? 2 : 1;
        new_slot[s] = cornu_op_add(cornu_op_scale(u->slot[s], rho),
                                   cornu_op_scale(u->gradient, 1.0 - rho));
        spread = cornu_op_subtract(spread, cornu_op_square(new_slot[s]));
    }
    CornuTensor *step = cornu_op_multiply(
        cornu_op_multiply(u->gradient, u->learning_rate),
        cornu_op_rsqrt(cornu_op_shift(spread, rmsprop->epsilon)));
    if (rmsprop->momentum > 0.0)
        step = new_slot[1] = cornu_op_add(cornu_op_scale(u->slot[1], rmsprop->momentum), step);
    return cornu_op_subtract(u->w, step);
}

static CornuOptimizer *rmsprop_from(const void *config) { return cornu_rmsprop_from(config); }

static const CornuOptimizerField fields[] = {
    CORNU__OPTIMIZER_NUMBER(CornuRmspropConfig, Rmsprop, rho),
    CORNU__OPTIMIZER_NUMBER(CornuRmspropConfig, Rmsprop, momentum),
    CORNU__OPTIMIZER_NUMBER(CornuRmspropConfig, Rmsprop, epsilon),
    CORNU__OPTIMIZER_FLAG(CornuRmspropConfig, Rmsprop, centered),
    { 0 },
};

const CornuOptimizerClass cornu__rmsprop_class = {
    .class_name = "RMSprop", .size = sizeof(Rmsprop), .slots = rmsprop_slots, .initial = initial,
    .update = rmsprop_update, .fields = fields, .config_size = sizeof(CornuRmspropConfig),
    .from = rmsprop_from,
};

CornuOptimizer *cornu_rmsprop_from(const CornuRmspropConfig *config)
{
    CornuOptimizer *optimizer = cornu__optimizer_create(
        &cornu__rmsprop_class, config->learning_rate != 0.0,
        CORNU__OPTIMIZER_ARGUMENTS(config, 0.001));
    optimizer = CORNU__OPTIMIZER_SET(optimizer, Rmsprop, config, rho, 1, 0.9, 0.0, 1.0);
    optimizer = CORNU__OPTIMIZER_SET(optimizer, Rmsprop, config, momentum, 2, 0.0, 0.0, 1.0);
    optimizer = CORNU__OPTIMIZER_SET(optimizer, Rmsprop, config, epsilon, 3, 1e-7, 0.0, FLT_MAX);
    optimizer = CORNU__OPTIMIZER_SET(optimizer, Rmsprop, config, initial_velocity, -1, 0.0, 0.0,
                                     FLT_MAX);
    if (optimizer) ((Rmsprop *)optimizer)->centered = config->centered;
    return optimizer;
}
