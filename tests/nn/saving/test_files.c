/* Models in files: round trips, equal bytes, weights that do not fit, untrusted architectures,
 * targets that cannot be written. */
#include "../../../nn/cornu.h"
#include "../../allocations.h"
#include "../../datasets/files.h"
#include "../../expect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../skip.h"

static char path[FILES_PATH], other[FILES_PATH];

static int set_up(void **state)
{
    files_begin(state);
    strcpy(path, files_path(folder, "a.safetensors"));
    strcpy(other, files_path(folder, "b.safetensors"));
    return 0;
}

static int tear_down(void **state)
{
    unlink(path);
    unlink(other);
    const int left_behind = files_count(folder);
    return files_end(state) || left_behind;
}

/* Every class of layers and every kind of argument. */
static CornuModel *make_model(uint64_t seed, int64_t classes)
{
    cornu_set_random_seed(seed);
    CornuModel *model = cornu_sequential(.name = "all_layers", .input_shape = { 144 },
                                         .input_scale = 1.0 / 255);
    cornu_model_add(model, cornu_reshape(.target_shape = { 12, -1, 1 }));
    cornu_model_add(model, cornu_rescaling(2.0, -0.5));
    cornu_model_add(model, cornu_conv2d(4, 3, .strides = { 2, 1 }, .padding = CORNU_SAME,
                                        .activation = CORNU_RELU, .name = "first"));
    cornu_model_add(model, cornu_batch_normalization(.momentum = 0.9, .no_scale = true,
                                                     .synchronized = true));
    cornu_model_add(model, cornu_max_pooling2d(2));
    cornu_model_add(model, cornu_conv2d(3, .kernel_size = { 2, 3 }, .no_bias = true,
                                        .kernel_initializer = CORNU_HE_NORMAL));
    cornu_model_add(model, cornu_average_pooling2d(.pool_size = { 1, 2 }));
    cornu_model_add(model, cornu_activation(CORNU_TANH));
    cornu_model_add(model, cornu_flatten());
    cornu_model_add(model, cornu_dropout(0.25));
    cornu_model_add(model, cornu_dense(5, .activation = CORNU_GELU, .frozen = true));
    cornu_model_add(model, cornu_dense(classes, .activation = CORNU_SOFTMAX));
    if (cornu_error_take() != CORNU_OK || !cornu_model_built(model))
        fail_msg("%s", cornu_error_message());
    return model;
}

static void expect_equal_weights(const CornuModel *a, const CornuModel *b, bool equal)
{
    static float x[10000], y[10000];
    bool same = true;
    assert_int_equal(cornu_model_weight_count(a), cornu_model_weight_count(b));
    for (int i = 0; i < cornu_model_weight_count(a); i++) {
        const CornuWeight *u = cornu_model_weight(a, i), *v = cornu_model_weight(b, i);
        assert_string_equal(u->path, v->path);
        assert_true(cornu_type_equal(u->type, v->type));
        expect_ok(cornu_weight_read(u, cornu_array_from(x, u->type)));
        expect_ok(cornu_weight_read(v, cornu_array_from(y, v->type)));
        same = same && memcmp(x, y, cornu_type_bytes(u->type)) == 0;
    }
    assert_true(same == equal);
}

static void test_round_trip(void **state)
{
    (void)state;
    static unsigned char a[100000], b[100000];
    CornuModel *model = make_model(1, 10);
    expect_ok(cornu_model_save(model, path));
    CornuModel *loaded = cornu_model_load(path);
    if (!loaded) fail_msg("%s", cornu_error_message());
    assert_string_equal(cornu_model_name(loaded), "all_layers");
    assert_true(cornu_model_input_scale(loaded) == 1.0 / 255);
    assert_int_equal(cornu_model_layer_count(loaded), cornu_model_layer_count(model));
    for (int i = 0; i < cornu_model_layer_count(model); i++) {
        const CornuLayer *x = cornu_model_layer(model, i), *y = cornu_model_layer(loaded, i);
        assert_ptr_equal(x->kind, y->kind);
        assert_string_equal(cornu_layer_name(x), cornu_layer_name(y));
        assert_int_equal(x->frozen, y->frozen);
        assert_true(cornu_shape_equal(x->output, y->output));
    }
    expect_equal_weights(model, loaded, true);
    expect_ok(cornu_model_save(loaded, other));
    const size_t size = files_read(path, a, sizeof a);
    assert_non_null(strstr((const char *)a + 8, "\\\"synchronized\\\":true"));
    assert_int_equal(files_read(other, b, sizeof b), size);
    assert_memory_equal(a, b, size);
    cornu_model_free(model);
    cornu_model_free(loaded);
}

