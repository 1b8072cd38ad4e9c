/*
 * The kernels of the cpu and the tpu device against the reference kernels, which compute in
 * double: random shapes with extents of 1 and primes, odd strides, paddings and dilations; the
 * same bits with 1, 2 and 3 threads; with each instruction set this processor has.
 *
 * Products of bf16 are exact and summed in f32, so the bound is that of f32; a result in bf16 may
 * also differ by its rounding, 2^-8 of itself.
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

#include "../../../../device/cpu/blis.h"
#include "../../../../device/cpu/kernels.h"
#include "../../../../device/host/machine/cpu.h"
#include "../../../../device/host/kernels/pool.h"
#include "../../../../device/host/kernels/precision.h"
#include "../../../../device/memory_internal.h"
#include "../../isas.h"
#include "kernel_case.h"
#include "../../numbers.h"

/* The dtypes of products under test. */
static CornuDtype operands, results;

static int64_t pick(const int64_t *from, int count) { return from[between(0, count - 1)]; }

/* Random shapes of a test: fewer where dtypes share them. */
static int rounds(int count) { return tested_kernels == cornu__cpu_kernels ? count : count / 4; }

/* ---- Products ---- */

static const CornuOpId activations[] = { CORNU_OP_COUNT, CORNU_OP_RELU, CORNU_OP_ELU,
                                         CORNU_OP_TANH, CORNU_OP_SIGMOID };

static void check_with_epilogue(Case *c)
{
    if (case_expect(c)) {
        CornuShape shape = c->out_type[0].shape;
        int64_t    columns = shape.extent[shape.rank - 1];
        CornuType  type = cornu_type(c->out_type[0].dtype, columns);
        void      *bias = malloc(cornu_type_bytes(type));
        for (int64_t n = 0; n < columns; n++)
            cornu_array_set((CornuArray){ type, bias }, n, random_value());
        c->epilogue.bias = between(0, 2) ? bias : NULL;
        c->epilogue.activation = activations[between(0, type.dtype == CORNU_BF16 ? 1 : 4)];
        c->epilogue.attributes.alpha.alpha = 0.7;
        case_expect_epilogue(c);
        case_check(c);
        free(bias);
    }
    case_free(c);
}

static void test_matmul(void **state)
{
    (void)state;
    static const int64_t extents[] = { 1, 2, 3, 5, 7, 10, 13, 16, 17, 31, 32, 33, 48, 64, 67,
                                       100, 129, 257 };
    enum { COUNT = sizeof extents / sizeof *extents };
    for (int i = 0; i < rounds(150); i++) {
        int64_t m = extents[between(0, COUNT - 1)], n = extents[between(0, COUNT - 1)];
        int64_t k = extents[between(0, COUNT - 1)], batch = between(1, 3);
        int64_t ta = between(0, 1), tb = between(0, 1), kind = between(0, 3);
        Case    c = { .id = CORNU_OP_MATMUL, .terms = (double)k,
                      .epilogue.activation = CORNU_OP_COUNT };
        c.attributes.matmul.dtype = results;
        c.attributes.matmul.transpose_a = ta;
        c.attributes.matmul.transpose_b = tb;
        CornuShape a = ta ? cornu_shape(k, m) : cornu_shape(m, k);
        CornuShape b = tb ? cornu_shape(n, k) : cornu_shape(k, n);
        CornuShape batch_a = ta ? cornu_shape(batch, k, m) : cornu_shape(batch, m, k);
        CornuShape batch_b = tb ? cornu_shape(batch, n, k) : cornu_shape(batch, k, n);
        case_add(&c, cornu_type_from(operands, kind & 1 ? batch_a : a));
        case_add(&c, cornu_type_from(operands, kind & 2 ? batch_b : b));
        check_with_epilogue(&c);
    }
    /* Sums of no terms, of more rows than a block has. */
    for (int ta = 0; ta < 2; ta++) {
        Case c = { .id = CORNU_OP_MATMUL, .epilogue.activation = CORNU_OP_COUNT,
                   .attributes.matmul = { .transpose_a = ta, .dtype = results } };
        case_add(&c, ta ? cornu_type(operands, 0, 700) : cornu_type(operands, 700, 0));
        case_add(&c, cornu_type(operands, 0, 170));
        case_check_and_free(&c);
    }
    /* Several chunks and blocks. */
    for (int ta = 0; ta < 2; ta++) {
        Case c = { .id = CORNU_OP_MATMUL, .terms = 10001.0, .epilogue.activation = CORNU_OP_COUNT,
                   .attributes.matmul = { .transpose_a = ta, .dtype = results } };
        case_add(&c, ta ? cornu_type(operands, 10001, 150) : cornu_type(operands, 150, 10001));
        case_add(&c, cornu_type(operands, 10001, 35));
        case_check_and_free(&c);
    }
}

/* Attributes that leave at least one output. */
static CornuAttributes random_convolution(CornuShape x, CornuShape filter, bool plain)
{
    CornuAttributes a = { .conv2d.dtype = results };
    for (int i = 0; i < 2; i++) {
        if (plain) continue;
        a.conv2d.strides[i] = between(0, 3);
        a.conv2d.dilation[i] = between(0, 2);
        a.conv2d.low[i] = between(-1, 3);
        a.conv2d.high[i] = between(-1, 3);
        int64_t span = (filter.extent[i] - 1) * (a.conv2d.dilation[i] ? a.conv2d.dilation[i] : 1);
        if (x.extent[1 + i] + a.conv2d.low[i] + a.conv2d.high[i] <= span)
            a.conv2d.low[i] = span + 1;
    }
    return a;
}

