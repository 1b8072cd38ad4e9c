/* The transformations; dataset.h says what each does. */
#include "dataset_internal.h"

#include <string.h>

#include "../../device/memory_internal.h"
#include "../../device/random.h"

/* ---- map ---- */

static CornuStatus map_fetch(CornuStage *stage, CornuSample at, void *const *to, int64_t *valid)
{
    const CornuDataset *dataset = stage->dataset;
    CORNU__TRY(cornu__stage_fetch(stage->source, at, stage->map.element, valid));
    if (!*valid) return CORNU_OK;
    CornuArray in[CORNU_MAX_COMPONENTS], out[CORNU_MAX_COMPONENTS];
    stage->trim = dataset->map.same_types ? stage->source->trim : (CornuTrim){ 0 };
    cornu__stage_arrays(stage->source, stage->map.element, in);
    cornu__stage_arrays(stage, to, out);
    return cornu__fail_sample(dataset->map.function(dataset->map.context, at, in, out), "map", at);
}

static CornuStatus map_open(CornuStage *stage)
{
    stage->map.memory = cornu__element_allocate(stage->dataset->source, stage->map.element);
    return stage->map.memory ? CORNU_OK : CORNU_ERR_MEMORY;
}

static void map_close(CornuStage *stage) { cornu__release(stage->map.memory); }

static const CornuDatasetKind map_kind = { .name = "map", .fetch = map_fetch, .open = map_open,
                                           .close = map_close, .of_any_batch = true,
                                           .of_trims = true };

CornuDataset *cornu_dataset_map(CornuDataset *source, CornuMapFunction *function, void *context,
                                const CornuType *types, int count)
{
    CornuDataset *map = cornu__dataset_derive(source, &map_kind, "map");
    if (!map) return NULL;
    map->map.function = function;
    map->map.context = context;
    map->map.same_types = !types && !count;
    if (!map->map.same_types) memset(map->open, 0, sizeof map->open);
    if (!function) {
        cornu__fail(CORNU_ERR_ARGUMENT, "map: the function is NULL");
        return cornu__dataset_abandon(map);
    }
    if (!cornu__fail_prefix(cornu__dataset_set_types(map, types, count), "map")) return map;
    return cornu__dataset_abandon(map);
}

/* ---- shuffle ---- */

/* Random numbers of shuffles: counter = (i / 4, 0, epoch, this), see device/random.h. The
 * generators of a model are numbered from 0, so that streams never coincide. */
static const uint32_t shuffle_generator = UINT32_C(0xFFFF0001);

/*
 * A random permutation: "The Art of Computer Programming", volume 2, section 3.4.2, algorithm P.
 * The upper half of a word times n is a number below n; probabilities differ by less than 2^-32.
 */
void cornu__shuffle_order(uint32_t *order, int64_t count, uint64_t seed, int64_t epoch)
{
    uint32_t word[4];
    for (int64_t i = 0; i < count; i++) order[i] = (uint32_t)i;
    for (int64_t i = 0; i < count; i++) {
        if (i % 4 == 0)
            cornu_philox(seed, (uint32_t[]){ (uint32_t)(i / 4), 0, (uint32_t)epoch,
                                             shuffle_generator }, word);
        int64_t  other = i + (int64_t)((uint64_t)word[i % 4] * (uint64_t)(count - i) >> 32);
        uint32_t row = order[i];
        order[i] = order[other];
        order[other] = row;
    }
}

static CornuStatus shuffle_fetch(CornuStage *stage, CornuSample at, void *const *to,
                                 int64_t *valid)
{
    const CornuDataset *dataset = stage->dataset;
    if (stage->shuffle.epoch != at.epoch) {
        if (at.epoch > UINT32_MAX)
            return cornu__fail(CORNU_ERR_VALUE, "shuffle: epoch %lld, expected 0 to %lld",
                               (long long)at.epoch, (long long)UINT32_MAX);
        cornu__shuffle_order(stage->shuffle.order, dataset->count, dataset->shuffle.seed, at.epoch);
        stage->shuffle.epoch = at.epoch;
    }
    at.index = stage->shuffle.order[at.index];
    return cornu__stage_pass(stage, stage->source, at, to, valid);
}

static CornuStatus shuffle_open(CornuStage *stage)
{
    stage->shuffle.epoch = -1;
    stage->shuffle.order = cornu__allocate((size_t)stage->dataset->count, sizeof(uint32_t));
    return stage->shuffle.order ? CORNU_OK : CORNU_ERR_MEMORY;
}