/* ---- Class names and notes ---- */

static const char *const birds[] = { "Eule", "Möwe, graue" };

static void set_notes(CornuModel *model)
{
    expect_ok(cornu_model_set_class_names(model, birds, 2));
    expect_ok(cornu_model_set_note(model, "columns", "wing,\"beak, length\"\nweight"));
    expect_ok(cornu_model_set_note(model, "gone", "x"));
    expect_ok(cornu_model_set_note(model, "gone", NULL));
}

static void expect_notes(const CornuModel *model)
{
    for (int i = 0; i < 2; i++)
        assert_string_equal(cornu_model_class_name(model, i), birds[i]);
    assert_null(cornu_model_class_name(model, 2));
    assert_null(cornu_model_class_name(model, -1));
    assert_string_equal(cornu_model_note(model, "columns"), "wing,\"beak, length\"\nweight");
    assert_null(cornu_model_note(model, "gone"));
    assert_null(cornu_model_note(model, "class_names"));
}

static void test_notes(void **state)
{
    (void)state;
    CornuModel *model = make_model(1, 10);
    assert_null(cornu_model_class_name(model, 0));
    assert_null(cornu_model_note(model, "columns"));
    set_notes(model);
    expect_notes(model);
    expect_ok(cornu_model_save(model, path));
    CornuModel *loaded = cornu_model_load(path), *clone = cornu_model_clone(model);
    expect_notes(loaded);
    expect_notes(clone);
    cornu_model_free(loaded);
    cornu_model_free(clone);

    static const char *const bad[] = { "a\033[2J", "", "M\xF6we" };
    for (int i = 0; i < 3; i++)
        assert_int_equal(cornu_model_set_class_names(model, &bad[i], 1), CORNU_ERR_VALUE);
    assert_non_null(strstr(cornu_error_message(), "the name of class 0 is not UTF-8"));
    assert_int_equal(cornu_model_set_note(model, "columns", "M\xF6we"), CORNU_ERR_VALUE);
    assert_int_equal(cornu_model_set_note(model, "class_names", "x"), CORNU_ERR_ARGUMENT);
    assert_int_equal(cornu_model_set_note(model, "", "x"), CORNU_ERR_ARGUMENT);
    expect_notes(model);
    cornu_model_free(model);
}

