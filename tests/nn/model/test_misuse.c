/*
 * Misuse of the public interface: each ends with a status, or NULL, and a message that names the
 * function, the argument and the error. Each runs in its own process, so that a crash is counted
 * and named.
 */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../datasets/pipeline/iterator.h"
#include "../../../datasets/mnist/idx.h"
#include "../../../datasets/images/image.h"
#include "../../../datasets/images/image_folder.h"
#include "../../../datasets/tables/table.h"
#include "../../../datasets/text/text.h"
#include "../../../nn/cornu.h"
#include "../../datasets/files.h"

/* ---- Parts of the misuses ---- */

static float x[32][2], y[32][1];

static CornuArray data_x(void) { return cornu_array(x, CORNU_F32, 32, 2); }
static CornuArray data_y(void) { return cornu_array(y, CORNU_F32, 32, 1); }

static CornuModel *built(void)
{
    CornuModel *model = cornu_sequential(.name = "model", .input_shape = { 2 });
    cornu_model_add(model, cornu_dense(1));
    return model;
}

static CornuModel *compiled(void)
{
    CornuModel *model = built();
    cornu_compile(model, .loss = CORNU_MEAN_SQUARED_ERROR);
    return model;
}

static CornuDataset *dataset(void)
{
    return cornu_dataset_from_arrays((CornuArray[]){ data_x(), data_y() }, 2);
}

/* True where the status was a failure. */
static bool failed(CornuStatus status) { return status != CORNU_OK; }

/* True if there is no result; takes a pending error. */
static bool nothing(const void *object)
{
    cornu_error_take();
    return !object;
}

static const char *file(const char *name) { return files_path(folder, name); }

/* ---- The misuses ---- */

typedef struct {
    const char *what;          /* the misuse */
    const char *says;          /* parts of the message, separated by | */
    bool      (*misuse)(void); /* whether it failed as it should */
} Misuse;

static bool sequential_shape_negative(void)
{
    return nothing(cornu_sequential(.input_shape = { -3 }));
}

static bool sequential_batch_negative(void)
{
    return nothing(cornu_sequential(.input_shape = { 2 }, .batch_size = -1));
}

static bool sequential_scale_nan(void)
{
    return nothing(cornu_sequential(.input_shape = { 2 }, .input_scale = NAN));
}

static bool sequential_policy_unknown(void)
{
    return nothing(cornu_sequential(.policy = "fp8"));
}

static bool add_null_layer(void)
{
    return failed(cornu_model_add(built(), NULL));
}

static bool add_null_model(void)
{
    return failed(cornu_model_add(NULL, cornu_dense(2)));
}

static bool add_layer_twice(void)
{
    CornuModel *m = built();
    return failed(cornu_model_add(m, cornu_model_layer(m, 0)));
}

static bool add_model_to_itself(void)
{
    CornuModel *m = built();
    return failed(cornu_model_add(m, cornu_as_layer(m)));
}

static bool add_after_compile(void)
{
    return failed(cornu_model_add(compiled(), cornu_dense(2)));
}

static bool build_no_layers(void)
{
    return failed(cornu_model_build(cornu_sequential(), cornu_shape(2)));
}

static bool build_null_model(void)
{
    return failed(cornu_model_build(NULL, cornu_shape(2)));
}

static bool build_shape_negative(void)
{
    CornuModel *m = cornu_sequential();
    cornu_model_add(m, cornu_dense(1));
    return failed(cornu_model_build(m, cornu_shape(-2)));
}

static bool clone_null(void)
{
    return nothing(cornu_model_clone(NULL));
}

static bool layer_99(void)
{
    return nothing(cornu_model_layer(built(), 99));
}

static bool layer_negative(void)
{
    return nothing(cornu_model_layer(built(), -1));
}

static bool layer_null_model(void)
{
    return nothing(cornu_model_layer(NULL, 0));
}

static bool weight_99(void)
{
    return nothing(cornu_model_weight(built(), 99));
}

static bool weight_negative(void)
{
    return nothing(cornu_model_weight(built(), -1));
}

static bool weight_null_model(void)
{
    return nothing(cornu_model_weight(NULL, 0));
}

static bool find_layer_null(void)
{
    return nothing(cornu_model_find_layer(built(), NULL));
}

static bool find_layer_null_model(void)
{
    return nothing(cornu_model_find_layer(NULL, "dense"));
}

static bool find_weight_null(void)
{
    return nothing(cornu_model_find_weight(built(), NULL));
}

static bool metric_name_99(void)
{
    return nothing(cornu_model_metric_name(compiled(), 99));
}

static bool metric_name_null_model(void)
{
    return nothing(cornu_model_metric_name(NULL, 0));
}

static bool metric_result_99(void)
{
    double r;
    return failed(cornu_model_metric_result(compiled(), 99, &r, 1));
}

static bool metric_result_null(void)
{
    return failed(cornu_model_metric_result(compiled(), 0, NULL, 1));
}

static bool metric_size_99(void)
{
    return cornu_model_metric_size(compiled(), 99) < 1;
}

static bool metric_state_99(void)
{
    CornuArray a;
    return failed(cornu_model_metric_state(compiled(), 0, 99, &a));
}

static bool optimizer_variable_99(void)
{
    return nothing(cornu_model_optimizer_variable(compiled(), 99));
}

