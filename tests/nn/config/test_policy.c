/* Precision policies: which one applies, the dtypes of each op, and results against real Keras
 * (tests/golden/policy). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../nn/model/model_internal.h"
#include "../../allocations.h"
#include "../../datasets/files.h"
#include "../golden.h"

#define GOLDEN "tests/golden/policy/"

static const char *const devices[] = { "reference", "cpu" };

/* ---- Who decides ---- */

static CornuModel *two_layers(const char *policy, const char *dtype)
{
    CornuModel *model = cornu_sequential(.input_shape = { 3 }, .policy = policy);
    cornu_model_add(model, cornu_dense(4, .name = "first", .dtype = dtype));
    cornu_model_add(model, cornu_dense(2, .name = "second"));
    return model;
}

static void expect_compute(CornuModel *model, CornuDtype first, CornuDtype second)
{
    expect_ok(cornu_compile(model, .loss = cornu_mean_squared_error()));
    assert_int_equal(cornu_model_layer(model, 0)->compute, first);
    assert_int_equal(cornu_model_layer(model, 1)->compute, second);
    cornu_model_free(model);
}

static void the_innermost_policy_rules(void **state)
{
    (void)state;
    expect_compute(two_layers(NULL, NULL), CORNU_F32, CORNU_F32);   /* the cpu's */
    expect_compute(two_layers("mixed_float16", NULL), CORNU_F16, CORNU_F16);
    expect_ok(cornu_set_dtype_policy("mixed_bfloat16"));
    assert_string_equal(cornu_dtype_policy()->name, "mixed_bfloat16");
    CornuModel *early = two_layers(NULL, NULL);
    assert_string_equal(cornu_model_policy(early)->name, "mixed_bfloat16");
    expect_compute(two_layers(NULL, "float32"), CORNU_F32, CORNU_BF16);
    expect_compute(two_layers("mixed_float16", NULL), CORNU_F16, CORNU_F16);
    expect_compute(two_layers("float32", "mixed_float16"), CORNU_F16, CORNU_F32);
    expect_ok(cornu_set_dtype_policy(NULL));
    assert_null(cornu_dtype_policy());
    expect_compute(early, CORNU_BF16, CORNU_BF16);   /* it was read when the model was made */
    expect_compute(two_layers(NULL, NULL), CORNU_F32, CORNU_F32);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    expect_error(cornu_set_dtype_policy("mixed_bfloat"), CORNU_ERR_ARGUMENT,
                 "is \"mixed_bfloat16\" meant?");
    expect_error(cornu_set_dtype_policy("float64"), CORNU_ERR_UNSUPPORTED,
                 "expected float32, bfloat16, float16, mixed_bfloat16 or mixed_float16");
    expect_error(cornu_set_dtype_policy("int8_from_float32"), CORNU_ERR_ARGUMENT,
                 "not for whole models");
    assert_null(cornu_dtype_policy());
    assert_null(cornu_dense(2, .dtype = "flot32"));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "dense: the policy \"flot32\"");
    assert_null(cornu_sequential(.policy = "half"));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "the policy \"half\"");
}

/* ---- The network of the golden files ---- */

