/* Losses of a program, in files that are read without it: layers that compute them. */
#include "golden_files.h"

#include <stdlib.h>

#include "../../expect.h"
#include "../../skip.h"

enum { ROWS = 10, IN = 6, OUT = 4 };

static float x_data[ROWS][IN], y_data[ROWS][OUT];

static CornuArray x_array(void)
{
    for (int i = 0; i < ROWS * IN; i++) x_data[i / IN][i % IN] = (float)(i * i % 17) / 17.0f;
    return cornu_array(x_data, CORNU_F32, ROWS, IN);
}

static CornuArray y_array(void)
{
    for (int i = 0; i < ROWS * OUT; i++) y_data[i / OUT][i % OUT] = (float)(i * 5 % 7) / 7.0f;
    return cornu_array(y_data, CORNU_F32, ROWS, OUT);
}

static CornuModel *dense_model(void)
{
    CornuModel *model = cornu_sequential(.input_shape = { IN });
    expect_ok(cornu_model_add(model, cornu_dense(OUT)));
    return model;
}

static void train(CornuModel *model)
{
    CornuHistory *history = cornu_fit(model, .x = x_array(), .y = y_array(), .batch_size = 4,
                                      .verbose = CORNU_SILENT);
    if (!history) fail_msg("%s", cornu_error_message());
    cornu_history_free(history);
}

/* A loss of the JSON of a layer of y_true and y_pred that squares 3 (y_true - y_pred). */
static char *layer_of_loss(void)
{
    const CornuType type = cornu_type(CORNU_F32, CORNU_NONE, OUT);
    CornuLayer     *layer = cornu_traced(.class_name = "Mine", .name = "mine");
    CornuSymbol    *truth = cornu_placeholder(type, "t"), *pred = cornu_placeholder(type, "p");
    CornuSymbol    *apart = cornu_operation("subtract", NULL, truth, pred);
    CornuSymbol    *three = cornu_operation("add", NULL, cornu_operation("add", NULL, apart, apart),
                                            apart);
    expect_ok(cornu_traced_add(layer, .inputs = { truth, pred },
                               .outputs = { cornu_operation("square", NULL, three) }));
    char *text = cornu_layer_to_json(layer);
    cornu_layer_free(layer);
    assert_non_null(text);
    return text;
}

static CornuLoss *loss_of(const char *layer, const char *reduction)
{
    static char text[1 << 14];
    snprintf(text, sizeof text, "{\"class_name\": \"function\", \"config\": \"mine\", \"module\": "
             "\"a\", \"registered_name\": \"function\", \"traced\": {\"each_row\": true, "
             "\"reduction\": \"%s\", \"layer\": %s}}", reduction, layer);
    return cornu_loss_from_json(text);
}

/* 9 times the mean squared error, of a program that is not there, also from a file. */
static void layers_are_losses(void **state)
{
    (void)state;
    const char       *path = here("own_loss", ".keras");
    char             *layer = layer_of_loss();
    double            mine, sum, usual;
    const CornuArray  x = x_array(), y = y_array();
    CornuModel       *model = dense_model();
    if (!has_hdf5()) SKIP_FOR(SKIP_HDF5);
    expect_ok(cornu_compile(model, .loss = CORNU_MEAN_SQUARED_ERROR));
    expect_ok(cornu_evaluate(model, .x = x, .y = y, .batch_size = 4, .results = &usual,
                             .verbose = CORNU_SILENT));
    expect_ok(cornu_compile(model, .loss = loss_of(layer, "sum")));
    expect_ok(cornu_evaluate(model, .x = x, .y = y, .batch_size = 10, .results = &sum,
                             .verbose = CORNU_SILENT));
    expect_ok(cornu_compile(model, .loss = loss_of(layer, "sum_over_batch_size")));
    train(model);
    expect_ok(cornu_model_save(model, path));
    expect_ok(cornu_evaluate(model, .x = x, .y = y, .batch_size = 4, .results = &mine,
                             .verbose = CORNU_SILENT));
    cornu_model_free(model);
    assert_true(usual > 0.05);
    assert_float_equal(sum, 9.0 * ROWS * OUT * usual, 1e-4);
    model = expect_model(cornu_model_load_compiled(path, NULL));
    expect_ok(cornu_evaluate(model, .x = x, .y = y, .batch_size = 4, .results = &usual,
                             .verbose = CORNU_SILENT));
    assert_true(usual == mine);
    train(model);
    cornu_model_free(model);
    free(layer);
}

static void others_are_refused(void **state)
{
    (void)state;
    char       *layer = layer_of_loss();
    CornuLayer *weighted = cornu_traced(.class_name = "Weighted", .name = "weighted");
    CornuSymbol *w = cornu_traced_weight(weighted, "{\"name\": \"w\", \"shape\": [4]}");
    CornuSymbol *x = cornu_placeholder(cornu_type(CORNU_F32, CORNU_NONE, OUT), "x");
    expect_ok(cornu_traced_add(weighted, .inputs = { x },
                               .outputs = { cornu_operation("add", NULL, x, w) }));
    char *other = cornu_layer_to_json(weighted);
    cornu_layer_free(weighted);
    expect_failure(loss_of(layer, "none"), CORNU_ERR_FORMAT, "mine: reduction is not");
    expect_failure(loss_of("{}", "sum"), CORNU_ERR_FORMAT, "mine: layer is not a layer");
    expect_failure(loss_of(other, "sum"), CORNU_ERR_ARGUMENT, "a loss has weights (1)");
    CornuModel *model = dense_model();
    expect_ok(cornu_compile(model, .loss = loss_of(layer, "sum")));
    expect_error(cornu_evaluate(model, .x = x_array(), .verbose = CORNU_SILENT,
                                .y = cornu_array(y_data, CORNU_F32, ROWS, 2, 2)),
                 CORNU_ERR_SHAPE, "mine");
    cornu_model_free(model);
    free(other);
    free(layer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_losses),
        cmocka_unit_test(others_are_refused),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
