/* Source: keras/src/optimizers/adamax.py. */
#include "optimizer_internal.h"

static int adamax_slots(const CornuOptimizer *self, const char *name[CORNU_MAX_SLOTS],
                        int group[CORNU_MAX_SLOTS])
{
    (void)self;
    name[0] = "momentum", group[0] = 0;
    name[1] = "norm", group[1] = 0;
    return 2;
}

static CornuTensor *adamax_update(const CornuOptimizer *self, const CornuUpdate *u,
                                  CornuTensor **new_slot)
{
    const CornuMoments *adamax = (const CornuMoments *)self;
    new_slot[0] = cornu__moved(u->slot[0], u->gradient, adamax->beta_1);
    new_slot[1] = cornu_op_maximum(cornu_op_scale(u->slot[1], adamax->beta_2),
                                   cornu_op_absolute(u->gradient));
    /* in Keras' order: the correction multiplies the divisor */
    CornuTensor *below = cornu_op_multiply(cornu__bias_correction(u, adamax->beta_1),
                                           cornu_op_shift(new_slot[1], adamax->epsilon));
    CornuTensor *step = cornu_op_divide(cornu_op_multiply(u->learning_rate, new_slot[0]), below);
    return cornu_op_subtract(u->w, step);
}

static CornuOptimizer *adamax_from(const void *config) { return cornu_adamax_from(config); }

const CornuOptimizerClass cornu__adamax_class = {
    .class_name = "Adamax", .size = sizeof(CornuMoments), .slots = adamax_slots,
    .update = adamax_update, .fields = cornu__moments_fields,
    .config_size = sizeof(CornuMomentsConfig), .from = adamax_from,
};

CornuOptimizer *cornu_adamax_from(const CornuMomentsConfig *config)
{
    return cornu__moments_from(&cornu__adamax_class, config);
}
