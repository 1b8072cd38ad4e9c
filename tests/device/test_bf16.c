/*
 * What moves between f32, bf16 and pairs, for each instruction set this processor has; and the
 * tiles that multiply pairs, against loops in double.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../device/host/bf16.h"
#include "../../device/host/cpu.h"
#include "../../device/host/product.h"
#include "../../device/type.h"

static const CornuBf16     *bf16;
static const CornuProducts *p;     /* of pairs */

static uint32_t random_state = 1;

static uint32_t random_bits(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 8;
}

static int64_t between(int64_t low, int64_t high)
{
    return low + (int64_t)(random_bits() % (uint32_t)(high - low + 1));
}

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

/* `size` is the sum of the terms' sizes; a narrow result is rounded to 8 bits. */
static void assert_near(double got, double expected, double size, int64_t terms, bool narrow)
{
    const double summing = FLT_EPSILON * (4.0 + 2.0 * sqrt((double)terms)) * size;
    const double rounding = narrow ? fabs(expected) / 256.0 : 0.0;
    if (!(fabs(got - expected) <= summing + rounding))
        fail_msg("%.9g, expected %.9g, %lld terms", got, expected, (long long)terms);
}

/* Runs of any length from any element on, of a panel whose odd rows share memory with even ones.
 * What a run does not name is NaN, and must not be touched by what it does. */
static void test_tile(void **state)
{
    (void)state;
    for (int round = 0; round < 200; round++) {
        const int64_t  depth = round % 20 ? between(1, 70) : 4001;
        const int      vectors = (int)between(1, 2), width = vectors * p->lanes;
        const int      columns = (int)between(width - p->lanes + 1, width);
        const int      rows = (int)between(1, p->tile_rows);
        const CornuRun runs[] = { { 1, 0, depth / 3 },
                                  { 1 + depth / 3, depth / 3, between(0, depth - depth / 3) } };
        const int64_t  used = runs[0].length + runs[1].length, stride = depth + 3;
        const bool     relu = round % 3 == 0, narrow = round % 2;
        uint16_t      *x = random_array(rows * stride), *b = random_array(depth * width);
        uint16_t      *panel = NULL;
        float         *bias = calloc((size_t)width, sizeof *bias);
        float         *y = malloc((size_t)(rows * width) * sizeof *y);
        const size_t   bytes = (size_t)((depth + 1) / 2 * 2 * width) * sizeof *panel;
        panel = aligned_alloc(64, (bytes + 63) / 64 * 64);
        memset(panel, 0xff, bytes);
        p->pack(panel, width, 0, used / 2, b, width, 1, columns);
        p->pack(panel, width, used / 2, used - used / 2, b + used / 2 * width, width, 1, columns);
        for (int m = 0; m < rows; m++)
            for (int64_t i = 0; i < stride; i++)
                if (i < 1 || i >= 1 + used) x[m * stride + i] = 0x7fc0;
        for (int n = 0; n < columns; n++) bias[n] = (float)n / 8.0f;
        p->tile(&(CornuTile){ .x = x, .x_stride = stride, .runs = runs, .run_count = 2,
                              .panel = panel, .bias = bias, .y = y, .y_stride = columns,
                              .rows = rows, .vectors = vectors, .columns = columns, .relu = relu,
                              .narrow = narrow });
        for (int m = 0; m < rows; m++)
            for (int n = 0; n < columns; n++) {
                double sum = (double)bias[n], size = fabs(sum);
                for (int64_t i = 0; i < used; i++) {
                    const double term = at(x, m * stride + 1 + i) * at(b, i * width + n);
                    sum += term;
                    size += fabs(term);
                }
                if (relu && sum < 0.0) sum = 0.0;
                const double got = narrow ? at((const uint16_t *)(const void *)y, m * columns + n)
                                          : (double)y[m * columns + n];
                assert_near(got, sum, size, used, narrow);
            }
        free(x), free(b), free(panel), free(bias), free(y);
    }
}

/* Pairs from two images, the second of the last missing; gathered and not, in two calls. */
static void test_outer(void **state)
{
    (void)state;
    for (int round = 0; round < 100; round++) {
        const int64_t images = between(1, 7), pairs = (images + 1) / 2, positions = between(1, 40);
        const int     vectors = (int)between(1, 2), width = vectors * p->lanes;
        const bool    gather = round % 2;
        const int     rows = (int)between(1, gather ? p->gather_rows : p->tile_rows);
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
        assert_int_equal(high[i], rounded[i]);
        assert_int_equal(finite[i], isinf(back[i]) ? 0 : high[i]);
        if (!isinf(back[i]))
            assert_true(at(high, i) + at(middle, i) + at(low, i) == (double)x[i]);
    }
    x[0] = NAN, x[1] = INFINITY, x[2] = -INFINITY;
    bf16->narrow(x, 3, rounded);
    bf16->split(x, 3, high, finite, middle, low);
    assert_true(isnan(at(rounded, 0)) && isnan(at(high, 0)));
    assert_true(at(rounded, 1) == INFINITY && at(high, 2) == -INFINITY);
    for (int i = 0; i < 3; i++) assert_true(finite[i] == 0 && middle[i] == 0 && low[i] == 0);
}

static int with_isa(CornuIsa isa)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conversions),
        /* of pairs alone */
        cmocka_unit_test(test_tile),
        cmocka_unit_test(test_outer),
    };
    setenv("CORNU_ISA", cornu__isa_name(isa), 1);
    if (cornu__cpu_isa(&isa) != CORNU_OK) return 1;
    random_state = 1;
    bf16 = cornu__bf16();
    p = cornu__products_of_bf16();
    return _cmocka_run_group_tests(cornu__isa_name(isa), tests, p->depth == 1 ? 1 : 3, NULL, NULL);
}

int main(void)
{
    int failed = 0;
    for (int isa = 0; isa <= (int)cornu__cpu()->best; isa++) failed += with_isa((CornuIsa)isa);
    return failed;
}
