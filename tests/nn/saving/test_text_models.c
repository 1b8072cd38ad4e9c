/* Models that begin with layers of strings, as real Keras saved them (tests/golden/text_models):
 * they predict and train alike from arrays, data sets and single batches, and so do their copies in
 * files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../golden.h"

enum { ROWS = 4, MOST = 3 };

typedef struct {
    json_t     *about;
    CornuModel *model;
    CornuArray  x[MOST];
    float       targets[ROWS];
    int         inputs;
} Case;

static const json_t *leaf(const json_t *value)
{
    while (json_is_array(value)) value = json_array_get(value, 0);
    return value;
}

/* (ROWS) or (ROWS, n), of strings or numbers. */
static CornuArray array_of(const json_t *rows)
{
    const bool    strings = json_is_string(leaf(rows));
    const bool    flat = !json_is_array(json_array_get(rows, 0));
    const int64_t n = flat ? 1 : (int64_t)json_array_size(json_array_get(rows, 0));
    CornuArray    array = { { strings ? CORNU_STRING : CORNU_F32, cornu_shape(ROWS, n) }, NULL };
    array.data = calloc(ROWS * (size_t)n, 8);
    if (flat) array.type.shape = cornu_shape(ROWS);
    for (int64_t i = 0; i < ROWS * n; i++) {
        const json_t *row = json_array_get(rows, (size_t)(i / n));
        const json_t *one = flat ? row : json_array_get(row, (size_t)(i % n));
        if (strings) ((const char **)array.data)[i] = json_string_value(one);
        else ((float *)array.data)[i] = (float)json_number_value(one);
    }
    return array;
}

static Case open_case(const char *name, const char *file)
{
    char         path[256];
    json_error_t error;
    Case         c = { .inputs = 0 };
    snprintf(path, sizeof path, "tests/golden/text_models/%s.json", name);
    c.about = json_load_file(path, 0, &error);
    if (!c.about) fail_msg("%s: %s", path, error.text);
    snprintf(path, sizeof path, "tests/golden/text_models/%s.keras", name);
    c.model = cornu_model_load(file ? file : path);
    if (!c.model) fail_msg("%s: %s", name, cornu_error_message());
    const json_t *inputs = json_object_get(c.about, "inputs");
    for (; c.inputs < (int)json_array_size(inputs); c.inputs++)
        c.x[c.inputs] = array_of(json_array_get(inputs, (size_t)c.inputs));
    for (int i = 0; i < ROWS; i++)
        c.targets[i] = (float)json_number_value(
            leaf(json_array_get(json_object_get(c.about, "targets"), (size_t)i)));
    expect_ok(cornu_compile(c.model, .optimizer = cornu_sgd(.learning_rate = 0.5),
                            .loss = CORNU_MEAN_SQUARED_ERROR));
    return c;
}

static void close_case(Case *c)
{
    for (int i = 0; i < c->inputs; i++) free(c->x[i].data);
    cornu_model_free(c->model);
    json_decref(c->about);
}

static void expect_rows(const Case *c, const char *what, const float *got)
{
    for (int i = 0; i < ROWS; i++) {
        const double want = json_number_value(
            leaf(json_array_get(json_object_get(c->about, what), (size_t)i)));
        if (got[i] < want - 1e-6 || got[i] > want + 1e-6)
            fail_msg("%s: row %d is %g, Keras has %g", what, i, (double)got[i], want);
    }
}

static void predict(Case *c, const char *what)
{
    float            got[ROWS];
    const CornuArray to = cornu_array(got, CORNU_F32, ROWS, 1);
    expect_ok(cornu_predict_on_batch_many(c->model, c->x, &to));
    expect_rows(c, what, got);
}

/* One step by each way of giving data. */
typedef enum { ON_BATCH, ARRAYS, DATASET } Way;

static void train(Case *c, Way way)
{
    double     loss[2] = { 0 };
    CornuArray y = cornu_array(c->targets, CORNU_F32, ROWS, 1);
    CornuArray all[MOST + 1];
    if (way == ON_BATCH) {
        expect_ok(cornu_train_on_batch_many(c->model, c->x, &y, loss));
    } else {
        CornuDataset *data = NULL;
        CornuHistory *history;
        memcpy(all, c->x, sizeof c->x);
        all[c->inputs] = y;
        if (way == DATASET)
            data = cornu_dataset_batch(cornu_dataset_from_arrays(all, c->inputs + 1), ROWS, false);
        history = way == DATASET
            ? cornu_fit(c->model, data, .verbose = CORNU_SILENT)
            : cornu_fit(c->model, .xs = { c->x[0], c->x[1], c->x[2] }, .y = y,
                        .batch_size = ROWS, .verbose = CORNU_SILENT);
        if (!history) fail_msg("%s", cornu_error_message());
        loss[0] = cornu_history_get(history, "loss", 0);
        cornu_history_free(history);
        cornu_dataset_free(data);
    }
    const double want = json_number_value(json_object_get(c->about, "loss"));
    if (loss[0] < want - 1e-6 || loss[0] > want + 1e-6)
        fail_msg("way %d: the loss is %g, Keras has %g", (int)way, loss[0], want);
}

