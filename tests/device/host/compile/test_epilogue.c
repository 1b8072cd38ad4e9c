/* What kernels do to their results before they leave the cache: bias, scale, shift, term and
 * activation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../agreement.h"

typedef enum {
    CONV, WIDE_CONV, SMALL_CONV, ONE_IMAGE, IMAGES_IN_TILES, DEPTHWISE, DENSE, FEW_ROWS, TRANSPOSED,
    PRODUCTS
} Product;

static const char *const names[PRODUCTS] = {
    "conv", "wide conv", "small conv", "one image", "images in tiles", "depthwise", "dense",
    "few rows", "transposed",
};

/* Channels that are not whole registers, too; maps of more than a piece of work. */
static CornuValue product(CornuProgram *p, Product which)
{
    CornuAttributes conv = { .conv2d = { .strides = { 1, 1 }, .dilation = { 1, 1 },
                                         .low = { 1, 1 }, .high = { 1, 1 },
                                         .dtype = CORNU_F32 } };
    CornuAttributes matmul = { .matmul = { .dtype = CORNU_F32 } };
    CornuValue      in[2];
    switch (which) {
    case CONV: case WIDE_CONV: case SMALL_CONV: case ONE_IMAGE: case IMAGES_IN_TILES: {
        static const int64_t extents[][5] = {   /* images, height, width, channels, filters */
            { 3, 9, 11, 5, 7 }, { 2, 40, 36, 8, 70 }, { 20, 3, 2, 4, 16 }, { 1, 13, 13, 1, 32 },
            { 33, 2, 2, 16, 20 },
        };
        const int64_t *e = extents[which - CONV];
        in[0] = input(p, cornu_type(CORNU_F32, e[0], e[1], e[2], e[3]));
        in[1] = input(p, cornu_type(CORNU_F32, 3, 3, e[3], e[4]));
        return op(p, CORNU_OP_CONV2D, &conv, in, 2);
    }
    case DEPTHWISE:
        conv.grouped_conv2d.groups = 19;   /* its other fields are those of conv2d */
        in[0] = input(p, cornu_type(CORNU_F32, 2, 12, 10, 19));
        in[1] = input(p, cornu_type(CORNU_F32, 3, 3, 1, 19));
        return op(p, CORNU_OP_GROUPED_CONV2D, &conv, in, 2);
    case DENSE:
        in[0] = input(p, cornu_type(CORNU_F32, 70, 24));
        in[1] = input(p, cornu_type(CORNU_F32, 24, 45));
        return op(p, CORNU_OP_MATMUL, &matmul, in, 2);
    case FEW_ROWS:
        in[0] = input(p, cornu_type(CORNU_F32, 3, 24));
        in[1] = input(p, cornu_type(CORNU_F32, 24, 45));
        return op(p, CORNU_OP_MATMUL, &matmul, in, 2);
    default:
        matmul.matmul.transpose_a = true;
        in[0] = input(p, cornu_type(CORNU_F32, 24, 70));
        in[1] = input(p, cornu_type(CORNU_F32, 24, 45));
        return op(p, CORNU_OP_MATMUL, &matmul, in, 2);
    }
}

static CornuValue vector(CornuProgram *p, CornuType type)
{
    const int64_t last = type.shape.extent[type.shape.rank - 1];
    return broadcast(p, input(p, cornu_type(type.dtype, last)), type.shape);
}

enum { BIAS = 1, SCALE = 2, SHIFT = 4, TERM = 8, SUBSETS = 16 };

/* select(y >= 0, y, y slope), which stands for SELECT among activations. */
static CornuValue prelu(CornuProgram *p, CornuValue y)
{
    const CornuType       type = cornu_program_type(p, y);
    const CornuAttributes how = { .compare = { .comparison = CORNU_GREATER_EQUAL } };
    const CornuValue      low = op2(p, CORNU_OP_MULTIPLY, y, vector(p, type));
    CornuValue in[3] = { y, broadcast(p, constant(p, CORNU_F32, 0.0), type.shape) };
    in[0] = op(p, CORNU_OP_COMPARE, &how, in, 2);
    in[1] = y;
    in[2] = low;
    return op(p, CORNU_OP_SELECT, NULL, in, 3);
}

static CornuValue activate(CornuProgram *p, CornuOpId activation, CornuValue y)
{
    const CornuAttributes six = { .bound = { .bound = 0.5 } };
    return activation == CORNU_OP_COUNT ? y
         : activation == CORNU_OP_SELECT ? prelu(p, y)
         : activation == CORNU_OP_BOUNDED_RELU ? op(p, activation, &six, &y, 1)
                                               : op1(p, activation, y);
}

