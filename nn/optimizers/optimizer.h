/*
 * Optimizers by Keras' names, arguments and formulas (keras/src/optimizers).
 *
 *     cornu_compile(model, .optimizer = cornu_adam(.learning_rate = 1e-3), …)
 *     cornu_compile(model, .optimizer = cornu_optimizer("rmsprop"), …)
 *
 * A step sums the gradients over the shards, clips them, decays the weights, updates them, applies
 * their constraints and counts the iteration. All weights are packed into one flat variable;
 * gradients and slots have the same layout: each shard sums one slice of the gradients and updates
 * that slice of the weights with its slice of the slots; the slices are gathered into the new
 * weights, to which constraints apply as a whole.
 * The variables, in Keras' order: iteration (i64), learning_rate (f32; absent under a schedule),
 * averages, accumulated gradients, slots, Nadam's u_product; before them, if the loss is scaled,
 * those of Keras' LossScaleOptimizer: an iteration (i64) and a learning_rate (f32) of its own, both
 * 0 and without effect, step_counter (i64) and dynamic_scale (f32).
 *
 * optimizers.h has each of them, optimizer_class.h what a custom one defines.
 */
#ifndef CORNU_NN_OPTIMIZER_H
#define CORNU_NN_OPTIMIZER_H

#include "optimizer_class.h"
#include "optimizers.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CORNU_MAX_OPTIMIZERS = 8 };

typedef struct {
    const char     *path;                 /* a weight's, or a POSIX extended pattern of all of it;
                                             copied */
    CornuOptimizer *optimizer;            /* taken */
} CornuMappedOptimizer;

typedef struct {
    char                 unset;
    CornuOptimizer      *default_optimizer; /* required; taken */
    CornuMappedOptimizer optimizer_map[CORNU_MAX_OPTIMIZERS];
    double               loss_scale_factor; /* in place of those of all these optimizers */
    const char          *name;              /* default multi_optimizer */
} CornuMultiConfig;

/* Several optimizers: a weight's is that whose path is the weight's or, if there is none, the only
 * one whose pattern it matches, else the default one. build refuses a weight that several patterns
 * match. It has an iteration and a learning rate of its own, the latter 0 and without effect,
 * before the variables of the optimizers, in the order of the map. It cannot move to another
 * device, nor scale the loss (f16). Source: keras/src/optimizers/multi_optimizer.py. */
CornuOptimizer *cornu_multi_optimizer_from(const CornuMultiConfig *config);
#define cornu_multi_optimizer(...) \
    cornu_multi_optimizer_from(&(CornuMultiConfig){ .unset = 0, __VA_ARGS__ })

/* By Keras' string, with its defaults: "sgd", "rmsprop", "adam", "adamw", "adagrad", "adadelta",
 * "adamax", "nadam", "lion", "ftrl", "lamb", "adafactor", "muon", "schedule_free_adamw"; also its
 * class names in lower case, as "schedulefreeadamw". */
CornuOptimizer *cornu_optimizer(const char *name);
/* Frees one that was never given to a model, with its variables. NULL is ignored. */
void            cornu_optimizer_free(CornuOptimizer *optimizer);

typedef struct {
    char            unset;
    CornuOptimizer *optimizer;            /* taken, and returned */
    double          initial_scale;        /* default 2^15 */
    int64_t         dynamic_growth_steps; /* default 2000 */
    const char     *name;                 /* default loss_scale_optimizer */
} CornuLossScaleConfig;

/* Makes the optimizer scale the loss, so that f16 gradients do not underflow; cornu_compile does so
 * under mixed_float16. A step whose gradients are not all finite leaves weights, slots and
 * iteration unchanged and halves the scale; dynamic_growth_steps finite steps in a row double it.
 * NULL for NULL. Source: keras/src/optimizers/loss_scale_optimizer.py. */
CornuOptimizer *cornu_loss_scale_optimizer_from(const CornuLossScaleConfig *config);
#define cornu_loss_scale_optimizer(...) \
    cornu_loss_scale_optimizer_from(&(CornuLossScaleConfig){ .unset = 0, __VA_ARGS__ })

/*
 * How an optimizer's gradients are reduced over the shards of a device. Every optimizer sums them.
 * As a shard's loss is its part of the batch's (its sum over valid rows / all valid rows), the sum
 * is the gradient of the mean: CORNU_MEAN. With CORNU_SUM a shard's loss is the mean over its own
 * rows, so gradients are larger by the number of shards that are summed. Groups of shards
 * (CornuGroups, tensor/training_ops.h) sum among themselves only: each has its own weights and
 * slots, all equal at first. Reading a variable, or writing it to a file, takes shard 0's value,
 * but a backup (backup.h) has every shard's; writing a variable sets all. Predictions and metrics
 * use each shard's own. On a device with one shard there is nothing to reduce.
 *
 *     cornu_cross_shard_optimizer(cornu_adam(.learning_rate = 1e-3), .reduction = CORNU_SUM)
 *
 * Source: tensorflow/python/tpu/tpu_optimizer.py, CrossShardOptimizer.
 */
