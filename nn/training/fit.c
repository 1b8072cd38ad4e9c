/* Training: runs the step on every batch and calls the callbacks, in the order of
 * keras/src/backend/jax/trainer.py, fit. */
#include <math.h>

#include "../../device/log_internal.h"
#include "../formats/output_internal.h"
#include "agree_internal.h"
#include "trace_internal.h"

typedef struct {
    const CornuFitConfig *config;
    CornuModel    *model;
    CornuCallbackList callbacks;
    CornuDataLoader    train, validation;  /* validation.dataset is NULL without */
    CornuLogSet    logs;               /* of training: batches, and epochs without validation */
    CornuLogSet    epoch_logs;         /* of training and validation */
    CornuLogSet    test_logs;          /* of validation alone */
    const CornuLogs *last_logs;        /* of the last epoch */
    CornuTraining  at;
    CornuClassWeights classes;
    int64_t        finite_until;       /* steps of this epoch after which the loss was finite */
} Fit;

/* ---- Data ---- */

/* Splits off the last part of the data: keras/src/trainers/data_adapters/data_adapter_utils.py,
 * train_validation_split. Takes *train, which becomes the first part. */
static CornuStatus split_validation(double part, CornuDataset **train, CornuDataset **validation)
{
    const int64_t count = cornu_dataset_count(*train);
    if (!(part > 0.0 && part < 1.0))
        return cornu__fail(CORNU_ERR_ARGUMENT, "fit: .validation_split is %g, expected more "
                           "than 0 and less than 1", part);
    if (cornu_dataset_batch_size(*train) > 0 || count < 0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "fit: .validation_split is given, but the data set "
                           "is %s", count == CORNU_NONE ? "infinite" : count == CORNU_UNKNOWN
                           ? "of unknown length; cache it before" : "batched already");
    const int64_t first = (int64_t)floor((double)count * (1.0 - part));
    if (first == 0 || first == count)
        return cornu__fail(CORNU_ERR_ARGUMENT, "fit: .validation_split of %g leaves %lld of %lld "
                           "samples for training", part, (long long)first, (long long)count);
    *validation = cornu_dataset_skip(cornu_dataset_retain(*train), first);
    *train = cornu_dataset_take(*train, first);
    return *train && *validation ? CORNU_OK : cornu_error_take();
}

/* The data sets of training and validation, not batched yet; *validation is NULL without one. */
static CornuStatus find_data(const CornuFitConfig *config, CornuDataset **train,
                             CornuDataset **validation)
{
    const CornuData data = CORNU__DATA_OF(CornuFitConfig, config);
    const bool      validates = cornu__data_given(config->model, &config->validation_data);
    if (validates && config->validation_split != 0.0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "fit: both .validation_data and .validation_split "
                           "are given, expected one");
    *train = cornu__dataset_of(config->model, "fit", &data, CORNU_STEP_TRAIN);
    if (!*train) return cornu_error_take();
    if (config->validation_split != 0.0)
        return split_validation(config->validation_split, train, validation);
    if (!validates) return CORNU_OK;
    *validation = cornu__dataset_of(config->model, "fit's validation", &config->validation_data,
                                    CORNU_STEP_TEST);
    return *validation ? CORNU_OK : cornu_error_take();
}

static CornuStatus open_loaders(Fit *fit)
{
    const CornuFitConfig *config = fit->config;
    CornuDataset *train = NULL, *validation = NULL;
    CornuStatus   status = find_data(config, &train, &validation);
    if (!status && config->class_weight.data) {   /* validation data have no class weights */
        train = cornu__add_class_weights(&fit->classes, fit->model, "fit", config->class_weight,
                                         train);
        if (!train) status = cornu_error_take();
    }
    if (status) {
        cornu_dataset_free(train);
        cornu_dataset_free(validation);
        return status;
    }
    const int64_t usual = config->batch_size ? config->batch_size : 32;
    const int64_t least = cornu__min_batch_rows(fit->model);
    status = cornu__data_loader_open_for(fit->model, &fit->train, &(CornuDataLoaderConfig){
        .dataset = train, .device = fit->model->device, .batch_size = config->batch_size,
        .default_batch_size = usual, .min_batch_rows = least,
        .steps = config->steps_per_epoch, .shuffle = !config->no_shuffle,
        .seed = fit->model->seed, .who = "fit", .batch_name = "batch_size",
        .steps_name = "steps_per_epoch" });
    if (!validation) return status;
    if (status) {
        cornu_dataset_free(validation);
        return status;
    }
    return cornu__data_loader_open_for(fit->model, &fit->validation, &(CornuDataLoaderConfig){
        .dataset = validation, .device = fit->model->device,
        .batch_size = config->validation_batch_size,
        .default_batch_size = usual, .min_batch_rows = least, .steps = config->validation_steps,
        .who = "fit's validation", .batch_name = "validation_batch_size",
        .steps_name = "validation_steps" });
}

