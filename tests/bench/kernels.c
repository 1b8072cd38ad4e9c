/*
 * Times the kernels at the shapes of the MNIST networks, batch 128, and of convolutions of the
 * Fashion MNIST network, batch 16, which is a shard's: medians of interleaved
 * rounds, and what part of the multiply-add units' limit, measured among them, is reached; for
 * kernels that only move data the bytes read and written per second. Products are timed on the cpu
 * device in f32 and on the tpu device in bf16, round by round, and compared; packing is part of
 * the time, though a training step packs its weights but once for all shards.
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

enum { MOST_CASES = 128, ROUNDS = 41, LIMIT_STEPS = 20000 };

typedef struct {
    const char        *name;
    const CornuKernel *kernel;      /* NULL: the limit */
    CornuOpCall        op;
    CornuAttributes    attributes;
    CornuType          in_type[6], out_type[CORNU_MAX_OUTPUTS];
    void              *in[6], *out[CORNU_MAX_OUTPUTS], *scratch;
    void              *packed;         /* of an operand, NULL if all are read as they stand */
    CornuMachine       machine;
    const void        *joined_in[3];   /* with a pool: what the kernel reads */
    CornuOpCall        pool;
    CornuEpilogue      epilogue;
    double             seconds[ROUNDS];
    int                twin;           /* the same in bf16, 0: none */
    bool               borrows;        /* all but scratch from other cases */
} Case;

static Case          cases[MOST_CASES];
static int           case_count;
static CornuThreads *threads;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

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

static void *random_array(const char *name, CornuType type)
{
    void *made = memory(name, cornu_type_bytes(type));
    for (int64_t k = 0; k < cornu_type_count(type); k++)
        if (type.dtype == CORNU_U8) ((uint8_t *)made)[k] = (uint8_t)(rand() % 4);
        else if (type.dtype == CORNU_BF16)
            ((uint16_t *)made)[k] = cornu_bf16_from_float((float)rand() / (float)RAND_MAX);
        else if (type.dtype == CORNU_I64) ((int64_t *)made)[k] = 128;
        else ((float *)made)[k] = (float)rand() / (float)RAND_MAX;
    return made;
}

/* What the kernel wants to be made for it. */
static void prepare(Case *c)
{
    const CornuKernel *kernel = c->kernel;
    const size_t       packed = kernel->pack_bytes
                              ? kernel->pack_bytes(&c->op, c->out_type, &c->machine) : 0;
    c->packed = packed ? memory(c->name, packed) : NULL;
    if (kernel->scratch)
        c->scratch = memory(c->name, kernel->scratch(&c->op, c->out_type, &c->machine));
}

static void add_case(const char *name, CornuOpId id, const CornuKernel *kernel,
                     CornuAttributes attributes, CornuOpId activation, int in_count,
                     const CornuType *in)
{
    Case *c = &cases[case_count++];
    c->name = name;
    c->kernel = kernel;
    c->attributes = attributes;
    c->epilogue.activation = activation;
    c->op = (CornuOpCall){ id, &c->attributes, in_count, c->in_type };
    memcpy(c->in_type, in, (size_t)in_count * sizeof *in);
    c->machine = (CornuMachine){ cornu__threads_count(threads), { in->dtype == CORNU_BF16, 0 } };
    for (int i = 0; i < in_count; i++) c->in[i] = random_array(name, in[i]);
    if (cornu__op_type(&c->op, c->out_type) != CORNU_OK) stop(name);
    for (int i = 0; i < cornu_op_output_count(id); i++)
        c->out[i] = memory(name, cornu_type_bytes(c->out_type[i]));
    prepare(c);
    if (activation == CORNU_OP_RELU)
        c->epilogue.bias = memory(name, 4 * (size_t)c->out_type[0].shape.extent[
                                            c->out_type[0].shape.rank - 1]);
}

static void free_case(const Case *c)
{
    cornu__release(c->scratch);
    cornu__release(c->packed);
    if (c->borrows) return;
    for (int i = 0; i < c->op.in_count; i++) cornu__release(c->in[i]);
    for (int i = 0; i < cornu_op_output_count(c->op.id); i++) cornu__release(c->out[i]);
    if (c->joined_in[0]) cornu__release(c->out[1]);   /* the pool's indices, or its d_y */
    cornu__release((void *)(uintptr_t)c->epilogue.bias);
}

