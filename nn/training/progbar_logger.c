#include "progbar_logger.h"

#include <stdlib.h>

#include "../../device/system/clock_internal.h"
#include "../../device/memory_internal.h"
#include "../formats/output_internal.h"
#include "../terminal/progbar_internal.h"
#include "training_internal.h"

typedef struct {
    CornuCallback base;
    CornuBar     *bar;
    double      (*clock)(void);
    int64_t       target, seen;
    bool          is_terminal;
    bool          in_fit, validating;
    bool          advised;      /* about input, in this fit */
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
    logger->advised = false;
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

/* ---- When input is the limit ---- */

/* Steps that wait for less than this are not worth a word. */
static const double least_wait_seconds = 1.0, least_wait_share = 0.1;

static int by_time(const void *a, const void *b)
{
    const CornuStageTime *one = a, *other = b;
    return (one->seconds < other->seconds) - (one->seconds > other->seconds);
}

/* The stages that take most of the time for a batch, in milliseconds. */
static void print_stages(FILE *to, CornuIterator *iterator)
{
    enum { MOST = 64, SHOWN = 4 };
    CornuStageTime times[MOST];
    double         all = 0.0;
    int            count = cornu_iterator_stage_times(iterator, times, MOST);
    if (count > MOST) count = MOST;
    for (int i = 0; i < count; i++) all += times[i].seconds;
    if (!(all > 0.0)) return;
    qsort(times, (size_t)count, sizeof *times, by_time);
    fprintf(to, ", each of which takes %.3g ms", 1e3 * all);
    for (int i = 0; i < count && i < SHOWN && times[i].seconds > 0.01 * all; i++)
        fprintf(to, "%s %s %.3g", i ? "," : ":", times[i].name, 1e3 * times[i].seconds);
}

/* Says once in a fit how long steps wait for batches, and for which stages of the data set. */
static void advise_on_input(Logger *logger, const CornuModel *model)
{
    const CornuTraining *training = model ? model->training : NULL;
    FILE                *to = logger->bar->file;
    if (!training || logger->advised || !logger->bar->style.verbose || ferror(to)) return;
    const double wait = training->loader->infeed.wait_seconds;
    if (wait < least_wait_seconds || wait < least_wait_share * training->seconds) return;
    logger->advised = true;
    fprintf(to, "Input is the limit: steps waited %.0f %% of %.3g s for batches",
            100.0 * wait / training->seconds, training->seconds);
    print_stages(to, training->loader->iterator);
    const int threads = cornu__dataset_threads(training->loader->dataset);
    fprintf(to, " (%d thread%s%s)\n", threads, threads == 1 ? "" : "s",
            cornu__dataset_is_in_order(training->loader->dataset)
                ? ", as elements come in order" : "; see cornu_dataset_parallel");
    fflush(to);
}

static CornuStatus progbar_epoch_end(CornuCallback *self, CornuModel *model, int64_t epoch,
                                     const CornuLogs *logs)
{
    Logger *logger = (Logger *)self;
    (void)epoch;
    CORNU__TRY(finish(logger, logs));
    advise_on_input(logger, model);
    return CORNU_OK;
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
