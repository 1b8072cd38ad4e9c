/* Source: Kingma and Ba, "Adam", arXiv 1412.6980, in the form of section 2's last paragraph;
 * keras/src/optimizers/adam.py and adamw.py. */
#include <float.h>

#include "optimizer_internal.h"

typedef struct {
    CornuMoments moments;
    bool         amsgrad;
} Adam;

int cornu__moments_slots(const CornuOptimizer *self, const char *name[CORNU_MAX_SLOTS],
                         int group[CORNU_MAX_SLOTS])
{
    (void)self;
    name[0] = "momentum", group[0] = 0;
    name[1] = "velocity", group[1] = 0;
    return 2;
}

/* After momentum and velocity of each weight, with amsgrad, every velocity_hat. */
static int adam_slots(const CornuOptimizer *self, const char *name[CORNU_MAX_SLOTS],
                      int group[CORNU_MAX_SLOTS])
{
    name[2] = "velocity_hat", group[2] = 1;
    return cornu__moments_slots(self, name, group) + ((const Adam *)self)->amsgrad;
}

CornuTensor *cornu__moved(CornuTensor *mean, CornuTensor *x, double beta)
{
    return cornu_op_add(mean, cornu_op_scale(cornu_op_subtract(x, mean), 1.0 - beta));
}

CornuTensor *cornu__bias_correction(const CornuUpdate *u, double beta)
{
    CornuTensor *power = cornu_op_power(cornu_op_constant_like(u->iteration, beta), u->iteration);
    return cornu_op_shift(cornu_op_negative(power), 1.0);
}

/* learning_rate sqrt(1 - beta_2^t) / (1 - beta_1^t) */
static CornuTensor *adam_schedule(const CornuOptimizer *self, const CornuUpdate *u)
{
    const CornuMoments *adam = (const CornuMoments *)self;
    CornuTensor *raised = cornu_op_sqrt(cornu__bias_correction(u, adam->beta_2));
    return cornu_op_divide(cornu_op_multiply(u->learning_rate, raised),
                           cornu__bias_correction(u, adam->beta_1));
}

static CornuTensor *adam_update(const CornuOptimizer *self, const CornuUpdate *u,
                                CornuTensor **new_slot)
{
    const CornuMoments *adam = (const CornuMoments *)self;
    CornuTensor *w = cornu_op_adam_update(u->w, u->slot[0], u->slot[1], u->gradient,
                                          u->learning_rate, adam->beta_1, adam->beta_2,
                                          adam->epsilon, &new_slot[0], &new_slot[1]);
    if (!w || !((const Adam *)self)->amsgrad) return w;
    new_slot[2] = cornu_op_maximum(u->slot[2], new_slot[1]);
    CornuTensor *step = cornu_op_divide(
        cornu_op_multiply(new_slot[0], u->learning_rate),
        cornu_op_shift(cornu_op_sqrt(new_slot[2]), adam->epsilon));
    return cornu_op_subtract(u->w, step);
}

static CornuOptimizer *adam_from(const void *config) { return cornu_adam_from(config); }
static CornuOptimizer *adamw_from(const void *config) { return cornu_adamw_from(config); }

#define FIELDS(Config)                                          \
    {                                                           \
        CORNU__OPTIMIZER_NUMBER(Config, CornuMoments, beta_1),  \
        CORNU__OPTIMIZER_NUMBER(Config, CornuMoments, beta_2),  \
        CORNU__OPTIMIZER_NUMBER(Config, CornuMoments, epsilon), \
        CORNU__OPTIMIZER_FLAG(Config, Adam, amsgrad),           \
        { 0 },                                                  \
    }

static const CornuOptimizerField adam_fields[] = FIELDS(CornuAdamConfig);
static const CornuOptimizerField adamw_fields[] = FIELDS(CornuAdamwConfig);

const CornuOptimizerClass cornu__adam_class = {
    .class_name = "Adam", .size = sizeof(Adam), .slots = adam_slots, .schedule = adam_schedule,
    .update = adam_update, .fields = adam_fields, .config_size = sizeof(CornuAdamConfig),
    .from = adam_from,
};

const CornuOptimizerClass cornu__adamw_class = {
    .class_name = "AdamW", .size = sizeof(Adam), .slots = adam_slots, .schedule = adam_schedule,
    .update = adam_update, .fields = adamw_fields, .config_size = sizeof(CornuAdamwConfig),
    .from = adamw_from,
};

CornuOptimizer *cornu__moments_create(const CornuOptimizerClass *kind, bool learning_rate_given,
                                      const CornuOptimizerArguments *arguments, double beta_1,
                                      double beta_2, double epsilon)
{
    CornuOptimizer *optimizer = cornu__optimizer_create(kind, learning_rate_given, arguments);
    const double below_1 = 1.0 - FLT_EPSILON / 2.0;   /* in f32, where 1 would divide by 0 */
    optimizer = cornu__optimizer_number(optimizer, "beta_1", offsetof(CornuMoments, beta_1),
                                        cornu__number(beta_1, 0.9), 0.0, below_1);
    optimizer = cornu__optimizer_number(optimizer, "beta_2", offsetof(CornuMoments, beta_2),
                                        cornu__number(beta_2, 0.999), 0.0, below_1);
    return cornu__optimizer_number(optimizer, "epsilon", offsetof(CornuMoments, epsilon),
                                   cornu__number(epsilon, 1e-7), 0.0, FLT_MAX);
}

const CornuOptimizerField cornu__moments_fields[] = {
    CORNU__OPTIMIZER_NUMBER(CornuMomentsConfig, CornuMoments, beta_1),
    CORNU__OPTIMIZER_NUMBER(CornuMomentsConfig, CornuMoments, beta_2),
    CORNU__OPTIMIZER_NUMBER(CornuMomentsConfig, CornuMoments, epsilon),
    { 0 },
};

CornuOptimizer *cornu__moments_from(const CornuOptimizerClass *kind,
                                    const CornuMomentsConfig *config)
{
    return cornu__moments_create(kind, config->learning_rate != 0.0,
                                 CORNU__OPTIMIZER_ARGUMENTS(config, 0.001),
                                 CORNU__WRITTEN(config, beta_1, 1),
                                 CORNU__WRITTEN(config, beta_2, 2),
                                 CORNU__WRITTEN(config, epsilon, 3));
}

CornuOptimizer *cornu_adam_from(const CornuAdamConfig *config)
{
    CornuOptimizer *optimizer = cornu__moments_create(
        &cornu__adam_class, config->learning_rate != 0.0,
        CORNU__OPTIMIZER_ARGUMENTS(config, 0.001), CORNU__WRITTEN(config, beta_1, 1),
        CORNU__WRITTEN(config, beta_2, 2), CORNU__WRITTEN(config, epsilon, 3));
    if (optimizer) ((Adam *)optimizer)->amsgrad = config->amsgrad;
    return optimizer;
}

CornuOptimizer *cornu_adamw_from(const CornuAdamwConfig *config)
{
    CornuOptimizerArguments *arguments = CORNU__OPTIMIZER_ARGUMENTS(config, 0.001);
    arguments->weight_decay = cornu__number(CORNU__WRITTEN(config, weight_decay, 1), 0.004);
    CornuOptimizer *optimizer = cornu__moments_create(
        &cornu__adamw_class, config->learning_rate != 0.0, arguments,
        CORNU__WRITTEN(config, beta_1, 2), CORNU__WRITTEN(config, beta_2, 3),
        CORNU__WRITTEN(config, epsilon, 4));
    if (optimizer) ((Adam *)optimizer)->amsgrad = config->amsgrad;
    return optimizer;
}
