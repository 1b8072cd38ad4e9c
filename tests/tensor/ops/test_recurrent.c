/*
 * Recurrent ops against Keras (tests/golden/make_recurrent.py): outputs, last states, and gradients
 * with respect to all inputs, on the cpu device and on the tpu device in float32, whose kernels are
 * fused, and on the reference device. Also scans that a user records.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../nn/golden.h"

enum { BATCH = 3, STEPS = 5, UNITS = 6, MOST_WANTED = 6 };

static const double tolerance = 1e-4;   /* relative to the largest element */

/* A case in a graph: its inputs, by name, and its outputs. */
typedef struct {
    Golden      *golden;
    const char  *name;
    CornuGraph  *graph;
    CornuTensor *wanted[MOST_WANTED], *d[MOST_WANTED];
    const char  *names[MOST_WANTED];
    int          wanted_count;
    CornuTensor *loss;
} Case;

static CornuTensor *fed(Case *c, CornuArray array)
{
    CornuTensor *tensor = cornu_graph_input(c->graph, array.type);
    assert_non_null(tensor);
    expect_ok(cornu_graph_feed(tensor, array));
    return tensor;
}

/* An input of the case; gradients with respect to it are compared. */
static CornuTensor *wanted(Case *c, const char *name)
{
    CornuTensor *tensor = fed(c, golden_array(c->golden, c->name, name));
    c->names[c->wanted_count] = name;
    return c->wanted[c->wanted_count++] = tensor;
}

/* Adds a weighted result to the loss and compares its value. */
static void add_result(Case *c, const char *name, CornuTensor *tensor)
{
    char weight[64], what[128];
    snprintf(weight, sizeof weight, "weight_%s", name);
    snprintf(what, sizeof what, "%s/%s", c->name, name);
    if (!tensor) fail_msg("%s: %s", what, cornu_error_message());
    CornuArray   want = golden_array(c->golden, c->name, name);
    CornuTensor *term = cornu_op_sum(cornu_op_multiply(
        tensor, fed(c, golden_array(c->golden, c->name, weight))));
    c->loss = c->loss ? cornu_op_add(c->loss, term) : term;
    float *got = malloc(cornu_type_bytes(want.type));
    expect_ok(cornu_run(c->graph, &tensor, 1, &(CornuArray){ want.type, got }));
    expect_near(what, got, want, tolerance);
    free(got);
}

static void compare_gradients(Case *c)
{
    CornuArray out[MOST_WANTED];
    expect_ok(cornu_gradients(c->loss, c->wanted, c->wanted_count, c->d));
    for (int i = 0; i < c->wanted_count; i++)
        out[i] = (CornuArray){ cornu_tensor_type(c->d[i]),
                               malloc(cornu_type_bytes(cornu_tensor_type(c->d[i]))) };
    expect_ok(cornu_run(c->graph, c->d, c->wanted_count, out));
    for (int i = 0; i < c->wanted_count; i++) {
        char name[64], what[128];
        snprintf(name, sizeof name, "d_%s", c->names[i]);
        snprintf(what, sizeof what, "%s/%s", c->name, name);
        expect_near(what, out[i].data, golden_array(c->golden, c->name, name), tolerance);
        free(out[i].data);
    }
}

static CornuTensor *relu(const void *context, CornuTensor *x)
{
    assert_null(context);
    return cornu_op_relu(x);
}

static CornuTensor *hard_sigmoid(const void *context, CornuTensor *x)
{
    assert_null(context);
    CornuTensor *zero = cornu_op_constant_like(x, 0.0), *one = cornu_op_constant_like(x, 1.0);
    CornuTensor *line = cornu_op_shift(cornu_op_scale(x, 1.0 / 6.0), 0.5);
    return cornu_op_minimum(cornu_op_maximum(line, zero), one);
}

static CornuTensor *mask_of(Case *c)
{
    CornuArray bytes = golden_array(c->golden, NULL, "mask");
    return cornu_op_convert(fed(c, bytes), CORNU_BOOL);
}

/* The h of the last step in the direction of the scan. */
static CornuTensor *last_of(CornuTensor *h, bool reverse)
{
    const int64_t starts[] = { 0, reverse ? 0 : STEPS - 1, 0 }, sizes[] = { BATCH, 1, UNITS };
    return cornu_op_reshape(cornu_op_slice(h, starts, sizes), cornu_shape(BATCH, UNITS));
}

