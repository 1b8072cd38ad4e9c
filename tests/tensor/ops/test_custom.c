/* Ops registered at run time: their checks, placement, results and gradients on every device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../skip.h"
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

#include "../../../device/placement/placement.h"
#include "../../../tensor/custom.h"
#include "../../../tensor/graph.h"
#include "../../../tensor/ops.h"
#include "../../allocations.h"
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
        if (program->ops[i].id == CORNU_OP_CUSTOM)
            expect_ok(cornu_device_place(device, program, i, &p));
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

/* Statistics name it. */
static void fallbacks_have_the_users_name(void **state)
{
    (void)state;
    CornuDevice *device = cornu_device_open("cpu");
    CornuGraph  *graph = cornu_graph_create(device);
    CornuTensor *x = cornu_graph_input(graph, cornu_type(CORNU_F32, N));
    CornuTensor *y = cornu_op_custom(by_reference(), &x, 1, &beta, 1, NULL);
    expect_ok(cornu_graph_prepare(graph, &y, 1));
    const CornuStatistics *of = cornu_graph_statistics(graph);
    assert_int_equal(of->fallbacks, 1);
    assert_string_equal(of->fell_back[CORNU_OP_CUSTOM], "swish_reference");
    assert_null(of->fell_back[CORNU_OP_TANH]);
    cornu_graph_free(graph);
    cornu_device_close(device);
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

/* Eight shards, each of which applies the op to its rows. */
static void runs_on_shards(void **state)
{
    (void)state;
    enum { SHARDS = 8 };
    static float x[SHARDS][N], y[SHARDS][N];
    for (int i = 0; i < SHARDS * N; i++) (&x[0][0])[i] = (float)(i % 23) / 7.0f - 1.5f;
    CornuDevice *device = cornu_device_open("tpu", .shards = SHARDS);
    CornuGraph  *graph = cornu_graph_create(device);
    CornuTensor *in = cornu_graph_shard_input(graph, cornu_type(CORNU_F32, N));
    CornuTensor *z = cornu_op_custom(with_kernel(), &in, 1, &beta, 1, NULL);
    CornuArray   out = cornu_array(y, CORNU_F32, SHARDS, N);
    expect_ok(cornu_graph_feed(in, cornu_array(x, CORNU_F32, SHARDS, N)));
    expect_ok(cornu_run(graph, &z, 1, &out));
    for (int i = 0; i < SHARDS * N; i++)
        assert_float_equal((&y[0][0])[i], swish((&x[0][0])[i]), 1e-6);
    cornu_graph_free(graph);
    cornu_device_close(device);
}

/* ---- In a loop: carry t is swish of carry t - 1 plus x ---- */

static void step(void *context, CornuTensor *const *in, CornuTensor **out)
{
    CornuTensor *sum = cornu_op_add(in[0], in[1]);
    out[0] = cornu_op_custom(context, &sum, 1, &beta, 1, NULL);
}

static void runs_in_loops(void **state)
{
    (void)state;
    const char *const devices[] = { "cpu", "reference" };
    CornuOp          *ops[] = { composed(), with_kernel() };
    float             y[N], d_x[N];
    CornuArray        out[] = { cornu_array(y, CORNU_F32, N), cornu_array(d_x, CORNU_F32, N) };
    for (int k = 0; k < 4; k++) {
        CornuDevice *device = cornu_device_open(devices[k / 2]);
        CornuGraph  *graph = cornu_graph_create(device);
        CornuTensor *x = cornu_graph_input(graph, cornu_type(CORNU_F32, N)), *last, *d;
        CornuTensor *zero = cornu_op_constant_like(x, 0.0);
        const CornuScan scan = { .carries = &zero, .carry_count = 1, .constants = &x,
                                 .constant_count = 1, .steps = 2 };
        assert_true(cornu_op_scan(&scan, step, ops[k % 2], &last));
        expect_ok(cornu_gradients(cornu_op_sum(last), &x, 1, &d));
        expect_ok(cornu_graph_feed(x, cornu_array((void *)(uintptr_t)numbers(), CORNU_F32, N)));
        expect_ok(cornu_run(graph, (CornuTensor *[]){ last, d }, 2, out));
        for (int i = 0; i < N; i++) {
            const double at = numbers()[i], between = swish(at) + at;
            assert_float_equal(y[i], swish(between), 1e-5);
            assert_float_equal(d_x[i], slope(between) * (slope(at) + 1.0), 1e-5);
        }
        cornu_graph_free(graph);
        cornu_device_close(device);
    }
}

/* ---- Two results, of which the loss depends on one ---- */

static void split_composition(const CornuOpArguments *call, CornuTensor *const *x, CornuTensor **y)
{
    (void)call;
    y[0] = cornu_op_multiply(x[0], x[1]);
    y[1] = cornu_op_subtract(x[0], x[1]);
}

static void gradients_follow_the_results_that_count(void **state)
{
    (void)state;
    CornuOp *op = registered(&(CornuOpDefinition){ .name = "split", .inputs = 2, .outputs = 2,
                                                   .composition = split_composition });
    for (int used = 0; used < 2; used++) {
        CornuDevice *device = cornu_device_open("cpu");
        CornuGraph  *graph = cornu_graph_create(device);
        const float  numbers[2] = { 3.0f, -2.0f };
        float        got[2];
        CornuTensor *x[2], *y[2], *d[2];
        CornuArray   out[2];
        for (int i = 0; i < 2; i++) {
            x[i] = cornu_graph_input(graph, cornu_scalar(CORNU_F32));
            out[i] = cornu_array_from(&got[i], cornu_scalar(CORNU_F32));
            expect_ok(cornu_graph_feed(x[i], cornu_array_from((void *)(uintptr_t)&numbers[i],
                                                              cornu_scalar(CORNU_F32))));
        }
        assert_non_null(cornu_op_custom(op, x, 2, NULL, 0, y));
        expect_ok(cornu_gradients(y[used], x, 2, d));
        expect_ok(cornu_run(graph, d, 2, out));
        assert_float_equal(got[0], used ? 1.0 : -2.0, 0.0);
        assert_float_equal(got[1], used ? -1.0 : 3.0, 0.0);
        cornu_graph_free(graph);
        cornu_device_close(device);
    }
}

/* Each allocation fails in turn: an error, and nothing is lost. */
static void recording_without_memory(void **state)
{
    (void)state;
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    CornuDevice *device = cornu_device_open("cpu");
    CornuOp     *op = with_kernel();
    CornuStatus  status = CORNU_ERR_MEMORY;
    for (int n = 0; status != CORNU_OK; n++) {
        const int64_t held = allocations_held();
        allocations_fail_after(n);
        CornuGraph  *graph = cornu_graph_create(device);
        CornuTensor *x = cornu_graph_input(graph, cornu_type(CORNU_F32, N)), *d;
        CornuTensor *y = cornu_op_sum(cornu_op_custom(op, &x, 1, &beta, 1, NULL));
        status = y ? cornu_gradients(y, &x, 1, &d) : cornu_error_take();
        allocations_fail_after(NEVER);
        cornu_graph_free(graph);
        assert_int_equal(allocations_held(), held);
        if (status) assert_int_equal(status, CORNU_ERR_MEMORY);
        assert_true(n < 1000);
    }
    cornu_device_close(device);
}

static void runs_by_xla(void **state)
{
    (void)state;
    float          y[N], d_x[N];
    CornuDevice   *device = cornu_device_open("pjrt:cpu");
    if (!device) {
        cornu_error_take();
        SKIP_FOR(SKIP_PJRT);
    }
    cornu_device_close(device);
    CornuPlacement p = apply(with_kernel(), "pjrt:cpu", CORNU_F32, y, d_x);
    expect_swish(y, d_x, 1e-6);
    assert_int_equal(p.kind, CORNU_PLACED_DECOMPOSED);
    assert_string_equal(p.why, "XLA has no such op");
}

/* ---- Programs ---- */

typedef struct {
    CornuDevice *device;
    CornuGraph  *graph;
    CornuTensor *x;
} Input;

static Input open_input(void)
{
    Input in = { .device = cornu_device_open("reference") };
    if (!in.device) fail_msg("%s", cornu_error_message());
    in.graph = cornu_graph_create(in.device);
    in.x = cornu_graph_input(in.graph, cornu_type(CORNU_F32, N));
    assert_non_null(in.x);
    return in;
}

static void close_input(Input *in)
{
    cornu_graph_free(in->graph);
    cornu_device_close(in->device);
}

/* Calls with the same numbers are one op, others are not; programs are printed with the name. */
static void programs_tell_calls_apart(void **state)
{
    (void)state;
    Input        in = open_input();
    const double other = 2.0;
    CornuTensor *y[3] = { cornu_op_custom(composed(), &in.x, 1, &beta, 1, NULL),
                          cornu_op_custom(composed(), &in.x, 1, &beta, 1, NULL),
                          cornu_op_custom(composed(), &in.x, 1, &other, 1, NULL) };
    CornuTensor *z = cornu_op_custom(by_reference(), &in.x, 1, &beta, 1, NULL);
    expect_ok(cornu_graph_prepare(in.graph, (CornuTensor *[]){ y[0], y[1], y[2], z }, 4));
    char   *text;
    size_t  size;
    FILE   *to = open_memstream(&text, &size);
    cornu_program_print(cornu_graph_program(in.graph), to);
    fclose(to);
    assert_non_null(strstr(text, "= swish_composed(%0) body=5 ops number_count=1 numbers=[1.5] : "
                                 "f32 (10,)"));
    assert_non_null(strstr(text, "= swish_reference(%0) number_count=1 numbers=[1.5] : f32 (10,)"));
    free(text);
    const CornuProgram *program = cornu_graph_program(in.graph);
    CornuProgram       *parts[4];
    for (int i = 0; i < 4; i++) {
        const CornuProgramOp *op = &program->ops[i];
        CornuValue            x;
        parts[i] = cornu_program_create();
        expect_ok(cornu_program_input(parts[i], cornu_type(CORNU_F32, N), &x));
        expect_ok(cornu_program_record(parts[i], op->id, &op->attributes, &x, 1, &x));
    }
    for (int i = 1; i < 4; i++) {
        assert_int_equal(cornu_program_equal(parts[0], parts[i]), i == 1);
        assert_int_equal(cornu_program_hash(parts[0]) == cornu_program_hash(parts[i]), i == 1);
    }
    for (int i = 0; i < 4; i++) cornu_program_free(parts[i]);
    close_input(&in);
}

/* ---- Registering ---- */

static void refuse(const CornuOpDefinition *definition, const char *message)
{
    expect_failure(cornu_op_register(definition), CORNU_ERR_ARGUMENT, message);
}

static void definitions_are_checked(void **state)
{
    (void)state;
#define DEFINE(...) &(CornuOpDefinition){ .reference = swish_reference, __VA_ARGS__ }
    refuse(NULL, "definition is NULL");
    refuse(DEFINE(.inputs = 1), "cornu_op_register: .name is not set");
    refuse(DEFINE(.name = ""), ".name is \"\", expected a small letter and then");
    refuse(DEFINE(.name = "2d"), ".name is \"2d\", expected");
    refuse(DEFINE(.name = "my op"), ".name is \"my op\", expected");
    refuse(DEFINE(.name = "Swish"), ".name is \"Swish\", expected");
    refuse(DEFINE(.name = "a123456789012345678901234567890123456789012345678901234567890123"),
           "63 characters at most");
    refuse(DEFINE(.name = "relu"), ".name is \"relu\", an op of Cornu's own");
    refuse(DEFINE(.name = "many", .inputs = 25), "many: .inputs is 25, expected 1 to 24, or -1");
    refuse(DEFINE(.name = "many", .outputs = 13), "many: .outputs is 13, expected 1 to 12");
    refuse(&(CornuOpDefinition){ .name = "empty", .kernel = swish_kernel },
           "empty: has neither .reference nor .composition");
    composed();
    refuse(DEFINE(.name = "swish_composed"), "swish_composed: registered before");
    assert_null(cornu_op_find("many"));
    assert_null(cornu_op_find(NULL));
    assert_non_null(cornu_op_find("swish_composed"));
}

static atomic_int registrations;

static void *register_many(void *context)
{
    (void)context;
    char name[32];
    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof name, "thread_%d", i);
        if (cornu_op_register(DEFINE(.name = name))) atomic_fetch_add(&registrations, 1);
        cornu_error_take();
        if (!cornu_op_find(name)) return NULL;
    }
    return context;
}

