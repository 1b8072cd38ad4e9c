/*
 * Pools, their gradients, and convolutions joined with pools, of the cpu and the tpu device against
 * the reference kernels, as test_kernels.c has the other kernels.
 *
 * tests/run: all instruction sets, quick
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../../../device/host/kernels/pool.h"
#include "../../../../device/host/kernels/precision.h"
#include "../../../../device/memory_internal.h"
#include "kernel_case.h"
#include "../../numbers.h"

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
    for (int i = 0; i < case_rounds(120); i++) {
        CornuShape      x = cornu_shape(between(1, 5), between(2, 13), between(2, 13),
                                        one_of(channels, 8));
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
    return case_makes_fewer_products(kernel) ? case_kernel_after(kernel, c) : kernel;
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
static void check_narrow_pooled(const CornuKernel *conv, const Case *c, const Case *pool,
                                void **joined)
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
    assert_int_equal(case_run_with(conv, &y, 1, &map), CORNU_OK);
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
static bool selects(const CornuKernel *joined, const Case *g)
{
    return joined == &cornu__host_conv2d_grad_filter_pooled ||
           (g->id == CORNU_OP_CONV2D_GRAD_FILTER &&
            cornu__multiplication(tested_multiplier, operands).products->packs);
}

/* A kernel that joins a gradient g with the pool's, `up`; `in` are its operands. The bits are those
 * of `separate` after the pool's, or at least the same every time. */
static void check_joined(const CornuKernel *joined, const CornuKernel *separate, Case *g,
                         const Case *up, const void *const *in)
{
    const size_t bytes = cornu_type_bytes(g->out_type[0]);
    void        *expected, *made[2] = { unset_memory(bytes) };
    assert_int_equal(case_run_with(separate, g, 1, &expected), CORNU_OK);
    if (selects(joined, g)) {
        g->terms = (double)cornu_type_count(up->in_type[0]) / up->in_type[0].shape.extent[3];
        assert_true(case_expect(g));
        assert_int_equal(run_pooled(joined, g, up, in, g->out_type, 1, made), CORNU_OK);
        case_compare(g, 0, made[0]);
        memcpy(expected, made[0], bytes);
        free(g->expected[0]);
    }
    for (int threads = 1; threads <= MOST_THREADS; threads++) {
        assert_int_equal(run_pooled(joined, g, up, in, g->out_type, threads, made), CORNU_OK);
        assert_memory_equal(made[0], expected, bytes);
    }
    /* indices outside every window: of the first element and the last, of the first image and the
     * last */
    const int64_t last = cornu_type_count(up->in_type[1]) - 1;
    for (int i = 0; i < 4; i++) {
        const int64_t *size = up->attributes.window_grad.size;
        uint8_t       *bad = &((uint8_t *)up->in[1])[i % 2 ? last : 0], kept = *bad;
        *bad = i / 2 ? 255 : (uint8_t)(size[0] * size[1]);
        assert_int_equal(run_pooled(joined, g, up, in, g->out_type, 2, made), CORNU_ERR_VALUE);
        *bad = kept;
    }
    cornu__release(expected);
    cornu__release(made[0]);
}

/* A gradient of the convolution y joined with the pool's, `up`, whose map is given, by the kernels
 * that take it, if any. */
