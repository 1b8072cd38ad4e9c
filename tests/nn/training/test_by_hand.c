/* Steps that are recorded by hand: operations by name, losses, metrics and optimizers from JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../../../nn/cornu.h"
#include "../../expect.h"

static CornuDevice *device;

static int open_device(void **state)
{
    (void)state;
    device = cornu_device_open("cpu");
    return device == NULL;
}

static int close_device(void **state)
{
    (void)state;
    cornu_device_close(device);
    return 0;
}

static void expect_floats(CornuGraph *graph, CornuTensor *y, const float *wanted)
{
    float            found[32];
    const CornuType  type = cornu_tensor_type(y);
    expect_ok(cornu_run(graph, &y, 1, &(CornuArray){ type, found }));
    for (int64_t i = 0; i < cornu_type_count(type); i++)
        assert_float_equal(found[i], wanted[i], 1e-5);
}

/* x = (1, 2, 3; 4, 5, 6) */
static CornuTensor *matrix(CornuGraph *graph)
{
    CornuTensor *x = cornu_graph_input(graph, cornu_type(CORNU_F32, 2, 3));
    expect_ok(cornu_graph_feed(x, cornu_array(((float[]){ 1, 2, 3, 4, 5, 6 }), CORNU_F32, 2, 3)));
    return x;
}

static void operations_by_name(void **state)
{
    (void)state;
    CornuGraph     *graph = cornu_graph_create(device);
    CornuTensor    *x = matrix(graph), *out[CORNU_MAX_LAYER_TENSORS];
    const CornuCall call = { .graph = graph };
    int             count;
    expect_ok(cornu_operation_record(&call, "sum", "{\"axis\": 0}", &x, 1, out, &count));
    assert_int_equal(count, 1);
    expect_floats(graph, out[0], (float[]){ 5, 7, 9 });
    expect_ok(cornu_operation_record(&call, "subtract", "{\"args\": [10.0, null]}", &x, 1, out,
                                     &count));
    expect_floats(graph, out[0], (float[]){ 9, 8, 7, 6, 5, 4 });
    expect_ok(cornu_operation_record(&call, "split", "{\"args\": [null, 3], \"axis\": 1}", &x, 1,
                                     out, &count));
    assert_int_equal(count, 3);
    expect_floats(graph, out[2], (float[]){ 3, 6 });
    expect_ok(cornu_operation_record(&call, "sqrt", "{\"args\": [[4.0, 9.0]]}", NULL, 0, out,
                                     &count));
    expect_floats(graph, out[0], (float[]){ 2, 3 });
    cornu_graph_free(graph);
}

static void wrong_operations(void **state)
{
    (void)state;
    CornuGraph     *graph = cornu_graph_create(device), *other = cornu_graph_create(device);
    CornuTensor    *x = matrix(graph), *out[CORNU_MAX_LAYER_TENSORS];
    const CornuCall call = { .graph = graph }, elsewhere = { .graph = other };
    int             count = 7;
    expect_error(cornu_operation_record(&call, "summ", NULL, &x, 1, out, &count),
                 CORNU_ERR_ARGUMENT, "no operation \"summ\"");
    assert_int_equal(count, 0);
    expect_error(cornu_operation_record(&call, "sum", "{\"axis\": 2}", &x, 1, out, &count),
                 CORNU_ERR_SHAPE, "sum: axis is 2, the tensor has 2 axes");
    expect_error(cornu_operation_record(&call, "max", "{\"initial\": 3}", &x, 1, out, &count),
                 CORNU_ERR_UNSUPPORTED, "max: the argument initial, 3, is not available");
    expect_error(cornu_operation_record(&call, "sum", "{\"axes\": 0}", &x, 1, out, &count),
                 CORNU_ERR_ARGUMENT, "there is no argument \"axes\"");
    expect_error(cornu_operation_record(&elsewhere, "sum", NULL, &x, 1, out, &count),
                 CORNU_ERR_ARGUMENT, "sum: tensor 0 is of another graph");
    expect_error(cornu_operation_record(&call, "sum", NULL, &(CornuTensor *){ NULL }, 1, out,
                                        &count), CORNU_ERR_ARGUMENT, "sum: tensor 0 is NULL");
    expect_error(cornu_operation_record(&call, "sum", NULL, NULL, 0, out, &count),
                 CORNU_ERR_ARGUMENT, "sum");
    cornu_graph_free(graph);
    cornu_graph_free(other);
}

