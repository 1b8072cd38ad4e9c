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
#include "../../../quick.h"
#include "../../isas.h"
#include "kernel_case.h"
#include "../../numbers.h"

CornuKernels *tested_kernels;
CornuMultiplier           tested_multiplier;
CornuDtype                operands, results;

double random_value(void) { return (double)random_bits() / (1 << 23) - 1.0; }

int64_t one_of(const int64_t *from, int count) { return from[between(0, count - 1)]; }

CornuOpId random_activation(int last)
{
    static const CornuOpId activations[] = { CORNU_OP_COUNT, CORNU_OP_RELU, CORNU_OP_ELU,
                                             CORNU_OP_TANH, CORNU_OP_SIGMOID,
                                             CORNU_OP_BOUNDED_RELU };
    return activations[between(0, last)];
}

CornuAttributes activation_attributes(CornuOpId id)
{
    if (id == CORNU_OP_BOUNDED_RELU) return (CornuAttributes){ .bound = { 0.5 } };
    return (CornuAttributes){ .alpha = { 0.7 } };
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

int case_rounds(int count)
{
    const int all = tested_kernels == cornu__cpu_kernels ? count : count / 4;
    return quick((all + 5) / 6, all);
}

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
    const CornuArray operand = case_operand(c, i);
    const int64_t    count = cornu_dtype_is_float(type.dtype) ? cornu_type_count(type) : 0;
    for (int64_t k = 0; k < count; k++) cornu_array_set(operand, k, random_value());
}

void case_free(Case *c)
{
    for (int i = 0; i < c->in_count; i++) cornu__release(c->in[i]);
    for (int i = 0; i < cornu_op_output_count(c->id); i++) free(c->expected[i]);
}

/* ---- Results of the reference, which the instruction sets share ---- */

typedef struct {
    uint64_t key;        /* 0: free */
    double  *out[CORNU_MAX_OUTPUTS];
} Known;

enum { MOST_KNOWN = 1 << 14 };
static Known known[MOST_KNOWN];

/* FNV-1a, of 8 bytes at a time where there are as many. */
static uint64_t hash_bytes(uint64_t hash, const void *from, size_t bytes)
{
    const unsigned char *at = from;
    for (; bytes >= 8; at += 8, bytes -= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        hash = (hash ^ word) * 0x100000001b3u;
        hash ^= hash >> 29;
    }
    for (; bytes > 0; at++, bytes--) hash = (hash ^ *at) * 0x100000001b3u;
    return hash;
}

/* Of all that the reference's result depends on; the attributes of these ops have no pointers. */
static uint64_t case_key(const Case *c)
{
    uint64_t hash = hash_bytes(0xcbf29ce484222325u, &c->id, sizeof c->id);
    hash = hash_bytes(hash, &c->attributes, sizeof c->attributes);
    for (int i = 0; i < c->in_count; i++) {
        const CornuType *type = &c->in_type[i];
        hash = hash_bytes(hash, &type->dtype, sizeof type->dtype);
        hash = hash_bytes(hash, type->shape.extent,
                          (size_t)type->shape.rank * sizeof *type->shape.extent);
        hash = hash_bytes(hash, c->in[i], cornu_type_bytes(*type));
    }
    return hash ? hash : 1;
}

static Known *known_of(uint64_t key)
{
    for (uint64_t i = 0; i < MOST_KNOWN; i++) {
        Known *at = &known[(key + i) % MOST_KNOWN];
        if (at->key == key || at->key == 0) return at;
    }
    fail_msg("more than %d cases", MOST_KNOWN);
    return NULL;
}

/* Fills in the table what the reference computes, in double. */
static void compute_known(const Case *c, Known *into)
{
    const CornuOpCall op = case_op(c);
    double           *in[MOST_INPUTS];
    for (int i = 0; i < c->in_count; i++) {
        const CornuArray operand = case_operand(c, i);
        const int64_t    count = cornu_type_count(c->in_type[i]);
        in[i] = malloc((size_t)(count + 1) * sizeof *in[i]);
        for (int64_t k = 0; k < count; k++) in[i][k] = cornu_array_get(operand, k);
    }
    for (int i = 0; i < cornu_op_output_count(c->id); i++)
        into->out[i] = calloc((size_t)cornu_type_count(c->out_type[i]) + 1, sizeof(double));
    const CornuReferenceCall call = { op, (const double *const *)in, into->out, c->out_type,
                                      cornu_type_count(c->out_type[0]) };
    assert_int_equal(cornu__op_reference(&call), CORNU_OK);
    for (int i = 0; i < c->in_count; i++) free(in[i]);
}

