/* Rewriting: which ops move and which stay, and that values and gradients agree. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "../../tensor/ops.h"
#include "../expect.h"

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

static const CornuProgramOp *find(const CornuProgram *program, CornuOpId id)
{
    for (int i = 0; i < program->op_count; i++)
        if (program->ops[i].id == id) return &program->ops[i];
    return NULL;
}

static CornuShape made(const CornuProgram *program, const CornuProgramOp *op)
{
    return cornu_program_type(program, op->out_first).shape;
}

/* pool(relu(conv(x) + b)) becomes relu(pool(conv'(x)) + b), conv' without the row and column
 * that the pool drops; values and gradients stay the same. */
static void build(CornuGraph *graph, CornuTensor **in, CornuTensor **y)
{
    in[0] = cornu_graph_input(graph, cornu_type(CORNU_F64, 2, 7, 9, 3));
    in[1] = cornu_graph_input(graph, cornu_type(CORNU_F64, 3, 3, 3, 4));
    in[2] = cornu_graph_input(graph, cornu_type(CORNU_F64, 4));
    CornuTensor *conv = cornu_op_conv2d(in[0], in[1], &(CornuConvolution){ .low = { 0 } });
    CornuTensor *relu = cornu_op_relu(cornu_op_add(conv, in[2]));
    *y = cornu_op_max_pool2d(relu, &(CornuWindow){ .size = { 2, 2 }, .strides = { 2, 2 } });
}

static double wave(int i) { return sin(1.7 * i + 0.3) + 0.01 * (i % 7); }

static void pools_move_before_bias_and_activation(void **state)
{
    CornuGraph  *graph = cornu_graph_create(*state);
    CornuTensor *in[3], *y, *d[3], *fetch[4];
    build(graph, in, &y);
    CornuTensor *loss = cornu_op_sum(cornu_op_square(y));
    expect_ok(cornu_gradients(loss, in, 3, d));
    memcpy(fetch, d, sizeof d);
    fetch[3] = loss;
    static double values[2 * 7 * 9 * 3], seen[3][2 * 7 * 9 * 3], total;
    CornuArray    to[4];
    for (int i = 0; i < 2 * 7 * 9 * 3; i++) values[i] = wave(i);
    for (int i = 0; i < 3; i++) {
        cornu_graph_feed(in[i], cornu_array_from(values, cornu_tensor_type(in[i])));
        to[i] = cornu_array_from(seen[i], cornu_tensor_type(in[i]));
    }
    to[3] = cornu_array_from(&total, cornu_scalar(CORNU_F64));
    expect_ok(cornu_run(graph, fetch, 4, to));

    const CornuProgram *program = cornu_graph_program(graph);
    CornuShape          conv = made(program, find(program, CORNU_OP_CONV2D));
    CornuShape          relu = made(program, find(program, CORNU_OP_RELU));
    assert_int_equal(conv.extent[1], 4); /* of 5 */
    assert_int_equal(conv.extent[2], 6); /* of 7 */
    assert_int_equal(relu.extent[1], 2);
    assert_int_equal(relu.extent[2], 3);

    /* The same by finite differences. */
    const double step = 1e-6;
    for (int which = 0; which < 3; which++) {
        CornuType type = cornu_tensor_type(in[which]);
        for (int64_t i = 0; i < cornu_type_count(type); i += 5) {
            double side[2];
            for (int s = 0; s < 2; s++) {
                static double moved[2 * 7 * 9 * 3];
                memcpy(moved, values, sizeof moved);
                moved[i] += s ? step : -step;
                CornuGraph  *plain = cornu_graph_create(*state);
                CornuTensor *p[3], *p_y;
                build(plain, p, &p_y);
                CornuTensor *p_loss = cornu_op_sum(cornu_op_square(p_y));
                for (int k = 0; k < 3; k++)
                    cornu_graph_feed(p[k], cornu_array_from(k == which ? moved : values,
                                                            cornu_tensor_type(p[k])));
                CornuArray one = cornu_array_from(&side[s], cornu_scalar(CORNU_F64));
                assert_int_equal(cornu_run(plain, &p_loss, 1, &one), CORNU_OK);
                cornu_graph_free(plain);
            }
            assert_float_equal(seen[which][i], (side[1] - side[0]) / (2 * step), 1e-5);
        }
    }

    /* And the value, from the definition. */
    double expected = 0;
    for (int b = 0; b < 2; b++)
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 3; j++)
                for (int f = 0; f < 4; f++) {
                    double best = 0; /* relu */
                    for (int k = 0; k < 4; k++) {
                        double sum = values[f];
                        for (int u = 0; u < 3; u++)
                            for (int v = 0; v < 3; v++) {
                                int row = 2 * i + k / 2 + u, column = 2 * j + k % 2 + v;
                                for (int c = 0; c < 3; c++)
                                    sum += values[((b * 7 + row) * 9 + column) * 3 + c] *
                                           values[((u * 3 + v) * 3 + c) * 4 + f];
                            }
                        if (sum > best) best = sum;
                    }
                    expected += best * best;
                }
    assert_float_equal(total, expected, 1e-9 * expected);
    cornu_graph_free(graph);
}