static void add_convolution(const char *const names[3], CornuShape x, CornuShape filter,
                            int64_t low, int64_t high, bool first)
{
    CornuAttributes forward = { .conv2d = { .low = { low, low }, .high = { high, high } } };
    CornuAttributes grad = { .conv2d_grad = { .low = { low, low }, .high = { high, high },
                                              .extents = { x.extent[1], x.extent[2] } } };
    CornuType x_type = cornu_type_from(CORNU_F32, x), f_type = cornu_type_from(CORNU_F32, filter);
    add_case(names[0], CORNU_OP_CONV2D, &cornu__host_conv2d, forward, CORNU_OP_RELU, 2,
             (CornuType[]){ x_type, f_type });
    CornuType y_type = cases[case_count - 1].out_type[0];
    if (!first)
        add_case(names[1], CORNU_OP_CONV2D_GRAD_INPUT, &cornu__host_conv2d_grad_input, grad,
                 CORNU_OP_COUNT, 2, (CornuType[]){ y_type, f_type });
    grad.conv2d_grad.extents[0] = filter.extent[0];
    grad.conv2d_grad.extents[1] = filter.extent[1];
    add_case(names[2], CORNU_OP_CONV2D_GRAD_FILTER, &cornu__host_conv2d_grad_filter, grad,
             CORNU_OP_COUNT, 2, (CornuType[]){ x_type, y_type });
}

static void add_pool(const char *const names[2], CornuShape x)
{
    CornuAttributes window = { .window = { .size = { 2, 2 }, .strides = { 2, 2 } } };
    CornuAttributes grad = { .window_grad = { .size = { 2, 2 }, .strides = { 2, 2 },
                                              .extents = { x.extent[1], x.extent[2] } } };
    add_case(names[0], CORNU_OP_MAX_POOL2D, &cornu__host_max_pool2d, window, CORNU_OP_COUNT, 1,
             (CornuType[]){ cornu_type_from(CORNU_F32, x) });
    const Case *y = &cases[case_count - 1];
    add_case(names[1], CORNU_OP_MAX_POOL2D_GRAD, &cornu__host_max_pool2d_grad, grad,
             CORNU_OP_COUNT, 2, (CornuType[]){ y->out_type[0], y->out_type[1] });
}

/* The two kernels that join convolution `conv` or `filter` with the pool cases behind it. */
static void add_pooled(const char *const names[2], const Case *conv, const Case *filter,
                       const Case *pool, const Case *pool_grad)
{
    for (int i = 0; i < 2; i++) {
        Case *c = &cases[case_count++];
        *c = i ? *filter : *conv;
        c->name = names[i];
        c->kernel = i ? &cornu__host_conv2d_grad_filter_pooled : &cornu__host_conv2d_pooled;
        c->pool = (i ? pool_grad : pool)->op;
        c->borrows = true;
        c->joined_in[0] = c->in[0];
        c->joined_in[1] = i ? pool_grad->in[0] : c->in[1];
        c->joined_in[2] = i ? pool_grad->in[1] : NULL;
        if (!i) memcpy(c->out, pool->out, sizeof c->out);
        prepare(c);
    }
}

static void add_dense(const char *const names[3], int64_t rows, int64_t inputs, int64_t units)
{
    CornuType x = cornu_type(CORNU_F32, rows, inputs), w = cornu_type(CORNU_F32, inputs, units);
    CornuType y = cornu_type(CORNU_F32, rows, units);
    add_case(names[0], CORNU_OP_MATMUL, &cornu__cpu_matmul, (CornuAttributes){ 0 },
             CORNU_OP_RELU, 2, (CornuType[]){ x, w });
    add_case(names[1], CORNU_OP_MATMUL, &cornu__cpu_matmul,
             (CornuAttributes){ .matmul.transpose_b = 1 }, CORNU_OP_COUNT, 2,
             (CornuType[]){ y, w });
    add_case(names[2], CORNU_OP_MATMUL, &cornu__cpu_matmul,
             (CornuAttributes){ .matmul.transpose_a = 1 }, CORNU_OP_COUNT, 2,
             (CornuType[]){ x, y });
}

static void add_batch_norm(const char *const names[2], CornuShape x)
{
    CornuType type = cornu_type_from(CORNU_F32, x), c = cornu_type(CORNU_F32, x.extent[3]);
    CornuType count = cornu_scalar(CORNU_I64);
    add_case(names[0], CORNU_OP_BATCH_NORM, &cornu__host_batch_norm, (CornuAttributes){ 0 },
             CORNU_OP_COUNT, 4, (CornuType[]){ type, c, c, count });
    add_case(names[1], CORNU_OP_BATCH_NORM_GRAD, &cornu__host_batch_norm_grad,
             (CornuAttributes){ 0 }, CORNU_OP_COUNT, 6,
             (CornuType[]){ type, c, c, c, type, count });
}

/* ---- The same in bf16 ---- */