static CornuModel *network(const char *policy)
{
    CornuModel *model = cornu_sequential(.name = "policy", .input_shape = { 8, 8, 2 },
                                         .policy = policy);
    cornu_model_add(model, cornu_conv2d(6, 3, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_batch_normalization());
    cornu_model_add(model, cornu_max_pooling2d(2));
    cornu_model_add(model, cornu_flatten());
    cornu_model_add(model, cornu_dense(12, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_dense(4, .activation = CORNU_SOFTMAX));
    return model;
}

static CornuModel *start(Golden *golden, const char *policy, CornuDevice *device)
{
    CornuModel *model = network(policy);
    expect_ok(cornu_compile(model, .optimizer = cornu_sgd(.learning_rate = 0.02, .momentum = 0.9),
                            .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY, .device = device));
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        CornuWeight *weight = cornu_model_weight(model, i);
        expect_ok(cornu_weight_write(weight, golden_array(golden, "start", weight->path)));
    }
    return model;
}

static CornuArray entry(CornuArray array, int64_t i)
{
    CornuType type = array.type;
    for (int k = 1; k < type.shape.rank; k++) type.shape.extent[k - 1] = type.shape.extent[k];
    type.shape.extent[--type.shape.rank] = 0;
    return cornu_array_from((char *)array.data + (size_t)i * cornu_type_bytes(type), type);
}

static void train(Golden *golden, CornuModel *model, float *losses, int64_t steps)
{
    const CornuArray x = golden_array(golden, NULL, "x"), y = golden_array(golden, NULL, "y");
    for (int64_t i = 0; i < steps; i++) {
        double loss;
        expect_ok(cornu_model_reset_metrics(model));
        expect_ok(cornu_train_on_batch(model, entry(x, i), entry(y, i), &loss));
        losses[i] = (float)loss;
    }
}

/* ---- Weights of narrow dtypes ---- */

static float narrowed(float x, CornuDtype dtype)
{
    return dtype == CORNU_BF16 ? cornu_bf16_to_float(cornu_bf16_from_float(x))
                               : cornu_f16_to_float(cornu_f16_from_float(x));
}

static void expect_narrow(const char *what, const float *x, int64_t count, CornuDtype dtype)
{
    for (int64_t i = 0; i < count; i++)
        if (x[i] != narrowed(x[i], dtype)) fail_msg("%s[%lld] is %g", what, (long long)i,
                                                    (double)x[i]);
}

/* Initial values, those after updates, and the optimizer's slots; of the other layer none. */
static void weights_are_rounded(void **state)
{
    static const struct { const char *policy; CornuDtype dtype; } rows[] = {
        { "bfloat16", CORNU_BF16 }, { "float16", CORNU_F16 },
    };
    float x[6] = { 0.1f, 0.7f, -0.3f, 0.9f, -0.5f, 0.2f }, y[4] = { 1, 0, 0.5f, -1 }, values[64];
    double loss;
    (void)state;
    for (int r = 0; r < 2; r++) {
        CornuModel *model = two_layers("float32", rows[r].policy);
        expect_ok(cornu_compile(model, .optimizer = cornu_adam(.learning_rate = 0.1),
                                .loss = cornu_mean_squared_error()));
        for (int step = 0; step < 3; step++) {
            for (int i = 0; i < cornu_model_weight_count(model); i++) {
                const CornuWeight *weight = cornu_model_weight(model, i);
                expect_ok(cornu_weight_read(weight, cornu_array_from(values, weight->type)));
                if (strncmp(weight->path, "first/", 6)) continue;
                expect_narrow(weight->path, values, cornu_type_count(weight->type),
                              rows[r].dtype);
            }
            expect_ok(cornu_train_on_batch(model, cornu_array(x, CORNU_F32, 2, 3),
                                           cornu_array(y, CORNU_F32, 2, 2), &loss));
        }
        for (int i = 0; i < cornu_model_optimizer_variable_count(model); i++) {
            const CornuVariable *slot = cornu_model_optimizer_variable(model, i);
            if (!strstr(cornu_variable_name(slot), "first_")) continue;
            expect_ok(cornu_variable_read(slot, cornu_array_from(values,
                                                                 cornu_variable_type(slot))));
            expect_narrow(cornu_variable_name(slot), values,
                          cornu_type_count(cornu_variable_type(slot)), rows[r].dtype);
        }
        assert_false(model->optimizer->scales_loss);
        cornu_model_free(model);
    }
}

/* ---- The dtypes of ops ---- */

static CornuDtype operand_dtype(const CornuProgram *program, const CornuProgramOp *op, int i)
{
    return cornu_program_type(program, cornu_program_operands(program, op)[i]).dtype;
}

static CornuDtype result_dtype(const CornuProgram *program, const CornuProgramOp *op)
{
    return cornu_program_type(program, op->out_first).dtype;
}

static bool scope_is(const CornuProgramOp *op, const char *start_of)
{
    return !strncmp(op->scope, start_of, strlen(start_of));
}

/* Whether an op of the program has this id, operands and result of these dtypes. */
static void expect_op(const CornuProgram *program, CornuOpId id, const char *scope, int count,
                      CornuDtype operands, CornuDtype result)
{
    int found = 0;
    for (int i = 0; i < program->op_count; i++) {
        const CornuProgramOp *op = &program->ops[i];
        found += op->id == id && !strcmp(op->scope, scope) &&
                 operand_dtype(program, op, 0) == operands &&
                 operand_dtype(program, op, op->in_count > 1) == operands &&
                 result_dtype(program, op) == result;
    }
    if (found != count)
        fail_msg("%d ops %s of %s give %s in %s, expected %d", found, cornu_op_name(id),
                 cornu_dtype_name(operands), cornu_dtype_name(result), scope, count);
}

static void check_dtypes(const CornuProgram *program, CornuDtype compute)
{
    /* Of weights: sums of bf16 products are not rounded; those of f16 are, as in Keras, so that the
     * loss scale sees an overflow. */
    const CornuDtype of_weights = compute == CORNU_F16 ? CORNU_F16 : CORNU_F32;
    for (int i = 0; i < program->input_count; i++)   /* weights, slots, states, data */
        assert_true(cornu_program_type(program, program->inputs[i]).dtype != compute);
    expect_op(program, CORNU_OP_CONV2D, "conv2d", 1, compute, compute);
    expect_op(program, CORNU_OP_CONV2D_GRAD_FILTER, "conv2d/gradient", 1, compute, CORNU_F32);
    expect_op(program, CORNU_OP_MATMUL, "dense", 1, compute, compute);
    const int both = of_weights == compute ? 2 : 1;   /* with respect to the kernel and to x */
    expect_op(program, CORNU_OP_MATMUL, "dense/gradient", both, compute, compute);
    expect_op(program, CORNU_OP_MATMUL, "dense/gradient", both, compute, of_weights);
    expect_op(program, CORNU_OP_MATMUL, "dense_1", 1, compute, CORNU_F32);
    expect_op(program, CORNU_OP_MATMUL, "dense_1/gradient", both, compute, of_weights);
    /* The loss is that of the logits, which are f32; nothing reads the probabilities. */
    expect_op(program, CORNU_OP_SOFTMAX, "dense_1", 0, CORNU_F32, CORNU_F32);
    for (int i = 0; i < program->op_count; i++) {
        const CornuProgramOp *op = &program->ops[i];
        const CornuDtype      dtype = result_dtype(program, op);
        if (op->id == CORNU_OP_MAX_POOL2D) assert_int_equal(dtype, compute);
        if (op->id == CORNU_OP_BATCH_NORM) {
            assert_int_equal(dtype, compute);
            for (int k = 1; k < 3; k++) assert_int_equal(operand_dtype(program, op, k), CORNU_F32);
        }
        if (scope_is(op, "loss") || scope_is(op, "sgd")) assert_true(dtype != compute);
        if (op->id == CORNU_OP_REDUCE_SUM && dtype != CORNU_F32)
            assert_int_equal(dtype, of_weights);
        if (compute == CORNU_F32) assert_true(dtype != CORNU_BF16 && dtype != CORNU_F16);
    }
}

static void dtypes_are_the_policys(void **state)
{
    (void)state;
    static const struct { const char *policy; CornuDtype compute; } cases[] = {
        { "mixed_bfloat16", CORNU_BF16 }, { "mixed_float16", CORNU_F16 },
    };
    Golden golden = golden_open(GOLDEN "training.safetensors");
    for (int d = 0; d < 2; d++)
        for (int c = 0; c < 2; c++) {
            CornuDevice *device = cornu_device_open(devices[d]);
            CornuModel  *model = start(&golden, cases[c].policy, device);
            float        loss;
            train(&golden, model, &loss, 1);
            check_dtypes(cornu_graph_program(model->steps->graph), cases[c].compute);
            if (d == 1) assert_int_equal(cornu_model_statistics(model)->fallbacks, 0);
            cornu_model_free(model);
            cornu_device_close(device);
        }
    golden_close(&golden);
}

/* A layer's output has Keras' dtype and is close to Keras' values. */
static void layers_follow_keras(void **state)
{
    (void)state;
    static const char name[] = "mixed_bfloat16_last_float32";
    Golden       golden = golden_open(GOLDEN "training.safetensors");
    CornuDevice *device = cornu_device_open("cpu");
    CornuModel  *model = start(&golden, "mixed_bfloat16", device);
    json_t      *about = json_object_get(json_object_get(golden.cases, name), "layers");
    CornuGraph  *graph = cornu_graph_create(device);
    CornuTensor *x = cornu_graph_input(graph, cornu_type(CORNU_F32, 2, 8, 8, 2)), *y = x;
    CornuTensor *f32[6];
    float        got[6][1024];
    CornuArray   to[6];
    CornuCall    call = { .graph = graph,
                          .count = cornu_op_constant(graph, cornu_scalar(CORNU_I64), 2.0) };
    for (int i = 0; i < 6; i++) {
        CornuLayer *layer = cornu_model_layer(model, i);
        const json_t *dtype = json_object_get(json_object_get(about, cornu_layer_name(layer)),
                                              "output");
        y = cornu_layer_call(layer, &call, y);
        assert_non_null(y);
        assert_string_equal(cornu_tensor_type(y).dtype == CORNU_BF16 ? "bfloat16" : "float32",
                            json_string_value(dtype));
        f32[i] = cornu_op_convert(y, CORNU_F32);
        to[i] = cornu_array_from(got[i], cornu_tensor_type(f32[i]));
    }
    CornuArray two = golden_array(&golden, NULL, "x");
    expect_ok(cornu_graph_feed(x, cornu_array_from(two.data, cornu_tensor_type(x))));
    expect_ok(cornu_run(graph, f32, 6, to));
    for (int i = 0; i < 6; i++) {
        const char *layer = cornu_layer_name(cornu_model_layer(model, i));
        expect_near(layer, got[i], golden_array(&golden, name, layer), 0x1p-7);
    }
    cornu_graph_free(graph);
    cornu_model_free(model);
    cornu_device_close(device);
    golden_close(&golden);
}

/* ---- Training ---- */

/* bf16 has 8 bits, f16 11, and rounding errors add up over six steps: Keras' own losses in bf16
 * differ by up to 1 % from its float32. The reference device does not round. */
static void losses_follow_keras(void **state)
{
    (void)state;
    static const struct { const char *policy, *golden; double tolerance; } cases[] = {
        { "float32", "float32", 1e-5 },
        { "mixed_bfloat16", "mixed_bfloat16_last_float32", 5e-3 },
        { "mixed_float16", "mixed_float16_last_float32", 1e-3 },
    };
    Golden golden = golden_open(GOLDEN "training.safetensors");
    for (int d = 0; d < 2; d++)
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
            const bool   exact = d == 0;
            CornuDevice *device = cornu_device_open(devices[d]);
            CornuModel  *model = start(&golden, cases[c].policy, device);
            float        losses[6];
            train(&golden, model, losses, 6);
            expect_near(cases[c].policy, losses,
                        golden_array(&golden, exact ? "float32" : cases[c].golden, "losses"),
                        exact ? 1e-5 : cases[c].tolerance);
            cornu_model_free(model);
            cornu_device_close(device);
        }
    golden_close(&golden);
}

