/* The hook of cornu_estimator_train: checkpoints, events, logs. Its steps are global ones, which
 * are those of fit's only epoch. Source: tensorflow/python/training/basic_session_run_hooks.py. */
#define _DEFAULT_SOURCE    /* flock */

#include "estimator_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "../../device/log_internal.h"
#include "../../device/open.h"
#include "../callbacks/backup_file_internal.h"
#include "../callbacks/event_file_internal.h"
#include "../optimizers/optimizer_internal.h"

typedef struct {
    CornuCallback            base;
    const CornuTPUEstimator *estimator;
    int64_t         max_steps;
    int             folder;              /* descriptor of model_dir, locked */
    char           *settings;            /* of the training, once it has begun */
    CornuEventFile *events;
    int64_t         saved_step, begun;   /* the first step of the present loop */
    double          saved_s;             /* when, in seconds of the clock */
    int64_t         counted_step;        /* since when steps per second are counted */
    double          counted_s;
    bool            saves;               /* after the present loop */
} Hook;

/* Whether a multiple of `every` steps is reached in the loop that ends with `step`. */
static bool reaches(const Hook *self, int64_t every, int64_t step)
{
    return every > 0 && step / every > self->begun / every;
}

/* The last loop may have fewer steps than the others. */
static int64_t at_most(const Hook *self, int64_t step)
{
    return step < self->max_steps ? step : self->max_steps;
}

static bool reports(const Hook *self, int64_t step)
{
    const CornuRunConfig *config = &self->estimator->config;
    return step == self->max_steps || reaches(self, config->log_step_count_steps, step) ||
           reaches(self, config->save_summary_steps, step);
}

/* ---- Checkpoints ---- */

static CornuStatus save(Hook *self, CornuModel *model)
{
    const CornuTPUEstimator *estimator = self->estimator;
    const int64_t step = model->training->step;
    char         *path = cornu__checkpoint_path(estimator->model_dir, step);
    CornuStatus   status = path ? CORNU_OK : CORNU_ERR_MEMORY;
    cornu__log(CORNU_LOG_INFO, "Saving checkpoints for %lld into %s/model.ckpt.", (long long)step,
               estimator->model_dir);
    if (!status) status = cornu__backup_write(model, self->settings, path);
    if (!status)
        status = cornu__checkpoints_add(estimator->model_dir, step,
                                        estimator->config.keep_checkpoint_max);
    cornu__release(path);
    self->saved_step = step;
    self->saved_s = cornu__seconds();
    return status;
}

static bool saves_any(const Hook *self)
{
    const CornuRunConfig *config = &self->estimator->config;
    return config->save_checkpoints_steps > 0 || config->save_checkpoints_secs > 0;
}

static bool must_save(const Hook *self, int64_t step)
{
    const CornuRunConfig *config = &self->estimator->config;
    if (step == self->max_steps) return false;   /* epoch_end does */
    if (config->save_checkpoints_steps > 0)
        return reaches(self, config->save_checkpoints_steps, step);
    return config->save_checkpoints_secs > 0 &&
           cornu__seconds() - self->saved_s >= (double)config->save_checkpoints_secs;
}

/* A rate that the spec says and the checkpoint does not: the spec's applies. */
static CornuStatus renew_rate(CornuModel *model)
{
    CornuOptimizer *optimizer = model->optimizer;
    return optimizer->schedule ? CORNU_OK
         : cornu_optimizer_set_learning_rate(optimizer, optimizer->learning_rate);
}

static CornuStatus go_on(Hook *self, CornuModel *model, const char *path,
                         const CornuSafetensors *file)
{
    const char *theirs = cornu_safetensors_metadata(file, "settings");
    CornuDifferences others = { .count = 1 };
    bool             same_data;
    if (theirs) CORNU__TRY(cornu__settings_differences(theirs, self->settings, &others));
    const bool same = others.count == 0;
    if (!same)
        cornu__log(CORNU_LOG_WARNING, "%s: the training goes on with other settings: %s", path,
                   others.text);
    CORNU__TRY(cornu__backup_continue(model, file, &same_data));
    if (!same) CORNU__TRY(renew_rate(model));
    if (!same_data)
        cornu__log(CORNU_LOG_WARNING, "%s: the training goes on with other data, from their first "
                   "batch on", path);
    cornu__log(CORNU_LOG_INFO, "Restoring parameters from %s", path);
    return CORNU_OK;
}