static void check_convolution(CornuShape x, CornuShape filter, CornuAttributes attributes)
{
    Case y = { .id = CORNU_OP_CONV2D, .attributes = attributes,
               .epilogue.activation = CORNU_OP_COUNT,
               .terms = (double)(filter.extent[0] * filter.extent[1] * filter.extent[2]) };
    attributes.conv2d.dtype = y.attributes.conv2d.dtype = results;
    case_add(&y, cornu_type_from(operands, x));
    case_add(&y, cornu_type_from(operands, filter));
    CornuOpCall op = case_op(&y);
    CornuType   out;
    if (cornu__op_type(&op, &out) != CORNU_OK) fail_msg("%s", cornu_error_message());
    check_with_epilogue(&y);

    for (int by_filter = 0; by_filter < 2; by_filter++) {
        CornuType d_y = cornu_type_from(operands, out.shape);
        Case c = { .id = by_filter ? CORNU_OP_CONV2D_GRAD_FILTER : CORNU_OP_CONV2D_GRAD_INPUT,
                   .epilogue.activation = CORNU_OP_COUNT };
        for (int i = 0; i < 2; i++) {
            c.attributes.conv2d_grad.strides[i] = attributes.conv2d.strides[i];
            c.attributes.conv2d_grad.low[i] = attributes.conv2d.low[i];
            c.attributes.conv2d_grad.high[i] = attributes.conv2d.high[i];
            c.attributes.conv2d_grad.dilation[i] = attributes.conv2d.dilation[i];
            c.attributes.conv2d_grad.extents[i] = by_filter ? filter.extent[i] : x.extent[1 + i];
        }
        c.terms = by_filter ? (double)(out.shape.extent[0] * out.shape.extent[1] *
                                       out.shape.extent[2])
                            : (double)(filter.extent[0] * filter.extent[1] * filter.extent[3]);
        if (by_filter) case_add(&c, cornu_type_from(operands, x));
        c.attributes.conv2d_grad.dtype = results;
        case_add(&c, d_y);
        if (!by_filter) case_add(&c, cornu_type_from(operands, filter));
        assert_true(case_expect(&c));
        case_check(&c);
        case_free(&c);
    }
}

static void test_conv2d(void **state)
{
    (void)state;
    static const int64_t channels[] = { 1, 1, 2, 3, 4, 5, 7, 12, 16, 17, 24, 32, 33, 64 };
    enum { COUNT = sizeof channels / sizeof *channels };
    for (int i = 0; i < rounds(120); i++) {
        CornuShape x = cornu_shape(between(1, 19), between(1, 13), between(1, 13),
                                   channels[between(0, COUNT - 1)]);
        CornuShape filter = cornu_shape(between(1, 5), between(1, 5), x.extent[3],
                                        channels[between(0, COUNT - 1)]);
        bool plain = i % 4 == 0 && x.extent[1] >= filter.extent[0] &&
                     x.extent[2] >= filter.extent[1];
        check_convolution(x, filter, random_convolution(x, filter, plain));
    }
    /* Several chunks; a row skipped for a pool that drops it. */
    CornuAttributes dropped = { .conv2d = { .high = { -1, -1 } } };
    check_convolution(cornu_shape(17, 13, 13, 32), cornu_shape(3, 3, 32, 64), dropped);
    check_convolution(cornu_shape(12, 28, 28, 1), cornu_shape(3, 3, 1, 32), (CornuAttributes){ 0 });
    /* Only padding along the width, more than x is wide. */
    CornuAttributes apart = { .conv2d = { .strides = { 1, 3 }, .low = { 0, 3 },
                                          .high = { 0, -1 } } };
    check_convolution(cornu_shape(18, 9, 1, 4), cornu_shape(3, 1, 4, 1), apart);
}

/* Convolutions of 3 x 3 taps with fewer multiplications: maps of odd extents, channels that are not
 * whole registers, padding on one side alone, and rows that are skipped. Most are taken. */
static void test_winograd(void **state)
{
    (void)state;
    int taken = 0;
    for (int i = 0; i < rounds(40); i++) {
        const CornuShape x = cornu_shape(between(1, 4), between(4, 15), between(4, 15),
                                         between(12, 50));
        const CornuShape filter = cornu_shape(3, 3, x.extent[3], between(12, 70));
        CornuAttributes  a = { .conv2d = { .low = { between(-1, 2), between(0, 3) },
                                           .high = { between(0, 2), between(-1, 2) } } };
        Case y = { .id = CORNU_OP_CONV2D, .attributes = a };
        y.attributes.conv2d.dtype = results;
        case_add(&y, cornu_type_from(operands, x));
        case_add(&y, cornu_type_from(operands, filter));
        assert_true(case_expect(&y));
        taken += case_kernel(&y) == &cornu__host_conv2d_winograd;
        case_free(&y);
        check_convolution(x, filter, a);
    }
    if (tested_kernels == cornu__cpu_kernels) assert_true(taken > 10);
}

/* Gradients of filters from one image, whose halves are paired in bf16, and from images that are
 * cut into slabs, of rows or of the columns of one row. */
static void test_conv2d_slabs(void **state)
{
    (void)state;
    const CornuAttributes same = { .conv2d = { .low = { 1, 1 }, .high = { 1, 1 } } };
    const CornuAttributes wide = { .conv2d = { .low = { 3, 0 }, .high = { 0, 2 },
                                               .strides = { 2, 1 }, .dilation = { 1, 2 } } };
    for (int i = 0; i < rounds(24); i++) {
        CornuShape x = cornu_shape(1, between(1, 19), between(1, 13), i % 3 ? 16 : 5);
        CornuShape filter = cornu_shape(between(1, 5), between(2, 5), x.extent[3],
                                        i % 2 ? 16 : 48);
        if (i % 8 == 0) x.extent[1] = filter.extent[0] = 1;
        check_convolution(x, filter, random_convolution(x, filter, false));
    }
    for (int batch = 1; batch <= 3; batch++) {
        check_convolution(cornu_shape(batch, 101, 90, 8), cornu_shape(3, 3, 8, 16), same);
        check_convolution(cornu_shape(batch, 205, 80, 8), cornu_shape(4, 3, 8, 16), wide);
        check_convolution(cornu_shape(batch, 1, 9001, 8), cornu_shape(1, 5, 8, 16),
                          (CornuAttributes){ .conv2d = { .low = { 0, 1 } } });
    }
}

/* Gradients of filters from packed copies, f32 on tiles of few rows: blocks of several images, of
 * rows and of columns of one; filters that do not fill a panel, fewer panels than threads; more
 * taps than are found at once. */
static void test_conv2d_packed(void **state)
{
    (void)state;
    for (int i = 0; i < rounds(32); i++) {
        const CornuShape x = cornu_shape(between(1, 40), between(1, 9), between(1, 9),
                                         between(8, 40));
        const CornuShape filter = cornu_shape(between(1, 4), between(1, 4), x.extent[3],
                                              between(30, 70));
        check_convolution(x, filter, random_convolution(x, filter, false));
    }
    const CornuAttributes same = { .conv2d = { .low = { 1, 1 }, .high = { 1, 1 } } };
    const CornuAttributes two = { .conv2d = { .strides = { 2, 2 }, .dilation = { 1, 3 },
                                              .low = { 1, 2 }, .high = { 0, 3 } } };
    check_convolution(cornu_shape(2, 37, 41, 13), cornu_shape(3, 3, 13, 31), same);
    check_convolution(cornu_shape(2, 45, 53, 13), cornu_shape(3, 4, 13, 31), two);
    check_convolution(cornu_shape(1, 3, 1203, 10), cornu_shape(2, 3, 10, 40), two);
    check_convolution(cornu_shape(5, 12, 12, 8), cornu_shape(9, 10, 8, 28), same);
    check_convolution(cornu_shape(1, 4, 5, 64), cornu_shape(3, 3, 64, 200), same);
}

