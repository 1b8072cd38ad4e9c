/* Data sets without stored elements: those that a function yields, and a range of numbers. */
#include "dataset_internal.h"

#include <string.h>

#include "../../device/memory_internal.h"

/* ---- Generators ---- */

static void end_pass(CornuStage *stage)
{
    const CornuGenerator *generator = &stage->dataset->generator;
    if (stage->generator.open && generator->end)
        generator->end(generator->context, stage->generator.state);
    stage->generator.open = false;
}

static CornuStatus begin_pass(CornuStage *stage, int64_t epoch)
{
    const CornuGenerator *generator = &stage->dataset->generator;
    const CornuSample     first = { epoch, 0 };
    end_pass(stage);
    stage->generator.state = generator->context;
    if (generator->begin)
        CORNU__TRY(cornu__fail_sample(generator->begin(generator->context, epoch,
                                                        &stage->generator.state),
                                       "generator", first));
    stage->generator.open = true;
    return CORNU_OK;
}

static CornuStatus yield_next(CornuStage *stage, CornuSample at, void *const *to, int64_t *valid)
{
    const CornuDataset *dataset = stage->dataset;
    CornuArray          out[CORNU_MAX_COMPONENTS];
    bool                end = false;
    cornu__stage_arrays(stage, to, out);
    CORNU__TRY(cornu__fail_sample(dataset->generator.next(stage->generator.state, at, out, &end),
                                   "generator", at));
    *valid = !end;
    return CORNU_OK;
}

static const CornuDatasetKind generator_kind = { .name = "generator", .fetch = cornu__fetch_in_turn,
                                                 .begin = begin_pass, .next = yield_next,
                                                 .close = end_pass, .in_order = true };

/* ---- Batches of any extents ---- */

static CornuStatus count_rows(CornuStage *stage, CornuSample at, int64_t *rows)
{
    const CornuStatus status = stage->dataset->generator.batch(stage->generator.state, at, rows);
    return cornu__fail_sample(status, "generator", at);
}

/* The place is after the batch that was asked for last, whose rows are known. */
static CornuStatus find_batch(CornuStage *stage, CornuSample at, int64_t *rows)
{
    CornuSample *place = &stage->place;
    if (!stage->begun || place->epoch != at.epoch || place->index > at.index + 1) {
        stage->begun = stage->ended = false;
        CORNU__TRY(begin_pass(stage, at.epoch));
        *place = (CornuSample){ at.epoch, 0 };
    }
    stage->begun = false;   /* unless all goes well, the next attempt starts a new pass */
    while (!stage->ended && place->index <= at.index) {
        CORNU__TRY(count_rows(stage, *place, &stage->generator.rows));
        stage->ended = stage->generator.rows < 1;
        place->index++;
    }
    stage->begun = true;
    *rows = stage->ended ? 0 : stage->generator.rows;
    return CORNU_OK;
}

/* Dtypes and ranks of the batches are the same. */
static CornuStatus check_types(const CornuDataset *dataset, CornuSample at, const CornuType *types)
{
    for (int c = 0; c < dataset->components; c++) {
        const CornuType before = cornu_dataset_type(dataset, c);
        CornuText       texts[2];
        if (types[c].dtype != before.dtype || types[c].shape.rank != before.shape.rank)
            return cornu__fail(CORNU_ERR_SHAPE, "generator: element %lld of epoch %lld: component "
                               "%d has rows of %s, expected the dtype and rank of those before, %s",
                               (long long)at.index, (long long)at.epoch, c,
                               cornu_type_print(&texts[0], types[c]),
                               cornu_type_print(&texts[1], before));
    }
    return CORNU_OK;
}

static CornuStatus batch_rows(CornuStage *stage, CornuSample at, int64_t *rows, CornuType *types)
{
    const CornuDataset   *dataset = stage->dataset;
    const CornuGenerator *generator = &dataset->generator;
    CORNU__TRY(find_batch(stage, at, rows));
    for (int c = 0; c < dataset->components; c++) types[c] = cornu_dataset_type(dataset, c);
    if (!*rows || !generator->row_types) return CORNU_OK;
    CORNU__TRY(cornu__fail_sample(generator->row_types(stage->generator.state, at, types),
                                  "generator", at));
    return check_types(dataset, at, types);
}

