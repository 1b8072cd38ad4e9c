#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../../../device/cpu/blis.h"
#include "../../../../device/cpu/kernels.h"
#include "../../../../device/memory_internal.h"
#include "../../isas.h"
#include "kernel_case.h"
#include "../../numbers.h"

const CornuKernel *const *tested_kernels;
CornuMultiplier           tested_multiplier;
CornuDtype                operands, results;

double random_value(void) { return (double)random_bits() / (1 << 23) - 1.0; }

int64_t one_of(const int64_t *from, int count) { return from[between(0, count - 1)]; }

CornuOpId random_activation(int last)
{
    static const CornuOpId activations[] = { CORNU_OP_COUNT, CORNU_OP_RELU, CORNU_OP_ELU,
                                             CORNU_OP_TANH, CORNU_OP_SIGMOID };
    return activations[between(0, last)];
}

CornuAttributes random_convolution(CornuShape x, CornuShape filter, bool plain)
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

int case_rounds(int count) { return tested_kernels == cornu__cpu_kernels ? count : count / 4; }

CornuOpCall case_op(const Case *c)
{
    return (CornuOpCall){ c->id, &c->attributes, c->in_count, c->in_type };
}

CornuArray case_operand(const Case *c, int i)
{
    return cornu_array_from(c->in[i], c->in_type[i]);
}

void case_add(Case *c, CornuType type)
{
    int i = c->in_count++;
    c->in_type[i] = type;
    c->in[i] = cornu__allocate_aligned(cornu_type_bytes(type) + 1);
    assert_non_null(c->in[i]);
    if (cornu_dtype_is_float(type.dtype))
        for (int64_t k = 0; k < cornu_type_count(type); k++)
            cornu_array_set(case_operand(c, i), k, random_value());
}

void case_free(Case *c)
{
    for (int i = 0; i < c->in_count; i++) {
        cornu__release(c->in[i]);
        free(c->expected_in[i]);
    }
    for (int i = 0; i < cornu_op_output_count(c->id); i++) free(c->expected[i]);
}

bool case_expect(Case *c)
{
    CornuOpCall op = case_op(c);
    if (cornu__op_type(&op, c->out_type) != CORNU_OK) return false;
    for (int i = 0; i < c->in_count; i++) {
        int64_t count = cornu_type_count(c->in_type[i]);
        c->expected_in[i] = malloc((size_t)(count + 1) * sizeof(double));
        for (int64_t k = 0; k < count; k++)
            c->expected_in[i][k] = cornu_array_get(case_operand(c, i), k);
    }
    for (int i = 0; i < cornu_op_output_count(c->id); i++)
        c->expected[i] = calloc((size_t)cornu_type_count(c->out_type[i]) + 1, sizeof(double));
    CornuReferenceCall call = { op, (const double *const *)c->expected_in, c->expected,
                                c->out_type, cornu_type_count(c->out_type[0]) };
    assert_int_equal(cornu__op_reference(&call), CORNU_OK);
    return true;
}

static double activated(const CornuEpilogue *epilogue, double x)
{
    switch (epilogue->activation) {
    case CORNU_OP_RELU:    return x <= 0.0 ? 0.0 : x;
    case CORNU_OP_TANH:    return tanh(x);
    case CORNU_OP_SIGMOID: return 1.0 / (1.0 + exp(-x));
    case CORNU_OP_ELU:     return x > 0.0 ? x : epilogue->attributes.alpha.alpha * expm1(x);
    default:               return x;
    }
}

void case_expect_epilogue(Case *c)
{
    int64_t columns = c->out_type[0].shape.extent[c->out_type[0].shape.rank - 1];
    for (int64_t k = 0; k < cornu_type_count(c->out_type[0]); k++) {
        const CornuArray biases = { c->out_type[0], (void *)(uintptr_t)c->epilogue.bias };
        double bias = c->epilogue.bias ? cornu_array_get(biases, k % columns) : 0.0;
        c->expected[0][k] = activated(&c->epilogue, c->expected[0][k] + bias);
    }
}

