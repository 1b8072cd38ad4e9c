/*
 * Conversions between f32, bf16 and pairs, for each instruction set this processor has; and the
 * tiles that multiply pairs, against loops in double.
 *
 * tests/run: all instruction sets
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../../skip.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../../../device/host/machine/bf16.h"
#include "../../../../device/host/machine/cpu.h"
#include "../../../../device/host/isa/product.h"
#include "../../../../device/type.h"
#include "../kernels/amx_emulation.h"
#include "../kernels/bf16_emulation.h"
#include "../../isas.h"
#include "../../numbers.h"

static const CornuBf16     *bf16;
static const CornuProducts *p;     /* of pairs */

static uint16_t random_bf16(void)
{
    return cornu_bf16_from_float((float)random_bits() / (1 << 23) - 1.0f);
}

static uint16_t *random_array(int64_t count)
{
    uint16_t *x = malloc((size_t)(count + 1) * sizeof *x);
    for (int64_t i = 0; i < count; i++) x[i] = random_bf16();
    return x;
}

static double at(const uint16_t *x, int64_t i) { return (double)cornu_bf16_to_float(x[i]); }

/* `size` is the sum of the magnitudes of the terms; a narrow result is rounded to 8 bits. */
static void assert_near(double got, double expected, double size, int64_t terms, bool narrow)
{
    const double summing = FLT_EPSILON * (4.0 + 2.0 * sqrt((double)terms)) * size;
    const double rounding = narrow ? fabs(expected) / 256.0 : 0.0;
    if (!(fabs(got - expected) <= summing + rounding))
        fail_msg("%.9g, expected %.9g, %lld terms", got, expected, (long long)terms);
}

/* Runs of any length from any element on, of a panel whose odd rows share memory with even ones.
 * Elements outside the runs are NaN and must not be touched; nor may elements of y outside its
 * columns. */
static void test_tile(void **state)
{
    (void)state;
    for (int round = 0; round < 200; round++) {
        const int      vectors = (int)between(1, 2), width = vectors * p->lanes;
        const int      columns = (int)between(width - p->lanes + 1, width);
        const int      rows = (int)between(1, p->tile_rows), run_count = (int)between(0, 5);
        const bool     relu = round % 3 == 0, narrow = round % 2;
        const size_t   y_size = narrow ? sizeof(uint16_t) : sizeof(float);
        const int64_t  y_stride = columns + between(0, 3);
        CornuRun       runs[5];
        int64_t        stride = 1, depth = between(0, 1), used = 0;
        for (int r = 0; r < run_count; r++) {
            const int64_t length = round % 20 ? between(0, 70) : 1001;
            runs[r] = (CornuRun){ stride, depth, length };
            stride += length + between(0, 3);
            depth += length + between(0, 3);
            used += length;
        }
        stride += 2;
        uint16_t      *x = malloc((size_t)(rows * stride) * sizeof *x);
        uint16_t      *b = random_array(depth * width), *panel;
        float         *bias = calloc((size_t)width, sizeof *bias);
        unsigned char *y = malloc((size_t)(rows * y_stride) * y_size);
        const size_t   bytes = (size_t)((depth + 1) / 2 * 2 * width) * sizeof *panel;
        panel = aligned_alloc(64, (bytes + 64) / 64 * 64);
        memset(panel, 0xff, bytes);
        memset(x, 0xff, (size_t)(rows * stride) * sizeof *x);
        memset(y, 0xab, (size_t)(rows * y_stride) * y_size);
        for (int r = 0; r < run_count; r++) {
            const CornuRun *run = &runs[r];
            p->pack(panel, width, run->k, run->length, b + run->k * width, width, 1, columns);
            for (int m = 0; m < rows; m++)
                for (int64_t i = 0; i < run->length; i++)
                    x[m * stride + run->offset + i] = random_bf16();
        }
        for (int n = 0; n < columns; n++) bias[n] = (float)n / 8.0f;
        p->tile(&(CornuTile){ .x = x, .x_stride = stride, .runs = runs, .run_count = run_count,
                              .panel = panel, .bias = bias, .y = y, .y_stride = y_stride,
                              .rows = rows, .vectors = vectors, .columns = columns,
                              .x_far = round % 2, .finish.relu = relu, .narrow = narrow });
        for (int m = 0; m < rows; m++) {
            const unsigned char *row = y + (size_t)(m * y_stride) * y_size;
            for (int n = 0; n < columns; n++) {
                double sum = (double)bias[n], size = fabs(sum);
                for (int r = 0; r < run_count; r++)
                    for (int64_t i = 0; i < runs[r].length; i++) {
                        const double term = at(x, m * stride + runs[r].offset + i) *
                                            at(b, (runs[r].k + i) * width + n);
                        sum += term;
                        size += fabs(term);
                    }
                if (relu && sum < 0.0) sum = 0.0;
                const double got = narrow ? at((const uint16_t *)(const void *)row, n)
                                          : (double)((const float *)(const void *)row)[n];
                assert_near(got, sum, size, used, narrow);
            }
            for (size_t i = (size_t)columns * y_size; i < (size_t)y_stride * y_size; i++)
                assert_int_equal(row[i], 0xab);
        }
        free(x), free(b), free(panel), free(bias), free(y);
    }
}