static CornuStatus batch_fetch(CornuStage *stage, CornuSample at, void *const *to, int64_t *valid)
{
    const CornuDataset *dataset = stage->dataset;
    CornuArray          out[CORNU_MAX_COMPONENTS];
    bool                end = false;
    CORNU__TRY(find_batch(stage, at, valid));
    for (int c = 0; c < dataset->components && *valid; c++) {
        const size_t used = dataset->bytes[c] / (size_t)dataset->batch_size * (size_t)*valid;
        memset((char *)to[c] + used, 0, dataset->bytes[c] - used);
    }
    if (!*valid) return CORNU_OK;
    cornu__stage_arrays(stage, to, out);
    return cornu__fail_sample(dataset->generator.next(stage->generator.state, at, out, &end),
                               "generator", at);
}

static const CornuDatasetKind batches_kind = { .name = "generator", .fetch = batch_fetch,
                                               .rows = batch_rows, .close = end_pass,
                                               .in_order = true };

/* The types of batches from those of their rows. */
static CornuStatus add_rows(CornuDataset *dataset, int64_t rows, const CornuType *types)
{
    if (rows < 1 || rows > INT32_MAX)
        return cornu__fail(CORNU_ERR_ARGUMENT, "generator: .batch_size is %lld, expected 1 to %d",
                           (long long)rows, INT32_MAX);
    for (int c = 0; c < dataset->components; c++)
        if (types[c].shape.rank == CORNU_MAX_RANK)
            return cornu__fail(CORNU_ERR_SHAPE, "generator: component %d has %d axes, expected "
                               "fewer", c, CORNU_MAX_RANK);
    return cornu__fail_prefix(cornu__dataset_reshape(dataset, rows, types), "generator");
}

static CornuDataset *create_generator(const CornuDatasetKind *kind, const CornuType *types,
                                      int count)
{
    CornuDataset *dataset = cornu__allocate(1, sizeof *dataset);
    if (!dataset) return NULL;
    atomic_init(&dataset->owners, 1);
    dataset->kind = kind;
    dataset->components = count;
    for (int c = 0; c < count; c++) {
        dataset->type[c] = types[c];
        dataset->bytes[c] = cornu_type_bytes(types[c]);
    }
    return dataset;
}

CornuDataset *cornu_dataset_generator_from(const CornuGeneratorConfig *config)
{
    if (cornu__refused()) return NULL;
    if (!config->next)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "generator: .next is NULL, expected the "
                                "function that yields elements");
    if (!config->types || config->count < 1 || config->count > CORNU_MAX_COMPONENTS)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "generator: %d components, expected .types of "
                                "1 to %d", config->types ? config->count : 0,
                                CORNU_MAX_COMPONENTS);
    for (int c = 0; c < config->count; c++)
        if (cornu_host_type_check(config->types[c])) {
            cornu__fail_prefix(cornu_error_status(), "generator");
            return cornu__null();
        }
    CornuDataset *dataset = create_generator(config->batch ? &batches_kind : &generator_kind,
                                             config->types, config->count);
    if (!dataset) return cornu__null();
    dataset->count = CORNU_UNKNOWN;
    dataset->generator = (CornuGenerator){ .next = config->next, .begin = config->begin,
                                           .end = config->end, .batch = config->batch,
                                           .row_types = config->row_types,
                                           .context = config->context };
    if (!config->batch || !add_rows(dataset, config->batch_size, config->types)) return dataset;
    cornu_dataset_free(dataset);
    return cornu__null();
}

/* ---- Ranges ---- */

static CornuStatus range_fetch(CornuStage *stage, CornuSample at, void *const *to, int64_t *valid)
{
    const CornuDataset *dataset = stage->dataset;
    /* The sum fits into int64_t, but the product may not: unsigned arithmetic wraps. */
    *(int64_t *)to[0] = (int64_t)((uint64_t)dataset->range.start +
                                  (uint64_t)at.index * (uint64_t)dataset->range.step);
    *valid = 1;
    return CORNU_OK;
}

static const CornuDatasetKind range_kind = { .name = "range", .fetch = range_fetch };

CornuDataset *cornu_dataset_range(int64_t start, int64_t stop, int64_t step)
{
    const CornuType type = cornu_scalar(CORNU_I64);
    if (cornu__refused()) return NULL;
    if (step == 0)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "range: the step is 0, expected any other");
    const bool     empty = step > 0 ? start >= stop : start <= stop;
    const uint64_t span = step > 0 ? (uint64_t)stop - (uint64_t)start
                                   : (uint64_t)start - (uint64_t)stop;
    const uint64_t stride = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    const uint64_t count = empty ? 0 : (span - 1) / stride + 1;
    if (count > INT64_MAX)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "range: %lld to %lld has too many numbers to "
                                "count", (long long)start, (long long)stop);
    CornuDataset *dataset = create_generator(&range_kind, &type, 1);
    if (!dataset) return cornu__null();
    dataset->count = (int64_t)count;
    dataset->range.start = start;
    dataset->range.step = step;
    return dataset;
}
