/*
 * tests/run: quick, takes 60 s
 *
 * Models as C source: what a compiler makes of it predicts and trains as the library does, with the
 * undefined-behaviour sanitizer in it. Numbers differ by the order of sums and the last bits of
 * <math.h>: a sum of n terms by about sqrt(n) 2^-24 of its largest, and a few layers of sums of up
 * to 2,000 terms by 1e-5 of the largest number. Needs a compiler, `cc`.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../models/models.h"
#include "../../../models/translation.h"
#include "../../datasets/files.h"
#include "../../expect.h"
#include "../../quick.h"
#include "../../skip.h"
#include "compiled.h"

#define NEEDS_COMPILER() \
    if (!has_compiler()) SKIP_FOR("a C compiler: apt-get install gcc")

static const double bound = 1e-5;

/* Floats in [0, 1), or indices below 20, the same in every run. */
static void *make_data(CornuType type, uint32_t seed)
{
    const int64_t count = cornu_type_count(type);
    void         *data = calloc((size_t)count + 1, cornu_dtype_size(type.dtype));
    assert_non_null(data);
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        cornu_array_set((CornuArray){ type, data }, i,
                        type.dtype == CORNU_F32 ? (seed >> 8) / 16777216.0 : (seed >> 8) % 20);
    }
    return data;
}

static void expect_close(const float *got, const float *want, int64_t count)
{
    double most = 0.0;
    for (int64_t i = 0; i < count; i++) most = fmax(most, fabs((double)want[i]));
    for (int64_t i = 0; i < count; i++)
        if (!(fabs((double)got[i] - (double)want[i]) <= bound * most))
            fail_msg("element %lld is %.9g, expected %.9g", (long long)i, (double)got[i],
                     (double)want[i]);
}

/* The model's inputs and outputs for so many rows. */
static CornuModelTypes types_of(CornuModel *model, int64_t rows)
{
    CornuModelTypes types;
    expect_ok(cornu_model_types(model, rows, 0, &types));
    for (int i = 0; i < types.input_count; i++)
        if (types.rows_of[i]) types.inputs[i].dtype = CORNU_I32;
    return types;
}

/* Of one row, the first output. */
static void expect_predicts_alike(const Compiled *c, CornuModel *model, const void *const *data)
{
    const CornuModelTypes types = types_of(model, 1);
    const int64_t         count = cornu_type_count(types.outputs[0]);
    CornuPredictConfig    predict = { .model = model };
    float *got = malloc((size_t)count * sizeof *got), *want = malloc((size_t)count * sizeof *want);
    assert_true(got && want);
    for (int i = 0; i < types.input_count; i++)
        predict.xs[i] = cornu_array_from((void *)(uintptr_t)data[i], types.inputs[i]);
    predict.tos[0] = cornu_array_from(want, types.outputs[0]);
    c->predict(data, got);
    expect_ok(cornu_predict_from(&predict));
    expect_close(got, want, count);
    free(got);
    free(want);
}

/* ---- Networks ---- */

static CornuModel *tutorial(void) { return cornu_mnist_tutorial(); }
static CornuModel *translating(void)
{
    return cornu_transformer(.source_vocabulary = 40, .target_vocabulary = 42, .hidden = 64,
                             .channels = 32, .heads = 2, .sequence_length = 9);
}
static CornuModel *(*const others[])(void) = { translating, tutorial };

/* Beside the library's prediction; weights of millions of parameters in a file. */
static void expect_network(const char *name, CornuModel *model)
{
    char  weights[FILES_PATH + 80];
    void *data[CORNU_MAX_MODEL_TENSORS];
    if (!model) fail_msg("%s", cornu_error_message());
    const CornuModelTypes types = types_of(model, 1);
    for (int i = 0; i < types.input_count; i++) data[i] = make_data(types.inputs[i], 7);
    snprintf(weights, sizeof weights, "%s/%s.weights", folder, name);
    const bool large = cornu_model_parameters(model) > 100000;
    Compiled   compiled = compiled_open(name, (CornuCompileToCConfig){
                                            .model = model, .weights = large ? weights : NULL });
    expect_predicts_alike(&compiled, model, (const void *const *)data);
    compiled_close(&compiled);
    cornu_model_free(model);
    for (int i = 0; i < types.input_count; i++) free(data[i]);
}