static void shuffle_close(CornuStage *stage) { cornu__release(stage->shuffle.order); }

static CornuSample shuffle_origin(const CornuDataset *dataset, CornuSample at, int64_t row)
{
    uint32_t *order = cornu__allocate((size_t)dataset->count, sizeof *order);
    if (!order) return cornu__origin_unknown(dataset, at, row);
    cornu__shuffle_order(order, dataset->count, dataset->shuffle.seed, at.epoch);
    at.index = order[at.index];
    cornu__release(order);
    return at;
}

static const CornuDatasetKind shuffle_kind = { .name = "shuffle", .fetch = shuffle_fetch,
                                               .open = shuffle_open, .close = shuffle_close,
                                               .by_row = true, .origin = shuffle_origin,
                                               .of_trims = true, .by_index = true };

CornuDataset *cornu_dataset_shuffle(CornuDataset *source, uint64_t seed)
{
    CornuDataset *shuffle = cornu__dataset_derive(source, &shuffle_kind, "shuffle");
    if (!shuffle) return NULL;
    shuffle->shuffle.seed = seed;
    if (shuffle->count == CORNU_NONE)
        cornu__fail(CORNU_ERR_ARGUMENT, "shuffle: the data set repeats endlessly; shuffle "
                                        "before repeat");
    else if (shuffle->count == CORNU_UNKNOWN)
        cornu__fail(CORNU_ERR_ARGUMENT, "shuffle: the number of elements is not known; cache the "
                                        "data set first");
    else if (shuffle->count > UINT32_MAX)
        cornu__fail(CORNU_ERR_ARGUMENT, "shuffle: %lld elements, expected at most %lld",
                    (long long)shuffle->count, (long long)UINT32_MAX);
    else
        return shuffle;
    return cornu__dataset_abandon(shuffle);
}

/* ---- batch ---- */

static CornuStatus batch_fetch(CornuStage *stage, CornuSample at, void *const *to, int64_t *valid)
{
    const CornuDataset *dataset = stage->dataset, *source = dataset->source;
    int64_t first = at.index * dataset->batch_size, rows = dataset->batch_size;
    if (source->count >= 0 && rows > source->count - first) rows = source->count - first;

    /* Elements of an unknown number are read in order, and all of them, to know where they end. */
    CornuOwnRows own = { .count = rows };
    if (stage->share && source->count != CORNU_UNKNOWN) own = cornu__own_rows(*stage->share, rows);
    int64_t end = own.first + own.count;   /* after row 0, if it is wanted too */
    void   *row[CORNU_MAX_COMPONENTS];
    for (int64_t b = own.row_0 ? 0 : own.first; b < end; b = b < own.first ? own.first : b + 1) {
        int64_t one;
        for (int c = 0; c < dataset->components; c++)
            row[c] = (char *)to[c] + (size_t)b * source->bytes[c];
        CORNU__TRY(cornu__stage_fetch(stage->source, (CornuSample){ at.epoch, first + b }, row,
                                      &one));
        if (!one) rows = end = b;
    }
    if (dataset->batch.whole && rows < dataset->batch_size) rows = 0;
    for (int c = 0; c < dataset->components; c++) {
        size_t used = (size_t)rows * source->bytes[c];
        memset((char *)to[c] + used, 0, dataset->bytes[c] - used);
    }
    *valid = rows;
    return CORNU_OK;
}

static const CornuDatasetKind batch_kind = { .name = "batch", .fetch = batch_fetch,
                                             .origin = cornu__origin_batch, .by_index = true };

CornuDataset *cornu_dataset_batch(CornuDataset *source, int64_t size, bool drop_remainder)
{
    CornuDataset *batch = cornu__dataset_derive(source, &batch_kind, "batch");
    if (!batch) return NULL;
    if (batch->batch_size) {
        cornu__fail(CORNU_ERR_ARGUMENT, "batch: the data set already comes in batches of %lld",
                    (long long)batch->batch_size);
        return cornu__dataset_abandon(batch);
    }
    if (size < 1) {
        cornu__fail(CORNU_ERR_ARGUMENT, "batch: size is %lld, expected 1 or more",
                    (long long)size);
        return cornu__dataset_abandon(batch);
    }
    batch->batch_size = size;
    batch->batch.whole = drop_remainder;
    if (cornu__fail_prefix(cornu__dataset_set_types(batch, source->type, source->components),
                           "batch"))
        return cornu__dataset_abandon(batch);
    if (source->count >= 0)
        batch->count = source->count / size + (!drop_remainder && source->count % size != 0);
    return batch;
}

