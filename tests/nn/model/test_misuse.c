/* Misuse of models, layers and what compiles them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../misuses.h"

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

static bool copy_weights_null(void)
{
    return failed(cornu_model_copy_weights(NULL, built()));
}

static bool copy_weights_of_none(void)
{
    return failed(cornu_model_copy_weights(built(), cornu_sequential(.name = "none")));
}

static bool copy_weights_of_others(void)
{
    CornuModel *wide = cornu_sequential(.name = "wide", .input_shape = { 1000 });
    cornu_model_add(wide, cornu_dense(1));
    return failed(cornu_model_copy_weights(built(), wide));
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

static bool loss_99(void)
{
    return nothing(cornu_model_loss(compiled(), 99));
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

static bool set_activation_null(void)
{
    return cornu_layer_set_activation(NULL, CORNU_LINEAR) != CORNU_OK;
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

static bool strategy_device_null(void)
{
    return nothing(cornu_strategy_device(NULL));
}

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
    MISUSE(copy_weights_null, "cornu_model_copy_weights|to"),
    MISUSE(copy_weights_of_none, "none has 0"),
    MISUSE(copy_weights_of_others, "f32 (1000, 1)"),
    MISUSE(loss_99, "cornu_model_loss|99"),
    MISUSE(optimizer_variable_uncompiled, "cornu_model_optimizer_variable"),
    MISUSE(model_name_null, "cornu_model_name|model"),
    MISUSE(layer_count_null, "cornu_model_layer_count|model"),
    MISUSE(weight_count_null, "cornu_model_weight_count|model"),
    MISUSE(parameters_null, "cornu_model_parameters|model"),
    MISUSE(statistics_null, "cornu_model_statistics|model"),
    MISUSE(stop_training_null, "cornu_model_stop_training|model"),
    MISUSE(layer_name_null, "cornu_layer_name|layer"),
    MISUSE(set_trainable_null, "cornu_layer_set_trainable|layer"),
    MISUSE(set_activation_null, "cornu_layer_set_activation|layer"),
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
    MISUSE(strategy_device_null, "cornu_strategy_device|strategy"),
};

int main(void) { return misuses_run(misuses, sizeof misuses / sizeof *misuses); }
