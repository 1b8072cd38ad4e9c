/* Images with channels first between convolutions: their transposes move and cancel, and values and
 * gradients are those of the same network with channels last. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "../../tensor/ops.h"
#include "../expect.h"

enum { X = 2 * 5 * 6 * 3, FILTER = 3 * 3 * 3 * 3, BIAS = 3, INPUTS = 3 };

static int open_device(void **state)
{
    *state = cornu_device_open("reference");
    return *state ? 0 : -1;
}

static int close_device(void **state)
{
    cornu_device_close(*state);
    return 0;
}

static CornuTensor *first(CornuTensor *x)
{
    return cornu_op_transpose(x, (const int[]){ 0, 3, 1, 2 });
}

static CornuTensor *last(CornuTensor *x)
{
    return cornu_op_transpose(x, (const int[]){ 0, 2, 3, 1 });
}

static CornuTensor *convolved(CornuTensor *x, CornuTensor *filter, bool turned)
{
    const CornuConvolution how = { .low = { 1, 1 }, .high = { 1, 1 } };
    CornuTensor *y = cornu_op_conv2d(turned ? last(x) : x, filter, &how);
    return turned ? first(y) : y;
}

/* Each row twice, with channels last or first. */
static CornuTensor *twice(CornuTensor *y, bool turned)
{
    CornuShape    s = cornu_tensor_shape(y);
    const int64_t before = turned ? s.extent[0] * s.extent[1] : s.extent[0];
    const int64_t rows = s.extent[turned ? 2 : 1], after = cornu_shape_count(s) / before / rows;
    s.extent[turned ? 2 : 1] *= 2;
    y = cornu_op_reshape(y, cornu_shape(before, rows, 1, after));
    return cornu_op_reshape(cornu_op_broadcast(y, cornu_shape(before, rows, 2, after)), s);
}

/* x + relu(conv(x) + b), padded, joined with itself, turned upside down, of two columns, each
 * row twice, and the mean of each channel; all but the convolution with channels first if
 * `turned`. */
static CornuTensor *network(CornuTensor **in, bool turned)
{
    const int64_t axes = turned ? 1 << 2 | 1 << 3 : 1 << 1 | 1 << 2;
    CornuTensor  *x = in[0], *b = in[2];
    if (turned) b = cornu_op_reshape(b, cornu_shape(3, 1, 1));
    if (turned) x = first(cornu_op_scale(x, 1.5));
    else x = cornu_op_scale(x, 1.5);
    CornuTensor *y = cornu_op_relu(cornu_op_add(convolved(x, in[1], turned), b));
    y = cornu_op_add(x, convolved(y, in[1], turned));
    const int64_t low[2][4] = { { 0, 1, 0, 0 }, { 0, 0, 1, 0 } };
    const int64_t high[2][4] = { { 0, 0, 2, 1 }, { 0, 1, 0, 2 } };
    y = cornu_op_pad(y, low[turned], high[turned], 0.5);
    y = cornu_op_concat((CornuTensor *[]){ y, cornu_op_tanh(y) }, 2, turned ? 1 : 3);
    y = cornu_op_flip(y, turned ? 2 : 1);
    CornuTensor *matrix = cornu_op_iota(cornu_tensor_graph(y), cornu_type(CORNU_F64, 2, 8), 0);
    y = twice(cornu_op_resample(y, matrix, turned ? 3 : 2), turned);
    y = cornu_op_select(cornu_op_is_finite(y), y, cornu_op_negative(y));
    CornuTensor *most = cornu_op_reduce_max(y, axes, false);
    return cornu_op_add(cornu_op_reduce_mean(y, axes, false), most);
}

static double wave(int i) { return sin(1.7 * i + 0.3) + 0.01 * (i % 7); }

