/* Shards: the same step on 1, 2, 4 and 8 of them, collectives and their gradients, faults. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../tensor/ops.h"
#include "../../expect.h"

enum { BATCH = 32, IN = 9, HIDDEN = 7, OUT = 3, STEPS = 5 };

static void *made(void *thing)
{
    if (!thing) fail_msg("%s", cornu_error_message());
    return thing;
}

static CornuDevice *open_cpu(int shards, int threads)
{
    return made(cornu_device_open("cpu", .threads = threads, .shards = shards));
}

static float wave(int i) { return (float)sin(0.7 * i + 0.2); }

static CornuVariable *variable(CornuDevice *device, CornuType type, const char *name, int seed)
{
    float          values[IN * HIDDEN];
    CornuVariable *v = made(cornu_variable_create(device, type, name));
    for (int i = 0; i < cornu_type_count(type); i++) values[i] = 0.5f * wave(seed + i);
    expect_ok(cornu_variable_write(v, cornu_array_from(values, type)));
    return v;
}

/* Each shard has its rows and the number of valid ones, and contributes to each sum. Two dense
 * layers, dropout by the row's position, softmax loss, momentum. */
static void train(int shards, int threads, bool dropout, float *weights)
{
    CornuDevice   *device = open_cpu(shards, threads);
    CornuGraph    *graph = made(cornu_graph_create(device));
    const int      rows = BATCH / shards;
    CornuVariable *v[3] = { variable(device, cornu_type(CORNU_F32, IN, HIDDEN), "w1", 1),
                            variable(device, cornu_type(CORNU_F32, HIDDEN), "b1", 50),
                            variable(device, cornu_type(CORNU_F32, HIDDEN, OUT), "w2", 90) };
    CornuVariable *m[3];
    CornuVariable *iteration = made(cornu_variable_create(device, cornu_scalar(CORNU_I64), "t"));
    CornuVariable *seen = made(cornu_variable_create(device, cornu_scalar(CORNU_F64), "seen"));
    CornuTensor   *w[3], *d_w[3], *slot;
    for (int i = 0; i < 3; i++) {
        m[i] = made(cornu_variable_create(device, cornu_variable_type(v[i]), "m"));
        w[i] = made(cornu_read(graph, v[i]));
    }
    CornuTensor *x = cornu_graph_shard_input(graph, cornu_type(CORNU_F32, rows, IN));
    CornuTensor *y = cornu_graph_shard_input(graph, cornu_type(CORNU_U8, rows));
    CornuTensor *count = cornu_graph_shard_input(graph, cornu_scalar(CORNU_I64));
    CornuTensor *t = cornu_read(graph, iteration);
    CornuTensor *position = cornu_op_multiply(
        cornu_op_replica_id(graph), cornu_op_constant(graph, cornu_scalar(CORNU_I64), rows));
    CornuTensor *hidden = cornu_op_tanh(cornu_op_add(cornu_op_matmul(x, w[0]), w[1]));
    CornuTensor *zero = cornu_op_constant(graph, cornu_scalar(CORNU_I64), 0);
    if (dropout) hidden = cornu_op_dropout(hidden, 0.4, zero, t, position, 5);
    CornuTensor *each = cornu_op_sparse_cross_entropy(cornu_op_matmul(hidden, w[2]), y);
    CornuTensor *row = cornu_op_iota(graph, cornu_type(CORNU_I64, rows), 0);
    CornuTensor *valid = cornu_op_compare(row, CORNU_LESS, count);
    CornuTensor *kept = cornu_op_select(valid, each, cornu_op_constant_like(each, 0.0));
    CornuTensor *all = cornu_op_convert(cornu_op_all_reduce(count), CORNU_F32);
    CornuTensor *loss = made(cornu_op_divide(cornu_op_sum(kept), all));
    expect_ok(cornu_gradients(loss, w, 3, d_w));
    CornuTensor *rate = cornu_op_constant(graph, cornu_scalar(CORNU_F32), 0.1);
    for (int i = 0; i < 3; i++) {
        CornuTensor *g = cornu_op_all_reduce(d_w[i]);
        CornuTensor *new_w = cornu_op_momentum_update(w[i], cornu_read(graph, m[i]), g, rate, 0.9,
                                                      false, &slot);
        expect_ok(cornu_assign(v[i], new_w));
        expect_ok(cornu_assign(m[i], slot));
    }
    expect_ok(cornu_assign(iteration, cornu_op_shift(t, 1.0)));
    CornuTensor *sum = cornu_op_convert(cornu_op_all_reduce(cornu_op_sum(kept)), CORNU_F64);
    expect_ok(cornu_assign(seen, cornu_op_add(cornu_read(graph, seen), sum)));

    static float   of_x[BATCH * IN];
    static uint8_t of_y[BATCH];
    for (int step = 0; step < STEPS; step++) {
        int64_t counts[8];
        for (int i = 0; i < BATCH * IN; i++) of_x[i] = wave(step * 1000 + i);
        for (int i = 0; i < BATCH; i++) of_y[i] = (uint8_t)((i * 7 + step) % OUT);
        for (int s = 0; s < shards; s++) counts[s] = rows;
        expect_ok(cornu_graph_feed(x, cornu_array(of_x, CORNU_F32, shards, rows, IN)));
        expect_ok(cornu_graph_feed(y, cornu_array(of_y, CORNU_U8, shards, rows)));
        expect_ok(cornu_graph_feed(count, cornu_array(counts, CORNU_I64, shards)));
        expect_ok(cornu_run(graph, NULL, 0, NULL));
    }
    float *to = weights;
    for (int i = 0; i < 3; i++) {
        expect_ok(cornu_variable_read(v[i], cornu_array_from(to, cornu_variable_type(v[i]))));
        to += cornu_type_count(cornu_variable_type(v[i]));
        cornu_variable_free(v[i]);
        cornu_variable_free(m[i]);
    }
    double total;
    expect_ok(cornu_variable_get(seen, &total));
    *to = (float)total;
    cornu_variable_free(seen);
    cornu_variable_free(iteration);
    cornu_graph_free(graph);
    cornu_device_close(device);
}

