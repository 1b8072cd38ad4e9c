/*
 * Large products, and gradients of tables, that are summed over shards where they are computed:
 * which are, that the bits are those of one on each shard and a sum of these, and what memory is
 * left.
 *
 * tests/run: all instruction sets, quick
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../agreement.h"
#include "../../../planned.h"
#include "../../../../quick.h"

/* The gradient of a weight, x' d, and of a bias, the sum of d, summed over shards. x is
 * (rows, m), d is (rows, n) on each shard. */
typedef struct {
    int        shards;
    int64_t    rows, m, n;
    CornuDtype dtype, result;   /* of x and d; of the product, which is converted to f32 */
    bool       straight;        /* x is (m, rows): not a transposed a */
    bool       shared;          /* all shards have one x */
    bool       watched;         /* each shard's product is fetched */
    bool       alone;           /* an all_reduce of the product, no pack with the bias */
} Gradient;

enum { M = 1031, N = 1033 };   /* no multiples of any register or tile; large enough */

static const Gradient usual = { .shards = 4, .rows = 7, .m = M, .n = N, .dtype = CORNU_F32,
                                .result = CORNU_F32 };

static CornuValue shard_input(CornuProgram *p, CornuType type)
{
    CornuValue value;
    assert_int_equal(cornu_program_shard_input(p, type, &value), CORNU_OK);
    return value;
}

static CornuProgram *gradient(const Gradient *g)
{
    const CornuAttributes matmul = {
        .matmul = { .transpose_a = !g->straight, .dtype = g->result },
    };
    const CornuAttributes all = { .shards = { .size = g->shards } };
    const int64_t         step = 16 * g->shards, count = g->m * g->n + 16 + g->n;
    const CornuAttributes pack = { .pack = { 16, (count + step - 1) / step * step } };
    const CornuType       x_type = g->straight ? cornu_type(g->dtype, g->m, g->rows)
                                               : cornu_type(g->dtype, g->rows, g->m);
    CornuProgram *p = cornu_program_create();
    CornuValue    in[2], d[2];
    in[0] = g->shared ? input(p, x_type) : shard_input(p, x_type);
    in[1] = shard_input(p, cornu_type(g->dtype, g->rows, g->n));
    d[0] = op(p, CORNU_OP_MATMUL, &matmul, in, 2);
    d[1] = reduce(p, CORNU_OP_REDUCE_SUM, convert(p, in[1], CORNU_F32), 1);
    if (g->watched) output(p, d[0], -1);
    d[0] = convert(p, d[0], CORNU_F32);
    if (g->alone) {
        output(p, op(p, CORNU_OP_ALL_REDUCE, &all, d, 1), -1);
        return p;
    }
    CornuValue packed = op(p, CORNU_OP_PACK, &pack, d, 2);
    output(p, op(p, CORNU_OP_REDUCE_SCATTER, &all, &packed, 1), -1);
    return p;
}

/* ---- Plans ---- */

typedef struct {
    int    summed;   /* steps that compute a product and its sum */
    size_t bytes;    /* of values between steps */
} Sums;

static Sums sums_of(const Gradient *g, CornuMultiplier multiplier)
{
    Planned         *made = planned(gradient(g), g->shards, 2, multiplier);
    const CornuPlan *plan = &made->plan;
    Sums             sums = { .bytes = cornu__plan_bytes(plan, plan->arena) };
    for (int i = 0; i < plan->step_count; i++) {
        if (!plan->steps[i].summed) continue;
        sums.summed++;
        assert_false(plan->steps[i].varies);
        assert_true(cornu__plan_crosses(plan, &plan->steps[i]));
        assert_int_equal(plan->steps[i].op_count, 2);
    }
    release_planned(made);
    return sums;
}

static void test_which_are_summed(void **state)
{
    (void)state;
    const CornuMultiplier f32 = { .bf16 = false };
    const CornuMultiplier bf16 = { .bf16 = true, .precision = CORNU_PRECISION_DEFAULT };
    const CornuMultiplier exact = { .bf16 = true, .precision = CORNU_PRECISION_HIGHEST };
    for (int shards = 2; shards <= 8; shards++) {
        Gradient g = usual;
        g.shards = shards;
        assert_int_equal(sums_of(&g, f32).summed, 1);
        assert_int_equal(sums_of(&g, bf16).summed, 1);
        g.alone = true;
        assert_int_equal(sums_of(&g, f32).summed, 1);
    }
    Gradient cases[8];
    for (int i = 0; i < 8; i++) cases[i] = usual;
    cases[0].watched = true;
    cases[1].shared = true;
    cases[2].straight = true;
    cases[3].result = CORNU_BF16;
    cases[4].m = 100;        /* a small result */
    cases[5].rows = 1000;    /* much to compute for each element */
    cases[6].shards = 1;
    cases[7].shards = 20;
    for (int i = 0; i < 8; i++)
        if (sums_of(&cases[i], f32).summed != 0) fail_msg("case %d is summed", i);
    assert_int_equal(sums_of(&usual, exact).summed, 0);   /* passes, of which the last is large */
    setenv("CORNU_PASSES", "-summed", 1);
    assert_int_equal(sums_of(&usual, f32).summed, 0);
    unsetenv("CORNU_PASSES");
}