/* What tile registers take from padded copies: few channels and filters, several outputs of a row
 * at once; strides, also of outputs that no row of x is left for; several blocks. */
static void test_conv2d_wide(void **state)
{
    (void)state;
    static const int64_t channels[] = { 1, 3, 12, 16, 24, 32, 40, 64 };
    const CornuAttributes same = { .conv2d = { .low = { 1, 1 }, .high = { 1, 1 } } };
    const CornuAttributes half = { .conv2d = { .strides = { 2, 2 }, .low = { 2, 2 },
                                               .high = { 2, 2 } } };
    check_convolution(cornu_shape(2, 28, 28, 1), cornu_shape(3, 3, 1, 12), same);
    check_convolution(cornu_shape(2, 28, 28, 12), cornu_shape(6, 6, 12, 24), half);
    check_convolution(cornu_shape(1, 60, 64, 24), cornu_shape(3, 3, 24, 33), same);
    check_convolution(cornu_shape(1, 33, 48, 64), cornu_shape(1, 1, 64, 64), (CornuAttributes){
        .conv2d.strides = { 3, 2 } });
    for (int i = 0; i < rounds(40); i++) {
        const int64_t side = between(1, 6);
        CornuShape    x = cornu_shape(between(1, 3), between(14, 30), 2 * between(7, 20),
                                      pick(channels, 8));
        CornuShape    filter = cornu_shape(side, between(1, 6), x.extent[3], pick(channels, 8));
        CornuAttributes a = random_convolution(x, filter, i % 4 == 0);
        a.conv2d.dilation[1] = 1;
        check_convolution(x, filter, a);
    }
}

/* Gradients of filters on tile registers: sets of images and bands of fewer; blocks that are cut
 * along rows, and whose rows of x are a ring; several groups of channels, joined taps; chunks;
 * single rows, which are turned. */
static void test_conv2d_tiles(void **state)
{
    (void)state;
    for (int i = 0; i < rounds(32); i++) {
        const CornuShape x = cornu_shape(between(1, 80), between(1, 12), between(1, 12),
                                         i % 2 ? between(1, 16) : between(17, 100));
        const CornuShape filter = cornu_shape(between(1, 4), between(1, 4), x.extent[3],
                                              between(1, 100));
        check_convolution(x, filter, random_convolution(x, filter, false));
    }
    const CornuAttributes same = { .conv2d = { .low = { 1, 1 }, .high = { 1, 1 } } };
    const CornuAttributes two = { .conv2d = { .strides = { 2, 2 }, .dilation = { 2, 1 },
                                              .low = { 3, 1 }, .high = { 2, 2 } } };
    check_convolution(cornu_shape(2, 37, 141, 40), cornu_shape(3, 3, 40, 31), same);
    check_convolution(cornu_shape(5, 45, 153, 40), cornu_shape(3, 4, 40, 31), two);
    check_convolution(cornu_shape(33, 19, 153, 12), cornu_shape(3, 4, 12, 48), two);
    check_convolution(cornu_shape(130, 8, 8, 16), cornu_shape(3, 3, 16, 16), same);
    check_convolution(cornu_shape(70, 5, 5, 96), cornu_shape(5, 5, 96, 160), same);
    const CornuAttributes row = { .conv2d = { .strides = { 1, 3 }, .dilation = { 1, 2 },
                                              .low = { 0, 4 }, .high = { 0, 1 } } };
    check_convolution(cornu_shape(3, 1, 1000, 40), cornu_shape(1, 7, 40, 33), row);
    check_convolution(cornu_shape(2, 1, 301, 12), cornu_shape(1, 9, 12, 50), row);
}

/* Whether the gradient of x with C channels by square filters takes the kernel for few channels. */
static bool is_of_few(int64_t C, int64_t side, int64_t F)
{
    Case        c = { .id = CORNU_OP_CONV2D_GRAD_INPUT, .in_count = 2,
                      .attributes.conv2d_grad = { .extents = { side + 7, side + 7 },
                                                  .dtype = results },
                      .in_type = { cornu_type(operands, 2, 8, 8, F),
                                   cornu_type(operands, side, side, C, F) } };
    CornuOpCall op = case_op(&c);
    assert_int_equal(cornu__op_type(&op, c.out_type), CORNU_OK);
    return case_kernel(&c) == &cornu__host_conv2d_grad_input_few;
}

/* Few channels: of x by one product for all taps, where that saves work. Strides and dilations
 * that leave outputs without positions; several strips and slabs; one row. */
static void test_few_channels(void **state)
{
    (void)state;
    const bool tiles = operands == CORNU_BF16 &&
                       cornu__has_tile_registers(cornu__products_of_bf16());
    assert_true(is_of_few(1, 5, 64));
    assert_true(is_of_few(1, 3, 32) == !tiles && is_of_few(3, 3, 32) == !tiles);
    assert_false(is_of_few(1, 1, 64) || is_of_few(16, 3, 64) || is_of_few(64, 5, 128));
    for (int i = 0; i < rounds(48); i++) {
        const int64_t stride[] = { between(1, 3), between(1, 3) };
        const int64_t dilation[] = { between(1, 2), between(1, 2) };
        CornuShape    x = cornu_shape(i % 2 ? 3 : 1, between(5, 29), between(5, 29), i % 4 + 1);
        CornuShape    filter = cornu_shape(between(2, 5), between(2, 5), x.extent[3],
                                           between(5, 67));
        CornuAttributes a = { 0 };
        for (int k = 0; k < 2; k++) {
            const int64_t span = (filter.extent[k] - 1) * dilation[k];
            const bool    same = i / 2 % 2 || span >= x.extent[1 + k];
            a.conv2d.strides[k] = stride[k];
            a.conv2d.dilation[k] = dilation[k];
            a.conv2d.low[k] = same ? span / 2 : 0;
            a.conv2d.high[k] = same ? span - span / 2 : 0;
        }
        check_convolution(x, filter, a);
    }
    const CornuAttributes apart = { .conv2d = { .strides = { 4, 3 }, .low = { -2, 9 },
                                                .high = { 7, -1 } } };
    check_convolution(cornu_shape(1, 130, 37, 3), cornu_shape(3, 3, 3, 32),
                      (CornuAttributes){ .conv2d = { .low = { 1, 1 }, .high = { 1, 1 } } });
    check_convolution(cornu_shape(2, 1, 4001, 1), cornu_shape(1, 9, 1, 24), (CornuAttributes){ 0 });
    check_convolution(cornu_shape(3, 23, 31, 2), cornu_shape(2, 2, 2, 40), apart);
}