static void check(const char *name)
{
    for (int way = ON_BATCH; way <= DATASET; way++) {
        Case c = open_case(name, NULL);
        float      got[ROWS];
        predict(&c, "predicted");
        expect_ok(cornu_predict(c.model, .xs = { c.x[0], c.x[1], c.x[2] },
                                .to = cornu_array(got, CORNU_F32, ROWS, 1),
                                .verbose = CORNU_SILENT));
        expect_rows(&c, "predicted", got);
        train(&c, (Way)way);
        predict(&c, "after");
        close_case(&c);
    }
}

static void of_keras(void **state)
{
    (void)state;
    check("branches");
    check("looked_up");
    check("weighted");
}

static void saved_again(void **state)
{
    (void)state;
    static const char *const names[] = { "branches", "looked_up", "weighted" };
    static const char *const files[] = { "/tmp/cornu-text.keras", "/tmp/cornu-text.safetensors" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
            char path[64];
            snprintf(path, sizeof path, "/tmp/cornu-text-%d%s", (int)getpid(),
                     strrchr(files[k], '.'));
            Case first = open_case(names[i], NULL);
            expect_ok(cornu_model_save(first.model, path));
            close_case(&first);
            Case again = open_case(names[i], path);
            predict(&again, "predicted");
            CornuModel *clone = cornu_model_clone(again.model);
            assert_non_null(clone);
            cornu_model_free(clone);
            close_case(&again);
            remove(path);
        }
}

/* What cannot be: a layer of the step before one that runs on the host, strings in the step. */
static void refused(void **state)
{
    (void)state;
    CornuSymbol *number = cornu_input(.shape = { 3 }), *text = cornu_input(.dtype = CORNU_STRING);
    assert_null(cornu_call(cornu_hashing(4), cornu_call(cornu_dense(2), number)));
    assert_non_null(strstr(cornu_error_message(), "runs on the host before the step"));
    cornu_error_take();
    assert_null(cornu_call(cornu_dense(2), text));
    assert_non_null(strstr(cornu_error_message(), "has strings, expected numbers"));
    cornu_error_take();
    cornu_clear_session();
    CornuModel *model = cornu_sequential(.input_dtype = CORNU_STRING,
                                         .name = "sequential");
    cornu_model_add(model, cornu_string_lookup(.vocabulary = cornu_texts("a", "b"),
                                               .num_oov_indices = CORNU_ZERO,
                                               .output_mode = CORNU_ONE_HOT_OUTPUT));
    cornu_model_add(model, cornu_dense(1));
    expect_ok(cornu_compile(model));
    const char *words[] = { "a", "c" };
    float       got[2];
    assert_int_equal(cornu_predict(model, .x = cornu_array(words, CORNU_STRING, 2),
                                   .to = cornu_array(got, CORNU_F32, 2, 1),
                                   .verbose = CORNU_SILENT), CORNU_ERR_VALUE);
    assert_non_null(strstr(cornu_error_message(), "\"c\" is not in the vocabulary"));
    expect_error(cornu_model_save(model, "text.onnx"), CORNU_ERR_UNSUPPORTED,
                 "sequential: has a layer that runs on the host");
    cornu_model_free(model);
}

/* Words, and a number beside them, in a model that is called twice by another: its vocabulary is
 * looked up on the host for each call. */
static CornuModel *nested(bool built)
{
    CornuModel *inner = built ? cornu_sequential(.input_dtype = CORNU_STRING, .input_shape = { 2 },
                                                 .name = "inner")
                              : cornu_sequential(.name = "inner");
    CornuSymbol *a = cornu_input(.shape = { 2 }, .dtype = CORNU_STRING, .name = "a");
    CornuSymbol *b = cornu_input(.shape = { 2 }, .dtype = CORNU_STRING, .name = "b");
    CornuSymbol *n = cornu_input(.shape = { 2, 3 }, .name = "n");
    expect_ok(cornu_model_add(inner, cornu_string_lookup(.vocabulary = cornu_texts("x", "y"))));
    expect_ok(cornu_model_add(inner, cornu_embedding(3, 3, .name = "words")));
    CornuLayer  *layer = cornu_as_layer(inner);
    CornuSymbol *p = cornu_call(layer, a), *q = cornu_call(layer, b);
    CornuModel  *model = cornu_model(.inputs = { a, b, n },
                                     .outputs = { cornu_call(cornu_subtract(), p, q),
                                                  cornu_call(cornu_add(), p, n) });
    cornu_model_free(inner);
    if (!model) fail_msg("%s", cornu_error_message());
    return model;
}