/* ---- Epochs ---- */

/* Reads the running means. Fails at a loss that is not finite, from which training cannot
 * recover. */
static CornuStatus read_logs(Fit *fit)
{
    const int64_t epoch = fit->at.epoch, done = fit->at.step;
    CORNU__TRY(cornu__data_loader_wait(&fit->train, fit->model));
    CORNU__TRY(cornu__metrics_read(fit->model, fit->logs.values));
    const double loss = fit->logs.values[0];
    const bool   fails = !isfinite(loss) && !cornu__takes_nan(&fit->callbacks);
    if (fails && fit->model->optimizer->scales_loss)
        return cornu__fail(CORNU_ERR_VALUE, "%s: the loss became %s in epoch %lld, between steps "
                           "%lld and %lld: float16 overflows beyond 65504; mixed_bfloat16 does "
                           "not", fit->model->base.name, isnan(loss) ? "nan" : "infinite",
                           (long long)epoch + 1, (long long)fit->finite_until + 1,
                           (long long)done);
    if (fails)
        return cornu__fail(CORNU_ERR_VALUE, "%s: the loss became %s in epoch %lld, between steps "
                           "%lld and %lld; a smaller learning rate or .clipnorm may help, or the "
                           "data may hold values that are not finite. Compile with .debug_nans to "
                           "learn where it happens", fit->model->base.name,
                           isnan(loss) ? "nan" : "infinite", (long long)epoch + 1,
                           (long long)fit->finite_until + 1, (long long)done);
    fit->finite_until = done;
    cornu__logs_refresh(&fit->logs);
    return CORNU_OK;
}

/* Batch i of the epoch, the first part of step i. */
static CornuStatus next_batch(Fit *fit, int64_t i, const CornuBatch **batch)
{
    cornu__phase(cornu__trace_of(fit->model->trace, i - 1), NULL);
    cornu__phase(cornu__trace_of(fit->model->trace, i), "wait for the batch");
    return cornu__data_loader_next(&fit->train, batch);
}

static CornuStatus trace_step(const Fit *fit, CornuTrace *trace, const CornuStep *step)
{
    if (!step->pipeline) return cornu_trace_run(trace, cornu_graph_executable(step->graph));
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: a trace of a step of pipeline_parallel, whose "
                       "stages have a program each; expected a model without",
                       fit->model->base.name);
}

/* The steps of one execution. */
static CornuStatus train_execution(Fit *fit, const CornuBatch *batch)
{
    CornuDataLoader  *loader = &fit->train;
    const int64_t first = fit->at.step, end = cornu__execution_end(fit->model, loader, first);
    while (batch) {
        CornuTrace *trace = cornu__trace_of(fit->model->trace, fit->at.step);
        CornuStep  *step;
        CornuArray  cut[CORNU_MAX_COMPONENTS];
        CornuBatch  own = *batch;
        for (int i = 0; i < batch->count && cornu__model_cuts_batches(fit->model); i++) {
            cut[i] = batch->arrays[i];
            cut[i].type.shape.extent[0] = batch->valid;   /* no row is padded */
            own.arrays = cut;
        }
        const CornuArrays arrays = cornu__batch_arrays(fit->model, CORNU_STEP_TRAIN, loader,
                                                       &own);
        cornu__phase(trace, "prepare");
        CORNU__TRY(cornu__step(fit->model, CORNU_STEP_TRAIN, &arrays, &step));
        cornu__phase(trace, "infeed");
        CORNU__TRY(cornu__data_loader_feed(loader, step, &arrays, batch->valid));
        if (fit->at.step == first && !step->pipeline)
            cornu_executable_collect(cornu_graph_executable(step->graph), end - first);
        if (trace) CORNU__TRY(trace_step(fit, trace, step));
        CORNU__TRY(cornu__data_loader_run(loader, step, batch->sample, NULL));
        fit->at.samples += batch->valid;
        batch = NULL;
        if (++fit->at.step < end) CORNU__TRY(next_batch(fit, fit->at.step, &batch));
    }
    return CORNU_OK;
}

