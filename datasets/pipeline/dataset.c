/* Data sets: their life, stages, arrays, and the cache. */
#include "dataset_internal.h"

#include <string.h>

#include "../../device/memory_internal.h"
#include "../../device/processes/processes_internal.h"

static void free_one(CornuDataset *dataset)
{
    if (dataset->kind && dataset->kind->free) dataset->kind->free(dataset);
    if (dataset->sources != &dataset->source) cornu__release(dataset->sources);
    cornu__release(dataset);
}

static void free_source(CornuDataset *source)
{
    if (source) atomic_fetch_sub(&source->taken, 1);
    cornu_dataset_free(source);
}

/* Chains may be long, so their length costs no stack. */
void cornu_dataset_free(CornuDataset *dataset)
{
    while (dataset && atomic_fetch_sub(&dataset->owners, 1) == 1) {
        CornuDataset *source = dataset->source;
        for (int i = 1; i < dataset->source_count; i++) free_source(dataset->sources[i]);
        free_one(dataset);
        dataset = source;
        if (source) atomic_fetch_sub(&source->taken, 1);
    }
}

CornuDataset *cornu_dataset_retain(CornuDataset *dataset)
{
    if (dataset) atomic_fetch_add(&dataset->owners, 1);
    return dataset;
}

int64_t cornu_dataset_count(const CornuDataset *dataset)
{
    CORNU__NEED_OR(dataset, 0);
    return dataset->count;
}

int64_t cornu_dataset_batch_size(const CornuDataset *dataset)
{
    CORNU__NEED_OR(dataset, 0);
    return dataset->batch_size;
}

int cornu_dataset_components(const CornuDataset *dataset)
{
    CORNU__NEED_OR(dataset, 0);
    return dataset->components;
}

/* The type of a row. */
static CornuType row_type(CornuType type)
{
    return cornu_type_from(type.dtype,
                           cornu_shape_from(type.shape.rank - 1, type.shape.extent + 1));
}

CornuType cornu_dataset_type(const CornuDataset *dataset, int component)
{
    CORNU__NEED_OR(dataset, (CornuType){ 0 });
    CORNU__NEED_INDEX(component, dataset->components, (CornuType){ 0 });
    CornuType type = dataset->type[component];
    return dataset->batch_size ? row_type(type) : type;
}

/* Those that differ can only be mapped: what they come from is at the end of a chain. */
bool cornu__dataset_varies(const CornuDataset *dataset)
{
    while (dataset->source) dataset = dataset->source;
    return dataset->kind->rows != NULL;
}

static CornuType add_rows(CornuType type, int64_t rows)
{
    memmove(type.shape.extent + 1, type.shape.extent,
            sizeof *type.shape.extent * (size_t)type.shape.rank++);
    type.shape.extent[0] = rows;
    return type;
}

/* The type of component c of a data set whose source, at the end of a chain of maps, has so many
 * rows of these types: they are those of a map without types of its own, too. */
static CornuType reshaped(const CornuDataset *dataset, int c, int64_t rows, const CornuType *types)
{
    const CornuDataset *like = dataset;
    while (like->source && like->map.same_types) like = like->source;
    return add_rows(like->source ? row_type(dataset->type[c]) : types[c], rows);
}

CornuStatus cornu__dataset_reshape(CornuDataset *dataset, int64_t rows, const CornuType *types)
{
    if (rows < dataset->batch_size) rows = dataset->batch_size;
    for (const CornuDataset *d = dataset; d; d = d->source)
        for (int c = 0; c < d->components; c++)
            CORNU__TRY(cornu_host_type_check(reshaped(d, c, rows, types)));
    for (; dataset; dataset = dataset->source) {
        bool changed = false;
        for (int c = 0; c < dataset->components; c++) {
            const CornuType type = reshaped(dataset, c, rows, types);
            changed |= !cornu_type_equal(type, dataset->type[c]);
            dataset->type[c] = type;
            dataset->bytes[c] = cornu_type_bytes(type);
        }
        dataset->reshaped += changed;
        dataset->batch_size = rows;
    }
    return CORNU_OK;
}

/* Most stages of one iterator: a data set that is its own source several times doubles them. */
enum { MOST_STAGES = 4096 };

