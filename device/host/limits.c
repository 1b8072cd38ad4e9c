#include "limits.h"

#include <time.h>

#include "../memory_internal.h"
#include "cpu.h"
#include "product.h"
#include "threads.h"
#include "vector.h"

/* Turns are at least half of TURN_S long, and TURNS of them make the promised time. They are short
 * so that on a busy machine some are not interrupted. A read is of RUN floats, what one sum takes
 * at most; a thread has FIRST_STEPS runs or steps to begin with. */
enum { TURNS = 50, RUN = 1 << 14, FIRST_STEPS = 1 << 4, MIB = 1 << 20 };
static const double TURN_S = 0.001;

typedef struct {
    CornuThreads        *threads;
    const CornuProducts *products;   /* NULL: reads */
    const CornuVectors  *vectors;
    const float         *memory;
    int64_t              runs;       /* RUN floats each, in memory */
    int64_t              first;      /* the run to begin with: reads go round and round */
    int64_t              steps;      /* of each thread */
    double               best;       /* per second */
    volatile float       sink[64];   /* results, so that they are computed */
} Limit;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void work(void *context, int64_t block, int thread)
{
    Limit *limit = context;
    float  sum = 0.0f;
    (void)thread;
    if (limit->products) sum = limit->products->limit(limit->steps);
    else
        for (int64_t i = 0; i < limit->steps; i++) {
            const int64_t run = (limit->first + block * limit->steps + i) % limit->runs;
            sum += limit->vectors->sum_run(limit->memory + run * RUN, RUN);
        }
    limit->sink[block % 64] = sum;
}

/* Seconds that all threads take for `steps` each. */
static double run(Limit *limit)
{
    const int    threads = cornu__threads_count(limit->threads);
    const double begin = now();
    cornu__threads_run(limit->threads, threads, work, limit);
    const double seconds = now() - begin;
    limit->first += threads * limit->steps;
    return seconds;
}

static void take_turn(Limit *limit)
{
    double seconds = run(limit);
    while (seconds < TURN_S / 2) {
        limit->steps *= 2;
        seconds = run(limit);
    }
    const double each = limit->products ? limit->products->limit_flops
                                        : RUN * (int)sizeof(float);
    const double rate = each * (double)limit->steps *
                        (double)cornu__threads_count(limit->threads) / seconds;
    if (rate > limit->best) limit->best = rate;
}

CornuStatus cornu_cpu_limits(int threads, CornuCpuLimits *limits)
{
    CornuIsa isa;
    CORNU__TRY(cornu__cpu_isa(&isa));
    int64_t bytes = 2 * cornu__cpu()->l3;
    if (bytes < 64 * MIB) bytes = 64 * MIB;
    if (bytes > 256 * MIB) bytes = 256 * MIB;
    CornuThreads *pool = cornu__threads_create(threads ? threads : cornu__cpu_threads());
    if (!pool) return cornu_error_take();
    float *memory = cornu__allocate_aligned((size_t)bytes);
    if (memory) {
        const int64_t runs = bytes / (RUN * (int64_t)sizeof(float));
        Limit each[] = {
            { .threads = pool, .steps = FIRST_STEPS, .products = cornu__products() },
            { .threads = pool, .steps = FIRST_STEPS, .products = cornu__products_of_bf16() },
            { .threads = pool, .steps = FIRST_STEPS, .vectors = cornu__vectors(),
              .memory = memory, .runs = runs },
        };
        for (int turn = 0; turn < TURNS; turn++)
            for (int i = 0; i < 3; i++) take_turn(&each[i]);
        *limits = (CornuCpuLimits){
            .threads = cornu__threads_count(pool), .f32_flops = each[0].best,
            .bf16_flops = each[1].best, .read_bytes = each[2].best,
            .bf16_instructions = cornu__products_of_bf16()->depth == 2,
        };
    }
    cornu__release(memory);
    cornu__threads_free(pool);
    return memory ? CORNU_OK : CORNU_ERR_MEMORY;
}
