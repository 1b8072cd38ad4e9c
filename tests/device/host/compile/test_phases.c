/*
 * Convolutions with strides that become convolutions over phases: which do, and that they and their
 * gradients are what the reference device computes.
 *
 * tests/run: all instruction sets
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include <cornu/device/host/compile/passes.h>
#include <cornu/device/host/kernels/kernels.h>

#include "../../agreement.h"

typedef struct {
    int64_t    batch, height, width, channels, filters, taps[2], strides[2], low[2], out[2];
    CornuDtype dtype;
} Convolution;

/* The second convolution of mnist_cnn_bn, smaller. */
static const Convolution usual = { .batch = 3, .height = 20, .width = 24, .channels = 5,
                                   .filters = 24, .taps = { 6, 6 }, .strides = { 2, 2 },
                                   .low = { 2, 2 }, .out = { 10, 12 }, .dtype = CORNU_F32 };

/* y, and both gradients for a d_y of its own. */
static CornuProgram *convolution(const Convolution *c)
{
    CornuAttributes forward = { .conv2d = { .dtype = c->dtype } };
    CornuAttributes by_x = { .conv2d_grad = { .dtype = c->dtype } };
    const int64_t   in[2] = { c->height, c->width };
    for (int a = 0; a < 2; a++) {
        const int64_t high = (c->out[a] - 1) * c->strides[a] + c->taps[a] - in[a] - c->low[a];
        forward.conv2d.strides[a] = by_x.conv2d_grad.strides[a] = c->strides[a];
        forward.conv2d.low[a] = by_x.conv2d_grad.low[a] = c->low[a];
        forward.conv2d.high[a] = by_x.conv2d_grad.high[a] = high;
        by_x.conv2d_grad.extents[a] = in[a];
    }
    CornuAttributes by_filter = by_x;
    for (int a = 0; a < 2; a++) by_filter.conv2d_grad.extents[a] = c->taps[a];
    CornuProgram    *p = cornu_program_create();
    const CornuValue x = input(p, cornu_type(c->dtype, c->batch, c->height, c->width,
                                             c->channels));
    const CornuValue filter = input(p, cornu_type(c->dtype, c->taps[0], c->taps[1], c->channels,
                                                  c->filters));
    const CornuValue d_y = input(p, cornu_type(c->dtype, c->batch, c->out[0], c->out[1],
                                               c->filters));
    output(p, op(p, CORNU_OP_CONV2D, &forward, (CornuValue[]){ x, filter }, 2), -1);
    output(p, op(p, CORNU_OP_CONV2D_GRAD_INPUT, &by_x, (CornuValue[]){ d_y, filter }, 2), -1);
    output(p, op(p, CORNU_OP_CONV2D_GRAD_FILTER, &by_filter, (CornuValue[]){ x, d_y }, 2), -1);
    return p;
}

/* Convolutions and gradients in the plan that have strides, and transposes of x: once for both ops
 * that read it. */
static void count_steps(const Convolution *c, int *strided, int *transposes)
{
    const CornuHost host = { .kernels = { cornu__host_kernels }, .pooled = cornu__host_pooled,
                             .vectors = cornu__vectors(), .threads = cornu__threads_create(2) };
    CornuProgram *p = convolution(c);
    CornuPlan     plan = { .host = NULL };
    if (cornu__plan_build(&plan, &host, p) != CORNU_OK) fail_msg("%s", cornu_error_message());
    assert_int_equal(cornu__plan_verify(&plan), CORNU_OK);
    *strided = *transposes = 0;
    for (int i = 0; i < plan.program->op_count; i++) {
        const CornuProgramOp *made = &plan.program->ops[i];
        if (made->id == CORNU_OP_CONV2D) *strided += made->attributes.conv2d.strides[0] > 1;
        if (made->id == CORNU_OP_CONV2D_GRAD_INPUT || made->id == CORNU_OP_CONV2D_GRAD_FILTER)
            *strided += made->attributes.conv2d_grad.strides[0] > 1;
        *transposes += made->id == CORNU_OP_TRANSPOSE;
    }
    cornu__plan_free(&plan);
    cornu_program_free(p);
    cornu__threads_free(host.threads);
}

static void test_which_are_changed(void **state)
{
    (void)state;
    Convolution cases[7];
    int         strided, transposes;
    for (int i = 0; i < 7; i++) cases[i] = usual;
    count_steps(&usual, &strided, &transposes);
    assert_int_equal(strided, 0);
    assert_int_equal(transposes, 4);   /* x, the filter, and both gradients */
    cases[0].taps[0] = 5;              /* no whole phases */
    cases[1].height = 21;
    cases[2].low[1] = 1;
    cases[3].channels = 2;             /* too few for fewer products, of one phase or four */
    cases[4].filters = 3;
    cases[5].dtype = CORNU_BF16;
    cases[6].strides[0] = cases[6].strides[1] = 3;
    for (int i = 0; i < 7; i++) {
        count_steps(&cases[i], &strided, &transposes);
        if (strided != 3) fail_msg("case %d: %d of 3 ops have strides", i, strided);
    }
    setenv("CORNU_PASSES", "-phases", 1);
    count_steps(&usual, &strided, &transposes);
    unsetenv("CORNU_PASSES");
    assert_int_equal(strided, 3);
    assert_int_equal(transposes, 0);
}

static void check_convolution(const Convolution *c, const char *what)
{
    CornuProgram *p = convolution(c);
    check(p, 1e-5, what);
    cornu_program_free(p);
}

static void test_numbers(void **state)
{
    (void)state;
    Convolution c = usual;
    int         strided, transposes;
    check_convolution(&c, "strides of 2");
    c.low[0] = 0;                      /* and padding after that takes rows away */
    c.low[1] = 4;
    c.out[0] = 8;
    c.out[1] = 13;
    check_convolution(&c, "padding");
    c = usual;
    c.taps[0] = 9;
    c.strides[0] = 3;
    c.height = 30;
    c.low[0] = 3;
    c.out[0] = 10;
    c.filters = 29;
    count_steps(&c, &strided, &transposes);
    assert_int_equal(strided, 0);
    check_convolution(&c, "strides of 3 and 2");
    c = usual;
    c.taps[1] = 3;
    c.strides[1] = 1;
    c.low[1] = 1;
    c.out[1] = 24;
    c.channels = 7;
    count_steps(&c, &strided, &transposes);
    assert_int_equal(strided, 0);
    check_convolution(&c, "a stride of 2 along the height");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_which_are_changed),
        cmocka_unit_test(test_numbers),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