/* x W + b */
static CornuTensor *projected(CornuTensor *x, CornuTensor *kernel, CornuTensor *bias)
{
    return cornu_op_add(cornu_op_matmul(x, kernel), bias);
}

/* Row `row` of a bias (2, 3U). */
static CornuTensor *bias_row(CornuTensor *bias, int64_t row)
{
    const int64_t starts[] = { row, 0 }, sizes[] = { 1, 3 * UNITS };
    return cornu_op_reshape(cornu_op_slice(bias, starts, sizes), cornu_shape(3 * UNITS));
}

static void check_case(CornuDevice *device, Golden *golden, const char *name, const json_t *about)
{
    const char *layer = json_string_value(json_object_get(about, "layer"));
    const bool  after = !json_is_false(json_object_get(about, "reset_after"));
    Case        c = { .golden = golden, .name = name, .graph = cornu_graph_create(device) };
    CornuRecurrence r = { .reverse = json_is_true(json_object_get(about, "go_backwards")) };
    if (json_is_true(json_object_get(about, "masked"))) r.mask = mask_of(&c);
    if (json_object_get(about, "activation")) {
        r.activation = relu;
        r.recurrent_activation = hard_sigmoid;
    }
    CornuTensor *x = wanted(&c, "x"), *kernel = wanted(&c, "kernel");
    CornuTensor *recurrent = wanted(&c, "recurrent"), *bias = wanted(&c, "bias");
    CornuTensor *h0 = wanted(&c, "h0"), *h, *last_c = NULL;
    if (strcmp(layer, "LSTM") == 0)
        h = cornu_op_lstm(projected(x, kernel, bias), recurrent, h0, wanted(&c, "c0"), &r, &last_c);
    else if (strcmp(layer, "GRU") == 0)
        h = cornu_op_gru(projected(x, kernel, after ? bias_row(bias, 0) : bias), recurrent,
                         after ? bias_row(bias, 1) : NULL, h0, after, &r);
    else
        h = cornu_op_simple_rnn(projected(x, kernel, bias), recurrent, h0, &r);
    add_result(&c, "h", h);
    add_result(&c, "last_h", last_of(h, r.reverse));
    if (last_c) add_result(&c, "last_c", last_c);
    compare_gradients(&c);
    assert_int_equal(strcmp(cornu_device_name(device), "reference") == 0
                         ? 0 : cornu_graph_statistics(c.graph)->fallbacks, 0);
    cornu_graph_free(c.graph);
}

static void check_on(const char *device_name)
{
    Golden       golden = golden_open("tests/golden/recurrent/recurrent.safetensors");
    CornuDevice *device = cornu_device_open(.name = device_name, .shards = 1);
    assert_non_null(device);
    const char *name;
    json_t     *about;
    int         count = 0;
    json_object_foreach(golden.cases, name, about) {
        check_case(device, &golden, name, about);
        count++;
    }
    assert_int_equal(count, 11);
    cornu_device_close(device);
    golden_close(&golden);
}

static void agrees_with_keras_on_reference(void **state)
{
    (void)state;
    check_on("reference");
}

static void agrees_with_keras_on_cpu(void **state)
{
    (void)state;
    check_on("cpu");
}

static void agrees_with_keras_on_tpu(void **state)
{
    (void)state;
    check_on("tpu");
}

/* ---- Hard sigmoid gates ---- */

/* h, then the gradients with respect to z, the kernel, the bias (GRU) and h0. */
enum { HARD_RESULTS = 5, HARD_UNITS = 40, HARD_STEPS = 4, HARD_MOST = 3 * 4 * 160 + 40 * 160 };