static void test_networks_predict(void **state)
{
    (void)state;
    int count;
    const CornuReferenceModel *networks = cornu_reference_models(&count);
    NEEDS_COMPILER();
    for (int i = 0; i < quick(3, count); i++)
        expect_network(networks[i].name, networks[i].build(&(CornuNetworkConfig){ 0 }));
    for (int i = 0; i < quick(1, 2); i++) {
        char name[16];
        snprintf(name, sizeof name, "other%d", i);
        expect_network(name, others[i]());
    }
}

/* ---- Layers ---- */

static CornuModel *sequence(CornuShape shape, CornuLayer *const *layers)
{
    CornuSequentialConfig config = { .unset = 0 };
    for (int i = 0; i < shape.rank; i++) config.input_shape[i] = shape.extent[i];
    CornuModel *model = cornu_sequential_from(&config);
    for (; *layers; layers++) cornu_model_add(model, *layers);
    return model;
}
#define LAYERS(shape, ...) sequence(shape, (CornuLayer *const[]){ __VA_ARGS__, NULL })

static CornuModel *normalized(void)
{
    return LAYERS(cornu_shape(9, 9, 2),
                  cornu_conv2d(6, 3, .strides = { 2, 2 }, .padding = CORNU_SAME, .no_bias = true),
                  cornu_batch_normalization(), cornu_activation(CORNU_RELU),
                  cornu_global_average_pooling2d(), cornu_dense(4));
}

/* Gradients of inputs with borders and by strides, with sums for biases that read parts of them. */
static CornuModel *bordered(void)
{
    return LAYERS(cornu_shape(9, 10, 2), cornu_conv2d(3, 1),
                  cornu_conv2d(20, 3, .padding = CORNU_SAME),
                  cornu_conv2d(5, 4, .strides = { 2, 3 }, .padding = CORNU_SAME),
                  cornu_conv2d_transpose(4, 4, .strides = { 3, 3 }),
                  cornu_conv2d(3, 3, .dilation_rate = { 2, 1 }), cornu_flatten(), cornu_dense(3));
}

static CornuModel *windows(void)
{
    return LAYERS(cornu_shape(10, 10, 4),
                  cornu_depthwise_conv2d(3, .padding = CORNU_SAME, .depth_multiplier = 2),
                  cornu_conv2d(8, 3, .groups = 2, .dilation_rate = { 2, 2 },
                               .activation = CORNU_ELU),
                  cornu_max_pooling2d(3, 2, .padding = CORNU_SAME),
                  cornu_conv2d_transpose(3, 3, .strides = { 2, 2 }),
                  cornu_average_pooling2d(2, .padding = CORNU_SAME), cornu_flatten(),
                  cornu_dense(3, .activation = CORNU_SIGMOID));
}

static CornuModel *recurrent(void)
{
    return LAYERS(cornu_shape(7, 5), cornu_lstm(6, .return_sequences = true),
                  cornu_bidirectional(cornu_gru(4)), cornu_dense(3, .activation = CORNU_TANH));
}

static CornuModel *looked_up(void)
{
    CornuSymbol *x = cornu_input(.shape = { 6 }, .dtype = CORNU_I32);
    CornuSymbol *y = cornu_call(cornu_embedding(20, 5, .mask_zero = true), x);
    return cornu_model(.inputs = { x }, .outputs = { cornu_call(cornu_dense(3),
                                                     cornu_call(cornu_lstm(4), y)) });
}

static CornuModel *attending(void)
{
    CornuSymbol *x = cornu_input(.shape = { 6, 8 });
    CornuSymbol *y = cornu_call(cornu_multi_head_attention(2, 4), x, x);
    y = cornu_call(cornu_layer_normalization(), cornu_call(cornu_add(), x, y));
    y = cornu_call(cornu_global_average_pooling1d(), y);
    return cornu_model(.inputs = { x }, .outputs = { cornu_call(cornu_dense(3), y) });
}

