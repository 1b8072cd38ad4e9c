/*
 * The kernels of the cpu and the tpu device against the reference kernels, which compute in
 * double: random shapes with extents of 1 and primes, odd strides, paddings and dilations; the
 * same bits with 1, 2 and 3 threads; with each instruction set this processor has.
 *
 * Products of bf16 are exact and summed in f32, so the bound is that of f32; a result in bf16 may
 * also differ by its rounding, 2^-8 of itself.
 *
 * tests/run: takes 60 s, all instruction sets, quick
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "../../../../device/cpu/kernels.h"
#include "../../../../device/host/kernels/precision.h"
#include "../../../quick.h"
#include "kernel_case.h"
#include "../../numbers.h"

/* ---- Products ---- */

static float *some_values(int64_t count)
{
    float *values = malloc((size_t)count * sizeof *values);
    for (int64_t i = 0; i < count; i++) values[i] = (float)random_value();
    return values;
}

/* A scale, a shift, a term and a slope in place of an activation, each or not. */
static void add_f32_parts(Case *c, float **made)
{
    CornuEpilogue *e = &c->epilogue;
    const int64_t  count = cornu_type_count(c->out_type[0]);
    const int64_t  columns = c->out_type[0].shape.extent[c->out_type[0].shape.rank - 1];
    const int64_t  counts[] = { columns, columns, count, columns };
    const float  **parts[] = { &e->scale, &e->shift, &e->term, &e->slope };
    for (int i = 0; i < 4; i++) {
        if (between(0, 2) || (i == 3 && e->activation != CORNU_OP_COUNT)) continue;
        *parts[i] = made[i] = some_values(counts[i]);
    }
}

static void check_with_epilogue(Case *c)
{
    float *made[4] = { NULL };
    if (case_expect(c)) {
        CornuShape shape = c->out_type[0].shape;
        int64_t    columns = shape.extent[shape.rank - 1];
        CornuType  type = cornu_type(c->out_type[0].dtype, columns);
        void      *bias = malloc(cornu_type_bytes(type));
        for (int64_t n = 0; n < columns; n++)
            cornu_array_set((CornuArray){ type, bias }, n, random_value());
        c->epilogue.bias = between(0, 2) ? bias : NULL;
        c->epilogue.activation = random_activation(type.dtype == CORNU_BF16 ? 1 : 5);
        c->epilogue.attributes = activation_attributes(c->epilogue.activation);
        if (type.dtype == CORNU_F32) add_f32_parts(c, made);
        case_expect_epilogue(c);
        case_check(c);
        free(bias);
    }
    for (int i = 0; i < 4; i++) free(made[i]);
    case_free(c);
}

static void test_matmul(void **state)
{
    (void)state;
    static const int64_t extents[] = { 1, 2, 3, 5, 7, 10, 13, 16, 17, 31, 32, 33, 48, 64, 67,
                                       100, 129, 257 };
    enum { COUNT = sizeof extents / sizeof *extents };
    for (int i = 0; i < case_rounds(150); i++) {
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
    /* Rows that are copied whole, or in stretches where b is packed by the product itself. */
    Case c = { .id = CORNU_OP_MATMUL, .terms = 1024.0, .epilogue.activation = CORNU_OP_COUNT,
               .attributes.matmul.dtype = results };
    case_add(&c, cornu_type(operands, 100, 1024));
    case_add(&c, cornu_type(operands, 1024, 520));
    case_check_and_free(&c);
}

/* A convolution and both gradients; returns the kernel of the filter's. */
static const CornuKernel *check_convolution(CornuShape x, CornuShape filter,
                                            CornuAttributes attributes)
{
    const CornuKernel *of_filter = NULL;
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
        if (by_filter) of_filter = case_kernel(&c);
        case_free(&c);
    }
    return of_filter;
}