static void predictions_are_f32(void **state)
{
    (void)state;
    CornuModel *model = cornu_sequential(.input_shape = { 2 }, .policy = "mixed_bfloat16");
    cornu_model_add(model, cornu_dense(3, .no_bias = true));
    cornu_model_add(model, cornu_activation(.activation = CORNU_SOFTMAX));
    expect_ok(cornu_compile(model));
    const float x[2] = { 0.3f, 0.7f };
    float       y[3];
    expect_ok(cornu_predict_on_batch(model, cornu_array((void *)(uintptr_t)x, CORNU_F32, 1, 2),
                                     cornu_array(y, CORNU_F32, 1, 3)));
    const float sum = y[0] + y[1] + y[2];
    assert_true(sum > 1.0f - 1e-6f && sum < 1.0f + 1e-6f);   /* in bf16 it would not be */
    cornu_model_free(model);
}

/* ---- Loss scaling ---- */

static double scalar(CornuVariable *variable)
{
    double value;
    expect_ok(cornu_variable_get(variable, &value));
    return value;
}

static void scale_steps(Golden *golden, const char *name, CornuOptimizer *inner,
                        CornuDevice *device)
{
    const CornuArray gradients = golden_array(golden, NULL, "gradients");
    const CornuArray want = golden_array(golden, name, "w");
    const CornuArray first = golden_array(golden, NULL, "w0");
    const CornuArray scale = golden_array(golden, name, "scale");
    const CornuArray counter = golden_array(golden, name, "counter");
    const CornuArray iteration = golden_array(golden, name, "iteration");
    const json_t    *counters = json_object_get(json_object_get(golden->cases, name), "counters");
    CornuVariable   *w = cornu_variable_create(device, first.type, "w");
    CornuOptimizer  *optimizer = cornu_loss_scale_optimizer(inner);
    expect_ok(cornu_variable_write(w, first));
    expect_ok(cornu_optimizer_build(optimizer, &w, 1));
    assert_string_equal(cornu_variable_name(cornu_optimizer_variable(optimizer, 3)),
                        "loss_scale_optimizer/dynamic_scale");
    CornuGraph  *graph = cornu_graph_create(device);
    CornuTensor *gradient = cornu_graph_input(graph, first.type);
    expect_ok(cornu_optimizer_apply(optimizer, graph, &gradient));
    for (int64_t i = 0; i < gradients.type.shape.extent[0]; i++) {
        char  key[16];
        float got[16];
        snprintf(key, sizeof key, "%d", (int)i);
        const json_t *set = json_object_get(counters, key);
        if (set)
            expect_ok(cornu_variable_set(optimizer->step_counter, json_number_value(set)));
        expect_ok(cornu_graph_feed(gradient, entry(gradients, i)));
        expect_ok(cornu_run(graph, NULL, 0, NULL));
        expect_ok(cornu_variable_read(w, cornu_array_from(got, first.type)));
        expect_near(name, got, entry(want, i), 1e-6);
        assert_true(scalar(optimizer->dynamic_scale) == cornu_array_get(scale, i));
        assert_true(scalar(optimizer->step_counter) == cornu_array_get(counter, i));
        assert_true(scalar(optimizer->iteration) == cornu_array_get(iteration, i));
    }
    cornu_graph_free(graph);
    cornu_optimizer_free(optimizer);
    cornu_variable_free(w);
}

