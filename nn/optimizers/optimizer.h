/*
 * Optimizers by Keras' names, arguments and formulas (keras/src/optimizers).
 *
 *     cornu_compile(model, .optimizer = cornu_adam(.learning_rate = 1e-3), …)
 *     cornu_compile(model, .optimizer = cornu_optimizer("rmsprop"), …)
 *
 * A step clips the gradients, sums them over the shards, decays the weights, updates them, applies
 * their constraints and counts the iteration. All weights are packed into one flat variable;
 * gradients and slots have the same layout: each shard sums one slice of the gradients and updates
 * that slice of the weights with its slice of the slots; the slices are gathered into the new
 * weights, to which constraints apply as a whole.
 * The variables, in Keras' order: iteration (i64), learning_rate (f32; absent under a schedule),
 * averages, accumulated gradients, slots, Nadam's u_product; before them, if the loss is scaled,
 * those of Keras' LossScaleOptimizer: an iteration (i64) and a learning_rate (f32) of its own, both
 * 0 and without effect, step_counter (i64) and dynamic_scale (f32).
 */
#ifndef CORNU_NN_OPTIMIZER_H
#define CORNU_NN_OPTIMIZER_H

#include "../../tensor/ops.h"
#include "../weights/constraints.h"
#include "../config/keywords.h"
#include "../losses/loss.h"
#include "schedule.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CornuOptimizer CornuOptimizer;

enum { CORNU_MAX_EXCLUDED = 16 };

/* Arguments of every optimizer; AdamW, which has its own weight_decay, has those after it. */
#define CORNU_OPTIMIZER_ARGUMENTS                                                        \
    CornuSchedule *schedule;        /* instead of learning_rate; taken                */ \
    double         weight_decay;    /* w -= w weight_decay learning_rate              */ \
    CORNU_OPTIMIZER_ARGUMENTS_AFTER_DECAY

#define CORNU_OPTIMIZER_ARGUMENTS_AFTER_DECAY                                            \
                                    /* At most one of the three may be given. They    */ \
                                    /* clip a shard's gradients before the sum, but   */ \
                                    /* accumulated gradients after it.                */ \
    double         clipnorm;        /* largest norm of each gradient                  */ \
    double         clipvalue;       /* largest absolute value of each element         */ \
    double         global_clipnorm; /* largest norm of all gradients together         */ \
    bool           use_ema;         /* keeps each weight's moving average,            */ \
    double         ema_momentum;    /* a = ema_momentum a + (1 - ema_momentum) w;     */ \
                                    /* default 0.99, or CORNU_ZERO                    */ \
    int64_t        ema_overwrite_frequency; /* steps after which the averages replace */ \
                                    /* the weights; default: only when fit ends       */ \
    double         loss_scale_factor; /* multiplies the loss and divides gradients;   */ \
                                    /* no effect where f16 scales the loss:           */ \
                                    /* cornu_loss_scale_optimizer                     */ \
    int64_t        gradient_accumulation_steps; /* 2 or more: updates by the mean of  */ \
                                    /* the gradients of so many steps                 */ \
    const char    *name;            /* default Keras': sgd, rm_sprop, adam, adam_w, … */

/* m = momentum m - learning_rate g; w += m; with nesterov w += momentum m - learning_rate g. */
typedef struct {
    char   unset;
    const char *written;            /* the call, see keywords.h */
    double learning_rate;           /* default 0.01, or CORNU_ZERO */
    double momentum;                /* 0 to 1 */
    bool   nesterov;
    CORNU_OPTIMIZER_ARGUMENTS
} CornuSgdConfig;

