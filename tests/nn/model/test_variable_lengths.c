/* Extents that differ from batch to batch: models whose inputs have CORNU_NONE against real Keras
 * (tests/golden/lengths) on every device; the number of rows computed; the steps kept. */
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../nn/saving/files_internal.h"
#include "../../../nn/model/model_internal.h"
#include "../golden.h"

static const char *const devices[] = { "reference", "cpu", "tpu" };
enum { DEVICES = 3, LENGTHS = 3, MOST = 4096 };

static char folder[] = "/tmp/cornu-lengths-XXXXXX";

/* ---- Against Keras ---- */

static CornuArray numbered(Golden *golden, const char *name, const char *prefix, int i)
{
    char text[32];
    snprintf(text, sizeof text, "%s%d", prefix, i);
    return golden_array(golden, name, text);
}

static CornuArray input_of(Golden *golden, const char *name, int length, int i)
{
    char text[32];
    snprintf(text, sizeof text, "x%d_%d", length, i);
    return golden_array(golden, name, text);
}

static CornuModel *model_of(Golden *golden, const char *name)
{
    const json_t *about = json_object_get(golden->cases, name);
    CornuModel   *model = cornu__model_from_config(json_object_get(about, "architecture"), NULL);
    if (!model) fail_msg("%s: %s", name, cornu_error_message());
    for (int i = 0; i < cornu_model_weight_count(model); i++)
        expect_ok(cornu_weight_write(cornu_model_weight(model, i),
                                     numbered(golden, name, "w", i)));
    return model;
}

static void check_shape(const char *name, CornuShape got, const json_t *want)
{
    CornuText text;
    bool      same = (size_t)got.rank == json_array_size(want);
    for (int i = 0; i < got.rank && same; i++) {
        const json_t *extent = json_array_get(want, (size_t)i);
        same = got.extent[i] == (json_is_null(extent) ? CORNU_NONE : json_integer_value(extent));
    }
    if (!same)
        fail_msg("%s gives %s, Keras has %s", name, cornu_shape_print(&text, got),
                 json_dumps(want, 0));
}

/* By predict_on_batch and by predict, which may use other batch sizes. */
static void check_predictions(Golden *golden, const char *name, CornuModel *model)
{
    static float got[MOST];
    for (int n = 0; n < LENGTHS; n++) {
        const CornuArray want = numbered(golden, name, "y", n);
        const CornuArray to = cornu_array_from(got, want.type);
        CornuArray       x[2] = { input_of(golden, name, n, 0), input_of(golden, name, n, 1) };
        char             what[64];
        assert_true(cornu_type_count(want.type) <= MOST);
        snprintf(what, sizeof what, "%s, length %d", name, n);
        if (cornu_predict_on_batch_many(model, x, &to))
            fail_msg("%s: %s", what, cornu_error_message());
        expect_near(what, got, want, 2e-5);
        memset(got, 0, sizeof got);
        expect_ok(cornu_predict(model, .xs = { x[0], x[1] }, .batch_size = 2, .to = to,
                                .verbose = CORNU_SILENT));
        expect_near(what, got, want, 2e-5);
    }
}

/* Saved models load unchanged. */
static void check_files(Golden *golden, const char *name, CornuModel *model)
{
    static const char *const suffixes[] = { "safetensors", "keras" };
    for (int i = 0; i < 2; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/a.%s", folder, suffixes[i]);
        const CornuStatus saved = cornu_model_save(model, path);
        if (i && saved == CORNU_ERR_UNSUPPORTED) continue;   /* without libhdf5 */
        expect_ok(saved);
        CornuModel *loaded = cornu_model_load(path);
        if (!loaded) fail_msg("%s", cornu_error_message());
        for (int k = 0; k < cornu_model_input_count(model); k++)
            assert_true(cornu_shape_equal(cornu_symbol_shape(cornu_model_input(model, k)),
                                          cornu_symbol_shape(cornu_model_input(loaded, k))));
        expect_ok(cornu_compile(loaded));
        check_predictions(golden, name, loaded);
        cornu_model_free(loaded);
        unlink(path);
    }
}