static void the_scale_moves_as_keras(void **state)
{
    (void)state;
    Golden golden = golden_open(GOLDEN "loss_scale.safetensors");
    for (int d = 0; d < 2; d++) {
        CornuDevice *device = cornu_device_open(devices[d]);
        scale_steps(&golden, "sgd", cornu_sgd(.learning_rate = 0.1, .momentum = 0.9), device);
        scale_steps(&golden, "adam", cornu_adam(.learning_rate = 0.01), device);
        cornu_device_close(device);
    }
    golden_close(&golden);
}

/* 1e5 overflows f16: this step is skipped, the next one is not. */
static void an_overflow_skips_the_step(void **state)
{
    (void)state;
    CornuDevice *device = cornu_device_open("cpu");
    CornuModel  *model = two_layers("mixed_float16", NULL);
    expect_ok(cornu_compile(model, .optimizer = cornu_adam(), .loss = cornu_mean_squared_error(),
                            .device = device));
    const CornuOptimizer *optimizer = cornu_model_optimizer(model);
    float x[2][3] = { { 1e5f, 1.0f, 1.0f }, { 0.1f, 0.2f, 0.3f } }, y[2] = { 0.5f, 1.5f };
    float before[12], after[12];
    const CornuType  kernel = cornu_type(CORNU_F32, 3, 4);
    const CornuArray labels = cornu_array(y, CORNU_F32, 1, 2);
    CornuWeight     *weight = cornu_model_weight(model, 0);
    double           loss;
    expect_ok(cornu_weight_read(weight, cornu_array_from(before, kernel)));
    expect_ok(cornu_train_on_batch(model, cornu_array(x[0], CORNU_F32, 1, 3), labels, &loss));
    expect_ok(cornu_weight_read(weight, cornu_array_from(after, kernel)));
    assert_memory_equal(before, after, sizeof before);
    assert_true(scalar(optimizer->dynamic_scale) == 0x1p14);
    assert_true(scalar(optimizer->iteration) == 0.0);
    const int64_t allocated = allocations();
    expect_ok(cornu_train_on_batch(model, cornu_array(x[1], CORNU_F32, 1, 3), labels, &loss));
    if (allocations_counted()) assert_int_equal(allocations(), allocated);
    expect_ok(cornu_weight_read(weight, cornu_array_from(after, kernel)));
    assert_memory_not_equal(before, after, sizeof before);
    assert_true(scalar(optimizer->dynamic_scale) == 0x1p14);
    assert_true(scalar(optimizer->step_counter) == 1.0);
    assert_true(scalar(optimizer->iteration) == 1.0);

    CornuHistory *history = cornu_fit(model, .x = cornu_array(x[0], CORNU_F32, 1, 3), .y = labels,
                                      .verbose = CORNU_SILENT);
    assert_null(history);
    expect_error(cornu_error_take(), CORNU_ERR_VALUE, "float16 overflows beyond 65504");
    cornu_model_free(model);
    cornu_device_close(device);
}