static const CornuKernel *tpu_kernel(const Case *c)
{
    switch (c->op.id) {
    case CORNU_OP_MATMUL:            return &cornu__tpu_matmul;
    case CORNU_OP_CONV2D:            return c->joined_in[0] ? &cornu__host_conv2d_pooled
                                                            : &cornu__host_conv2d;
    case CORNU_OP_CONV2D_GRAD_INPUT: return &cornu__host_conv2d_grad_input;
    case CORNU_OP_CONV2D_GRAD_FILTER:
        return c->joined_in[0] ? &cornu__host_conv2d_grad_filter_pooled
                               : &cornu__host_conv2d_grad_filter;
    default:                         return NULL;
    }
}

/* Results are bf16 but for the gradients of weights. */
static CornuAttributes narrowed(const Case *c)
{
    CornuAttributes a = c->attributes;
    if (c->op.id == CORNU_OP_MATMUL)
        a.matmul.dtype = a.matmul.transpose_a ? CORNU_F32 : CORNU_BF16;
    if (c->op.id == CORNU_OP_CONV2D) a.conv2d.dtype = CORNU_BF16;
    if (c->op.id == CORNU_OP_CONV2D_GRAD_INPUT) a.conv2d_grad.dtype = CORNU_BF16;
    return a;
}

static void add_twin(int index)
{
    const Case        *c = &cases[index];
    const CornuKernel *kernel = tpu_kernel(c);
    CornuType          in[2];
    if (!kernel) return;
    for (int i = 0; i < 2; i++) in[i] = cornu_type_from(CORNU_BF16, c->in_type[i].shape);
    add_case(c->name, c->op.id, kernel, narrowed(c), c->epilogue.activation, 2, in);
    cases[index].twin = case_count - 1;
    if (!c->joined_in[0]) return;
    Case *twin = &cases[case_count - 1];
    memcpy(twin->joined_in, twin->in, sizeof twin->joined_in);
    twin->pool = c->pool;
    if (c->op.id == CORNU_OP_CONV2D) {
        twin->out[1] = memory(c->name, cornu_type_bytes(twin->out_type[0]));
    } else {
        twin->joined_in[1] = twin->out[1] =
            random_array(c->name, cornu_type_from(CORNU_BF16, c->pool.in[0].shape));
        twin->joined_in[2] = c->joined_in[2];
    }
}

static void limit_block(void *context, int64_t block, int thread)
{
    (void)block, (void)thread;
    static volatile float sink;
    sink = ((const CornuProducts *)context)->limit(LIMIT_STEPS);
    (void)sink;
}

/* Whose limit case 0 and its twin measure. */
static const CornuProducts *limited(const Case *c)
{
    return c == &cases[0] ? cornu__products() : cornu__products_of_bf16();
}

