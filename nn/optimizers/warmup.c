/* Learning rates for large batches. */
#include <math.h>

#include "../../device/memory_internal.h"
#include "../config/keywords_internal.h"
#include "schedule.h"

typedef struct {
    CornuSchedule  base;
    CornuSchedule *after;           /* NULL: a constant rate */
    double         first, rate, steps;
} Warmup;

static CornuTensor *usual_rate(const Warmup *self, CornuTensor *t)
{
    return self->after ? self->after->call(self->after, t) : cornu_op_constant_like(t, self->rate);
}

/* first + (rate(steps) - first) t / steps */
static CornuTensor *warmup_call(const CornuSchedule *schedule, CornuTensor *t)
{
    const Warmup *self = (const Warmup *)schedule;
    CornuTensor  *steps = cornu_op_constant_like(t, self->steps);
    CornuTensor  *last = usual_rate(self, steps);
    CornuTensor  *slope = cornu_op_scale(cornu_op_shift(last, -self->first), 1.0 / self->steps);
    CornuTensor  *rise = cornu_op_shift(cornu_op_multiply(slope, t), self->first);
    CornuTensor  *early = cornu_op_compare(t, CORNU_LESS, steps);
    return cornu_op_select(early, rise, usual_rate(self, t));
}

static void free_warmup(CornuSchedule *schedule)
{
    cornu_schedule_free(((Warmup *)schedule)->after);
    cornu__release(schedule);
}

static CornuStatus check_warmup(const CornuWarmupConfig *config, double first)
{
    const double rate = config->learning_rate;
    if (config->schedule ? rate != 0.0 : !(rate > 0.0 && isfinite(rate)))
        return cornu__fail(CORNU_ERR_ARGUMENT, "warmup: .learning_rate is %g, expected more than 0,"
                           " or a .schedule in its place", rate);
    if (config->schedule && config->schedule->taken)
        return cornu__fail(CORNU_ERR_ARGUMENT, "warmup: the schedule %s belongs to an optimizer",
                           config->schedule->name);
    if (!(config->warmup_steps > 0.0 && isfinite(config->warmup_steps)))
        return cornu__fail(CORNU_ERR_ARGUMENT, "warmup: .warmup_steps is %g, expected more than 0",
                           config->warmup_steps);
    if (!(first >= 0.0 && isfinite(first)))
        return cornu__fail(CORNU_ERR_ARGUMENT, "warmup: .initial_learning_rate is %g, expected 0 "
                           "or more", first);
    return CORNU_OK;
}

CornuSchedule *cornu_warmup_from(const CornuWarmupConfig *config)
{
    const double first = cornu__number(config->initial_learning_rate, 0.0);
    Warmup      *self = NULL;
    if (!cornu__refused() && !check_warmup(config, first)) self = cornu__allocate(1, sizeof *self);
    if (!self) {
        if (config->schedule && !config->schedule->taken) cornu_schedule_free(config->schedule);
        return cornu__null();
    }
    self->base = (CornuSchedule){ .name = "warmup", .call = warmup_call, .free = free_warmup };
    self->after = config->schedule;
    self->first = first;
    self->rate = config->learning_rate;
    self->steps = config->warmup_steps;
    if (self->after) self->after->taken = true;
    return &self->base;
}

double cornu_scaled_learning_rate(double rate, int64_t base_batch_size, int64_t batch_size)
{
    return rate * (double)batch_size / (double)base_batch_size;
}