/* Each name is registered once, whoever comes first. */
static void threads_may_register(void **state)
{
    (void)state;
    pthread_t threads[4];
    int       context;
    void     *ended;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, register_many, &context), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &ended);
        assert_ptr_equal(ended, &context);
    }
    assert_int_equal(registrations, 50);
}

static void registering_without_memory(void **state)
{
    (void)state;
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    const int64_t held = allocations_held();
    allocations_fail_after(0);
    CornuOp *op = cornu_op_register(DEFINE(.name = "memory"));
    allocations_fail_after(NEVER);
    expect_failure(op, CORNU_ERR_MEMORY, "");
    assert_int_equal(allocations_held(), held);
    assert_null(cornu_op_find("memory"));
}

/* ---- Wrong calls ---- */

static CornuVariable *variable;

static void wrong_composition(const CornuOpArguments *call, CornuTensor *const *x, CornuTensor **y)
{
    switch ((int)call->numbers[0]) {
    case 0: break;
    case 1: y[0] = cornu_op_sum(x[0]); break;
    case 2: y[0] = cornu_op_reshape(x[0], cornu_shape(3, 3)); break;
    case 3: y[0] = cornu_op_add(x[0], cornu_read(cornu_tensor_graph(x[0]), variable)); break;
    }
}

static void wrong_gradient(const CornuOpArguments *call, CornuTensor *const *x,
                           CornuTensor *const *y, CornuTensor *const *d_y, CornuTensor **d_x)
{
    (void)call, (void)x, (void)y;
    d_x[0] = cornu_op_sum(d_y[0]);
}