/* A decreasing function must not move, nor a value that is used twice. */
static void other_pools_stay(void **state)
{
    CornuGraph  *graph = cornu_graph_create(*state);
    CornuTensor *x = cornu_graph_input(graph, cornu_type(CORNU_F64, 1, 4, 4, 1));
    CornuWindow  window = { .size = { 2, 2 }, .strides = { 2, 2 } };
    CornuTensor *falling = cornu_op_max_pool2d(cornu_op_negative(x), &window);
    CornuTensor *relu = cornu_op_relu(x);
    CornuTensor *twice = cornu_op_add(cornu_op_max_pool2d(relu, &window),
                                      cornu_op_average_pool2d(relu, &window));
    CornuTensor *fetch[2] = { falling, twice };
    double       in[16], out[2][4];
    for (int i = 0; i < 16; i++) in[i] = wave(i);
    CornuArray to[2] = { cornu_array(out[0], CORNU_F64, 1, 2, 2, 1),
                         cornu_array(out[1], CORNU_F64, 1, 2, 2, 1) };
    cornu_graph_feed(x, cornu_array(in, CORNU_F64, 1, 4, 4, 1));
    assert_int_equal(cornu_run(graph, fetch, 2, to), CORNU_OK);
    for (int i = 0; i < 4; i++) {
        double least = INFINITY, most = 0, mean = 0;
        for (int k = 0; k < 4; k++) {
            double v = in[(i / 2 * 2 + k / 2) * 4 + i % 2 * 2 + k % 2];
            if (v < least) least = v;
            if (v > most) most = v;
            mean += (v > 0 ? v : 0) / 4;
        }
        assert_float_equal(out[0][i], -least, 1e-15);
        assert_float_equal(out[1][i], most + mean, 1e-15);
    }
    cornu_graph_free(graph);
}

/* A pool that drops rows and columns of a convolution with strides, dilation or padding, with
 * biases that vary along rows, columns or channels. If the map has other uses it is not rewritten;
 * the gradients must be the same. */