/* Runs a layer whose gates reach both ends of the hard sigmoid; returns the number of results. */
static int run_hard(CornuDevice *device, bool lstm, CornuRecurrence r, bool masked,
                    float (*got)[HARD_MOST], int64_t *counts)
{
    const int64_t G = (lstm ? 4 : 3) * HARD_UNITS;
    CornuGraph   *graph = cornu_graph_create(device);
    CornuTensor  *z = cornu_op_scale(
        cornu_op_sin(cornu_op_iota(graph, cornu_type(CORNU_F32, 3, HARD_STEPS, G), 2)), 6.0);
    CornuTensor *kernel = cornu_op_scale(
        cornu_op_cos(cornu_op_iota(graph, cornu_type(CORNU_F32, HARD_UNITS, G), 1)), 0.05);
    CornuTensor *bias = cornu_op_scale(
        cornu_op_cos(cornu_op_iota(graph, cornu_type(CORNU_F32, G), 0)), 0.1);
    CornuTensor *h0 = cornu_op_cos(cornu_op_iota(graph, cornu_type(CORNU_F32, 3, HARD_UNITS), 0));
    CornuTensor *step = cornu_op_iota(graph, cornu_type(CORNU_F32, 3, HARD_STEPS), 1);
    if (masked) r.mask = cornu_op_compare(step, CORNU_LESS, cornu_op_constant_like(step, 3.0));
    CornuTensor *h = lstm ? cornu_op_lstm(z, kernel, h0, h0, &r, NULL)
                          : cornu_op_gru(z, kernel, bias, h0, true, &r);
    CornuTensor *weight = cornu_op_sin(cornu_op_iota(
        graph, cornu_type(CORNU_F32, 3, HARD_STEPS, HARD_UNITS), 2));
    CornuTensor *by[] = { z, kernel, h0, bias }, *results[HARD_RESULTS] = { h };
    const int    count = lstm ? 3 : 4;
    expect_ok(cornu_gradients(cornu_op_sum(cornu_op_multiply(h, weight)), by, count, results + 1));
    CornuArray out[HARD_RESULTS];
    for (int i = 0; i <= count; i++) {
        out[i] = (CornuArray){ cornu_tensor_type(results[i]), got[i] };
        counts[i] = cornu_shape_count(out[i].type.shape);
        assert_true(counts[i] <= HARD_MOST);
    }
    expect_ok(cornu_run(graph, results, count + 1, out));
    cornu_graph_free(graph);
    return count + 1;
}

/* The op's hard sigmoid agrees with that in a scan, which agrees with Keras above. */
static void hard_gates_equal_the_scan_of_them(void **state)
{
    (void)state;
    static float       got[2][HARD_RESULTS][HARD_MOST];
    static const char *devices[] = { "reference", "cpu", "tpu" };
    for (int d = 0; d < 3; d++) {
        CornuDevice *device = cornu_device_open(.name = devices[d], .shards = 1);
        for (int kind = 0; kind < 4; kind++) {
            const bool      lstm = kind % 2, other = kind / 2;
            CornuRecurrence scanned = { .recurrent_activation = hard_sigmoid, .reverse = other };
            CornuRecurrence fused = { .gate_slope = 1.0 / 6.0, .reverse = other };
            int64_t         counts[HARD_RESULTS];
            run_hard(device, lstm, scanned, other, got[0], counts);
            const int results = run_hard(device, lstm, fused, other, got[1], counts);
            for (int i = 0; i < results; i++) {
                CornuArray want = cornu_array(got[0][i], CORNU_F32, counts[i]);
                char       what[64];
                snprintf(what, sizeof what, "%s %s result %d", devices[d], lstm ? "lstm" : "gru",
                         i);
                expect_near(what, got[1][i], want, 1e-6);
            }
        }
        cornu_device_close(device);
    }
}

/* ---- Recurrent dropout ---- */

/* With a mask of ones the scan agrees with the fused op; with zeros, with a kernel of zeros. */
static void dropout_multiplies_h(void **state)
{
    (void)state;
    CornuDevice *device = cornu_device_open(.name = "cpu");
    CornuGraph  *graph = cornu_graph_create(device);
    CornuTensor *z = cornu_op_sin(cornu_op_iota(graph, cornu_type(CORNU_F32, 2, 3, 8), 2));
    CornuTensor *kernel = cornu_op_cos(cornu_op_iota(graph, cornu_type(CORNU_F32, 2, 8), 1));
    CornuTensor *h0 = cornu_op_cos(cornu_op_iota(graph, cornu_type(CORNU_F32, 2, 2), 0));
    for (int keep = 0; keep < 2; keep++) {
        CornuRecurrence r = { .recurrent_dropout = cornu_op_constant(
                                  graph, cornu_type(CORNU_F32, 2, 8), keep) };
        CornuTensor *other = keep ? kernel : cornu_op_constant_like(kernel, 0.0);
        CornuTensor *h[2] = { cornu_op_lstm(z, kernel, h0, h0, &r, NULL),
                              cornu_op_lstm(z, other, h0, h0, NULL, NULL) };
        float got[2][12];
        CornuArray out[2] = { cornu_array(got[0], CORNU_F32, 2, 3, 2),
                              cornu_array(got[1], CORNU_F32, 2, 3, 2) };
        expect_ok(cornu_run(graph, h, 2, out));
        for (int i = 0; i < 12; i++) assert_true(fabsf(got[0][i] - got[1][i]) < 1e-6f);
    }
    cornu_graph_free(graph);
    cornu_device_close(device);
}