/* Refuses sources that others were derived from. These are not the caller's to give away. */
static CornuStatus check_free(CornuDataset *const *sources, int count, const char *name)
{
    for (int i = 0; i < count; i++) {
        int before = 0;
        for (int k = 0; k < i; k++) before += sources[k] == sources[i];
        if (!sources[i] ||
            atomic_load(&sources[i]->taken) + before < atomic_load(&sources[i]->owners)) continue;
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: another data set was already derived from this "
                           "one; use cornu_dataset_retain for several", name);
    }
    return CORNU_OK;
}

static CornuStatus check_sources(CornuDataset *const *sources, int count,
                                 const CornuDatasetKind *kind, const char *name)
{
    int64_t stages = 1;
    for (int i = 0; i < count; i++) {
        if (!sources[i])
            return cornu__fail_absent("%s: the data set", name);
        if (cornu__dataset_varies(sources[i]) && !kind->of_any_batch)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: the batches of the data set differ in "
                               "rows; it can only be mapped", name);
        if (cornu__dataset_is_open(sources[i]) && !kind->of_trims)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: the batches of the data set differ in "
                               "extents, as those of padded_batch; %s before them", name, name);
        stages += 1 + sources[i]->below;
    }
    if (stages <= MOST_STAGES) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: %lld stages with those of its sources, expected at "
                       "most %d", name, (long long)stages, MOST_STAGES);
}

static CornuDataset *create(CornuDataset *const *sources, int count)
{
    CornuDataset *dataset = cornu__allocate(1, sizeof *dataset);
    if (!dataset) return NULL;
    dataset->sources = &dataset->source;
    if (count > 1) dataset->sources = cornu__allocate((size_t)count, sizeof *sources);
    if (!dataset->sources) {
        cornu__release(dataset);
        return NULL;
    }
    atomic_init(&dataset->owners, 1);
    dataset->source_count = count;
    dataset->source = sources[0];
    memcpy(dataset->sources, sources, (size_t)count * sizeof *sources);
    return dataset;
}

CornuDataset *cornu__dataset_join(CornuDataset *const *sources, int count,
                                  const CornuDatasetKind *kind, const char *name)
{
    CornuDataset *dataset = NULL;
    if (check_free(sources, count, name)) return cornu__null();
    if (!cornu__refused() && !check_sources(sources, count, kind, name))
        dataset = create(sources, count);
    if (!dataset) {
        for (int i = 0; i < count; i++) cornu_dataset_free(sources[i]);
        return cornu__null();
    }
    const CornuDataset *source = dataset->source;
    dataset->kind = kind;
    dataset->count = source->count;
    dataset->batch_size = source->batch_size;
    dataset->by_row = kind->by_row;
    dataset->components = source->components;
    memcpy(dataset->type, source->type, sizeof dataset->type);
    memcpy(dataset->bytes, source->bytes, sizeof dataset->bytes);
    memcpy(dataset->open, source->open, sizeof dataset->open);
    for (int i = 0; i < count; i++) {
        atomic_fetch_add(&sources[i]->taken, 1);
        dataset->below += 1 + sources[i]->below;
        if (sources[i]->prefetch > dataset->prefetch) dataset->prefetch = sources[i]->prefetch;
        if (sources[i]->workers > dataset->workers) dataset->workers = sources[i]->workers;
    }
    return dataset;
}

CornuStatus cornu__dataset_set_type(CornuDataset *dataset, int c, CornuType type)
{
    CORNU__TRY(cornu_host_type_check(type));
    if (dataset->batch_size) {
        CornuText text;
        if (type.shape.rank == CORNU_MAX_RANK)
            return cornu__fail(CORNU_ERR_SHAPE, "component %d is %s: a batch of it would exceed "
                                                "rank %d", c, cornu_type_print(&text, type),
                               CORNU_MAX_RANK);
        type = add_rows(type, dataset->batch_size);
        CORNU__TRY(cornu_host_type_check(type));
    }
    dataset->type[c] = type;
    dataset->bytes[c] = cornu_type_bytes(type);
    return CORNU_OK;
}

CornuStatus cornu__dataset_set_types(CornuDataset *dataset, const CornuType *types, int count)
{
    if (!types && !count) return CORNU_OK;
    if (!types || count < 1 || count > CORNU_MAX_COMPONENTS)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%d components, expected 1 to %d",
                           types ? count : 0, CORNU_MAX_COMPONENTS);
    dataset->components = count;
    for (int c = 0; c < count; c++) CORNU__TRY(cornu__dataset_set_type(dataset, c, types[c]));
    return CORNU_OK;
}