/* The newest checkpoint that is not damaged. */
static CornuStatus restore(Hook *self, CornuModel *model)
{
    const char      *folder = self->estimator->model_dir;
    CornuCheckpoints all;
    CORNU__TRY(cornu__checkpoints_read(folder, &all));
    CornuStatus status = CORNU_OK;
    bool        found = all.count == 0;
    for (int i = all.count - 1; i >= 0 && !found && status != CORNU_ERR_MEMORY; i--) {
        char             *path = cornu__checkpoint_path(folder, all.steps[i]);
        CornuSafetensors *file = path ? cornu__backup_open(path) : cornu__null();
        found = file != NULL;
        status = found ? go_on(self, model, path, file) : cornu_error_take();
        if (found && status) cornu__fail_prefix(status, path);
        if (!found) cornu__log(CORNU_LOG_WARNING, "%s; trying the previous checkpoint",
                               cornu_error_message());
        cornu_safetensors_close(file);
        cornu__release(path);
    }
    cornu__checkpoints_release(&all);
    return status;
}

/* ---- Placement ---- */

static void log_placement(const CornuExecutable *executable)
{
    const CornuDevice *device = cornu_executable_device(executable);
    int                count;
    const CornuExecutableStep *steps = cornu_executable_steps(executable, &count);
    for (int i = 0; i < count; i++)
        cornu__log(CORNU_LOG_INFO, "%s%s%s: (%s): %s%s", steps[i].scope,
                   *steps[i].scope ? "/" : "", steps[i].name, steps[i].kind,
                   cornu_device_name(device), strcmp(steps[i].kind, "reference") ? ""
                                              : ", by its reference");
}

static CornuStatus check_placement(const Hook *self, const CornuExecutable *executable)
{
    const CornuStatistics    *of = cornu_executable_statistics(executable);
    const CornuSessionConfig *config = &self->estimator->config.session_config;
    const CornuDevice *device = cornu_executable_device(executable);
    if (config->log_device_placement) log_placement(executable);
    if (!of->fallbacks || config->allow_soft_placement) return CORNU_OK;
    int id = 0;
    while (id + 1 < CORNU_OP_COUNT && !of->fell_back[id]) id++;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "train: the device %s has no kernel for %s and "
                       "%lld such ops in all, which would run by their reference; "
                       ".allow_soft_placement is false", cornu_device_name(device),
                       of->fell_back[id], (long long)of->fallbacks);
}

/* ---- Hooks ---- */

static CornuStatus train_begin(CornuCallback *base, CornuModel *model, const CornuLogs *logs)
{
    Hook      *self = (Hook *)base;
    CornuStep *step;
    (void)logs;
    cornu__checkpoints_clean(self->estimator->model_dir);
    CORNU__TRY(cornu__training_prepare(model, &step));
    if (!step->pipeline) CORNU__TRY(check_placement(self, cornu_graph_executable(step->graph)));
    if (!(self->settings = cornu__settings_text(model))) return cornu_error_status();
    if (!(self->events = cornu__event_file_open(self->estimator->model_dir)))
        return cornu_error_status();
    CORNU__TRY(restore(self, model));
    self->saved_step = self->counted_step = model->training->step;
    self->saved_s = self->counted_s = cornu__seconds();
    return model->training->step == 0 && saves_any(self) ? save(self, model) : CORNU_OK;
}

/* fit resets the metrics in the first step alone: a loss that is logged is the loop's. This depends
 * on the steps alone, as what is in a checkpoint must. */
static CornuStatus train_batch_begin(CornuCallback *base, CornuModel *model, int64_t batch,
                                     const CornuLogs *logs)
{
    Hook         *self = (Hook *)base;
    const int64_t end = at_most(self, batch + model->steps_per_execution);
    (void)logs;
    self->begun = batch;
    return reports(self, end) ? cornu_model_reset_metrics(model) : CORNU_OK;
}

