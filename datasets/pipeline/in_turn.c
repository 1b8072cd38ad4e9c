/* What the kinds of data sets share whose elements are found one after the other, and those that
 * call functions of the caller's. */
#include "dataset_internal.h"

#include <string.h>

#include "../../device/memory_internal.h"
#include "../../device/random.h"
#include "../../device/system/clock_internal.h"

/* Moves on to element `at`, which need not be made, as far as the kind can do that. */
static CornuStatus pass_over(CornuStage *stage, CornuSample at)
{
    const CornuDatasetKind *kind = stage->dataset->kind;
    while (kind->pass && !stage->ended && stage->place.index < at.index) {
        int64_t passed = at.index - stage->place.index;
        CORNU__TRY(kind->pass(stage, stage->place, &passed));
        if (!passed) break;
        stage->place.index += passed;
    }
    return CORNU_OK;
}

static CornuStatus make_next(CornuStage *stage, CornuSample at, void *const *to, int64_t *valid)
{
    const CornuDatasetKind *kind = stage->dataset->kind;
    while (!stage->ended && stage->place.index <= at.index) {
        CORNU__TRY(pass_over(stage, at));
        if (stage->ended) break;
        CORNU__TRY(kind->next(stage, stage->place, to, valid));
        stage->ended = !*valid;
        if (*valid) stage->place.index++;
    }
    if (stage->place.index <= at.index) *valid = 0;
    return CORNU_OK;
}

CornuStatus cornu__fetch_in_turn(CornuStage *stage, CornuSample at, void *const *to,
                                 int64_t *valid)
{
    *valid = 0;
    if (at.epoch > UINT32_MAX)
        return cornu__fail(CORNU_ERR_VALUE, "data set: epoch %lld, expected 0 to %lld",
                           (long long)at.epoch, (long long)UINT32_MAX);
    if (!stage->begun || stage->place.epoch != at.epoch || stage->place.index > at.index) {
        stage->begun = stage->ended = false;
        stage->place = (CornuSample){ at.epoch, 0 };
        CORNU__TRY(stage->dataset->kind->begin(stage, at.epoch));
    }
    const CornuStatus status = make_next(stage, at, to, valid);
    stage->begun = status == CORNU_OK;
    return status;
}

CornuStatus cornu__stage_fetch_timed(CornuStage *stage, CornuSample at, void *const *to,
                                     int64_t *valid)
{
    const double      begin = cornu__seconds();
    const CornuStatus status = stage->dataset->kind->fetch(stage, at, to, valid);
    stage->seconds += cornu__seconds() - begin;
    return status;
}

uint32_t cornu__sample_draw(uint64_t seed, uint32_t operation, CornuSample at)
{
    const uint64_t block = (uint64_t)at.index / 4;
    uint32_t       word[4];
    cornu_philox(seed, (uint32_t[]){ (uint32_t)block, (uint32_t)(block >> 32),
                                     (uint32_t)at.epoch, operation }, word);
    return word[at.index % 4];
}

CornuSample cornu__origin_unknown(const CornuDataset *dataset, CornuSample at, int64_t row)
{
    (void)dataset, (void)row;
    return (CornuSample){ at.epoch, -1 };
}

CornuSample cornu__origin_batch(const CornuDataset *dataset, CornuSample at, int64_t row)
{
    return (CornuSample){ at.epoch, at.index * dataset->batch_size + row };
}

void cornu__stage_arrays(const CornuStage *stage, void *const *at, CornuArray *arrays)
{
    const CornuDataset *dataset = stage->dataset;
    for (int c = 0; c < dataset->components; c++) {
        int64_t *extent = arrays[c].type.shape.extent;
        arrays[c] = cornu_array_from(at[c], dataset->type[c]);
        if (stage->trim.rows) extent[0] = stage->trim.rows;
        if (stage->trim.extent && dataset->open[c]) extent[1] = stage->trim.extent;
    }
}

bool cornu__dataset_is_open(const CornuDataset *dataset)
{
    bool is = false;
    for (int c = 0; c < dataset->components; c++) is = is || dataset->open[c];
    return is;
}

CornuStatus cornu__dataset_prepend(CornuDataset *dataset, CornuType type, const char *name)
{
    if (dataset->batch_size)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: the data set is batched; %s before batch",
                           name, name);
    if (dataset->components == CORNU_MAX_COMPONENTS)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: %d components, expected fewer", name,
                           dataset->components);
    const size_t n = (size_t)dataset->components++;
    memmove(dataset->type + 1, dataset->type, n * sizeof *dataset->type);
    memmove(dataset->bytes + 1, dataset->bytes, n * sizeof *dataset->bytes);
    return cornu__fail_prefix(cornu__dataset_set_type(dataset, 0, type), name);
}

CornuStatus cornu__fail_sample(CornuStatus status, const char *name, CornuSample at)
{
    if (status == CORNU_OK) return CORNU_OK;
    return cornu__fail(status, "%s: element %lld of epoch %lld: %s", name, (long long)at.index,
                       (long long)at.epoch,
                       cornu_error_status() == status ? cornu_error_message()
                                                      : cornu_status_text(status));
}