static void models_match_keras(void **state)
{
    const char *name;
    json_t     *about;
    Golden      golden = golden_open("tests/golden/lengths/models.safetensors");
    (void)state;
    for (int d = 0; d < DEVICES; d++) {
        CornuDevice *device = expect_device(devices[d]);
        json_object_foreach(golden.cases, name, about) {
            if (!json_object_get(about, "shape")) continue;
            CornuModel *model = model_of(&golden, name);
            check_shape(name, cornu_model_output_shape(model), json_object_get(about, "shape"));
            if (d == 0) check_files(&golden, name, model);
            expect_ok(cornu_compile(model, .device = device));
            check_predictions(&golden, name, model);
            cornu_model_free(model);
        }
        cornu_device_close(device);
    }
    golden_close(&golden);
}

/* A batch of another length in each step. */
static void training_matches_keras(void **state)
{
    Golden golden = golden_open("tests/golden/lengths/models.safetensors");
    (void)state;
    const json_t *losses = json_object_get(json_object_get(golden.cases, "training"), "losses");
    for (int d = 0; d < DEVICES; d++) {
        CornuDevice *device = expect_device(devices[d]);
        CornuModel  *model = model_of(&golden, "training");
        expect_ok(cornu_compile(model, .optimizer = cornu_sgd(.learning_rate = 0.2),
                                .loss = CORNU_MEAN_SQUARED_ERROR, .device = device));
        for (size_t n = 0; n < json_array_size(losses); n++) {
            const double want = json_number_value(json_array_get(losses, n));
            double       loss;
            expect_ok(cornu_model_reset_metrics(model));
            expect_ok(cornu_train_on_batch(model, input_of(&golden, "training", (int)n, 0),
                                           numbered(&golden, "training", "y", (int)n), &loss));
            if (!(fabs(loss - want) <= 2e-5 * want))
                fail_msg("step %zu: loss %.8g, Keras has %.8g", n, loss, want);
        }
        for (int i = 0; i < cornu_model_weight_count(model); i++) {
            float            values[128];
            const CornuArray want = numbered(&golden, "training", "after", i);
            expect_ok(cornu_weight_read(cornu_model_weight(model, i),
                                        cornu_array_from(values, want.type)));
            expect_near("weight", values, want, 2e-5);
        }
        cornu_model_free(model);
        cornu_device_close(device);
    }
    golden_close(&golden);
}

static CornuModel *images(void)
{
    CornuModel *model = cornu_sequential(.name = "images", .input_shape = { -1, CORNU_NONE, 3 });
    cornu_model_add(model, cornu_conv2d(4, 3));
    cornu_model_add(model, cornu_global_average_pooling2d());
    cornu_model_add(model, cornu_dense(2));
    return model;
}

static void the_summary_says_none(void **state)
{
    CornuModel *model = images();
    (void)state;
    assert_non_null(setlocale(LC_ALL, "C.UTF-8"));
    expect_ok(cornu_summary(model, .line_length = 80, .print_fn = expect_file,
                            .print_context = "tests/golden/lengths/summary.txt"));
    cornu_model_free(model);
}

/* fit, evaluate and predict with data of one length, then of another. */
static void each_call_has_its_length(void **state)
{
    static float x[40 * 12], y[40], to[40];
    (void)state;
    for (int i = 0; i < 40 * 12; i++) x[i] = (float)(i % 7) / 7.0f;
    for (int i = 0; i < 40; i++) y[i] = (float)(i % 3);
    CornuModel *model = cornu_sequential(.input_shape = { CORNU_NONE, 2 });
    cornu_model_add(model, cornu_lstm(4));
    cornu_model_add(model, cornu_dense(1));
    expect_ok(cornu_compile(model, .loss = CORNU_MEAN_SQUARED_ERROR));
    for (int64_t steps = 6; steps >= 2; steps -= 2) {
        const CornuArray in = cornu_array(x, CORNU_F32, 40, steps, 2);
        const CornuArray labels = cornu_array(y, CORNU_F32, 40);
        double           loss = NAN;
        CornuHistory    *history = cornu_fit(model, .x = in, .y = labels, .verbose = CORNU_SILENT,
                                             .validation_data = { .x = in, .y = labels });
        if (!history) fail_msg("%s", cornu_error_message());
        cornu_history_free(history);
        expect_ok(cornu_evaluate(model, .x = in, .y = labels, .results = &loss,
                                 .verbose = CORNU_SILENT));
        assert_true(isfinite(loss));
        expect_ok(cornu_predict(model, .x = in, .to = cornu_array(to, CORNU_F32, 40, 1),
                                .verbose = CORNU_SILENT));
    }
    const float short_x[2] = { 0 };
    expect_error(cornu_predict_on_batch(model, cornu_array((void *)(uintptr_t)short_x, CORNU_F32, 1,
                                                           1, 1, 2),
                                        cornu_array(to, CORNU_F32, 1, 1)),
                 CORNU_ERR_SHAPE, "the model's input (None, None, 2)");
    cornu_model_free(model);
}