static void test_hostile_notes(void **state)
{
    (void)state;
    static const struct { const char *notes, *message; } cases[] = {
        { "[]", "notes is not an object" },
        { "{\"columns\":[]}", "notes: columns is not a string" },
        { "{\"class_names\":\"a\"}", "notes: class_names is not a list" },
        { "{\"class_names\":[\"a\",1]}", "the name of class 1 is missing" },
        { "{\"class_names\":[\"\\u001b[2J\"]}", "class 0 holds the control character 27" },
        { "{", "notes: JSON" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const CornuMetadata metadata[] = {
            { "architecture", "{\"class_name\":\"Sequential\",\"config\":{\"name\":\"s\","
              "\"layers\":[{\"class_name\":\"InputLayer\",\"config\":{\"batch_shape\":[null,2]}}"
              ",{\"class_name\":\"Flatten\",\"config\":{\"name\":\"f\"}}]}}" },
            { "notes", cases[i].notes },
        };
        expect_ok(cornu_safetensors_write(path, NULL, 0, metadata, 2));
        assert_null(cornu_model_load(path));
        assert_int_not_equal(cornu_error_status(), CORNU_OK);
        if (!strstr(cornu_error_message(), cases[i].message))
            fail_msg("message %s\nexpected %s", cornu_error_message(), cases[i].message);
    }
}

static void test_weights_only(void **state)
{
    (void)state;
    CornuModel *model = make_model(1, 10), *second = make_model(2, 10);
    expect_equal_weights(model, second, false);
    expect_ok(cornu_model_save_weights(model, path));
    expect_ok(cornu_model_load_weights(second, path));
    expect_equal_weights(model, second, true);
    assert_null(cornu_model_load(path));
    assert_int_equal(cornu_error_status(), CORNU_ERR_FORMAT);
    assert_non_null(strstr(cornu_error_message(), "no architecture"));
    cornu_model_free(model);
    cornu_model_free(second);
}

static void test_mismatch(void **state)
{
    (void)state;
    CornuModel *model = make_model(1, 10), *wider = make_model(2, 11);
    CornuModel *copy = make_model(2, 11);
    expect_ok(cornu_model_save(model, path));
    assert_int_equal(cornu_model_load_weights(wider, path), CORNU_ERR_SHAPE);
    const char *message = cornu_error_message();
    if (!strstr(message, "dense_1/kernel is (5, 11) in the model and (5, 10) in the file") ||
        !strstr(message, path))
        fail_msg("%s", message);
    expect_equal_weights(wider, copy, true);             /* untouched */
    expect_ok(cornu_model_add(wider, cornu_dense(3)));
    assert_int_equal(cornu_model_load_weights(wider, path), CORNU_ERR_SHAPE);
    assert_non_null(strstr(cornu_error_message(), "it has 10 weights, the model all_layers "
                           "has 12: dense_1/kernel is (5, 11) in the model, dense_1/kernel "
                           "(5, 10) in the file"));
    expect_ok(cornu_model_add(model, cornu_dense(3)));
    assert_int_equal(cornu_model_load_weights(model, path), CORNU_ERR_SHAPE);
    assert_non_null(strstr(cornu_error_message(), "has 12: dense_2/kernel is only in the model"));
    cornu_model_free(model);
    cornu_model_free(wider);
    cornu_model_free(copy);
}

/* The state of the optimizer is loaded too, into one of the same kind. */
static void test_optimizer(void **state)
{
    (void)state;
    static float x[8 * 144], out[8 * 10];
    static uint8_t y[8];
    for (int i = 0; i < 8 * 144; i++)
        x[i] = (float)(i * 37 % 101) / 101.0F;
    CornuDevice *device = cornu_device_open("reference");
    CornuModel *models[3];
    for (int i = 0; i < 3; i++) {
        models[i] = make_model((uint64_t)i, 10);
        expect_ok(cornu_compile(models[i], .device = device,
                                .optimizer = i < 2 ? cornu_adam() : cornu_sgd(),
                                .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY));
    }
    const CornuArray data = cornu_array(x, CORNU_F32, 8, 144);
    const CornuArray labels = cornu_array(y, CORNU_U8, 8);
    for (int step = 0; step < 2; step++)
        expect_ok(cornu_train_on_batch(models[0], data, labels, NULL));
    expect_ok(cornu_model_save(models[0], path));
    for (int i = 1; i < 3; i++) {
        double iteration;
        expect_ok(cornu_model_load_weights(models[i], path));
        expect_equal_weights(models[0], models[i], true);
        expect_ok(cornu_variable_get(cornu_model_optimizer_variable(models[i], 0), &iteration));
        assert_true(iteration == (i == 1 ? 2.0 : 0.0));
    }
    expect_ok(cornu_model_save(models[1], other));
    static unsigned char a[100000], b[100000];
    const size_t size = files_read(path, a, sizeof a);
    assert_int_equal(files_read(other, b, sizeof b), size);
    assert_memory_equal(a, b, size);

    CornuModel *loaded = cornu_model_load(path);
    if (!loaded) fail_msg("%s", cornu_error_message());
    expect_ok(cornu_compile(loaded, .device = device));
    expect_ok(cornu_predict_on_batch(loaded, data, cornu_array(out, CORNU_F32, 8, 10)));
    cornu_model_free(loaded);
    for (int i = 0; i < 3; i++)
        cornu_model_free(models[i]);
    cornu_device_close(device);
}

/* Files from before optimizers had Keras' names call rm_sprop's variables rmsprop/…. */
static void test_former_name(void **state)
{
    (void)state;
    static float   x[8 * 144];
    static uint8_t y[8];
    CornuModel    *models[2];
    double         iteration;
    for (int i = 0; i < 2; i++) {
        models[i] = make_model((uint64_t)i, 10);
        expect_ok(cornu_compile(models[i], .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                                .optimizer = cornu_rmsprop(.name = i ? NULL : "rmsprop")));
    }
    const CornuVariable *own = cornu_model_optimizer_variable(models[1], 0);
    assert_string_equal(cornu_variable_name(own), "rm_sprop/iteration");
    expect_ok(cornu_train_on_batch(models[0], cornu_array(x, CORNU_F32, 8, 144),
                                   cornu_array(y, CORNU_U8, 8), NULL));
    expect_ok(cornu_model_save(models[0], path));
    expect_ok(cornu_model_load_weights(models[1], path));
    expect_ok(cornu_variable_get(own, &iteration));
    assert_true(iteration == 1.0);
    for (int i = 0; i < 2; i++) cornu_model_free(models[i]);
}

static void test_targets(void **state)
{
    (void)state;
    static const struct { const char *path, *message; } cases[] = {
        { "model.npz", "whole models cannot be saved as .npz, expected one of .safetensors" },
        { "model.weights.h5", "whole models cannot be saved as .weights.h5" },
        { "model", "the name has no known suffix, expected one of .safetensors" },
        { "/absent/model.safetensors", "No such file" },
    };
    CornuModel *model = make_model(1, 10);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_not_equal(cornu_model_save(model, cases[i].path), CORNU_OK);
        if (!strstr(cornu_error_message(), cases[i].message) ||
            !strstr(cornu_error_message(), cases[i].path))
            fail_msg("%s", cornu_error_message());
        char said[300];
        snprintf(said, sizeof said, "%s", cornu_error_message());
        assert_int_not_equal(cornu_model_save_check(cases[i].path), CORNU_OK);
        assert_string_equal(cornu_error_message(), said);
    }
    assert_null(cornu_model_load("/absent.safetensors"));
    assert_int_equal(cornu_error_status(), CORNU_ERR_FILE);
    if (access("/dev/full", W_OK) == 0) {
        unlink(path);
        assert_int_equal(symlink("/dev/full", path), 0);
        assert_int_equal(cornu_model_save(model, path), CORNU_ERR_FILE);
        assert_non_null(strstr(cornu_error_message(), "No space left"));
        assert_int_equal(cornu_model_save_check(path), CORNU_ERR_FILE);
        assert_non_null(strstr(cornu_error_message(), "No space left"));
        unlink(path);
    }
    cornu_model_free(model);
}

