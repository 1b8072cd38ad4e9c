/* What the optimizers share. */
#ifndef CORNU_NN_OPTIMIZER_INTERNAL_H
#define CORNU_NN_OPTIMIZER_INTERNAL_H

#include "../../device/memory_internal.h"
#include "../config/keywords_internal.h"
#include "optimizer.h"

/* The arguments that every config has, by themselves. */
typedef struct {
    double learning_rate;   /* resolved */
    CORNU_OPTIMIZER_ARGUMENTS
} CornuOptimizerArguments;

#define CORNU__OPTIMIZER_ARGUMENTS(config, usual_rate)                                   \
    (&(CornuOptimizerArguments){                                                         \
        .learning_rate = cornu__number(CORNU__WRITTEN(config, learning_rate, 0), usual_rate), \
        .schedule = (config)->schedule,                                                  \
        .weight_decay = cornu__number((config)->weight_decay, 0.0),                      \
        .clipnorm = (config)->clipnorm, .clipvalue = (config)->clipvalue,                \
        .global_clipnorm = (config)->global_clipnorm, .use_ema = (config)->use_ema,      \
        .ema_momentum = cornu__number(CORNU__WRITTEN(config, ema_momentum, -1), 0.99),   \
        .ema_overwrite_frequency = (config)->ema_overwrite_frequency,                    \
        .loss_scale_factor = (config)->loss_scale_factor,                                \
        .gradient_accumulation_steps = (config)->gradient_accumulation_steps,            \
        .name = (config)->name })

/* Checks what every optimizer is given and allocates one; takes the schedule. rate_given: the
 * config's learning_rate is not 0. NULL with a pending error. */
CornuOptimizer *cornu__optimizer_create(const CornuOptimizerClass *kind, bool rate_given,
                                        const CornuOptimizerArguments *arguments);

/* Checks and sets what every optimizer is given; takes the schedule. */
CornuStatus cornu__optimizer_set(CornuOptimizer *optimizer, bool rate_given,
                                 const CornuOptimizerArguments *arguments);

#define OPTIMIZER(name) extern const CornuOptimizerClass cornu__##name##_class;
#include "optimizers.def"
#undef OPTIMIZER

/* The optimizers by name; one without a name ends them. */
typedef struct {
    const char                *name;
    const CornuOptimizerClass *kind;
} CornuOptimizerRow;
extern const CornuOptimizerRow cornu__optimizers[];

/* The class of this name, among ours; NULL if there is none. */
const CornuOptimizerClass *cornu__optimizer_class(const char *class_name);

/* For the tables of arguments. */
#define CORNU__OPTIMIZER_NUMBER(Config, Self, field) \
    { #field, false, offsetof(Config, field), offsetof(Self, field) }
#define CORNU__OPTIMIZER_FLAG(Config, Self, field) \
    { #field, true, offsetof(Config, field), offsetof(Self, field) }

/* Slots that are not the class's own: each weight's average, then what its gradients add up to. */
static inline int cornu__common_slots(const CornuOptimizer *optimizer)
{
    return optimizer->use_ema + (optimizer->accumulation_steps > 0);
}

int cornu__optimizer_shards(const CornuOptimizer *optimizer);
/* Of several shards; a group of all is none. */
bool cornu__optimizer_has_groups(const CornuOptimizer *optimizer);

/* What Adam and its kin have: they estimate the first and the second moment of the gradient. */
typedef struct {
    CornuOptimizer base;
    double         beta_1, beta_2, epsilon;
} CornuMoments;

/* As cornu__optimizer_create, for a class whose struct begins with CornuMoments; their numbers as
 * they are given. */
CornuOptimizer *cornu__moments_create(const CornuOptimizerClass *kind, bool rate_given,
                                      const CornuOptimizerArguments *arguments, double beta_1,
                                      double beta_2, double epsilon);

/* 1 - beta^t, t counting updates */
CornuTensor *cornu__bias_correction(const CornuUpdate *update, double beta);

/* Packs the weights it was built with, unless they still are: graphs are recorded after this.
 * Another optimizer that trains some of them packs them otherwise. */
CornuStatus cornu__optimizer_pack(CornuOptimizer *optimizer);

/* Moves the optimizer's variables to where w[0 … count) are: copies, on one other device, of the
 * weights it was built with. All or nothing. */
CornuStatus cornu__optimizer_move(CornuOptimizer *optimizer, CornuVariable *const *w);

/* For a constructor: NULL with a pending error, naming optimizer and argument, and the optimizer
 * freed, unless low <= value <= high. */
CornuOptimizer *cornu__optimizer_expect(CornuOptimizer *optimizer, const char *argument,
                                        double value, double low, double high);

#endif
