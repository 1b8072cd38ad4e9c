/*
 * Optimizers by Keras' names, arguments and formulas (keras/src/optimizers).
 *
 *     cornu_compile(model, .optimizer = cornu_adam(.learning_rate = 1e-3), …)
 *     cornu_compile(model, .optimizer = cornu_optimizer("rmsprop"), …)
 *
 * A step clips the gradients, sums them over the shards, lets the weights decay, updates them and
 * counts the iteration. All weights are packed into one flat variable, gradients and slots are laid
 * out likewise: each shard sums one slice of the gradients, updates that slice of the weights with
 * its slice of the slots, and the slices are the new weights.
 * Its variables, in Keras' order: iteration (i64), learning_rate (f32; absent under a
 * schedule), then slots; in front of them, where the loss is scaled, step_counter (i64) and
 * dynamic_scale (f32).
 */
#ifndef CORNU_NN_OPTIMIZER_H
#define CORNU_NN_OPTIMIZER_H

#include "../tensor/ops.h"
#include "keywords.h"
#include "schedule.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CornuOptimizer CornuOptimizer;

/* Arguments of every optimizer. Keras' use_ema, loss_scale_factor and
 * gradient_accumulation_steps are not available: giving one is CORNU_ERR_UNSUPPORTED. */
#define CORNU_OPTIMIZER_ARGUMENTS                                                        \
    CornuSchedule *schedule;        /* instead of learning_rate; taken                */ \
    double         weight_decay;    /* w -= w weight_decay learning_rate              */ \
    double         clipnorm;        /* at most this norm for each gradient; at most   */ \
    double         clipvalue;       /* one of the three may be given. Clips elements. */ \
    double         global_clipnorm; /* at most this norm for all gradients together.  */ \
                                    /* All see a shard's own gradient, before the sum */ \
    bool           use_ema;                                                              \
    double         loss_scale_factor;                                                    \
    int64_t        gradient_accumulation_steps;                                          \
    const char    *name;            /* default sgd, rmsprop, adam */

/* m = momentum m - learning_rate g; w += m; with nesterov w += momentum m - learning_rate g. */
typedef struct {
    char   unset;
    double learning_rate;           /* default 0.01, or CORNU_ZERO */
    double momentum;                /* 0 to 1 */
    bool   nesterov;
    CORNU_OPTIMIZER_ARGUMENTS
} CornuSgdConfig;

CornuOptimizer *cornu_sgd_from(const CornuSgdConfig *config);
#define cornu_sgd(...) cornu_sgd_from(&(CornuSgdConfig){ .unset = 0, __VA_ARGS__ })

/* v = rho v + (1 - rho) g^2; w -= learning_rate g / sqrt(v + epsilon); centered: v - mean(g)^2.
 * TensorFlow 1 had another form of the same name, whose v began with 1 and whose epsilon was 1e-10:
 *     cornu_rmsprop(.initial_velocity = 1.0, .epsilon = 1e-10)
 * Source: keras/src/optimizers/rmsprop.py; tensorflow/python/training/rmsprop.py. */
typedef struct {
    char   unset;
    double learning_rate;           /* default 0.001, or CORNU_ZERO */
    double rho;                     /* default 0.9, or CORNU_ZERO   */
    double momentum;
    double epsilon;                 /* default 1e-7, or CORNU_ZERO  */
    bool   centered;
    double initial_velocity;        /* what v begins with           */
    CORNU_OPTIMIZER_ARGUMENTS
} CornuRmspropConfig;

CornuOptimizer *cornu_rmsprop_from(const CornuRmspropConfig *config);
#define cornu_rmsprop(...) \
    cornu_rmsprop_from(&(CornuRmspropConfig){ .unset = 0, __VA_ARGS__ })

/* m += (g - m)(1 - beta_1); v += (g^2 - v)(1 - beta_2);
 * w -= learning_rate sqrt(1 - beta_2^t) / (1 - beta_1^t) m / (sqrt(v) + epsilon) */
typedef struct {
    char   unset;
    double learning_rate;           /* default 0.001, or CORNU_ZERO           */
    double beta_1, beta_2;          /* default 0.9 and 0.999, or CORNU_ZERO; below 1 */
    double epsilon;                 /* default 1e-7, or CORNU_ZERO            */
    bool   amsgrad;                 /* divides by the greatest v so far       */
    CORNU_OPTIMIZER_ARGUMENTS
} CornuAdamConfig;

CornuOptimizer *cornu_adam_from(const CornuAdamConfig *config);
#define cornu_adam(...) cornu_adam_from(&(CornuAdamConfig){ .unset = 0, __VA_ARGS__ })

/* "sgd", "rmsprop", "adam" with their defaults. */
CornuOptimizer *cornu_optimizer(const char *name);
void            cornu_optimizer_free(CornuOptimizer *optimizer);

/* Makes it scale the loss, so that gradients in f16 do not vanish; cornu_compile does so under
 * mixed_float16. The scale is 2^15 at first. A step whose gradients are not all finite leaves
 * weights, slots and iteration as they are and halves the scale; 2000 finite ones in a row double
 * it. Returns the optimizer, NULL for NULL.
 * Source: keras/src/optimizers/loss_scale_optimizer.py. */
CornuOptimizer *cornu_loss_scale_optimizer(CornuOptimizer *optimizer);