/* ---- Files ---- */

static json_t *saved_architecture(CornuModel *model, const char *path)
{
    expect_ok(cornu_model_save(model, path));
    CornuSafetensors *file = cornu_safetensors_open(path);
    json_t *text = json_loads(cornu_safetensors_metadata(file, "architecture"), 0, NULL);
    cornu_safetensors_close(file);
    return text;
}

static json_t *dtype_of_layer(json_t *model_config, size_t i)
{
    json_t *layer = json_array_get(json_object_get(model_config, "layers"), i);
    return json_object_get(json_object_get(layer, "config"), "dtype");
}

/* Policies are written as Keras writes them, and read back. */
static void files_hold_the_policy(void **state)
{
    (void)state;
    const char *path = files_path(folder, "model.safetensors");
    Golden      golden = golden_open(GOLDEN "training.safetensors");
    json_t     *keras = json_object_get(json_object_get(golden.cases, "mixed_bfloat16"), "config");
    CornuModel *model = network("mixed_bfloat16");
    json_t     *text = saved_architecture(model, path), *config = json_object_get(text, "config");
    assert_true(json_equal(json_object_get(config, "dtype"), json_object_get(keras, "dtype")));
    for (size_t i = 1; i <= 6; i++)
        assert_true(json_equal(dtype_of_layer(config, i), dtype_of_layer(keras, i)));
    cornu_model_free(model);
    json_decref(text);
    golden_close(&golden);

    model = cornu_model_load(path);
    assert_non_null(model);
    assert_string_equal(cornu_model_policy(model)->name, "mixed_bfloat16");
    assert_null(cornu_model_layer(model, 0)->own_policy);
    cornu_model_free(model);

    model = two_layers(NULL, "mixed_float16");
    text = saved_architecture(model, path);
    config = json_object_get(text, "config");
    assert_string_equal(json_string_value(json_object_get(config, "dtype")), "float32");
    cornu_model_free(model);
    json_decref(text);
    model = cornu_model_load(path);
    assert_non_null(model);
    assert_null(cornu_model_policy(model));
    assert_string_equal(cornu_model_layer(model, 0)->own_policy->name, "mixed_float16");
    assert_null(cornu_model_layer(model, 1)->own_policy);
    cornu_model_free(model);
}

