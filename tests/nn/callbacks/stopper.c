#include "stopper.h"

static CornuStatus stop_step(CornuCallback *base, CornuModel *model, int64_t batch,
                             const CornuLogs *logs)
{
    Stopper *self = (Stopper *)base;
    (void)model, (void)batch, (void)logs;
    if (--self->steps_left != 0) return CORNU_OK;
    if (self->flag) *self->flag = 1;
    return self->flag ? CORNU_OK : cornu_error_set(CORNU_ERR_INTERRUPTED, "killed");
}

Stopper stop_after(int64_t steps, volatile sig_atomic_t *flag)
{
    return (Stopper){ .base = { .train_batch_end = stop_step }, .steps_left = steps,
                      .flag = flag };
}