/* Depthwise convolutions, the only grouped ones with kernels; the others decompose. */
static void check_depthwise(CornuShape x, CornuShape filter)
{
    const CornuAttributes a = random_convolution(x, filter, false);
    Case y = { .id = CORNU_OP_GROUPED_CONV2D, .epilogue.activation = CORNU_OP_COUNT,
               .terms = (double)(filter.extent[0] * filter.extent[1]) };
    CornuAttributes grad = { .grouped_conv2d_grad = { .dtype = results, .groups = x.extent[3] } };
    for (int i = 0; i < 2; i++) {
        grad.grouped_conv2d_grad.strides[i] = a.conv2d.strides[i];
        grad.grouped_conv2d_grad.low[i] = a.conv2d.low[i];
        grad.grouped_conv2d_grad.high[i] = a.conv2d.high[i];
        grad.grouped_conv2d_grad.dilation[i] = a.conv2d.dilation[i];
    }
    y.attributes = grad;
    y.attributes.grouped_conv2d.groups = x.extent[3];
    case_add(&y, cornu_type_from(operands, x));
    case_add(&y, cornu_type_from(operands, filter));
    CornuOpCall op = case_op(&y);
    CornuType   d_y;
    assert_int_equal(cornu__op_type(&op, &d_y), CORNU_OK);
    d_y.dtype = operands;
    check_with_epilogue(&y);

    for (int by_filter = 0; by_filter < 2; by_filter++) {
        Case c = { .id = by_filter ? CORNU_OP_GROUPED_CONV2D_GRAD_FILTER
                                   : CORNU_OP_GROUPED_CONV2D_GRAD_INPUT,
                   .attributes = grad, .epilogue.activation = CORNU_OP_COUNT,
                   .terms = y.terms };
        for (int i = 0; i < 2; i++)
            c.attributes.grouped_conv2d_grad.extents[i] = by_filter ? filter.extent[i]
                                                                    : x.extent[1 + i];
        if (by_filter) c.terms = (double)cornu_type_count(d_y) / (double)x.extent[3];
        case_add(&c, by_filter ? cornu_type_from(operands, x) : d_y);
        case_add(&c, by_filter ? d_y : cornu_type_from(operands, filter));
        assert_true(case_expect(&c));
        case_check(&c);
        case_free(&c);
    }
}

static void test_depthwise(void **state)
{
    (void)state;
    for (int i = 0; i < rounds(80); i++) {
        const int64_t C = between(1, 70);
        check_depthwise(cornu_shape(between(1, 5), between(1, 13), between(1, 25), C),
                        cornu_shape(between(1, 5), between(1, 5), 1, C));
    }
}

/* ---- Pooling ---- */

/* Puts NaN, infinities and equal elements into operand 0. */
static void spoil(Case *c)
{
    int64_t count = cornu_type_count(c->in_type[0]);
    for (int i = 0; i < 6; i++) {
        float value = (const float[]){ NAN, INFINITY, -INFINITY, 0.5f, 0.5f, NAN }[i];
        cornu_array_set(case_operand(c, 0), between(0, (int)count - 1), value);
    }
}

static CornuAttributes random_window(bool plain)
{
    CornuAttributes a = { 0 };
    for (int i = 0; i < 2; i++) {
        a.window.size[i] = plain ? 2 : between(1, 4);
        a.window.strides[i] = plain ? 2 : between(0, 4);
        a.window.low[i] = plain ? 0 : between(0, a.window.size[i] - 1);
        a.window.high[i] = plain ? 0 : between(0, a.window.size[i] - 1);
    }
    return a;
}

static CornuAttributes gradient_of(CornuAttributes window, CornuShape x)
{
    CornuAttributes a = { 0 };
    for (int i = 0; i < 2; i++) {
        a.window_grad.size[i] = window.window.size[i];
        a.window_grad.strides[i] = window.window.strides[i];
        a.window_grad.low[i] = window.window.low[i];
        a.window_grad.high[i] = window.window.high[i];
        a.window_grad.extents[i] = x.extent[1 + i];
    }
    return a;
}

static void test_pool(void **state)
{
    (void)state;
    static const int64_t channels[] = { 1, 3, 12, 16, 24, 32, 33, 67 };
    for (int i = 0; i < rounds(120); i++) {
        CornuShape      x = cornu_shape(between(1, 5), between(2, 13), between(2, 13),
                                        pick(channels, 8));
        CornuAttributes window = random_window(i % 3 == 0);
        Case            y = { .id = CORNU_OP_MAX_POOL2D, .attributes = window, .terms = 1.0 };
        case_add(&y, cornu_type_from(operands, x));
        if (i % 2) spoil(&y);
        if (case_expect(&y)) {
            case_check(&y);
            Case c = { .id = CORNU_OP_MAX_POOL2D_GRAD, .attributes = gradient_of(window, x),
                       .terms = 1.0 };
            case_add(&c, y.out_type[0]);
            case_add(&c, y.out_type[1]);
            for (int64_t k = 0; k < cornu_type_count(y.out_type[1]); k++)
                cornu_array_set(case_operand(&c, 1), k, y.expected[1][k]);
            assert_true(case_expect(&c));
            case_check(&c);
            /* An index outside the window is found, and nothing is written elsewhere. */
            void *out[1];
            ((uint8_t *)c.in[1])[between(0, (int)cornu_type_count(y.out_type[1]) - 1)] = 255;
            assert_int_equal(case_run(&c, 2, out), CORNU_ERR_VALUE);
            case_free_results(&c, out);
            case_free(&c);
        }
        case_free(&y);

        Case mean = { .id = CORNU_OP_AVERAGE_POOL2D, .attributes = window, .terms = 16.0 };
        case_add(&mean, cornu_type_from(operands, x));
        if (case_expect(&mean)) {
            case_check(&mean);
            Case c = { .id = CORNU_OP_AVERAGE_POOL2D_GRAD, .attributes = gradient_of(window, x),
                       .terms = 16.0 };
            case_add(&c, mean.out_type[0]);
            case_check_and_free(&c);
        }
        case_free(&mean);
    }
}

