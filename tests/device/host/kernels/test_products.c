/*
 * Products on random shapes, extents of 1, primes and, one at a time, of 100,000 to 1,000,000:
 * matmul with all transposes and batches, conv2d and both its gradients, f32 and bf16, with each
 * instruction set this processor has, against double and against the portable kernels.
 *
 * The bound of a sum of n products in f32 is 6 sqrt(n + 2) 2^-24 of the sum of their absolute
 * values (Higham and Mary, "A New Approach to Probabilistic Rounding Error Analysis", SIAM Journal
 * on Scientific Computing 41, 2019, theorem 2.4 with lambda 6; with bfdot, whose n / 2 + 1
 * additions are off by twice as much each, that is lambda 4.2); a result in bf16 may differ by 2^-8
 * of itself more.
 *
 * tests/run: takes 60 s, all instruction sets, in check
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../../../device/device.h"
#include "../../../../device/host/machine/cpu.h"
#include "../../isas.h"
#include "../../numbers.h"

typedef struct {
    CornuOpId       id;
    CornuAttributes attributes;
    CornuShape      in[2];
    double          terms;     /* summed by one element */
} Product;

/* ---- One product on one device ---- */

static CornuAttributes with_dtype(const Product *p, CornuDtype dtype)
{
    CornuAttributes a = p->attributes;
    if (p->id == CORNU_OP_MATMUL) a.matmul.dtype = dtype;
    else if (p->id == CORNU_OP_CONV2D) a.conv2d.dtype = dtype;
    else a.conv2d_grad.dtype = dtype;
    return a;
}

/* `out` is allocated here: the result as doubles, *count of them. */
static double *run(const char *name, const Product *p, const CornuArray in[2], CornuDtype result,
                   int64_t *count)
{
    const CornuAttributes attributes = with_dtype(p, result);
    CornuDevice  *device = cornu_device_open(name, .threads = strcmp(name, "reference") ? 2 : 1,
                                             .shards = 1);
    CornuProgram *program = cornu_program_create();
    CornuBuffer  *buffers[3];
    CornuValue    values[2], y;
    assert_non_null(device);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(cornu_program_input(program, in[i].type, &values[i]), CORNU_OK);
        buffers[i] = cornu_buffer_create(device, in[i].type);
        assert_int_equal(cornu_buffer_write(buffers[i], in[i]), CORNU_OK);
    }
    if (cornu_program_record(program, p->id, &attributes, values, 2, &y) != CORNU_OK)
        fail_msg("%s", cornu_error_message());
    assert_int_equal(cornu_program_output(program, y, -1), CORNU_OK);
    const CornuType  type = cornu_program_type(program, y);
    CornuExecutable *executable = cornu_device_compile(device, program);
    buffers[2] = cornu_buffer_create(device, type);
    assert_non_null(executable);
    assert_int_equal(cornu_executable_run(executable, buffers, buffers + 2), CORNU_OK);
    CornuArray got = cornu_array_from(malloc(cornu_type_bytes(type) + 1), type);
    assert_int_equal(cornu_buffer_read(buffers[2], got), CORNU_OK);
    *count = cornu_type_count(type);
    double *out = malloc((size_t)(*count + 1) * sizeof *out);
    for (int64_t i = 0; i < *count; i++) out[i] = cornu_array_get(got, i);
    free(got.data);
    for (int i = 0; i < 3; i++) cornu_buffer_free(buffers[i]);
    cornu_executable_release(executable);
    cornu_program_free(program);
    cornu_device_close(device);
    return out;
}

/* ---- One product on all of them ---- */

static CornuArray random_operand(CornuDtype dtype, CornuShape shape)
{
    const CornuType type = cornu_type_from(dtype, shape);
    CornuArray      made = cornu_array_from(malloc(cornu_type_bytes(type) + 1), type);
    const int64_t    count = cornu_type_count(type);
    for (int64_t i = 0; i < count; i++)
        cornu_array_set(made, i, (double)between(-1000000, 1000000) * 1e-6);
    return made;
}

static CornuArray absolute(CornuArray x)
{
    CornuArray made = cornu_array_from(malloc(cornu_type_bytes(x.type) + 1), x.type);
    const int64_t count = cornu_type_count(x.type);
    for (int64_t i = 0; i < count; i++)
        cornu_array_set(made, i, fabs(cornu_array_get(x, i)));
    return made;
}