int64_t cornu__dataset_rows(const CornuDataset *batches)
{
    while (batches->kind == &shuffle_kind) batches = batches->source;
    if (batches->kind != &batch_kind || batches->source->count < 0) return CORNU_UNKNOWN;
    return batches->batch.whole ? batches->count * batches->batch_size : batches->source->count;
}

/* ---- take and skip: a window of the source ---- */

static CornuStatus window_fetch(CornuStage *stage, CornuSample at, void *const *to,
                                int64_t *valid)
{
    const int64_t most = stage->dataset->window.most;
    *valid = 0;
    if (most && at.index >= most) return CORNU_OK;
    at.index += stage->dataset->window.first;
    return cornu__stage_pass(stage, stage->source, at, to, valid);
}

static CornuSample window_origin(const CornuDataset *dataset, CornuSample at, int64_t row)
{
    (void)row;
    return (CornuSample){ at.epoch, at.index + dataset->window.first };
}

static const CornuDatasetKind window_kind = { .name = "take", .fetch = window_fetch, .by_row = true,
                                              .origin = window_origin, .of_trims = true,
                                              .by_index = true };

static CornuDataset *window(CornuDataset *source, int64_t count, const char *name)
{
    CornuDataset *dataset = cornu__dataset_derive(source, &window_kind, name);
    if (dataset && (count < 0 || (dataset->count < 0 && count > CORNU__ENDLESS))) {
        cornu__fail(CORNU_ERR_ARGUMENT, "%s: count is %lld, expected 0 to %lld", name,
                    (long long)count,
                    (long long)(dataset->count < 0 ? CORNU__ENDLESS : INT64_MAX));
        return cornu__dataset_abandon(dataset);
    }
    return dataset;
}

CornuDataset *cornu_dataset_take(CornuDataset *source, int64_t count)
{
    CornuDataset *dataset = window(source, count, "take");
    if (dataset && dataset->count == CORNU_UNKNOWN && count > 0)
        dataset->window.most = count;
    else if (dataset && (dataset->count < 0 || count < dataset->count))
        dataset->count = count;
    return dataset;
}

CornuDataset *cornu_dataset_skip(CornuDataset *source, int64_t count)
{
    CornuDataset *dataset = window(source, count, "skip");
    if (!dataset) return NULL;
    dataset->window.first = count;
    if (dataset->count >= 0)
        dataset->count = count < dataset->count ? dataset->count - count : 0;
    return dataset;
}

/* ---- repeat ---- */

/* The position of an element in the source. An endless epoch never ends: epoch e starts at pass
 * e. */
static CornuSample pass_of(const CornuDataset *dataset, CornuSample at)
{
    const int64_t times = dataset->repeat.times, count = dataset->source->count;
    return (CornuSample){ (times == CORNU_NONE ? at.epoch : at.epoch * times) + at.index / count,
                          at.index % count };
}

static CornuStatus repeat_fetch(CornuStage *stage, CornuSample at, void *const *to,
                                int64_t *valid)
{
    if (at.epoch > UINT32_MAX)
        return cornu__fail(CORNU_ERR_VALUE, "repeat: epoch %lld, expected 0 to %lld",
                           (long long)at.epoch, (long long)UINT32_MAX);
    return cornu__stage_pass(stage, stage->source, pass_of(stage->dataset, at), to, valid);
}

static CornuSample repeat_origin(const CornuDataset *dataset, CornuSample at, int64_t row)
{
    (void)row;
    return pass_of(dataset, at);
}

static const CornuDatasetKind repeat_kind = { .name = "repeat", .fetch = repeat_fetch,
                                              .by_row = true, .origin = repeat_origin,
                                              .of_trims = true, .by_index = true };

/* Passes of a source whose count is not known: each begins where the one before it ended. */
static CornuStatus passes_begin(CornuStage *stage, int64_t epoch)
{
    (void)epoch;
    stage->passes.number = stage->passes.first = 0;
    return CORNU_OK;
}