/* Fills the result and the gradients; returns how many transposes of images the program has. */
static int run(CornuDevice *device, bool turned, double *y, double d[INPUTS][X])
{
    static double values[X];
    CornuGraph   *graph = cornu_graph_create(device);
    CornuTensor  *in[INPUTS], *gradients[INPUTS], *fetch[1 + INPUTS];
    CornuArray    to[1 + INPUTS];
    int           transposes = 0;
    in[0] = cornu_graph_input(graph, cornu_type(CORNU_F64, 2, 5, 6, 3));
    in[1] = cornu_graph_input(graph, cornu_type(CORNU_F64, 3, 3, 3, 3));
    in[2] = cornu_graph_input(graph, cornu_type(CORNU_F64, 3));
    fetch[0] = network(in, turned);
    expect_ok(cornu_gradients(cornu_op_sum(cornu_op_square(fetch[0])), in, INPUTS, gradients));
    to[0] = cornu_array_from(y, cornu_tensor_type(fetch[0]));
    for (int i = 0; i < X; i++) values[i] = wave(i);
    for (int i = 0; i < INPUTS; i++) {
        cornu_graph_feed(in[i], cornu_array_from(values, cornu_tensor_type(in[i])));
        fetch[1 + i] = gradients[i];
        to[1 + i] = cornu_array_from(d[i], cornu_tensor_type(in[i]));
    }
    expect_ok(cornu_run(graph, fetch, 1 + INPUTS, to));
    const CornuProgram *program = cornu_graph_program(graph);
    for (int i = 0; i < program->op_count; i++)
        transposes += program->ops[i].id == CORNU_OP_TRANSPOSE &&
                      cornu_program_type(program, program->ops[i].out_first).shape.rank == 4;
    cornu_graph_free(graph);
    return transposes;
}

static void near(const double *a, const double *b, int count)
{
    for (int i = 0; i < count; i++)
        if (!(fabs(a[i] - b[i]) < 1e-9)) fail_msg("number %d is %g, not %g", i, a[i], b[i]);
}

static void transposes_cancel(void **state)
{
    static double y[2][12], d[2][INPUTS][X];
    const int     counts[INPUTS] = { X, FILTER, BIAS };
    const int     usual = run(*state, false, y[0], d[0]);
    assert_int_equal(run(*state, true, y[1], d[1]), usual);
    near(y[1], y[0], 12);
    for (int i = 0; i < INPUTS; i++) near(d[1][i], d[0][i], counts[i]);
}

/* One whose result is wanted as it is stays, and so does one of few axes or another order. */
static void others_stay(void **state)
{
    static double values[X], seen[2][X];
    CornuGraph   *graph = cornu_graph_create(*state);
    CornuTensor  *x = cornu_graph_input(graph, cornu_type(CORNU_F64, 2, 5, 6, 3));
    CornuTensor  *y = cornu_op_relu(first(x));
    CornuTensor  *z = cornu_op_relu(cornu_op_transpose(x, (const int[]){ 0, 2, 1, 3 }));
    CornuArray    to[] = { cornu_array_from(seen[0], cornu_tensor_type(y)),
                           cornu_array_from(seen[1], cornu_tensor_type(z)) };
    for (int i = 0; i < X; i++) values[i] = wave(i);
    cornu_graph_feed(x, cornu_array_from(values, cornu_tensor_type(x)));
    expect_ok(cornu_run(graph, (CornuTensor *[]){ y, z }, 2, to));
    for (int b = 0; b < 2; b++)
        for (int h = 0; h < 5; h++)
            for (int w = 0; w < 6; w++)
                for (int c = 0; c < 3; c++) {
                    const double from = fmax(values[((b * 5 + h) * 6 + w) * 3 + c], 0.0);
                    assert_true(seen[0][((b * 3 + c) * 5 + h) * 6 + w] == from);
                    assert_true(seen[1][((b * 6 + w) * 5 + h) * 3 + c] == from);
                }
    cornu_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transposes_cancel),
        cmocka_unit_test(others_stay),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