/* Pairs from two images, the second of the last pair missing; gathered and not, in two calls. */
static void test_outer(void **state)
{
    (void)state;
    for (int round = 0; round < 100; round++) {
        const int64_t images = between(1, 7), pairs = (images + 1) / 2, positions = between(1, 40);
        const int     vectors = (int)between(1, 2), width = vectors * p->lanes;
        const bool    gather = round % 2;
        const int     rows = (int)between(1, gather ? p->gather_rows : p->outer_rows);
        const int64_t channels = rows + 3;
        uint16_t     *x = random_array(images * positions * channels);
        uint16_t     *y = random_array(images * positions * width);
        uint32_t     *x_pairs = malloc((size_t)(pairs * positions * channels) * sizeof *x_pairs);
        uint32_t     *y_pairs = malloc((size_t)(pairs * positions * width) * sizeof *y_pairs);
        float        *sum = malloc((size_t)(rows * width) * sizeof *sum);
        ptrdiff_t     offsets[32];
        for (int m = 0; m < rows; m++) offsets[m] = rows - 1 - m;
        for (int64_t b = 0; b < pairs; b++) {
            const uint16_t *x0 = x + 2 * b * positions * channels;
            const uint16_t *y0 = y + 2 * b * positions * width;
            const bool      both = 2 * b + 1 < images;
            bf16->pair(x0, both ? x0 + positions * channels : NULL, positions * channels,
                       x_pairs + b * positions * channels);
            bf16->pair(y0, both ? y0 + positions * width : NULL, positions * width,
                       y_pairs + b * positions * width);
        }
        CornuOuter outer = { .x = x_pairs, .y = y_pairs, .x_image = positions * channels,
                             .x_pixel = channels, .y_image = positions * width, .y_pixel = width,
                             .images = 1, .height = 1, .width = positions,
                             .offsets = gather ? offsets : NULL, .sum = sum, .sum_stride = width,
                             .rows = rows, .vectors = vectors };
        p->outer(&outer);
        outer.x = x_pairs + positions * channels;
        outer.y = y_pairs + positions * width;
        outer.images = pairs - 1;
        outer.add = true;
        p->outer(&outer);
        for (int m = 0; m < rows; m++)
            for (int n = 0; n < width; n++) {
                double expected = 0.0, size = 0.0;
                for (int64_t i = 0; i < images * positions; i++) {
                    const double term = at(x, i * channels + (gather ? offsets[m] : m)) *
                                        at(y, i * width + n);
                    expected += term;
                    size += fabs(term);
                }
                assert_near((double)sum[m * width + n], expected, size, images * positions, false);
            }
        free(x), free(y), free(x_pairs), free(y_pairs), free(sum);
    }
}

static const float odd_values[] = { 0.0f, -0.0f, 1.0f, -1.0f, 1.00390625f, 1.01171875f, 3.4e38f,
                                    -3.4e38f, 1e-3f, 65504.0f, 3.14159265f };