static void test_conv2d(void **state)
{
    (void)state;
    static const int64_t channels[] = { 1, 1, 2, 3, 4, 5, 7, 12, 16, 17, 24, 32, 33, 64 };
    enum { COUNT = sizeof channels / sizeof *channels };
    for (int i = 0; i < case_rounds(120); i++) {
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

/* Outputs that read zeros alone are zero, whatever their neighbours read: the slope of a relu there
 * is that of zero. */
static void check_zeros(int64_t taps, int64_t stride)
{
    const CornuShape filter = cornu_shape(taps * stride, taps * stride, 24, 40);
    Case             y = { .id = CORNU_OP_CONV2D, .epilogue.activation = CORNU_OP_COUNT,
                           .attributes.conv2d = { .dtype = results, .strides = { stride, stride },
                                                  .low = { stride, stride },
                                                  .high = { stride, stride } } };
    case_add(&y, cornu_type(operands, 3, 18 * stride, 18 * stride, 24));
    case_add(&y, cornu_type_from(operands, filter));
    const int64_t count = cornu_type_count(y.in_type[0]);
    for (int64_t k = count / 5; k < count * 4 / 5; k++)
        cornu_array_set(case_operand(&y, 0), k, k % 2 ? 0.0 : -0.0);
    void   *made[1];
    int64_t zeros = 0;
    assert_true(case_expect(&y));
    assert_int_equal(case_run(&y, 1, made), CORNU_OK);
    for (int64_t k = 0; k < cornu_type_count(y.out_type[0]); k++)
        if (y.expected[0][k] == 0.0) {
            assert_true(cornu_array_get((CornuArray){ y.out_type[0], made[0] }, k) == 0.0);
            zeros++;
        }
    assert_true(zeros > cornu_type_count(y.out_type[0]) / 3);
    case_free_results(&y, made);
    case_free(&y);
}

/* Convolutions of 3 x 3 and 5 x 5 taps with fewer multiplications: maps of odd extents, channels
 * that are not whole registers, padding on one side alone, and rows that are skipped; gradients of
 * filters. Many are taken. */
static void test_winograd(void **state)
{
    (void)state;
    int taken[2] = { 0 }, gradients = 0;
    for (int i = 0; i < case_rounds(60); i++) {
        const int64_t    taps = i % 3 ? 3 : 5;
        const CornuShape x = cornu_shape(between(1, 4), between(taps + 1, 17),
                                         between(taps + 1, 17), between(12, 64));
        const CornuShape filter = cornu_shape(taps, taps, x.extent[3], between(12, 80));
        CornuAttributes  a = { .conv2d = { .low = { between(-1, 2), between(0, 3) },
                                           .high = { between(0, 2), between(-1, 2) } } };
        Case y = { .id = CORNU_OP_CONV2D, .attributes = a };
        y.attributes.conv2d.dtype = results;
        case_add(&y, cornu_type_from(operands, x));
        case_add(&y, cornu_type_from(operands, filter));
        assert_true(case_expect(&y));
        taken[taps == 5] += case_kernel(&y) == &cornu__host_conv2d_winograd;
        case_free(&y);
        gradients += check_convolution(x, filter, a) == &cornu__host_conv2d_grad_filter_winograd;
    }
    if (tested_kernels == cornu__cpu_kernels)
        assert_true(taken[0] > quick(0, 10) && taken[1] > quick(-1, 5) &&
                    gradients > quick(-1, 2));
    for (int stride = 1; stride <= 2; stride++) check_zeros(3, stride), check_zeros(5, stride);
    /* Several blocks and chunks of a gradient, and phases; one chunk: threads share its filters. */
    const CornuAttributes same = { .conv2d = { .low = { 1, 1 }, .high = { 1, 1 } } };
    gradients = check_convolution(cornu_shape(30, 14, 15, 32), cornu_shape(3, 3, 32, 72), same) ==
                &cornu__host_conv2d_grad_filter_winograd;
    for (int stride = 1; stride <= 2; stride++) {
        const CornuAttributes a = { .conv2d = { .strides = { stride, stride },
                                                .low = { stride, stride },
                                                .high = { stride, stride } } };
        const CornuShape filter = cornu_shape(3 * stride, 3 * stride, 24 / stride, 36);
        gradients += check_convolution(cornu_shape(70, 14 * stride, 18 * stride, 24 / stride),
                                       filter, a) == &cornu__host_conv2d_grad_filter_winograd;
    }
    if (tested_kernels == cornu__cpu_kernels) assert_int_equal(gradients, 3);
}

/* Gradients of filters from one image, whose halves are paired in bf16, and from images that are
 * cut into slabs, of rows or of the columns of one row. */
static void test_conv2d_slabs(void **state)
{
    (void)state;
    const CornuAttributes same = { .conv2d = { .low = { 1, 1 }, .high = { 1, 1 } } };
    const CornuAttributes wide = { .conv2d = { .low = { 3, 0 }, .high = { 0, 2 },
                                               .strides = { 2, 1 }, .dilation = { 1, 2 } } };
    for (int i = 0; i < case_rounds(24); i++) {
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
    /* The last chunk has two images, too few to read registers from the one before. */
    check_convolution(cornu_shape(768 * 768 + 1, 1, 1, 1), cornu_shape(1, 1, 1, 1),
                      (CornuAttributes){ .conv2d = { .low = { 0, 0 } } });
}

/* Gradients of filters from packed copies, f32 on tiles of few rows and, of many channels, on those
 * of AVX-512: blocks of several images, of rows and of columns of one; filters that do not fill a
 * panel, fewer panels than threads; more taps than are found at once. */
static void test_conv2d_packed(void **state)
{
    (void)state;
    for (int i = 0; i < case_rounds(32); i++) {
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
    for (int i = 0; i < case_rounds(40); i++) {
        const int64_t side = between(1, 6);
        CornuShape    x = cornu_shape(between(1, 3), between(14, 30), 2 * between(7, 20),
                                      one_of(channels, 8));
        CornuShape    filter = cornu_shape(side, between(1, 6), x.extent[3], one_of(channels, 8));
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
    for (int i = 0; i < case_rounds(32); i++) {
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

/* Whether the op with x or d_y of 8 by 8 and a filter takes the kernel. */
static bool takes(CornuOpId id, CornuAttributes attributes, int64_t channels, CornuShape filter,
                  const CornuKernel *kernel)
{
    Case        c = { .id = id, .in_count = 2, .attributes = attributes,
                      .in_type = { cornu_type(operands, 2, 8, 8, channels),
                                   cornu_type_from(operands, filter) } };
    CornuOpCall op = case_op(&c);
    assert_int_equal(cornu__op_type(&op, c.out_type), CORNU_OK);
    return case_kernel(&c) == kernel;
}

/* Whether the gradient of x with C channels by F square filters takes the kernel for few. */
static bool is_of_few(int64_t C, int64_t side, int64_t F)
{
    const CornuAttributes attributes = {
        .conv2d_grad = { .extents = { side + 7, side + 7 }, .dtype = results },
    };
    return takes(CORNU_OP_CONV2D_GRAD_INPUT, attributes, F, cornu_shape(side, side, C, F),
                 &cornu__host_conv2d_grad_input_few);
}

/* Whether a convolution of C channels by F of them does, without a stride. */
static bool is_by_few(int64_t C, int64_t side, int64_t F)
{
    return takes(CORNU_OP_CONV2D, (CornuAttributes){ .conv2d = { .dtype = results } }, C,
                 cornu_shape(side, side, C, F), &cornu__host_conv2d_few);
}

/* Few filters: with strides, which others take, and without; several strips and slabs. */
static void test_few_filters(void **state)
{
    (void)state;
    const bool tiles = operands == CORNU_BF16 &&
                       cornu__has_tile_registers(cornu__products_of_bf16());
    assert_true(is_by_few(64, 5, 1));
    assert_true(is_by_few(32, 3, 1) == !tiles && is_by_few(32, 3, 3) == !tiles);
    assert_false(is_by_few(64, 1, 1) || is_by_few(64, 3, 32) || is_by_few(64, 5, 128));
    for (int i = 0; i < case_rounds(48); i++) {
        const int64_t   F = between(1, 6);
        CornuShape      x = cornu_shape(between(1, 3), between(5, 29), between(5, 29),
                                        between(1, 67));
        CornuShape      filter = cornu_shape(between(1, 5), between(1, 5), x.extent[3], F);
        CornuAttributes a = random_convolution(x, filter, false);
        for (int k = 0; k < 2 && i % 4; k++) a.conv2d.strides[k] = 1;
        check_convolution(x, filter, a);
    }
    const CornuAttributes same = { .conv2d = { .low = { 1, 1 }, .high = { 1, 1 } } };
    const CornuAttributes apart = { .conv2d = { .dilation = { 2, 3 }, .low = { -2, 9 },
                                                .high = { 7, -1 } } };
    const CornuKernel *of_filter = &cornu__host_conv2d_grad_filter_few;
    assert_ptr_equal(check_convolution(cornu_shape(1, 130, 137, 32), cornu_shape(3, 3, 32, 2),
                                       same), of_filter);
    assert_ptr_equal(check_convolution(cornu_shape(2, 1, 4001, 24), cornu_shape(1, 9, 24, 1),
                                       (CornuAttributes){ 0 }), of_filter);
    assert_ptr_equal(check_convolution(cornu_shape(3, 23, 31, 40), cornu_shape(4, 2, 40, 3),
                                       apart), of_filter);
    assert_ptr_equal(check_convolution(cornu_shape(19, 12, 11, 64), cornu_shape(1, 1, 64, 7),
                                       (CornuAttributes){ 0 }), of_filter);
}

/* Neighbouring outputs of few filters together: one channel, strides; windows beside the rows of x,
 * several strips, of which the last one's outputs are not whole windows; many taps. */
static void test_shifted(void **state)
{
    (void)state;
    const CornuAttributes how = { .conv2d = { .dtype = results } };
    assert_true(takes(CORNU_OP_CONV2D, how, 1, cornu_shape(1, 7, 1, 1),
                      &cornu__host_conv2d_shifted));
    assert_false(takes(CORNU_OP_CONV2D, how, 1, cornu_shape(3, 3, 1, 32),
                       &cornu__host_conv2d_shifted));
    for (int i = 0; i < case_rounds(48); i++) {
        CornuShape      x = cornu_shape(between(1, 3), between(1, 13), between(5, 400),
                                        i % 3 ? 1 : between(2, 5));
        CornuShape      filter = cornu_shape(between(1, 4), between(1, i % 2 ? 5 : 40),
                                             x.extent[3], between(1, 9));
        if (filter.extent[0] > x.extent[1]) filter.extent[0] = x.extent[1];
        if (filter.extent[1] > x.extent[2]) filter.extent[1] = x.extent[2];
        CornuAttributes a = random_convolution(x, filter, false);
        a.conv2d.dilation[1] = 1;
        check_convolution(x, filter, a);
    }
    check_convolution(cornu_shape(2, 1, 4001, 1), cornu_shape(1, 256, 1, 1), (CornuAttributes){
        .conv2d = { .strides = { 1, 2 } } });
    check_convolution(cornu_shape(2, 1, 4001, 1), cornu_shape(1, 200, 1, 3), (CornuAttributes){
        .conv2d = { .strides = { 1, 7 }, .low = { 0, 199 }, .high = { 0, 450 } } });
    check_convolution(cornu_shape(1, 7, 500, 1), cornu_shape(5, 9, 1, 2), (CornuAttributes){
        .conv2d = { .dilation = { 2, 1 }, .low = { 9, -3 }, .high = { 3, -40 } } });
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
    for (int i = 0; i < case_rounds(48); i++) {
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
    for (int i = 0; i < case_rounds(80); i++) {
        const int64_t C = between(1, 70);
        check_depthwise(cornu_shape(between(1, 5), between(1, 13), between(1, 25), C),
                        cornu_shape(between(1, 5), between(1, 5), 1, C));
    }
}

/* ---- Normalization ---- */

static void test_batch_norm(void **state)
{
    (void)state;
    static const int64_t channels[] = { 1, 3, 12, 16, 32, 65 };
    for (int i = 0; i < case_rounds(60); i++) {
        int64_t    C = one_of(channels, 6), batch = between(1, 40);
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
    for (int i = 0; i < case_rounds(60); i++) {
        CornuShape shape = cornu_shape(between(1, 300), one_of(classes, 8));
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

/* Rows shorter and longer than what is in scratch memory at once, labels of each integer dtype. */
static void test_sparse_cross_entropy(void **state)
{
    (void)state;
    static const int64_t classes[] = { 1, 2, 10, 31, 200, 1024, 5000 };
    static const CornuDtype integers[] = { CORNU_U8, CORNU_I32, CORNU_I64 };
    for (int i = 0; i < case_rounds(30); i++) {
        const CornuShape shape = cornu_shape(between(1, 40), one_of(classes, 7));
        Case             c = { .id = CORNU_OP_SPARSE_CROSS_ENTROPY,
                               .terms = (double)shape.extent[1] };
        case_add(&c, cornu_type_from(operands, shape));
        case_add(&c, cornu_type_from(integers[i % 3], cornu_shape(shape.extent[0])));
        const int last = shape.extent[1] < 256 ? (int)shape.extent[1] - 1 : 255;   /* of u8 */
        for (int64_t row = 0; row < shape.extent[0]; row++)
            cornu_array_set(case_operand(&c, 1), row, between(0, last));
        case_check_and_free(&c);
    }
}

/* ---- Sums ---- */

/* Rows shorter and longer than those summed together, one and several chunks, runs. */
static void test_reduce_bf16(void **state)
{
    (void)state;
    static const int64_t extents[] = { 1, 3, 10, 32, 64, 255, 300, 1000, 5000 };
    for (int i = 0; i < 20; i++) {
        int64_t a = one_of(extents, 3), r = one_of(extents, 9), last = one_of(extents, 5);
        Case    c = { .id = CORNU_OP_REDUCE_SUM, .attributes.reduce.axes = 2, .terms = (double)r };
        case_add(&c, cornu_type(CORNU_BF16, a, r, last));
        case_check_and_free(&c);
    }
}

int main(void)
{
    static const struct CMUnitTest cpu[] = {
        cmocka_unit_test_setup(test_matmul, case_begin),
        cmocka_unit_test_setup(test_conv2d, case_begin),
        cmocka_unit_test_setup(test_conv2d_slabs, case_begin),
        cmocka_unit_test_setup(test_conv2d_packed, case_begin),
        cmocka_unit_test_setup(test_conv2d_tiles, case_begin),
        cmocka_unit_test_setup(test_winograd, case_begin),
        cmocka_unit_test_setup(test_few_channels, case_begin),
        cmocka_unit_test_setup(test_few_filters, case_begin),
        cmocka_unit_test_setup(test_shifted, case_begin),
        cmocka_unit_test_setup(test_depthwise, case_begin),
        cmocka_unit_test_setup(test_batch_norm, case_begin),
        cmocka_unit_test_setup(test_softmax, case_begin),
        cmocka_unit_test_setup(test_sparse_cross_entropy, case_begin),
    };
    static const struct CMUnitTest tpu[] = {
        cmocka_unit_test_setup(test_matmul, case_begin),
        cmocka_unit_test_setup(test_conv2d, case_begin),
        cmocka_unit_test_setup(test_conv2d_slabs, case_begin),
        cmocka_unit_test_setup(test_conv2d_packed, case_begin),
        cmocka_unit_test_setup(test_conv2d_wide, case_begin),
        cmocka_unit_test_setup(test_conv2d_tiles, case_begin),
        /* of bf16 only: those of f32 are tested on cpu */
        cmocka_unit_test_setup(test_few_channels, case_begin),
        cmocka_unit_test_setup(test_few_filters, case_begin),
        cmocka_unit_test_setup(test_depthwise, case_begin),
        cmocka_unit_test_setup(test_batch_norm, case_begin),
        cmocka_unit_test_setup(test_softmax, case_begin),
        cmocka_unit_test_setup(test_sparse_cross_entropy, case_begin),
        cmocka_unit_test_setup(test_reduce_bf16, case_begin),
    };
    return cases_run(&(CaseTests){ cpu, sizeof cpu / sizeof *cpu, tpu, sizeof tpu / sizeof *tpu,
                                   .f32 = 6 });
}