static CornuStatus wrong_type(const CornuOpArguments *call, CornuType *out)
{
    (void)out;
    return cornu_error_set(CORNU_ERR_SHAPE, "x is %d numbers, expected 4",
                           (int)cornu_type_count(call->in[0]));
}

static void wrong_calls_are_refused_by_name(void **state)
{
    (void)state;
    Input       in = open_input();
    CornuOp    *op = registered(&(CornuOpDefinition){ .name = "wrong",
                                                      .composition = wrong_composition });
    const double numbers[9] = { 0, 1, 2, 3 };
    expect_failure(cornu_op_custom(NULL, &in.x, 1, NULL, 0, NULL), CORNU_ERR_ARGUMENT,
                   "op is NULL");
    expect_failure(cornu_op_custom(op, NULL, 1, NULL, 0, NULL), CORNU_ERR_ARGUMENT, "in is NULL");
    expect_failure(cornu_op_custom(op, &in.x, 2, numbers, 1, NULL), CORNU_ERR_ARGUMENT,
                   "wrong: 2 operands, expected 1");
    expect_failure(cornu_op_custom(op, &in.x, 1, numbers, 9, NULL), CORNU_ERR_ARGUMENT,
                   "wrong: 9 numbers, expected 0 to 8");
    expect_failure(cornu_op_custom(op, &in.x, 1, NULL, 1, NULL), CORNU_ERR_ARGUMENT,
                   "wrong: 1 numbers, NULL, expected 0 to 8");
    expect_failure(cornu_op_custom(op, &(CornuTensor *){ NULL }, 1, numbers, 1, NULL),
                   CORNU_ERR_ARGUMENT, "wrong: operand 0 is NULL");
    expect_failure(cornu_op_custom(op, &in.x, 1, &numbers[0], 1, NULL), CORNU_ERR_ARGUMENT,
                   "wrong: result 0 of its composition is NULL");
    expect_failure(cornu_op_custom(op, &in.x, 1, &numbers[1], 1, NULL), CORNU_ERR_SHAPE,
                   "wrong: result 0 is f32 (10,), its composition has f32 ()");
    expect_failure(cornu_op_custom(op, &in.x, 1, &numbers[2], 1, NULL), CORNU_ERR_SHAPE,
                   "wrong: reshape: ");
    variable = cornu_variable_create(.device = in.device, .type = cornu_type(CORNU_F32, N));
    expect_failure(cornu_op_custom(op, &in.x, 1, &numbers[3], 1, NULL), CORNU_ERR_UNSUPPORTED,
                   "wrong: its composition reads or assigns a variable; expected it among the "
                   "operands");
    op = registered(&(CornuOpDefinition){ .name = "wrong_type", .type = wrong_type,
                                          .composition = wrong_composition });
    expect_ok(cornu_graph_scope(in.graph, "dense_2"));
    expect_failure(cornu_op_custom(op, &in.x, 1, numbers, 1, NULL), CORNU_ERR_SHAPE,
                   "dense_2: wrong_type: x is 10 numbers, expected 4");
    cornu_variable_free(variable);
    close_input(&in);
}

