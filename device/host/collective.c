#include "collective.h"

#include <string.h>

/* Elements that one block adds up: the eight parts of a block stay in the first-level cache. */
enum { BLOCK = 512 };

typedef struct {
    CornuType    type;
    int          shards;
    void *const *x;
    int64_t      stride;
    char        *to;
} Sum;

/* parts[0] += parts[1] for `count` elements. */
static void add(CornuDtype dtype, void *to, const void *from, int64_t count)
{
    switch (dtype) {
    case CORNU_F32:
        for (int64_t i = 0; i < count; i++) ((float *)to)[i] += ((const float *)from)[i];
        break;
    case CORNU_F64:
        for (int64_t i = 0; i < count; i++) ((double *)to)[i] += ((const double *)from)[i];
        break;
    case CORNU_I64: /* wraps as hardware does, which C leaves undefined for signed numbers */
        for (int64_t i = 0; i < count; i++) ((uint64_t *)to)[i] += ((const uint64_t *)from)[i];
        break;
    case CORNU_I32:
        for (int64_t i = 0; i < count; i++) ((uint32_t *)to)[i] += ((const uint32_t *)from)[i];
        break;
    default: break;   /* the type rule lets no other pass */
    }
}

static void sum_block(void *context, int64_t block, int thread)
{
    (void)thread;
    const Sum    *sum = context;
    const size_t  size = cornu_dtype_size(sum->type.dtype);
    const int64_t first = block * BLOCK, rest = cornu_type_count(sum->type) - first;
    const int64_t count = rest < BLOCK ? rest : BLOCK;
    _Alignas(64) char parts[CORNU_MAX_SHARDS][BLOCK * sizeof(double)];
    for (int shard = 0; shard < sum->shards; shard++)
        memcpy(parts[shard], (const char *)sum->x[shard * sum->stride] + (size_t)first * size,
               (size_t)count * size);
    for (int step = 1; step < sum->shards; step *= 2)
        for (int shard = 0; shard + step < sum->shards; shard += 2 * step)
            add(sum->type.dtype, parts[shard], parts[shard + step], count);
    memcpy(sum->to + (size_t)first * size, parts[0], (size_t)count * size);
}

void cornu__all_reduce(CornuThreads *threads, CornuType type, int shards, void *const *x,
                       int64_t stride, void *to)
{
    Sum sum = { type, shards, x, stride, to };
    cornu__threads_run(threads, (cornu_type_count(type) + BLOCK - 1) / BLOCK, sum_block, &sum);
}

static CornuStatus replica_id(const CornuKernelCall *call)
{
    *(int64_t *)call->out[0] = call->shard;
    return CORNU_OK;
}

const CornuKernel cornu__host_replica_id = { .accepts = cornu__accepts_all, .run = replica_id };
