/*
 * Learning rates as functions of the optimizer's iteration t, which counts from 0: ops inside
 * the step. Computed in f32. Source: keras/src/optimizers/schedules/learning_rate_schedule.py.
 *
 *     cornu_adam(.schedule = cornu_exponential_decay(0.01, 1000, 0.96, .staircase = true))
 */
#ifndef CORNU_NN_SCHEDULE_H
#define CORNU_NN_SCHEDULE_H

#include "../../tensor/ops.h"
#include "../config/keywords.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CornuSchedule CornuSchedule;

/* A custom schedule is a struct that begins with this one. */
struct CornuSchedule {
    const char *name;
    /* iteration: f32 scalar. Returns the learning rate, an f32 scalar. */
    CornuTensor *(*call)(const CornuSchedule *self, CornuTensor *iteration);
    void (*free)(CornuSchedule *self);  /* frees self, too; NULL: the caller's */
    const char *record;                 /* of a custom one: as a loss's */
    bool taken;                         /* owned by an optimizer: it cannot be passed again */
};

/* Frees a schedule that was never given to an optimizer. NULL is ignored. */
void cornu_schedule_free(CornuSchedule *schedule);

typedef struct {
    char   unset;
    double initial_learning_rate, decay_steps, decay_rate;  /* required; steps above 0 */
    bool   staircase;                                       /* t / decay_steps is truncated */
} CornuDecayConfig;

/* initial_learning_rate decay_rate^(t / decay_steps) */
CornuSchedule *cornu_exponential_decay_from(const CornuDecayConfig *config);
#define cornu_exponential_decay(...) \
    cornu_exponential_decay_from(&(CornuDecayConfig){ .unset = 0, __VA_ARGS__ })

/* initial_learning_rate / (1 + decay_rate t / decay_steps) */
CornuSchedule *cornu_inverse_time_decay_from(const CornuDecayConfig *config);
#define cornu_inverse_time_decay(...) \
    cornu_inverse_time_decay_from(&(CornuDecayConfig){ .unset = 0, __VA_ARGS__ })

/* values[i] while t <= boundaries[i], at last values[count] */
typedef struct {
    char          unset;
    const double *boundaries;  /* ascending        */
    const double *values;      /* count + 1 values */
    int64_t       count;       /* of boundaries    */
} CornuPiecewiseConfig;

CornuSchedule *cornu_piecewise_constant_decay_from(const CornuPiecewiseConfig *config);
#define cornu_piecewise_constant_decay(...) \
    cornu_piecewise_constant_decay_from(&(CornuPiecewiseConfig){ .unset = 0, __VA_ARGS__ })

/* (initial - end) (1 - s / decay_steps)^power + end, s = min(t, decay_steps). With cycle,
 * decay_steps instead grows to its next multiple that is not below t. */
typedef struct {
    char   unset;
    double initial_learning_rate, decay_steps;  /* required */
    double end_learning_rate;                   /* default 0.0001, or CORNU_ZERO */
    double power;                               /* default 1, or CORNU_ZERO      */
    bool   cycle;
} CornuPolynomialConfig;

CornuSchedule *cornu_polynomial_decay_from(const CornuPolynomialConfig *config);
#define cornu_polynomial_decay(...) \
    cornu_polynomial_decay_from(&(CornuPolynomialConfig){ .unset = 0, __VA_ARGS__ })

/* From initial_learning_rate to alpha times that over decay_steps, half a cosine. With a
 * warmup_target it rises linearly to that during warmup_steps, and decays from there. */
typedef struct {
    char   unset;
    double initial_learning_rate, decay_steps;  /* required; CORNU_ZERO to warm up from 0 */
    double alpha;
    double warmup_target;                       /* default: no warm-up */
    double warmup_steps;
} CornuCosineConfig;

CornuSchedule *cornu_cosine_decay_from(const CornuCosineConfig *config);
#define cornu_cosine_decay(...) \
    cornu_cosine_decay_from(&(CornuCosineConfig){ .unset = 0, __VA_ARGS__ })

/* Repeated half cosines: each one t_mul times longer, starting m_mul times as high. */
typedef struct {
    char   unset;
    double initial_learning_rate, first_decay_steps;  /* required */
    double t_mul;                                     /* default 2 */
    double m_mul;                                     /* default 1 */
    double alpha;
} CornuCosineRestartsConfig;

CornuSchedule *cornu_cosine_decay_restarts_from(const CornuCosineRestartsConfig *config);
#define cornu_cosine_decay_restarts(...) \
    cornu_cosine_decay_restarts_from(&(CornuCosineRestartsConfig){ .unset = 0, __VA_ARGS__ })

/* ---- Large batches; Keras has none of these ---- */

/* From initial_learning_rate linearly, in warmup_steps steps, to what the schedule has then, or to
 * learning_rate; after that the schedule, whose own iterations are not shifted.
 * Source: Goyal et al., "Accurate, Large Minibatch SGD", arXiv 1706.02677, section 2.2;
 * LinearWarmup in official/modeling/optimization/lr_schedule.py of TensorFlow Models. */
typedef struct {
    char           unset;
    CornuSchedule *schedule;                /* taken, or: */
    double         learning_rate;           /* a constant one */
    double         warmup_steps;            /* required */
    double         initial_learning_rate;   /* default 0 */
} CornuWarmupConfig;

CornuSchedule *cornu_warmup_from(const CornuWarmupConfig *config);
#define cornu_warmup(...) \
    cornu_warmup_from(&(CornuWarmupConfig){ .unset = 0, __VA_ARGS__ })

/* rate batch_size / base_batch_size: the rate for batches of another size, over all shards.
 * Source: Goyal et al., section 2.1, the linear scaling rule. */
double cornu_scaled_learning_rate(double rate, int64_t base_batch_size, int64_t batch_size);

#ifdef __cplusplus
}
#endif
#endif
