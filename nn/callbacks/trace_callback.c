/* The callback that traces one step of each epoch. */
#include "../../device/memory_internal.h"
#include "../../device/files/file_internal.h"
#include "../model/model_internal.h"
#include "../training/trace_internal.h"

typedef struct {
    CornuCallback base;
    char         *path;
    CornuModel   *model;       /* whose steps are traced */
    CornuTrace   *current;     /* of this epoch */
    CornuTrace   *last;        /* the last whole one */
} Tracer;

/* The last step but one, as the last batch may be partial. */
static int64_t chosen_step(const Tracer *self)
{
    const int64_t steps = self->base.params.steps;
    return steps == 1 ? 1 : steps > 2 ? steps - 1 : 2;
}

static CornuStatus epoch_begin(CornuCallback *base, CornuModel *model, int64_t epoch,
                               const CornuLogs *logs)
{
    Tracer *self = (Tracer *)base;
    (void)logs;
    self->model = model;
    return cornu__trace_arm(model, &self->current, epoch + 1, chosen_step(self));
}

static CornuStatus trace_epoch_end(CornuCallback *base, CornuModel *model, int64_t epoch,
                                   const CornuLogs *logs)
{
    Tracer *self = (Tracer *)base;
    (void)epoch, (void)logs;
    if (!self->current->ended || !self->current->events) return CORNU_OK;
    cornu_trace_free(self->last);
    self->last = self->current;
    self->current = model->trace = NULL;
    return CORNU_OK;
}

static CornuStatus train_end(CornuCallback *base, CornuModel *model, const CornuLogs *logs)
{
    const Tracer *self = (const Tracer *)base;
    (void)model, (void)logs;
    if (self->last) return cornu__trace_write_together(self->last, self->path);
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: no step was traced: the training ended before the "
                       "second one", self->path);
}

static void free_tracer(CornuCallback *base)
{
    Tracer *self = (Tracer *)base;
    cornu__trace_disarm(self->model, &self->current);
    cornu_trace_free(self->last);
    cornu__release(self->path);
    cornu__release(self);
}

CornuCallback *cornu_trace_from(const CornuTraceConfig *config)
{
    if (cornu__refused()) return NULL;
    if (!config->path)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "trace: the path of the file is required");
    if (cornu_file_check(config->path) != CORNU_OK) return cornu__null();
    Tracer *self = cornu__allocate(1, sizeof *self);
    if (!self) return cornu__null();
    *self = (Tracer){ .base = { .epoch_begin = epoch_begin, .epoch_end = trace_epoch_end,
                                .train_end = train_end, .free = free_tracer },
                      .path = cornu__copy_text(config->path) };
    if (self->path) return &self->base;
    cornu__release(self);
    return cornu__null();
}
