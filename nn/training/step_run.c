/* Feeding a recorded step (step.c) with a batch, and running it. */
#include <math.h>

#include "training_internal.h"

/* An array of the shards' parts: feeds and fetches have a leading axis over shards. */
static CornuArray parts(const CornuStep *step, CornuType batch, const void *data)
{
    const CornuType part = cornu__shard_type(step, batch);
    CornuType       type = { .dtype = part.dtype, .shape = { .rank = part.shape.rank + 1 } };
    type.shape.extent[0] = step->shards;
    for (int i = 0; i < part.shape.rank; i++) type.shape.extent[i + 1] = part.shape.extent[i];
    return cornu_array_from((void *)(uintptr_t)data, type);
}

/* Feeds rows from row `first` on, counted over all shards. */
static CornuStatus feed_rows(CornuStep *step, CornuTensor *input, CornuType type, int64_t first,
                             int64_t rows, const void *data)
{
    if (step->pipeline) return step->runs->feed(step, input, type, first, rows, data);
    type.shape.extent[0] = 1;
    const int64_t row = cornu_type_count(type);
    type.shape.extent[0] = rows;
    return cornu_graph_feed_part(input, first * row,
                                 cornu_array_from((void *)(uintptr_t)data, type));
}

/* Feeds an array of the batch's type, its valid rows split over the shards: those of this process'
 * shards, as the others may not have been fetched. */
static CornuStatus feed(CornuStep *step, const CornuShardRows *split, CornuTensor *input,
                        CornuType type, CornuArray array)
{
    CornuText a, b;
    if (!cornu_type_equal(array.type, type))
        return cornu__fail(CORNU_ERR_SHAPE, "a batch of %s, expected %s",
                           cornu_type_print(&a, array.type), cornu_type_print(&b, type));
    const CornuShare own = step->own;
    if (split->count[step->shards - 1] == step->rows)   /* all shards are full */
        return cornu__share_is_whole(own) && !step->pipeline
             ? cornu_graph_feed(input, parts(step, type, array.data))
             : feed_rows(step, input, type, own.first * step->rows, own.count * step->rows,
                         (const char *)array.data + (size_t)split->first[own.first] *
                                                        cornu__row_bytes(type));
    for (int s = own.first; s < own.first + own.count; s++) {
        const int64_t once = split->count[s] > 0 ? split->count[s] : 1;
        for (int64_t place = 0; place < step->rows; place += once) {
            const int64_t rest = step->rows - place, row = cornu__shard_row(split, s, place);
            CORNU__TRY(feed_rows(step, input, type, s * step->rows + place,
                                 once < rest ? once : rest,
                                 (const char *)array.data + (size_t)row * cornu__row_bytes(type)));
        }
    }
    return CORNU_OK;
}

static CornuStatus feed_counts(CornuStep *step, const CornuShardRows *split, int64_t valid)
{
    const CornuType i64 = cornu_scalar(CORNU_I64), each = cornu_type(CORNU_I64, step->shards);
    int64_t         first[CORNU_MAX_SHARDS];
    if (valid == step->fed_count && (!step->draws || step->ahead == step->fed_ahead))
        return CORNU_OK;
    if (step->pipeline) return step->runs->feed_counts(step, split, valid);
    CORNU__TRY(cornu_graph_feed(step->count,
                                cornu_array_from((void *)(uintptr_t)split->count, each)));
    for (int i = 0; i < step->shards; i++)
        first[i] = split->first[i] + (step->draws ? step->ahead : 0);
    CORNU__TRY(cornu_graph_feed(step->position, cornu_array_from(first, each)));
    CORNU__TRY(cornu_graph_feed(step->total, cornu_array_from(&valid, i64)));
    step->fed_count = valid;
    step->fed_ahead = step->ahead;
    return CORNU_OK;
}

/* Fractions are dropped, as by Keras: masks of classes that were resized have them. The device
 * would convert NaN to any number. */