/* The kernel that adds in the order of those joined with a pooling. */
static const CornuKernel *direct(const Case *c)
{
    const CornuKernel *kernel = case_kernel(c);
    const bool fewer = kernel == &cornu__host_conv2d_winograd ||
                       kernel == &cornu__host_conv2d_grad_input_winograd;
    return fewer ? case_kernel_taking(kernel->otherwise, c) : kernel;
}

/* A joined kernel: out has the types of the pool's outputs, or of the filter. */
static CornuStatus run_pooled(const CornuKernel *kernel, const Case *c, const Case *pool,
                              const void *const *in, const CornuType *type, int threads, void **out)
{
    CornuOpCall pool_call = case_op(pool);
    for (int i = 0; out[i]; i++) memset(out[i], 0xff, cornu_type_bytes(type[i]));
    const CornuKernelCall call = { .op = case_op(c), .out_type = c->out_type, .out = out,
                                   .epilogue = &c->epilogue, .pool = &pool_call };
    return case_run_call(kernel, call, in, threads);
}

/* The same in bf16: the pool takes the first of the map's elements that are largest once rounded;
 * bias and activation are added to f32 and rounded together. */
static void check_narrow_pooled(const CornuKernel *conv, const CornuKernel *separate, const Case *c,
                                const Case *pool, void **joined)
{
    Case          y = *c, p = *pool;
    const int64_t F = c->out_type[0].shape.extent[3], count = cornu_type_count(p.out_type[0]);
    const float  *exact = c->epilogue.bias;
    uint16_t     *bias = malloc((size_t)F * sizeof *bias);
    float        *wide = malloc((size_t)count * sizeof *wide);
    void         *map, *pooled[2];
    y.epilogue = (CornuEpilogue){ .activation = CORNU_OP_COUNT };
    y.attributes.conv2d.dtype = CORNU_BF16;
    y.out_type[0].dtype = p.in_type[0].dtype = p.out_type[0].dtype = CORNU_BF16;
    assert_int_equal(case_run_with(separate, &y, 1, &map), CORNU_OK);
    p.in[0] = map;
    assert_int_equal(case_run(&p, 1, pooled), CORNU_OK);
    for (int64_t f = 0; f < F; f++) bias[f] = cornu_bf16_from_float(exact[f]);
    for (int64_t k = 0; k < count; k++)
        wide[k] = cornu_bf16_to_float(((const uint16_t *)pooled[0])[k]);
    y.epilogue = c->epilogue;
    cornu__epilogue_apply(&y.epilogue, &(CornuEpilogueRows){
        .y = wide, .rows = count / F, .columns = F, .stride = F, .width = F });
    y.epilogue.bias = bias;
    for (int threads = 1; threads <= MOST_THREADS; threads++) {
        assert_int_equal(run_pooled(conv, &y, &p, (const void *const *)y.in, p.out_type, threads,
                                    joined), CORNU_OK);
        for (int64_t k = 0; k < count; k++)
            assert_int_equal(((const uint16_t *)joined[0])[k], cornu_bf16_from_float(wide[k]));
        assert_memory_equal(joined[1], pooled[1], cornu_type_bytes(p.out_type[1]));
    }
    cornu__release(map);
    for (int i = 0; i < 2; i++) cornu__release(pooled[i]);
    free(bias);
    free(wide);
}

/* Whether only the nonzero element of each window is summed, or tile registers sum one of the two
 * gradients alone: then the terms are added in another order. */
static bool selects(const Case *g, const Case *up)
{
    const CornuOpCall call = case_op(up);
    const CornuPool   pool = cornu__pool(&call);
    if (g->id == CORNU_OP_CONV2D_GRAD_FILTER &&
        cornu__multiplication(tested_multiplier, operands).products->packs) return true;
    return g->id == CORNU_OP_CONV2D_GRAD_FILTER &&
           cornu__multiplication(tested_multiplier, operands).products->selects &&
           cornu__pool_is_exact(&pool) && pool.height.size == 2 && pool.width.size == 2 &&
           g->attributes.conv2d_grad.strides[0] <= 1 && g->attributes.conv2d_grad.strides[1] <= 1 &&
           g->in_type[0].shape.extent[3] % CORNU_SELECT_GROUP == 0;
}

/* A gradient of the convolution y joined with the pool's, `up`, whose map is given; or no kernel
 * takes that. The bits are those of the two run one after the other, or at least the same every
 * time. */
static void check_unpooled(CornuOpId id, const Case *y, const Case *up, void *map)
{
    const bool         by_filter = id == CORNU_OP_CONV2D_GRAD_FILTER;
    const CornuShape   shape = y->in_type[by_filter].shape;
    const CornuMachine machine = { 1, tested_multiplier, 1 };
    Case               g = { .id = id, .in_count = 2, .epilogue.activation = CORNU_OP_COUNT,
                             .in_type = { up->out_type[0], y->in_type[1] }, .in = { map, y->in[1] },
                             .out_type = { cornu_type_from(results, shape) },
                             .attributes.conv2d_grad.dtype = results };
    const void        *in[] = { up->in[0], up->in[1], y->in[1] };
    if (by_filter) {
        g.in_type[0] = y->in_type[0], g.in_type[1] = up->out_type[0];
        g.in[0] = y->in[0], g.in[1] = map;
        in[0] = y->in[0], in[1] = up->in[0], in[2] = up->in[1];
    }
    for (int i = 0; i < 2; i++) {
        g.attributes.conv2d_grad.strides[i] = y->attributes.conv2d.strides[i];
        g.attributes.conv2d_grad.low[i] = y->attributes.conv2d.low[i];
        g.attributes.conv2d_grad.high[i] = y->attributes.conv2d.high[i];
        g.attributes.conv2d_grad.dilation[i] = y->attributes.conv2d.dilation[i];
        g.attributes.conv2d_grad.extents[i] = shape.extent[by_filter ? i : i + 1];
    }
    const CornuOpCall  call = case_op(&g);
    const CornuKernel *joined = cornu__kernel_taking(cornu__host_pooled[id], &call, g.out_type,
                                                     &machine);
    if (!joined) return;
    const size_t bytes = cornu_type_bytes(g.out_type[0]);
    void        *expected, *made[2] = { unset_memory(bytes) };
    uint8_t     *index = up->in[1];
    assert_int_equal(case_run_with(direct(&g), &g, 1, &expected), CORNU_OK);
    if (selects(&g, up)) {
        g.terms = (double)cornu_type_count(up->in_type[0]) / up->in_type[0].shape.extent[3];
        assert_true(case_expect(&g));
        assert_int_equal(run_pooled(joined, &g, up, in, g.out_type, 1, made), CORNU_OK);
        case_compare(&g, 0, made[0]);
        memcpy(expected, made[0], bytes);
        for (int i = 0; i < 2; i++) free(g.expected_in[i]);
        free(g.expected[0]);
    }
    for (int threads = 1; threads <= MOST_THREADS; threads++) {
        assert_int_equal(run_pooled(joined, &g, up, in, g.out_type, threads, made), CORNU_OK);
        assert_memory_equal(made[0], expected, bytes);
    }
    /* indices outside every window: of the first element and the last, of the first image and the
     * last */
    const int64_t last = cornu_type_count(up->in_type[1]) - 1;
    for (int i = 0; i < 4; i++) {
        const int64_t *size = up->attributes.window_grad.size;
        uint8_t       *bad = &index[i % 2 ? last : 0], kept = *bad;
        *bad = i / 2 ? 255 : (uint8_t)(size[0] * size[1]);
        assert_int_equal(run_pooled(joined, &g, up, in, g.out_type, 2, made), CORNU_ERR_VALUE);
        *bad = kept;
    }
    cornu__release(expected);
    cornu__release(made[0]);
}

