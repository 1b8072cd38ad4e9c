/* The cache of one of several processes, which asks for its own rows alone: elements are computed
 * when they are first asked for. */
#include <pthread.h>
#include <string.h>

#include "../../device/memory_internal.h"
#include "dataset_internal.h"

typedef struct {
    char           *data[CORNU_MAX_COMPONENTS];
    atomic_uchar   *filled;   /* by element */
    pthread_mutex_t lock;     /* of filling one: iterators have threads of their own */
} Cache;

static char *element_of(const CornuDataset *dataset, int component, int64_t index)
{
    const Cache *cache = dataset->own;
    return cache->data[component] + (size_t)index * dataset->bytes[component];
}

static void keep(const CornuDataset *dataset, int64_t index, void *const *from)
{
    Cache *cache = dataset->own;
    pthread_mutex_lock(&cache->lock);
    for (int c = 0; c < dataset->components && !atomic_load(&cache->filled[index]); c++)
        memcpy(element_of(dataset, c, index), from[c], dataset->bytes[c]);
    atomic_store(&cache->filled[index], 1);
    pthread_mutex_unlock(&cache->lock);
}

static CornuStatus cache_fetch(CornuStage *stage, CornuSample at, void *const *to, int64_t *valid)
{
    const CornuDataset *dataset = stage->dataset;
    const Cache        *cache = dataset->own;
    *valid = 1;
    if (atomic_load(&cache->filled[at.index])) {
        for (int c = 0; c < dataset->components; c++)
            memcpy(to[c], element_of(dataset, c, at.index), dataset->bytes[c]);
        return CORNU_OK;
    }
    CORNU__TRY(cornu__stage_fetch(stage->source, (CornuSample){ 0, at.index }, to, valid));
    keep(dataset, at.index, to);
    return CORNU_OK;
}

static void cache_free(CornuDataset *dataset)
{
    Cache *cache = dataset->own;
    if (!cache) return;
    for (int c = 0; c < dataset->components; c++) cornu__release(cache->data[c]);
    cornu__release(cache->filled);
    pthread_mutex_destroy(&cache->lock);
    cornu__release(cache);
}

static const CornuDatasetKind cache_kind = { .name = "cache", .fetch = cache_fetch,
                                             .free = cache_free };

CornuDataset *cornu__dataset_cache_on_demand(CornuDataset *source)
{
    CornuDataset *dataset = cornu__dataset_derive(source, &cache_kind, "cache");
    if (!dataset) return NULL;
    Cache *cache = dataset->own = cornu__allocate(1, sizeof *cache);
    if (!cache) goto fail;
    pthread_mutex_init(&cache->lock, NULL);
    cache->filled = cornu__allocate((size_t)dataset->count, sizeof *cache->filled);
    if (!cache->filled) goto fail;
    for (int c = 0; c < dataset->components; c++) {
        cache->data[c] = cornu__allocate((size_t)dataset->count, dataset->bytes[c]);
        if (!cache->data[c]) goto fail;
    }
    return dataset;
fail:
    cornu_dataset_free(dataset);
    return cornu__null();
}
