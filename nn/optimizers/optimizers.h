/* The optimizers, with Keras' names, arguments and formulas; optimizer.h says what all do. */
#ifndef CORNU_NN_OPTIMIZERS_H
#define CORNU_NN_OPTIMIZERS_H

#include "../config/keywords.h"
#include "optimizer_class.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif
#endif