static bool optimizer_variable_uncompiled(void)
{
    return nothing(cornu_model_optimizer_variable(built(), 0));
}

static bool model_name_null(void)
{
    return nothing(cornu_model_name(NULL));
}

static bool layer_count_null(void)
{
    return cornu_model_layer_count(NULL) == 0;
}

static bool weight_count_null(void)
{
    return cornu_model_weight_count(NULL) == 0;
}

static bool parameters_null(void)
{
    return cornu_model_parameters(NULL) == 0;
}

static bool statistics_null(void)
{
    return nothing(cornu_model_statistics(NULL));
}

static bool stop_training_null(void)
{
    cornu_model_stop_training(NULL);
    return true;
}

static bool layer_name_null(void)
{
    return nothing(cornu_layer_name(NULL));
}

static bool set_trainable_null(void)
{
    cornu_layer_set_trainable(NULL, true);
    return true;
}

static bool layer_parameters_null(void)
{
    return cornu_layer_parameters(NULL) == 0;
}

static bool weight_read_null(void)
{
    float v;
    return failed(cornu_weight_read(NULL, cornu_array(&v, CORNU_F32, 1)));
}

static bool weight_write_null(void)
{
    float v = 0;
    return failed(cornu_weight_write(NULL, cornu_array(&v, CORNU_F32, 1)));
}

static bool weight_read_no_data(void)
{
    return failed(cornu_weight_read(cornu_model_weight(built(), 0), cornu_array(NULL, CORNU_F32,
        2, 1)));
}

static bool weight_write_no_data(void)
{
    return failed(cornu_weight_write(cornu_model_weight(built(), 0), cornu_array(NULL, CORNU_F32,
        2, 1)));
}

static bool weight_write_shape(void)
{
    float v[3] = { 0 };
    return failed(cornu_weight_write(cornu_model_weight(built(), 0), cornu_array(v, CORNU_F32, 3,
        1)));
}

static bool compile_null_model(void)
{
    return failed(cornu_compile(NULL, .loss = CORNU_MEAN_SQUARED_ERROR));
}

static bool compile_optimizer_of_another(void)
{
    CornuOptimizer *o = cornu_adam();
    CornuModel *a = built(), *b = built();
    cornu_compile(a, .optimizer = o, .loss = CORNU_MEAN_SQUARED_ERROR);
    const bool f = failed(cornu_compile(b, .optimizer = o, .loss = CORNU_MEAN_SQUARED_ERROR));
    cornu_model_free(a);
    cornu_model_free(b);
    return f;
}

static bool compile_optimizer_again(void)
{
    CornuOptimizer *o = cornu_adam();
    CornuModel *a = built();
    cornu_compile(a, .optimizer = o, .loss = CORNU_MEAN_SQUARED_ERROR);
    const bool f = failed(cornu_compile(a, .optimizer = o, .loss = CORNU_MEAN_SQUARED_ERROR));
    cornu_model_free(a);
    return f;
}

static bool compile_loss_of_another(void)
{
    CornuLoss *l = CORNU_MEAN_SQUARED_ERROR;
    CornuModel *a = built(), *b = built();
    cornu_compile(a, .loss = l);
    const bool f = failed(cornu_compile(b, .loss = l));
    cornu_model_free(a);
    cornu_model_free(b);
    return f;
}

static bool compile_loss_twice(void)
{
    CornuLoss *l = CORNU_MEAN_SQUARED_ERROR;
    CornuModel *a = built();
    const bool f = failed(cornu_compile(a, .loss = l, .losses = { l }));
    cornu_model_free(a);
    return f;
}

static bool compile_metric_twice(void)
{
    CornuMetric *k = CORNU_ACCURACY;
    CornuModel *a = built();
    const bool f = failed(cornu_compile(a, .loss = CORNU_MEAN_SQUARED_ERROR, .metrics = { k, k
        }));
    cornu_model_free(a);
    return f;
}

static bool compile_metric_of_another(void)
{
    CornuMetric *k = CORNU_ACCURACY;
    CornuModel *a = built(), *b = built();
    cornu_compile(a, .loss = CORNU_MEAN_SQUARED_ERROR, .metrics = { k });
    const bool f = failed(cornu_compile(b, .loss = CORNU_MEAN_SQUARED_ERROR, .metrics = { k }));
    cornu_model_free(a);
    cornu_model_free(b);
    return f;
}

static bool schedule_twice(void)
{
    CornuSchedule *s = cornu_exponential_decay(0.1, 10, 0.5);
    CornuOptimizer *a = cornu_sgd(.schedule = s), *b = cornu_sgd(.schedule = s);
    cornu_optimizer_free(a);
    return nothing(b);
}

static bool compile_steps_negative(void)
{
    return failed(cornu_compile(built(), .loss = CORNU_MEAN_SQUARED_ERROR, .steps_per_execution =
        -1));
}

static bool compile_loss_weight_nan(void)
{
    return failed(cornu_compile(built(), .loss = CORNU_MEAN_SQUARED_ERROR, .loss_weights = { NAN
        }));
}

static bool optimizer_rate_nan(void)
{
    return nothing(cornu_adam(.learning_rate = NAN));
}

static bool optimizer_rate_negative(void)
{
    return nothing(cornu_sgd(.learning_rate = -1));
}