/* ---- Gradients of constants ---- */

enum { ROWS = 2, INPUTS = 3, CELLS = 4, TIMES = 5, OPERANDS = 4 };

/* tanh(x W + (h h) U): of the operands of its products x is a slice, h h has to be stacked, and
 * both d_W and d_U have the d of the sum. */
static void two_products(void *context, CornuTensor *const *in, CornuTensor **out)
{
    (void)context;
    CornuTensor *h = in[0], *x = in[1], *w = in[2], *u = in[3];
    out[0] = out[1] = cornu_op_tanh(cornu_op_add(
        cornu_op_matmul(x, w), cornu_op_matmul(cornu_op_multiply(h, h), u)));
}

/* The h of all steps, of x cut along `axis`, by a scan, or step by step in the graph. */
static CornuTensor *h_of_all(CornuTensor *const *in, int axis, bool reverse, bool scanned)
{
    CornuTensor *out[2], *steps[TIMES], *h = in[0];
    if (scanned) {
        const CornuScan scan = { .carries = in, .carry_count = 1, .slices = in + 1,
                                 .slice_count = 1, .constants = in + 2, .constant_count = 2,
                                 .axis = axis, .stacked_count = 1, .reverse = reverse };
        assert_true(cornu_op_scan(&scan, two_products, NULL, out));
        return out[1];
    }
    for (int k = 0; k < TIMES; k++, h = out[0]) {
        const int    t = reverse ? TIMES - 1 - k : k;
        CornuTensor *x = axis ? cornu_op_slice(in[1], (int64_t[]){ 0, t, 0 },
                                               (int64_t[]){ ROWS, 1, INPUTS })
                              : cornu_op_slice(in[1], (int64_t[]){ t, 0, 0 },
                                               (int64_t[]){ 1, ROWS, INPUTS });
        x = cornu_op_reshape(x, cornu_shape(ROWS, INPUTS));
        two_products(NULL, (CornuTensor *[]){ h, x, in[2], in[3] }, out);
        steps[t] = cornu_op_reshape(out[0], axis ? cornu_shape(ROWS, 1, CELLS)
                                                 : cornu_shape(1, ROWS, CELLS));
    }
    return cornu_op_concat(steps, TIMES, axis);
}

static CornuTensor *waves(CornuGraph *graph, CornuType type, double phase)
{
    CornuTensor *x = cornu_op_constant(graph, type, 0.0);
    for (int axis = 0; axis < type.shape.rank; axis++)
        x = cornu_op_add(x, cornu_op_scale(cornu_op_iota(graph, type, axis), 1.0 + 0.37 * axis));
    return cornu_op_sin(cornu_op_shift(x, phase));
}

