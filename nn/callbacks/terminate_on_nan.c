/* Source: keras/src/callbacks/terminate_on_nan.py. */
#include "callbacks.h"

#include <math.h>

#include "../../device/memory_internal.h"
#include "../formats/decimal_internal.h"
#include "../formats/output_internal.h"
#include "../model/model.h"

typedef struct {
    CornuCallback base;
    bool          raises;
    FILE         *file;      /* NULL: no messages */
} TerminateOnNan;

static CornuStatus train_batch_end(CornuCallback *base, CornuModel *model, int64_t batch,
                                   const CornuLogs *logs)
{
    const TerminateOnNan *self = (const TerminateOnNan *)base;
    double       loss;
    CornuDecimal decimal;
    if (!cornu_logs_find(logs, "loss", &loss) || isfinite(loss)) return CORNU_OK;
    if (self->raises)
        return cornu__fail(CORNU_ERR_VALUE, "NaN or Inf loss encountered at batch %lld. Loss "
                           "value: %s. Terminating training immediately.", (long long)batch,
                           cornu__decimal(&decimal, loss));
    if (self->file) {
        fprintf(self->file, "Batch %lld: Invalid loss, terminating training\n", (long long)batch);
        fflush(self->file);
    }
    cornu_model_stop_training(model);
    return CORNU_OK;
}

static void free_terminate_on_nan(CornuCallback *base) { cornu__release(base); }

CornuCallback *cornu_terminate_on_nan_from(const CornuTerminateOnNanConfig *config)
{
    if (cornu__refused()) return NULL;
    TerminateOnNan *self = cornu__allocate(1, sizeof *self);
    if (!self) return cornu__null();
    *self = (TerminateOnNan){ .base = { .takes_nan = true,
                                        .wants_batch_logs = cornu_always_wants_logs,
                                        .train_batch_end = train_batch_end,
                                        .free = free_terminate_on_nan },
                              .raises = config->raise_error,
                              .file = !cornu__output_writes() ? NULL
                                    : config->file ? config->file : stdout };
    return &self->base;
}