static void rewritten_pools_are_the_same(void **state)
{
    static const CornuConvolution convolutions[] = {
        { .strides = { 2, 2 } },
        { .dilation = { 2, 2 } },
        { .low = { 1, 2 }, .high = { 2, 1 } },
        { .strides = { 2, 1 }, .dilation = { 1, 2 }, .low = { 1, 1 } },
    };
    enum { H = 13, W = 15, IN = H * W * 2, FILTER = 3 * 2 * 2 * 3, MOST = H * W * 3 };
    static double x[IN], filter[FILTER], bias[MOST];
    for (int i = 0; i < IN; i++) x[i] = wave(i);
    for (int i = 0; i < FILTER; i++) filter[i] = wave(3 * i + 1);
    for (int i = 0; i < MOST; i++) bias[i] = wave(5 * i + 2);
    for (int k = 0; k < 16; k++) {
        static double seen[2][IN + FILTER + MOST];
        bool          moved[2];
        for (int besides = 0; besides < 2; besides++) {
            CornuGraph  *graph = cornu_graph_create(*state);
            CornuTensor *in[3] = { cornu_graph_input(graph, cornu_type(CORNU_F64, 1, H, W, 2)),
                                   cornu_graph_input(graph, cornu_type(CORNU_F64, 3, 2, 2, 3)) };
            CornuTensor *map = cornu_op_conv2d(in[0], in[1], &convolutions[k / 4]), *d[3];
            CornuShape   shape = cornu_tensor_shape(map);
            CornuType    of_bias = k % 4 == 0   ? cornu_type(CORNU_F64, 3)
                                   : k % 4 == 1 ? cornu_type(CORNU_F64, shape.extent[2], 3)
                                   : k % 4 == 2 ? cornu_type(CORNU_F64, shape.extent[1], 1, 3)
                                                : cornu_type(CORNU_F64, 1);
            in[2] = cornu_graph_input(graph, of_bias);
            CornuTensor *y = cornu_op_tanh(cornu_op_add(map, in[2]));
            CornuWindow  window = { .size = { 2, 3 }, .strides = { 2, 3 } };
            CornuTensor *loss = cornu_op_sum(cornu_op_square(cornu_op_max_pool2d(y, &window)));
            if (besides) {   /* another use, times 0 */
                CornuTensor *none = cornu_op_scale(cornu_op_sum(cornu_op_add(map, y)), 0.0);
                loss = cornu_op_add(loss, none);
            }
            const double *from[3] = { x, filter, bias };
            CornuArray    to[3];
            double       *at = seen[besides];
            for (int i = 0; i < 3; i++) {
                const CornuType type = cornu_tensor_type(in[i]);
                expect_ok(cornu_graph_feed(in[i], cornu_array_from((void *)from[i], type)));
                to[i] = cornu_array_from(at, type);
                at += cornu_type_count(type);
            }
            expect_ok(cornu_gradients(loss, in, 3, d));
            expect_ok(cornu_run(graph, d, 3, to));
            const CornuProgram *program = cornu_graph_program(graph);
            const CornuShape    sum = made(program, find(program, CORNU_OP_ADD));
            moved[besides] = sum.extent[1] < shape.extent[1];
            for (int64_t i = 0; besides && i < at - seen[1]; i++)
                if (!(fabs(seen[0][i] - seen[1][i]) <= 1e-12))
                    fail_msg("case %d: gradient %lld is %.9g, expected %.9g", k, (long long)i,
                             seen[0][i], seen[1][i]);
            cornu_graph_free(graph);
        }
        assert_int_equal(moved[0], k % 4 == 0 || k % 4 == 3);
        assert_false(moved[1]);
    }
}

/* elu falls where its alpha is negative: of -1, -3, 0.5 and -0.1 with alpha -2 the largest comes
 * from -3, 2 - 2 exp(-3). */
static void a_falling_elu_stays_before_the_pool(void **state)
{
    CornuGraph  *graph = cornu_graph_create(*state);
    CornuTensor *x = cornu_graph_input(graph, cornu_type(CORNU_F64, 1, 2, 2, 1));
    CornuWindow  window = { .size = { 2, 2 }, .strides = { 2, 2 } };
    CornuTensor *y = cornu_op_max_pool2d(cornu_op_elu(x, -2.0), &window);
    double       in[] = { -1, -3, 0.5, -0.1 }, out;
    CornuArray   to = cornu_array(&out, CORNU_F64, 1, 1, 1, 1);
    expect_ok(cornu_graph_feed(x, cornu_array(in, CORNU_F64, 1, 2, 2, 1)));
    expect_ok(cornu_run(graph, &y, 1, &to));
    assert_float_equal(out, 2 - 2 * exp(-3), 1e-15);
    cornu_graph_free(graph);
}

/* The row count of the result of the program's only op of this kind. */
static int64_t rows_of(const CornuProgram *program, CornuOpId id)
{
    int64_t rows = -1;
    for (int i = 0; i < program->op_count; i++)
        if (program->ops[i].id == id) {
            assert_int_equal(rows, -1);
            rows = cornu_program_type(program, program->ops[i].out_first).shape.extent[0];
        }
    return rows;
}

/* gather(E) W + b becomes gather(E W + b) if that is less work. Values and gradients are the same
 * as those of one_hot(indices) E W + b, which is not rewritten. */
