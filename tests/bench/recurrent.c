/*
 * Times the fused recurrent kernels at the size of a layer of the Shakespeare network, on the cpu
 * device in f32 and on the tpu device in bf16, round by round: medians, and what part of the
 * multiply-add units' limit, measured among them, is reached. And the product that gives the
 * gradient by the recurrent kernel.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../device/cpu/blis.h"
#include "../../device/cpu/kernels.h"
#include "../../device/host/cpu.h"
#include "../../device/host/kernels.h"
#include "../../device/host/product.h"
#include "../../device/memory_internal.h"
#include "../../device/tpu/kernels.h"

enum { BATCH = 128, STEPS = 100, UNITS = 512, ROUNDS = 9, LIMIT_STEPS = 2000000, MOST_INPUTS = 6 };

/* What one device does: the limit of its products, then its kernels. */
typedef struct {
    const char        *name;
    const CornuKernel *kernel;    /* NULL: the limit */
    CornuOpCall        op;
    CornuAttributes    attributes;
    CornuType          in_type[MOST_INPUTS], out_type[CORNU_MAX_OUTPUTS];
    void              *in[MOST_INPUTS], *out[CORNU_MAX_OUTPUTS], *scratch;
    void              *packed;    /* of an operand, NULL if all are read as they stand */
    CornuMachine       machine;
    double             seconds[ROUNDS];
} Case;

enum { LIMIT, FORWARD, BACKWARD, WEIGHTS, CASES };

static CornuThreads *threads;

static void stop(const char *name)
{
    fprintf(stderr, "bench: %s: %s\n", name, cornu_error_message());
    exit(1);
}

static void *memory(const char *name, size_t bytes)
{
    void *made = cornu__allocate_aligned(bytes + 1);
    if (!made) stop(name);
    return made;
}

/* Small numbers, as gates, states and their gradients are. */
static void fill(CornuType type, void *to)
{
    for (int64_t i = 0; i < cornu_type_count(type); i++)
        cornu_array_set((CornuArray){ type, to }, i, (double)(i * 7919 % 1000) / 8000.0 - 0.06);
}

static void open_case(Case *c, const char *name, CornuOpId id, const CornuKernel *kernel,
                      CornuAttributes attributes, int in_count, const CornuType *in)
{
    *c = (Case){ .name = name, .kernel = kernel, .attributes = attributes };
    c->op = (CornuOpCall){ id, &c->attributes, in_count, c->in_type };
    memcpy(c->in_type, in, (size_t)in_count * sizeof *in);
    for (int i = 0; i < in_count; i++)
        fill(in[i], c->in[i] = memory(name, cornu_type_bytes(in[i])));
    if (cornu__op_type(&c->op, c->out_type) != CORNU_OK) stop(name);
    for (int i = 0; i < cornu_op_output_count(id); i++)
        c->out[i] = memory(name, cornu_type_bytes(c->out_type[i]));
    c->machine = (CornuMachine){ cornu__threads_count(threads), { in->dtype == CORNU_BF16, 0 } };
    const size_t packed = kernel->pack_bytes
                        ? kernel->pack_bytes(&c->op, c->out_type, &c->machine) : 0;
    if (packed) c->packed = memory(name, packed);
    if (kernel->scratch)
        c->scratch = memory(name, kernel->scratch(&c->op, c->out_type, &c->machine));
}

static void open_cases(Case *cases, CornuDtype dtype, const CornuKernel *matmul)
{
    const CornuType wide = cornu_type(dtype, BATCH, STEPS, 4 * UNITS);
    const CornuType h = cornu_type(dtype, BATCH, STEPS, UNITS);
    const CornuType h0 = cornu_type(dtype, BATCH, UNITS);
    const CornuType cells = cornu_type(CORNU_F32, BATCH, STEPS, UNITS);
    const CornuType c0 = cornu_type(CORNU_F32, BATCH, UNITS);
    const CornuType kernel = cornu_type(dtype, UNITS, 4 * UNITS);
    cases[LIMIT] = (Case){ .name = "multiply-adds in registers" };
    open_case(&cases[FORWARD], "lstm", CORNU_OP_LSTM, &cornu__host_recurrent,
              (CornuAttributes){ 0 }, 4, (CornuType[]){ wide, kernel, h0, c0 });
    open_case(&cases[BACKWARD], "lstm_grad", CORNU_OP_LSTM_GRAD, &cornu__host_recurrent_grad,
              (CornuAttributes){ 0 }, 6, (CornuType[]){ wide, cells, c0, kernel, h, c0 });
    open_case(&cases[WEIGHTS], "h' d_z", CORNU_OP_MATMUL, matmul,
              (CornuAttributes){ .matmul = { .transpose_a = 1, .dtype = CORNU_F32 } }, 2,
              (CornuType[]){ cornu_type(dtype, BATCH * STEPS, UNITS),
                             cornu_type(dtype, BATCH * STEPS, 4 * UNITS) });
}