static CornuStatus passes_next(CornuStage *stage, CornuSample at, void *const *to, int64_t *valid)
{
    const int64_t times = stage->dataset->repeat.times;
    const int64_t epoch = times == CORNU_NONE ? at.epoch : at.epoch * times;
    for (*valid = 0; times == CORNU_NONE || stage->passes.number < times; stage->passes.number++) {
        const CornuSample next = { epoch + stage->passes.number, at.index - stage->passes.first };
        CORNU__TRY(cornu__stage_pass(stage, stage->source, next, to, valid));
        if (*valid) return CORNU_OK;
        if (times == CORNU_NONE && next.index == 0)
            return cornu__fail(CORNU_ERR_DATA, "repeat: pass %lld has no elements to repeat",
                               (long long)next.epoch);
        stage->passes.first = at.index;
    }
    return CORNU_OK;
}

static const CornuDatasetKind passes_kind = { .name = "repeat", .fetch = cornu__fetch_in_turn,
                                              .begin = passes_begin, .next = passes_next,
                                              .by_row = true, .of_trims = true,
                                              .origin = cornu__origin_unknown };

CornuDataset *cornu_dataset_repeat(CornuDataset *source, int64_t times)
{
    const bool    known = !source || source->count != CORNU_UNKNOWN;
    CornuDataset *repeat = cornu__dataset_derive(source, known ? &repeat_kind : &passes_kind,
                                                 "repeat");
    if (!repeat) return NULL;
    int64_t count = repeat->count;
    repeat->repeat.times = times;
    if (times != CORNU_NONE && (times < 1 || times > INT32_MAX))
        cornu__fail(CORNU_ERR_ARGUMENT, "repeat: %lld times, expected 1 to %lld or CORNU_NONE",
                    (long long)times, (long long)INT32_MAX);
    else if (count == CORNU_NONE)
        cornu__fail(CORNU_ERR_ARGUMENT, "repeat: the data set already repeats endlessly");
    else if (times == CORNU_NONE && count == 0)
        cornu__fail(CORNU_ERR_ARGUMENT, "repeat: the data set has no elements to repeat");
    else if (times > 0 && count > INT64_MAX / times)
        cornu__fail(CORNU_ERR_ARGUMENT, "repeat: %lld elements %lld times exceed the range of "
                                        "an index", (long long)count, (long long)times);
    else {
        repeat->count = times == CORNU_NONE ? CORNU_NONE : known ? count * times : CORNU_UNKNOWN;
        return repeat;
    }
    return cornu__dataset_abandon(repeat);
}

/* ---- prefetch: only tells the iterator the depth ---- */

CornuDataset *cornu_dataset_prefetch(CornuDataset *source, int depth)
{
    enum { MAX_DEPTH = 64 };
    CornuDataset *prefetch = cornu__dataset_derive(source, &window_kind, "prefetch");
    if (!prefetch) return NULL;
    if (depth < 1 || depth > MAX_DEPTH) {
        cornu__fail(CORNU_ERR_ARGUMENT, "prefetch: depth is %d, expected 1 to %d", depth,
                    MAX_DEPTH);
        return cornu__dataset_abandon(prefetch);
    }
    if (depth > prefetch->prefetch) prefetch->prefetch = depth;
    return prefetch;
}

/* ---- parallel: likewise the number of threads ---- */

CornuDataset *cornu_dataset_parallel(CornuDataset *source, int threads)
{
    enum { MOST_THREADS = 64 };
    CornuDataset *parallel = cornu__dataset_derive(source, &window_kind, "parallel");
    if (!parallel) return NULL;
    if (threads < 1 || threads > MOST_THREADS) {
        cornu__fail(CORNU_ERR_ARGUMENT, "parallel: %d threads, expected 1 to %d", threads,
                    MOST_THREADS);
        return cornu__dataset_abandon(parallel);
    }
    if (threads > parallel->workers) parallel->workers = threads;
    if (threads > parallel->prefetch) parallel->prefetch = threads;
    return parallel;
}

/* ---- The origin of an element ---- */

int64_t cornu__dataset_origin(const CornuDataset *dataset, CornuSample at, int64_t row)
{
    for (; dataset->source_count == 1 && at.index >= 0; dataset = dataset->source)
        if (dataset->kind->origin) at = dataset->kind->origin(dataset, at, row);
    return dataset->source_count || dataset->kind->rows ? -1 : at.index;
}
