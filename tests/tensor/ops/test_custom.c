/* Ops registered at run time: their checks, placement, results and gradients on every device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "../../../device/placement.h"
#include "../../../tensor/custom.h"
#include "../../../tensor/graph.h"
#include "../../../tensor/ops.h"
#include "../../expect.h"

/* ---- swish: y = x sigmoid(beta x) ---- */

static void swish_composition(const CornuOpArguments *call, CornuTensor *const *x, CornuTensor **y)
{
    y[0] = cornu_op_multiply(x[0], cornu_op_sigmoid(cornu_op_scale(x[0], call->numbers[0])));
}

static CornuStatus swish_reference(const CornuOpArguments *call, const double *const *in,
                                   const CornuType *out_type, double *const *out)
{
    for (int64_t i = 0; i < cornu_type_count(out_type[0]); i++)
        out[0][i] = in[0][i] / (1.0 + exp(-call->numbers[0] * in[0][i]));
    return CORNU_OK;
}

enum { GRAIN = 4 };

typedef struct {
    const float *x;
    float       *y, beta;
    int64_t      count;
} Swish;

static int kernel_calls;

static void swish_block(void *context, int64_t block)
{
    const Swish *s = context;
    for (int64_t i = block * GRAIN; i < s->count && i < (block + 1) * GRAIN; i++)
        s->y[i] = s->x[i] / (1.0f + expf(-s->beta * s->x[i]));
}

static CornuStatus swish_kernel(const CornuOpArguments *call, const void *const *in,
                                const CornuType *out_type, void *const *out)
{
    Swish s = { in[0], out[0], (float)call->numbers[0], cornu_type_count(out_type[0]) };
    kernel_calls++;
    cornu_op_parallel(call, (s.count + GRAIN - 1) / GRAIN, swish_block, &s);
    return CORNU_OK;
}

static CornuOp *registered(const CornuOpDefinition *definition)
{
    CornuOp *op = cornu_op_find(definition->name);
    if (!op) op = cornu_op_register(definition);
    if (!op) fail_msg("%s", cornu_error_message());
    return op;
}

static CornuOp *composed(void)
{
    return registered(&(CornuOpDefinition){ .name = "swish_composed",
                                            .composition = swish_composition });
}

static CornuOp *by_reference(void)
{
    return registered(&(CornuOpDefinition){ .name = "swish_reference",
                                            .reference = swish_reference });
}

static CornuOp *with_kernel(void)
{
    return registered(&(CornuOpDefinition){ .name = "swish_kernel", .kernel = swish_kernel,
                                            .composition = swish_composition });
}

/* ---- Results ---- */

enum { N = 10 };
static const double beta = 1.5;

static const float *numbers(void)
{
    static float x[N];
    for (int i = 0; i < N; i++) x[i] = (float)i / 3.0f - 1.5f;
    return x;
}

static double swish(double x) { return x / (1.0 + exp(-beta * x)); }
static double slope(double x)
{
    const double s = 1.0 / (1.0 + exp(-beta * x));
    return s + beta * x * s * (1.0 - s);
}

/* The op's results and its gradient there, in `dtype` on the device. */
static CornuPlacement apply(const CornuOp *op, const char *device_name, CornuDtype dtype,
                            float y[N], float d_x[N])
{
    CornuDevice *device = cornu_device_open(device_name);
    if (!device) fail_msg("%s", cornu_error_message());
    CornuGraph  *graph = cornu_graph_create(device);
    CornuTensor *x = cornu_graph_input(graph, cornu_type(CORNU_F32, N)), *d = NULL;
    CornuTensor *z = cornu_op_custom(op, &(CornuTensor *){ cornu_op_convert(x, dtype) }, 1,
                                     &beta, 1, NULL);
    CornuTensor *result = cornu_op_convert(z, CORNU_F32);
    if (d_x) expect_ok(cornu_gradients(cornu_op_sum(result), &x, 1, &d));
    else d = x;
    CornuArray out[] = { cornu_array(y, CORNU_F32, N),
                         cornu_array(d_x ? d_x : (float[N]){ 0 }, CORNU_F32, N) };
    expect_ok(cornu_graph_feed(x, cornu_array((void *)(uintptr_t)numbers(), CORNU_F32, N)));
    expect_ok(cornu_run(graph, (CornuTensor *[]){ result, d }, 2, out));
    CornuPlacement      p = { .kind = CORNU_PLACED_COUNT };
    const CornuProgram *program = cornu_graph_program(graph);
    for (int i = 0; i < program->op_count; i++)
        if (program->ops[i].id == CORNU_OP_CUSTOM) expect_ok(cornu_device_place(device, program, i, &p));
    cornu_graph_free(graph);
    cornu_device_close(device);
    return p;
}

static void expect_swish(const float y[N], const float d_x[N], double near)
{
    for (int i = 0; i < N; i++) {
        assert_float_equal(y[i], swish(numbers()[i]), near);
        if (d_x) assert_float_equal(d_x[i], slope(numbers()[i]), near);
    }
}

static void composition_runs_decomposed(void **state)
{
    (void)state;
    float          y[N], d_x[N];
    CornuPlacement p = apply(composed(), "cpu", CORNU_F32, y, d_x);
    expect_swish(y, d_x, 1e-6);
    assert_int_equal(p.kind, CORNU_PLACED_DECOMPOSED);
    assert_string_equal(p.how, "constant, broadcast, 2 multiply, sigmoid");
    apply(composed(), "tpu", CORNU_BF16, y, d_x);
    expect_swish(y, d_x, 0.02);
    p = apply(composed(), "reference", CORNU_F32, y, d_x);
    expect_swish(y, d_x, 1e-6);
    assert_string_equal(p.how, "reference kernel swish_composed");
}

static void reference_alone_is_enough(void **state)
{
    (void)state;
    float          y[N];
    CornuPlacement p = apply(by_reference(), "cpu", CORNU_F32, y, NULL);
    expect_swish(y, NULL, 1e-6);
    assert_int_equal(p.kind, CORNU_PLACED_REFERENCE);
    assert_string_equal(p.why, "no kernel takes f32 (10,), and it is not composed of "
                        "others");
}

static void kernel_is_called_for_f32(void **state)
{
    (void)state;
    float          y[N], d_x[N];
    kernel_calls = 0;
    CornuPlacement p = apply(with_kernel(), "cpu", CORNU_F32, y, d_x);
    assert_int_equal(kernel_calls, 1);
    expect_swish(y, d_x, 1e-6);
    assert_string_equal(p.how, "kernel swish_kernel");
    p = apply(with_kernel(), "tpu", CORNU_BF16, y, d_x);
    assert_int_equal(kernel_calls, 1 + 1);
    expect_swish(y, d_x, 0.02);
    assert_string_equal(p.how, "kernel swish_kernel, between conversions to f32");
    p = apply(with_kernel(), "cpu", CORNU_F64, y, d_x);
    assert_int_equal(kernel_calls, 1 + 1);
    expect_swish(y, d_x, 1e-6);
    assert_int_equal(p.kind, CORNU_PLACED_DECOMPOSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(composition_runs_decomposed),
        cmocka_unit_test(reference_alone_is_enough),
        cmocka_unit_test(kernel_is_called_for_f32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