/* ---- Invalid use ---- */

static void expect_refusal(CornuLayer *first, CornuLayer *second, const char *part)
{
    CornuModel *model = cornu_sequential(.input_shape = { CORNU_NONE, 4 });
    CornuStatus status = cornu_model_add(model, first);
    if (!status && second) status = cornu_model_add(model, second);
    expect_error(status, CORNU_ERR_SHAPE, part);
    cornu_model_free(model);
}

static void weights_need_known_extents(void **state)
{
    (void)state;
    expect_refusal(cornu_flatten(), cornu_dense(3),
                   "dense: kernel would be (None, 3), which depends on an unknown extent");
    expect_refusal(cornu_permute({ 2, 1 }), cornu_lstm(3),
                   "lstm: lstm_cell/kernel would be (None, 12)");
    expect_refusal(cornu_prelu(), NULL, "p_re_lu: alpha would be (None, 4)");
    expect_refusal(cornu_permute({ 2, 1 }), cornu_batch_normalization(), "batch_normalization: ");
    expect_refusal(cornu_reshape({ 4 }), NULL, "reshape");

    assert_null(cornu_sequential(.input_shape = { -2, 4 }));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "from 1 to 2147483647, or CORNU_NONE");
}

/* A length that a layer does not support is refused when it comes, naming the layer. */
static void a_length_may_be_too_short(void **state)
{
    float x[4 * 3] = { 0 }, to[2];
    (void)state;
    CornuModel *model = cornu_sequential(.input_shape = { CORNU_NONE, 4 });
    cornu_model_add(model, cornu_conv1d(2, 5));
    cornu_model_add(model, cornu_global_max_pooling1d());
    expect_ok(cornu_compile(model));
    expect_error(cornu_predict_on_batch(model, cornu_array(x, CORNU_F32, 1, 3, 4),
                                        cornu_array(to, CORNU_F32, 1, 2)), CORNU_ERR_SHAPE,
                 "conv1d");
    cornu_error_take();
    cornu_model_free(model);
}

/* ---- Rows that are computed ---- */

/* The flops of the last program compiled tell its number of rows. */
static int64_t rows_computed(CornuModel *model, int64_t rows, int64_t batch_size)
{
    static float x[64 * 3], to[64 * 2];
    int64_t      told = 0;
    expect_ok(cornu_predict(model, .x = cornu_array(x, CORNU_F32, rows, 3),
                            .batch_size = batch_size,
                            .to = cornu_array(to, CORNU_F32, rows, 2), .verbose = CORNU_SILENT));
    for (const CornuStep *step = model->steps; step; step = step->next)
        if (step->mode == CORNU_STEP_PREDICT) {
            told = step->x_types[0].shape.extent[0];
            break;
        }
    return told;
}