/* A failed load is not pending, so that a program can build a model instead; functions that are
 * given the missing model report it. */
/* What other frameworks write is named, and what to export. */
static void test_foreign(void **state)
{
    static const struct { const char *path, *what, *advice; } files[] = {
        { "network.pt", "a file of PyTorch", "torch.onnx.export" },
        { "network.pth", "a file of PyTorch", "torch.onnx.export" },
        { "graph.pb", "a graph of TensorFlow", "tf2onnx.convert --graphdef" },
        { "saved_model.pb", "a SavedModel of TensorFlow", "model.export(\"model.onnx\"" },
        { "saved/saved_model.pb", "a SavedModel of TensorFlow", "tf2onnx.convert --saved-model" },
        { "last.ckpt", "a checkpoint", "torch.onnx.export" },
    };
    char        path[600];
    CornuModel *model = make_model(1, 10);
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        expect_unloaded(cornu_model_load(files[i].path), CORNU_ERR_UNSUPPORTED, files[i].what);
        assert_non_null(strstr(cornu_error_message(), files[i].advice));
        expect_error(cornu_model_load_weights(model, files[i].path), CORNU_ERR_UNSUPPORTED,
                     files[i].what);
    }
    cornu_model_free(model);
    /* Its folder. */
    snprintf(path, sizeof path, "%s/saved_model.pb", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
    expect_unloaded(cornu_model_load(folder), CORNU_ERR_UNSUPPORTED, "a SavedModel of TensorFlow");
    remove(path);
}

