#include "schedule.h"

#include <math.h>
#include <string.h>

#include "../../device/memory_internal.h"
#include "../config/keywords_internal.h"
#include "schedule_internal.h"

typedef CornuScheduleNumbers Schedule;

void cornu_schedule_free(CornuSchedule *schedule)
{
    if (schedule && schedule->free) schedule->free(schedule);
}

static void free_schedule(CornuSchedule *schedule)
{
    Schedule *self = (Schedule *)schedule;
    cornu__release(self->boundaries);
    cornu__release(self->values);
    cornu__release(self);
}

const CornuScheduleNumbers *cornu__schedule_numbers(const CornuSchedule *schedule)
{
    return schedule->free == free_schedule ? (const Schedule *)schedule : NULL;
}

typedef CornuTensor *Call(const CornuSchedule *self, CornuTensor *iteration);

/* Checks the arguments of all schedules but the piecewise one. */
static Schedule *create_schedule(const char *name, Call *call, double rate, double steps)
{
    if (!isfinite(rate) || rate < 0.0)
        return cornu__fail_null(CORNU_ERR_ARGUMENT,
                                "%s: .initial_learning_rate is %g, expected 0 or more", name, rate);
    if (!(steps > 0.0 && isfinite(steps)))
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: the decay steps are %g, expected more "
                                "than 0", name, steps);
    if (cornu__refused()) return NULL;
    Schedule *self = cornu__allocate(1, sizeof *self);
    if (!self) return cornu__null();
    self->base = (CornuSchedule){ .name = name, .call = call, .free = free_schedule };
    self->rate = rate;
    self->steps = steps;
    return self;
}

/* ---- Exponential and inverse time ---- */

/* t / steps, truncated for a staircase */
static CornuTensor *periods(const Schedule *self, CornuTensor *t)
{
    CornuTensor *p = cornu_op_divide(t, cornu_op_constant_like(t, self->steps));
    return self->staircase ? cornu_op_floor(p) : p;
}

static CornuTensor *exponential(const CornuSchedule *schedule, CornuTensor *t)
{
    const Schedule *self = (const Schedule *)schedule;
    CornuTensor *power = cornu_op_power(cornu_op_constant_like(t, self->decay_rate),
                                        periods(self, t));
    return cornu_op_scale(power, self->rate);
}

static CornuTensor *inverse_time(const CornuSchedule *schedule, CornuTensor *t)
{
    const Schedule *self = (const Schedule *)schedule;
    CornuTensor *below = cornu_op_shift(cornu_op_scale(periods(self, t), self->decay_rate), 1.0);
    return cornu_op_divide(cornu_op_constant_like(t, self->rate), below);
}

static CornuSchedule *decay(const char *name, Call *call, const CornuDecayConfig *config)
{
    Schedule *self = create_schedule(name, call, cornu__number(config->initial_learning_rate, 0.0),
                                     config->decay_steps);
    if (!self) return NULL;
    self->decay_rate = cornu__number(config->decay_rate, 0.0);
    self->staircase = config->staircase;
    return &self->base;
}

CornuSchedule *cornu_exponential_decay_from(const CornuDecayConfig *config)
{
    return decay("exponential_decay", exponential, config);
}

CornuSchedule *cornu_inverse_time_decay_from(const CornuDecayConfig *config)
{
    return decay("inverse_time_decay", inverse_time, config);
}

/* ---- Piecewise constant ---- */

static CornuTensor *piecewise(const CornuSchedule *schedule, CornuTensor *t)
{
    const Schedule *self = (const Schedule *)schedule;
    CornuTensor    *rate = cornu_op_constant_like(t, self->values[self->count]);
    for (int64_t i = self->count - 1; i >= 0; i--) {
        CornuTensor *until = cornu_op_constant_like(t, self->boundaries[i]);
        rate = cornu_op_select(cornu_op_compare(t, CORNU_LESS_EQUAL, until),
                               cornu_op_constant_like(t, self->values[i]), rate);
    }
    return rate;
}

CornuSchedule *cornu_piecewise_constant_decay_from(const CornuPiecewiseConfig *config)
{
    const char *name = "piecewise_constant_decay";
    if (!config->boundaries || !config->values || config->count < 1)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: .boundaries, .values and .count (at "
                                "least 1) are required", name);
    for (int64_t i = 1; i < config->count; i++)
        if (!(config->boundaries[i] > config->boundaries[i - 1]))
            return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: .boundaries[%lld] is %g after %g, "
                                    "expected more", name, (long long)i, config->boundaries[i],
                                    config->boundaries[i - 1]);
    Schedule *self = create_schedule(name, piecewise, 0.0, 1.0);
    if (!self) return NULL;
    const size_t count = (size_t)config->count;
    self->count = config->count;
    self->boundaries = cornu__allocate(count, sizeof *self->boundaries);
    self->values = cornu__allocate(count + 1, sizeof *self->values);
    if (!self->boundaries || !self->values) {
        free_schedule(&self->base);
        return cornu__null();
    }
    memcpy(self->boundaries, config->boundaries, count * sizeof *self->boundaries);
    memcpy(self->values, config->values, (count + 1) * sizeof *self->values);
    return &self->base;
}

/* ---- Polynomial ---- */

