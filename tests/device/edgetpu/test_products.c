/* Fast convolutions against reference.c, bit for bit, with the loops of each instruction set; and
 * the fixed-point arithmetic against its definition. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../../device/edgetpu/isa/int8.h"
#include "../../../device/edgetpu/kernels.h"
#include "../isas.h"
#include "../../skip.h"

enum { CASES = 400, MOST_FILTERS = 70 };

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

/* What multiplies, and what it multiplies by. */
typedef struct {
    int8_t         *x, *filter;
    int32_t         bias[2 * MOST_FILTERS];
    CornuMultiplier multipliers[2 * MOST_FILTERS];
    CornuInt8Conv   conv;
} Case;

/* Bounds of a fused activation, shifts in both directions; some sums leave 32 bits on their way. */
static void draw_case(Case *to, bool depthwise, bool pooled)
{
    CornuInt8Window w = draw_window(depthwise);
    if (pooled && w.out_height == 1) w.out_height = 2;
    if (pooled && w.out_width == 1) w.out_width = 2;
    const int64_t filters = w.out_channels;
    const int64_t taps = w.height * w.width * (depthwise ? 1 : w.in_channels);
    const double  large = draw(0, 9) ? 0.3 : 3000.0;
    to->x = draw_bytes(w.batch * w.in_height * w.in_width * w.in_channels, -128);
    to->filter = draw_bytes(filters * taps, -127);
    for (int64_t f = 0; f < filters; f++) {
        to->bias[f] = (int32_t)draw(-5000, 5000);
        to->multipliers[f] = cornu__multiplier((double)draw(1, 1000) *
                                               (draw(0, 9) ? 1e-5 : large));
    }
    to->conv = (CornuInt8Conv){
        .window = w, .filter_channels = w.in_channels, .x_zero = (int32_t)draw(-128, 127),
        .y_zero = (int32_t)draw(-128, 127), .bounds = { (int32_t)draw(-128, 0), 127 },
        .filter = to->filter, .bias = draw(0, 3) ? to->bias : NULL, .multipliers = to->multipliers
    };
}

static void run_depthwise(const CornuInt8Conv *conv, const int8_t *x, int8_t *y)
{
    CornuInt8Channels *packed = cornu__int8_channels_create(conv);
    void *scratch = malloc(cornu__int8_depthwise_scratch(packed));
    const int64_t parts = draw(1, 3);
    for (int64_t i = 0; i < parts; i++)
        cornu__int8_depthwise(packed, conv->window.batch, x, y, scratch,
                              (CornuInt8Part){ i, parts });
    cornu__int8_channels_free(packed);
    free(scratch);
}

static void run_conv2d(const CornuInt8Conv *conv, const int8_t *x, int8_t *y)
{
    CornuInt8Packed *packed = cornu__int8_pack_create(conv);
    void *scratch = malloc(cornu__int8_conv2d_scratch(packed));
    const int64_t parts = draw(1, 3);
    for (int64_t i = 0; i < parts; i++)
        cornu__int8_conv2d(packed, conv->window.batch, x, y, scratch,
                           (CornuInt8Part){ i, parts });
    cornu__int8_pack_free(packed);
    free(scratch);
}

/* The largest of each 2 x 2, in place. */
static CornuInt8Window pool(const CornuInt8Window *w, int8_t *y)
{
    const CornuInt8Window pooled = {
        .batch = w->batch, .in_height = w->out_height, .in_width = w->out_width,
        .in_channels = w->out_channels, .out_height = w->out_height / 2,
        .out_width = w->out_width / 2, .out_channels = w->out_channels, .height = 2, .width = 2,
        .stride_height = 2, .stride_width = 2, .dilation_height = 1, .dilation_width = 1
    };
    const size_t bytes = (size_t)(w->batch * w->out_height * w->out_width * w->out_channels);
    int8_t      *from = malloc(bytes);
    memcpy(from, y, bytes);
    cornu__int8_max_pool(&pooled, (CornuBounds){ -128, 127 }, from, y);
    free(from);
    return pooled;
}