bool case_expect(Case *c)
{
    const CornuOpCall op = case_op(c);
    if (cornu__op_type(&op, c->out_type) != CORNU_OK) return false;
    const uint64_t key = case_key(c);
    Known         *at = known_of(key);
    if (at->key == 0) {
        compute_known(c, at);
        at->key = key;
    }
    for (int i = 0; i < cornu_op_output_count(c->id); i++) {
        const size_t bytes = (size_t)(cornu_type_count(c->out_type[i]) + 1) * sizeof(double);
        c->expected[i] = malloc(bytes);
        memcpy(c->expected[i], at->out[i], bytes);
    }
    return true;
}

static void forget_known(void)
{
    for (int at = 0; at < MOST_KNOWN; at++) {
        for (int i = 0; i < CORNU_MAX_OUTPUTS; i++) free(known[at].out[i]);
        known[at] = (Known){ 0 };
    }
}

static double activated(const CornuEpilogue *epilogue, double x)
{
    switch (epilogue->activation) {
    case CORNU_OP_RELU:    return x <= 0.0 ? 0.0 : x;
    case CORNU_OP_TANH:    return tanh(x);
    case CORNU_OP_SIGMOID: return 1.0 / (1.0 + exp(-x));
    case CORNU_OP_BOUNDED_RELU:
        return x <= 0.0 ? 0.0 : fmin(x, epilogue->attributes.bound.bound);
    case CORNU_OP_ELU:     return x > 0.0 ? x : epilogue->attributes.alpha.alpha * expm1(x);
    default:               return x;
    }
}

/* What is done by columns and elements after the bias, of f32. */
static double finished(const CornuEpilogue *e, int64_t element, int64_t column, double y)
{
    if (e->scale) y *= (double)e->scale[column];
    if (e->shift) y += (double)e->shift[column];
    if (e->term) y += (double)e->term[element];
    return e->slope && y < 0.0 ? y * (double)e->slope[column] : y;
}