/* Products of all steps in place of sums over them, against the graph without a scan. */
static void gradients_of_constants_are_products(void **state)
{
    (void)state;
    CornuDevice *device = cornu_device_open(.name = "cpu");
    for (int kind = 0; kind < 4; kind++) {
        const int   axis = kind % 2;
        CornuGraph *graph = cornu_graph_create(device);
        const CornuType x = axis ? cornu_type(CORNU_F32, ROWS, TIMES, INPUTS)
                                 : cornu_type(CORNU_F32, TIMES, ROWS, INPUTS);
        CornuTensor *in[OPERANDS] = { waves(graph, cornu_type(CORNU_F32, ROWS, CELLS), 0.0),
                                      waves(graph, x, 1.0),
                                      waves(graph, cornu_type(CORNU_F32, INPUTS, CELLS), 2.0),
                                      waves(graph, cornu_type(CORNU_F32, CELLS, CELLS), 3.0) };
        CornuTensor *d[2 * OPERANDS];
        for (int scanned = 0; scanned < 2; scanned++) {
            CornuTensor *h = h_of_all(in, axis, kind / 2, scanned);
            CornuTensor *factors = waves(graph, cornu_tensor_type(h), 0.5);
            expect_ok(cornu_gradients(cornu_op_sum(cornu_op_multiply(h, factors)), in, OPERANDS,
                                      d + scanned * OPERANDS));
        }
        float      got[2 * OPERANDS][TIMES * ROWS * CELLS];
        CornuArray out[2 * OPERANDS];
        for (int i = 0; i < 2 * OPERANDS; i++)
            out[i] = (CornuArray){ .type = cornu_tensor_type(d[i]), .data = got[i] };
        expect_ok(cornu_run(graph, d, 2 * OPERANDS, out));
        for (int i = 0; i < OPERANDS; i++) {
            char what[64];
            snprintf(what, sizeof what, "operand %d, axis %d, reverse %d", i, axis, kind / 2);
            expect_near(what, got[OPERANDS + i], out[i], 1e-6);
        }
        cornu_graph_free(graph);
    }
    cornu_device_close(device);
}

/* ---- Mistakes ---- */

/* tanh of the carry, and a second result from the context: a tensor, or a variable to read. */
typedef struct { CornuTensor *tensor; CornuVariable *variable; } Second;

static void two_results(void *context, CornuTensor *const *in, CornuTensor **out)
{
    const Second *second = context;
    out[0] = cornu_op_tanh(in[0]);
    out[1] = second->variable ? cornu_read(cornu_tensor_graph(in[0]), second->variable)
                              : second->tensor;
}

static void expect_refusal(const CornuScan *scan, Second second, CornuStatus status,
                           const char *part)
{
    CornuTensor *out[2];
    assert_false(cornu_op_scan(scan, two_results, &second, out));
    expect_error(cornu_error_take(), status, part);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    CornuDevice   *device = cornu_device_open(.name = "cpu");
    CornuGraph    *graph = cornu_graph_create(device);
    CornuVariable *variable = cornu_variable_create(device, cornu_type(CORNU_F32, 2), "v");
    CornuTensor   *x = cornu_graph_input(graph, cornu_type(CORNU_F32, 2));
    CornuScan      scan = { .carries = &x, .carry_count = 1, .stacked_count = 1, .steps = 3 };
    expect_refusal(&scan, (Second){ 0 }, CORNU_ERR_ARGUMENT, "result 1 of the step is NULL");
    expect_refusal(&scan, (Second){ .tensor = x }, CORNU_ERR_ARGUMENT,
                   "scan: result 1 of the step is a tensor of another graph");
    expect_refusal(&scan, (Second){ .variable = variable }, CORNU_ERR_UNSUPPORTED,
                   "a step reads or assigns a variable; expected it among the constants");
    scan = (CornuScan){ .slices = &x, .slice_count = 1, .axis = 1, .stacked_count = 2 };
    expect_refusal(&scan, (Second){ 0 }, CORNU_ERR_SHAPE, "(2,), which has no axis 1 to cut");
    scan = (CornuScan){ .stacked_count = 2 };
    expect_refusal(&scan, (Second){ 0 }, CORNU_ERR_UNSUPPORTED, "0 operands");
    CornuRecurrence downhill = { .gate_slope = -1.0 };
    CornuTensor    *z = cornu_graph_input(graph, cornu_type(CORNU_F32, 1, 1, 8));
    assert_null(cornu_op_lstm(z, x, x, x, &downhill, NULL));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT,
                 "gate_slope -1, expected a finite number of 0 or more");
    assert_null(cornu_op_simple_rnn(x, x, x, NULL));
    expect_error(cornu_error_take(), CORNU_ERR_SHAPE, "h0 is (2,), expected rank 2");
    cornu_variable_free(variable);
    cornu_graph_free(graph);
    cornu_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_keras_on_reference),
        cmocka_unit_test(agrees_with_keras_on_cpu),
        cmocka_unit_test(agrees_with_keras_on_tpu),
        cmocka_unit_test(hard_gates_equal_the_scan_of_them),
        cmocka_unit_test(dropout_multiplies_h),
        cmocka_unit_test(gradients_of_constants_are_products),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