static const struct { const char *name; CornuModel *(*make)(void); } layers[] = {
    { "bordered", bordered },   { "normalized", normalized }, { "looked_up", looked_up },
    { "windows", windows },     { "recurrent", recurrent },   { "attending", attending },
};

enum { ROWS = 8 };

/* Trains both on the same batches. */
static void train_both(const Compiled *c, CornuModel *model, int steps, const void *x,
                       CornuType of_x, const void *y, CornuType of_y)
{
    const size_t each_x = cornu_type_bytes(of_x) / (size_t)steps;
    const size_t each_y = cornu_type_bytes(of_y) / (size_t)steps;
    c->init();
    for (int i = 0; i < steps; i++)
        c->step((const char *)x + (size_t)i * each_x, (const char *)y + (size_t)i * each_y);
    CornuHistory *history = cornu_fit(model, .x = cornu_array_from((void *)(uintptr_t)x, of_x),
                                      .y = cornu_array_from((void *)(uintptr_t)y, of_y),
                                      .batch_size = ROWS, .epochs = 1, .no_shuffle = true,
                                      .verbose = CORNU_SILENT);
    if (!history) fail_msg("%s", cornu_error_message());
    cornu_history_free(history);
}

static void test_layers_train(void **state)
{
    (void)state;
    enum { STEPS = 20 };
    const int count = quick(2, sizeof layers / sizeof *layers);
    NEEDS_COMPILER();
    for (int i = 0; i < count; i++) {
        CornuModel *model = layers[i].make();
        if (!model || cornu_error_pending()) fail_msg("%s", cornu_error_message());
        expect_ok(cornu_compile(model, .optimizer = cornu_adam(),
                                .loss = cornu_loss("mean_squared_error")));
        Compiled compiled = compiled_open(layers[i].name, (CornuCompileToCConfig){
                                              .model = model, .train = true, .batch_size = ROWS });
        const CornuModelTypes types = types_of(model, ROWS * STEPS);
        const CornuType       x = types.inputs[0], y = types.outputs[0];
        void *xs = make_data(x, 1), *ys = make_data(y, 2);
        train_both(&compiled, model, STEPS, xs, x, ys, y);
        expect_predicts_alike(&compiled, model, (const void *const[]){ xs });
        compiled_close(&compiled);
        cornu_model_free(model);
        free(xs);
        free(ys);
    }
}

/* ---- Training ---- */

/* The first layer is frozen: it stays a constant. */
static CornuModel *small_network(void)
{
    return LAYERS(cornu_shape(12, 12, 1),
                  cornu_conv2d(4, 3, .padding = CORNU_SAME, .frozen = true),
                  cornu_conv2d(8, 3, .activation = CORNU_RELU), cornu_max_pooling2d(2),
                  cornu_flatten(), cornu_dropout(0.3),
                  cornu_dense(10, .activation = CORNU_SOFTMAX));
}

/* Weights as bytes bring a prediction back. */
static void expect_saved(const Compiled *c, const void *x)
{
    unsigned char *bytes = malloc(c->bytes());
    float          before[10], other[10], after[10];
    assert_non_null(bytes);
    c->predict(&x, before);
    c->save(bytes);
    c->init();
    c->predict(&x, other);
    assert_memory_not_equal(before, other, sizeof before);
    c->load(bytes);
    c->predict(&x, after);
    assert_memory_equal(before, after, sizeof before);
    free(bytes);
}