void *unset_memory(size_t bytes)
{
    static int filled;
    void      *made = cornu__allocate_aligned(bytes + 1);
    assert_non_null(made);
    return memset(made, filled++ % 2 ? 0 : 0xff, bytes);
}

CornuStatus case_run_call(const CornuKernel *kernel, CornuKernelCall call,
                          const void *const *in, int threads)
{
    const CornuMachine machine = { threads, tested_multiplier, 1 };
    const void        *operand[MOST_INPUTS] = { 0 }, *own[MOST_INPUTS] = { 0 };
    /* A pool's gradient has two operands where the op has one. */
    const int          packs = kernel->packs + (call.pool &&
                                                call.pool->id == CORNU_OP_MAX_POOL2D_GRAD);
    void              *packed = NULL;
    size_t             bytes = 0;
    for (int i = 0; i < call.op.in_count + (call.pool ? 1 : 0); i++) operand[i] = in[i];
    call.in = operand;
    call.threads = cornu__threads_create(threads);
    call.multiplier = tested_multiplier;
    if (kernel->accepts) assert_true(kernel->accepts(&call.op, call.out_type, &machine));
    /* A kernel that may pack it itself does so on several threads: the bits are those of one. */
    const bool itself = threads > 1 && kernel->packs_itself &&
                        kernel->packs_itself(&call.op, call.out_type, &machine);
    if (kernel->pack_bytes && !itself &&
        (bytes = kernel->pack_bytes(&call.op, call.out_type, &machine))) {
        CornuKernelCall pack = call;
        packed = unset_memory(bytes);
        own[kernel->packs] = operand[packs];
        pack.in = own;
        pack.out = &packed;
        kernel->pack(&pack);
        operand[packs] = packed;
        call.packed = true;
    }
    bytes = kernel->scratch ? kernel->scratch(&call.op, call.out_type, &machine) : 0;
    call.scratch = unset_memory(bytes);
    CornuStatus status = kernel->run(&call);
    cornu__release(call.scratch);
    cornu__release(packed);
    cornu__threads_free(call.threads);
    return status;
}

const CornuKernel *case_kernel_taking(const CornuKernel *kernel, const Case *c)
{
    const CornuOpCall  call = case_op(c);
    const CornuMachine machine = { 1, tested_multiplier, 1 };
    return cornu__kernel_taking(kernel, &call, c->out_type, &machine);
}

const CornuKernel *case_kernel(const Case *c)
{
    const CornuKernel *own = tested_kernels ? tested_kernels[c->id] : NULL;
    return case_kernel_taking(own ? own : cornu__host_kernels[c->id], c);
}

CornuStatus case_run_with(const CornuKernel *kernel, const Case *c, int threads, void **out)
{
    assert_non_null(kernel);
    for (int i = 0; i < cornu_op_output_count(c->id); i++)
        out[i] = unset_memory(cornu_type_bytes(c->out_type[i]));
    const CornuKernelCall call = { .op = case_op(c), .out_type = c->out_type, .out = out,
                                   .epilogue = &c->epilogue };
    return case_run_call(kernel, call, (const void *const *)c->in, threads);
}

CornuStatus case_run(const Case *c, int threads, void **out)
{
    return case_run_with(case_kernel(c), c, threads, out);
}

void case_free_results(const Case *c, void **out)
{
    for (int i = 0; i < cornu_op_output_count(c->id); i++) cornu__release(out[i]);
}