static void gradients_need_a_rule(void **state)
{
    (void)state;
    Input        in = open_input();
    CornuTensor *d;
    CornuTensor *y = cornu_op_sum(cornu_op_custom(by_reference(), &in.x, 1, &beta, 1, NULL));
    expect_error(cornu_gradients(y, &in.x, 1, &d), CORNU_ERR_UNSUPPORTED,
                 "swish_reference: has neither .gradient nor .composition");
    CornuOp *op = registered(&(CornuOpDefinition){ .name = "wrong_gradient",
                                                   .reference = swish_reference,
                                                   .gradient = wrong_gradient });
    y = cornu_op_sum(cornu_op_custom(op, &in.x, 1, &beta, 1, NULL));
    expect_error(cornu_gradients(y, &in.x, 1, &d), CORNU_ERR_SHAPE,
                 "wrong_gradient: its gradient with respect to operand 0 is (), expected (10,)");
    close_input(&in);
}

/* ---- cornu_op_check ---- */

static void half_gradient(const CornuOpArguments *call, CornuTensor *const *x,
                          CornuTensor *const *y, CornuTensor *const *d_y, CornuTensor **d_x)
{
    (void)call, (void)x, (void)y;
    d_x[0] = cornu_op_scale(d_y[0], 0.5);
}