/* ---- Losses of layers ---- */

static CornuTensor *add_mean(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    /* bf16 under a policy that computes so, and nobody looks at the status. */
    cornu_layer_add_loss(layer, call, cornu_op_mean(x));
    return x;
}

static const CornuLayerClass mean_class = {
    .class_name = "MeanLoss", .size = sizeof(CornuLayer), .call = add_mean,
};

/* The message names the layer, both types and what to do. */
static void losses_of_layers_are_f32(void **state)
{
    float x[4 * 3] = { 1.0f }, y[4 * 2] = { 0.0f };
    (void)state;
    for (int narrow = 0; narrow < 2; narrow++) {
        CornuModel *model = cornu_sequential(
            .input_shape = { 3 }, .policy = narrow ? "mixed_bfloat16" : "float32");
        cornu_model_add(model, cornu_layer_create(&mean_class, "mean", NULL));
        cornu_model_add(model, cornu_dense(2));
        expect_ok(cornu_compile(model, .loss = CORNU_MEAN_SQUARED_ERROR));
        const CornuStatus status = cornu_train_on_batch(model, cornu_array(x, CORNU_F32, 4, 3),
                                                        cornu_array(y, CORNU_F32, 4, 2));
        if (narrow)
            expect_error(status, CORNU_ERR_DTYPE, "mean: the loss that it adds is bf16 (), "
                         "expected a scalar f32 under any policy");
        else
            expect_ok(status);
        cornu_model_free(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_innermost_policy_rules),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(weights_are_rounded),
        cmocka_unit_test(dtypes_are_the_policys),
        cmocka_unit_test(layers_follow_keras),
        cmocka_unit_test(losses_follow_keras),
        cmocka_unit_test(predictions_are_f32),
        cmocka_unit_test(the_scale_moves_as_keras),
        cmocka_unit_test(an_overflow_skips_the_step),
        cmocka_unit_test_setup_teardown(files_hold_the_policy, files_begin, files_end),
        cmocka_unit_test(losses_of_layers_are_f32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