void case_compare(const Case *c, int i, const void *got)
{
    CornuArray array = cornu_array_from((void *)(uintptr_t)got, c->out_type[i]);
    int64_t    count = cornu_type_count(c->out_type[i]);
    double     largest = 0.0, worst = 0.0;
    int64_t    where = 0;
    for (int64_t k = 0; k < count; k++) {
        double expected = c->expected[i][k], value = cornu_array_get(array, k);
        if (isfinite(expected)) largest = fmax(largest, fabs(expected));
        double rounding = c->out_type[i].dtype == CORNU_BF16 ? fabs(expected) / 256.0 : 0.0;
        bool   same = value == expected || (isnan(value) && isnan(expected));
        double difference = same ? 0.0
                          : isfinite(value) && isfinite(expected)
                                ? fmax(fabs(value - expected) - rounding, 0.0) : INFINITY;
        if (!(difference <= worst)) worst = difference, where = k;
    }
    double bound = cornu_dtype_is_float(c->out_type[i].dtype)
                 ? FLT_EPSILON * (8.0 + 4.0 * sqrt(c->terms)) * fmax(largest, 1e-3) : 0.0;
    if (!(worst <= bound)) {
        CornuText a, b, out;
        fail_msg("%s of %s and %s: output %d %s differs by %g at %lld, bound %g",
                 cornu_op_name(c->id), cornu_type_print(&a, c->in_type[0]),
                 c->in_count > 1 ? cornu_type_print(&b, c->in_type[1]) : "nothing", i,
                 cornu_type_print(&out, c->out_type[i]), worst, (long long)where, bound);
    }
}

/* Whether a kernel agrees with the expected result, and with itself for any number of threads. */
static void check_kernel(const CornuKernel *kernel, const Case *c)
{
    void *first[CORNU_MAX_OUTPUTS];
    assert_int_equal(case_run_with(kernel, c, 1, first), CORNU_OK);
    for (int i = 0; i < cornu_op_output_count(c->id); i++) case_compare(c, i, first[i]);
    for (int threads = 2; threads <= MOST_THREADS; threads++) {
        void *again[CORNU_MAX_OUTPUTS];
        assert_int_equal(case_run_with(kernel, c, threads, again), CORNU_OK);
        for (int i = 0; i < cornu_op_output_count(c->id); i++)
            if (memcmp(first[i], again[i], cornu_type_bytes(c->out_type[i])))
                fail_msg("%s: %d threads change the bits", cornu_op_name(c->id), threads);
        case_free_results(c, again);
    }
    case_free_results(c, first);
}

void case_check(const Case *c)
{
    const CornuKernel *kernel = case_kernel(c);
    assert_non_null(kernel);
    for (; kernel; kernel = case_kernel_taking(kernel->otherwise, c)) check_kernel(kernel, c);
}

void case_check_and_free(Case *c)
{
    if (case_expect(c)) case_check(c);
    case_free(c);
}

/* ---- All of it, with each instruction set ---- */

int case_begin(void **state)
{
    (void)state;
    numbers_begin();
    return 0;
}

static int cpu_with_isa(const CaseTests *tests, CornuIsa isa)
{
    tested_kernels = cornu__cpu_kernels;
    tested_multiplier = (CornuMultiplier){ .bf16 = false };
    operands = results = CORNU_F32;
    return isa_run_group("cpu", isa, tests->cpu, tests->cpu_count);
}

static int tpu_with_isa(const CaseTests *tests, CornuIsa isa)
{
    static const struct { const char *name; CornuDtype operands, results; } kinds[] = {
        { "tpu f32", CORNU_F32, CORNU_F32 },
        { "tpu bf16 to f32", CORNU_BF16, CORNU_F32 },
        { "tpu bf16", CORNU_BF16, CORNU_BF16 },
    };
    int failed = 0;
    tested_kernels = NULL;
    tested_multiplier = (CornuMultiplier){ .bf16 = true };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const size_t count = kinds[i].results == CORNU_BF16 ? tests->tpu_count : tests->f32;
        operands = kinds[i].operands;
        results = kinds[i].results;
        if (count) failed += isa_run_group(kinds[i].name, isa, tests->tpu, count);
    }
    return failed;
}

int cases_run(const CaseTests *tests)
{
    int failed = 0;
    if (cornu__blis_open(MOST_THREADS) != CORNU_OK) return 1;
    for (int isa = 0; isa < CORNU_ISA_COUNT; isa++) {
        if (isa < CORNU_F32_ISA_COUNT) failed += cpu_with_isa(tests, (CornuIsa)isa);
        failed += tpu_with_isa(tests, (CornuIsa)isa);
    }
    return failed;
}