static CornuStatus half_kernel(const CornuOpArguments *call, const void *const *in,
                               const CornuType *out_type, void *const *out)
{
    (void)call;
    for (int64_t i = 0; i < cornu_type_count(out_type[0]); i++)
        ((float *)out[0])[i] = 0.5f * ((const float *)in[0])[i];
    return CORNU_OK;
}

static CornuStatus check(CornuOp *op, CornuDtype dtype)
{
    return cornu_op_check(op, .in = &(CornuType){ dtype, cornu_shape(2, 3) }, .in_count = 1,
                          .numbers = &beta, .number_count = 1);
}

static void right_ops_pass_the_check(void **state)
{
    (void)state;
    CornuOp *both = registered(&(CornuOpDefinition){
        .name = "swish_both", .reference = swish_reference, .composition = swish_composition });
    CornuOp *ops[] = { composed(), by_reference(), with_kernel(), both };
    for (int i = 0; i < 4; i++) {
        expect_ok(check(ops[i], CORNU_F32));
        expect_ok(check(ops[i], CORNU_BF16));
        expect_ok(check(ops[i], CORNU_F64));
    }
}

static void wrong_ops_do_not(void **state)
{
    (void)state;
    CornuOp *op = registered(&(CornuOpDefinition){ .name = "bad_gradient",
        .composition = swish_composition, .gradient = half_gradient });
    expect_error(check(op, CORNU_F32), CORNU_ERR_VALUE, "bad_gradient: gradient: with respect to "
                 "element 0 of operand 0 it is ");
    op = registered(&(CornuOpDefinition){ .name = "bad_kernel",
        .composition = swish_composition, .kernel = half_kernel });
    expect_error(check(op, CORNU_F32), CORNU_ERR_VALUE, "bad_kernel: cpu: element 0 of result 0 "
                 "is ");
    expect_ok(check(op, CORNU_F64));   /* which it does not take */
    op = registered(&(CornuOpDefinition){ .name = "bad_composition",
        .reference = swish_reference, .composition = wrong_composition });
    expect_error(check(op, CORNU_F32), CORNU_ERR_SHAPE, "bad_composition: result 0 is f32 (2, 3)");
    op = registered(&(CornuOpDefinition){ .name = "bad_reference", .reference = swish_reference,
        .composition = wrong_composition });
    const double zero = 0.0;
    const double *values[] = { &zero };
    expect_error(cornu_op_check(with_kernel(), .in = &(CornuType){ CORNU_F32, cornu_shape(1) },
                                .in_count = 1, .numbers = &beta, .number_count = 1,
                                .values = values, .devices = (const char *[]){ "cup", NULL }),
                 CORNU_ERR_DEVICE, "cup");
    expect_error(cornu_op_check(op, .in = &(CornuType){ CORNU_F32, { 0 } }, .in_count = 0),
                 CORNU_ERR_ARGUMENT, "bad_reference: .in_count is 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(composition_runs_decomposed),
        cmocka_unit_test(reference_alone_is_enough),
        cmocka_unit_test(fallbacks_have_the_users_name),
        cmocka_unit_test(kernel_is_called_for_f32),
        cmocka_unit_test(runs_on_shards),
        cmocka_unit_test(runs_in_loops),
        cmocka_unit_test(gradients_follow_the_results_that_count),
        cmocka_unit_test(recording_without_memory),
        cmocka_unit_test(runs_by_xla),
        cmocka_unit_test(programs_tell_calls_apart),
        cmocka_unit_test(definitions_are_checked),
        cmocka_unit_test(threads_may_register),
        cmocka_unit_test(registering_without_memory),
        cmocka_unit_test(wrong_calls_are_refused_by_name),
        cmocka_unit_test(gradients_need_a_rule),
        cmocka_unit_test(right_ops_pass_the_check),
        cmocka_unit_test(wrong_ops_do_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