static void products_of_lookups_are_looked_up(void **state)
{
    for (int rows = 3; rows <= 9; rows += 6) {
        CornuGraph  *graph = cornu_graph_create(*state);
        CornuTensor *e = cornu_op_sin(cornu_op_iota(graph, cornu_type(CORNU_F32, rows, 4), 0));
        CornuTensor *w = cornu_op_cos(cornu_op_iota(graph, cornu_type(CORNU_F32, 4, 5), 1));
        CornuTensor *indices = cornu_op_convert(
            cornu_op_scale(cornu_op_iota(graph, cornu_type(CORNU_F32, 2, 3), 1), 0.7), CORNU_I32);
        CornuTensor *b = cornu_op_cos(cornu_op_iota(graph, cornu_type(CORNU_F32, 5), 0));
        CornuTensor *y = cornu_op_matmul(
            cornu_op_reshape(cornu_op_gather(e, indices), cornu_shape(6, 4)), w);
        y = cornu_op_reshape(cornu_op_add(y, b), cornu_shape(2, 3, 5));
        CornuTensor *hot = cornu_op_one_hot(indices, rows, CORNU_F32);
        CornuTensor *same = cornu_op_matmul(cornu_op_matmul(hot, e), w), *d[6];
        float        got[30], want[30], d_got[61], d_want[61];
        same = cornu_op_add(same, b);
        expect_ok(cornu_run(graph, &y, 1, (CornuArray[]){ cornu_array(got, CORNU_F32, 2, 3, 5) }));
        assert_int_equal(rows_of(cornu_graph_program(graph), CORNU_OP_MATMUL), rows < 6 ? rows : 6);
        assert_int_equal(rows_of(cornu_graph_program(graph), CORNU_OP_ADD), rows < 6 ? rows : 6);
        expect_ok(cornu_run(graph, &same, 1, (CornuArray[]){ cornu_array(want, CORNU_F32, 2, 3,
                                                                        5) }));
        for (int i = 0; i < 30; i++) assert_true(fabsf(got[i] - want[i]) < 1e-6f);
        CornuTensor *x[3] = { e, w, b };
        expect_ok(cornu_gradients(cornu_op_sum(cornu_op_square(y)), x, 3, d));
        expect_ok(cornu_gradients(cornu_op_sum(cornu_op_square(same)), x, 3, d + 3));
        const int of_e = rows * 4;
        expect_ok(cornu_run(graph, d, 6, (CornuArray[]){
            cornu_array(d_got, CORNU_F32, rows, 4), cornu_array(d_got + of_e, CORNU_F32, 4, 5),
            cornu_array(d_got + of_e + 20, CORNU_F32, 5), cornu_array(d_want, CORNU_F32, rows, 4),
            cornu_array(d_want + of_e, CORNU_F32, 4, 5),
            cornu_array(d_want + of_e + 20, CORNU_F32, 5) }));
        for (int i = 0; i < of_e + 25; i++) assert_true(fabsf(d_got[i] - d_want[i]) < 1e-5f);
        cornu_graph_free(graph);
    }
}

/* Two transposes in a row are one, or none if they cancel. */
static void transposes_compose(void **state)
{
    static const int first[] = { 1, 2, 0 }, second[] = { 0, 2, 1 }, back[] = { 2, 0, 1 };
    CornuGraph  *graph = cornu_graph_create(*state);
    CornuTensor *x = cornu_graph_input(graph, cornu_type(CORNU_F32, 2, 3, 4));
    CornuTensor *once = cornu_op_transpose(x, first);
    assert_ptr_equal(cornu_op_transpose(once, back), x);
    CornuTensor *twice = cornu_op_transpose(once, second);
    float        values[24], got[24];
    for (int i = 0; i < 24; i++) values[i] = (float)i;
    expect_ok(cornu_graph_feed(x, cornu_array(values, CORNU_F32, 2, 3, 4)));
    expect_ok(cornu_run(graph, &twice, 1, &(CornuArray){ cornu_type(CORNU_F32, 3, 2, 4), got }));
    for (int i = 0; i < 24; i++)   /* y[i][j][k] = once[i][k][j] = x[j][i][k] */
        assert_true(got[i] == values[i / 4 % 2 * 12 + i / 8 * 4 + i % 4]);
    cornu_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pools_move_before_bias_and_activation),
        cmocka_unit_test(products_of_lookups_are_looked_up),
        cmocka_unit_test(other_pools_stay),
        cmocka_unit_test(rewritten_pools_are_the_same),
        cmocka_unit_test(a_falling_elu_stays_before_the_pool),
        cmocka_unit_test(transposes_compose),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