/* `rounded`: how many of the two results were rounded, to `result`. */
static void compare(const Product *p, const char *device, CornuDtype dtype, CornuDtype result,
                    const char *with, const double *got, const double *expected, int rounded,
                    const double *sizes, int64_t count)
{
    const double rate = 6.0 * sqrt(p->terms + 2.0) * 0x1p-24;
    const double rounding = result == CORNU_BF16 ? rounded * 0x1p-8 : 0.0;
    for (int64_t i = 0; i < count; i++) {
        const double bound = rate * sizes[i] + rounding * fabs(expected[i]);
        if (fabs(got[i] - expected[i]) <= bound) continue;
        CornuText a, b;
        fail_msg("%s of %s and %s (transposes %d %d), %s to %s on %s with %s: element %lld is "
                 "%.9g, expected %.9g, bound %.2g", cornu_op_name(p->id),
                 cornu_shape_print(&a, p->in[0]), cornu_shape_print(&b, p->in[1]),
                 (int)(p->id == CORNU_OP_MATMUL && p->attributes.matmul.transpose_a),
                 (int)(p->id == CORNU_OP_MATMUL && p->attributes.matmul.transpose_b),
                 cornu_dtype_name(dtype), cornu_dtype_name(result), device, with, (long long)i,
                 got[i], expected[i], bound);
    }
}

static void check(const Product *p)
{
    static const struct { const char *device; CornuDtype dtype, result; } kinds[] = {
        { "cpu", CORNU_F32, CORNU_F32 },  { "tpu", CORNU_F32, CORNU_F32 },
        { "tpu", CORNU_BF16, CORNU_F32 }, { "tpu", CORNU_BF16, CORNU_BF16 },
    };
    CornuArray in[2] = { { .data = NULL } }, sizes_in[2] = { { .data = NULL } };
    double    *expected = NULL, *sizes = NULL;
    int64_t    count = 0;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        if (k == 0 || kinds[k].dtype != kinds[k - 1].dtype) {
            for (int i = 0; i < 2; i++) {
                free(in[i].data), free(sizes_in[i].data);
                in[i] = random_operand(kinds[k].dtype, p->in[i]);
                sizes_in[i] = absolute(in[i]);
            }
            free(expected), free(sizes);
            expected = run("reference", p, in, CORNU_F32, &count);
            sizes = run("reference", p, sizes_in, CORNU_F32, &count);
        }
        double *portable = NULL;
        for (int isa = 0; isa < CORNU_ISA_COUNT; isa++) {
            /* cpu has no kernels of later ones */
            if (k == 0 && isa >= (int)CORNU_F32_ISA_COUNT) break;
            if (!isa_begin((CornuIsa)isa)) continue;
            const char *name = cornu__isa_name((CornuIsa)isa);
            setenv("CORNU_ISA", name, 1);
            double *got = run(kinds[k].device, p, in, kinds[k].result, &count);
            compare(p, kinds[k].device, kinds[k].dtype, kinds[k].result, name, got, expected,
                    1, sizes, count);
            if (portable) {
                compare(p, kinds[k].device, kinds[k].dtype, kinds[k].result, name, got, portable,
                        2, sizes, count);
                free(got);
            } else {
                portable = got;
            }
        }
        free(portable);
    }
    for (int i = 0; i < 2; i++) free(in[i].data), free(sizes_in[i].data);
    free(expected), free(sizes);
}

/* ---- Shapes ---- */

static int64_t extent(void)
{
    static const int64_t extents[] = { 1, 1, 2, 3, 5, 7, 13, 17, 31, 32, 61, 127 };
    return extents[between(0, sizeof extents / sizeof *extents - 1)];
}

static int64_t huge_extent(void) { return between(100000, 120000); }

static void check_matmul(int64_t batch, int64_t m, int64_t k, int64_t n, int layout)
{
    const bool ta = layout & 1, tb = layout & 2, batched_b = layout & 4;
    Product    p = { .id = CORNU_OP_MATMUL, .terms = (double)k };
    p.attributes.matmul.transpose_a = ta;
    p.attributes.matmul.transpose_b = tb;
    p.in[0] = ta ? cornu_shape(batch, k, m) : cornu_shape(batch, m, k);
    if (batched_b) p.in[1] = tb ? cornu_shape(batch, n, k) : cornu_shape(batch, k, n);
    else p.in[1] = tb ? cornu_shape(n, k) : cornu_shape(k, n);
    check(&p);
}