CornuOptimizer *cornu_sgd_from(const CornuSgdConfig *config);
#define cornu_sgd(...) \
    cornu_sgd_from(&(CornuSgdConfig){ .unset = 0, .written = #__VA_ARGS__, __VA_ARGS__ })

/* v = rho v + (1 - rho) g^2; w -= learning_rate g / sqrt(v + epsilon); centered: v - mean(g)^2.
 * RMSProp of TensorFlow 1 has an initial v of 1 and an epsilon of 1e-10:
 *     cornu_rmsprop(.initial_velocity = 1.0, .epsilon = 1e-10)
 * Source: keras/src/optimizers/rmsprop.py; tensorflow/python/training/rmsprop.py. */
typedef struct {
    char   unset;
    const char *written;            /* the call, see keywords.h */
    double learning_rate;           /* default 0.001, or CORNU_ZERO */
    double rho;                     /* default 0.9, or CORNU_ZERO   */
    double momentum;
    double epsilon;                 /* default 1e-7, or CORNU_ZERO  */
    bool   centered;
    double initial_velocity;        /* the initial v */
    CORNU_OPTIMIZER_ARGUMENTS
} CornuRmspropConfig;

CornuOptimizer *cornu_rmsprop_from(const CornuRmspropConfig *config);
#define cornu_rmsprop(...) \
    cornu_rmsprop_from(&(CornuRmspropConfig){ .unset = 0, .written = #__VA_ARGS__, __VA_ARGS__ })

/* m += (g - m)(1 - beta_1); v += (g^2 - v)(1 - beta_2);
 * w -= learning_rate sqrt(1 - beta_2^t) / (1 - beta_1^t) m / (sqrt(v) + epsilon) */
typedef struct {
    char   unset;
    const char *written;            /* the call, see keywords.h */
    double learning_rate;           /* default 0.001, or CORNU_ZERO           */
    double beta_1, beta_2;          /* default 0.9 and 0.999, or CORNU_ZERO; below 1 */
    double epsilon;                 /* default 1e-7, or CORNU_ZERO            */
    bool   amsgrad;                 /* divides by the largest v so far */
    CORNU_OPTIMIZER_ARGUMENTS
} CornuAdamConfig;

CornuOptimizer *cornu_adam_from(const CornuAdamConfig *config);
#define cornu_adam(...) \
    cornu_adam_from(&(CornuAdamConfig){ .unset = 0, .written = #__VA_ARGS__, __VA_ARGS__ })

/* Adam whose weights decay. Source: Loshchilov and Hutter, "Decoupled Weight Decay
 * Regularization", arXiv 1711.05101. */
typedef struct {
    char           unset;
    const char    *written;         /* the call, see keywords.h */
    double         learning_rate;   /* default 0.001, or CORNU_ZERO */
    double         weight_decay;    /* default 0.004, or CORNU_ZERO */
    double         beta_1, beta_2;  /* these four as in Adam */
    double         epsilon;
    bool           amsgrad;
    CornuSchedule *schedule;
    CORNU_OPTIMIZER_ARGUMENTS_AFTER_DECAY
} CornuAdamwConfig;

CornuOptimizer *cornu_adamw_from(const CornuAdamwConfig *config);
#define cornu_adamw(...) \
    cornu_adamw_from(&(CornuAdamwConfig){ .unset = 0, .written = #__VA_ARGS__, __VA_ARGS__ })

/* a += g^2; w -= learning_rate g / sqrt(a + epsilon)
 * Source: Duchi, Hazan and Singer, "Adaptive Subgradient Methods", JMLR 12, 2011. */
typedef struct {
    char   unset;
    const char *written;            /* the call, see keywords.h */
    double learning_rate;           /* default 0.001, or CORNU_ZERO */
    double initial_accumulator_value; /* the initial a; default 0.1, or CORNU_ZERO */
    double epsilon;                 /* default 1e-7, or CORNU_ZERO  */
    CORNU_OPTIMIZER_ARGUMENTS
} CornuAdagradConfig;

CornuOptimizer *cornu_adagrad_from(const CornuAdagradConfig *config);
#define cornu_adagrad(...) \
    cornu_adagrad_from(&(CornuAdagradConfig){ .unset = 0, .written = #__VA_ARGS__, __VA_ARGS__ })

/* a = rho a + (1 - rho) g^2;  d = -g sqrt(b + epsilon) / sqrt(a + epsilon);
 * b = rho b + (1 - rho) d^2;  w += learning_rate d
 * Source: Zeiler, "ADADELTA: An Adaptive Learning Rate Method", arXiv 1212.5701. */
typedef struct {
    char   unset;
    const char *written;            /* the call, see keywords.h */
    double learning_rate;           /* default 0.001, or CORNU_ZERO */
    double rho;                     /* default 0.95, or CORNU_ZERO  */
    double epsilon;                 /* default 1e-7, or CORNU_ZERO  */
    CORNU_OPTIMIZER_ARGUMENTS
} CornuAdadeltaConfig;

CornuOptimizer *cornu_adadelta_from(const CornuAdadeltaConfig *config);
#define cornu_adadelta(...) \
    cornu_adadelta_from(&(CornuAdadeltaConfig){ .unset = 0, .written = #__VA_ARGS__, __VA_ARGS__ })

/* Arguments of Adamax, Nadam and Lamb, as in Adam. */
typedef struct {
    char   unset;
    const char *written;            /* the call, see keywords.h */
    double learning_rate;           /* default 0.001, or CORNU_ZERO */
    double beta_1, beta_2;          /* default 0.9 and 0.999, or CORNU_ZERO; below 1 */
    double epsilon;                 /* default 1e-7, or CORNU_ZERO  */
    CORNU_OPTIMIZER_ARGUMENTS
} CornuMomentsConfig;

/* m += (g - m)(1 - beta_1);  u = max(beta_2 u, |g|);
 * w -= learning_rate m / ((1 - beta_1^t) (u + epsilon))
 * Source: Kingma and Ba, "Adam", arXiv 1412.6980, section 7.1. */
CornuOptimizer *cornu_adamax_from(const CornuMomentsConfig *config);
#define cornu_adamax(...) \
    cornu_adamax_from(&(CornuMomentsConfig){ .unset = 0, .written = #__VA_ARGS__, __VA_ARGS__ })

/* Adam with Nesterov's momentum, u_t = beta_1 (1 - 0.96^t / 2), p_t = u_1 u_2 … u_t:
 * w -= learning_rate (u_{t+1} m / (1 - p_{t+1}) + (1 - u_t) g / (1 - p_t))
 *      / (sqrt(v / (1 - beta_2^t)) + epsilon)
 * Its variable u_product, p_t, has no name in Keras.
 * Source: Dozat, "Incorporating Nesterov Momentum into Adam", ICLR workshop 2016. */
CornuOptimizer *cornu_nadam_from(const CornuMomentsConfig *config);
#define cornu_nadam(...) \
    cornu_nadam_from(&(CornuMomentsConfig){ .unset = 0, .written = #__VA_ARGS__, __VA_ARGS__ })

/* w -= learning_rate sign(beta_1 m + (1 - beta_1) g);  m = beta_2 m + (1 - beta_2) g
 * Source: Chen et al., "Symbolic Discovery of Optimization Algorithms", arXiv 2302.06675. */
typedef struct {
    char   unset;
    const char *written;            /* the call, see keywords.h */
    double learning_rate;           /* default 0.001, or CORNU_ZERO */
    double beta_1;                  /* default 0.9; more than 0, at most 1 */
    double beta_2;                  /* default 0.99, or CORNU_ZERO; at most 1 */
    CORNU_OPTIMIZER_ARGUMENTS
} CornuLionConfig;

CornuOptimizer *cornu_lion_from(const CornuLionConfig *config);
#define cornu_lion(...) \
    cornu_lion_from(&(CornuLionConfig){ .unset = 0, .written = #__VA_ARGS__, __VA_ARGS__ })

/* p = -learning_rate_power; l2 = l2_regularization_strength + beta / (2 learning_rate):
 * n' = n + g^2;  z += g + 2 l2_shrinkage_regularization_strength w - (n'^p - n^p) w / learning_rate
 * w = (clip(z, -l1, l1) - z) / (n'^p / learning_rate + 2 l2)
 * Source: McMahan et al., "Ad Click Prediction: a View from the Trenches", KDD 2013. */
typedef struct {
    char   unset;
    const char *written;            /* the call, see keywords.h */
    double learning_rate;           /* default 0.001, or CORNU_ZERO */
    double learning_rate_power;     /* default -0.5, or CORNU_ZERO; at most 0 */
    double initial_accumulator_value; /* the initial n; default 0.1, or CORNU_ZERO */
    double l1_regularization_strength, l2_regularization_strength;
    double l2_shrinkage_regularization_strength;
    double beta;
    CORNU_OPTIMIZER_ARGUMENTS
} CornuFtrlConfig;

CornuOptimizer *cornu_ftrl_from(const CornuFtrlConfig *config);
#define cornu_ftrl(...) \
    cornu_ftrl_from(&(CornuFtrlConfig){ .unset = 0, .written = #__VA_ARGS__, __VA_ARGS__ })

/* u = m / (1 - beta_1^t) / (sqrt(v / (1 - beta_2^t)) + epsilon), m and v as in Adam;
 * w -= learning_rate u |w| / |u|, with the norms of each weight, or the ratio 1 if one of them is
 * 0. Source: You et al., "Large Batch Optimization for Deep Learning", arXiv 1904.00962. */
CornuOptimizer *cornu_lamb_from(const CornuMomentsConfig *config);
#define cornu_lamb(...) \
    cornu_lamb_from(&(CornuMomentsConfig){ .unset = 0, .written = #__VA_ARGS__, __VA_ARGS__ })

/* Not one of Keras'. With the norms of each weight
 *   g += weight_decay w;  m = momentum m + learning_rate eeta |w| / |g| g;  w -= m
 * or, with nesterov, w -= momentum m + learning_rate eeta |w| / |g| g. Where a norm is 0, and for
 * weights that are excluded from layer adaptation, the factor eeta |w| / |g| is 1. Biases and
 * normalization usually are excluded from both. A model with it is saved uncompiled.
 * Source: You, Gitman and Ginsburg, "Large Batch Training of Convolutional Networks",
 * arXiv 1708.03888; names and defaults are TensorFlow Models'. */
typedef struct {
    char   unset;
    const char *written;            /* the call, see keywords.h */
    double learning_rate;           /* default 0.01, or CORNU_ZERO */
    double momentum;                /* default 0.9, or CORNU_ZERO; at most 1 */
    double eeta;                    /* default 0.001; more than 0 */
    bool   nesterov;
    bool   no_classic_momentum;     /* m = momentum m + g;  w -= learning_rate eeta |w| / |m| m */
    /* POSIX extended expressions that match part of a weight's path; copied. Without the second,
     * the first are excluded from both. */
    const char *exclude_from_weight_decay[CORNU_MAX_EXCLUDED];
    const char *exclude_from_layer_adaptation[CORNU_MAX_EXCLUDED];
    CORNU_OPTIMIZER_ARGUMENTS       /* weight_decay as above */
} CornuLarsConfig;

CornuOptimizer *cornu_lars_from(const CornuLarsConfig *config);
#define cornu_lars(...) \
    cornu_lars_from(&(CornuLarsConfig){ .unset = 0, .written = #__VA_ARGS__, __VA_ARGS__ })

/* beta = 1 - t^beta_2_decay; for a weight with two axes or more, of g^2 + epsilon_1 the means r
 * over the last axis and c over the one before it, each averaged with beta; v = r c / mean(r), else
 * v is averaged itself; u = g / sqrt(v); with rms(x) = sqrt(mean(x^2)) of each weight
 * w -= min(learning_rate, 1 / sqrt(t)) max(epsilon_2, rms(w)) u / max(1, rms(u) / clip_threshold)
 * relative_step has no effect in Keras either.
 * Source: Shazeer and Stern, "Adafactor", arXiv 1804.04235. */
typedef struct {
    char   unset;
    const char *written;            /* the call, see keywords.h */
    double learning_rate;           /* default 0.001, or CORNU_ZERO */
    double beta_2_decay;            /* default -0.8, or CORNU_ZERO; at most 0 */
    double epsilon_1, epsilon_2;    /* default 1e-30 and 0.001, or CORNU_ZERO */
    double clip_threshold;          /* default 1; more than 0 */
    bool   no_relative_step;
    CORNU_OPTIMIZER_ARGUMENTS
} CornuAdafactorConfig;

CornuOptimizer *cornu_adafactor_from(const CornuAdafactorConfig *config);
#define cornu_adafactor(...) \
    cornu_adafactor_from(                                                                      \
        &(CornuAdafactorConfig){ .unset = 0, .written = #__VA_ARGS__, __VA_ARGS__ })

/* For matrices that are not excluded, m = momentum m + g; x = g + momentum m, or m without
 * nesterov; ns_steps times, from x / |x| (transposed if it has more rows than columns), A = x x^T,
 * x = muon_a x + (muon_b A + muon_c A A) x; w -= learning_rate x sqrt(max(rows, columns)) rms_rate.
 * Other weights: Adam, with learning_rate adam_lr_ratio and the decay adam_weight_decay.
 * Source: Jordan et al., "Muon", and Liu et al., "Muon is Scalable for LLM Training",
 * arXiv 2502.16982. */
typedef struct {
    char   unset;
    const char *written;            /* the call, see keywords.h */
    double learning_rate;           /* default 0.001, or CORNU_ZERO */
    double adam_beta_1, adam_beta_2; /* default 0.9 and 0.999, or CORNU_ZERO; below 1 */
    double adam_weight_decay;       /* default 0.004, or CORNU_ZERO */
    double epsilon;                 /* default 1e-7, or CORNU_ZERO */
    double weight_decay;            /* default 0.004, or CORNU_ZERO */
    CornuSchedule *schedule;        /* instead of learning_rate; taken */
    CORNU_OPTIMIZER_ARGUMENTS_AFTER_DECAY
    const char *exclude_layers[CORNU_MAX_EXCLUDED]; /* patterns (POSIX extended) of parts of the
                                       paths of weights that are not for Muon; copied */
    bool   no_exclude_embeddings;   /* else a path with "embedding" is not, either */
    double muon_a, muon_b, muon_c;  /* default 3.4445, -4.775, 2.0315, or CORNU_ZERO */
    double adam_lr_ratio;           /* default 1, or CORNU_ZERO */
    double momentum;                /* default 0.95, or CORNU_ZERO */
    int64_t ns_steps;               /* default 5, or CORNU_ZERO; at most 100 */
    bool   no_nesterov;
    double rms_rate;                /* default 0.2; CORNU_ZERO: the last two factors are left out */
} CornuMuonConfig;

CornuOptimizer *cornu_muon_from(const CornuMuonConfig *config);
#define cornu_muon(...) \
    cornu_muon_from(&(CornuMuonConfig){ .unset = 0, .written = #__VA_ARGS__, __VA_ARGS__ })

/* v as in Adam; z -= learning_rate min(t / warmup_steps, 1) g / (sqrt(v / (1 - beta_2^t)) +
 * epsilon); x = (1 - 1/t) x + z / t; w = (1 - beta_1) z + beta_1 x. The slot momentum is z, at
 * first w; x is computed from z and w.
 * Source: Defazio et al., "The Road Less Scheduled", arXiv 2405.15682. */
typedef struct {
    char   unset;
    const char *written;            /* the call, see keywords.h */
    double learning_rate;           /* default 0.0025, or CORNU_ZERO */
    double beta_1;                  /* default 0.9; more than 0, at most 1 */
    double beta_2;                  /* default 0.999, or CORNU_ZERO; below 1 */
    double epsilon;                 /* default 1e-8, or CORNU_ZERO */
    int64_t warmup_steps;           /* default 0 */
    CORNU_OPTIMIZER_ARGUMENTS
} CornuScheduleFreeConfig;

CornuOptimizer *cornu_schedule_free_adamw_from(const CornuScheduleFreeConfig *config);
#define cornu_schedule_free_adamw(...) \
    cornu_schedule_free_adamw_from(                                                            \
        &(CornuScheduleFreeConfig){ .unset = 0, .written = #__VA_ARGS__, __VA_ARGS__ })

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
 * (CornuGroups in tensor/ops.h) sum among themselves only: each has its own weights and slots, all
 * equal at first. Reading a variable, or writing it to a file, takes shard 0's value, but a backup
 * (backup.h) has every shard's; writing a variable sets all. Predictions and metrics use each
 * shard's own. On a device with one shard there is nothing to reduce.
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

const char *cornu_optimizer_name(const CornuOptimizer *optimizer);

/* ---- For custom loops; cornu_compile and fit do this for a model ---- */

/* Creates the optimizer's variables for weights w[0 … count), f32, once; it owns them. The weights
 * are packed (cornu_variable_pack), by layer: record graphs that read them after this. */
CornuStatus cornu_optimizer_build(CornuOptimizer *optimizer, CornuVariable *const *w, int count);

int            cornu_optimizer_variable_count(const CornuOptimizer *optimizer);
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
/* The rate of the next step, also under a schedule. */
CornuStatus cornu_optimizer_learning_rate(const CornuOptimizer *optimizer, double *value);

/* ---- For a custom optimizer ---- */

enum { CORNU_MAX_SLOTS = 3, CORNU_MAX_COMMON_SLOTS = 2 };

/* The input of an update: a slice of weights laid out in one vector, so that an element's update
 * must not depend on other elements; of update_weight one weight in its own shape. */
typedef struct {
    CornuTensor *w, *gradient;                /* of one shape, f32 */
    CornuTensor *w_before;                    /* w before its weight_decay */
    CornuTensor *slot[CORNU_MAX_SLOTS];       /* in the order of slots(); NULL: not this weight's */
    CornuTensor *learning_rate, *iteration;   /* f32 scalars; the first update is iteration 1 */
    CornuTensor *number;                      /* f32 scalar, if the class has number_name */
} CornuUpdate;

/* Kinds of arguments: double; bool; the opposite of a bool; int64_t; a double for which Keras has
 * None, CORNU_ZERO in the config and 0 in the optimizer; strings, CORNU_MAX_EXCLUDED pointers up to
 * the first NULL. */
typedef enum {
    CORNU_ARGUMENT_NUMBER, CORNU_ARGUMENT_FLAG, CORNU_ARGUMENT_NOT, CORNU_ARGUMENT_INTEGER,
    CORNU_ARGUMENT_NUMBER_OR_NONE, CORNU_ARGUMENT_STRINGS
} CornuArgumentKind;

/* An argument of a class besides those of every optimizer: Keras' name, and its offset in the
 * constructor's config and, with its default filled in, in the optimizer's own struct. */
typedef struct {
    const char       *name;        /* NULL ends a table */
    CornuArgumentKind kind;
    size_t            in_config, in_self;
} CornuOptimizerField;

typedef struct {
    const char *class_name;  /* Keras': "Adam" */
    size_t      size;        /* of its own struct, whose first field is a CornuOptimizer */
    /* Names of the slots of each weight, in groups: the slots of a group alternate weight by
     * weight; one group follows the other. Returns their number. */
    int (*slots)(const CornuOptimizer *self, const char *name[CORNU_MAX_SLOTS],
                 int group[CORNU_MAX_SLOTS]);
    /* The initial value of the elements of slot number `slot` of slots(); NULL: 0. */
    double (*initial)(const CornuOptimizer *self, int slot);
    /* A number kept from update to update besides the slots, if it has a name: its initial value,
     * and the next one from the last one, computed before the rest of the step. */
    const char  *number_name;
    double       first_number;
    CornuTensor *(*number)(const CornuOptimizer *self, const CornuUpdate *update);
    /* Computed once per step, for all weights: replaces update->learning_rate. May be NULL. */
    CornuTensor *(*rate)(const CornuOptimizer *self, const CornuUpdate *update);
    /* Records the new weight (returned) and the new slots. */
    CornuTensor *(*update)(const CornuOptimizer *self, const CornuUpdate *update,
                           CornuTensor **new_slot);
    /* In place of it, where the update of an element depends on others of its weight: weight i of
     * build. Every shard computes all of it; groups of shards are refused. */
    CornuTensor *(*update_weight)(const CornuOptimizer *self, int i, const CornuUpdate *update,
                                  CornuTensor **new_slot);
    /* With it: the type of slot number `slot` of the weight, or false if it has none. NULL: all
     * have the weight's. */
    bool (*slot_type)(const CornuOptimizer *self, const CornuVariable *w, int slot,
                      CornuType *type);
    /* With it: the weight_decay of the weight. NULL: the optimizer's. */
    double (*decay_of)(const CornuOptimizer *self, const CornuVariable *w);
    /* 1 + the slot that starts as a copy of its weight; 0: none does. */
    int weight_slot;
    /* Frees what its own struct owns; may be NULL. */
    void (*free)(CornuOptimizer *self);
    /* For an optimizer that is made of others (optimizer_internal.h). */
    const struct CornuComposite *composite;
    /* For files: its own arguments, the config's size and the constructor; all zero for an
     * optimizer that cannot be saved. */
    const CornuOptimizerField *fields;
    size_t                     config_size;
    CornuOptimizer          *(*from)(const void *config);
} CornuOptimizerClass;

/* A run of weights and their slots, summed over the shards and updated together, as one vector; or
 * a table with a sparse gradient, which is not packed. */
typedef struct {
    int            first, count;
    bool           sparse;
    CornuVariable *weights;                   /* packed; theirs, as a packed slot is the slots' */
    CornuVariable *slots[CORNU_MAX_COMMON_SLOTS + CORNU_MAX_SLOTS];
} CornuBucket;

struct CornuOptimizer {
    const CornuOptimizerClass *kind;
    char             *name;
    CornuSchedule    *schedule;               /* or NULL */
    double            learning_rate;          /* the first value of the variable */
    double            weight_decay, clipnorm, clipvalue, global_clipnorm;  /* 0: none */
    bool              use_ema;
    double            ema_momentum, loss_scale_factor;                     /* 0: none */
    int64_t           ema_overwrite_frequency, accumulation_steps;         /* 0: none */
    bool              scales_loss;
    double            initial_scale;          /* these three if it does */
    int64_t           growth_steps;
    char             *scale_name;
    bool              taken;                  /* owned by a model: it cannot be passed again */
    CornuVariable   **variables;              /* its own, in Keras' order */
    int               variable_count;
    int               unlisted;               /* variables after these: see kept_count */
    CornuVariable    *iteration, *rate;       /* of these; rate is NULL under a schedule, */
    CornuVariable    *step_counter, *dynamic_scale;  /* these two where the loss is not scaled */
    CornuVariable    *number;                 /* the class's number, or NULL */
    CornuVariable   **w;                      /* borrowed */
    CornuConstraint  *constraints;            /* of each w */
    CornuVariable   **slots;                  /* slot s of weight i: slots[i * slot_count + s], */
    int               count, slot_count;      /* those of every optimizer first, then the class's */
    CornuBucket      *buckets;                /* the last weights' first, as the backward pass */
    int               bucket_count;           /* makes their gradients                         */
    size_t            bucket_bytes;           /* of weights, at which a bucket is full; 0: 1 MiB */
    CornuReduction    reduction;
    CornuGroups       groups;
};

#ifdef __cplusplus
}
#endif
#endif
