/* The two callbacks that set the learning rate. Sources:
 * keras/src/callbacks/learning_rate_scheduler.py, reduce_lr_on_plateau.py. */
#include "callbacks.h"

#include <math.h>
#include <string.h>

#include "../../device/memory_internal.h"
#include "../formats/decimal_internal.h"
#include "../formats/output_internal.h"
#include "../config/keywords_internal.h"
#include "../model/model.h"
#include "monitor_internal.h"

/* The rate as the optimizer's variable holds it, an f32, even before the variable exists. */
static CornuStatus read_rate(const CornuModel *model, double *rate)
{
    CORNU__TRY(cornu_optimizer_learning_rate(cornu_model_optimizer(model), rate));
    *rate = (float)*rate;
    return CORNU_OK;
}

/* Adds the rate to the logs of the epoch. */
static CornuStatus log_rate(CornuCallback *base, const CornuModel *model)
{
    base->added[0].name = "learning_rate";
    return read_rate(model, &base->added[0].value);
}

static void say_rate(FILE *file, int64_t epoch, const char *who, double rate)
{
    CornuDecimal decimal;
    fprintf(file, "\nEpoch %lld: %s learning rate to %s.\n", (long long)epoch + 1, who,
            cornu__decimal(&decimal, rate));
    fflush(file);
}

/* ---- LearningRateScheduler ---- */

typedef struct {
    CornuCallback   base;
    CornuEpochRate *schedule;
    void           *context;
    FILE           *file;
    bool            verbose;
} Scheduler;

static CornuStatus scheduler_epoch_begin(CornuCallback *base, CornuModel *model, int64_t epoch,
                                         const CornuLogs *logs)
{
    const Scheduler *self = (const Scheduler *)base;
    double           rate;
    (void)logs;
    CORNU__TRY(read_rate(model, &rate));
    rate = self->schedule(self->context, epoch, rate);
    CORNU__TRY(cornu_optimizer_set_learning_rate(cornu_model_optimizer(model), rate));
    if (self->verbose) say_rate(self->file, epoch, "LearningRateScheduler setting", rate);
    return CORNU_OK;
}

static CornuStatus scheduler_epoch_end(CornuCallback *base, CornuModel *model, int64_t epoch,
                                       const CornuLogs *logs)
{
    (void)epoch, (void)logs;
    return log_rate(base, model);
}

static void free_plain(CornuCallback *base) { cornu__release(base); }

CornuCallback *cornu_learning_rate_scheduler_from(const CornuLearningRateSchedulerConfig *config)
{
    if (cornu__refused()) return NULL;
    if (!config->schedule)
        return cornu__fail_null(CORNU_ERR_ARGUMENT,
                                "learning rate scheduler: the schedule is required");
    Scheduler *self = cornu__allocate(1, sizeof *self);
    if (!self) return cornu__null();
    *self = (Scheduler){
        .base = { .epoch_begin = scheduler_epoch_begin, .epoch_end = scheduler_epoch_end,
                  .free = free_plain },
        .schedule = config->schedule, .context = config->context,
        .file = config->file ? config->file : stdout,
        .verbose = config->verbose > 0 && cornu__output_writes(),
    };
    return &self->base;
}

/* ---- ReduceLROnPlateau ---- */

typedef struct {
    CornuCallback base;
    CornuMonitor  monitor;
    FILE         *file;
    bool          verbose;
    double        factor, min_lr;
    int64_t       patience, cooldown;
    /* epochs without improvement, and left to cool down */
    struct { CornuBest best; double wait, cooling; } saved;
} Plateau;

static double *plateau_state(CornuCallback *base, int *count)
{
    Plateau *self = (Plateau *)base;
    *count = (int)(sizeof self->saved / sizeof(double));
    return &self->saved.best.known;
}

static CornuStatus plateau_train_begin(CornuCallback *base, CornuModel *model,
                                       const CornuLogs *logs)
{
    Plateau *self = (Plateau *)base;
    double   rate;
    (void)logs;
    memset(&self->saved, 0, sizeof self->saved);
    /* Under a schedule this fails now, not after many epochs. */
    CORNU__TRY(read_rate(model, &rate));
    return cornu_optimizer_set_learning_rate(cornu_model_optimizer(model), rate);
}

static CornuStatus plateau_reduce(Plateau *self, const CornuModel *model, int64_t epoch)
{
    const double rate = self->base.added[0].value;
    if (!(rate > (float)self->min_lr)) return CORNU_OK;
    const double reduced = fmax(rate * self->factor, self->min_lr);
    CORNU__TRY(cornu_optimizer_set_learning_rate(cornu_model_optimizer(model), reduced));
    self->saved.cooling = (double)self->cooldown;
    self->saved.wait = 0;
    if (self->verbose) say_rate(self->file, epoch, "ReduceLROnPlateau reducing", reduced);
    return CORNU_OK;
}

static CornuStatus plateau_epoch_end(CornuCallback *base, CornuModel *model, int64_t epoch,
                                     const CornuLogs *logs)
{
    Plateau *self = (Plateau *)base;
    double   value;
    bool     there;
    CORNU__TRY(log_rate(base, model));
    CORNU__TRY(cornu__monitor_read(&self->monitor, model, &base->params, logs, &value,
                                   &there));
    if (!there) return CORNU_OK;

    if (self->saved.cooling > 0) {
        self->saved.cooling--;
        self->saved.wait = 0;
    }
    if (cornu__monitor_takes(&self->monitor, value))
        self->saved.wait = 0;
    else if (self->saved.cooling == 0 && ++self->saved.wait >= (double)self->patience)
        return plateau_reduce(self, model, epoch);
    return CORNU_OK;
}

static void free_plateau(CornuCallback *base)
{
    cornu__release(((Plateau *)base)->monitor.name);
    cornu__release(base);
}

CornuCallback *cornu_reduce_lr_on_plateau_from(const CornuReduceLrOnPlateauConfig *config)
{
    if (cornu__refused()) return NULL;
    const double  factor = cornu__number(config->factor, 0.1);
    const int64_t patience = cornu__integer(config->patience, 10);
    if (!(factor >= 0.0 && factor < 1.0))
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "reduce LR on plateau: .factor is %g, expected "
                                "0 or more and below 1", factor);
    if (patience < 0 || config->cooldown < 0)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "reduce LR on plateau: .patience is %lld and "
                                ".cooldown %lld, expected 0 or more", (long long)patience,
                                (long long)config->cooldown);
    if (!(config->min_lr >= 0.0))
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "reduce LR on plateau: .min_lr is %g, expected "
                                "0 or more", config->min_lr);
    Plateau *self = cornu__allocate(1, sizeof *self);
    if (!self) return cornu__null();
    *self = (Plateau){
        .base = { .train_begin = plateau_train_begin, .epoch_end = plateau_epoch_end,
                  .state = plateau_state, .free = free_plateau },
        .monitor = { .who = "reduce LR on plateau", .mode = config->mode,
                     .min_delta = cornu__number(config->min_delta, 1e-4),
                     .best = &self->saved.best },
        .file = config->file ? config->file : stdout,
        .verbose = config->verbose > 0 && cornu__output_writes(),
        .factor = factor, .min_lr = config->min_lr,
        .patience = patience, .cooldown = config->cooldown,
    };
    if (!cornu__monitor_open(&self->monitor, config->monitor)) return &self->base;
    free_plateau(&self->base);
    return cornu__null();
}