static void test_matmul(void **state)
{
    (void)state;
    for (int round = 0; round < 24; round++)
        check_matmul(between(0, 2) ? 1 : between(2, 5), extent(), extent(), extent(), round % 8);
    for (int layout = 0; layout < 4; layout++)
        for (int axis = 0; axis < 4; axis++) {
            int64_t e[] = { 1, between(1, 3), between(1, 3), between(1, 3) };
            e[axis] = huge_extent();
            check_matmul(e[0], e[1], e[2], e[3], layout | (axis == 0 ? 4 : 0));
        }
    for (int layout = 0; layout < 4; layout += 2)   /* panels that the product packs itself */
        check_matmul(1, 37, 901, 701, layout);
    for (int layout = 0; layout < 4; layout += 2) {   /* sums that continue in memory */
        check_matmul(1, 19, 9001, 45, layout);
        check_matmul(1, 203, 9001, 33, layout);
        check_matmul(2, 131, 4352, 64, layout | 4);
    }
    for (int layout = 0; layout < 4; layout += 2) {   /* rows of a that share sets of the cache */
        check_matmul(1, 61, 1024, 80, layout);
        check_matmul(3, 23, 512, 161, layout | 4);
        check_matmul(1, 17, 700, 2100, layout);   /* K in parts: many panels */
    }
    for (int layout = 0; layout < 4; layout++) {   /* blocks about square, of stretches of K */
        check_matmul(1, 97, 1101, 521, layout);
        check_matmul(2, 97, 1101, 517, layout | 4);
    }
    check_matmul(1, 523, 1101, 517, 0);
    for (int layout = 1; layout < 8; layout += 2)   /* K split, and several blocks of rows */
        check_matmul(2, 201, 1601, 37, layout);
    check_matmul(1, 1000003, 2, 3, 0);
    check_matmul(1, 2, 1000003, 3, 1);
    check_matmul(1, 3, 2, 1000003, 2);
}

/* conv2d of x (b, h, w, c) with filters (u, v, c, f), "same" padding, and both its gradients. */
static void check_convolution(int64_t b, int64_t h, int64_t w, int64_t c, int64_t u, int64_t v,
                              int64_t f, int64_t stride)
{
    const CornuShape x = cornu_shape(b, h, w, c), filter = cornu_shape(u, v, c, f);
    const int64_t    out_h = (h - 1) / stride + 1, out_w = (w - 1) / stride + 1;
    const CornuShape y = cornu_shape(b, out_h, out_w, f);
    const int64_t    low[] = { (u - 1) / 2, (v - 1) / 2 };
    const int64_t    high[] = { (out_h - 1) * stride + u - h - low[0],
                                (out_w - 1) * stride + v - w - low[1] };
    Product forward = { CORNU_OP_CONV2D, { .conv2d = { .strides = { stride, stride } } },
                        { x, filter }, (double)(u * v * c) };
    Product by_x = { CORNU_OP_CONV2D_GRAD_INPUT,
                     { .conv2d_grad = { .strides = { stride, stride }, .extents = { h, w } } },
                     { y, filter }, (double)(u * v * f) };
    Product by_filter = { CORNU_OP_CONV2D_GRAD_FILTER,
                          { .conv2d_grad = { .strides = { stride, stride }, .extents = { u, v } } },
                          { x, y }, (double)(b * out_h * out_w) };
    for (int i = 0; i < 2; i++) {
        forward.attributes.conv2d.low[i] = low[i];
        forward.attributes.conv2d.high[i] = high[i];
        by_x.attributes.conv2d_grad.low[i] = by_filter.attributes.conv2d_grad.low[i] = low[i];
        by_x.attributes.conv2d_grad.high[i] = by_filter.attributes.conv2d_grad.high[i] = high[i];
    }
    check(&forward);
    check(&by_x);
    check(&by_filter);
}

static void test_conv2d(void **state)
{
    (void)state;
    for (int round = 0; round < 16; round++)
        check_convolution(between(1, 17), between(1, 13), between(1, 13), between(1, 37),
                          between(1, 5), between(1, 5), extent(), between(1, 3));
    for (int axis = 0; axis < 5; axis++) {
        int64_t e[] = { between(1, 2), between(1, 3), between(1, 3), between(1, 2),
                        between(1, 2) };
        e[axis] = huge_extent();
        check_convolution(e[0], e[1], e[2], e[3], axis == 1 ? 3 : 1, axis == 2 ? 3 : 1, e[4], 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matmul),
        cmocka_unit_test(test_conv2d),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed + isas_run_counted(CORNU_ISA_COUNT - 1);
}