static void compare_conv(int number, bool depthwise, bool pooled)
{
    Case c;
    draw_case(&c, depthwise, pooled);
    const CornuInt8Window *w = &c.conv.window;
    int64_t results = w->batch * w->out_height * w->out_width * w->out_channels;
    int8_t *got = malloc((size_t)results), *want = malloc((size_t)results);
    if (depthwise && w->in_channels != w->out_channels) {
        free(c.x), free(c.filter), free(got), free(want);
        return;
    }
    if (depthwise) {
        cornu__int8_depthwise_reference(&c.conv, c.x, want);
        run_depthwise(&c.conv, c.x, got);
    } else {
        cornu__int8_conv2d_reference(&c.conv, c.x, want);
        CornuInt8Packed *packed = cornu__int8_pack_create(&c.conv);
        if (pooled && cornu__int8_is_monotonic(packed)) {
            const CornuInt8Window p = pool(w, want);
            results = p.batch * p.out_height * p.out_width * p.out_channels;
            c.conv.pooled = true;
        }
        cornu__int8_pack_free(packed);
        run_conv2d(&c.conv, c.x, got);
    }
    expect_equal(depthwise ? "depthwise" : pooled ? "pooled" : "conv2d", number, got, want,
                 results);
    free(c.x), free(c.filter), free(got), free(want);
}