/* The remaining training steps of the epoch. */
static CornuStatus train_epoch(Fit *fit)
{
    const CornuCallbackList *callbacks = &fit->callbacks;
    CornuDataLoader          *loader = &fit->train;
    fit->finite_until = fit->at.step;
    CORNU__TRY(cornu__data_loader_begin_epoch(loader));
    while (fit->at.step < loader->steps) {
        const int64_t     first = fit->at.step;
        const int64_t     last = first + fit->model->steps_per_execution - 1;
        const CornuBatch *batch;
        CORNU__TRY(next_batch(fit, first, &batch));
        if (!batch) break;
        cornu__phase(cornu__trace_of(fit->model->trace, first), "callbacks");
        CORNU__TRY(cornu__call_index_hook(callbacks, CORNU__HOOK(train_batch_begin), first, NULL));
        CORNU__TRY(train_execution(fit, batch));
        CornuTrace *trace = cornu__trace_of(fit->model->trace, fit->at.step - 1);
        const bool  wants = cornu__wants_logs(callbacks, CORNU__HOOK(train_batch_end), last);
        if (wants) cornu__phase(trace, "outfeed");
        if (wants) CORNU__TRY(read_logs(fit));
        cornu__phase(trace, "callbacks");
        CORNU__TRY(cornu__call_index_hook(callbacks, CORNU__HOOK(train_batch_end), last,
                                          wants ? &fit->logs.logs : NULL));
        CORNU__TRY(cornu__agree_to_stop(fit->model));
        if (fit->model->stop_training) break;
    }
    cornu__phase(cornu__trace_of(fit->model->trace, fit->at.step - 1), NULL);
    cornu__data_loader_end_epoch(loader);
    return read_logs(fit);
}

/* Validates, and merges the results into the epoch's logs. */
static CornuStatus validate(Fit *fit)
{
    CORNU__TRY(cornu__evaluate_batches(fit->model, &fit->validation, &fit->callbacks,
                                       &fit->test_logs));
    const int metrics = fit->logs.metrics;
    for (int i = 0; i < metrics; i++) fit->epoch_logs.values[i] = fit->logs.values[i];
    for (int i = 0; i < fit->test_logs.metrics; i++)
        fit->epoch_logs.values[metrics + i] = fit->test_logs.values[i];
    cornu__logs_refresh(&fit->epoch_logs);
    if (isfinite(fit->test_logs.values[0]) || cornu__takes_nan(&fit->callbacks)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_VALUE, "%s: val_loss is not finite after epoch %lld; a "
                       "smaller learning rate or .clipnorm may help", fit->model->base.name,
                       (long long)fit->at.epoch + 1);
}

/* The rest of the epoch: all of it unless a callback resumed within it. */
static CornuStatus run_epoch(Fit *fit)
{
    const int64_t freq = fit->config->validation_freq ? fit->config->validation_freq : 1;
    const int64_t epoch = fit->at.epoch;
    CORNU__TRY(cornu__history_reserve(fit->at.history));
    if (fit->at.step == 0) CORNU__TRY(cornu_model_reset_metrics(fit->model));
    CORNU__TRY(cornu__call_index_hook(&fit->callbacks, CORNU__HOOK(epoch_begin), epoch, NULL));
    fit->at.idle_seconds = 0.0;
    const double begin = cornu__seconds();
    CORNU__TRY(train_epoch(fit));
    const double seconds = fit->at.seconds = cornu__seconds() - begin - fit->at.idle_seconds;

    CornuLogSet *set = &fit->logs;
    if (fit->validation.dataset && (epoch + 1) % freq == 0) {
        CORNU__TRY(validate(fit));
        set = &fit->epoch_logs;
    }
    fit->last_logs = &set->logs;   /* without the logs that callbacks add, as in Keras */
    CornuLogs logs = set->logs;
    CORNU__TRY(cornu__epoch_end(&fit->callbacks, false, epoch, set, &logs));
    CORNU__TRY(cornu__history_add(fit->at.history, epoch, &logs, seconds, fit->at.samples,
                                  &fit->train.infeed));
    fit->at.epoch = epoch + 1;
    fit->at.step = fit->at.samples = 0;
    return cornu__epoch_end(&fit->callbacks, true, epoch, set, &logs);
}

/* ---- fit ---- */

CornuStatus cornu__training_prepare(CornuModel *model, CornuStep **step)
{
    return cornu__step_of(model, CORNU_STEP_TRAIN, model->training->loader, step);
}

/* The logs of a model's own step are known once it has been recorded. */
static CornuStatus record_own(Fit *fit)
{
    CornuModel *model = fit->model;
    CornuStep  *step;
    if (cornu__model_has_own(model, CORNU_STEP_TRAIN))
        CORNU__TRY(cornu__step_of(model, CORNU_STEP_TRAIN, &fit->train, &step));
    if (!fit->validation.dataset || !cornu__model_has_own(model, CORNU_STEP_TEST)) return CORNU_OK;
    return cornu__step_of(model, CORNU_STEP_TEST, &fit->validation, &step);
}