static bool optimizer_momentum_nan(void)
{
    return nothing(cornu_sgd(.momentum = NAN));
}

static bool optimizer_clipnorm_nan(void)
{
    return nothing(cornu_sgd(.clipnorm = NAN));
}

static bool optimizer_name_null(void)
{
    return nothing(cornu_optimizer(NULL));
}

static bool optimizer_name_unknown(void)
{
    return nothing(cornu_optimizer("adm"));
}

static bool loss_name_null(void)
{
    return nothing(cornu_loss(NULL));
}

static bool loss_name_empty(void)
{
    return nothing(cornu_loss(""));
}

static bool metric_name_null(void)
{
    return nothing(cornu_metric(NULL));
}

static bool initializer_name_null(void)
{
    CornuLayer *l = cornu_dense(2, .kernel_initializer = cornu_initializer(NULL));
    return nothing(l);
}

static bool regularizer_name_null(void)
{
    CornuLayer *l = cornu_dense(2, .kernel_regularizer = cornu_regularizer(NULL));
    return nothing(l);
}

static bool constraint_name_null(void)
{
    CornuLayer *l = cornu_dense(2, .kernel_constraint = cornu_constraint(NULL));
    return nothing(l);
}

static bool activation_find_null(void)
{
    CornuActivation a;
    return failed(cornu_activation_find(NULL, &a));
}

static bool policy_null(void)
{
    return nothing(cornu_policy(NULL));
}

static bool learning_rate_null(void)
{
    return failed(cornu_optimizer_set_learning_rate(NULL, 0.1));
}

static bool learning_rate_nan(void)
{
    return failed(cornu_optimizer_set_learning_rate(cornu_model_optimizer(compiled()), NAN));
}

static bool dense_zero(void)
{
    return nothing(cornu_dense(0));
}

static bool dense_negative(void)
{
    return nothing(cornu_dense(-5));
}

static bool dense_activation_unknown(void)
{
    return nothing(cornu_dense(2, .activation = (CornuActivation)999));
}

static bool dropout_rate_nan(void)
{
    return nothing(cornu_dropout(NAN));
}

static bool dropout_rate_two(void)
{
    return nothing(cornu_dropout(2.0));
}

static bool conv_kernel_twice(void)
{
    return nothing(cornu_conv2d(2, 3, .kernel_size = { 3, 3 }));
}

static bool bidirectional_null(void)
{
    return nothing(cornu_bidirectional(NULL));
}

static bool bidirectional_same_twice(void)
{
    CornuLayer *l = cornu_lstm(2);
    return nothing(cornu_bidirectional(l, .backward_layer = l));
}

static bool time_distributed_null(void)
{
    return nothing(cornu_time_distributed(NULL));
}

static bool embedding_negative(void)
{
    return nothing(cornu_embedding(-1, 2));
}

static bool batch_norm_epsilon_nan(void)
{
    return nothing(cornu_batch_normalization(.epsilon = NAN));
}

static bool call_null_layer(void)
{
    return nothing(cornu_call(NULL, cornu_input(.shape = { 2 })));
}

static bool call_null_symbol(void)
{
    return nothing(cornu_call(cornu_dense(2), NULL));
}

static bool call_none(void)
{
    return nothing(cornu_call_from(cornu_dense(2), NULL, 0));
}

static bool call_result_99(void)
{
    return nothing(cornu_call_result(cornu_input(.shape = { 2 }), 99));
}

static bool model_no_inputs(void)
{
    return nothing(cornu_model(.outputs = { cornu_input(.shape = { 2 }) }));
}

static bool model_no_outputs(void)
{
    return nothing(cornu_model(.inputs = { cornu_input(.shape = { 2 }) }));
}

static bool symbol_shape_null(void)
{
    return cornu_symbol_shape(NULL).rank == 0;
}

static bool model_symbol_null(void)
{
    return nothing(cornu_model_symbol(built(), NULL));
}

static bool model_input_9(void)
{
    return nothing(cornu_model_input(built(), 9));
}

static bool as_layer_null(void)
{
    return nothing(cornu_as_layer(NULL));
}

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

static bool save_null_path(void)
{
    return failed(cornu_model_save(built(), NULL));
}

static bool save_null_model(void)
{
    return failed(cornu_model_save(NULL, file("a.safetensors")));
}

static bool save_not_built(void)
{
    return failed(cornu_model_save(cornu_sequential(), file("a.safetensors")));
}

static bool save_empty_path(void)
{
    return failed(cornu_model_save(built(), ""));
}

static bool save_check_null(void)
{
    return failed(cornu_model_save_check(NULL));
}

static bool save_weights_null(void)
{
    return failed(cornu_model_save_weights(built(), NULL));
}

static bool load_null(void)
{
    return nothing(cornu_model_load(NULL));
}

static bool load_folder(void)
{
    return nothing(cornu_model_load(folder));
}

static bool load_compiled_null(void)
{
    return nothing(cornu_model_load_compiled(NULL, NULL));
}

static bool load_weights_null(void)
{
    return failed(cornu_model_load_weights(built(), NULL));
}

static bool load_weights_null_model(void)
{
    return failed(cornu_model_load_weights(NULL, file("a.npz")));
}

static bool load_by_name_null(void)
{
    return failed(cornu_model_load_by_name(built(), NULL));
}