static void test_absent_files_block_nothing(void **state)
{
    (void)state;
    const char *const absent[] = { "/absent.safetensors", "/absent.keras", "/absent.npz", "ck" };
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        CornuModel *model = cornu_model_load(absent[i]);
        if (!model) model = make_model(1, 10);
        assert_non_null(model);
        cornu_model_free(model);
        assert_null(cornu_model_load_compiled(absent[i], NULL));
        assert_null(cornu_npz_open(absent[i]));
        assert_null(cornu_safetensors_open(absent[i]));
        assert_false(cornu_error_pending());
    }
    CornuModel *model = cornu_model_load("/absent.safetensors");
    assert_int_equal(cornu_compile(model), CORNU_ERR_FILE);
    assert_null(cornu_fit(model));
    assert_non_null(strstr(cornu_error_message(), "/absent.safetensors"));
    assert_int_equal(cornu_error_take(), CORNU_ERR_FILE);

    /* With an error pending nothing is loaded, and why is said. */
    assert_null(cornu_dense(-1));
    assert_null(cornu_model_load("/absent.safetensors"));
    assert_non_null(strstr(cornu_error_message(), "dense"));
    assert_non_null(strstr(cornu_error_message(), "cornu_error_take()"));
    assert_int_equal(cornu_error_take(), CORNU_ERR_ARGUMENT);
}