CornuStatus cornu__check_classes(CornuArray y, int64_t first, int64_t count)
{
    const int64_t all = cornu_type_count(y.type), batch = y.type.shape.extent[0];
    const int64_t each = batch > 0 ? all / batch : 0;
    for (int64_t i = first * each; i < (first + count) * each; i++) {
        const double label = cornu_array_get(y, i);
        if (fabs(label) <= INT32_MAX) continue;
        return cornu__fail(CORNU_ERR_VALUE, "label %g in row %lld, expected a whole number, "
                           "the class", label, (long long)(i / each));
    }
    return CORNU_OK;
}

static CornuStatus feed_arrays(CornuStep *step, const CornuShardRows *split,
                               const CornuArrays *arrays, int64_t valid)
{
    const CornuOwnRows own = cornu__own_rows(step->own, valid);
    for (int i = 0; i < step->x_count; i++)
        CORNU__TRY(feed(step, split, step->x[i], step->x_types[i], arrays->x[i]));
    for (int i = 0; i < step->y_count && step->y[i]; i++) {
        if (step->whole[i]) CORNU__TRY(cornu__check_classes(arrays->y[i], own.first, own.count));
        CORNU__TRY(feed(step, split, step->y[i], step->y_types[i], arrays->y[i]));
    }
    for (int i = 0; i < step->weight_count; i++)
        CORNU__TRY(feed(step, split, step->weights[i], step->weight_types[i],
                        arrays->weights[i]));
    return CORNU_OK;
}

/* The numbers of rows of data on the device. */
static CornuStatus feed_numbers(CornuStep *step, const CornuShardRows *split, CornuArray rows)
{
    for (int i = 0; i < step->y_count && step->y[i]; i++)
        if (step->whole[i])
            CORNU__TRY(step->resident->check_classes(step->resident, step->x_count + i));
    return feed(step, split, step->row_numbers, rows.type, rows);
}

CornuStatus cornu__step_feed(CornuStep *step, const CornuArrays *arrays, int64_t valid)
{
    const int64_t batch = step->x_types[0].shape.extent[0];
    for (int i = 0; i < step->x_count && cornu__step_runs_once(step); i++)
        CORNU__TRY(cornu_graph_feed(step->x[i], arrays->x[i]));
    if (cornu__step_runs_once(step)) return CORNU_OK;
    if (step->together && valid != batch)
        return cornu__fail(CORNU_ERR_SHAPE, "a batch of %lld valid rows of %lld, but its rows "
                           "depend on each other: expected full batches, as drop_remainder gives",
                           (long long)valid, (long long)batch);
    if (step->stateful && valid != batch)
        return cornu__fail(CORNU_ERR_SHAPE, "a batch of %lld valid rows of %lld, but a layer is "
                           "stateful: expected full batches, as drop_remainder gives",
                           (long long)valid, (long long)batch);
    const CornuShardRows split = cornu__shard_rows(step->shards, step->rows, valid);
    CORNU__TRY(step->resident ? feed_numbers(step, &split, arrays->rows)
                              : feed_arrays(step, &split, arrays, valid));
    const CornuStatus status = feed_counts(step, &split, valid);
    step->ahead = 0;
    return status;
}

CornuStatus cornu__step_run(CornuStep *step, CornuArray *to)
{
    if (!cornu__step_predicts(step))
        return step->pipeline ? step->runs->run(step, NULL) : cornu_run(step->graph, NULL, 0, NULL);
    if (cornu__step_runs_once(step))
        return cornu_run(step->graph, step->predictions, step->y_count, to);
    const CornuShardRows split = cornu__shard_rows(step->shards, step->rows, step->fed_count);
    const bool direct = cornu__shard_rows_contiguous(&split) &&
                        step->shards * step->rows == step->outputs[0].shape.extent[0];
    CornuArray fetched[CORNU_MAX_MODEL_TENSORS];
    for (int i = 0; i < step->y_count; i++)
        fetched[i] = parts(step, step->outputs[i], direct ? to[i].data : step->staging[i]);
    CORNU__TRY(step->pipeline
               ? step->runs->run(step, fetched)
               : cornu_run(step->graph, step->predictions, step->y_count, fetched));
    for (int i = 0; i < step->y_count && !direct; i++)
        cornu__shard_rows_gather(&split, cornu__row_bytes(step->outputs[i]), step->staging[i],
                                 to[i].data);
    return CORNU_OK;
}