static double time_case(const Case *c)
{
    double start = now();
    if (!c->kernel) {
        cornu__threads_run(threads, cornu__threads_count(threads), limit_block,
                           (void *)(uintptr_t)limited(c));
        return now() - start;
    }
    const void     *in[6];
    CornuKernelCall call = { .op = c->op, .out_type = c->out_type, .in = in,
                             .out = (void *const *)c->out, .epilogue = &c->epilogue,
                             .threads = threads, .multiplier = c->machine.multiplier,
                             .scratch = c->scratch };
    memcpy(in, c->in, sizeof in);
    if (c->joined_in[0]) {
        memcpy(in, c->joined_in, sizeof c->joined_in);
        call.pool = &c->pool;
    }
    if (c->packed) {
        CornuKernelCall pack = call;
        pack.out = (void *[]){ c->packed };
        c->kernel->pack(&pack);
        in[c->kernel->packs] = c->packed;
    }
    if (c->kernel->run(&call) != CORNU_OK) stop(c->name);
    return now() - start;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double bytes_of(const Case *c)
{
    double bytes = 0.0;
    for (int i = 0; i < c->op.in_count; i++) bytes += (double)cornu_type_bytes(c->in_type[i]);
    for (int i = 0; i < cornu_op_output_count(c->op.id); i++)
        bytes += (double)cornu_type_bytes(c->out_type[i]);
    return bytes;
}

static double flops_of(const Case *c, int count)
{
    if (c->kernel) return (double)cornu_op_flops(&c->op);
    return (double)LIMIT_STEPS * count * limited(c)->limit_flops;
}

static double median(const double seconds[ROUNDS])
{
    double sorted[ROUNDS];
    memcpy(sorted, seconds, sizeof sorted);
    qsort(sorted, ROUNDS, sizeof *sorted, by_value);
    return sorted[ROUNDS / 2];
}

static bool is_twin(int index)
{
    for (int i = 1; i < index; i++)
        if (cases[i].twin == index) return true;
    return false;
}

void bench_kernels(void)
{
    const int count = cornu__cpu_threads();
    if (cornu__blis_open(count) != CORNU_OK || !(threads = cornu__threads_create(count)))
        stop("start");
    case_count = 1;
    cases[0].name = "multiply-adds in registers";

#define CONVOLUTION(name) \
    (const char *[]){ "conv2d " name, "conv2d_grad_input " name, "conv2d_grad_filter " name }
#define POOL(name)  (const char *[]){ "max_pool2d " name, "max_pool2d_grad " name }
#define JOINED(name) \
    (const char *[]){ "conv2d + max_pool2d " name, "conv2d_grad_filter + pool " name }
#define DENSE(name) (const char *[]){ "matmul " name, "matmul B' " name, "matmul A' " name }
#define NORM(name)  (const char *[]){ "batch_norm " name, "batch_norm_grad " name }
    add_convolution(CONVOLUTION("28x28x1 > 26x26x32"), cornu_shape(128, 28, 28, 1),
                    cornu_shape(3, 3, 1, 32), 0, 0, true);
    add_pool(POOL("26x26x32"), cornu_shape(128, 26, 26, 32));
    add_pooled(JOINED("28x28x1 > 13x13x32"), &cases[1], &cases[2], &cases[3], &cases[4]);
    add_convolution(CONVOLUTION("13x13x32 > 10x10x64"), cornu_shape(128, 13, 13, 32),
                    cornu_shape(3, 3, 32, 64), 0, -1, false);
    add_pool(POOL("10x10x64"), cornu_shape(128, 10, 10, 64));
    add_pooled(JOINED("13x13x32 > 5x5x64"), &cases[7], &cases[9], &cases[10], &cases[11]);
    add_convolution(CONVOLUTION("5x5x64 > 3x3x64"), cornu_shape(128, 5, 5, 64),
                    cornu_shape(3, 3, 64, 64), 0, 0, false);
    add_convolution(CONVOLUTION("14x14x64 > 14x14x128 16"), cornu_shape(16, 14, 14, 64),
                    cornu_shape(5, 5, 64, 128), 2, 2, false);
    add_convolution(CONVOLUTION("7x7x128 > 6x6x256 16"), cornu_shape(16, 7, 7, 128),
                    cornu_shape(5, 5, 128, 256), 2, 1, false);
    add_dense(DENSE("576 > 64"), 128, 576, 64);
    add_dense(DENSE("64 > 10"), 128, 64, 10);
    add_dense(DENSE("1600 > 10"), 128, 1600, 10);
    add_batch_norm(NORM("28x28x12"), cornu_shape(128, 28, 28, 12));
    add_case("softmax 10", CORNU_OP_SOFTMAX, &cornu__host_softmax, (CornuAttributes){ 0 },
             CORNU_OP_COUNT, 1, (CornuType[]){ cornu_type(CORNU_F32, 128, 10) });

    for (int i = 1, end = case_count; i < end; i++) add_twin(i);
    cases[0].twin = case_count++;

    for (int round = -1; round < ROUNDS; round++)
        for (int i = 0; i < cases[0].twin; i++) {
            if (i > 0 && is_twin(i)) continue;
            for (int k = i; ; k = cases[i].twin) {
                const double seconds = time_case(&cases[k]);
                if (round >= 0) cases[k].seconds[round] = seconds;
                if (k != i || !cases[i].twin) break;
            }
        }

    double limit[2];
    for (int twin = 0; twin < 2; twin++) {
        const Case *c = &cases[twin ? cases[0].twin : 0];
        limit[twin] = flops_of(c, count) / median(c->seconds);
    }
    printf("%-40s %9s %9s %9s %7s | %9s %9s %7s %7s\n", "", "us", "GB/s", "GFLOP/s", "limit",
           "bf16 us", "GFLOP/s", "limit", "ratio");
    for (int i = 0; i < cases[0].twin; i++) {
        const Case *c = &cases[i], *twin = c->twin ? &cases[c->twin] : NULL;
        if (i > 0 && is_twin(i)) continue;
        const double seconds = median(c->seconds), rate = flops_of(c, count) / seconds;
        printf("%-40s %9.1f %9.1f %9.1f %6.1f%%", c->name, seconds * 1e6,
               c->kernel ? bytes_of(c) / seconds / 1e9 : 0.0, rate / 1e9, 100.0 * rate / limit[0]);
        if (twin) {
            double ratios[ROUNDS];
            for (int k = 0; k < ROUNDS; k++) ratios[k] = c->seconds[k] / twin->seconds[k];
            const double narrow = median(twin->seconds);
            const double narrow_rate = flops_of(twin, count) / narrow;
            printf(" | %9.1f %9.1f %6.1f%% %7.2f", narrow * 1e6, narrow_rate / 1e9,
                   100.0 * narrow_rate / limit[1], median(ratios));
        }
        printf("\n");
    }
    for (int i = 1; i < cases[0].twin; i++) free_case(&cases[i]);
    cornu__threads_free(threads);
    cornu__blis_close(count);
}