static void test_optimizers_train(void **state)
{
    (void)state;
    enum { STEPS = 200 };
    static const char *const optimizers[] = { "adam", "sgd", "rmsprop" };
    const CornuType x = cornu_type(CORNU_F32, ROWS * STEPS, 12, 12, 1);
    const CornuType y = cornu_type(CORNU_I32, ROWS * STEPS);
    char            weights[FILES_PATH + 80];
    NEEDS_COMPILER();
    for (int i = 0; i < quick(1, 3); i++) {
        CornuModel *model = small_network();
        assert_non_null(model);
        expect_ok(cornu_compile(model, .optimizer = cornu_optimizer(optimizers[i]),
                                .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                                .metrics = { CORNU_ACCURACY }));
        snprintf(weights, sizeof weights, "%s/%s.weights", folder, optimizers[i]);
        Compiled compiled = compiled_open(optimizers[i], (CornuCompileToCConfig){
                                              .model = model, .train = true, .batch_size = ROWS,
                                              .weights = i == 0 ? weights : NULL });
        void    *xs = make_data(x, 3);
        int32_t *ys = make_data(y, 4);
        for (int k = 0; k < ROWS * STEPS; k++) ys[k] %= 10;
        train_both(&compiled, model, STEPS, xs, x, ys, y);
        expect_predicts_alike(&compiled, model, (const void *const[]){ xs });
        expect_saved(&compiled, xs);
        compiled_close(&compiled);
        cornu_model_free(model);
        free(xs);
        free(ys);
    }
}

/* Frozen weights, which would be constants, are in the file of weights where there is one. */
static void test_frozen_weights_in_a_file(void **state)
{
    (void)state;
    char        path[FILES_PATH + 80], weights[FILES_PATH + 80], text[1 << 18];
    CornuModel *model = small_network();
    assert_non_null(model);
    expect_ok(cornu_compile(model, .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY));
    snprintf(path, sizeof path, "%s/thawed.c", folder);
    snprintf(weights, sizeof weights, "%s/thawed.weights", folder);
    for (int file = 0; file < 2; file++) {
        expect_ok(cornu_compile_to_c(model, path, .train = true,
                                     .weights = file ? weights : NULL));
        text[files_read(path, text, sizeof text - 1)] = '\0';
        assert_int_equal(strstr(text, "static const float") == NULL, file);
    }
    assert_true(files_read(weights, text, sizeof text) >=
                4 * (size_t)cornu_model_parameters(model));
    cornu_model_free(model);
}

/* ---- What compilers say ---- */

static void test_compilers_say_nothing(void **state)
{
    (void)state;
    static const char *const compilers[] = { "cc -std=c99 -O1", "c++ -std=c++17 -O1 -x c++",
                                             "clang -std=c99", "clang++ -std=c++17 -x c++" };
    char path[FILES_PATH + 80];
    NEEDS_COMPILER();
    CornuModel *model = small_network();
    expect_ok(cornu_compile(model, .optimizer = cornu_adam(), .metrics = { CORNU_ACCURACY },
                            .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY));
    snprintf(path, sizeof path, "%s/quiet.c", folder);
    expect_ok(cornu_compile_to_c(model, path, .train = true));
    for (int i = 0; i < 4; i++) {
        char command[128];
        snprintf(command, sizeof command, "%.7s --version >/dev/null 2>&1", compilers[i]);
        if (i < 2 || system(command) == 0) compiles(compilers[i], "quiet");
    }
    cornu_model_free(model);
}

/* ---- What is refused ---- */

static void expect_refused(CornuModel *model, CornuCompileToCConfig config, CornuStatus status,
                           const char *part)
{
    char path[FILES_PATH + 80];
    if (!model) fail_msg("%s", cornu_error_message());
    snprintf(path, sizeof path, "%s/refused.c", folder);
    config.model = model;
    if (!config.path) config.path = path;
    expect_error(cornu_compile_to_c_from(&config), status, part);
    assert_int_not_equal(access(path, F_OK), 0);
    path[strlen(path) - 1] = 'h';
    assert_int_not_equal(access(path, F_OK), 0);
    cornu_model_free(model);
}

static CornuModel *plain(void) { return LAYERS(cornu_shape(4), cornu_dense(2)); }