/* One gradient is left of those of all shards. */
static void test_memory(void **state)
{
    (void)state;
    const size_t bytes = sizeof(float) * M * N;
    Gradient     g = usual;
    g.shards = 8;
    const size_t with = sums_of(&g, (CornuMultiplier){ .bf16 = false }).bytes;
    setenv("CORNU_PASSES", "-summed", 1);
    const size_t without = sums_of(&g, (CornuMultiplier){ .bf16 = false }).bytes;
    unsetenv("CORNU_PASSES");
    assert_in_range(with, bytes, bytes + bytes / 4);
    assert_true(without >= 8 * bytes);
}

/* ---- Numbers ---- */

/* Reals of many magnitudes, so that their sums are rounded and another order shows. */
static void set_reals(Compiled *made)
{
    uint64_t state = 5;
    for (int i = 0; i < made->program->input_count; i++) {
        const int64_t count = cornu_type_count(cornu_buffer_type(made->inputs[i]));
        double       *numbers = malloc((size_t)(count + 1) * sizeof *numbers);
        for (int64_t k = 0; k < count; k++)
            numbers[k] = ldexp((double)(draw(&state, 1 << 24) - (1 << 23)),
                               (int)draw(&state, 16) - 31);
        set_numbers(made, i, numbers);
        free(numbers);
    }
}

/* The output, of all shards, after a run; ends the rest. */
static double *take_output(Compiled *made, CornuProgram *p, CornuDevice *device, int64_t *count)
{
    run(made);
    double *got = get_output(made, 0, count);
    release(made);
    cornu_program_free(p);
    cornu_device_close(device);
    return got;
}

static double *sums(const char *device_name, const Gradient *g, int threads, int64_t *count)
{
    CornuDevice  *device = cornu_device_open(device_name, .threads = threads, .shards = g->shards);
    CornuProgram *p = gradient(g);
    Compiled      made = compile(device, p);
    set_reals(&made);
    run(&made);
    return take_output(&made, p, device, count);
}

static void compare_bits(const char *device, const Gradient *g)
{
    int64_t count, again;
    setenv("CORNU_PASSES", "-summed", 1);
    double *expected = sums(device, g, 2, &count);
    unsetenv("CORNU_PASSES");
    for (int threads = 1; threads <= THREADS; threads++) {
        double *got = sums(device, g, threads, &again);
        assert_int_equal(again, count);
        if (memcmp(got, expected, (size_t)count * sizeof *got))
            fail_msg("%s, %d shards, %d threads, %lld rows, %s: other bits", device, g->shards,
                     threads, (long long)g->rows, cornu_dtype_name(g->dtype));
        free(got);
    }
    free(expected);
}

static void test_bits(void **state)
{
    (void)state;
    static const int     shards[] = { 2, 3, 7, 8, 20 };
    static const int64_t rows[] = { 33, 7, 8, 1, 5 };
    for (int i = 0; i < quick(2, sizeof shards / sizeof *shards); i++)
        for (int bf16 = 0; bf16 < 2; bf16++) {
            Gradient g = usual;
            g.shards = shards[i];
            g.rows = rows[i];
            if (bf16) g.dtype = CORNU_BF16;
            compare_bits("cpu", &g);
            compare_bits("tpu", &g);
        }
}

/* As many rows as are summed at all, in one chunk; whole registers; a narrow result, a flat one. */
static void test_bits_of_other_shapes(void **state)
{
    (void)state;
    static const int64_t extents[][3] = { { 256, 1024, 1024 }, { 9, 65537, 16 }, { 9, 24, 43700 },
                                          { 0, 1024, 1024 } };
    for (int i = 0; i < quick(1, sizeof extents / sizeof *extents); i++)
        for (int bf16 = 0; bf16 < 2; bf16++) {
            Gradient g = usual;
            g.shards = 3;
            g.rows = extents[i][0];
            g.m = extents[i][1];
            g.n = extents[i][2];
            g.alone = true;
            if (bf16) g.dtype = CORNU_BF16;
            compare_bits("tpu", &g);
        }
}

