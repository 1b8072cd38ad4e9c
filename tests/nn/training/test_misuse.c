/* Misuse of training, prediction, callbacks and histories. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../misuses.h"

static bool fit_null_model(void)
{
    return nothing(cornu_fit(NULL, .x = data_x(), .y = data_y(), .verbose = CORNU_SILENT));
}

static bool fit_before_compile(void)
{
    return nothing(cornu_fit(built(), .x = data_x(), .y = data_y(), .verbose = CORNU_SILENT));
}

static bool fit_no_data(void)
{
    return nothing(cornu_fit(compiled(), .verbose = CORNU_SILENT));
}

static bool fit_no_loss(void)
{
    CornuModel *m = built();
    cornu_compile(m);
    return nothing(cornu_fit(m, .x = data_x(), .y = data_y(), .verbose = CORNU_SILENT));
}

static bool fit_epochs_negative(void)
{
    return nothing(cornu_fit(compiled(), .x = data_x(), .y = data_y(), .epochs = -1, .verbose =
        CORNU_SILENT));
}

static bool fit_batch_negative(void)
{
    return nothing(cornu_fit(compiled(), .x = data_x(), .y = data_y(), .batch_size = -4, .verbose
        = CORNU_SILENT));
}

static bool fit_rows_differ(void)
{
    return nothing(cornu_fit(compiled(), .x = data_x(), .y = cornu_array(y, CORNU_F32, 31, 1),
        .verbose = CORNU_SILENT));
}

static bool fit_split_nan(void)
{
    return nothing(cornu_fit(compiled(), .x = data_x(), .y = data_y(), .validation_split = NAN,
        .verbose = CORNU_SILENT));
}

static bool fit_verbose_unknown(void)
{
    return nothing(cornu_fit(compiled(), .x = data_x(), .y = data_y(), .verbose =
        (CornuVerbose)77));
}

static bool fit_callback_twice(void)
{
    CornuCallback *k = cornu_terminate_on_nan();
    return nothing(cornu_fit(compiled(), .x = data_x(), .y = data_y(), .verbose = CORNU_SILENT,
        .callbacks = { k, k }));
}

static bool evaluate_callback_twice(void)
{
    CornuCallback *k = cornu_terminate_on_nan();
    return failed(cornu_evaluate(compiled(), .x = data_x(), .y = data_y(), .verbose =
        CORNU_SILENT, .callbacks = { k, k }));
}

static bool fit_x_no_data(void)
{
    return nothing(cornu_fit(compiled(), .x = cornu_array(NULL, CORNU_F32, 32, 2), .y = data_y(),
        .verbose = CORNU_SILENT));
}

static bool fit_x_empty(void)
{
    return nothing(cornu_fit(compiled(), .x = cornu_array(x, CORNU_F32, 0, 2), .y = cornu_array(y,
        CORNU_F32, 0, 1), .verbose = CORNU_SILENT));
}

static bool fit_x_columns(void)
{
    return nothing(cornu_fit(compiled(), .x = cornu_array(x, CORNU_F32, 16, 3), .y =
        cornu_array(y, CORNU_F32, 16, 1), .verbose = CORNU_SILENT));
}

static bool evaluate_null_model(void)
{
    return failed(cornu_evaluate(NULL, .x = data_x(), .y = data_y()));
}

static bool predict_null_model(void)
{
    return failed(cornu_predict(NULL, .x = data_x(), .to = data_y()));
}

static bool predict_no_to(void)
{
    return failed(cornu_predict(compiled(), .x = data_x(), .verbose = CORNU_SILENT));
}

static bool predict_to_rows(void)
{
    return failed(cornu_predict(compiled(), .x = data_x(), .to = cornu_array(y, CORNU_F32, 31, 1),
        .verbose = CORNU_SILENT));
}

static bool on_batch_null_model(void)
{
    return failed(cornu_train_on_batch(NULL, data_x(), data_y()));
}

static bool on_batch_no_x(void)
{
    return failed(cornu_train_on_batch(compiled(), .y = data_y()));
}

static bool on_batch_no_y(void)
{
    return failed(cornu_train_on_batch(compiled(), data_x()));
}

static bool test_on_batch_null_model(void)
{
    return failed(cornu_test_on_batch(NULL, data_x(), data_y()));
}

static bool predict_on_batch_null_to(void)
{
    return failed(cornu_predict_on_batch(compiled(), data_x(), cornu_array(NULL, CORNU_F32, 32,
        1)));
}

static bool on_batch_many_null_x(void)
{
    return failed(cornu_train_on_batch_many(compiled(), NULL, &(CornuArray){ 0 }, NULL));
}

static bool on_batch_many_null_y(void)
{
    CornuArray a = data_x();
    return failed(cornu_train_on_batch_many(compiled(), &a, NULL, NULL));
}

static bool predict_many_null_to(void)
{
    CornuArray a = data_x();
    return failed(cornu_predict_on_batch_many(compiled(), &a, NULL));
}

static bool reset_metrics_null(void)
{
    return failed(cornu_model_reset_metrics(NULL));
}

static bool reset_states_null(void)
{
    return failed(cornu_model_reset_states(NULL));
}

static bool move_uncompiled(void)
{
    return failed(cornu_model_move(built(), NULL));
}

static bool train_step_null(void)
{
    return nothing(cornu_model_train_step(NULL, data_x().type, data_y().type));
}

static bool model_call_null(void)
{
    CornuCall call = { 0 };
    return nothing(cornu_model_call(compiled(), NULL, &call));
}

static bool checkpoint_null(void)
{
    return nothing(cornu_model_checkpoint());
}

static bool backup_null(void)
{
    return nothing(cornu_backup_and_restore());
}

static bool csv_null(void)
{
    return nothing(cornu_csv_logger());
}

static bool tensorboard_empty(void)
{
    return nothing(cornu_tensorboard(.log_dir = ""));
}

static bool trace_null(void)
{
    return nothing(cornu_trace());
}

static bool trace_write_null(void)
{
    return failed(cornu_trace_write(NULL, file("t.json")));
}

static bool scheduler_null(void)
{
    return nothing(cornu_learning_rate_scheduler());
}

static bool early_stopping_patience(void)
{
    return nothing(cornu_early_stopping(.patience = -1));
}

static bool plateau_factor(void)
{
    return nothing(cornu_reduce_lr_on_plateau(.factor = NAN));
}

static bool summary_null(void)
{
    return failed(cornu_summary(NULL));
}

static bool generate_null(void)
{
    return failed(cornu_generate(NULL));
}

static bool check_gradients_null(void)
{
    return failed(cornu_check_gradients(NULL));
}

static bool plot_size(void)
{
    return nothing(cornu_plot_create(-1, 10, 0));
}

static bool plot_save_null(void)
{
    return failed(cornu_plot_save(cornu_plot_create(10, 10, 0), NULL));
}

static bool curves_null(void)
{
    return nothing(cornu_picture_curves(NULL, "title"));
}

static bool history_get_null(void)
{
    CornuHistory *h = cornu_fit(compiled(), .x = data_x(), .y = data_y(), .verbose =
        CORNU_SILENT);
    return h && isnan(cornu_history_get(h, NULL, 0));
}

static bool history_get_epoch_99(void)
{
    CornuHistory *h = cornu_fit(compiled(), .x = data_x(), .y = data_y(), .verbose =
        CORNU_SILENT);
    return h && isnan(cornu_history_get(h, "loss", 99));
}

static bool history_seconds_99(void)
{
    CornuHistory *h = cornu_fit(compiled(), .x = data_x(), .y = data_y(), .verbose =
        CORNU_SILENT);
    return h && cornu_history_samples(h, 99) == 0 && cornu_history_infeed(h, -1).batches == 0 &&
           isnan(cornu_history_seconds(h, 99));
}

static bool history_key_99(void)
{
    CornuHistory *h = cornu_fit(compiled(), .x = data_x(), .y = data_y(), .verbose =
        CORNU_SILENT);
    return h && nothing(cornu_history_key(h, 99));
}

static bool history_epochs_null(void)
{
    return cornu_history_epochs(NULL) == 0;
}

static bool trace_phase_null(void)
{
    cornu_trace_phase(NULL, "a");
    return true;
}

static bool record_write_null(void)
{
    CornuRunRecord r = { 0 };
    return failed(cornu_record_write(&r, NULL));
}

static bool confusion_no_data(void)
{
    return failed(cornu_confusion(cornu_array(NULL, CORNU_F32, 4, 2), cornu_array(NULL, CORNU_U8,
        4), cornu_array(NULL, CORNU_I64, 2, 2)));
}

static bool history_samples_null(void) { return cornu_history_samples(NULL, 0) == 0; }

static const Misuse misuses[] = {
    MISUSE(fit_null_model, "model"),
    MISUSE(fit_before_compile, "compile"),
    MISUSE(fit_no_data, "fit"),
    MISUSE(fit_no_loss, "loss"),
    MISUSE(fit_epochs_negative, "epochs|-1"),
    MISUSE(fit_batch_negative, "batch_size|-4"),
    MISUSE(fit_rows_differ, "31"),
    MISUSE(fit_split_nan, "validation_split|nan"),
    MISUSE(fit_verbose_unknown, "verbose"),
    MISUSE(fit_callback_twice, "callback|twice"),
    MISUSE(evaluate_callback_twice, "callback|twice"),
    MISUSE(fit_x_no_data, "fit|expected a data set"),
    MISUSE(fit_x_empty, "empty"),
    MISUSE(fit_x_columns, "3"),
    MISUSE(evaluate_null_model, "model"),
    MISUSE(predict_null_model, "model"),
    MISUSE(predict_no_to, "to"),
    MISUSE(predict_to_rows, "rows|31"),
    MISUSE(on_batch_null_model, "model"),
    MISUSE(on_batch_no_x, "cornu_train_on_batch|.x"),
    MISUSE(on_batch_no_y, "y"),
    MISUSE(test_on_batch_null_model, "model"),
    MISUSE(predict_on_batch_null_to, "to"),
    MISUSE(on_batch_many_null_x, "x"),
    MISUSE(on_batch_many_null_y, "y"),
    MISUSE(predict_many_null_to, "to"),
    MISUSE(reset_metrics_null, "model"),
    MISUSE(reset_states_null, "model"),
    MISUSE(move_uncompiled, "compile"),
    MISUSE(train_step_null, "model"),
    MISUSE(model_call_null, "cornu_model_call|tensor"),
    MISUSE(checkpoint_null, "filepath"),
    MISUSE(backup_null, "backup_dir"),
    MISUSE(csv_null, "CSV logger|filename"),
    MISUSE(tensorboard_empty, "log_dir"),
    MISUSE(trace_null, "trace|path"),
    MISUSE(trace_write_null, "cornu_trace_write|trace"),
    MISUSE(scheduler_null, "schedule"),
    MISUSE(early_stopping_patience, "patience|-1"),
    MISUSE(plateau_factor, "factor|nan"),
    MISUSE(summary_null, "model"),
    MISUSE(generate_null, "model"),
    MISUSE(check_gradients_null, "model"),
    MISUSE(plot_size, "-1"),
    MISUSE(plot_save_null, "cornu_plot_save|path"),
    MISUSE(curves_null, "cornu_picture_curves|history"),
    MISUSE(history_get_null, "cornu_history_get|name"),
    MISUSE(history_get_epoch_99, "history|no epoch 99"),
    MISUSE(history_seconds_99, "cornu_history_seconds|99"),
    MISUSE(history_samples_null, "cornu_history_samples|history"),
    MISUSE(history_key_99, "cornu_history_key|99"),
    MISUSE(history_epochs_null, "cornu_history_epochs|history"),
    MISUSE(trace_phase_null, "cornu_trace_phase|trace"),
    MISUSE(record_write_null, "cornu_record_write|path"),
    MISUSE(confusion_no_data, "report|counts"),
};

int main(void) { return misuses_run(misuses, sizeof misuses / sizeof *misuses); }