static CornuTensor *polynomial(const CornuSchedule *schedule, CornuTensor *t)
{
    const Schedule *self = (const Schedule *)schedule;
    CornuTensor    *steps = cornu_op_constant_like(t, self->steps);
    if (self->cycle) {
        /* max(ceil(t / steps), 1) periods: the first one begins at t = 0 */
        CornuTensor *below = cornu_op_floor(cornu_op_negative(cornu_op_divide(t, steps)));
        CornuTensor *passed = cornu_op_maximum(cornu_op_negative(below),
                                               cornu_op_constant_like(t, 1.0));
        steps = cornu_op_multiply(steps, passed);
    } else {
        t = cornu_op_minimum(t, steps);
    }
    CornuTensor *left = cornu_op_shift(cornu_op_negative(cornu_op_divide(t, steps)), 1.0);
    CornuTensor *power = cornu_op_power(left, cornu_op_constant_like(left, self->power));
    return cornu_op_shift(cornu_op_scale(power, self->rate - self->end), self->end);
}

CornuSchedule *cornu_polynomial_decay_from(const CornuPolynomialConfig *config)
{
    Schedule *self = create_schedule("polynomial_decay", polynomial,
                                     cornu__number(config->initial_learning_rate, 0.0),
                                     config->decay_steps);
    if (!self) return NULL;
    self->end = cornu__number(config->end_learning_rate, 1e-4);
    self->power = cornu__number(config->power, 1.0);
    self->cycle = config->cycle;
    return &self->base;
}

/* ---- Cosine ---- */

static const double pi = 3.14159265358979323846;

/* top ((1 - alpha) factor (1 + cos(pi fraction)) / 2 + alpha) */
static CornuTensor *half_cosine(CornuTensor *fraction, CornuTensor *factor, double top,
                                double alpha)
{
    CornuTensor *wave = cornu_op_shift(cornu_op_cos(cornu_op_scale(fraction, pi)), 1.0);
    CornuTensor *down = cornu_op_scale(wave, 0.5);
    if (factor) down = cornu_op_multiply(down, factor);
    return cornu_op_scale(cornu_op_shift(cornu_op_scale(down, 1.0 - alpha), alpha), top);
}

static CornuTensor *cosine(const CornuSchedule *schedule, CornuTensor *t)
{
    const Schedule *self = (const Schedule *)schedule;
    const bool      warmup = self->warmup_target > 0.0;
    const double    before = warmup ? self->warmup_steps : 0.0;
    t = cornu_op_minimum(t, cornu_op_constant_like(t, self->steps + before));
    CornuTensor *fraction = cornu_op_scale(cornu_op_shift(t, -before), 1.0 / self->steps);
    CornuTensor *decayed = half_cosine(fraction, NULL, warmup ? self->warmup_target : self->rate,
                                       self->alpha);
    if (!warmup || before == 0.0) return decayed;
    CornuTensor *rise = cornu_op_shift(
        cornu_op_scale(t, (self->warmup_target - self->rate) / before), self->rate);
    CornuTensor *early = cornu_op_compare(t, CORNU_LESS, cornu_op_constant_like(t, before));
    return cornu_op_select(early, rise, decayed);
}

CornuSchedule *cornu_cosine_decay_from(const CornuCosineConfig *config)
{
    const double target = cornu__number(config->warmup_target, 0.0);
    const double steps = cornu__number(config->warmup_steps, 0.0);
    if (target < 0.0 || steps < 0.0)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "cosine_decay: .warmup_target is %g and "
                                ".warmup_steps %g, expected 0 or more", target, steps);
    Schedule *self = create_schedule("cosine_decay", cosine,
                                     cornu__number(config->initial_learning_rate, 0.0),
                                     config->decay_steps);
    if (!self) return NULL;
    self->alpha = cornu__number(config->alpha, 0.0);
    self->warmup_target = target;
    self->warmup_steps = steps;
    return &self->base;
}

/* The restart that t is in, and the fraction of it: with periods that grow by t_mul the number of
 * the restart is the logarithm of the geometric sum up to t. */
static CornuTensor *cosine_restarts(const CornuSchedule *schedule, CornuTensor *t)
{
    const Schedule *self = (const Schedule *)schedule;
    CornuTensor    *fraction = cornu_op_divide(t, cornu_op_constant_like(t, self->steps));
    CornuTensor    *restart;
    if (self->t_mul == 1.0) {
        restart = cornu_op_floor(fraction);
        fraction = cornu_op_subtract(fraction, restart);
    } else {
        CornuTensor *sum = cornu_op_shift(cornu_op_scale(fraction, self->t_mul - 1.0), 1.0);
        CornuTensor *base = cornu_op_constant_like(t, self->t_mul);
        restart = cornu_op_floor(cornu_op_divide(cornu_op_log(sum), cornu_op_log(base)));
        CornuTensor *grown = cornu_op_power(base, restart);
        CornuTensor *before = cornu_op_scale(cornu_op_shift(grown, -1.0),
                                             1.0 / (self->t_mul - 1.0));
        fraction = cornu_op_divide(cornu_op_subtract(fraction, before), grown);
    }
    CornuTensor *factor = cornu_op_power(cornu_op_constant_like(t, self->m_mul), restart);
    return half_cosine(fraction, factor, self->rate, self->alpha);
}

CornuSchedule *cornu_cosine_decay_restarts_from(const CornuCosineRestartsConfig *config)
{
    const double t_mul = cornu__number(config->t_mul, 2.0);
    const double m_mul = cornu__number(config->m_mul, 1.0);
    if (!(t_mul >= 1.0 && m_mul > 0.0))
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "cosine_decay_restarts: .t_mul is %g, expected "
                                "1 or more; .m_mul is %g, expected more than 0", t_mul, m_mul);
    Schedule *self = create_schedule("cosine_decay_restarts", cosine_restarts,
                                     cornu__number(config->initial_learning_rate, 0.0),
                                     config->first_decay_steps);
    if (!self) return NULL;
    self->t_mul = t_mul;
    self->m_mul = m_mul;
    self->alpha = cornu__number(config->alpha, 0.0);
    return &self->base;
}