enum { WEIGHTS = IN * HIDDEN + HIDDEN + HIDDEN * OUT + 1 };

static void compare(bool dropout)
{
    float one[WEIGHTS], more[WEIGHTS];
    train(1, 1, dropout, one);
    for (int shards = 2; shards <= 8; shards *= 2) {
        train(shards, 1, dropout, more);
        for (int i = 0; i < WEIGHTS; i++)
            if (!(fabsf(more[i] - one[i]) <= 1e-5f * fmaxf(1.0f, fabsf(one[i]))))
                fail_msg("%d shards: weight %d is %g, on one shard %g", shards, i, more[i], one[i]);
    }
}

static void any_number_of_shards_learns_the_same(void **state)
{
    (void)state;
    compare(false);
}

/* Dropout draws by a row's position in the global batch, so shards draw what one device would. */
static void dropout_does_not_depend_on_shards(void **state)
{
    (void)state;
    compare(true);
}

static void bits_do_not_depend_on_threads(void **state)
{
    (void)state;
    float first[WEIGHTS], other[WEIGHTS];
    for (int shards = 2; shards <= 8; shards *= 2) {
        train(shards, 1, true, first);
        for (int threads = 2; threads <= 4; threads++) {
            train(shards, threads, true, other);
            assert_memory_equal(first, other, sizeof first);
        }
    }
}

