/* The page of a mesh: how it cuts weights, what shards exchange, memory and modelled time. */
#include "../../../nn/explain/explain_internal.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../nn/cornu.h"

enum { FEATURES = 64, UNITS = 256, BATCH = 16 };

static CornuModel *mlp(void)
{
    CornuModel *model = cornu_sequential(.name = "mlp", .input_shape = { FEATURES });
    cornu_model_add(model, cornu_dense(UNITS, .activation = CORNU_RELU, .name = "up"));
    cornu_model_add(model, cornu_dense(FEATURES, .name = "down"));
    return model;
}

/* Columns, then rows; of the biases the first is cut. */
static const CornuLayoutRow cut[] = { { "up/kernel", { NULL, "model" } },
                                      { "up/bias", { "model" } },
                                      { "down/kernel", { "model" } }, { 0 } };

static CornuExplanation *explain(CornuModel *model, const char *device, CornuMesh mesh,
                                 const CornuLayoutRow *rows)
{
    return cornu_explain(model, .device_name = device, .batch_size = BATCH, .mesh = mesh,
                         .layout_map = rows);
}

static void assert_says(const char *text, const char *line)
{
    if (!strstr(text, line)) fail_msg("expected \"%s\" in\n%s", line, text);
}

/* What each shard has and exchanges, counted by hand: 8 rows of 64 f32 are summed forward over the
 * 4 shards of "model", and no gradient is, as the input is not trained; the gradients of kernels
 * and biases are summed over the 2 of "batch". */
static void test_page(void **state)
{
    (void)state;
    CornuModel       *model = mlp();
    CornuExplanation *e = explain(model, "tpu:v3-8", cornu_device_mesh(.shape = { 2, 4 }), cut);
    char             *text = cornu_explanation_to_text(e, CORNU_EXPLAIN_MESH);
    if (!text) fail_msg("%s", cornu_error_message());
    assert_says(text, "mlp on the mesh (batch=2, model=4): a training step of 16 samples, in "
                      "mixed_bfloat16.\n8 shards on 4 chips of a TPU v3-8, 2x2; times are "
                      "modelled.\nThe samples are dealt over batch.\n"
                      "Cut along batch: slice 0 on 0 1 2 3, slice 1 on 4 5 6 7\n"
                      "Cut along model: slice 0 on 0 4, slice 1 on 1 5, slice 2 on 2 6, "
                      "slice 3 on 3 7\n");
    assert_says(text, "\nup/kernel                                 f32 (64, 256)      (-, model) "
                      "      (64, 64)          16.4\n");
    assert_says(text, "\nup/bias                                   f32 (256,)         (model)    "
                      "      (64,)              0.3\n");
    assert_says(text, "\ndown/kernel                               f32 (256, 64)      (model, -) "
                      "      (64, 64)          16.4\n");
    assert_says(text, "\ndown/bias                                 f32 (64,)          whole      "
                      "      all                0.3\n");
    assert_says(text, "A shard has 0.0 of the 0.1 MB of all weights.\n");
    assert_says(text, "\ndown                              all_reduce       model              1 "
                      "     4       2.0 ");
    assert_says(text, ", of 17180 of HBM. ");
    assert_says(text, "would take 0.03 at once.\n");
    assert_says(text, "\nModelled step: ");
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        assert_true(strcspn(line, "\n") <= 100);
    free(text);
    cornu_explanation_free(e);
    cornu_model_free(model);
}

static const json_t *find(const json_t *list, const char *key, const char *value)
{
    size_t  i;
    json_t *row;
    json_array_foreach((json_t *)list, i, row)
        if (!strcmp(json_string_value(json_object_get(row, key)), value)) return row;
    fail_msg("no %s is %s", key, value);
    return NULL;
}

static int64_t number(const json_t *row, const char *key)
{
    return json_integer_value(json_object_get(row, key));
}

static void test_json(void **state)
{
    (void)state;
    CornuModel       *model = mlp();
    CornuExplanation *e = explain(model, "tpu:v3-8", cornu_device_mesh(.shape = { 2, 4 }), cut);
    char             *text = cornu_explanation_to_json(e);
    json_t           *all = json_loads(text, 0, NULL), *mesh = json_object_get(all, "mesh");
    const json_t     *up = find(json_object_get(mesh, "weights"), "path", "up/kernel");
    const json_t     *layout = json_object_get(up, "layout");
    const json_t     *sum = find(json_object_get(mesh, "collectives"), "layer", "down");
    assert_int_equal(number(up, "bytes"), 64 * 64 * 4);
    assert_string_equal(json_string_value(json_object_get(up, "slice")), "f32 (64, 64)");
    assert_true(json_is_null(json_array_get(layout, 0)));
    assert_string_equal(json_string_value(json_array_get(layout, 1)), "model");
    assert_int_equal(number(sum, "bytes"), 8 * 64 * 4);
    assert_int_equal(number(sum, "group"), 4);
    assert_int_equal(number(sum, "groups"), 2);
    assert_int_equal(number(mesh, "gradient_bytes"), 4 * (64 * 64 * 2 + 64 + 64));
    json_decref(all);
    free(text);
    cornu_explanation_free(e);
    cornu_model_free(model);
}