static void check_unpooled(CornuOpId id, const Case *y, const Case *up, void *map)
{
    const CornuKernel *fewer = &cornu__host_conv2d_grad_input_winograd;
    const bool         by_filter = id == CORNU_OP_CONV2D_GRAD_FILTER;
    const CornuShape   shape = y->in_type[by_filter].shape;
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
    const CornuKernel *joined = case_pooled(&g, up);
    if (joined == fewer) {
        check_joined(joined, case_kernel(&g), &g, up, in);
        joined = case_pooled_after(fewer, &g, up);
    }
    if (joined) check_joined(joined, direct(&g), &g, up, in);
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
    const CornuKernel *joined = &cornu__host_conv2d_winograd;
    const int64_t      F = y->in_type[1].shape.extent[3];
    Case               plain = *y, p = *pool;
    void              *map, *pooled[3] = { 0 }, *out[3] = { 0 };
    if (case_kernel(y) != joined || !case_accepts(joined, y, pool)) return;
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
    const CornuKernel *kernel = case_accepts(&cornu__host_conv2d_padded, &y, &p)
                              ? &cornu__host_conv2d_padded : &cornu__host_conv2d;
    assert_int_equal(case_run_with(kernel, &y, 1, &map), CORNU_OK);
    p.in[0] = map;
    assert_int_equal(case_run(&p, 1, pooled), CORNU_OK);
    const int64_t F = filter.extent[3], count = cornu_type_count(p.out_type[0]);
    float        *bias = malloc((size_t)F * sizeof *bias);
    for (int64_t f = 0; f < F; f++) bias[f] = 0.25f * (float)between(-8, 8);
    y.epilogue = (CornuEpilogue){ .bias = bias, .activation = random_activation(5) };
    y.epilogue.attributes = activation_attributes(y.epilogue.activation);
    cornu__epilogue_apply(&y.epilogue, &(CornuEpilogueRows){
        .y = pooled[0], .rows = count / F, .columns = F, .stride = F, .width = F });
    for (int i = 0; i < 2; i++) joined[i] = unset_memory(cornu_type_bytes(p.out_type[i]));
    for (int threads = 1; threads <= MOST_THREADS; threads++) {
        assert_int_equal(run_pooled(kernel, &y, &p, (const void *const *)y.in, p.out_type, threads,
                                    joined), CORNU_OK);
        for (int i = 0; i < 2; i++)
            assert_memory_equal(joined[i], pooled[i], cornu_type_bytes(p.out_type[i]));
    }
    if (operands == CORNU_BF16) check_narrow_pooled(kernel, &y, &p, joined);
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
    for (int i = 0; i < case_rounds(40); i++) {
        CornuShape x = cornu_shape(between(1, 17), between(3, 12), between(3, 12), between(1, 9));
        CornuShape filter = cornu_shape(between(1, 3), between(1, 3), x.extent[3],
                                        one_of(filters, 4));
        check_pooled(x, filter, random_convolution(x, filter, i % 2), random_window(i % 3 != 0));
    }
    check_pooled(cornu_shape(11, 28, 28, 1), cornu_shape(3, 3, 1, 32), (CornuAttributes){ 0 },
                 random_window(true));
    const CornuAttributes two = { .window = { .size = { 2, 2 }, .strides = { 2, 2 } } };
    /* Channels that filter gradients select by fours and eights. */
    for (int i = 0; i < case_rounds(24); i++) {
        CornuShape x = cornu_shape(between(1, 7), between(7, 16), between(7, 16),
                                   4 * between(1, 7));
        CornuShape filter = cornu_shape(between(1, 6), between(1, 6), x.extent[3],
                                        one_of(filters, 4));
        check_pooled(x, filter, random_convolution(x, filter, i % 4 == 0), two);
    }
    check_pooled(cornu_shape(9, 14, 14, 64), cornu_shape(3, 3, 64, 16),
                 (CornuAttributes){ .conv2d = { .low = { 1, 1 }, .high = { 1, 1 } } }, two);
    for (int i = 0; i < case_rounds(12); i++) {   /* enough channels for fewer products */
        const int64_t taps = i % 2 ? 3 : 5;
        CornuShape x = cornu_shape(between(1, 9), between(6, 16), between(6, 16), between(12, 35));
        CornuShape filter = cornu_shape(taps, taps, x.extent[3], between(12, 49));
        check_pooled(x, filter, (CornuAttributes){ .conv2d = { .low = { i % 2, i % 3 } } }, two);
    }
    check_pooled(cornu_shape(11, 7, 9, 40), cornu_shape(3, 2, 40, 48), (CornuAttributes){ 0 }, two);
    check_pooled(cornu_shape(2, 26, 31, 9), cornu_shape(3, 3, 9, 32), (CornuAttributes){ 0 },
                 random_window(false));
    /* Straight from the registers: windows of two by two, with one channel and with a few. */
    const CornuAttributes same = { .conv2d = { .low = { 2, 2 }, .high = { 2, 2 } } };
    for (int i = 0; i < 4; i++) {
        CornuShape x = cornu_shape(2, between(5, 30), between(5, 30), i < 3 ? 1 : 2);
        check_pooled(x, cornu_shape(3, 3, x.extent[3], one_of(filters, 4)), (CornuAttributes){ 0 },
                     two);
        check_pooled(x, cornu_shape(5, 5, x.extent[3], one_of(filters, 4)), same, two);
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

int main(void)
{
    static const struct CMUnitTest cpu[] = {
        cmocka_unit_test_setup(test_pool, case_begin),
        cmocka_unit_test_setup(test_pooled, case_begin),
    };
    /* of bf16 only: those of f32 are tested on cpu */
    return cases_run(&(CaseTests){ cpu, 2, cpu, 2, .f32 = 0 });
}
