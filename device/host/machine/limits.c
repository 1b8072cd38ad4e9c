#include "limits.h"

#include <string.h>

#include "../../memory_internal.h"
#include "../isa/product.h"
#include "cpu.h"
#include "threads.h"
#include "vector.h"
#include "../../system/clock_internal.h"

/* A turn takes at least half of TURN_S, and TURNS of them the promised time. They are short so that
 * on a busy machine some are not interrupted. A read is of at most LONGEST_RUN floats; a thread
 * starts with FIRST_STEPS runs or steps. */
enum { TURNS = 50, LONGEST_RUN = 1 << 14, READ_STEP = 128, FIRST_STEPS = 1 << 4, MIB = 1 << 20 };
static const double TURN_S = 0.001;

typedef enum { MULTIPLY, READ, COPY } Kind;

typedef struct {
    Kind                 kind;
    CornuThreads        *threads;
    const CornuProducts *products;   /* to multiply with */
    char                *memory;
    size_t               run;        /* bytes that a step reads or copies */
    int64_t              runs;       /* of each thread, adjacent */
    int64_t              first;      /* the run that the next turn starts with */
    int64_t              steps;      /* of each thread */
    double               best;       /* per second */
    volatile float       sink[64];   /* results, so that they are computed */
} Limit;

static void work(void *context, int64_t block, int thread)
{
    Limit              *limit = context;
    const CornuVectors *vectors = cornu__vectors();
    float               result = 0.0f;
    (void)thread;
    if (limit->kind == MULTIPLY) result = limit->products->limit(limit->steps);
    else
        for (int64_t i = 0; i < limit->steps; i++) {
            const int64_t run = block * limit->runs + (limit->first + i) % limit->runs;
            char         *at = limit->memory + (size_t)run * limit->run;
            if (limit->kind == READ)
                result += vectors->read((const float *)(const void *)at,
                                        (int64_t)(limit->run / sizeof(float)));
            else
                memcpy(at, at + limit->run / 2, limit->run / 2);
        }
    limit->sink[block % 64] = result;
}

/* Seconds that all threads take for `steps` each. */
static double run(Limit *limit)
{
    const double begin = cornu__seconds();
    cornu__threads_run(limit->threads, cornu__threads_count(limit->threads), work, limit);
    const double seconds = cornu__seconds() - begin;
    limit->first += limit->steps;
    return seconds;
}

static void take_turn(Limit *limit)
{
    double seconds = run(limit);
    while (seconds < TURN_S / 2) {
        limit->steps *= 2;
        seconds = run(limit);
    }
    const double each = limit->kind == MULTIPLY ? limit->products->limit_flops
                                                : (double)limit->run;
    const double rate = each * (double)limit->steps *
                        (double)cornu__threads_count(limit->threads) / seconds;
    if (rate > limit->best) limit->best = rate;
}

static void take_turns(Limit *each, int count)
{
    for (int turn = 0; turn < TURNS; turn++)
        for (int i = 0; i < count; i++) take_turn(&each[i]);
}

/* The rate of one kind of products. */
static Limit multiply_limit(CornuThreads *threads, const CornuProducts *products)
{
    return (Limit){ .threads = threads, .steps = FIRST_STEPS, .products = products };
}

/* The rate of reads of the first `bytes` of the memory, of which every thread has its part. */
static Limit read_limit(CornuThreads *threads, char *memory, int64_t bytes)
{
    const size_t  unit = READ_STEP * sizeof(float), longest = LONGEST_RUN * sizeof(float);
    const size_t  part = (size_t)(bytes / cornu__threads_count(threads)) / unit * unit;
    const size_t  run = part < unit ? unit : part < longest ? part : longest;
    const int64_t runs = (int64_t)(part / run);
    return (Limit){ .kind = READ, .threads = threads, .steps = FIRST_STEPS, .memory = memory,
                    .run = run, .runs = runs ? runs : 1 };
}

/* More bytes than the caches hold. */
static int64_t far_bytes(void)
{
    const int64_t bytes = 2 * cornu__cpu()->l3;
    return bytes < 64 * MIB ? 64 * MIB : bytes > 256 * MIB ? 256 * MIB : bytes;
}

/* Threads and far_bytes() of memory to measure with. */
static CornuStatus open_limits(int threads, CornuThreads **pool, char **memory)
{
    CornuIsa isa;
    CORNU__TRY(cornu__cpu_isa(&isa));
    *pool = cornu__threads_create(threads ? threads : cornu__cpu_threads());
    if (!*pool) return cornu_error_take();
    *memory = cornu__allocate_aligned((size_t)far_bytes());
    if (*memory) return CORNU_OK;
    cornu__threads_free(*pool);
    return CORNU_ERR_MEMORY;
}

CornuStatus cornu_cpu_limits(int threads, CornuCpuLimits *limits)
{
    CornuThreads *pool;
    char         *memory;
    CORNU__TRY(open_limits(threads, &pool, &memory));
    Limit each[] = {
        multiply_limit(pool, cornu__products()),
        multiply_limit(pool, cornu__products_of_bf16()),
        read_limit(pool, memory, far_bytes()),
    };
    take_turns(each, 3);
    *limits = (CornuCpuLimits){
        .threads = cornu__threads_count(pool), .f32_flops = each[0].best,
        .bf16_flops = each[1].best, .read_bytes = each[2].best,
        .bf16_instructions = cornu__products_of_bf16()->depth == 2,
    };
    cornu__release(memory);
    cornu__threads_free(pool);
    return CORNU_OK;
}

CornuStatus cornu_cache_limits(int threads, CornuCacheLimits *limits)
{
    CornuThreads *pool;
    char         *memory;
    CORNU__TRY(open_limits(threads, &pool, &memory));
    const CornuCpu *cpu = cornu__cpu();
    const int       count = cornu__threads_count(pool);
    const int64_t   l3 = cpu->l3 / 2 < far_bytes() ? cpu->l3 / 2 : far_bytes();
    Limit           each[] = {
        { .kind = COPY, .threads = pool, .steps = 1, .memory = memory,
          .run = (size_t)(far_bytes() / count) / 128 * 128, .runs = 1 },
        read_limit(pool, memory, count * cpu->l1d / 2),
        read_limit(pool, memory, count * cpu->l2 / 2),
        read_limit(pool, memory, l3),
    };
    take_turns(each, cpu->l3 ? 4 : 3);
    *limits = (CornuCacheLimits){
        .threads = count, .copy_bytes = each[0].best, .l1_bytes = each[1].best,
        .l2_bytes = each[2].best, .l3_bytes = each[3].best,
    };
    cornu__release(memory);
    cornu__threads_free(pool);
    return CORNU_OK;
}