/* Both gradients; `index` is the choice of pool p in a map of type `map`. */
static void check_pooled_gradients(const Case *y, CornuAttributes window, CornuType map,
                                   const Case *p, uint8_t *index)
{
    Case up = { .id = CORNU_OP_MAX_POOL2D_GRAD, .attributes = gradient_of(window, map.shape),
                .out_type = { cornu_type_from(operands, map.shape) },
                .epilogue.activation = CORNU_OP_COUNT };
    void *d_map;
    case_add(&up, cornu_type_from(operands, p->out_type[0].shape));
    up.in_count = 2;
    up.in_type[1] = p->out_type[1];
    up.in[1] = index;
    assert_int_equal(case_run(&up, 1, &d_map), CORNU_OK);
    check_unpooled(CORNU_OP_CONV2D_GRAD_FILTER, y, &up, d_map);
    check_unpooled(CORNU_OP_CONV2D_GRAD_INPUT, y, &up, d_map);
    cornu__release(d_map);
    cornu__release(up.in[0]);
}

/* The joined kernel that makes fewer products, where it takes the case, against the pool of the map
 * that the one without a pool makes. */
static void check_fewer_pooled(const Case *y, const Case *pool)
{
    const CornuKernel *joined = &cornu__host_conv2d_pooled_winograd;
    const CornuOpCall  pool_call = case_op(pool);
    const int64_t      F = y->in_type[1].shape.extent[3];
    Case               plain = *y, p = *pool;
    void              *map, *pooled[3] = { 0 }, *out[3] = { 0 };
    if (case_kernel(y) != &cornu__host_conv2d_winograd || !joined->joins(&pool_call)) return;
    plain.epilogue = (CornuEpilogue){ .activation = CORNU_OP_COUNT };
    assert_int_equal(case_run_with(case_kernel(y), &plain, 1, &map), CORNU_OK);
    p.in[0] = map;
    assert_int_equal(case_run(&p, 1, pooled), CORNU_OK);
    cornu__epilogue_apply(&y->epilogue, &(CornuEpilogueRows){
        .y = pooled[0], .rows = cornu_type_count(p.out_type[0]) / F, .columns = F, .stride = F,
        .width = F });
    for (int i = 0; i < 2; i++) out[i] = unset_memory(cornu_type_bytes(p.out_type[i]));
    for (int threads = 1; threads <= MOST_THREADS; threads++) {
        assert_int_equal(run_pooled(joined, y, &p, (const void *const *)y->in, p.out_type, threads,
                                    out), CORNU_OK);
        for (int i = 0; i < 2; i++)
            assert_memory_equal(out[i], pooled[i], cornu_type_bytes(p.out_type[i]));
    }
    for (int i = 0; i < 2; i++) cornu__release(pooled[i]), cornu__release(out[i]);
    cornu__release(map);
}

/* Whether conv2d_padded.c takes y joined with the pool. */
static bool is_padded(const Case *y, const CornuOpCall *pool)
{
    const CornuKernel *kernel = &cornu__host_conv2d_pooled_padded;
    return case_kernel_taking(kernel, y) == kernel && kernel->joins(pool);
}

/* Joined or one after the other, the bits are the same. */
static void check_pooled(CornuShape x, CornuShape filter, CornuAttributes convolution,
                         CornuAttributes window)
{
    Case y = { .id = CORNU_OP_CONV2D, .attributes = convolution,
               .epilogue.activation = CORNU_OP_COUNT };
    y.attributes.conv2d.dtype = CORNU_F32;
    case_add(&y, cornu_type_from(operands, x));
    case_add(&y, cornu_type_from(operands, filter));
    void *map, *pooled[3] = { 0 }, *joined[3] = { 0 };
    assert_true(case_expect(&y));
    Case p = { .id = CORNU_OP_MAX_POOL2D, .attributes = window, .in_count = 1,
               .in_type = { y.out_type[0] }, .epilogue.activation = CORNU_OP_COUNT };
    CornuOpCall pool_call = case_op(&p);
    if (cornu__op_type(&pool_call, p.out_type) != CORNU_OK) {
        case_free(&y);
        return;
    }
    const bool         padded = is_padded(&y, &pool_call);
    const CornuKernel *kernel = padded ? &cornu__host_conv2d_pooled_padded
                                       : &cornu__host_conv2d_pooled;
    const CornuKernel *separate = padded ? &cornu__host_conv2d_padded : &cornu__host_conv2d;
    assert_int_equal(case_run_with(separate, &y, 1, &map), CORNU_OK);
    p.in[0] = map;
    assert_int_equal(case_run(&p, 1, pooled), CORNU_OK);
    const int64_t F = filter.extent[3], count = cornu_type_count(p.out_type[0]);
    float        *bias = malloc((size_t)F * sizeof *bias);
    for (int64_t f = 0; f < F; f++) bias[f] = 0.25f * (float)between(-8, 8);
    y.epilogue = (CornuEpilogue){ .bias = bias, .activation = activations[between(0, 4)],
                                  .attributes.alpha.alpha = 0.7 };
    cornu__epilogue_apply(&y.epilogue, &(CornuEpilogueRows){
        .y = pooled[0], .rows = count / F, .columns = F, .stride = F, .width = F });
    for (int i = 0; i < 2; i++) joined[i] = unset_memory(cornu_type_bytes(p.out_type[i]));
    for (int threads = 1; threads <= MOST_THREADS; threads++) {
        assert_int_equal(run_pooled(kernel, &y, &p, (const void *const *)y.in, p.out_type, threads,
                                    joined), CORNU_OK);
        for (int i = 0; i < 2; i++)
            assert_memory_equal(joined[i], pooled[i], cornu_type_bytes(p.out_type[i]));
    }
    if (operands == CORNU_BF16) check_narrow_pooled(kernel, separate, &y, &p, joined);
    check_fewer_pooled(&y, &p);
    check_pooled_gradients(&y, window, y.out_type[0], &p, pooled[1]);
    for (int i = 0; i < 2; i++) {
        cornu__release(pooled[i]);
        cornu__release(joined[i]);
    }
    free(bias);
    case_free(&y);
    case_free(&p);
}

