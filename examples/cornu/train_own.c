/* cornu train MODEL --x FILE --y FILE, or --data: prints what Keras prints, saves the model. */
#include "train.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/session.h"

/* Batches of rows that cannot be read in any order, in place of the rows, which fit would shuffle;
 * and of those for validation, which are split off as fit does. */
static CornuStatus order_rows(const Options *options, const TrainFlags *flags, const Data *data,
                              CornuFitConfig *config)
{
    const int64_t size = options->batch_size, count = cornu_dataset_count(data->rows);
    const double  part = flags->validation_split > 0.0 ? flags->validation_split : 0.0;
    const int64_t first = (int64_t)floor((double)count * (1.0 - part));
    CornuDataset *rows = cornu_dataset_retain(data->rows);
    if (part > 0.0 && (first < 1 || first == count)) {
        cornu_dataset_free(rows);
        return cornu_error_set(CORNU_ERR_ARGUMENT, "--validation-split %g leaves %lld of %lld rows "
                               "for training, expected some, and some for validation", part,
                               (long long)first, (long long)count);
    }
    if (part > 0.0)
        config->validation_data.data = cornu_dataset_batch(
            cornu_dataset_skip(cornu_dataset_retain(rows), first), size, false);
    if (part > 0.0) rows = cornu_dataset_take(rows, first);
    config->data = cornu_dataset_batch(
        data_rows_shuffle(rows, data->order, (uint64_t)options->seed), size, false);
    config->data = cornu_dataset_prefetch(config->data, 2);
    config->validation_split = 0.0;
    config->batch_size = 0;
    return config->data && (part == 0.0 || config->validation_data.data) ? CORNU_OK
                                                                         : cornu_error_status();
}

static CornuHistory *fit_rows(const Options *options, const TrainFlags *flags, const Data *data,
                              CornuFitConfig config)
{
    const bool    split = flags->validation_split > 0.0;
    CornuHistory *history = order_rows(options, flags, data, &config) ? NULL
                                                                      : cornu_fit_from(&config);
    cornu_dataset_free(config.data);
    if (split) cornu_dataset_free(config.validation_data.data);
    return history;
}

static CornuHistory *fit(const Options *options, const TrainFlags *flags, CornuModel *model,
                         const Data *data)
{
    const bool     split = flags->validation_split > 0.0;
    CornuFitConfig config = {
        .model = model, .batch_size = options->batch_size, .epochs = options->epochs,
        .steps_per_epoch = options->steps_per_epoch, .verbose = options->verbose,
        .validation_split = split ? flags->validation_split : 0.0,
        .callbacks = { SESSION_CALLBACKS(options) } };
    if (data->order != DATA_ANY_ORDER) return fit_rows(options, flags, data, config);
    config.data = data->rows;
    if (!split) config.validation_data.data = data->test_rows;
    if (!data->rows) {
        memcpy(config.xs, data->x, sizeof config.xs);
        memcpy(config.ys, data->y, sizeof config.ys);
    }
    if (!split && !data->rows) {
        memcpy(config.validation_data.xs, data->test_x, sizeof data->test_x);
        memcpy(config.validation_data.ys, data->test_y, sizeof data->test_y);
    }
    return cornu_fit_from(&config);
}

/* --history and --plots; the test is the validation of the last epoch. */
static CornuStatus record(const Options *options, CornuModel *model, const CornuHistory *history,
                          const Data *data)
{
    const bool           tested = data->test_x[0].data;
    const int            last = cornu_history_epochs(history) - 1;
    CornuTrainTest       about = {
        .name = data->name, .things = "rows", .synthetic = data->synthetic,
        .train_x.type = data->x[0].type,
        .test_x.type = tested ? data->test_x[0].type : cornu_type(CORNU_U8, 0) };
    about.train_x.type.shape.extent[0] = data_count(data);
    const double test[2] = { tested ? cornu_history_get(history, "val_loss", last) : NAN,
                             tested ? cornu_history_get(history, "val_accuracy", last) : NAN };
    return session_record(options, model, history, &about, test);
}

static CornuStatus train(const Options *options, const TrainFlags *flags, CornuModel *model,
                         const Data *data)
{
    printf("%s\n", data->about);
    cornu_summary(model);
    if (session_prepare(options, model, NULL)) return cornu_error_status();
    if (options->save && data_describe(data, model)) return cornu_error_status();
    CornuHistory *history = fit(options, flags, model, data);
    if (!history) return session_stopped(options, model);
    CornuStatus status = session_save(options, model);
    if (!status) session_remarks(model);
    if (!status) status = record(options, model, history, data);
    if (!status) status = session_finish(options);
    cornu_history_free(history);
    return status;
}

CornuStatus train_own(Options *options, const TrainFlags *flags, const Subject *subject)
{
    const CornuReferenceModel *reference = subject->reference;
    Objective                  objective = flags->objective;
    Data                       data = { .set = NULL };
    if (!options->epochs) options->epochs = 1;
    CornuDevice *device = session_open(options);
    CornuModel  *model =
        device ? objective_model(&objective, options, subject, device) : NULL;
    if (model)
        options->batch_size =
            objective_batch(options, model, reference ? reference->batch_size : 32);
    CornuStatus  status = model ? train_check_remat(flags, model) : cornu_error_status();
    if (!status) status = data_load(&data, options, &flags->data, model, DATA_LABELS);
    if (!status) status = objective_logits(&objective, options, model, device, data.x);
    if (!status) status = train(options, flags, model, &data);
    cornu_model_free(model);
    cornu_device_close(device);
    data_free(&data);
    return status;
}