static CornuProgram *epilogue(Product which, int parts, CornuOpId activation)
{
    CornuProgram   *p = cornu_program_create();
    CornuValue      y = product(p, which);
    const CornuType type = cornu_program_type(p, y);
    if (parts & BIAS) y = op2(p, CORNU_OP_ADD, y, vector(p, type));
    if (parts & SCALE) y = op2(p, CORNU_OP_MULTIPLY, vector(p, type), y);
    if (parts & SHIFT) y = op2(p, CORNU_OP_ADD, y, vector(p, type));
    if (parts & TERM) y = op2(p, CORNU_OP_ADD, input(p, type), y);
    output(p, activate(p, activation, y), -1);
    return p;
}

/* One step, and the one that packs; the same bits as step by step. */
static void check_epilogue(Product which, int parts, CornuOpId activation)
{
    char          what[80];
    CornuProgram *p = epilogue(which, parts, activation);
    snprintf(what, sizeof what, "%s with parts %d", names[which], parts);
    check(p, 3e-6, what);
    Compiled made = compile(cpu[1], p);
    const bool packs = which != DEPTHWISE && which != FEW_ROWS && which != TRANSPOSED;
    if (statistics(&made)->fallbacks == 0 && statistics(&made)->kernels != 1 + packs)
        fail_msg("%s: %d steps", what, (int)statistics(&made)->kernels);
    release(&made);
    check_without(p, "-epilogue", what);
    cornu_program_free(p);
}

static void test_every_part_of_every_product(void **state)
{
    (void)state;
    static const CornuOpId activations[] = { CORNU_OP_COUNT, CORNU_OP_RELU, CORNU_OP_TANH,
                                             CORNU_OP_SELECT, CORNU_OP_BOUNDED_RELU };
    enum { COUNT = sizeof activations / sizeof *activations };
    for (Product which = 0; which < PRODUCTS; which++)
        for (int parts = 0; parts < SUBSETS; parts++)
            check_epilogue(which, parts, activations[(which + parts) % COUNT]);
}

/* x a + t, then scaled and shifted: only what is in the order of an epilogue is part of it. */
static void test_parts_in_another_order(void **state)
{
    (void)state;
    for (int first = 0; first < 4; first++)
        for (int second = 0; second < 4; second++) {
            CornuProgram   *p = cornu_program_create();
            CornuValue      y = product(p, first % 2 ? CONV : DENSE);
            const CornuType type = cornu_program_type(p, y);
            for (int i = 0; i < 2; i++) {
                const int  part = i ? second : first;
                CornuValue other = part & 1 ? input(p, type) : vector(p, type);
                y = op2(p, part & 2 ? CORNU_OP_MULTIPLY : CORNU_OP_ADD, y, other);
                y = op2(p, CORNU_OP_MULTIPLY, y, vector(p, type));
            }
            output(p, op1(p, CORNU_OP_RELU, y), -1);
            check(p, 1e-5, "parts in another order");
            cornu_program_free(p);
        }
}

/* Of two products that are added, one adds the other's result; one that both a term and something
 * else read; a term of another shape, of one number, and the product itself. */
static void test_terms(void **state)
{
    (void)state;
    for (int kind = 0; kind < 7; kind++) {
        CornuProgram   *p = cornu_program_create();
        CornuValue      y = product(p, CONV), term;
        const CornuType type = cornu_program_type(p, y);
        const int64_t   count = cornu_type_count(type);
        switch (kind) {
        case 0: term = product(p, CONV); break;
        case 1: term = op1(p, CORNU_OP_TANH, product(p, CONV)); break;
        case 2: term = reshape(p, input(p, cornu_type(CORNU_F32, count)), type.shape); break;
        case 3: term = broadcast(p, constant(p, CORNU_F32, 0.5), type.shape); break;
        case 4: term = broadcast(p, input(p, cornu_type(CORNU_F32, 1)), type.shape); break;
        case 5: term = y; break;
        default: term = input(p, type); break;
        }
        CornuValue z = op1(p, CORNU_OP_RELU, op2(p, CORNU_OP_ADD, y, term));
        output(p, z, -1);
        if (kind == 6) output(p, op2(p, CORNU_OP_MULTIPLY, z, term), -1);
        check(p, 1e-5, "terms");
        Compiled made = compile(cpu[1], p);
        if (kind == 0 && statistics(&made)->fallbacks == 0)   /* two products, each packed */
            assert_int_equal(statistics(&made)->kernels, 4);
        release(&made);
        cornu_program_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_part_of_every_product),
        cmocka_unit_test(test_parts_in_another_order),
        cmocka_unit_test(test_terms),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