/* The gradient of a table of which each shard looks up some rows, some of them often. */
static double *table_gradient(const char *name, int shards, int64_t columns, CornuDtype dtype,
                              int threads, int64_t *count)
{
    enum { LOOKUPS = 37, ELEMENTS = 1100000 };
    const int64_t         rows = ELEMENTS / columns;
    const CornuAttributes grad = { .gather_grad = { rows, CORNU_F32, CORNU_PADDED_BELOW } };
    const CornuAttributes all = { .shards = { .size = shards } };
    CornuDevice  *device = cornu_device_open(name, .threads = threads, .shards = shards);
    CornuProgram *p = cornu_program_create();
    CornuValue    in[2] = { shard_input(p, cornu_type(dtype, LOOKUPS, columns)),
                            shard_input(p, cornu_type(CORNU_I32, LOOKUPS)) };
    CornuValue    sum = op(p, CORNU_OP_GATHER_GRAD, &grad, in, 2);
    output(p, op(p, CORNU_OP_ALL_REDUCE, &all, &sum, 1), -1);
    Compiled made = compile(device, p);
    set_reals(&made);
    double   indices[8 * LOOKUPS];
    uint64_t drawn = 11;
    for (int i = 0; i < shards * LOOKUPS; i++)
        indices[i] = i % 3 ? (double)(draw(&drawn, 8) - 1) : (double)draw(&drawn, rows);
    set_numbers(&made, 1, indices);
    return take_output(&made, p, device, count);
}

static void test_bits_of_lookups(void **state)
{
    (void)state;
    static const int64_t columns[] = { 16, 33, 1500 };
    for (int i = 0; i < quick(2, sizeof columns / sizeof *columns); i++)
        for (int shards = 2; shards <= 8; shards += 3) {
            int64_t    count, again;
            CornuDtype dtype = i == 1 ? CORNU_BF16 : CORNU_F32;
            setenv("CORNU_PASSES", "-summed", 1);
            double *expected = table_gradient("tpu", shards, columns[i], dtype, 2, &count);
            unsetenv("CORNU_PASSES");
            double *got = table_gradient("tpu", shards, columns[i], dtype, 3, &again);
            assert_int_equal(again, count);
            assert_memory_equal(got, expected, (size_t)count * sizeof *got);
            free(got);
            free(expected);
        }
}

/* Elements of the sum against double. In bf16 products of two numbers are exact; the bound is that
 * of tests/device/host/kernels/test_products.c. */
static void test_elements(void **state)
{
    (void)state;
    enum { SHARDS = 5, ROWS = 13 };
    Gradient g = usual;
    g.shards = SHARDS;
    g.rows = ROWS;
    g.dtype = CORNU_BF16;
    g.alone = true;
    CornuDevice  *device = cornu_device_open("tpu", .threads = 2, .shards = SHARDS);
    CornuProgram *p = gradient(&g);
    Compiled      made = compile(device, p);
    set_reals(&made);
    run(&made);
    int64_t  count;
    uint64_t drawn = 3;
    double  *got = get_output(&made, 0, &count);
    double  *x = get_input(&made, 0, &count), *d = get_input(&made, 1, &count);
    for (int i = 0; i < 1000; i++) {
        const int64_t m = i ? draw(&drawn, M) : M - 1, n = i ? draw(&drawn, N) : N - 1;
        double        sum = 0.0, size = 0.0;
        for (int64_t k = 0; k < SHARDS * ROWS; k++) {
            sum += x[k * M + m] * d[k * N + n];
            size += fabs(x[k * M + m] * d[k * N + n]);
        }
        const double bound = 6.0 * sqrt(SHARDS * ROWS + 2.0) * 0x1p-24 * size;
        if (!(fabs(got[m * N + n] - sum) <= bound))
            fail_msg("(%lld, %lld) is %.9g, expected %.9g, bound %.2g", (long long)m, (long long)n,
                     got[m * N + n], sum, bound);
    }
    free(got);
    free(x);
    free(d);
    release(&made);
    cornu_program_free(p);
    cornu_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_which_are_summed),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_bits_of_other_shapes),
        cmocka_unit_test(test_bits_of_lookups),
        cmocka_unit_test(test_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
