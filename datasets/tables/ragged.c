#include "ragged.h"

#include "../../device/integer_internal.h"
#include "../../device/status_internal.h"

static bool is_list(CornuArray array)
{
    return array.type.shape.rank == 1 && !cornu_dtype_is_float(array.type.dtype) &&
           array.type.dtype != CORNU_BOOL;
}

static int64_t whole(CornuArray array, int64_t i)
{
    return array.type.dtype == CORNU_I64 ? ((const int64_t *)array.data)[i]
                                         : (int64_t)cornu_array_get(array, i);
}

static CornuStatus check_arrays(const CornuRaggedRowsConfig *config, const char *name)
{
    const CornuRagged *r = config->ragged;
    CornuText          a;
    if (!r || !is_list(r->offsets) || !is_list(r->indices) || r->offsets.type.shape.extent[0] < 1)
        return cornu__fail(CORNU_ERR_SHAPE, "%s: expected offsets of rows and the end of the last "
                           "one, and indices, as lists of whole numbers", name);
    if (config->length < 1 || config->limit < 1)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .length is %lld and .limit %lld, expected 1 or "
                           "more", name, (long long)config->length, (long long)config->limit);
    const int64_t   rows = r->offsets.type.shape.extent[0] - 1;
    const CornuType to = cornu_type(CORNU_I32, rows, config->length);
    const CornuType weights = cornu_type(CORNU_F32, rows, config->length);
    if (!cornu_type_equal(config->to.type, to) ||
        (config->weights_to.data && !cornu_type_equal(config->weights_to.type, weights)))
        return cornu__fail(CORNU_ERR_SHAPE, "%s: .to and .weights_to are of another type than %s "
                           "and f32 of that shape", name, cornu_type_print(&a, to));
    if (r->weights.data &&
        (r->weights.type.dtype != CORNU_F32 ||
         !cornu_shape_equal(r->weights.type.shape, r->indices.type.shape)))
        return cornu__fail(CORNU_ERR_SHAPE, "%s: the weights are %s, expected an f32 for each "
                           "index", name, cornu_type_print(&a, r->weights.type));
    return CORNU_OK;
}

static CornuStatus check_row(const CornuRaggedRowsConfig *config, const char *name, int64_t row)
{
    const CornuRagged *r = config->ragged;
    const int64_t count = r->indices.type.shape.extent[0];
    const int64_t first = whole(r->offsets, row), end = whole(r->offsets, row + 1);
    if (end < first)
        return cornu__fail(CORNU_ERR_VALUE, "%s: row %lld begins at offset %lld and ends at %lld, "
                           "expected ascending offsets", name, (long long)row, (long long)first,
                           (long long)end);
    if (first < 0 || end > count)
        return cornu__fail(CORNU_ERR_VALUE, "%s: row %lld has indices %lld to %lld, expected 0 to "
                           "%lld, as there are %lld", name, (long long)row, (long long)first,
                           (long long)end - 1, (long long)count - 1, (long long)count);
    if (end - first > config->length && !config->truncate)
        return cornu__fail(CORNU_ERR_VALUE, "%s: row %lld has %lld indices, expected at most %lld",
                           name, (long long)row, (long long)(end - first),
                           (long long)config->length);
    for (int64_t i = first; i < end; i++) {
        const int64_t index = whole(r->indices, i);
        if (index < 0 || index >= config->limit)
            return cornu__fail(CORNU_ERR_VALUE, "%s: index %lld in row %lld, expected 0 to %lld",
                               name, (long long)index, (long long)row,
                               (long long)config->limit - 1);
    }
    return CORNU_OK;
}

/* All that is wrong is found before anything is written. */
static CornuStatus check_ragged(const CornuRaggedRowsConfig *config, const char *name)
{
    CORNU__TRY(check_arrays(config, name));
    const CornuRagged *r = config->ragged;
    const int64_t      rows = r->offsets.type.shape.extent[0] - 1;
    const int64_t      count = r->indices.type.shape.extent[0];
    for (int64_t row = 0; row < rows; row++) CORNU__TRY(check_row(config, name, row));
    if (whole(r->offsets, 0) != 0 || whole(r->offsets, rows) != count)
        return cornu__fail(CORNU_ERR_VALUE, "%s: offsets go from %lld to %lld, expected 0 to %lld, "
                           "the number of indices", name, (long long)whole(r->offsets, 0),
                           (long long)whole(r->offsets, rows), (long long)count);
    return CORNU_OK;
}

CornuStatus cornu_ragged_rows_from(const CornuRaggedRowsConfig *config)
{
    CORNU__TRY(check_ragged(config, config->name ? config->name : "ragged"));
    const CornuRagged *r = config->ragged;
    const int64_t      rows = config->to.type.shape.extent[0], length = config->length;
    int32_t           *to = config->to.data;
    float             *weights_to = config->weights_to.data;
    const float       *weights = r->weights.data;
    for (int64_t row = 0; row < rows; row++) {
        const int64_t first = whole(r->offsets, row);
        const int64_t count = smaller(whole(r->offsets, row + 1) - first, length);
        for (int64_t i = 0; i < length; i++) {
            const int64_t at = row * length + i;
            to[at] = i < count ? (int32_t)whole(r->indices, first + i) : -1;
            if (!weights_to) continue;
            weights_to[at] = i >= count ? 0.0f : weights ? weights[first + i] : 1.0f;
        }
    }
    return CORNU_OK;
}