static void test_refusals(void **state)
{
    (void)state;
    CornuSymbol *x = cornu_input(.shape = { CORNU_NONE, 8 });
    CornuModel  *open = cornu_model(.inputs = { x }, .outputs = { cornu_call(cornu_lstm(4), x) });
    expect_refused(open, (CornuCompileToCConfig){ 0 }, CORNU_ERR_SHAPE, "(None, None, 8)");
    expect_refused(plain(), (CornuCompileToCConfig){ .name = "2 digits" }, CORNU_ERR_ARGUMENT,
                   "expected an identifier");
    expect_refused(plain(), (CornuCompileToCConfig){ .name = "net_" }, CORNU_ERR_ARGUMENT,
                   "nor one at its ends");
    expect_refused(plain(), (CornuCompileToCConfig){ .path = "model.o" }, CORNU_ERR_ARGUMENT,
                   "ends in .c");
    expect_refused(plain(), (CornuCompileToCConfig){ .path = "math.c" }, CORNU_ERR_ARGUMENT,
                   "<math.h>");
    expect_refused(plain(), (CornuCompileToCConfig){ .path = "a/stdint.c", .name = "digits" },
                   CORNU_ERR_ARGUMENT, "<stdint.h>");
    expect_refused(plain(), (CornuCompileToCConfig){ .path = "/nowhere/at/all/model.c" },
                   CORNU_ERR_FILE, "/nowhere/at/all");
    expect_refused(plain(), (CornuCompileToCConfig){ .train = true }, CORNU_ERR_ARGUMENT,
                   "not compiled");
    expect_refused(plain(), (CornuCompileToCConfig){ .weights = "/nowhere/at/all" },
                   CORNU_ERR_FILE, "/nowhere/at/all");
    expect_refused(plain(), (CornuCompileToCConfig){ .rows = -1 }, CORNU_ERR_ARGUMENT, ".rows");
    expect_refused(cornu_dlrm(.vocabulary = { 40 }, .numbers = 4), (CornuCompileToCConfig){ 0 },
                   CORNU_ERR_UNSUPPORTED, "TPUEmbedding");
    expect_refused(LAYERS(cornu_shape(4), cornu_dense(2, .dtype = "mixed_bfloat16",
                                                      .name = "narrow")),
                   (CornuCompileToCConfig){ 0 }, CORNU_ERR_UNSUPPORTED, "narrow: ");
}

/* The weights in the place of the source or its header, by whatever path. */
static void test_files_that_are_one(void **state)
{
    (void)state;
    static const char *const same[] = { "%s/refused.c", "%s/refused.h", "%s/./refused.h",
                                        "%s/link/refused.c" };
    char weights[FILES_PATH + 80], link[FILES_PATH + 80];
    snprintf(link, sizeof link, "%s/link", folder);
    assert_int_equal(symlink(folder, link), 0);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        snprintf(weights, sizeof weights, same[i], folder);
        expect_refused(plain(), (CornuCompileToCConfig){ .weights = weights }, CORNU_ERR_ARGUMENT,
                       "are one file");
    }
    unlink(link);
}

/* A length for what is left open, and names that cannot be identifiers. */
static void test_names_and_extents(void **state)
{
    (void)state;
    char         path[FILES_PATH + 80], text[1 << 14];
    CornuSymbol *x = cornu_input(.shape = { CORNU_NONE, 8 }, .name = "while");
    CornuSymbol *y = cornu_call(cornu_lstm(4, .name = "my layer-1 (new)*/"), x);
    CornuModel  *model = cornu_model(.inputs = { x }, .outputs = { cornu_call(
                                         cornu_dense(2, .name = "int"), y) });
    NEEDS_COMPILER();
    assert_non_null(model);
    snprintf(path, sizeof path, "%s/7 odd names.c", folder);
    expect_ok(cornu_compile_to_c(model, path, .extent = 5));
    path[strlen(path) - 1] = 'h';
    text[files_read(path, text, sizeof text - 1)] = '\0';
    assert_non_null(strstr(text, "n7_odd_names_predict("));
    assert_non_null(strstr(text, "(1, 5, 8)"));
    compiles("cc -std=c99 -O1", "7 odd names");
    cornu_model_free(model);
}