void case_expect_epilogue(Case *c)
{
    const int64_t    columns = c->out_type[0].shape.extent[c->out_type[0].shape.rank - 1];
    const int64_t    count = cornu_type_count(c->out_type[0]);
    const CornuArray biases = { c->out_type[0], (void *)(uintptr_t)c->epilogue.bias };
    for (int64_t k = 0; k < count; k++) {
        const double bias = c->epilogue.bias ? cornu_array_get(biases, k % columns) : 0.0;
        const double sum = c->expected[0][k] + bias;
        const double y = finished(&c->epilogue, k, k % columns, sum);
        c->sum = fmax(c->sum, fmax(fabs(sum), fabs(y)));
        c->expected[0][k] = activated(&c->epilogue, y);
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
    const CornuQuery   q = { &call.op, call.out_type, { threads, tested_multiplier, 1 },
                               call.pool, 0 };
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
    if (kernel->declines) assert_null(kernel->declines(&q).needs);
    /* A kernel that may pack it itself does so on several threads: the bits are those of one. */
    const bool itself = threads > 1 && kernel->packs_itself && kernel->packs_itself(&q);
    if (kernel->pack_bytes && !itself && (bytes = kernel->pack_bytes(&q))) {
        CornuKernelCall pack = call;
        packed = unset_memory(bytes);
        own[kernel->packs] = operand[packs];
        pack.in = own;
        pack.out = &packed;
        kernel->pack(&pack);
        operand[packs] = packed;
        call.packed = true;
    }
    bytes = kernel->scratch ? kernel->scratch(&q) : 0;
    call.scratch = unset_memory(bytes);
    CornuStatus status = kernel->run(&call);
    cornu__release(call.scratch);
    cornu__release(packed);
    cornu__threads_free(call.threads);
    return status;
}

bool case_accepts(const CornuKernel *kernel, const Case *c, const Case *pool)
{
    const CornuOpCall  call = case_op(c), joined = pool ? case_op(pool) : call;
    const CornuQuery   q = { &call, c->out_type, { 1, tested_multiplier, 1 },
                             pool ? &joined : NULL, 0 };
    const CornuKernel *const *last = cornu__host_kernels[c->id];
    while (last[1]) last++;
    return !cornu__kernel_declines(kernel, *last, &q).needs;
}

/* The first after `last`, or of all if that is NULL, in the order of the tables. */
static const CornuKernel *first_after(const CornuKernel *last, const Case *c, const Case *pool)
{
    CornuKernels *tables[] = { tested_kernels, cornu__host_kernels };
    bool          asked = !last;
    for (int t = 0; t < 2; t++)
        for (int i = 0; tables[t] && tables[t][c->id][i]; i++) {
            const CornuKernel *kernel = tables[t][c->id][i];
            if (asked && case_accepts(kernel, c, pool)) return kernel;
            asked = asked || kernel == last;
        }
    return NULL;
}

const CornuKernel *case_kernel(const Case *c) { return first_after(NULL, c, NULL); }

const CornuKernel *case_kernel_after(const CornuKernel *kernel, const Case *c)
{
    return first_after(kernel, c, NULL);
}

const CornuKernel *case_pooled(const Case *c, const Case *pool)
{
    return first_after(NULL, c, pool);
}

const CornuKernel *case_pooled_after(const CornuKernel *kernel, const Case *c, const Case *pool)
{
    return first_after(kernel, c, pool);
}

bool case_makes_fewer_products(const CornuKernel *kernel)
{
    return kernel == &cornu__host_conv2d_winograd ||
           kernel == &cornu__host_conv2d_grad_input_winograd ||
           kernel == &cornu__host_conv2d_grad_filter_winograd;
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
    const CornuArray array = cornu_array_from((void *)(uintptr_t)got, c->out_type[i]);
    const int64_t    count = cornu_type_count(c->out_type[i]);
    double           largest = c->sum, worst = 0.0;
    int64_t          where = 0;
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

/* Rounding errors of fewer products are up to so many times those of the sum (isa/winograd.c). */
enum { ERRORS = 3 };

/* Whether a kernel agrees with the expected result, and with itself for any number of threads. */
static void check_kernel(const CornuKernel *kernel, const Case *c)
{
    void *first[CORNU_MAX_OUTPUTS];
    Case  compared = *c;
    if (case_makes_fewer_products(kernel)) compared.terms *= ERRORS * ERRORS;
    assert_int_equal(case_run_with(kernel, c, 1, first), CORNU_OK);
    for (int i = 0; i < cornu_op_output_count(c->id); i++) case_compare(&compared, i, first[i]);
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
    for (; kernel; kernel = case_kernel_after(kernel, c)) check_kernel(kernel, c);
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

/* With each instruction set up to `last`, or if quick with the best of them; how many failed. */
static int run_kind(const char *name, CornuIsa last, const struct CMUnitTest *tests, size_t count)
{
    const int most = isa_present(last) ? (int)last : (int)cornu__cpu()->best;
    int       failed = 0;
    for (int isa = quick(most, 0); isa <= quick(most, (int)last) && count > 0; isa++)
        failed += isa_run_group(name, (CornuIsa)isa, tests, count);
    forget_known();
    return failed;
}

int cases_run(const CaseTests *tests)
{
    static const struct { const char *name; CornuDtype operands, results; } kinds[] = {
        { "tpu f32", CORNU_F32, CORNU_F32 },
        { "tpu bf16 to f32", CORNU_BF16, CORNU_F32 },
        { "tpu bf16", CORNU_BF16, CORNU_BF16 },
    };
    if (cornu__blis_open(MOST_THREADS) != CORNU_OK) return 1;
    tested_kernels = cornu__cpu_kernels;
    tested_multiplier = (CornuMultiplier){ .bf16 = false };
    operands = results = CORNU_F32;
    int failed = run_kind("cpu", CORNU_F32_ISA_COUNT - 1, tests->cpu, tests->cpu_count);
    tested_kernels = NULL;
    tested_multiplier = (CornuMultiplier){ .bf16 = true };
    for (size_t i = (size_t)quick(2, 0); i < sizeof kinds / sizeof *kinds; i++) {
        operands = kinds[i].operands;
        results = kinds[i].results;
        failed += run_kind(kinds[i].name, CORNU_ISA_COUNT - 1, tests->tpu,
                           results == CORNU_BF16 ? tests->tpu_count : tests->f32);
    }
    return failed;
}