static void close_case(const Case *c)
{
    for (int i = 0; i < c->op.in_count; i++) cornu__release(c->in[i]);
    for (int i = 0; i < CORNU_MAX_OUTPUTS; i++) cornu__release(c->out[i]);
    cornu__release(c->packed);
    cornu__release(c->scratch);
}

static void run_limit(void *context, int64_t block, int thread)
{
    (void)block, (void)thread;
    const CornuProducts *products = context;
    volatile float       ignored = products->limit(LIMIT_STEPS);
    (void)ignored;
}

static void run_case(const Case *c)
{
    static const CornuEpilogue none = { .activation = CORNU_OP_COUNT };
    const void                *in[MOST_INPUTS];
    memcpy(in, c->in, sizeof in);
    CornuKernelCall call = { .op = c->op, .out_type = c->out_type, .in = in, .out = c->out,
                             .epilogue = &none, .threads = threads, .scratch = c->scratch,
                             .multiplier = c->machine.multiplier };
    if (c->packed) {
        call.out = (void *const[]){ c->packed };
        c->kernel->pack(&call);
        call.out = c->out;
        in[c->kernel->packs] = c->packed;
    }
    if (c->kernel->run(&call)) stop(c->name);
}

static double time_case(const Case *c, const CornuProducts *products)
{
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    if (c->kernel)
        run_case(c);
    else
        cornu__threads_run(threads, cornu__threads_count(threads), run_limit,
                           (void *)(uintptr_t)products);
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double rate(const Case *c, const CornuProducts *products)
{
    double sorted[ROUNDS];
    memcpy(sorted, c->seconds, sizeof sorted);
    qsort(sorted, ROUNDS, sizeof *sorted, by_value);
    const double flops = c->kernel ? (double)cornu_op_flops(&c->op)
                                   : (double)LIMIT_STEPS * cornu__threads_count(threads) *
                                         products->limit_flops;
    return flops / sorted[ROUNDS / 2];
}

void bench_recurrent(void)
{
    static Case          cases[2][CASES];
    const CornuProducts *products[2] = { cornu__products(), cornu__products_of_bf16() };
    const char *const    names[2] = { "f32", "bf16" };
    const int            count = cornu__cpu_threads();
    if (cornu__blis_open(count) != CORNU_OK || !(threads = cornu__threads_create(count)))
        stop("start");
    open_cases(cases[0], CORNU_F32, &cornu__cpu_matmul);
    open_cases(cases[1], CORNU_BF16, &cornu__tpu_matmul);
    for (int round = -1; round < ROUNDS; round++)
        for (int i = 0; i < CASES; i++)
            for (int k = 0; k < 2; k++) {
                const double seconds = time_case(&cases[k][i], products[k]);
                if (round >= 0) cases[k][i].seconds[round] = seconds;
            }
    printf("batch %d, %d steps, %d units\n", BATCH, STEPS, UNITS);
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < CASES; i++) {
            const Case  *c = &cases[k][i];
            const double of_case = rate(c, products[k]);
            printf("%-5s %-30s %9.2f ms %9.1f GFLOP/s %6.1f%%\n", names[k], c->name,
                   c->kernel ? 1e3 * (double)cornu_op_flops(&c->op) / of_case : 0.0, of_case / 1e9,
                   100.0 * of_case / rate(&cases[k][LIMIT], products[k]));
            close_case(c);
        }
    cornu__threads_free(threads);
    cornu__blis_close(count);
}
