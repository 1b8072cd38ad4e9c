/* Source: keras/src/callbacks/early_stopping.py. */
#include "callbacks.h"

#include "../../device/memory_internal.h"
#include "../formats/output_internal.h"
#include "../model/model_internal.h"
#include "monitor_internal.h"

#include <string.h>

typedef struct {
    CornuCallback base;
    CornuMonitor  monitor;
    FILE         *file;
    bool          verbose, has_baseline, restores;
    double        baseline;
    int64_t       patience, start_from_epoch;
    struct { CornuBest best; double wait, stopped_epoch, best_epoch; } saved;
    CornuArray   *best;               /* the weights of the best epoch, or NULL */
    int           best_count;
} EarlyStopping;

static double *state(CornuCallback *base, int *count)
{
    EarlyStopping *self = (EarlyStopping *)base;
    *count = (int)(sizeof self->saved / sizeof(double));
    return &self->saved.best.known;
}

static void release_best(EarlyStopping *self)
{
    for (int i = 0; i < self->best_count; i++) cornu__release(self->best[i].data);
    cornu__release(self->best);
    self->best = NULL;
    self->best_count = 0;
}

/* Allocates memory for the weights, once. */
static CornuStatus open_best(EarlyStopping *self, const CornuModel *model)
{
    const int count = cornu_model_weight_count(model);
    if (self->best) return CORNU_OK;
    self->best = cornu__allocate((size_t)count, sizeof *self->best);
    if (!self->best) return CORNU_ERR_MEMORY;
    for (self->best_count = 0; self->best_count < count; self->best_count++) {
        const CornuType type = cornu_model_weight(model, self->best_count)->type;
        void           *values = cornu__allocate(cornu_type_bytes(type), 1);
        if (!values) return CORNU_ERR_MEMORY;
        self->best[self->best_count] = cornu_array_from(values, type);
    }
    return CORNU_OK;
}

static CornuStatus keep_weights(EarlyStopping *self, const CornuModel *model, int64_t epoch)
{
    self->saved.best_epoch = (double)epoch;
    if (!self->restores) return CORNU_OK;
    CORNU__TRY(open_best(self, model));
    for (int i = 0; i < self->best_count; i++)
        CORNU__TRY(cornu_weight_read(cornu_model_weight(model, i), self->best[i]));
    return CORNU_OK;
}

/* There are best weights as soon as there is a best value. */
static CornuStatus best_weights(CornuCallback *base, CornuModel *model, CornuArray **arrays,
                                int *count)
{
    EarlyStopping *self = (EarlyStopping *)base;
    *count = 0;
    if (!self->restores || self->saved.best.known == 0.0) return CORNU_OK;
    CORNU__TRY(open_best(self, model));
    *arrays = self->best;
    *count = self->best_count;
    return CORNU_OK;
}

static CornuStatus train_begin(CornuCallback *base, CornuModel *model, const CornuLogs *logs)
{
    EarlyStopping *self = (EarlyStopping *)base;
    (void)model, (void)logs;
    release_best(self);
    memset(&self->saved, 0, sizeof self->saved);
    return CORNU_OK;
}

static CornuStatus stopping_epoch_end(CornuCallback *base, CornuModel *model, int64_t epoch,
                                      const CornuLogs *logs)
{
    EarlyStopping *self = (EarlyStopping *)base;
    double         value;
    bool           there;
    CORNU__TRY(cornu__monitor_read(&self->monitor, model, &base->params, logs, &value,
                                   &there));
    if (!there || epoch < self->start_from_epoch) return CORNU_OK;
    self->saved.wait++;
    if (cornu__monitor_takes(&self->monitor, value)) {
        if (!self->has_baseline || cornu__monitor_improves(&self->monitor, value, self->baseline))
            self->saved.wait = 0;
        return keep_weights(self, model, epoch);
    }
    if (self->saved.wait >= (double)self->patience) {
        self->saved.stopped_epoch = (double)epoch;
        cornu_model_stop_training(model);
    }
    return CORNU_OK;
}

static CornuStatus train_end(CornuCallback *base, CornuModel *model, const CornuLogs *logs)
{
    const EarlyStopping *self = (const EarlyStopping *)base;
    (void)logs;
    if (self->verbose && self->saved.stopped_epoch > 0)
        fprintf(self->file, "Epoch %lld: early stopping\n",
                (long long)self->saved.stopped_epoch + 1);
    if (self->verbose && self->best)
        fprintf(self->file, "Restoring model weights from the end of the best epoch: %lld.\n",
                (long long)self->saved.best_epoch + 1);
    if (self->verbose) fflush(self->file);
    for (int i = 0; i < self->best_count; i++)
        CORNU__TRY(cornu_weight_write(cornu_model_weight(model, i), self->best[i]));
    return CORNU_OK;
}

static void free_early_stopping(CornuCallback *base)
{
    EarlyStopping *self = (EarlyStopping *)base;
    release_best(self);
    cornu__release(self->monitor.name);
    cornu__release(self);
}

CornuCallback *cornu_early_stopping_from(const CornuEarlyStoppingConfig *config)
{
    if (cornu__refused()) return NULL;
    if (config->patience < 0 || config->start_from_epoch < 0)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "early stopping: .patience is %lld and "
                                ".start_from_epoch %lld, expected 0 or more",
                                (long long)config->patience, (long long)config->start_from_epoch);
    EarlyStopping *self = cornu__allocate(1, sizeof *self);
    if (!self) return cornu__null();
    *self = (EarlyStopping){
        .base = { .train_begin = train_begin, .epoch_end = stopping_epoch_end,
                  .train_end = train_end, .state = state, .arrays = best_weights,
                  .free = free_early_stopping },
        .monitor = { .who = "early stopping", .mode = config->mode,
                     .min_delta = config->min_delta, .best = &self->saved.best },
        .file = config->file ? config->file : stdout,
        .verbose = config->verbose > 0 && cornu__output_writes(),
        .has_baseline = config->has_baseline,
        .baseline = config->baseline,
        .restores = config->restore_best_weights,
        .patience = config->patience,
        .start_from_epoch = config->start_from_epoch,
    };
    if (!cornu__monitor_open(&self->monitor, config->monitor)) return &self->base;
    free_early_stopping(&self->base);
    return cornu__null();
}