static bool wants_batch_logs(CornuCallback *base, int64_t batch)
{
    Hook         *self = (Hook *)base;
    const int64_t step = at_most(self, batch + 1);
    self->saves = must_save(self, step);   /* fit checks the loss before */
    return self->saves || reports(self, step);
}

static CornuStatus write_summary(Hook *self, int64_t step, const CornuLogs *logs)
{
    double loss;
    if (!cornu_logs_find(logs, "loss", &loss)) return CORNU_OK;
    CORNU__TRY(cornu__event_file_scalar(self->events, "loss", step, loss));
    return cornu__event_file_flush(self->events);
}

static CornuStatus count_steps(Hook *self, int64_t step)
{
    const double now = cornu__seconds(), seconds = now - self->counted_s;
    const double rate = (double)(step - self->counted_step) / seconds;
    const double rows = (double)self->estimator->batch_size[CORNU_MODE_TRAIN];
    self->counted_step = step;
    self->counted_s = now;
    cornu__log(CORNU_LOG_INFO, "global_step/sec: %g", rate);
    cornu__log(CORNU_LOG_INFO, "examples/sec: %g", rate * rows);
    CORNU__TRY(cornu__event_file_scalar(self->events, "global_step/sec", step, rate));
    CORNU__TRY(cornu__event_file_scalar(self->events, "examples/sec", step, rate * rows));
    return cornu__event_file_flush(self->events);
}

static CornuStatus train_batch_end(CornuCallback *base, CornuModel *model, int64_t batch,
                                   const CornuLogs *logs)
{
    Hook                 *self = (Hook *)base;
    const CornuRunConfig *config = &self->estimator->config;
    const int64_t         step = model->training->step;
    double                loss;
    (void)batch;
    if (logs && reaches(self, config->save_summary_steps, step))
        CORNU__TRY(write_summary(self, step, logs));
    if (logs && reaches(self, config->log_step_count_steps, step)) {
        if (cornu_logs_find(logs, "loss", &loss))
            cornu__log(CORNU_LOG_INFO, "loss = %.7g, step = %lld", loss, (long long)step);
        CORNU__TRY(count_steps(self, step));
    }
    return self->saves ? save(self, model) : CORNU_OK;
}

/* At the last step, at the end of the data, or where a hook has stopped. */
static CornuStatus hook_epoch_end(CornuCallback *base, CornuModel *model, int64_t epoch,
                                  const CornuLogs *logs)
{
    Hook  *self = (Hook *)base;
    double loss;
    (void)epoch;
    if (model->training->step > self->saved_step && saves_any(self)) CORNU__TRY(save(self, model));
    if (cornu_logs_find(logs, "loss", &loss))
        cornu__log(CORNU_LOG_INFO, "Loss for final step: %.7g.", loss);
    return CORNU_OK;
}

/* ---- Making one ---- */

static void free_hook(CornuCallback *base)
{
    Hook *self = (Hook *)base;
    if (self->folder >= 0) close(self->folder);
    cornu__event_file_close(self->events);
    free(self->settings);
    cornu__release(self);
}

/* Locks the folder as long as the hook lives. */
static CornuStatus claim(Hook *self)
{
    const char *folder = self->estimator->model_dir;
    self->folder = cornu__open(folder, O_RDONLY | O_DIRECTORY, 0);
    if (self->folder < 0)
        return cornu__fail(CORNU_ERR_FILE, "%s: cannot be read: %s", folder, strerror(errno));
    if (flock(self->folder, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return CORNU_OK;
    return cornu__fail(CORNU_ERR_FILE, "%s: another process trains here; expected a model_dir for "
                       "this training alone", folder);
}

CornuCallback *cornu__estimator_hook(const CornuTPUEstimator *estimator, int64_t max_steps)
{
    Hook *self = cornu__allocate(1, sizeof *self);
    if (!self) return cornu__null();
    *self = (Hook){
        .base = { .train_begin = train_begin, .train_batch_begin = train_batch_begin,
                  .wants_batch_logs = wants_batch_logs, .train_batch_end = train_batch_end,
                  .epoch_end = hook_epoch_end, .free = free_hook },
        .estimator = estimator, .max_steps = max_steps, .folder = -1,
    };
    if (!claim(self)) return &self->base;
    free_hook(&self->base);
    return cornu__null();
}