CornuDataset *cornu__dataset_derive(CornuDataset *source, const CornuDatasetKind *kind,
                                    const char *name)
{
    return cornu__dataset_join(&source, 1, kind, name);
}

CornuDataset *cornu__dataset_derive_as(CornuDataset *source, const CornuDataset *like)
{
    CornuDataset *dataset = cornu__dataset_derive(source, like->kind, like->kind->name);
    if (!dataset) return NULL;
    CornuType types[CORNU_MAX_COMPONENTS];
    for (int c = 0; c < source->components; c++) types[c] = cornu_dataset_type(source, c);
    dataset->count = like->count;
    dataset->batch_size = like->batch_size;
    dataset->prefetch = like->prefetch;
    dataset->workers = like->workers;
    memcpy(&dataset->arrays, &like->arrays, sizeof like->arrays);   /* the largest: all settings */
    return cornu__dataset_set_types(dataset, types, source->components)
         ? cornu__dataset_abandon(dataset) : dataset;
}

void *cornu__dataset_abandon(CornuDataset *dataset)
{
    cornu_dataset_free(dataset);
    return cornu__null();
}

void *cornu__element_allocate(const CornuDataset *dataset, void **at)
{
    return cornu__elements_allocate(dataset, 1, at);
}

void *cornu__elements_allocate(const CornuDataset *dataset, int64_t count, void **at)
{
    enum { ALIGNMENT = 64 };
    const size_t most = (SIZE_MAX - ALIGNMENT) / (size_t)count;
    size_t       offset[CORNU_MAX_COMPONENTS], total = 0;
    for (int c = 0; c < dataset->components; c++) {
        offset[c] = total;
        const size_t bytes = dataset->bytes[c] > most ? SIZE_MAX - ALIGNMENT
                                                      : dataset->bytes[c] * (size_t)count;
        const size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        total = rounded > SIZE_MAX - total ? SIZE_MAX : total + rounded;
    }
    char *memory = cornu__allocate_aligned(total);
    for (int c = 0; memory && c < dataset->components; c++) at[c] = memory + offset[c];
    return memory;
}

/* ---- stages ---- */

/* Places for stages and for the lists of their sources. */
typedef struct { CornuStage *next, **next_source; } Places;

static CornuStage *lay_out(Places *places, const CornuDataset *dataset, const CornuShare *share)
{
    CornuStage **sources = places->next_source;
    places->next_source += dataset->source_count;
    for (int i = 0; i < dataset->source_count; i++)
        sources[i] = lay_out(places, dataset->sources[i], dataset->by_row ? share : NULL);
    CornuStage *stage = places->next++;
    stage->dataset = dataset;
    stage->source = dataset->source_count ? sources[0] : NULL;
    stage->sources = sources;
    stage->share = share;
    return stage;
}

CornuStage *cornu__stages_open(const CornuDataset *dataset, const CornuShare *share, int *count)
{
    *count = dataset->below + 1;
    /* Each stage but the last is one of the sources of one. */
    const size_t all = (size_t)*count, size = sizeof(CornuStage) + sizeof(CornuStage *);
    CornuStage  *stages = cornu__allocate(all, size);
    if (!stages) return NULL;
    lay_out(&(Places){ stages, (CornuStage **)(void *)(stages + all) }, dataset, share);
    for (int i = 0; i < *count; i++) {
        const CornuDatasetKind *kind = stages[i].dataset->kind;
        if (!kind->open || kind->open(&stages[i]) == CORNU_OK) continue;
        cornu__stages_close(stages, *count);   /* those not opened have nothing to close */
        return NULL;
    }
    return stages;
}

void cornu__stages_close(CornuStage *stages, int count)
{
    for (int i = 0; stages && i < count; i++)
        if (stages[i].dataset->kind->close) stages[i].dataset->kind->close(&stages[i]);
    cornu__release(stages);
}

/* ---- arrays ---- */