/* Sums of all dtypes, exactly, in the documented order; replica_id; fetches from each shard. */
static void sums_and_numbers(void **state)
{
    (void)state;
    CornuDevice *device = open_cpu(8, 2);
    CornuGraph  *graph = made(cornu_graph_create(device));
    CornuTensor *x = cornu_graph_shard_input(graph, cornu_type(CORNU_F32, 1000));
    CornuTensor *id = cornu_op_replica_id(graph);
    CornuTensor *fetch[3] = { cornu_op_all_reduce(x), id,
                              cornu_op_all_reduce(cornu_op_multiply(id, id)) };
    static float in[8][1000], out[1000];
    int64_t      ids[8], squares;
    CornuArray   to[3] = { cornu_array(out, CORNU_F32, 1000), cornu_array(ids, CORNU_I64, 8),
                           cornu_array_from(&squares, cornu_scalar(CORNU_I64)) };
    for (int s = 0; s < 8; s++)
        for (int i = 0; i < 1000; i++) in[s][i] = wave(s * 1000 + i) * (float)(1 << (s * 3));
    expect_ok(cornu_graph_feed(x, cornu_array(in, CORNU_F32, 8, 1000)));
    expect_ok(cornu_run(graph, fetch, 3, to));
    for (int i = 0; i < 1000; i++) {
        float left = (in[0][i] + in[1][i]) + (in[2][i] + in[3][i]);
        float right = (in[4][i] + in[5][i]) + (in[6][i] + in[7][i]);
        assert_float_equal(out[i], left + right, 0);
    }
    for (int s = 0; s < 8; s++) assert_int_equal(ids[s], s);
    assert_int_equal(squares, 140);
    cornu_graph_free(graph);
    cornu_device_close(device);
}

/* ---- Collectives ---- */

static const CornuGroups even_and_odd = { 4, { 0, 2, 4, 6, 1, 3, 5, 7 } };
static const CornuGroups pairs = { 2, { 0 } };

/* Element i of what shard s is fed. */
static float fed(int s, int i) { return wave(s * 1000 + i) * (float)(1 << (s * 3)); }

static float sum_of_four(int a, int b, int c, int d, int i)
{
    return (fed(a, i) + fed(b, i)) + (fed(c, i) + fed(d, i));
}

/* Over all eight shards, over even and odd ones, over neighbours: exactly, in the fixed order. */
static void collectives_exchange(void **state)
{
    (void)state;
    enum { N = 1040 };
    static float in[8][N], sum[8][N], scattered[8][N / 8], in_groups[8][N / 4], gathered[2 * N * 8],
                 in_pairs[8][2 * N], slices[8][N / 4];
    CornuDevice *device = open_cpu(8, 2);
    CornuGraph  *graph = made(cornu_graph_create(device));
    CornuTensor *x = cornu_graph_shard_input(graph, cornu_type(CORNU_F32, N));
    CornuTensor *fetch[6] = {
        cornu_op_all_reduce_in(x, &even_and_odd), cornu_op_reduce_scatter(x, NULL),
        cornu_op_reduce_scatter(x, &even_and_odd), cornu_op_all_gather(x, NULL),
        cornu_op_all_gather(x, &pairs), cornu_op_shard_slice(x, &even_and_odd) };
    CornuArray   to[6] = {
        cornu_array(sum, CORNU_F32, 8, N), cornu_array(scattered, CORNU_F32, 8, N / 8),
        cornu_array(in_groups, CORNU_F32, 8, N / 4), cornu_array(gathered, CORNU_F32, 8 * N),
        cornu_array(in_pairs, CORNU_F32, 8, 2 * N), cornu_array(slices, CORNU_F32, 8, N / 4) };
    for (int s = 0; s < 8; s++)
        for (int i = 0; i < N; i++) in[s][i] = fed(s, i);
    for (int i = 0; i < 6; i++) assert_int_equal(cornu_tensor_varies(made(fetch[i])), i != 3);
    expect_ok(cornu_graph_feed(x, cornu_array(in, CORNU_F32, 8, N)));
    expect_ok(cornu_run(graph, fetch, 6, to));
    for (int s = 0; s < 8; s++) {
        const int odd = s % 2, rank = s / 2;
        for (int i = 0; i < N; i++) {
            assert_float_equal(sum[s][i], sum_of_four(odd, 2 + odd, 4 + odd, 6 + odd, i), 0);
            assert_float_equal(gathered[s * N + i], fed(s, i), 0);
            assert_float_equal(in_pairs[s][i], fed(s - odd, i), 0);
            assert_float_equal(in_pairs[s][N + i], fed(s - odd + 1, i), 0);
        }
        for (int i = 0; i < N / 8; i++) {
            const int at = s * (N / 8) + i;
            assert_float_equal(scattered[s][i],
                               sum_of_four(0, 1, 2, 3, at) + sum_of_four(4, 5, 6, 7, at), 0);
        }
        for (int i = 0; i < N / 4; i++) {
            const int at = rank * (N / 4) + i;
            assert_float_equal(in_groups[s][i], sum_of_four(odd, 2 + odd, 4 + odd, 6 + odd, at), 0);
            assert_float_equal(slices[s][i], fed(s, at), 0);
        }
    }
    cornu_graph_free(graph);
    cornu_device_close(device);
}