/* What the steps of a loop exchange, by hand: the hidden state of 8 rows of 64 units in bfloat16,
 * and backwards the sum of its gradient in f32, in each of 10; and what that leaves on a shard. */
static void test_loops(void **state)
{
    (void)state;
    enum { STEPS = 10, BF16 = 2, F32 = 4 };
    int64_t activations[2];
    for (int split = 0; split < 2; split++) {
        CornuModel *model = cornu_sequential(.name = "series", .input_shape = { STEPS, FEATURES });
        cornu_model_add(model, cornu_lstm(64, .return_sequences = true, .name = "lstm"));
        const CornuMesh   mesh = cornu_device_mesh(.shape = { 2, split ? 4 : 1 });
        CornuLayoutRow   *rows = cornu_default_layout(model, mesh);
        CornuExplanation *e = explain(model, "tpu:v3-8", mesh, rows);
        char             *text = cornu_explanation_to_json(e);
        json_t           *all = json_loads(text, 0, NULL);
        json_t           *list = json_object_get(json_object_get(all, "mesh"), "collectives");
        activations[split] = e->memory.uses[CORNU_USE_ACTIVATIONS].now;
        for (int back = 0; back < 2 && split; back++) {
            const json_t *one = find(list, "layer", back ? "lstm/gradient" : "lstm");
            assert_string_equal(json_string_value(json_object_get(one, "op")),
                                back ? "reduce_scatter" : "all_gather");
            assert_int_equal(number(one, "times"), STEPS);
            assert_int_equal(number(one, "bytes"), STEPS * 8 * 64 * (back ? F32 : BF16));
            assert_true(json_number_value(json_object_get(one, "links_s")) > STEPS * 1e-6);
        }
        json_decref(all);
        free(text);
        cornu_explanation_free(e);
        cornu_layout_free(rows);
        cornu_model_free(model);
    }
    assert_true(activations[1] < activations[0] / 2);
}

/* Without a mesh, no page of one. */
static void test_without(void **state)
{
    (void)state;
    CornuModel       *model = mlp();
    CornuExplanation *e = cornu_explain(model, .device_name = "cpu", .no_run = true);
    char             *text;
    assert_null(cornu_explanation_to_text(e, CORNU_EXPLAIN_MESH));
    assert_int_equal(cornu_error_take(), CORNU_ERR_ARGUMENT);
    text = cornu_explanation_to_json(e);
    assert_says(text, "\"mesh\": null");
    free(text);
    cornu_explanation_free(e);
    cornu_model_free(model);
}

/* On another kind of device a page without times; more shards than slices are listed for. */
static void test_others(void **state)
{
    (void)state;
    CornuModel       *model = mlp();
    CornuExplanation *e = explain(model, "cpu", cornu_device_mesh(.shape = { 1, 32 }), cut);
    char             *text = cornu_explanation_to_text(e, CORNU_EXPLAIN_MESH);
    assert_says(text, "Cut along model: shard s has slice s / 1 % 32\n");
    assert_null(strstr(text, "HBM"));
    free(text);
    cornu_explanation_free(e);
    cornu_model_free(model);
}

static void assert_refuses(CornuModel *model, CornuMesh mesh, const CornuLayoutRow *rows,
                           CornuStatus status, const char *says)
{
    assert_null(explain(model, "tpu:v3-8", mesh, rows));
    if (!strstr(cornu_error_message(), says)) fail_msg("%s", cornu_error_message());
    assert_int_equal(cornu_error_take(), status);
}

static void test_errors(void **state)
{
    (void)state;
    const CornuLayoutRow nothing[] = { { "left/kernel", { "model" } }, { 0 } };
    const CornuLayoutRow odd[] = { { "up/kernel", { "model" } }, { 0 } };
    CornuModel          *model = mlp();
    assert_refuses(model, cornu_device_mesh(.shape = { 2, 4 }), nothing, CORNU_ERR_ARGUMENT,
                   "\"left/kernel\" is for none");
    assert_refuses(model, cornu_device_mesh(.shape = { 1, 3 }), odd, CORNU_ERR_SHAPE,
                   "does not divide into the 3");
    assert_refuses(model, cornu_device_mesh(.shape = { 32, 1 }), NULL, CORNU_ERR_SHAPE, "16");
    cornu_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_page),    cmocka_unit_test(test_json), cmocka_unit_test(test_loops),
        cmocka_unit_test(test_without), cmocka_unit_test(test_others),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
