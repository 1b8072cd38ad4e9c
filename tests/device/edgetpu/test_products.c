/* Fast convolutions against reference.c, bit for bit, with the loops of each instruction set; and
 * the fixed-point arithmetic against its definition. */
#include <stdlib.h>
#include <string.h>

#include "../../../device/edgetpu/isa/int8.h"
#include "../../../device/edgetpu/kernels.h"
#include "../isas.h"
#include "../../skip.h"

enum { CASES = 60, MOST_FILTERS = 70 };

static uint64_t seed;

static int64_t draw(int64_t low, int64_t high)   /* both included */
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return low + (int64_t)((seed >> 33) % (uint64_t)(high - low + 1));
}

static int8_t *draw_bytes(int64_t count, int64_t low)
{
    int8_t *bytes = malloc((size_t)count);
    for (int64_t i = 0; i < count; i++)   /* often the extremes, whose products are the largest */
        bytes[i] = (int8_t)(draw(0, 3) ? draw(low, 127) : draw(0, 1) ? 127 : low);
    return bytes;
}

static CornuInt8Window draw_window(bool depthwise)
{
    CornuInt8Window w = {
        .batch = draw(1, 3), .in_height = draw(1, 9), .in_width = draw(1, 9),
        .in_channels = draw(0, 2) ? draw(1, 9) : draw(10, 40), .height = draw(1, 4),
        .width = draw(1, 4), .stride_height = draw(1, 3), .stride_width = draw(1, 3),
        .dilation_height = draw(1, 2), .dilation_width = draw(1, 2), .pad_height = draw(0, 2),
        .pad_width = draw(0, 2), .out_height = draw(1, 9), .out_width = draw(1, 9)
    };
    if (!draw(0, 4)) w.height = w.width = w.stride_height = w.stride_width = 1;
    if (!draw(0, 2)) w.pad_height = w.pad_width = 0;
    w.out_channels = depthwise ? w.in_channels * draw(1, 2) : draw(1, MOST_FILTERS);
    return w;
}

static void expect_equal(const char *what, int number, const int8_t *got, const int8_t *want,
                         int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (got[i] != want[i])
            fail_msg("%s %d: %d at %lld, expected %d", what, number, got[i], (long long)i, want[i]);
}

static void compare_conv(int number, bool depthwise)
{
    const CornuInt8Window w = draw_window(depthwise);
    const int64_t filters = w.out_channels;
    const int64_t taps = w.height * w.width * (depthwise ? 1 : w.in_channels);
    const int64_t results = w.batch * w.out_height * w.out_width * filters;
    int8_t *x = draw_bytes(w.batch * w.in_height * w.in_width * w.in_channels, -128);
    int8_t *filter = draw_bytes(filters * taps, -127);
    int8_t *got = malloc((size_t)results), *want = malloc((size_t)results);
    int32_t         bias[2 * MOST_FILTERS];
    CornuMultiplier multipliers[2 * MOST_FILTERS];
    double          factors[2 * MOST_FILTERS];
    for (int64_t f = 0; f < filters; f++) {
        bias[f] = (int32_t)draw(-5000, 5000);
        factors[f] = (double)draw(1, 1000) * (draw(0, 9) ? 1e-5 : 0.3);
        multipliers[f] = cornu__multiplier(factors[f]);
    }
    const CornuInt8Conv conv = {
        .window = w, .filter_channels = w.in_channels, .x_zero = (int32_t)draw(-128, 127),
        .y_zero = (int32_t)draw(-128, 127), .bounds = { (int32_t)draw(-128, 0), 127 },
        .filter = filter, .bias = draw(0, 3) ? bias : NULL, .multipliers = multipliers
    };
    if (depthwise) {
        void *scratch = malloc(cornu__int8_depthwise_scratch(&conv));
        cornu__int8_depthwise_reference(&conv, x, want);
        cornu__int8_depthwise(&conv, x, got, scratch);
        free(scratch);
    } else {
        CornuInt8Packed *packed = cornu__int8_pack_create(&conv);
        void *scratch = malloc(cornu__int8_conv2d_scratch(packed));
        cornu__int8_conv2d_reference(&conv, x, want);
        cornu__int8_conv2d(packed, w.batch, x, got, scratch);
        cornu__int8_pack_free(packed);
        free(scratch);
    }
    expect_equal(depthwise ? "depthwise" : "conv2d", number, got, want, results);
    free(x), free(filter), free(got), free(want);
}

static void fast_as_reference(void **state)
{
    (void)state;
    seed = 1;
    for (int i = 0; i < CASES; i++) compare_conv(i, i % 4 == 3);
}

/* ---- Each table of loops, those without VNNI too ---- */

static const struct {
    CornuIsa              isa;
    bool                  vnni;
    const CornuInt8Loops *loops;
} tables[] = {
#define ROW(type, name, id, isa) { CORNU_ISA_##id, false, &name##_##isa },
    CORNU__F32_ISAS(ROW, , cornu__int8_loops)
#undef ROW
#define ROW(type, name, id, isa) { CORNU_ISA_AVX512, true, &name##_##isa },
    CORNU__VNNI_ISAS(ROW, , cornu__int8_loops)
#undef ROW
};