static bool safetensors_null(void)
{
    return nothing(cornu_safetensors_open(NULL));
}

static bool safetensors_write_null(void)
{
    return failed(cornu_safetensors_write(NULL, NULL, 0, NULL, 0));
}

static bool safetensors_negative_count(void)
{
    return failed(cornu_safetensors_write(file("b.safetensors"), NULL, -1, NULL, 0));
}

static bool safetensors_null_name(void)
{
    const CornuNamedArray a = { NULL, data_x() };
    return failed(cornu_safetensors_write(file("b.safetensors"), &a, 1, NULL, 0));
}

static bool npz_null(void)
{
    return nothing(cornu_npz_open(NULL));
}

static bool npz_write_null(void)
{
    return failed(cornu_npz_write(NULL, NULL, 0));
}

static bool npz_null_name(void)
{
    const CornuNamedArray a = { NULL, data_x() };
    return failed(cornu_npz_write(file("b.npz"), &a, 1));
}

static bool npz_negative_count(void)
{
    return failed(cornu_npz_write(file("b.npz"), NULL, -1));
}

static bool npz_no_data(void)
{
    const CornuNamedArray a = { "a", cornu_array(NULL, CORNU_F32, 4) };
    return failed(cornu_npz_write(file("b.npz"), &a, 1));
}

