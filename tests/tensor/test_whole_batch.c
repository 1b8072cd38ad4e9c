/* Graphs of whole batches: what several shards compute together is what one computes, also where
 * rows depend on each other, and each shard has its rows alone. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../device/device.h"
#include "../../tensor/graph.h"
#include "../../tensor/ops.h"
#include "../../tensor/training_ops.h"

enum { ROWS = 8, FEATURES = 3, UNITS = 4 };

/* The loss and the gradient of the weights, and the rows of x that a shard has. */
typedef struct {
    float   loss, spread, d_w[FEATURES * UNITS];
    int64_t rows;
} Results;

static double number(int i) { return sin(1.3 * i); }

static CornuVariable *make_weights(CornuDevice *device)
{
    float          w[FEATURES * UNITS];
    CornuVariable *variable = cornu_variable_create(device, cornu_type(CORNU_F32, FEATURES, UNITS));
    for (int i = 0; i < FEATURES * UNITS; i++) w[i] = (float)number(i + 5);
    assert_int_equal(cornu_variable_write(variable, cornu_array(w, CORNU_F32, FEATURES, UNITS)),
                     CORNU_OK);
    return variable;
}

/* x of `rows` rows, with the mean of the batch taken off, by w: the loss is that of the squares by
 * the largest of each column. `spread` counts what a variable was assigned. */
static Results run(const char *name, int shards, int64_t rows)
{
    CornuDevice   *device = cornu_device_open(name, .shards = shards);
    CornuVariable *w = make_weights(device);
    CornuVariable *seen = cornu_variable_create(device, cornu_scalar(CORNU_F32));
    CornuGraph    *graph = cornu_graph_create(device);
    float          x[ROWS * FEATURES];
    double         assigned;
    Results        made = { 0 };
    for (int i = 0; i < rows * FEATURES; i++) x[i] = (float)number(i);
    assert_int_equal(cornu_graph_set_whole_batch(graph), CORNU_OK);
    assert_int_equal(cornu_graph_shards(graph), 1);
    CornuTensor *in = cornu_graph_shard_input(graph, cornu_type(CORNU_F32, rows, FEATURES));
    CornuTensor *mean = cornu_op_scale(cornu_op_reduce_sum(in, 1, true), 1.0 / (double)rows);
    CornuTensor *weights = cornu_read(graph, w);
    CornuTensor *y = cornu_op_matmul(cornu_op_subtract(in, mean), weights);
    CornuTensor *most = cornu_op_reduce_max(y, 1, true);
    CornuTensor *loss = cornu_op_all_reduce(
        cornu_op_sum(cornu_op_square(cornu_op_subtract(y, most))));
    CornuTensor *d_w;
    assert_int_equal(cornu_gradients(loss, &weights, 1, &d_w), CORNU_OK);
    d_w = cornu_op_all_reduce(d_w);
    assert_int_equal(cornu_assign(seen, cornu_op_all_reduce(cornu_op_sum(most))), CORNU_OK);
    assert_int_equal(cornu_graph_feed(in, cornu_array(x, CORNU_F32, 1, rows, FEATURES)), CORNU_OK);
    CornuTensor *fetches[] = { loss, d_w };
    CornuArray   out[] = { { cornu_scalar(CORNU_F32), &made.loss },
                           cornu_array(made.d_w, CORNU_F32, FEATURES, UNITS) };
    assert_int_equal(cornu_run(graph, fetches, 2, out), CORNU_OK);
    assert_int_equal(cornu_variable_get(seen, &assigned), CORNU_OK);
    made.spread = (float)assigned;
    const CornuProgram *program = cornu_graph_program(graph);
    made.rows = cornu_program_type(program, program->inputs[0]).shape.extent[0];
    cornu_graph_free(graph);
    cornu_variable_free(seen);
    cornu_variable_free(w);
    cornu_device_close(device);
    return made;
}

/* Sums of at most 8 rows of numbers below 4, in another order. */
static void expect_close(double a, double b) { assert_true(fabs(a - b) <= 64 * 0x1p-23 * fabs(b)
                                                           + 1e-6); }

static void shards_compute_what_one_does(void **state)
{
    static const struct { const char *name; int shards; int64_t rows, each; } on[] = {
        { "cpu", 2, 8, 4 }, { "cpu", 4, 8, 2 }, { "cpu", 4, 6, 6 }, { "cpu", 4, 1, 1 },
        { "tpu", 8, 8, 1 } };
    (void)state;
    for (size_t i = 0; i < sizeof on / sizeof *on; i++) {
        const Results one = run(on[i].name, 1, on[i].rows);
        const Results many = run(on[i].name, on[i].shards, on[i].rows);
        assert_int_equal(many.rows, on[i].each);
        expect_close(many.loss, one.loss);
        expect_close(many.spread, one.spread);
        for (int k = 0; k < FEATURES * UNITS; k++) expect_close(many.d_w[k], one.d_w[k]);
    }
}

static void values_of_shards_are_refused(void **state)
{
    (void)state;
    CornuDevice   *device = cornu_device_open("cpu", .shards = 2);
    CornuVariable *own = cornu_variable_create(device, cornu_type(CORNU_F32, 2),
                                               .name = "lstm/state", .spread = CORNU_PER_SHARD);
    CornuGraph    *graph = cornu_graph_create(device);
    assert_int_equal(cornu_graph_shards(graph), 2);
    assert_int_equal(cornu_graph_set_whole_batch(graph), CORNU_OK);
    assert_null(cornu_read(graph, own));
    assert_int_equal(cornu_error_status(), CORNU_ERR_UNSUPPORTED);
    assert_non_null(strstr(cornu_error_message(), "lstm/state: each of 2 shards has its own"));
    cornu_error_take();
    cornu_graph_free(graph);
    cornu_variable_free(own);
    cornu_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shards_compute_what_one_does),
        cmocka_unit_test(values_of_shards_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