typedef struct {
    char            unset;
    CornuOptimizer *optimizer;     /* taken, and returned */
    CornuReduction  reduction;     /* CORNU_MEAN or CORNU_SUM */
    int             group_size;    /* default: all shards; build refuses one that does not fit */
    int             group_assignment[CORNU_MAX_SHARDS]; /* default 0, 1, 2, …; needs group_size */
} CornuCrossShardConfig;

CornuOptimizer *cornu_cross_shard_optimizer_from(const CornuCrossShardConfig *config);
#define cornu_cross_shard_optimizer(...) \
    cornu_cross_shard_optimizer_from(&(CornuCrossShardConfig){ .unset = 0, __VA_ARGS__ })

/* Its .name, by default Keras': "adam". Owned by the optimizer. */
const char *cornu_optimizer_name(const CornuOptimizer *optimizer);

/* ---- For custom loops; cornu_compile and fit do this for a model ---- */

/* Creates the optimizer's variables for weights w[0 … count), f32, once; it owns them. The weights
 * are packed (cornu_variable_pack), by layer: record graphs that read them after this. Once more it
 * packs them again, where another optimizer was built for some of them since. */
CornuStatus cornu_optimizer_build(CornuOptimizer *optimizer, CornuVariable *const *w, int count);

/* The number of its variables: the iteration, the learning rate, the slots. 0 before build. */
int            cornu_optimizer_variable_count(const CornuOptimizer *optimizer);
/* Variable i, from 0, in Keras' order; owned by the optimizer. NULL if there is none. */
CornuVariable *cornu_optimizer_variable(const CornuOptimizer *optimizer, int i);
/* The i64 that counts steps; NULL before build. */
CornuVariable *cornu_optimizer_iteration(const CornuOptimizer *optimizer);

/* Applies the constraint to weight i of build after each update. */
void cornu_optimizer_constrain(CornuOptimizer *optimizer, int i, CornuConstraint constraint);

/* With use_ema, replaces the weights by their averages; fit does so when it ends. */
CornuStatus cornu_optimizer_finalize_variable_values(CornuOptimizer *optimizer);

/* Swaps the weights and their averages; a second call swaps them back. For the use of the averages
 * between two steps. CORNU_ERR_ARGUMENT without use_ema. */
CornuStatus cornu_optimizer_swap_averages(CornuOptimizer *optimizer);

/* The scaled loss, of which to take gradients; the loss itself if it is not scaled.
 * cornu_optimizer_apply divides by the scale. Also weighs a shard's loss by the reduction:
 * CORNU_SUM, or a mean over groups. */
CornuTensor *cornu_optimizer_scale_loss(const CornuOptimizer *optimizer, CornuTensor *loss);

/* Records one step: assigns the weights of build, and the variables, from the gradients of the loss
 * that cornu_optimizer_scale_loss returned. These are each shard's own and are summed here, but
 * gradients that do not vary between shards, of a loss that does not, are not summed. */
CornuStatus cornu_optimizer_apply(CornuOptimizer *optimizer, CornuGraph *graph,
                                  CornuTensor *const *gradients);

/* The l2 norm of all gradients before clipping, summed over the shards and unscaled: an f32 scalar,
 * equal on all shards; with groups, the root of the mean of their squared norms. NULL with a
 * pending error. */
CornuTensor *cornu_optimizer_gradient_norm(const CornuOptimizer *optimizer, CornuGraph *graph,
                                           CornuTensor *const *gradients);

/* Sets the learning rate, also before build; CORNU_ERR_UNSUPPORTED under a schedule. */
CornuStatus cornu_optimizer_set_learning_rate(CornuOptimizer *optimizer, double value);

/* Sets .gradient_accumulation_steps of one that was made without, before build: 1, no accumulation,
 * or more. CORNU_ERR_UNSUPPORTED for a multi_optimizer, whose optimizers have their own;
 * CORNU_ERR_ARGUMENT where it is another number already. */
CornuStatus cornu_optimizer_set_accumulation(CornuOptimizer *optimizer, int64_t steps);
/* The rate of the next step, also under a schedule. */
CornuStatus cornu_optimizer_learning_rate(const CornuOptimizer *optimizer, double *value);

#ifdef __cplusplus
}
#endif
#endif