static void few_rows_are_not_padded_to_a_batch(void **state)
{
    static const struct { const char *device; int64_t rows, batch_size, computed; } cases[] = {
        { "cpu", 1, 0, 1 }, { "cpu", 2, 0, 2 }, { "cpu", 3, 0, 4 }, { "cpu", 17, 0, 32 },
        { "cpu", 32, 0, 32 }, { "cpu", 33, 0, 1 }, { "cpu", 40, 0, 8 }, { "cpu", 5, 6, 6 },
        { "tpu", 1, 0, 8 }, { "tpu", 9, 0, 16 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CornuDevice *device = cornu_device_open(cases[i].device);
        CornuModel  *model = cornu_sequential(.input_shape = { 3 });
        cornu_model_add(model, cornu_dense(2));
        expect_ok(cornu_compile(model, .device = device));
        const int64_t computed = rows_computed(model, cases[i].rows, cases[i].batch_size);
        if (computed != cases[i].computed)
            fail_msg("%s: %lld rows are computed as %lld, expected %lld", cases[i].device,
                     (long long)cases[i].rows, (long long)computed, (long long)cases[i].computed);
        cornu_model_free(model);
        cornu_device_close(device);
    }
    CornuModel *fixed = cornu_sequential(.input_shape = { 3 }, .batch_size = 32);
    cornu_model_add(fixed, cornu_dense(2));
    expect_ok(cornu_compile(fixed));
    assert_int_equal(rows_computed(fixed, 1, 0), 32);
    cornu_model_free(fixed);
}

/* A row is the same whatever rows are computed with it. */
static void rows_do_not_depend_on_their_number(void **state)
{
    static float x[32 * 6 * 6], all[32 * 3], some[32 * 3];
    (void)state;
    for (int i = 0; i < 32 * 36; i++) x[i] = sinf(0.37f * (float)i);
    CornuModel *model = cornu_sequential(.input_shape = { 6, 6, 1 });
    cornu_model_add(model, cornu_conv2d(8, 3, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_flatten());
    cornu_model_add(model, cornu_dense(3, .activation = CORNU_SOFTMAX));
    expect_ok(cornu_compile(model));
    expect_ok(cornu_predict(model, .x = cornu_array(x, CORNU_F32, 32, 6, 6, 1),
                            .to = cornu_array(all, CORNU_F32, 32, 3), .verbose = CORNU_SILENT));
    for (int64_t rows = 1; rows < 32; rows = 2 * rows + 1) {
        expect_ok(cornu_predict(model, .x = cornu_array(x, CORNU_F32, rows, 6, 6, 1),
                                .to = cornu_array(some, CORNU_F32, rows, 3),
                                .verbose = CORNU_SILENT));
        expect_near("rows", some, cornu_array(all, CORNU_F32, rows, 3), 1e-6);
    }
    cornu_model_free(model);
}

/* ---- Steps that are kept ---- */

static int kept_steps(const CornuModel *model)
{
    int count = 0;
    for (const CornuStep *step = model->steps; step; step = step->next) count++;
    return count;
}

static void count_compiled(void *context, CornuLogLevel level, const char *message)
{
    (void)level;
    *(int *)context += strstr(message, "compiled a program") != NULL;
}

static void few_lengths_are_kept(void **state)
{
    static float x[64 * 2], to[1];
    int          compiled = 0;
    (void)state;
    CornuModel *model = cornu_sequential(.input_shape = { CORNU_NONE, 2 });
    cornu_model_add(model, cornu_global_max_pooling1d());
    cornu_model_add(model, cornu_dense(1));
    expect_ok(cornu_compile(model));
    cornu_set_log(CORNU_LOG_INFO, count_compiled, &compiled);
    for (int round = 0; round < 2; round++)
        for (int64_t steps = 1; steps <= 4; steps++)
            expect_ok(cornu_predict_on_batch(model, cornu_array(x, CORNU_F32, 1, steps, 2),
                                             cornu_array(to, CORNU_F32, 1, 1)));
    assert_int_equal(compiled, 4);
    /* Length 1 is used repeatedly, so that its step is never evicted. */
    for (int64_t steps = 5; steps <= 60; steps++) {
        expect_ok(cornu_predict_on_batch(model, cornu_array(x, CORNU_F32, 1, steps, 2),
                                         cornu_array(to, CORNU_F32, 1, 1)));
        expect_ok(cornu_predict_on_batch(model, cornu_array(x, CORNU_F32, 1, 1, 2),
                                         cornu_array(to, CORNU_F32, 1, 1)));
    }
    assert_int_equal(compiled, 60);
    assert_int_equal(kept_steps(model), 8);
    /* The device keeps few unused programs, too. */
    expect_ok(cornu_predict_on_batch(model, cornu_array(x, CORNU_F32, 1, 5, 2),
                                     cornu_array(to, CORNU_F32, 1, 1)));
    cornu_set_log(CORNU_LOG_INFO, NULL, NULL);
    assert_int_equal(compiled, 61);
    cornu_model_free(model);
}

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_match_keras),
        cmocka_unit_test(training_matches_keras),
        cmocka_unit_test(the_summary_says_none),
        cmocka_unit_test(each_call_has_its_length),
        cmocka_unit_test(weights_need_known_extents),
        cmocka_unit_test(a_length_may_be_too_short),
        cmocka_unit_test(few_rows_are_not_padded_to_a_batch),
        cmocka_unit_test(rows_do_not_depend_on_their_number),
        cmocka_unit_test(few_lengths_are_kept),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