static CornuStatus arrays_fetch(CornuStage *stage, CornuSample at, void *const *to,
                                int64_t *valid)
{
    const CornuDataset *dataset = stage->dataset;
    for (int c = 0; c < dataset->components; c++) {
        size_t bytes = dataset->bytes[c];
        memcpy(to[c], (const char *)dataset->arrays.data[c] + (size_t)at.index * bytes, bytes);
    }
    *valid = 1;
    return CORNU_OK;
}

static void arrays_free(CornuDataset *dataset)
{
    for (int c = 0; dataset->arrays.owned && c < dataset->components; c++)
        cornu__release(dataset->arrays.data[c]);
    cornu__release(dataset->arrays.memory);
}

static const CornuDatasetKind arrays_kind = { .name = "arrays", .fetch = arrays_fetch,
                                              .free = arrays_free };

bool cornu__dataset_is_arrays(const CornuDataset *dataset)
{
    return dataset->kind == &arrays_kind && !dataset->source_count;
}

static CornuStatus check_arrays(const CornuArray *arrays, int count)
{
    if (count < 1 || count > CORNU_MAX_COMPONENTS)
        return cornu__fail(CORNU_ERR_ARGUMENT, "data set: %d components, expected 1 to %d", count,
                           CORNU_MAX_COMPONENTS);
    for (int c = 0; c < count; c++) {
        CornuType type = arrays[c].type;
        CORNU__TRY(cornu_host_type_check(type));
        if (type.shape.rank < 1)
            return cornu__fail(CORNU_ERR_SHAPE,
                               "data set: array %d is a scalar, expected rank 1 or more", c);
        if (type.shape.extent[0] != arrays[0].type.shape.extent[0])
            return cornu__fail(CORNU_ERR_SHAPE,
                               "data set: array %d has %lld rows, expected %lld like array 0", c,
                               (long long)type.shape.extent[0],
                               (long long)arrays[0].type.shape.extent[0]);
        if (!arrays[c].data && cornu_type_bytes(type))
            return cornu__fail(CORNU_ERR_ARGUMENT, "data set: array %d is NULL", c);
    }
    return CORNU_OK;
}

/* A data set of arrays that it does not own. */
static CornuDataset *arrays_dataset(const CornuArray *arrays, int count)
{
    if (cornu__refused() || check_arrays(arrays, count) != CORNU_OK) return cornu__null();
    CornuDataset *dataset = cornu__allocate(1, sizeof *dataset);
    if (!dataset) return cornu__null();
    atomic_init(&dataset->owners, 1);
    dataset->kind = &arrays_kind;
    dataset->count = arrays[0].type.shape.extent[0];
    dataset->components = count;
    for (int c = 0; c < count; c++) {
        dataset->type[c] = row_type(arrays[c].type);
        dataset->bytes[c] = cornu_type_bytes(dataset->type[c]);
        dataset->arrays.data[c] = arrays[c].data;
    }
    return dataset;
}

CornuDataset *cornu__dataset_borrow_arrays(const CornuArray *arrays, int count, void *memory)
{
    CornuDataset *dataset = arrays_dataset(arrays, count);
    if (dataset) dataset->arrays.memory = memory;
    else cornu__release(memory);
    return dataset;
}

/* A copy of an array, freed with cornu__release: of strings one block of the pointers and what they
 * point to. */
static void *copy_array(CornuArray array)
{
    const size_t       bytes = cornu_type_bytes(array.type);
    const char *const *from = array.data;
    const bool         has_strings = array.type.dtype == CORNU_STRING;
    const int64_t      strings = has_strings ? cornu_type_count(array.type) : 0;
    size_t             total = bytes;
    for (int64_t i = 0; i < strings; i++) total += from[i] ? strlen(from[i]) + 1 : 0;
    char *copy = cornu__allocate_aligned(total), *next = copy + bytes;
    if (copy && bytes) memcpy(copy, array.data, bytes);
    for (int64_t i = 0; copy && i < strings; i++) {
        if (!from[i]) continue;
        const size_t size = strlen(from[i]) + 1;
        ((const char **)(void *)copy)[i] = memcpy(next, from[i], size);
        next += size;
    }
    return copy;
}

