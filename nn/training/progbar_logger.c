#include "progbar_logger.h"

#include "../../device/system/clock_internal.h"
#include "../../device/memory_internal.h"
#include "../formats/output_internal.h"
#include "../terminal/progbar_internal.h"

typedef struct {
    CornuCallback base;
    CornuBar     *bar;
    double      (*clock)(void);
    int64_t       target, seen;
    bool          is_terminal;
    bool          in_fit, validating;
} Logger;

static void restart(Logger *logger)
{
    int verbose = logger->base.params.verbose;
    if (verbose < 0 || verbose > 2) verbose = logger->is_terminal ? 1 : 2;
    if (!cornu__output_writes()) verbose = 0;
    logger->bar->style.verbose = verbose;
    logger->seen = 0;
    cornu_bar_restart(logger->bar, logger->target, logger->clock());
}

static CornuStatus progbar_update(Logger *logger, int64_t batch, const CornuLogs *logs)
{
    logger->seen = batch + 1;
    if (logger->bar->style.verbose != 1) return CORNU_OK;
    return cornu_bar_update(logger->bar, logger->seen, logs, false, logger->clock());
}

static CornuStatus finish(Logger *logger, const CornuLogs *logs)
{
    if (logger->target < 0) {
        logger->target = logger->seen;
        logger->bar->style.target = logger->seen;
    }
    return cornu_bar_update(logger->bar, logger->target, logs, true, logger->clock());
}

static bool wants_batch_logs(CornuCallback *self, int64_t batch)
{
    Logger *logger = (Logger *)self;
    (void)batch;
    return !logger->validating && cornu_bar_due(logger->bar, logger->clock());
}

static CornuStatus train_begin(CornuCallback *self, CornuModel *model, const CornuLogs *logs)
{
    Logger *logger = (Logger *)self;
    (void)model, (void)logs;
    logger->in_fit = true;
    logger->target = self->params.steps;
    return CORNU_OK;
}

static CornuStatus train_end(CornuCallback *self, CornuModel *model, const CornuLogs *logs)
{
    (void)model, (void)logs;
    ((Logger *)self)->in_fit = false;
    return CORNU_OK;
}

static CornuStatus epoch_begin(CornuCallback *self, CornuModel *model, int64_t epoch,
                               const CornuLogs *logs)
{
    Logger *logger = (Logger *)self;
    (void)model, (void)logs;
    restart(logger);
    if (logger->bar->style.verbose && self->params.epochs > 1 && !ferror(logger->bar->file)) {
        fprintf(logger->bar->file, "Epoch %lld/%lld\n", (long long)epoch + 1,
                (long long)self->params.epochs);
        fflush(logger->bar->file);
    }
    return CORNU_OK;
}

static CornuStatus train_batch_end(CornuCallback *self, CornuModel *model, int64_t batch,
                                   const CornuLogs *logs)
{
    (void)model;
    return progbar_update((Logger *)self, batch, logs);
}

static CornuStatus progbar_epoch_end(CornuCallback *self, CornuModel *model, int64_t epoch,
                                     const CornuLogs *logs)
{
    (void)model, (void)epoch;
    return finish((Logger *)self, logs);
}

/* Validation inside fit is silent. */
static CornuStatus test_begin(CornuCallback *self, CornuModel *model, const CornuLogs *logs)
{
    Logger *logger = (Logger *)self;
    (void)model, (void)logs;
    logger->validating = logger->in_fit;
    if (logger->in_fit) return CORNU_OK;
    logger->target = self->params.steps;
    restart(logger);
    return CORNU_OK;
}

static CornuStatus test_batch_end(CornuCallback *self, CornuModel *model, int64_t batch,
                                  const CornuLogs *logs)
{
    Logger *logger = (Logger *)self;
    (void)model;
    return logger->in_fit ? CORNU_OK : progbar_update(logger, batch, logs);
}

static CornuStatus test_end(CornuCallback *self, CornuModel *model, const CornuLogs *logs)
{
    Logger *logger = (Logger *)self;
    (void)model;
    logger->validating = false;
    return logger->in_fit ? CORNU_OK : finish(logger, logs);
}

static CornuStatus predict_begin(CornuCallback *self, CornuModel *model, const CornuLogs *logs)
{
    Logger *logger = (Logger *)self;
    (void)model, (void)logs;
    logger->target = self->params.steps;
    restart(logger);
    return CORNU_OK;
}

static CornuStatus predict_batch_end(CornuCallback *self, CornuModel *model, int64_t batch,
                                     const CornuLogs *logs)
{
    (void)model, (void)logs;
    return progbar_update((Logger *)self, batch, NULL);
}

static CornuStatus predict_end(CornuCallback *self, CornuModel *model, const CornuLogs *logs)
{
    (void)model;
    return finish((Logger *)self, logs);
}

/* Ends the line of an unfinished bar. */
static void free_logger(CornuCallback *self)
{
    CornuBar *bar = ((Logger *)self)->bar;
    if (bar->unfinished) {
        fputc('\n', bar->file);
        fflush(bar->file);
    }
    cornu_bar_free(bar);
    cornu__release(self);
}

CornuCallback *cornu_progbar_from(const CornuProgbarConfig *config)
{
    if (cornu__refused()) return NULL;
    Logger *logger = cornu__allocate(1, sizeof *logger);
    if (!logger) return cornu__null();
    FILE *file = config->file ? config->file : stdout;
    CornuTerminal terminal = cornu_terminal(file);
    CornuBarStyle style = config->style ? *config->style : cornu_bar_style(terminal);
    logger->clock = config->clock ? config->clock : cornu__seconds;
    logger->is_terminal = terminal.is_terminal;
    logger->target = -1;
    logger->bar = cornu_bar_create(&style, file, logger->clock());
    logger->base = (CornuCallback){
        .params = { .verbose = -1, .epochs = 1, .steps = -1 },
        .wants_batch_logs = wants_batch_logs,
        .train_begin = train_begin, .train_end = train_end,
        .epoch_begin = epoch_begin, .epoch_end = progbar_epoch_end,
        .train_batch_end = train_batch_end,
        .test_begin = test_begin, .test_batch_end = test_batch_end, .test_end = test_end,
        .predict_begin = predict_begin, .predict_batch_end = predict_batch_end,
        .predict_end = predict_end,
        .free = free_logger,
    };
    if (!logger->bar) {
        cornu__release(logger);
        return NULL;
    }
    return &logger->base;
}