/* Names that are apart in the model and would be alike in C: of inputs and outputs, of layers and
 * what the files define besides, and where long ones are cut. */
#define LONG "a_name_of_a_layer_that_goes_on_and_on_until_it_is_cut_"
static void test_names_alike(void **state)
{
    (void)state;
    static const char *const inputs[] = { "to-kens", "to_kens", "\303\251", "\303\274",
                                          LONG "1", LONG "2", "to_kens_2", "p" };
    static const char *const outputs[] = { "weights", "predict", "trained", "init", "save", "y-1",
                                           "y_1", LONG "3" };
    enum { COUNT = sizeof inputs / sizeof *inputs };
    CornuModelConfig config = { .unset = 0 };
    char             path[FILES_PATH + 80], text[1 << 14];
    NEEDS_COMPILER();
    for (int i = 0; i < COUNT; i++) {
        CornuSymbol *x = config.inputs[i] = cornu_input(.shape = { 4 }, .name = inputs[i]);
        CornuSymbol *y = i ? cornu_call(cornu_add(), x, config.inputs[i - 1]) : x;
        config.outputs[i] = cornu_call(cornu_dense(2, .activation = CORNU_TANH,
                                                   .name = outputs[i]), y);
    }
    CornuModel *model = cornu_model_from(&config);
    if (!model) fail_msg("%s", cornu_error_message());
    snprintf(path, sizeof path, "%s/y.c", folder);   /* its functions are y_LAYER, outputs y_NAME */
    expect_ok(cornu_compile_to_c(model, path));
    compiles("cc -std=c99 -O1", "y");
    snprintf(path, sizeof path, "%s/alike.c", folder);
    expect_ok(cornu_compile_to_c(model, path));
    compiles("cc -std=c99 -O1", "alike");
    path[strlen(path) - 1] = 'h';
    text[files_read(path, text, sizeof text - 1)] = '\0';
    assert_non_null(strstr(text, "*x_to_kens, "));
    assert_non_null(strstr(text, "*x_to_kens_2, "));
    assert_non_null(strstr(text, "*x_to_kens_2_2, "));
    assert_non_null(strstr(text, "*x_value, const float *x_value_2, "));
    assert_non_null(strstr(text, "*y_y_1, float *y_y_1_2, "));
    snprintf(path, sizeof path, "%s/int.c", folder);
    expect_ok(cornu_compile_to_c(model, path, .name = "int"));
    compiles("cc -std=c99 -O1", "int");
    cornu_model_free(model);
}

/* Of a model that trains, a layer has the name of each function and of a helper. */
static void test_names_of_functions(void **state)
{
    (void)state;
    static const char *const names[] = { "state", "step", "load", "save", "init", "row", "philox" };
    NEEDS_COMPILER();
    CornuModel *model = LAYERS(cornu_shape(4), cornu_dropout(0.5));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        expect_ok(cornu_model_add(model, cornu_dense(3, .activation = CORNU_TANH,
                                                     .name = names[i])));
    expect_ok(cornu_compile(model, .optimizer = cornu_adam(),
                            .loss = cornu_loss("mean_squared_error")));
    Compiled compiled = compiled_open("named", (CornuCompileToCConfig){
                                          .model = model, .train = true, .batch_size = ROWS });
    void    *data = make_data(types_of(model, 1).inputs[0], 3);
    compiled.init();
    expect_predicts_alike(&compiled, model, (const void *const[]){ data });
    compiled_close(&compiled);
    cornu_model_free(model);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_networks_predict), cmocka_unit_test(test_layers_train),
        cmocka_unit_test(test_optimizers_train),
        cmocka_unit_test(test_frozen_weights_in_a_file),
        cmocka_unit_test(test_compilers_say_nothing),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_files_that_are_one),         cmocka_unit_test(test_names_and_extents),
        cmocka_unit_test(test_names_alike),      cmocka_unit_test(test_names_of_functions),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