static CornuStatus try_groups(CornuTensor *x, CornuGroups groups)
{
    cornu_op_all_reduce_in(x, &groups);
    return cornu_error_take();
}

static void wrong_groups_are_refused(void **state)
{
    (void)state;
    CornuDevice *device = open_cpu(8, 1);
    CornuGraph  *graph = made(cornu_graph_create(device));
    CornuTensor *x = cornu_graph_shard_input(graph, cornu_type(CORNU_F32, 3));
    const struct { CornuGroups groups; const char *part; } wrong[] = {
        { { 3, { 0 } }, "all_reduce: groups of 3 shards, expected a size that divides the 8" },
        { { 4, { 0, 2, 4, 6, 1, 3, 5, 8 } }, "shard 8 is in a group, expected 0 to 7" },
        { { 4, { 0, 2, 4, 6, 1, 3, 5, -1 } }, "shard -1 is in a group" },
        { { 4, { 0, 2, 4, 6, 1, 3, 5, 5 } }, "shard 5 is in the groups twice" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(try_groups(x, wrong[i].groups), CORNU_ERR_ARGUMENT);
        if (!strstr(cornu_error_message(), wrong[i].part)) fail_msg("%s", cornu_error_message());
    }
    assert_null(cornu_op_reduce_scatter(x, NULL));
    assert_int_equal(cornu_error_take(), CORNU_ERR_SHAPE);
    assert_non_null(strstr(cornu_error_message(), "axis 0 does not divide into 8"));
    cornu_graph_free(graph);
    cornu_device_close(device);
}

/* The gradient of the sum of all shards' losses, against finite differences. */
static void collectives_have_gradients(void **state)
{
    (void)state;
    enum { N = 8 };
    CornuDevice *device = open_cpu(4, 2);
    static const CornuGroups crossed = { 2, { 0, 3, 1, 2 } };
    for (int op = 0; op < 8; op++) {
        CornuGraph        *graph = made(cornu_graph_create(device));
        const CornuGroups *groups = op % 2 ? &crossed : NULL;
        CornuTensor *x = cornu_graph_shard_input(graph, cornu_type(CORNU_F64, N));
        CornuTensor *y = op / 2 == 0 ? cornu_op_all_reduce_in(x, groups)
                       : op / 2 == 1 ? cornu_op_reduce_scatter(x, groups)
                       : op / 2 == 2 ? cornu_op_all_gather(x, groups)
                                     : cornu_op_shard_slice(x, groups);
        CornuTensor *id = cornu_op_convert(cornu_op_replica_id(graph), CORNU_F64);
        CornuTensor *weight = cornu_op_add(
            cornu_op_iota(graph, cornu_tensor_type(made(y)), 0), cornu_op_shift(id, 0.5));
        CornuTensor *loss = cornu_op_sum(cornu_op_multiply(cornu_op_square(y), weight)), *d_x;
        expect_ok(cornu_gradients(made(loss), &x, 1, &d_x));
        /* A value common to all shards is copied to each. */
        CornuTensor *fetch[2] = { cornu_op_all_reduce(loss),
                                  cornu_op_add(d_x, cornu_op_scale(x, 0.0)) };
        double       in[4][N], d[4][N], whole, low, high;
        CornuArray   to[2] = { cornu_array_from(&whole, cornu_scalar(CORNU_F64)),
                               cornu_array(d, CORNU_F64, 4, N) };
        const CornuArray from = cornu_array(in, CORNU_F64, 4, N);
        for (int s = 0; s < 4; s++)
            for (int i = 0; i < N; i++) in[s][i] = wave(7 * s + i);
        expect_ok(cornu_graph_feed(x, from));
        expect_ok(cornu_run(graph, fetch, 2, to));
        for (int s = 0; s < 4; s++)
            for (int i = 0; i < N; i++) {
                const double at = in[s][i];
                for (int side = 0; side < 2; side++) {
                    in[s][i] = at + (side ? 1e-4 : -1e-4);
                    to[0].data = side ? &high : &low;
                    expect_ok(cornu_graph_feed(x, from));
                    expect_ok(cornu_run(graph, fetch, 1, to));
                }
                in[s][i] = at;
                if (!(fabs((high - low) / 2e-4 - d[s][i]) <= 1e-6))
                    fail_msg("op %d, shard %d, %d: %g, by differences %g", op, s, i, d[s][i],
                             (high - low) / 2e-4);
            }
        cornu_graph_free(graph);
    }
    cornu_device_close(device);
}

/* Independent sums are combined: three of these, but not the sum of a sum. */
static void sums_are_combined(void **state)
{
    (void)state;
    CornuDevice *device = open_cpu(4, 2);
    CornuGraph  *graph = made(cornu_graph_create(device));
    CornuTensor *x = cornu_graph_shard_input(graph, cornu_type(CORNU_F32, 2, 3));
    CornuTensor *id = cornu_op_convert(cornu_op_replica_id(graph), CORNU_F32);
    CornuTensor *a = cornu_op_all_reduce(x), *b = cornu_op_all_reduce(id);
    CornuTensor *c = cornu_op_all_reduce(cornu_op_reduce_sum(x, 1, false));
    CornuTensor *d = cornu_op_all_reduce(cornu_op_multiply(cornu_op_add(c, b), id));
    float        in[4][2][3], of_a[2][3], of_b, of_c[3], of_d[3];
    CornuTensor *fetch[4] = { a, b, c, d };
    CornuArray   to[4] = { cornu_array(of_a, CORNU_F32, 2, 3),
                           cornu_array_from(&of_b, cornu_scalar(CORNU_F32)),
                           cornu_array(of_c, CORNU_F32, 3), cornu_array(of_d, CORNU_F32, 3) };
    for (int i = 0; i < 24; i++) in[i / 6][i / 3 % 2][i % 3] = (float)i;
    expect_ok(cornu_graph_feed(x, cornu_array(in, CORNU_F32, 4, 2, 3)));
    expect_ok(cornu_run(graph, fetch, 4, to));
    for (int k = 0; k < 3; k++) {
        for (int r = 0; r < 2; r++) assert_float_equal(of_a[r][k], 36 + 4 * (3 * r + k), 0);
        assert_float_equal(of_c[k], 36 + 4 * k + 36 + 4 * (3 + k), 0);
        assert_float_equal(of_d[k], 6 * (of_c[k] + 6), 0);
    }
    assert_float_equal(of_b, 6, 0);
    CornuTensor *total = b;
    for (int i = 1; i < 10; i++)
        total = cornu_op_add(total, cornu_op_all_reduce(cornu_op_scale(id, 1.0 + i)));
    expect_ok(cornu_run(graph, &total, 1, &to[1]));
    assert_float_equal(of_b, 6 * 55, 0);
    /* replica_id, its ten multiples, pack, the sum, the sum of sums. */
    assert_int_equal(cornu_graph_statistics(graph)->kernels, 5);
    cornu_graph_free(graph);
    cornu_device_close(device);
}

/* A shared variable of which each shard writes a slice while all shards read all of it: w becomes
 * w + x mean(w), slice by slice, without a copy. */
static void slices_are_written_when_all_have_read(void **state)
{
    (void)state;
    enum { N = 8 * 4096, RUNS = 30 };
    static float w[N], first[N];
    for (int threads = 1; threads <= 4; threads++) {
        CornuDevice   *device = open_cpu(8, threads);
        CornuGraph    *graph = made(cornu_graph_create(device));
        CornuVariable *v = made(cornu_variable_create(device, cornu_type(CORNU_F32, N), "w"));
        CornuTensor   *x = cornu_graph_shard_input(graph, cornu_scalar(CORNU_F32));
        CornuTensor   *all = cornu_read(graph, v);
        CornuTensor   *mean = cornu_op_mean(cornu_op_multiply(all, x));
        CornuTensor   *slice = cornu_op_add(cornu_op_shard_slice(all, NULL), mean);
        float          scales[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
        for (int i = 0; i < N; i++) w[i] = wave(i) + 1;
        expect_ok(cornu_variable_write(v, cornu_array(w, CORNU_F32, N)));
        expect_ok(cornu_assign(v, cornu_op_all_gather(slice, NULL)));
        expect_ok(cornu_graph_feed(x, cornu_array(scales, CORNU_F32, 8)));
        double before = 0;
        for (int i = 0; i < N; i++) before += (double)w[i] / N;
        expect_ok(cornu_run(graph, NULL, 0, NULL));
        assert_int_equal(cornu_graph_statistics(graph)->copies, 0);
        expect_ok(cornu_variable_read(v, cornu_array(first, CORNU_F32, N)));
        for (int i = 0; i < N; i++)
            assert_float_equal(first[i] - w[i], before * scales[i / 4096], 1e-3);
        /* Each shard must read the old values, however far the others are. */
        for (int run = 0; run < RUNS; run++) {
            expect_ok(cornu_variable_write(v, cornu_array(w, CORNU_F32, N)));
            expect_ok(cornu_run(graph, NULL, 0, NULL));
            static float again[N];
            expect_ok(cornu_variable_read(v, cornu_array(again, CORNU_F32, N)));
            assert_memory_equal(first, again, sizeof first);
        }
        cornu_graph_free(graph);
        cornu_variable_free(v);
        cornu_device_close(device);
    }
}

/* A fault on one shard fails the run and names the shard. */
static void faults_name_their_shard(void **state)
{
    (void)state;
    CornuDevice *device = open_cpu(4, 2);
    CornuGraph  *graph = made(cornu_graph_create(device));
    CornuTensor *labels = cornu_graph_shard_input(graph, cornu_type(CORNU_U8, 2));
    CornuTensor *sum = cornu_op_all_reduce(cornu_op_sum(cornu_op_one_hot(labels, 10, CORNU_F32)));
    uint8_t      in[4][2] = { { 1, 2 }, { 3, 4 }, { 5, 11 }, { 7, 8 } };
    float        out;
    CornuArray   to = cornu_array_from(&out, cornu_scalar(CORNU_F32));
    expect_ok(cornu_graph_feed(labels, cornu_array(in, CORNU_U8, 4, 2)));
    assert_int_equal(cornu_run(graph, &sum, 1, &to), CORNU_ERR_VALUE);
    assert_non_null(strstr(cornu_error_message(), "shard 2: one_hot: label 11 in row 1"));
    in[2][1] = 6;
    expect_ok(cornu_graph_feed(labels, cornu_array(in, CORNU_U8, 4, 2)));
    expect_ok(cornu_run(graph, &sum, 1, &to));
    assert_float_equal(out, 8, 0);
    cornu_graph_free(graph);
    cornu_device_close(device);
}

/* A value that varies from shard to shard cannot be assigned to a shared variable. */
static void varying_values_are_not_assigned(void **state)
{
    (void)state;
    CornuDevice   *device = open_cpu(2, 1);
    CornuGraph    *graph = made(cornu_graph_create(device));
    CornuVariable *v = made(cornu_variable_create(device, cornu_type(CORNU_F32, 3), "v"));
    CornuTensor   *x = cornu_graph_shard_input(graph, cornu_type(CORNU_F32, 3));
    expect_ok(cornu_assign(v, x));
    assert_int_equal(cornu_run(graph, NULL, 0, NULL), CORNU_ERR_ARGUMENT);
    assert_non_null(strstr(cornu_error_message(), "varies from shard to shard"));
    cornu_graph_free(graph);
    cornu_variable_free(v);
    cornu_device_close(device);
    assert_null(cornu_device_open("cpu", .shards = 1025));
    assert_int_equal(cornu_error_take(), CORNU_ERR_ARGUMENT);
    assert_non_null(strstr(cornu_error_message(), "1025 shards, expected 1 to 1024"));
}

/* Each shard keeps a running sum of its own data. */
static void shards_keep_values_of_their_own(void **state)
{
    (void)state;
    static const int numbers[] = { 1, 2, 8 };
    for (int k = 0; k < 3; k++) {
        const int      shards = numbers[k];
        float          values[8], got[8];
        CornuDevice   *device = open_cpu(shards, 2);
        CornuGraph    *graph = made(cornu_graph_create(device));
        CornuVariable *sum = made(cornu_variable_create(device, cornu_scalar(CORNU_F32), "sum",
                                                        .spread = CORNU_PER_SHARD));
        CornuTensor   *x = cornu_graph_shard_input(graph, cornu_scalar(CORNU_F32));
        const CornuType each = cornu_type(CORNU_F32, shards);
        assert_true(cornu_type_equal(cornu_variable_type(sum), cornu_scalar(CORNU_F32)));
        expect_ok(cornu_assign(sum, cornu_op_add(cornu_read(graph, sum), x)));
        for (int s = 0; s < 8; s++) values[s] = (float)(10 + s);
        expect_ok(cornu_variable_write(sum, cornu_array_from(values, each)));
        for (int step = 0; step < 3; step++) {
            for (int s = 0; s < 8; s++) values[s] = (float)(s * (step + 1));
            expect_ok(cornu_graph_feed(x, cornu_array_from(values, each)));
            expect_ok(cornu_run(graph, NULL, 0, NULL));
        }
        expect_ok(cornu_variable_read(sum, cornu_array_from(got, each)));
        for (int s = 0; s < shards; s++) assert_float_equal(got[s], 10 + s + 6 * s, 0.0);
        CornuVariable *copy = made(cornu_variable_create(device, cornu_scalar(CORNU_F32), "copy",
                                                         .spread = CORNU_PER_SHARD));
        memset(got, 0, sizeof got);
        expect_ok(cornu_variable_copy(copy, sum));
        expect_ok(cornu_variable_read(copy, cornu_array_from(got, each)));
        for (int s = 0; s < shards; s++) assert_float_equal(got[s], 10 + s + 6 * s, 0.0);
        assert_int_equal(cornu_variable_set(sum, 1.0), CORNU_ERR_SHAPE);
        char expected[80];
        snprintf(expected, sizeof expected, "the array written is f32 (), expected f32 (%d,)",
                 shards);
        assert_non_null(strstr(cornu_error_message(), expected));
        cornu_graph_free(graph);
        cornu_variable_free(copy);
        cornu_variable_free(sum);
        cornu_device_close(device);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_shards_learns_the_same),
        cmocka_unit_test(dropout_does_not_depend_on_shards),
        cmocka_unit_test(bits_do_not_depend_on_threads),
        cmocka_unit_test(sums_and_numbers),
        cmocka_unit_test(collectives_exchange),
        cmocka_unit_test(wrong_groups_are_refused),
        cmocka_unit_test(collectives_have_gradients),
        cmocka_unit_test(sums_are_combined),
        cmocka_unit_test(slices_are_written_when_all_have_read),
        cmocka_unit_test(faults_name_their_shard),
        cmocka_unit_test(varying_values_are_not_assigned),
        cmocka_unit_test(shards_keep_values_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