static int64_t epochs_of(const CornuFitConfig *config)
{
    const bool none = config->epochs == 0 && cornu__is_written(config->written, "epochs", -1);
    return none ? 0 : cornu__integer(config->epochs, 1);
}

static CornuStatus check_fit(const CornuFitConfig *config)
{
    const struct { const char *name; int64_t value; } counts[] = {
        { "epochs", epochs_of(config) }, { "batch_size", config->batch_size },
        { "initial_epoch", config->initial_epoch },
        { "steps_per_epoch", config->steps_per_epoch },
        { "validation_steps", config->validation_steps },
        { "validation_batch_size", config->validation_batch_size },
        { "validation_freq", config->validation_freq },
    };
    CORNU__TRY(cornu__model_check(config->model));
    CORNU__TRY(cornu__model_refuse_function(config->model, "fit"));
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i].value < 0)
            return cornu__fail(CORNU_ERR_ARGUMENT, "fit: .%s is %lld, expected 0 or more",
                               counts[i].name, (long long)counts[i].value);
    return CORNU_OK;
}

static CornuStatus run_fit(Fit *fit)
{
    const CornuFitConfig *config = fit->config;
    const int64_t         epochs = epochs_of(config);
    CornuModel           *model = fit->model;
    CORNU__TRY(check_fit(config));
    CORNU__TRY(open_loaders(fit));
    CORNU__TRY(cornu__callback_list_open(&fit->callbacks, config->written, config->verbose,
        (CornuParams){ .epochs = epochs, .steps = cornu__data_loader_steps(&fit->train),
                       .validates = fit->validation.dataset != NULL }));
    CORNU__TRY(record_own(fit));
    CORNU__TRY(cornu__logs_open(&fit->logs, model, true, false));
    CORNU__TRY(cornu__logs_open(&fit->epoch_logs, model, true, true));
    CORNU__TRY(cornu__logs_open(&fit->test_logs, model, false, true));
    CORNU__TRY(cornu__model_follow_trainable(model));
    CORNU__TRY(cornu__agree_on_training(model, &fit->train, epochs));
    if (fit->validation.dataset)
        CORNU__TRY(cornu__agree_on_data(model, &fit->validation, "the validation data"));
    cornu__data_loader_skip_epochs(&fit->train, config->initial_epoch);

    model->stop_training = false;
    fit->at.epoch = config->initial_epoch;
    fit->at.loader = &fit->train;
    fit->at.validation = &fit->validation;
    fit->at.callbacks = &fit->callbacks;
    model->training = &fit->at;
    CORNU__TRY(cornu__call_hook(&fit->callbacks, CORNU__HOOK(train_begin), NULL));
    while (fit->at.epoch < epochs && !fit->at.stopped) {
        CORNU__TRY(run_epoch(fit));
        CORNU__TRY(cornu__agree_to_stop(model));
        fit->at.stopped = model->stop_training;
    }
    if (epochs > 0) CORNU__TRY(cornu_optimizer_finalize_variable_values(model->optimizer));
    /* A file that rank 0 cannot finish is missing to all. */
    return cornu__output_settle(model->device, "the end of fit",
                                cornu__call_hook(&fit->callbacks, CORNU__HOOK(train_end),
                                                 fit->last_logs));
}

CornuHistory *cornu_fit_from(const CornuFitConfig *config)
{
    Fit fit = { .config = config, .model = config->model };
    CornuStatus status = cornu__callback_list_take(&fit.callbacks, config->model,
                                                   config->callbacks);
    if (!status && !cornu__refused()) fit.at.history = cornu__history_create();
    if (!status)
        status = !fit.at.history ? cornu_error_status()
                                 : cornu__model_enter(config->model, "cornu_fit");
    const bool  entered = !status;
    if (entered) status = cornu__fail_together(config->model, run_fit(&fit));
    cornu__logs_close(&fit.logs);
    cornu__logs_close(&fit.epoch_logs);
    cornu__logs_close(&fit.test_logs);
    cornu__data_loader_close(&fit.train);
    cornu__data_loader_close(&fit.validation);
    cornu__callback_list_close(&fit.callbacks);
    if (entered) {
        if (config->model) config->model->training = NULL;
        cornu__model_leave(config->model);
    }
    if (!status) return fit.at.history;
    cornu__log(status == CORNU_ERR_INTERRUPTED ? CORNU_LOG_INFO : CORNU_LOG_ERROR, "fit: %s",
               cornu_error_message());
    cornu_history_free(fit.at.history);
    return cornu__null();
}