static void fast_as_reference(void **state)
{
    (void)state;
    seed = 1;
    for (int i = 0; i < CASES; i++) compare_conv(i, i % 4 == 3, i % 4 == 2);
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

enum { MOST_SEGMENTS = 4, MOST_GROUPS = 6, MOST_COLUMNS = 2 * CORNU_INT8_COLUMNS };

/* Arrays of a finish: multipliers of both directions, or factors some of whose products are halves.
 * `large`: of sums that are not bounded. */
typedef struct {
    int32_t bias[CORNU_INT8_BLOCK], mantissa[CORNU_INT8_BLOCK], left[CORNU_INT8_BLOCK];
    int32_t right[CORNU_INT8_BLOCK];
    double  factors[CORNU_INT8_BLOCK];
} Arrays;

static CornuInt8Finish draw_finish(Arrays *to, int64_t most, bool real)
{
    const bool large = !draw(0, 5);
    const int32_t zero = (int32_t)draw(-128, 127);
    bool bounded = true;
    for (int c = 0; c < CORNU_INT8_BLOCK; c++) {
        to->bias[c] = (int32_t)draw(-90000, 90000);
        to->mantissa[c] = (int32_t)draw(1 << 30, INT32_MAX);
        to->left[c] = draw(0, 5) ? 0 : (int32_t)draw(1, large ? 20 : 3);
        to->right[c] = to->left[c] ? 0 : (int32_t)draw(0, large ? 31 : 20);
        to->factors[c] = draw(0, 1) ? 0.5 / (double)draw(1, 500) : 0.0625;
        bounded = bounded && cornu__int8_is_bounded(most + 90000, to->left[c], to->right[c], zero);
    }
    return (CornuInt8Finish){ to->bias, to->mantissa, to->left, to->right, zero,
                              (int32_t)draw(-128, 0), 127, bounded, false,
                              real ? to->factors : NULL };
}

/* Elements as loops of this width read them. */
static uint8_t *widened(int width, const int8_t *from, int64_t count, int32_t more)
{
    uint8_t *to = malloc((size_t)(count * width));
    for (int64_t i = 0; i < count; i++) cornu__int8_put(width, to, i, from[i] + more);
    return to;
}

/* Strides and offsets in elements; `count` of a segment, a multiple of 4. */
typedef struct {
    CornuInt8Tile tile;
    int64_t       count, stride, half, offsets[MOST_SEGMENTS];
    const int8_t *x, *filter;   /* (columns, segments, count) */
} Product;

enum { X_ELEMENTS = 12 * 40 + 1000 + 4 * MOST_GROUPS };

static void multiply(const Product *p, const CornuInt8Loops *loops, int8_t *y)
{
    const int     width = loops->width, group = CORNU_INT8_GROUP / width;
    const int64_t all = p->tile.segments * p->count, bytes = all / group * CORNU_INT8_PANEL;
    ptrdiff_t     offsets[MOST_SEGMENTS];
    uint8_t      *x = widened(width, p->x, X_ELEMENTS, 128);
    uint8_t      *panels = malloc((size_t)(2 * bytes + 1));
    for (int64_t c = 0; c < MOST_COLUMNS; c++)
        for (int64_t k = 0; k < all; k++)
            cornu__int8_put(width, panels + c / CORNU_INT8_COLUMNS * bytes +
                                       k / group * CORNU_INT8_PANEL,
                            c % CORNU_INT8_COLUMNS * group + k % group, p->filter[c * all + k]);
    for (int s = 0; s < MOST_SEGMENTS; s++) offsets[s] = (ptrdiff_t)p->offsets[s] * width;
    CornuInt8Tile tile = p->tile;
    tile.x = x, tile.offsets = offsets;
    tile.x_stride = (ptrdiff_t)p->stride * width, tile.half_stride = (ptrdiff_t)p->half * width;
    tile.groups = p->count / group;
    tile.panel[0] = panels, tile.panel[1] = panels + bytes;
    tile.y = y;
    loops->product(&tile);
    free(x), free(panels);
}

static void compare_products(int n, const CornuInt8Loops *loops)
{
    Arrays  arrays;
    int8_t  got[CORNU_INT8_ROWS * MOST_COLUMNS], want[CORNU_INT8_ROWS * MOST_COLUMNS];
    Product p = { .count = 4 * draw(1, MOST_GROUPS), .stride = draw(1, 40), .half = draw(0, 500) };
    CornuInt8Tile *tile = &p.tile;
    *tile = (CornuInt8Tile){ .segments = draw(0, MOST_SEGMENTS), .panels = (int)draw(1, 2),
                             .pooled = !draw(0, 2) };
    const int64_t all = tile->segments * p.count;
    int8_t *x = draw_bytes(X_ELEMENTS, -128), *filter = draw_bytes(MOST_COLUMNS * all + 1, -127);
    p.x = x, p.filter = filter;
    for (int s = 0; s < MOST_SEGMENTS; s++) p.offsets[s] = draw(0, 450);
    tile->rows = tile->pooled ? 4 * (int)draw(1, 3) : (int)draw(1, CORNU_INT8_ROWS);
    tile->finish = draw_finish(&arrays, all * 255 * 127, !draw(0, 3));
    tile->columns = (int)draw((tile->panels - 1) * CORNU_INT8_COLUMNS + 1,
                              tile->panels * CORNU_INT8_COLUMNS);
    tile->y_stride = tile->columns;
    multiply(&p, tables[0].loops, want);
    multiply(&p, loops, got);
    expect_equal("product", n, got, want, tile->rows / (tile->pooled ? 4 : 1) * tile->columns);
    free(x), free(filter);
}

enum { MOST_TAPS = 16, OUTPUTS = 7, CHANNELS_X = 1000 };

/* x, offsets and stride in elements; filter (taps, channels); arrays in the order of channels. */
static void run_channels(CornuInt8Depthwise tile, const CornuInt8Loops *loops, const int8_t *from,
                         const int64_t *at, int64_t stride, const int8_t *by, const Arrays *arrays,
                         int8_t *y)
{
    const int width = loops->width;
    ptrdiff_t offsets[MOST_TAPS] = { 0 };
    uint8_t  *x = widened(width, from, CHANNELS_X, 128);
    uint8_t  *filter = calloc(MOST_TAPS * CORNU_INT8_BLOCK, (size_t)width);
    Arrays    ordered;
    for (int64_t t = 0; t < tile.taps; t++) offsets[t] = (ptrdiff_t)at[t] * width;
    const int span = cornu__int8_span(loops->interleaved, tile.channels);
    for (int as = 0; as < CORNU_INT8_BLOCK; as++) {
        const int c = as % span, to = cornu__int8_channel_at(loops->interleaved, as);
        for (int64_t t = 0; t < tile.taps; t++)
            cornu__int8_put(width, filter,
                            t / CORNU_INT8_TAPS * CORNU_INT8_TAPS * CORNU_INT8_BLOCK +
                                cornu__int8_tap_at(loops->interleaved, (int)(t % CORNU_INT8_TAPS),
                                                   as), by[t * CORNU_INT8_BLOCK + c]);
        ordered.bias[to] = arrays->bias[c], ordered.mantissa[to] = arrays->mantissa[c];
        ordered.left[to] = arrays->left[c], ordered.right[to] = arrays->right[c];
    }
    tile.finish.bias = ordered.bias, tile.finish.mantissa = ordered.mantissa;
    tile.finish.left = ordered.left, tile.finish.right = ordered.right;
    tile.x = x, tile.x_stride = (ptrdiff_t)stride * width;
    tile.offsets = offsets, tile.filter = filter, tile.y = y;
    loops->depthwise(&tile);
    free(x), free(filter);
}

static void compare_depthwise(int n, const CornuInt8Loops *loops)
{
    Arrays  arrays;
    int64_t offsets[MOST_TAPS];
    int8_t *x = draw_bytes(CHANNELS_X, -128);
    int8_t *filter = draw_bytes(MOST_TAPS * CORNU_INT8_BLOCK, -127);
    int8_t  got[OUTPUTS * CORNU_INT8_BLOCK], want[OUTPUTS * CORNU_INT8_BLOCK];
    const int64_t stride = draw(1, 80);
    for (int64_t t = 0; t < MOST_TAPS; t++) offsets[t] = draw(0, 400);
    CornuInt8Depthwise tile = {
        .taps = draw(0, 1) ? 9 : draw(1, MOST_TAPS), .outputs = draw(1, OUTPUTS),
        .channels = draw(0, 1) ? CORNU_INT8_BLOCK : (int)draw(1, CORNU_INT8_BLOCK)
    };
    tile.finish = draw_finish(&arrays, tile.taps * 255 * 127, false);
    tile.y_stride = tile.channels;
    run_channels(tile, tables[0].loops, x, offsets, stride, filter, &arrays, want);
    run_channels(tile, loops, x, offsets, stride, filter, &arrays, got);
    expect_equal("depthwise", n, got, want, tile.outputs * tile.channels);
    free(x), free(filter);
}

static void loops_agree(void **state)
{
    (void)state;
    int compared = 0;
    for (size_t i = 1; i < sizeof tables / sizeof *tables; i++) {
        if (!isa_present(tables[i].isa) || (tables[i].vnni && !cornu__cpu()->vnni)) continue;
        seed = i;
        for (int n = 0; n < 1000; n++) {
            compare_products(n, tables[i].loops);
            compare_depthwise(n, tables[i].loops);
        }
        compared++;
    }
    if (!compared) SKIP_FOR(SKIP_ISA);
}

/* Sums on the border of what is bounded, and beyond, as fixed.h scales them. */
static void scaled_sums(void **state)
{
    (void)state;
    enum { COUNT = 64 };
    Arrays arrays;
    int32_t sums[COUNT];
    int8_t  got[COUNT];
    seed = 3;
    for (int n = 0; n < 3000; n++) {
        const int32_t shift = (int32_t)draw(-31, 8), most = INT32_MAX >> draw(0, 30);
        const CornuMultiplier by = { (int32_t)draw(1 << 30, INT32_MAX), shift };
        const int32_t left = shift > 0 ? shift : 0, right = shift > 0 ? 0 : -shift;
        const int32_t zero = (int32_t)draw(-128, 127);
        for (int c = 0; c < COUNT; c++) {
            const int32_t edge = draw(0, 1) ? most : (int32_t)(INT64_C(1) << draw(0, 30));
            sums[c] = draw(0, 3) ? (int32_t)draw(-most, most) : edge > most ? most : edge;
            if (draw(0, 1)) sums[c] = -sums[c];
            arrays.mantissa[c] = by.mantissa, arrays.left[c] = left, arrays.right[c] = right;
        }
        const CornuInt8Finish finish = {
            NULL, arrays.mantissa, arrays.left, arrays.right, zero, -128, 127,
            cornu__int8_is_bounded(most, left, right, zero), draw(0, 1) != 0, NULL
        };
        cornu__int8_loops()->finish(&finish, COUNT - n % 9, sums, got);
        for (int c = 0; c < COUNT - n % 9; c++) {
            const int64_t to = (int64_t)cornu__fixed_scale(sums[c], by) + zero;
            if (left == 0 && got[c] != (to < -128 ? -128 : to > 127 ? 127 : to))
                fail_msg("%d by %d 2^%d: %d, expected %lld", sums[c], by.mantissa, shift - 31,
                         got[c], (long long)to);
        }
    }
}

/* Sums times factors, many of them halves: a tile without segments finishes its biases. */
static void real_factors(void **state)
{
    (void)state;
    Arrays arrays;
    int8_t got[MOST_COLUMNS];
    seed = 5;
    for (int n = 0; n < 2000; n++) {
        CornuInt8Tile tile = { .panels = 2, .rows = 1, .columns = MOST_COLUMNS, .y = got,
                               .finish = draw_finish(&arrays, 90000, true) };
        for (int c = 0; c < MOST_COLUMNS; c++) {
            if (draw(0, 1)) arrays.factors[c] = ldexp(1.0, -(int)draw(0, 12));
            if (!draw(0, 3)) arrays.factors[c] = nextafter(0.5, draw(0, 1)), arrays.bias[c] %= 300;
            if (!draw(0, 9)) arrays.bias[c] = 1;
        }
        cornu__int8_loops()->product(&tile);
        for (int c = 0; c < MOST_COLUMNS; c++) {
            const double to = round(arrays.bias[c] * arrays.factors[c]) + tile.finish.zero;
            const double want = fmin(fmax(to, tile.finish.low), tile.finish.high);
            if (got[c] != (int)want)
                fail_msg("%d by %a: %d, expected %g", arrays.bias[c], arrays.factors[c], got[c],
                         want);
        }
    }
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
    const struct CMUnitTest each[] = {
        cmocka_unit_test(fast_as_reference), cmocka_unit_test(scaled_sums),
        cmocka_unit_test(real_factors)
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loops_agree), cmocka_unit_test(fixed_point),
        cmocka_unit_test(multipliers),
    };
    int failed = 0;
    for (int isa = 0; isa < CORNU_F32_ISA_COUNT; isa++)
        failed += isa_run_group("", (CornuIsa)isa, each, 3);
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
