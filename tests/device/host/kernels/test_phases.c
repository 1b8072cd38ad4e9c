/*
 * Convolutions with strides that are computed as ones over phases: which are, and that they and
 * their gradients are what the reference device computes.
 *
 * tests/run: all instruction sets
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../../agreement.h"
#include "../../planned.h"

typedef struct {
    int64_t    batch, height, width, channels, filters, taps[2], strides[2], low[2], out[2];
} Convolution;

/* The second convolution of mnist_cnn_bn, smaller. */
static const Convolution usual = { .batch = 3, .height = 20, .width = 24, .channels = 7,
                                   .filters = 24, .taps = { 6, 6 }, .strides = { 2, 2 },
                                   .low = { 2, 2 }, .out = { 10, 12 } };

/* y, and both gradients for a d_y of its own. */
static CornuProgram *convolution(const Convolution *c)
{
    CornuAttributes forward = { .conv2d = { .dtype = CORNU_F32 } };
    CornuAttributes by_x = { .conv2d_grad = { .dtype = CORNU_F32 } };
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
    const CornuValue x = input(p, cornu_type(CORNU_F32, c->batch, c->height, c->width,
                                             c->channels));
    const CornuValue filter = input(p, cornu_type(CORNU_F32, c->taps[0], c->taps[1], c->channels,
                                                  c->filters));
    const CornuValue d_y = input(p, cornu_type(CORNU_F32, c->batch, c->out[0], c->out[1],
                                               c->filters));
    output(p, op(p, CORNU_OP_CONV2D, &forward, (CornuValue[]){ x, filter }, 2), -1);
    output(p, op(p, CORNU_OP_CONV2D_GRAD_INPUT, &by_x, (CornuValue[]){ d_y, filter }, 2), -1);
    output(p, op(p, CORNU_OP_CONV2D_GRAD_FILTER, &by_filter, (CornuValue[]){ x, d_y }, 2), -1);
    return p;
}

/* Ops that are computed with fewer products: the convolution, the gradient of x, or both. */
static int count_fewer(const Convolution *c)
{
    const CornuMultiplier f32 = { .bf16 = false };
    Planned              *made = planned(convolution(c), 1, 2, f32);
    int                   count = 0;
    for (int i = 0; i < made->plan.step_count; i++) {
        const CornuPlanStep *step = &made->plan.steps[i];
        count += step->kind == CORNU_STEP_KERNEL &&
                 (step->kernel == &cornu__host_conv2d_winograd ||
                  step->kernel == &cornu__host_conv2d_grad_input_winograd);
    }
    release_planned(made);
    return count;
}

static void test_which_are_computed_so(void **state)
{
    (void)state;
    Convolution cases[6];
    for (int i = 0; i < 6; i++) cases[i] = usual;
    assert_int_equal(count_fewer(&usual), 2);
    cases[0].taps[0] = 5;              /* no whole phases */
    cases[1].height = 21;
    cases[2].low[1] = 1;
    cases[3].channels = 2;             /* too few for fewer products, of one phase or four */
    cases[4].filters = 3;
    cases[5].strides[0] = cases[5].strides[1] = 3;
    for (int i = 0; i < 6; i++) {
        const int count = count_fewer(&cases[i]);
        if (count) fail_msg("case %d: %d ops have fewer products", i, count);
    }
}

static void test_numbers(void **state)
{
    (void)state;
    Convolution padded = usual, threes = usual, tall = usual;
    padded.low[0] = 0;                 /* where padding after x takes rows away */
    padded.low[1] = 4;
    padded.out[0] = 8;
    padded.out[1] = 13;
    threes.taps[0] = 9;
    threes.strides[0] = threes.low[0] = 3;
    threes.height = 30;
    threes.filters = 29;
    tall.taps[1] = 3;
    tall.strides[1] = tall.low[1] = 1;
    tall.out[1] = 24;
    tall.channels = 11;
    const struct { const char *what; const Convolution *convolution; } cases[] = {
        { "strides of 2", &usual }, { "padding", &padded }, { "strides of 3 and 2", &threes },
        { "a stride of 2 along the height", &tall },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int count = count_fewer(cases[i].convolution);
        if (count != 2) fail_msg("%s: %d ops have fewer products", cases[i].what, count);
        CornuProgram *p = convolution(cases[i].convolution);
        check(p, 1e-5, cases[i].what);
        cornu_program_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_which_are_computed_so),
        cmocka_unit_test(test_numbers),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