static void test_pooled(void **state)
{
    (void)state;
    static const int64_t filters[] = { 3, 16, 32, 48 };
    for (int i = 0; i < rounds(40); i++) {
        CornuShape x = cornu_shape(between(1, 17), between(3, 12), between(3, 12), between(1, 9));
        CornuShape filter = cornu_shape(between(1, 3), between(1, 3), x.extent[3],
                                        pick(filters, 4));
        check_pooled(x, filter, random_convolution(x, filter, i % 2), random_window(i % 3 != 0));
    }
    check_pooled(cornu_shape(11, 28, 28, 1), cornu_shape(3, 3, 1, 32), (CornuAttributes){ 0 },
                 random_window(true));
    const CornuAttributes two = { .window = { .size = { 2, 2 }, .strides = { 2, 2 } } };
    /* Channels that filter gradients select by fours and eights. */
    for (int i = 0; i < rounds(24); i++) {
        CornuShape x = cornu_shape(between(1, 7), between(7, 16), between(7, 16),
                                   4 * between(1, 7));
        CornuShape filter = cornu_shape(between(1, 6), between(1, 6), x.extent[3],
                                        pick(filters, 4));
        check_pooled(x, filter, random_convolution(x, filter, i % 4 == 0), two);
    }
    check_pooled(cornu_shape(9, 14, 14, 64), cornu_shape(3, 3, 64, 16),
                 (CornuAttributes){ .conv2d = { .low = { 1, 1 }, .high = { 1, 1 } } }, two);
    for (int i = 0; i < rounds(12); i++) {   /* enough channels for fewer products */
        CornuShape x = cornu_shape(between(1, 9), between(6, 16), between(6, 16), between(12, 35));
        CornuShape filter = cornu_shape(3, 3, x.extent[3], between(12, 49));
        check_pooled(x, filter, (CornuAttributes){ .conv2d = { .low = { i % 2, i % 3 } } }, two);
    }
    check_pooled(cornu_shape(11, 7, 9, 40), cornu_shape(3, 2, 40, 48), (CornuAttributes){ 0 }, two);
    check_pooled(cornu_shape(2, 26, 31, 9), cornu_shape(3, 3, 9, 32), (CornuAttributes){ 0 },
                 random_window(false));
    /* Straight from the registers: windows of two by two, with one channel and with a few. */
    const CornuAttributes same = { .conv2d = { .low = { 2, 2 }, .high = { 2, 2 } } };
    for (int i = 0; i < 4; i++) {
        CornuShape x = cornu_shape(2, between(5, 30), between(5, 30), i < 3 ? 1 : 2);
        check_pooled(x, cornu_shape(3, 3, x.extent[3], pick(filters, 4)), (CornuAttributes){ 0 },
                     two);
        check_pooled(x, cornu_shape(5, 5, x.extent[3], pick(filters, 4)), same, two);
    }
    /* Of tile registers: blocks that are cut along rows, a set of images and a few more. */
    check_pooled(cornu_shape(3, 9, 531, 16), cornu_shape(2, 3, 16, 32),
                 (CornuAttributes){ .conv2d = { .low = { 1, 0 } } }, two);
    check_pooled(cornu_shape(67, 7, 9, 40), cornu_shape(3, 3, 40, 48),
                 (CornuAttributes){ .conv2d = { .low = { 1, 1 }, .high = { 1, 1 } } }, two);
    const CornuAttributes four = { .window = { .size = { 1, 4 }, .strides = { 1, 4 } } };
    check_pooled(cornu_shape(4, 1, 203, 40), cornu_shape(1, 5, 40, 32), (CornuAttributes){ 0 },
                 four);
    check_pooled(cornu_shape(3, 1, 150, 8), cornu_shape(1, 9, 8, 48),
                 (CornuAttributes){ .conv2d = { .strides = { 1, 2 }, .low = { 0, 3 } } }, four);
}

/* ---- Normalization ---- */