static void test_conversions(void **state)
{
    (void)state;
    enum { ODD = sizeof odd_values / sizeof *odd_values, COUNT = 1009 };
    float    x[COUNT], back[COUNT];
    uint16_t high[COUNT], finite[COUNT], middle[COUNT], low[COUNT], rounded[COUNT];
    for (int i = 0; i < COUNT; i++)
        x[i] = i < ODD ? odd_values[i] : ldexpf((float)random_bits() / (1 << 23) - 1.0f,
                                                (int)between(-30, 30));
    bf16->narrow(x, COUNT, rounded);
    bf16->widen(rounded, COUNT, back);
    bf16->split(x, COUNT, high, finite, middle, low);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(rounded[i], cornu_bf16_from_float(x[i]));
        assert_true(back[i] == cornu_bf16_to_float(rounded[i]));
        assert_int_equal(finite[i], high[i]);
        assert_true(isfinite(at(high, i)));
        if (isfinite(back[i]))
            assert_true(fabs(x[i] - at(high, i)) <= fabs((double)x[i] - back[i]));
        assert_true(at(high, i) + at(middle, i) + at(low, i) == (double)x[i]);
    }
    x[0] = NAN, x[1] = INFINITY, x[2] = -INFINITY;
    bf16->narrow(x, 3, rounded);
    bf16->split(x, 3, high, finite, middle, low);
    assert_true(isnan(at(rounded, 0)) && isnan(at(high, 0)));
    assert_true(at(rounded, 1) == INFINITY && at(high, 2) == -INFINITY);
    for (int i = 0; i < 3; i++) assert_true(finite[i] == 0 && middle[i] == 0 && low[i] == 0);
}

/* The bits that distinguish a NaN from an infinity may all be among those that rounding drops; the
 * sign stays. */
static void test_every_nan_stays_one(void **state)
{
    (void)state;
    enum { COUNT = 2 * 23 };
    uint32_t bits[COUNT];
    float    x[COUNT];
    uint16_t rounded[COUNT], high[COUNT], finite[COUNT], middle[COUNT], low[COUNT];
    for (int i = 0; i < COUNT; i++) bits[i] = (i % 2 ? 0xff800000 : 0x7f800000) | 1u << i % 23;
    memcpy(x, bits, sizeof x);
    bf16->narrow(x, COUNT, rounded);
    bf16->split(x, COUNT, high, finite, middle, low);
    for (int i = 0; i < COUNT; i++) {
        assert_true(isnan(at(rounded, i)) && isnan(at(high, i)));
        assert_int_equal(rounded[i] >> 15, i % 2);
        assert_int_equal(high[i] >> 15, i % 2);
        assert_true(isnan(cornu_bf16_to_float(cornu_bf16_from_float(x[i]))));
    }
}

/* Every bf16 with gates of every kind, against the product. */
static void test_gates(void **state)
{
    (void)state;
    enum { ALL = 65536 };
    static const float gates[] = { 0.0f, -0.0f, 1e-40f, -1e-40f, 2.5f, -3.0f, INFINITY, -INFINITY,
                                   NAN };
    static const float bounds[] = { INFINITY, 2.5f, 2.515625f };   /* the next one of bf16 */
    uint16_t *gate = malloc(ALL * sizeof *gate), *y = malloc(ALL * sizeof *y);
    float    *wide_gate = malloc(ALL * sizeof *wide_gate), *wide = malloc(ALL * sizeof *wide);
    for (size_t g = 0; g < 3 * sizeof gates / sizeof *gates; g++) {
        const float bound = bounds[g % 3];
        for (int i = 0; i < ALL; i++) {
            gate[i] = cornu_bf16_from_float(gates[g / 3]);
            y[i] = (uint16_t)i;
            wide_gate[i] = cornu_bf16_to_float(gate[i]);
            wide[i] = cornu_bf16_to_float(y[i]);
        }
        bf16->gate(gate, bound, ALL, y);
        cornu__products()->gate(wide_gate, bound, ALL, wide);
        for (int i = 0; i < ALL; i++) {
            const float product = cornu_bf16_to_float((uint16_t)i) *
                                  (wide_gate[i] > 0.0f && (bound == INFINITY ||
                                                           wide_gate[i] < bound) ? 1.0f : 0.0f);
            if (isnan(product)) assert_true(isnan(at(y, i)) && isnan(wide[i]));
            else assert_true(at(y, i) == (double)product && wide[i] == product &&
                             !signbit(at(y, i)) == !signbit(product));
        }
    }
    free(gate);
    free(y);
    free(wide_gate);
    free(wide);
}

/* The sum that one instruction makes of a sum and the products of a pair, rounded as product_bf16.c
 * says. Products of bf16 are floats; a sum in double rounds to float as the exact one would. */
#if defined(__aarch64__)
static float to_odd(float a, float b)
{
    const double sum = (double)a + (double)b, part = sum - (double)a;
    const double lost = ((double)a - (sum - part)) + ((double)b - part);
    float        near = (float)sum;
    uint32_t     bits;
    if ((double)near == sum && lost == 0.0) return near;
    const double over = ((double)near - sum - lost) * (near < 0.0f ? -1.0 : 1.0);
    if (over > 0.0) near = nextafterf(near, 0.0f);
    memcpy(&bits, &near, sizeof bits);
    bits |= 1;
    memcpy(&near, &bits, sizeof near);
    return near;
}