/*
 * How an optimizer's gradients meet across the shards of a device. Every optimizer's are summed,
 * and as a shard's loss is its part of the batch's (its sum over valid rows / all valid rows), the
 * sum is the gradient of the mean: CORNU_MEAN. With CORNU_SUM a shard's loss is that of its own
 * rows alone, so gradients are as many times as large as shards work together. Groups of shards
 * (CornuGroups in tensor/ops.h) meet among themselves only: each has weights and slots of its own,
 * all the same at first. What is read, or written to a file, is shard 0's; what is written all
 * shards get. Predictions and metrics come from each shard's own. On a device with one shard there
 * is nothing to meet.
 *
 *     cornu_cross_shard_optimizer(cornu_adam(.learning_rate = 1e-3), .reduction = CORNU_SUM)
 *
 * Source: tensorflow/python/tpu/tpu_optimizer.py, CrossShardOptimizer.
 */
typedef enum { CORNU_MEAN, CORNU_SUM } CornuReduction;

typedef struct {
    char            unset;
    CornuOptimizer *optimizer;     /* taken, and returned */
    CornuReduction  reduction;
    int             group_size;    /* default: all shards; what does not fit is refused by build */
    int             group_assignment[CORNU_MAX_SHARDS]; /* default 0, 1, 2, …; needs group_size */
} CornuCrossShardConfig;

CornuOptimizer *cornu_cross_shard_optimizer_from(const CornuCrossShardConfig *config);
#define cornu_cross_shard_optimizer(...) \
    cornu_cross_shard_optimizer_from(&(CornuCrossShardConfig){ .unset = 0, __VA_ARGS__ })

const char *cornu_optimizer_name(const CornuOptimizer *optimizer);

/* ---- By hand; cornu_compile and fit do this for a model ---- */

/* Makes the optimizer's variables for weights w[0 … count), f32, once; they are the optimizer's.
 * The weights are packed (cornu_variable_pack): graphs that read them come after this. */
CornuStatus cornu_optimizer_build(CornuOptimizer *optimizer, CornuVariable *const *w, int count);

int            cornu_optimizer_variable_count(const CornuOptimizer *optimizer);
CornuVariable *cornu_optimizer_variable(const CornuOptimizer *optimizer, int i);
/* The i64 that counts steps; NULL before build. */
CornuVariable *cornu_optimizer_iteration(const CornuOptimizer *optimizer);

/* What gradients are to be taken of: the loss times the scale, the loss itself where it is not
 * scaled. cornu_optimizer_apply divides by the scale. A shard's loss that is not its part of the
 * batch's mean, by CORNU_SUM or in groups, becomes so here. */
CornuTensor *cornu_optimizer_scale_loss(const CornuOptimizer *optimizer, CornuTensor *loss);

/* Records one step: assigns the weights of build, and the variables, from the gradients of what
 * cornu_optimizer_scale_loss gave. They are each shard's own and are summed here; those that do not
 * vary from shard to shard, of a loss that does not, are whole already. */
CornuStatus cornu_optimizer_apply(CornuOptimizer *optimizer, CornuGraph *graph,
                                  CornuTensor *const *gradients);

/* The learning-rate variable; CORNU_ERR_UNSUPPORTED under a schedule, which rules alone. Before
 * build the number is kept for it. */
CornuStatus cornu_optimizer_set_learning_rate(CornuOptimizer *optimizer, double value);
/* The rate that the next step will use, also under a schedule. */
CornuStatus cornu_optimizer_learning_rate(const CornuOptimizer *optimizer, double *value);

/* ---- For an optimizer of one's own ---- */

enum { CORNU_MAX_SLOTS = 3 };

/* What a step gives an optimizer: a slice of all weights laid out in one vector. What it makes of
 * an element must not depend on the others. */
typedef struct {
    CornuTensor *w, *gradient;                /* of one shape, f32 */
    CornuTensor *slot[CORNU_MAX_SLOTS];       /* in the order of slots() */
    CornuTensor *learning_rate, *iteration;   /* f32 scalars; the first step is iteration 1 */
} CornuUpdate;

typedef struct {
    const char *class_name;  /* Keras': "Adam" */
    size_t      size;        /* of its own struct, whose first field is a CornuOptimizer */
    /* Names of the slots each weight has, in groups: the slots of a group alternate weight by
     * weight, one group follows the other. Returns how many. */
    int (*slots)(const CornuOptimizer *self, const char *name[CORNU_MAX_SLOTS],
                 int group[CORNU_MAX_SLOTS]);
    /* What the elements of slot number `slot` of slots() begin with; NULL: with 0. */
    double (*initial)(const CornuOptimizer *self, int slot);
    /* What is the same for all weights, computed once per step: replaces
     * update->learning_rate. May be NULL. */
    CornuTensor *(*rate)(const CornuOptimizer *self, const CornuUpdate *update);
    /* Records the new weight (returned) and the new slots. */
    CornuTensor *(*update)(const CornuOptimizer *self, const CornuUpdate *update,
                           CornuTensor **new_slot);
} CornuOptimizerClass;

struct CornuOptimizer {
    const CornuOptimizerClass *kind;
    char             *name;
    CornuSchedule    *schedule;               /* or NULL */
    double            learning_rate;          /* the first value of the variable */
    double            weight_decay, clipnorm, clipvalue, global_clipnorm;  /* 0: none */
    bool              scales_loss;
    CornuVariable   **variables;              /* its own, in Keras' order */
    int               variable_count;
    CornuVariable    *iteration, *rate;       /* of these; rate is NULL under a schedule, */
    CornuVariable    *step_counter, *dynamic_scale;  /* these two where the loss is not scaled */
    CornuVariable   **w;                      /* borrowed */
    CornuVariable   **slots;                  /* slot s of weight i: slots[i * slot_count + s] */
    int               count, slot_count;
    CornuVariable    *packed;                 /* all of w; theirs, as each packed slot is the   */
    CornuVariable    *packed_slots[CORNU_MAX_SLOTS];   /* slots'                                */
    CornuReduction    reduction;
    CornuGroups       groups;
};

#ifdef __cplusplus
}
#endif
#endif