static void expect_looked_up(CornuModel *model)
{
    static const char *a[] = { "x", "?", "y", "x" }, *b[] = { "y", "x", "y", "?" };
    static const int   of_a[] = { 1, 0, 2, 1 }, of_b[] = { 2, 1, 2, 0 };
    const float        table[3][3] = { { 1, 2, 4 }, { 8, 16, 32 }, { 64, 128, 256 } };
    float              n[12] = { 0.5f, 0.25f }, difference[12], sum[12];
    const CornuType    type = cornu_type(CORNU_F32, 2, 2, 3);
    const CornuArray   x[] = { cornu_array(a, CORNU_STRING, 2, 2),
                               cornu_array(b, CORNU_STRING, 2, 2), cornu_array_from(n, type) };
    const CornuArray   y[] = { cornu_array_from(difference, type), cornu_array_from(sum, type) };
    expect_ok(cornu_weight_write(cornu_model_weight(model, 0),
                                 cornu_array_from((void *)(uintptr_t)table,
                                                  cornu_type(CORNU_F32, 3, 3))));
    expect_ok(cornu_predict_on_batch_many(model, x, y));
    for (int i = 0; i < 12; i++) {
        assert_true(difference[i] == table[of_a[i / 3]][i % 3] - table[of_b[i / 3]][i % 3]);
        assert_true(sum[i] == table[of_a[i / 3]][i % 3] + n[i]);
    }
}

static void in_models(void **state)
{
    char path[64];
    (void)state;
    snprintf(path, sizeof path, "/tmp/cornu-text-%d.keras", (int)getpid());
    for (int built = 0; built < 2; built++) {
        CornuModel *model = nested(built);
        assert_string_equal(cornu_model_weight(model, 0)->path, "inner/words/embeddings");
        expect_looked_up(model);
        expect_ok(cornu_model_save(model, path));
        CornuModel *again = cornu_model_load(path);
        if (!again) fail_msg("%s", cornu_error_message());
        expect_looked_up(again);
        cornu_model_free(again);
        cornu_model_free(model);
        remove(path);
    }
    /* What is computed in the step cannot be looked up. */
    CornuModel  *inner = cornu_sequential(.input_shape = { 2 });
    CornuSymbol *x = cornu_input(.shape = { 2 });
    expect_ok(cornu_model_add(inner, cornu_hashing(4)));
    expect_ok(cornu_model_add(inner, cornu_embedding(4, 2)));
    assert_null(cornu_call(cornu_as_layer(inner), cornu_call(cornu_dense(2), x)));
    assert_non_null(strstr(cornu_error_message(), "runs on the host before the step"));
    cornu_error_take();
    cornu_model_free(inner);
}

/* An operation that moves elements runs where strings are; others refuse them. */
static void through_operations(void **state)
{
    static const char *words[] = { "x", "?", "y" }, *pairs[] = { "y", "x", "x", "y", "?", "y" };
    static const float want[] = { 1, 1, 2, 0, 2, 2 };     /* the second of the pair, the word */
    float              found[6];
    (void)state;
    CornuSymbol *word = cornu_input(.scalar = true, .dtype = CORNU_STRING);
    CornuSymbol *pair = cornu_input(.shape = { 2 }, .dtype = CORNU_STRING);
    CornuSymbol *column = cornu_operation("expand_dims", "{\"axis\": -1}", word);
    CornuSymbol *joined = cornu_operation("concatenate", "{\"args\": [[null, null], -1]}", column,
                                          pair);
    CornuSymbol *turned = cornu_operation("flip", "{\"args\": [null, 1]}", joined);
    CornuSymbol *ends = cornu_operation("get_item", "{\"args\": [null, [{\"class_name\": "
        "\"__slice__\", \"config\": {\"start\": null, \"stop\": null, \"step\": null}}, "
        "{\"class_name\": \"__slice__\", \"config\": {\"start\": null, \"stop\": null, "
        "\"step\": 2}}]]}", turned);
    CornuModel *model = cornu_model(.inputs = { word, pair }, .outputs = {
        cornu_call(cornu_string_lookup(.vocabulary = cornu_texts("x", "y")), ends) });
    if (!model) fail_msg("%s", cornu_error_message());
    const CornuArray x[] = { cornu_array(words, CORNU_STRING, 3),
                             cornu_array(pairs, CORNU_STRING, 3, 2) };
    const CornuArray y = cornu_array(found, CORNU_F32, 3, 2);
    expect_ok(cornu_predict_on_batch_many(model, x, &y));
    for (int i = 0; i < 6; i++) assert_true(found[i] == want[i]);
    cornu_model_free(model);
    assert_null(cornu_operation("exp", NULL, cornu_input(.shape = { 2 }, .dtype = CORNU_STRING)));
    assert_int_equal(cornu_error_take(), CORNU_ERR_DTYPE);
    assert_non_null(strstr(cornu_error_message(), "has strings, expected numbers"));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(of_keras), cmocka_unit_test(saved_again),
                                        cmocka_unit_test(refused),
                                        cmocka_unit_test(in_models),
                                        cmocka_unit_test(through_operations) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