static void test_batch_norm(void **state)
{
    (void)state;
    static const int64_t channels[] = { 1, 3, 12, 16, 32, 65 };
    for (int i = 0; i < rounds(60); i++) {
        int64_t    C = pick(channels, 6), batch = between(1, 40);
        CornuShape shape = i % 3 ? cornu_shape(batch, between(1, 9), between(1, 9), C)
                                 : cornu_shape(batch, C);
        if (i == 1) shape = cornu_shape(48, 26, 26, 12);   /* several chunks */
        batch = shape.extent[0];
        C = shape.extent[shape.rank - 1];
        int64_t count = i % 4 == 0 ? batch : between(0, (int)batch);
        double  rows = (double)cornu_shape_count(shape) / (double)C;

        Case y = { .id = CORNU_OP_BATCH_NORM, .attributes.epsilon.epsilon = 1e-3, .terms = rows,
                   .epilogue.activation = i % 2 ? CORNU_OP_RELU : CORNU_OP_COUNT };
        case_add(&y, cornu_type_from(operands, shape));
        case_add(&y, cornu_type(CORNU_F32, C));
        case_add(&y, cornu_type(CORNU_F32, C));
        case_add(&y, cornu_scalar(CORNU_I64));
        *(int64_t *)y.in[3] = count;
        /* Far from zero, where one-pass formulas fail. */
        for (int64_t k = 0; i % 5 == 0 && k < cornu_type_count(y.in_type[0]); k++)
            cornu_array_set(case_operand(&y, 0), k,
                            cornu_array_get(case_operand(&y, 0), k) + 100.0);
        assert_true(case_expect(&y));
        case_expect_epilogue(&y);
        if (i % 5 == 0) y.terms *= 100.0;
        case_check(&y);

        Case c = { .id = CORNU_OP_BATCH_NORM_GRAD, .attributes.epsilon.epsilon = 1e-3,
                   .terms = 16.0 * rows };
        case_add(&c, cornu_type_from(operands, shape));
        for (int k = 0; k < 3; k++) case_add(&c, cornu_type(CORNU_F32, C));
        case_add(&c, cornu_type_from(operands, shape));
        case_add(&c, cornu_scalar(CORNU_I64));
        for (int64_t k = 0; k < C; k++)
            ((float *)c.in[3])[k] = 0.1f + fabsf(((float *)c.in[3])[k]);
        *(int64_t *)c.in[5] = count;
        case_check_and_free(&c);
        case_free(&y);
    }
    Case c = { .id = CORNU_OP_BATCH_NORM };
    case_add(&c, cornu_type(operands, 4, 3));
    case_add(&c, cornu_type(CORNU_F32, 3));
    case_add(&c, cornu_type(CORNU_F32, 3));
    case_add(&c, cornu_scalar(CORNU_I64));
    assert_true(case_expect(&c));
    void *out[3];
    *(int64_t *)c.in[3] = 5;
    assert_int_equal(case_run(&c, 1, out), CORNU_ERR_VALUE);
    case_free_results(&c, out);
    case_free(&c);
}

static void test_softmax(void **state)
{
    (void)state;
    static const int64_t classes[] = { 1, 2, 10, 16, 17, 31, 64, 1000 };
    for (int i = 0; i < rounds(60); i++) {
        CornuShape shape = cornu_shape(between(1, 300), pick(classes, 8));
        Case       c = { .id = i % 2 ? CORNU_OP_SOFTMAX : CORNU_OP_LOG_SOFTMAX,
                         .terms = (double)shape.extent[1] };
        case_add(&c, cornu_type_from(operands, shape));
        float spread = (const float[]){ 1.0f, 30.0f, 200.0f }[i % 3];
        for (int64_t k = 0; k < cornu_shape_count(shape); k++)
            cornu_array_set(case_operand(&c, 0), k,
                            cornu_array_get(case_operand(&c, 0), k) * (double)spread);
        if (i % 7 == 0)
            cornu_array_set(case_operand(&c, 0), between(0, (int)cornu_shape_count(shape) - 1),
                            NAN);
        case_check_and_free(&c);
    }
}

/* ---- All of it, with each instruction set ---- */

/* Rows shorter and longer than those summed together, one and several chunks, runs. */
static void test_reduce_bf16(void **state)
{
    (void)state;
    static const int64_t extents[] = { 1, 3, 10, 32, 64, 255, 300, 1000, 5000 };
    for (int i = 0; i < 20; i++) {
        int64_t a = pick(extents, 3), r = pick(extents, 9), last = pick(extents, 5);
        Case    c = { .id = CORNU_OP_REDUCE_SUM, .attributes.reduce.axes = 2, .terms = (double)r };
        case_add(&c, cornu_type(CORNU_BF16, a, r, last));
        case_check_and_free(&c);
    }
}

/* Each test has its own random numbers, whatever earlier tests used. */
static int begin(void **state)
{
    (void)state;
    numbers_begin();
    return 0;
}

static int cpu_with_isa(CornuIsa isa)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_matmul, begin),
        cmocka_unit_test_setup(test_conv2d, begin),
        cmocka_unit_test_setup(test_conv2d_slabs, begin),
        cmocka_unit_test_setup(test_conv2d_packed, begin),
        cmocka_unit_test_setup(test_conv2d_tiles, begin),
        cmocka_unit_test_setup(test_winograd, begin),
        cmocka_unit_test_setup(test_few_channels, begin),
        cmocka_unit_test_setup(test_depthwise, begin),
        cmocka_unit_test_setup(test_pool, begin),
        cmocka_unit_test_setup(test_pooled, begin),
        cmocka_unit_test_setup(test_batch_norm, begin),
        cmocka_unit_test_setup(test_softmax, begin),
    };
    tested_kernels = cornu__cpu_kernels;
    tested_multiplier = (CornuMultiplier){ .bf16 = false };
    operands = results = CORNU_F32;
    return isa_run_group("cpu", isa, tests, sizeof tests / sizeof *tests);
}

static int tpu_with_isa(CornuIsa isa)
{
    static const struct { const char *name; CornuDtype operands, results; } kinds[] = {
        { "tpu f32", CORNU_F32, CORNU_F32 },
        { "tpu bf16 to f32", CORNU_BF16, CORNU_F32 },
        { "tpu bf16", CORNU_BF16, CORNU_BF16 },
    };
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_matmul, begin),
        cmocka_unit_test_setup(test_conv2d, begin),
        cmocka_unit_test_setup(test_conv2d_slabs, begin),
        cmocka_unit_test_setup(test_conv2d_packed, begin),
        cmocka_unit_test_setup(test_conv2d_wide, begin),
        cmocka_unit_test_setup(test_conv2d_tiles, begin),
        cmocka_unit_test_setup(test_few_channels, begin),
        cmocka_unit_test_setup(test_depthwise, begin),
        cmocka_unit_test_setup(test_pooled, begin),
        /* of bf16 only: those of f32 are tested on cpu */
        cmocka_unit_test_setup(test_pool, begin),
        cmocka_unit_test_setup(test_batch_norm, begin),
        cmocka_unit_test_setup(test_softmax, begin),
        cmocka_unit_test_setup(test_reduce_bf16, begin),
    };
    int failed = 0;
    tested_kernels = NULL;
    tested_multiplier = (CornuMultiplier){ .bf16 = true };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        operands = kinds[i].operands;
        results = kinds[i].results;
        failed += isa_run_group(kinds[i].name, isa, tests,
                                results == CORNU_BF16 ? sizeof tests / sizeof *tests : 6);
    }
    return failed;
}

int main(void)
{
    if (cornu__blis_open(MOST_THREADS) != CORNU_OK) return 1;
    int failed = 0;
    for (int isa = 0; isa < CORNU_ISA_COUNT; isa++) {
        if (isa < CORNU_F32_ISA_COUNT) failed += cpu_with_isa((CornuIsa)isa);
        failed += tpu_with_isa((CornuIsa)isa);
    }
    return failed;
}