static void loops_agree(void **state)
{
    (void)state;
    int compared = 0;
    for (size_t i = 1; i < sizeof tables / sizeof *tables; i++) {
        if (!isa_present(tables[i].isa) || (tables[i].vnni && !cornu__cpu()->vnni)) continue;
        seed = i;
        for (int n = 0; n < 200; n++) {
            const int64_t groups = draw(1, 9);
            int8_t *x = draw_bytes(CORNU_INT8_ROWS * groups * CORNU_INT8_GROUP, -128);
            int8_t *panels = draw_bytes(2 * groups * CORNU_INT8_PANEL, -127);
            int32_t arrays[4][2 * CORNU_INT8_COLUMNS];
            for (int c = 0; c < 2 * CORNU_INT8_COLUMNS; c++) {
                arrays[0][c] = (int32_t)draw(-90000, 90000);
                arrays[1][c] = (int32_t)draw(1 << 30, INT32_MAX);
                arrays[2][c] = draw(0, 5) ? 0 : (int32_t)draw(1, 3);
                arrays[3][c] = arrays[2][c] ? 0 : (int32_t)draw(0, 20);
            }
            CornuInt8Tile tile = {
                .x = (const uint8_t *)x, .x_stride = groups * CORNU_INT8_GROUP, .groups = groups,
                .panel = { panels, panels + groups * CORNU_INT8_PANEL },
                .rows = (int)draw(1, CORNU_INT8_ROWS), .panels = (int)draw(1, 2),
                .finish = { arrays[0], arrays[1], arrays[2], arrays[3], (int32_t)draw(-128, 127),
                            -128, 127 },
            };
            tile.columns = (int)draw(1, tile.panels * CORNU_INT8_COLUMNS);
            tile.y_stride = tile.columns;
            int8_t got[CORNU_INT8_ROWS * 2 * CORNU_INT8_COLUMNS], want[sizeof got];
            tile.y = want;
            tables[0].loops->product(&tile);
            tile.y = got;
            tables[i].loops->product(&tile);
            expect_equal("product", n, got, want, tile.rows * tile.columns);
            free(x), free(panels);
            compared++;
        }
    }
    if (!compared) SKIP_FOR(SKIP_ISA);
}

/* ---- Fixed point ---- */

/* As gemmlowp defines it. */
static int32_t defined_product(int32_t a, int32_t b)
{
    const int64_t product = (int64_t)a * b;
    const int64_t nudge = product >= 0 ? 1 << 30 : 1 - (1 << 30);
    if (a == INT32_MIN && b == INT32_MIN) return INT32_MAX;
    return (int32_t)((product + nudge) / (INT64_C(1) << 31));
}

/* Halves away from zero. */
static int32_t defined_shift(int32_t x, int shift)
{
    const int64_t half = shift ? INT64_C(1) << (shift - 1) : 0;
    const int64_t size = (x < 0 ? -(int64_t)x : x) + half;
    return (int32_t)(x < 0 ? -(size >> shift) : size >> shift);
}

static void fixed_point(void **state)
{
    (void)state;
    static const int32_t edges[] = {
        INT32_MIN, INT32_MIN + 1, -(1 << 30) - 1, -(1 << 30), -3, -2, -1, 0, 1, 2, 3, 1 << 30,
        INT32_MAX - 1, INT32_MAX
    };
    const int count = (int)(sizeof edges / sizeof *edges);
    seed = 7;
    for (int i = 0; i < 100000; i++) {
        const bool    edge = i < count * count;
        const int32_t a = edge ? edges[i / count] : (int32_t)draw(INT32_MIN, INT32_MAX);
        const int32_t b = edge ? edges[i % count] : (int32_t)draw(INT32_MIN, INT32_MAX);
        const int     shift = i % 32;
        assert_int_equal(cornu__fixed_product(a, b), defined_product(a, b));
        assert_int_equal(cornu__fixed_shift_right(a, shift), defined_shift(a, shift));
    }
}

static void multipliers(void **state)
{
    (void)state;
    static const double factors[] = { 1.0, 0.5, 0.1, 3.7, 1e-6, 0x1.fffffffffp-3, 1e5 };
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
        const CornuMultiplier m = cornu__multiplier(factors[i]);
        const double back = (double)m.mantissa * (m.shift > 0 ? (double)(1 << m.shift)
                                                              : 1.0 / (double)(1u << -m.shift));
        assert_true(m.mantissa >= 1 << 30);
        assert_true(back / 0x1p31 > factors[i] * (1 - 1e-9));
        assert_true(back / 0x1p31 < factors[i] * (1 + 1e-9));
    }
    assert_int_equal(cornu__multiplier(0.0).mantissa, 0);
    assert_int_equal(cornu__multiplier(1e-12).mantissa, 0);
    assert_int_equal(cornu__multiplier(1e300).mantissa, INT32_MAX);
}

int main(void)
{
    const struct CMUnitTest each[] = { cmocka_unit_test(fast_as_reference) };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loops_agree), cmocka_unit_test(fixed_point),
        cmocka_unit_test(multipliers),
    };
    int failed = 0;
    for (int isa = 0; isa < CORNU_F32_ISA_COUNT; isa++)
        failed += isa_run_group("", (CornuIsa)isa, each, 1);
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