/* Checking a target neither creates nor changes nor waits for it. */
static void test_check_leaves_nothing(void **state)
{
    (void)state;
    unlink(path);
    assert_int_equal(cornu_model_save_check(path), CORNU_OK);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(cornu_model_save_check(path), CORNU_OK);
    unlink(path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("kept", file);
    fclose(file);
    assert_int_equal(cornu_model_save_check(path), CORNU_OK);
    struct stat old;
    assert_int_equal(stat(path, &old), 0);
    assert_int_equal(old.st_size, 4);
    unlink(path);
}

/* ---- Untrusted architectures ---- */

#define MODEL(class, layers) \
    "{\"class_name\":\"" class "\",\"config\":{\"name\":\"m\",\"layers\":[" layers "]}}"
#define LAYER(class, config) "{\"class_name\":\"" class "\",\"config\":{" config "}}"
#define INPUT LAYER("InputLayer", "\"batch_shape\":[null,4]")
#define TIMES13(text) text text text text text text text text text text text text text
#define DENSE(arguments) \
    MODEL("Sequential", INPUT "," LAYER("Dense", "\"name\":\"d\"," arguments))

static const struct { const char *architecture, *message; } hostile[] = {
    { "", "architecture: JSON" },
    { "{", "architecture: JSON" },
    { "[]", "expected Sequential" },
    { "{}", "expected Sequential" },
    { TIMES13("[[[[[") TIMES13("]]]]]"), "nests 65 deep" },
    { "{\"a\":1,\"a\":2}", "duplicate" },
    { MODEL("Model", INPUT), "\"Model\", expected Sequential or Functional" },
    { MODEL("Functional", INPUT), "an InputLayer without a name" },
    { MODEL("Sequential", ""), "not an InputLayer" },
    { MODEL("Sequential", LAYER("Dense", "\"name\":\"d\",\"units\":3")), "not an InputLayer" },
    { MODEL("Sequential", LAYER("InputLayer", "")), "batch_shape" },
    { MODEL("Sequential", LAYER("InputLayer", "\"batch_shape\":[]")), "batch_shape" },
    { MODEL("Sequential", LAYER("InputLayer", "\"batch_shape\":[null,-4]")), "extent of -4" },
    { MODEL("Sequential", LAYER("InputLayer", "\"batch_shape\":[0,4]")), "extent of 0" },
    { MODEL("Sequential", LAYER("InputLayer", "\"batch_shape\":[null,\"4\"]")), "whole numbers" },
    { MODEL("Sequential", LAYER("InputLayer", "\"batch_shape\":[1,2,3,4,5,6,7,8,9]")),
          "at most 8" },
    { MODEL("Sequential", INPUT ",3"), "without class_name or name" },
    { MODEL("Sequential", INPUT "," LAYER("Dense", "\"units\":3")), "without class_name or name" },
    { MODEL("Sequential", INPUT "," LAYER("Dens", "\"name\":\"d\"")), "no layer class \"Dens\"" },
    { DENSE("\"unit\":3"), "d: the argument \"unit\" is not known" },
    { DENSE("\"units\":\"3\""), "d: units is not a whole number" },
    { DENSE("\"units\":3.0"), "d: units is not a whole number" },
    { DENSE("\"units\":0"), "d: " },
    { DENSE("\"units\":-3"), "d: " },
    { DENSE("\"units\":9223372036854775807"), "" },
    { DENSE("\"units\":3,\"use_bias\":1"), "d: use_bias is not true or false" },
    { DENSE("\"units\":3,\"activation\":\"rel\""), "d: " },
    { DENSE("\"units\":3,\"activation\":7"), "d: activation is not a name or a layer" },
    { DENSE("\"units\":3,\"kernel_initializer\":\"x\""), "initializer \"x\" is not known" },
    { MODEL("Sequential", INPUT "," LAYER("Dropout", "\"name\":\"o\",\"rate\":2")), "o: " },
    { MODEL("Sequential", INPUT "," LAYER("Dropout", "\"name\":\"o\",\"rate\":[]")),
      "o: rate is not a number" },
    { MODEL("Sequential", INPUT "," LAYER("MaxPooling2D", "\"name\":\"p\",\"pool_size\":[2]")),
      "p: pool_size is not a list of two" },
    { MODEL("Sequential", INPUT "," LAYER("MaxPooling2D",
      "\"name\":\"p\",\"pool_size\":[2,2],\"padding\":\"full\"")), "p: padding is \"full\"" },
    { MODEL("Sequential", INPUT "," LAYER("Reshape", "\"name\":\"r\",\"target_shape\":[3]")), "" },
    { DENSE("\"units\":3"), "d/kernel" },                  /* fine, but has no weights */
};

static void test_hostile(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        const CornuMetadata metadata = { "architecture", hostile[i].architecture };
        expect_ok(cornu_safetensors_write(path, NULL, 0, &metadata, 1));
        CornuModel *model = cornu_model_load(path);
        assert_null(model);
        assert_int_not_equal(cornu_error_status(), CORNU_OK);
        if (!strstr(cornu_error_message(), hostile[i].message) ||
            !strstr(cornu_error_message(), path))
            fail_msg("%s\nmessage %s\nexpected %s", hostile[i].architecture,
                     cornu_error_message(), hostile[i].message);
    }
}

/* ---- Out of memory at any point of saving (jansson's parser would abort) ---- */

static void test_no_memory(void **state)
{
    (void)state;
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    CornuModel *model = make_model(1, 10);
    CornuStatus status = CORNU_ERR_MEMORY;
    set_notes(model);
    unlink(path);
    for (int n = 0; status != CORNU_OK; n++) {
        allocations_fail_after(n);
        status = cornu_model_save(model, path);
        allocations_fail_after(NEVER);
        if (status != CORNU_OK) assert_int_not_equal(access(path, F_OK), 0);
    }
    CornuModel *loaded = cornu_model_load(path);
    expect_equal_weights(model, loaded, true);
    cornu_model_free(model);
    cornu_model_free(loaded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_weights_only),
        cmocka_unit_test(test_notes),      cmocka_unit_test(test_hostile_notes),
        cmocka_unit_test(test_mismatch),   cmocka_unit_test(test_optimizer),
        cmocka_unit_test(test_former_name), cmocka_unit_test(test_absent_files_block_nothing),
        cmocka_unit_test(test_foreign),
        cmocka_unit_test(test_targets),    cmocka_unit_test(test_check_leaves_nothing),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
