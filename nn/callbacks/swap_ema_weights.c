/* Source: keras/src/callbacks/swap_ema_weights.py. */
#include "callbacks.h"

#include "../../device/memory_internal.h"
#include "../model/model_internal.h"

typedef struct {
    CornuCallback base;
    bool          on_epoch;
    CornuModel   *averaged;           /* the model whose weights are now its averages, or NULL */
} SwapEma;

/* Puts the averages, or the weights again, into the model. */
static CornuStatus show_averages(SwapEma *self, CornuModel *model, bool wanted)
{
    if (wanted == (self->averaged != NULL)) return CORNU_OK;
    CornuVariable *iteration = cornu_optimizer_iteration(model->optimizer);
    double         steps = 0.0;
    if (wanted && iteration) CORNU__TRY(cornu_variable_get(iteration, &steps));
    if (wanted && model->optimizer->use_ema && steps == 0.0) return CORNU_OK;
    CORNU__TRY(cornu_optimizer_swap_averages(model->optimizer));
    self->averaged = wanted ? model : NULL;
    return CORNU_OK;
}

static CornuStatus swap_begin(CornuCallback *base, CornuModel *model, const CornuLogs *logs)
{
    (void)logs;
    return show_averages((SwapEma *)base, model, true);
}

static CornuStatus end(CornuCallback *base, CornuModel *model, const CornuLogs *logs)
{
    (void)logs;
    return show_averages((SwapEma *)base, model, false);
}

static CornuStatus epoch_begin(CornuCallback *base, CornuModel *model, int64_t epoch,
                               const CornuLogs *logs)
{
    (void)epoch, (void)logs;
    return show_averages((SwapEma *)base, model, false);
}

/* After the last epoch weights and averages are equal: fit ends with the averages. */
static CornuStatus swap_epoch_end(CornuCallback *base, CornuModel *model, int64_t epoch,
                                  const CornuLogs *logs)
{
    (void)logs;
    if (epoch == base->params.epochs - 1 || model->stop_training)
        return cornu_optimizer_finalize_variable_values(model->optimizer);
    return show_averages((SwapEma *)base, model, true);
}

/* A failed evaluation leaves the averages in the model. */
static void free_swap_ema(CornuCallback *base)
{
    SwapEma *self = (SwapEma *)base;
    if (self->averaged && !self->on_epoch)
        (void)cornu_optimizer_swap_averages(self->averaged->optimizer);
    cornu__release(self);
}

CornuCallback *cornu_swap_ema_weights_from(const CornuSwapEmaWeightsConfig *config)
{
    if (cornu__refused()) return NULL;
    SwapEma *self = cornu__allocate(1, sizeof *self);
    if (!self) return cornu__null();
    *self = (SwapEma){ .base = { .test_begin = swap_begin, .test_end = end,
                                 .predict_begin = swap_begin, .predict_end = end,
                                 .free = free_swap_ema },
                       .on_epoch = config->swap_on_epoch };
    if (self->on_epoch) {
        self->base.epoch_begin = epoch_begin;
        self->base.epoch_end = swap_epoch_end;
    }
    return &self->base;
}