CornuDataset *cornu_dataset_from_arrays(const CornuArray *arrays, int count)
{
    CORNU__NEED_TO_MAKE(arrays);
    CornuDataset *dataset = arrays_dataset(arrays, count);
    if (!dataset) return NULL;
    memset(dataset->arrays.data, 0, sizeof dataset->arrays.data);
    dataset->arrays.owned = true;
    for (int c = 0; c < count; c++) {
        dataset->arrays.data[c] = copy_array(arrays[c]);
        if (!dataset->arrays.data[c]) {
            cornu_dataset_free(dataset);
            return cornu__null();
        }
    }
    return dataset;
}

CornuDataset *cornu_dataset_own_arrays(CornuArray *arrays, int count)
{
    CORNU__NEED_TO_MAKE(arrays);
    CornuDataset *dataset = arrays_dataset(arrays, count);
    if (dataset) dataset->arrays.owned = true;
    for (int c = 0; c < count; c++) {
        if (!dataset) cornu__release(arrays[c].data);
        arrays[c].data = NULL;
    }
    return dataset;
}

/* ---- cache: arrays with the elements of the source ---- */

/* Grows the cache to `count` elements, of which `used` are filled. */
static CornuStatus reserve_rows(CornuDataset *cache, int64_t count, int64_t used)
{
    for (int c = 0; c < cache->components; c++) {
        const CornuType one = cache->type[c];
        CornuType all = { .dtype = one.dtype, .shape = { one.shape.rank + 1, { count } } };
        if (all.shape.rank <= CORNU_MAX_RANK)
            memcpy(all.shape.extent + 1, one.shape.extent,
                   sizeof *all.shape.extent * (size_t)one.shape.rank);
        CORNU__TRY(cornu_type_check(all));
        void *data = cornu__allocate_aligned(cornu_type_bytes(all));
        if (!data) return CORNU_ERR_MEMORY;
        if (used) memcpy(data, cache->arrays.data[c], (size_t)used * cache->bytes[c]);
        cornu__release(cache->arrays.data[c]);
        cache->arrays.data[c] = data;
    }
    return CORNU_OK;
}

/* Computes all elements. If their number is not known, memory is doubled until they end. */
static CornuStatus fill_cache(CornuDataset *cache, CornuStage *last)
{
    const int64_t count = last->dataset->count;
    int64_t       room = count < 0 ? 64 : count, valid = 1;
    CORNU__TRY(reserve_rows(cache, room, 0));
    for (cache->count = 0; cache->count != count; cache->count++) {
        void *row[CORNU_MAX_COMPONENTS];
        if (cache->count == room) {
            CORNU__TRY(reserve_rows(cache, 2 * room, room));
            room *= 2;
        }
        for (int c = 0; c < cache->components; c++)
            row[c] = (char *)cache->arrays.data[c] + (size_t)cache->count * cache->bytes[c];
        CORNU__TRY(cornu__stage_fetch(last, (CornuSample){ 0, cache->count }, row, &valid));
        if (!valid) break;
    }
    return CORNU_OK;
}

CornuDataset *cornu_dataset_cache(CornuDataset *source)
{
    return source && source->count >= 0 && !source->batch_size &&
           cornu_process_count(cornu__processes_current()) > 1
         ? cornu__dataset_cache_on_demand(source) : cornu__dataset_compute(source);
}

CornuDataset *cornu__dataset_compute(CornuDataset *source)
{
    /* Derived first, which checks source and takes ownership of it. */
    CornuDataset *cache = cornu__dataset_derive(source, &arrays_kind, "cache");
    if (!cache) return NULL;
    CornuStage *stages = NULL;
    int         depth = 0;
    if (source->count == CORNU_NONE) {
        cornu__fail(CORNU_ERR_ARGUMENT, "cache: the data set repeats endlessly; cache it "
                                        "before repeat, or take a part of it");
        goto fail;
    }
    if (source->batch_size) {
        cornu__fail(CORNU_ERR_ARGUMENT, "cache: the data set is batched; cache before batch");
        goto fail;
    }
    cache->arrays.owned = true;
    stages = cornu__stages_open(source, NULL, &depth);
    if (!stages || fill_cache(cache, &stages[depth - 1])) goto fail;
    cornu__stages_close(stages, depth);
    cache->source = NULL;
    cache->source_count = cache->below = 0;
    free_source(source);
    return cache;
fail:
    cornu__stages_close(stages, depth);
    cornu_dataset_free(cache);
    return cornu__null();
}