/* y_true (0, 1; 0, 0), y_pred (1, 1; 1, 0): squares (1, 0; 1, 0), as in Keras' documentation. */
static void losses_and_metrics(void **state)
{
    (void)state;
    CornuGraph  *graph = cornu_graph_create(device);
    CornuTensor *y = cornu_graph_input(graph, cornu_type(CORNU_U8, 2, 2));
    CornuTensor *p = cornu_graph_input(graph, cornu_type(CORNU_F32, 2, 2));
    CornuTensor *w = cornu_graph_input(graph, cornu_type(CORNU_F32, 2));
    expect_ok(cornu_graph_feed(y, cornu_array(((uint8_t[]){ 0, 1, 0, 0 }), CORNU_U8, 2, 2)));
    expect_ok(cornu_graph_feed(p, cornu_array(((float[]){ 1, 1, 1, 0 }), CORNU_F32, 2, 2)));
    expect_ok(cornu_graph_feed(w, cornu_array(((float[]){ 0.7f, 0.3f }), CORNU_F32, 2)));
    CornuLoss *loss = cornu_loss_from_json("\"mean_squared_error\"");
    CornuLoss *sum = cornu_loss_from_json("{\"class_name\": \"MeanSquaredError\", \"config\": "
                                          "{\"reduction\": \"sum\"}}");
    expect_floats(graph, cornu_loss_record(loss, y, p, NULL), (float[]){ 0.5f });
    expect_floats(graph, cornu_loss_record(loss, y, p, w), (float[]){ 0.25f });
    expect_floats(graph, cornu_loss_record(sum, y, p, NULL), (float[]){ 1.0f });
    expect_floats(graph, cornu_loss_record_values(loss, y, p), (float[]){ 0.5f, 0.5f });
    expect_failure(cornu_loss_record(loss, w, matrix(graph), NULL), CORNU_ERR_SHAPE,
                   "mean_squared_error: y_true is");

    CornuMetric       *metric = cornu_metric_from_json("\"mse\"");
    CornuMetricStates *states = cornu_metric_states_create(metric, device);
    double             value = -1.0;
    expect_ok(cornu_metric_states_result(states, &value));
    assert_true(value == 0.0);
    expect_ok(cornu_metric_states_record(states, y, p, NULL));
    expect_ok(cornu_run(graph, NULL, 0, NULL));
    expect_ok(cornu_graph_feed(p, cornu_array(((float[]){ 0, 1, 0, 0 }), CORNU_F32, 2, 2)));
    expect_ok(cornu_run(graph, NULL, 0, NULL));
    expect_ok(cornu_metric_states_result(states, &value));
    assert_int_equal(cornu_metric_states_count(states), 1);
    assert_float_equal(value, 0.25, 1e-9);
    expect_ok(cornu_metric_states_reset(states));
    expect_ok(cornu_metric_states_result(states, &value));
    assert_true(value == 0.0);
    cornu_graph_free(graph);
    cornu_metric_states_free(states);
    cornu_metric_free(metric);
    cornu_loss_free(loss);
    cornu_loss_free(sum);
}

/* One step of SGD on a kernel whose constraint is to be at least 0: w = max(1 - 0.5 d_w, 0). */
static void weights_have_constraints(void **state)
{
    (void)state;
    CornuModel *model = cornu_sequential(.input_shape = { 2 });
    cornu_model_add(model, cornu_dense(1, .no_bias = true, .kernel_initializer = cornu_ones(),
                                       .kernel_constraint = cornu_non_neg()));
    CornuWeight    *kernel = cornu_model_weight(model, 0);
    CornuOptimizer *sgd = cornu_optimizer_from_json("{\"class_name\": \"SGD\", \"config\": "
                                                    "{\"learning_rate\": 0.5}}");
    expect_error(cornu_optimizer_build_weights(sgd, &kernel, 1), CORNU_ERR_ARGUMENT,
                 "is on no device");
    expect_ok(cornu_model_place(model, device));
    assert_ptr_equal(cornu_model_device(model), device);
    expect_ok(cornu_optimizer_build_weights(sgd, &kernel, 1));
    CornuGraph  *graph = cornu_graph_create(device);
    CornuTensor *x = cornu_graph_input(graph, cornu_type(CORNU_F32, 1, 2));
    CornuTensor *w = cornu_read(graph, kernel->variable), *d_w;
    CornuTensor *y = cornu_op_sum(cornu_model_call(model, x, &(CornuCall){ .training = true }));
    float        found[2];
    expect_ok(cornu_gradients(y, &w, 1, &d_w));
    expect_ok(cornu_optimizer_apply(sgd, graph, &d_w));
    expect_ok(cornu_graph_feed(x, cornu_array(((float[]){ 1, 3 }), CORNU_F32, 1, 2)));
    expect_ok(cornu_run(graph, NULL, 0, NULL));
    expect_ok(cornu_weight_read(kernel, cornu_array(found, CORNU_F32, 2, 1)));
    assert_float_equal(found[0], 0.5, 1e-6);
    assert_true(found[1] == 0.0f);
    cornu_graph_free(graph);
    cornu_optimizer_free(sgd);
    cornu_model_free(model);
}

static void wrong_objects(void **state)
{
    (void)state;
    expect_failure(cornu_optimizer_from_json("\"adams\""), CORNU_ERR_ARGUMENT, "adams");
    expect_failure(cornu_loss_from_json("{\"class_name\": "), CORNU_ERR_FORMAT, "JSON");
    expect_failure(cornu_metric_from_json(""), CORNU_ERR_FORMAT, "expected one JSON value");
    expect_failure(cornu_metric_from_json("1, 2"), CORNU_ERR_FORMAT, "expected one JSON value");
    CornuModel *model = cornu_sequential(.name = "bare");
    cornu_model_add(model, cornu_dense(1));
    expect_error(cornu_model_place(model, device), CORNU_ERR_ARGUMENT, "bare: not built");
    cornu_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_by_name),  cmocka_unit_test(wrong_operations),
        cmocka_unit_test(losses_and_metrics),  cmocka_unit_test(weights_have_constraints),
        cmocka_unit_test(wrong_objects),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