static float pair_added(float sum, float low, float high) { return to_odd(sum, to_odd(low, high)); }
#else
static float pair_added(float sum, float low, float high)
{
    sum = (float)((double)sum + (double)high);
    return (float)((double)sum + (double)low);
}
#endif

/* To the bit. */
static void test_sums(void **state)
{
    (void)state;
    enum { DEPTH = 120, ROUNDS = 50 };
    const int width = 2 * p->lanes, rows = p->tile_rows;
    for (int round = 0; round < ROUNDS; round++) {
        const CornuRun run = { 0, 0, DEPTH };
        uint16_t      *x = random_array(rows * DEPTH), *b = random_array(DEPTH * width);
        uint16_t      *panel = aligned_alloc(64, (size_t)(DEPTH * width) * sizeof *panel);
        float         *bias = calloc((size_t)width, sizeof *bias);
        float         *y = malloc((size_t)(rows * width) * sizeof *y);
        for (int i = 0; i < rows * DEPTH; i++)
            x[i] = cornu_bf16_from_float(ldexpf(cornu_bf16_to_float(x[i]), (int)between(-9, 9)));
        for (int n = 0; n < width; n++) bias[n] = (float)n / 8.0f;
        p->pack(panel, width, 0, DEPTH, b, width, 1, width);
        p->tile(&(CornuTile){ .x = x, .x_stride = DEPTH, .runs = &run, .run_count = 1,
                              .panel = panel, .bias = bias, .y = y, .y_stride = width,
                              .rows = rows, .vectors = 2, .columns = width });
        for (int m = 0; m < rows; m++)
            for (int n = 0; n < width; n++) {
                float sum = bias[n];
                for (int k = 0; k < DEPTH; k += 2)
                    sum = pair_added(sum, (float)(at(x, m * DEPTH + k) * at(b, k * width + n)),
                                     (float)(at(x, m * DEPTH + k + 1) *
                                             at(b, (k + 1) * width + n)));
                if (y[m * width + n] != sum)
                    fail_msg("row %d, column %d: %a, expected %a", m, n,
                             (double)y[m * width + n], (double)sum);
            }
        free(x), free(b), free(panel), free(bias), free(y);
    }
}

static int with_isa(CornuIsa isa)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conversions),
        cmocka_unit_test(test_every_nan_stays_one),
        cmocka_unit_test(test_gates),
        /* of pairs only */
        cmocka_unit_test(test_tile),
        cmocka_unit_test(test_outer),
        /* which AMX adds in another order */
        cmocka_unit_test(test_sums),
    };
    const size_t count = isa < CORNU_F32_ISA_COUNT ? 3 : isa < CORNU_TILE_ISA_FIRST ? 6 : 5;
    numbers_begin();
    if (isa_take(isa)) {
        bf16 = cornu__bf16();
        p = cornu__products_of_bf16();
    }
    return isa_run_group("", isa, tests, count);
}

/* Only the tiles are emulated: the outer products are those of the processor's own set. */
static void test_emulated_amx_tile(void **state)
{
#if defined(__x86_64__)
    if (isa_present(CORNU_ISA_AVX512BF16)) {
        p = &cornu__products_emulated_amx;
        test_tile(state);
        return;
    }
#endif
    (void)state;
    print_message("this processor lacks AVX512-BF16, whose outer products go with AMX\n");
    SKIP_FOR(SKIP_ISA);
}

static void test_emulated_bf16(void **state)
{
#if defined(__x86_64__)
    bf16 = cornu__bf16();
    p = &cornu__products_emulated_bf16;
    test_tile(state);
    test_outer(state);
    test_sums(state);
#else
    (void)state;
    print_message("only x86-64 has AVX512-BF16\n");
    SKIP_FOR(SKIP_ISA);
#endif
}

static int with_emulated_bf16(void)
{
    static const struct CMUnitTest tests[] = { cmocka_unit_test(test_emulated_bf16) };
    return cmocka_run_group_tests_name("emulated bf16", tests, NULL, NULL);
}

static int with_emulated_amx(void)
{
    static const struct CMUnitTest tests[] = { cmocka_unit_test(test_emulated_amx_tile) };
    return cmocka_run_group_tests_name("emulated amx", tests, NULL, NULL);
}

int main(void)
{
    int failed = with_emulated_bf16() + with_emulated_amx();
    for (int isa = 0; isa < CORNU_ISA_COUNT; isa++) failed += with_isa((CornuIsa)isa);
    return failed;
}