static bool file_write_null(void)
{
    return failed(cornu_file_write(NULL, "a", 1));
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

static bool history_samples_null(void) { return cornu_history_samples(NULL, 0) == 0; }

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

static bool arrays_null(void)
{
    return nothing(cornu_dataset_from_arrays(NULL, 2));
}

static bool arrays_none(void)
{
    return nothing(cornu_dataset_from_arrays((CornuArray[]){ data_x() }, 0));
}

static bool arrays_99(void)
{
    CornuArray many[99];
    for (int i = 0; i < 99; i++) many[i] = data_x();
    return nothing(cornu_dataset_from_arrays(many, 99));
}

static bool arrays_no_data(void)
{
    return nothing(cornu_dataset_from_arrays((CornuArray[]){ cornu_array(NULL, CORNU_F32, 4, 2) },
        1));
}

static bool arrays_rank_99(void)
{
    CornuArray a = data_x();
    a.type.shape.rank = 99;
    return nothing(cornu_dataset_from_arrays(&a, 1));
}

static bool arrays_dtype_99(void)
{
    CornuArray a = data_x();
    a.type.dtype = (CornuDtype)99;
    return nothing(cornu_dataset_from_arrays(&a, 1));
}

static bool arrays_extent_negative(void)
{
    return nothing(cornu_dataset_from_arrays((CornuArray[]){ cornu_array(x, CORNU_F32, -32, 2) },
        1));
}

static bool dataset_batch_zero(void)
{
    return nothing(cornu_dataset_batch(dataset(), 0, false));
}

static bool dataset_batch_negative(void)
{
    return nothing(cornu_dataset_batch(dataset(), -3, false));
}

static bool dataset_batch_null(void)
{
    return nothing(cornu_dataset_batch(NULL, 3, false));
}

static bool dataset_map_null(void)
{
    const CornuType t = cornu_scalar(CORNU_F32);
    return nothing(cornu_dataset_map(dataset(), NULL, NULL, &t, 1));
}

static bool dataset_take_negative(void)
{
    return nothing(cornu_dataset_take(dataset(), -2));
}

static bool dataset_prefetch_negative(void)
{
    return nothing(cornu_dataset_prefetch(dataset(), -1));
}

static bool dataset_given_twice(void)
{
    CornuDataset *d = dataset();
    CornuDataset *a = cornu_dataset_take(d, 3), *b = cornu_dataset_skip(d, 3);
    cornu_dataset_free(a);
    return nothing(b);
}

static bool dataset_count_null(void)
{
    return cornu_dataset_count(NULL) == 0;
}

static bool dataset_type_99(void)
{
    return cornu_dataset_type(dataset(), 99).shape.rank == 0;
}

static bool iterator_null(void)
{
    return nothing(cornu_iterator_begin(NULL, 0));
}

static bool idx_null(void)
{
    CornuArray a;
    return failed(cornu_idx_load(NULL, &a));
}

static bool image_null(void)
{
    CornuArray a;
    return failed(cornu_image_load(NULL, 3, &a));
}

static bool image_channels(void)
{
    CornuArray a;
    return failed(cornu_image_load("a.png", 9, &a));
}

static bool image_folder_null(void)
{
    return nothing(cornu_image_folder());
}

static bool image_folder_size(void)
{
    return nothing(cornu_image_folder(folder, .image_size = { -1 }));
}

static bool table_null(void)
{
    return nothing(cornu_table_load());
}

static bool table_find_null(void)
{
    CornuTable *t = cornu_table_parse("a,b\n1,2\n", 8, "t", &(CornuTableConfig){ 0 });
    return cornu_table_find(t, NULL) < 0;
}

static bool table_name_99(void)
{
    CornuTable *t = cornu_table_parse("a,b\n1,2\n", 8, "t", &(CornuTableConfig){ 0 });
    return nothing(cornu_table_column_name(t, 99));
}

static bool table_categories_99(void)
{
    int n;
    CornuTable *t = cornu_table_parse("a,b\n1,2\n", 8, "t", &(CornuTableConfig){ 0 });
    return nothing(cornu_table_categories(t, 99, &n));
}

static bool table_take_null(void)
{
    CornuArray a;
    return failed(cornu_table_take(.to = &a));
}

static bool table_take_no_to(void)
{
    CornuTable *t = cornu_table_parse("a,b\n1,2\n", 8, "t", &(CornuTableConfig){ 0 });
    return failed(cornu_table_take(t));
}

static bool table_delimiter(void)
{
    CornuTable *t = cornu_table_parse("a,b\n1,2\n", 8, "t", &(CornuTableConfig){ .delimiter = '"'
        });
    return nothing(t);
}

static bool device_unknown(void)
{
    return nothing(cornu_device_open("gpuu"));
}

static bool device_threads(void)
{
    return nothing(cornu_device_open("cpu", .threads = -1));
}

static bool graph_null(void)
{
    return nothing(cornu_graph_create(NULL));
}

static bool op_null(void)
{
    return nothing(cornu_op_relu(NULL));
}

static bool op_two_graphs(void)
{
    CornuDevice *d = cornu_device_open("reference");
    CornuTensor *a = cornu_graph_input(cornu_graph_create(d), cornu_type(CORNU_F32, 2)), *b =
        cornu_graph_input(cornu_graph_create(d), cornu_type(CORNU_F32, 2));
    return nothing(cornu_op_add(a, b));
}

static bool graph_input_rank(void)
{
    CornuType t = cornu_type(CORNU_F32, 2);
    t.shape.rank = 77;
    return nothing(cornu_graph_input(cornu_graph_create(cornu_device_open("reference")), t));
}

static bool run_null_graph(void)
{
    return failed(cornu_run(NULL, NULL, 0, NULL));
}

static bool run_null_fetches(void)
{
    return failed(cornu_run(cornu_graph_create(cornu_device_open("reference")), NULL, 1, NULL));
}

static bool run_null_fetch(void)
{
    CornuTensor *f = NULL;
    CornuArray a = data_x();
    return failed(cornu_run(cornu_graph_create(cornu_device_open("reference")), &f, 1, &a));
}

static bool feed_null(void)
{
    return failed(cornu_graph_feed(NULL, data_x()));
}

static bool feed_no_data(void)
{
    CornuTensor *in = cornu_graph_input(cornu_graph_create(cornu_device_open("reference")),
        cornu_type(CORNU_F32, 32, 2));
    return failed(cornu_graph_feed(in, cornu_array(NULL, CORNU_F32, 32, 2)));
}

static bool gradients_null_loss(void)
{
    CornuTensor *g;
    return failed(cornu_gradients(NULL, NULL, 0, &g));
}

static bool gradients_null_x(void)
{
    CornuTensor *g, *l = cornu_op_constant(cornu_graph_create(cornu_device_open("reference")),
        cornu_scalar(CORNU_F32), 1.0);
    return failed(cornu_gradients(l, NULL, 1, &g));
}

static bool tensor_type_null(void)
{
    return cornu_tensor_type(NULL).shape.rank == 0;
}

static bool read_null_variable(void)
{
    return nothing(cornu_read(cornu_graph_create(cornu_device_open("reference")), NULL));
}

static bool assign_null(void)
{
    return failed(cornu_assign(NULL, NULL));
}

static bool variable_no_device(void)
{
    return nothing(cornu_variable_create(NULL, cornu_scalar(CORNU_F32), "v"));
}

static bool variable_write_null(void)
{
    return failed(cornu_variable_write(NULL, data_x()));
}

static bool variable_read_null(void)
{
    return failed(cornu_variable_read(NULL, data_x()));
}

static bool variable_set_null(void)
{
    return failed(cornu_variable_set(NULL, 1.0));
}

static bool variable_type_null(void)
{
    return cornu_variable_type(NULL).shape.rank == 0;
}

static bool buffer_no_device(void)
{
    return nothing(cornu_buffer_create(NULL, cornu_scalar(CORNU_F32)));
}

static bool buffer_write_null(void)
{
    return failed(cornu_buffer_write(NULL, data_x()));
}

static bool buffer_read_null(void)
{
    return failed(cornu_buffer_read(NULL, data_x()));
}

static bool buffer_part_negative(void)
{
    CornuBuffer *b = cornu_buffer_create(cornu_device_open("reference"), cornu_type(CORNU_F32, 32,
        2));
    return failed(cornu_buffer_write_part(b, -1, data_x()));
}

static bool compile_null_program(void)
{
    return nothing(cornu_device_compile(cornu_device_open("reference"), NULL));
}

static bool device_name_null(void)
{
    return nothing(cornu_device_name(NULL));
}

static bool device_shards_null(void)
{
    return cornu_device_shards(NULL) == 0;
}

static bool shape_negative(void)
{
    return nothing(cornu_op_constant(cornu_graph_create(cornu_device_open("reference")),
        cornu_type(CORNU_F32, -2), 0.0));
}

static bool reshape_count(void)
{
    CornuTensor *t = cornu_op_constant(cornu_graph_create(cornu_device_open("reference")),
        cornu_type(CORNU_F32, 4), 0.0);
    return nothing(cornu_op_reshape(t, cornu_shape(3)));
}

static bool transpose_axes(void)
{
    CornuTensor *t = cornu_op_constant(cornu_graph_create(cornu_device_open("reference")),
        cornu_type(CORNU_F32, 4, 2), 0.0);
    return nothing(cornu_op_transpose(t, (int[]){ 0, 7 }));
}

static bool table_parse_null_config(void)
{
    return nothing(cornu_table_parse("a\n1\n", 4, "t", NULL));
}

static bool table_parse_null_bytes(void)
{
    return nothing(cornu_table_parse(NULL, 4, "t", &(CornuTableConfig){ 0 }));
}

static bool text_parse_null_bytes(void)
{
    return nothing(cornu_text_parse(NULL, 4, CORNU_TEXT_BYTES, "t"));
}

static bool strategy_device_null(void)
{
    return nothing(cornu_strategy_device(NULL));
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

static bool iterator_next_null(void)
{
    const CornuBatch *b;
    return failed(cornu_iterator_next(NULL, &b));
}

static bool tpu_profile_unknown(void)
{
    return nothing(cornu_device_open("tpu:v99"));
}

static bool device_null_name(void)
{
    return nothing(cornu_device_open(NULL, .threads = -5));
}

static bool graph_program_null(void)
{
    return nothing(cornu_graph_program(NULL));
}

static bool graph_statistics_null(void)
{
    return nothing(cornu_graph_statistics(NULL));
}

static bool executable_run_null(void)
{
    return failed(cornu_executable_run(NULL, NULL, NULL));
}

#define MISUSE(name, says) { #name, says, name }
static const Misuse misuses[] = {
    MISUSE(sequential_shape_negative, "shape[0] is -3"),
    MISUSE(sequential_batch_negative, "batch_size is -1"),
    MISUSE(sequential_scale_nan, "input_scale|nan"),
    MISUSE(sequential_policy_unknown, "fp8"),
    MISUSE(add_null_layer, "cornu_model_add|layer"),
    MISUSE(add_null_model, "cornu_model_add|model"),
    MISUSE(add_layer_twice, "two layers|dense"),
    MISUSE(add_model_to_itself, "model"),
    MISUSE(add_after_compile, "after compiling"),
    MISUSE(build_no_layers, "no layers"),
    MISUSE(build_null_model, "model"),
    MISUSE(build_shape_negative, "-2"),
    MISUSE(clone_null, "model"),
    MISUSE(layer_99, "cornu_model_layer|i is 99"),
    MISUSE(layer_negative, "cornu_model_layer|-1"),
    MISUSE(layer_null_model, "cornu_model_layer|model"),
    MISUSE(weight_99, "cornu_model_weight|99"),
    MISUSE(weight_negative, "cornu_model_weight|-1"),
    MISUSE(weight_null_model, "cornu_model_weight|model"),
    MISUSE(find_layer_null, "cornu_model_find_layer|name"),
    MISUSE(find_layer_null_model, "cornu_model_find_layer|model"),
    MISUSE(find_weight_null, "cornu_model_find_weight|path"),
    MISUSE(metric_name_99, "cornu_model_metric_name|99"),
    MISUSE(metric_name_null_model, "cornu_model_metric_name|model"),
    MISUSE(metric_result_99, "99"),
    MISUSE(metric_result_null, "result"),
    MISUSE(metric_size_99, "cornu_model_metric_size|99"),
    MISUSE(metric_state_99, "has no result before the first step"),
    MISUSE(optimizer_variable_99, "cornu_model_optimizer_variable|99"),
    MISUSE(optimizer_variable_uncompiled, "cornu_model_optimizer_variable"),
    MISUSE(model_name_null, "cornu_model_name|model"),
    MISUSE(layer_count_null, "cornu_model_layer_count|model"),
    MISUSE(weight_count_null, "cornu_model_weight_count|model"),
    MISUSE(parameters_null, "cornu_model_parameters|model"),
    MISUSE(statistics_null, "cornu_model_statistics|model"),
    MISUSE(stop_training_null, "cornu_model_stop_training|model"),
    MISUSE(layer_name_null, "cornu_layer_name|layer"),
    MISUSE(set_trainable_null, "cornu_layer_set_trainable|layer"),
    MISUSE(layer_parameters_null, "cornu_layer_parameters|layer"),
    MISUSE(weight_read_null, "cornu_weight_read|weight"),
    MISUSE(weight_write_null, "cornu_weight_write|weight"),
    MISUSE(weight_read_no_data, "dense/kernel|NULL"),
    MISUSE(weight_write_no_data, "dense/kernel|NULL"),
    MISUSE(weight_write_shape, "dense/kernel|(3, 1)"),
    MISUSE(compile_null_model, "model"),
    MISUSE(compile_optimizer_of_another, "optimizer|taken"),
    MISUSE(compile_optimizer_again, "optimizer|taken"),
    MISUSE(compile_loss_of_another, "loss|taken"),
    MISUSE(compile_loss_twice, "loss|taken"),
    MISUSE(compile_metric_twice, "metric|taken"),
    MISUSE(compile_metric_of_another, "metric|taken"),
    MISUSE(schedule_twice, "schedule|taken"),
    MISUSE(compile_steps_negative, "steps_per_execution|-1"),
    MISUSE(compile_loss_weight_nan, "loss_weights|nan"),
    MISUSE(optimizer_rate_nan, "learning_rate|nan"),
    MISUSE(optimizer_rate_negative, "learning_rate|-1"),
    MISUSE(optimizer_momentum_nan, "momentum|nan"),
    MISUSE(optimizer_clipnorm_nan, "clipnorm|nan"),
    MISUSE(optimizer_name_null, "cornu_optimizer|name"),
    MISUSE(optimizer_name_unknown, "adm"),
    MISUSE(loss_name_null, "cornu_loss|name"),
    MISUSE(loss_name_empty, "\"\""),
    MISUSE(metric_name_null, "cornu_metric|name"),
    MISUSE(initializer_name_null, "initializer|NULL"),
    MISUSE(regularizer_name_null, "regularizer|NULL"),
    MISUSE(constraint_name_null, "constraint|NULL"),
    MISUSE(activation_find_null, "cornu_activation_find|name"),
    MISUSE(policy_null, "cornu_policy|name"),
    MISUSE(learning_rate_null, "cornu_optimizer_set_learning_rate|optimizer"),
    MISUSE(learning_rate_nan, "learning|nan"),
    MISUSE(dense_zero, "units"),
    MISUSE(dense_negative, "units|-5"),
    MISUSE(dense_activation_unknown, "activation"),
    MISUSE(dropout_rate_nan, "rate|nan"),
    MISUSE(dropout_rate_two, "rate|2"),
    MISUSE(conv_kernel_twice, "kernel_size"),
    MISUSE(bidirectional_null, "layer"),
    MISUSE(bidirectional_same_twice, "go_backwards"),
    MISUSE(time_distributed_null, "layer"),
    MISUSE(embedding_negative, "input_dim|-1"),
    MISUSE(batch_norm_epsilon_nan, "epsilon|nan"),
    MISUSE(call_null_layer, "cornu_call|layer"),
    MISUSE(call_null_symbol, "NULL"),
    MISUSE(call_none, "symbols"),
    MISUSE(call_result_99, "99"),
    MISUSE(model_no_inputs, "inputs"),
    MISUSE(model_no_outputs, "outputs"),
    MISUSE(symbol_shape_null, "cornu_symbol_shape|symbol"),
    MISUSE(model_symbol_null, "cornu_model_symbol|layer"),
    MISUSE(model_input_9, "input 9"),
    MISUSE(as_layer_null, "model"),
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
    MISUSE(save_null_path, "cornu_model_save|path"),
    MISUSE(save_null_model, "model"),
    MISUSE(save_not_built, "built"),
    MISUSE(save_empty_path, "the name has no known suffix"),
    MISUSE(save_check_null, "cornu_model_save_check|path"),
    MISUSE(save_weights_null, "cornu_model_save_weights|path"),
    MISUSE(load_null, "cornu_model_load|path"),
    MISUSE(load_folder, "cornu"),
    MISUSE(load_compiled_null, "cornu_model_load_compiled|path"),
    MISUSE(load_weights_null, "cornu_model_load_weights|path"),
    MISUSE(load_weights_null_model, "model"),
    MISUSE(load_by_name_null, "path"),
    MISUSE(safetensors_null, "cornu_safetensors_open|path"),
    MISUSE(safetensors_write_null, "cornu_safetensors_write|path"),
    MISUSE(safetensors_negative_count, "cornu_safetensors_write|count is -1"),
    MISUSE(safetensors_null_name, "name"),
    MISUSE(npz_null, "cornu_npz_open|path"),
    MISUSE(npz_write_null, "cornu_npz_write|path"),
    MISUSE(npz_null_name, "name"),
    MISUSE(npz_negative_count, "cornu_npz_write|count is -1"),
    MISUSE(npz_no_data, "NULL"),
    MISUSE(file_write_null, "cornu_file_write|path"),
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
    MISUSE(arrays_null, "cornu_dataset_from_arrays|arrays"),
    MISUSE(arrays_none, "data set|0 components"),
    MISUSE(arrays_99, "99"),
    MISUSE(arrays_no_data, "NULL"),
    MISUSE(arrays_rank_99, "rank"),
    MISUSE(arrays_dtype_99, "element type 99"),
    MISUSE(arrays_extent_negative, "-32"),
    MISUSE(dataset_batch_zero, "size|0"),
    MISUSE(dataset_batch_negative, "-3"),
    MISUSE(dataset_batch_null, "batch|NULL"),
    MISUSE(dataset_map_null, "map|function"),
    MISUSE(dataset_take_negative, "take|-2"),
    MISUSE(dataset_prefetch_negative, "-1"),
    MISUSE(dataset_given_twice, "retain"),
    MISUSE(dataset_count_null, "cornu_dataset_count|dataset"),
    MISUSE(dataset_type_99, "cornu_dataset_type|99"),
    MISUSE(iterator_null, "iterator|data set"),
    MISUSE(idx_null, "cornu_idx_load|path"),
    MISUSE(image_null, "cornu_image_load|path"),
    MISUSE(image_channels, "channels|9"),
    MISUSE(image_folder_null, "directory"),
    MISUSE(image_folder_size, "image_size|-1"),
    MISUSE(table_null, "file"),
    MISUSE(table_find_null, "cornu_table_find|name"),
    MISUSE(table_name_99, "cornu_table_column_name|99"),
    MISUSE(table_categories_99, "cornu_table_categories|99"),
    MISUSE(table_take_null, "table"),
    MISUSE(table_take_no_to, "table: no array"),
    MISUSE(table_delimiter, "delimiter"),
    MISUSE(device_unknown, "gpuu"),
    MISUSE(device_threads, "threads|-1"),
    MISUSE(graph_null, "cornu_graph_create|device"),
    MISUSE(op_null, "NULL"),
    MISUSE(op_two_graphs, "graphs"),
    MISUSE(graph_input_rank, "rank"),
    MISUSE(run_null_graph, "cornu_run|graph"),
    MISUSE(run_null_fetches, "cornu_run|fetches"),
    MISUSE(run_null_fetch, "cornu_run|fetch"),
    MISUSE(feed_null, "cornu_graph_feed|input"),
    MISUSE(feed_no_data, "feed|NULL"),
    MISUSE(gradients_null_loss, "cornu_gradients|loss"),
    MISUSE(gradients_null_x, "cornu_gradients|x"),
    MISUSE(tensor_type_null, "cornu_tensor_type|tensor"),
    MISUSE(read_null_variable, "cornu_read|variable"),
    MISUSE(assign_null, "cornu_assign|variable"),
    MISUSE(variable_no_device, "variable v|device"),
    MISUSE(variable_write_null, "cornu_variable_write|variable"),
    MISUSE(variable_read_null, "cornu_variable_read|variable"),
    MISUSE(variable_set_null, "cornu_variable_set|variable"),
    MISUSE(variable_type_null, "cornu_variable_type|variable"),
    MISUSE(buffer_no_device, "device"),
    MISUSE(buffer_write_null, "cornu_buffer_write|buffer"),
    MISUSE(buffer_read_null, "cornu_buffer_read|buffer"),
    MISUSE(buffer_part_negative, "-1"),
    MISUSE(compile_null_program, "cornu_device_compile|program"),
    MISUSE(device_name_null, "cornu_device_name|device"),
    MISUSE(device_shards_null, "cornu_device_shards|device"),
    MISUSE(shape_negative, "-2"),
    MISUSE(reshape_count, "reshape"),
    MISUSE(transpose_axes, "transpose"),
    MISUSE(table_parse_null_config, "cornu_table_parse|config"),
    MISUSE(table_parse_null_bytes, "cornu_table_parse|bytes"),
    MISUSE(text_parse_null_bytes, "cornu_text_parse|bytes"),
    MISUSE(strategy_device_null, "cornu_strategy_device|strategy"),
    MISUSE(trace_phase_null, "cornu_trace_phase|trace"),
    MISUSE(record_write_null, "cornu_record_write|path"),
    MISUSE(confusion_no_data, "report|counts"),
    MISUSE(iterator_next_null, "cornu_iterator_next|iterator"),
    MISUSE(tpu_profile_unknown, "TPU profile|v99"),
    MISUSE(device_null_name, "device"),
    MISUSE(graph_program_null, "cornu_graph_program|graph"),
    MISUSE(graph_statistics_null, "cornu_graph_statistics|graph"),
    MISUSE(executable_run_null, "cornu_executable_run|executable"),
};

/* ---- Running them ---- */

enum { WELL, NOT_REFUSED, NO_MESSAGE, OTHER_MESSAGE };
static const char *const ends[] = { "well", "was not refused", "left no message",
                                    "left another message" };

static bool says(const char *message, const char *words)
{
    char word[80];
    while (*words) {
        const size_t length = strcspn(words, "|");
        snprintf(word, sizeof word, "%.*s", (int)length, words);
        if (!strstr(message, word)) return false;
        words += length + (words[length] == '|');
    }
    return true;
}

/* In the child: runs the misuse. */
static int end_of(const Misuse *misuse)
{
    if (!misuse->misuse()) return NOT_REFUSED;
    if (!*cornu_error_message()) return NO_MESSAGE;
    return says(cornu_error_message(), misuse->says) ? WELL : OTHER_MESSAGE;
}

static bool try(const Misuse *misuse)
{
    int  status, pipes[2];
    char message[1200] = "";
    fflush(stdout);
    assert_int_equal(pipe(pipes), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        static const int crashes[] = { SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL };
        for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
            signal(crashes[i], SIG_DFL);   /* else cmocka's handler would run in the child */
        alarm(60);
        const int end = end_of(misuse);
        if (write(pipes[1], cornu_error_message(), strlen(cornu_error_message())) < 0) _exit(99);
        _exit(end);
    }
    close(pipes[1]);
    if (read(pipes[0], message, sizeof message - 1) < 0) message[0] = '\0';
    close(pipes[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == WELL) return true;
    if (WIFSIGNALED(status))
        printf("# %s: crashed with signal %d\n", misuse->what, WTERMSIG(status));
    else
        printf("# %s: %s: \"%s\", expected \"%s\"\n", misuse->what,
               WEXITSTATUS(status) < 4 ? ends[WEXITSTATUS(status)] : "ended", message,
               misuse->says);
    return false;
}

static void misuses_are_refused(void **state)
{
    (void)state;
    int failed_ones = 0;
    for (size_t i = 0; i < sizeof misuses / sizeof *misuses; i++)
        failed_ones += !try(&misuses[i]);
    if (failed_ones)
        fail_msg("%d of %zu misuses", failed_ones, sizeof misuses / sizeof *misuses);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(misuses_are_refused) };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
