#include "sequences.h"

#include <string.h>

#include "../../device/memory_internal.h"
#include "../../device/status_internal.h"

static const struct { const char *name; CornuDtype dtype; } dtypes[] = {
    { "int32", CORNU_I32 }, { "int64", CORNU_I64 }, { "uint32", CORNU_U32 },
    { "uint8", CORNU_U8 }, { "bool", CORNU_BOOL }, { "float32", CORNU_F32 },
    { "float64", CORNU_F64 },
};

static CornuStatus find_dtype(const char *name, CornuDtype *dtype)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (!strcmp(name ? name : "int32", dtypes[i].name)) {
            *dtype = dtypes[i].dtype;
            return CORNU_OK;
        }
    return cornu__fail(CORNU_ERR_DTYPE, "pad_sequences: .dtype is \"%.40s\", expected int32, "
                       "int64, uint32, uint8, bool, float32 or float64", name);
}

static CornuStatus check_pad(const CornuPadSequencesConfig *config)
{
    if (!config->sequences || config->count < 1 || !config->to)
        return cornu__fail(CORNU_ERR_ARGUMENT, "pad_sequences: %s", !config->sequences
                           ? ".sequences is NULL" : !config->to ? ".to is NULL"
                                                                : ".count is below 1");
    if (config->maxlen < 0 || config->maxlen > INT32_MAX)
        return cornu__fail(CORNU_ERR_ARGUMENT, "pad_sequences: .maxlen is %lld, expected 1 to %d",
                           (long long)config->maxlen, INT32_MAX);
    if ((unsigned)config->padding > CORNU_POST || (unsigned)config->truncating > CORNU_POST)
        return cornu__fail(CORNU_ERR_ARGUMENT, "pad_sequences: .padding is %d and .truncating %d, "
                           "expected CORNU_PRE or CORNU_POST", (int)config->padding,
                           (int)config->truncating);
    for (int64_t i = 0; i < config->count; i++) {
        const CornuArray *sequence = &config->sequences[i];
        if (sequence->type.shape.rank < 1 || (!sequence->data && sequence->type.shape.extent[0]))
            return cornu__fail(CORNU_ERR_SHAPE, "pad_sequences: sequence %lld is %s, expected (T) "
                               "or (T, …)", (long long)i, sequence->data ? "()" : "NULL");
    }
    return CORNU_OK;
}

/* The type of the result; the first sequence that is not empty gives the shape of a step. */
static CornuStatus find_type(const CornuPadSequencesConfig *config, CornuType *type)
{
    const CornuShape *step = NULL;
    int64_t           longest = 0;
    CornuText         a, b;
    for (int64_t i = 0; i < config->count; i++) {
        const CornuShape *shape = &config->sequences[i].type.shape;
        CornuShape        like = *shape;
        if (shape->extent[0] == 0) continue;
        if (!step) step = shape;
        if (shape->extent[0] > longest) longest = shape->extent[0];
        like.extent[0] = step->extent[0];
        if (!cornu_shape_equal(like, *step))
            return cornu__fail(CORNU_ERR_SHAPE, "pad_sequences: sequence %lld is %s, but others "
                               "are %s; expected all axes after the first to be equal",
                               (long long)i, cornu_shape_print(&a, *shape),
                               cornu_shape_print(&b, *step));
    }
    if (!longest && !config->maxlen)
        return cornu__fail(CORNU_ERR_SHAPE, "pad_sequences: all sequences are empty; expected "
                           ".maxlen to be given");
    if (step && step->rank == CORNU_MAX_RANK)
        return cornu__fail(CORNU_ERR_SHAPE, "pad_sequences: sequences have %d axes, expected at "
                           "most %d", step->rank, CORNU_MAX_RANK - 1);
    CornuShape shape = { .rank = step ? step->rank + 1 : 2 };
    shape.extent[0] = config->count;
    shape.extent[1] = config->maxlen ? config->maxlen : longest;
    for (int k = 2; k < shape.rank; k++) shape.extent[k] = step->extent[k - 1];
    CORNU__TRY(find_dtype(config->dtype, &type->dtype));
    type->shape = shape;
    return cornu_type_check(*type);
}

/* Stores a value or fails if it overflows. Integer dtypes truncate fractions, as NumPy's do. */
static CornuStatus put_value(CornuArray to, int64_t at, double value, const char *what, int64_t i)
{
    cornu_array_set(to, at, value);
    const double held = cornu_array_get(to, at);
    if (cornu_dtype_is_float(to.type.dtype) || (held - value < 1.0 && value - held < 1.0))
        return CORNU_OK;
    return cornu__fail(CORNU_ERR_VALUE, "pad_sequences: %s %lld has %.17g, which overflows %s",
                       what, (long long)i, value, cornu_dtype_name(to.type.dtype));
}

static CornuStatus pad_rows(const CornuPadSequencesConfig *config, CornuArray to)
{
    const int64_t maxlen = to.type.shape.extent[1];
    const int64_t row = cornu_type_count(to.type) / config->count, step = row / maxlen;
    for (int64_t i = 0; i < config->count; i++) {
        const CornuArray from = config->sequences[i];
        const int64_t    length = from.type.shape.extent[0];
        const int64_t    kept = length < maxlen ? length : maxlen;
        const int64_t    cut = config->truncating == CORNU_PRE ? length - kept : 0;
        const int64_t    gap = config->padding == CORNU_PRE ? maxlen - kept : 0;
        for (int64_t k = 0; k < row; k++) {
            const int64_t t = k / step - gap;
            const bool    inside = t >= 0 && t < kept;
            const double  value = inside ? cornu_array_get(from, (t + cut) * step + k % step)
                                         : config->value;
            CORNU__TRY(put_value(to, i * row + k, value, inside ? "sequence" : ".value in row", i));
        }
    }
    return CORNU_OK;
}

CornuStatus cornu_pad_sequences_from(const CornuPadSequencesConfig *config)
{
    CornuType type;
    CORNU__TRY(check_pad(config));
    CORNU__TRY(find_type(config, &type));
    const CornuArray to = cornu_array_from(cornu__allocate(cornu_type_bytes(type), 1), type);
    if (!to.data) return CORNU_ERR_MEMORY;
    const CornuStatus status = pad_rows(config, to);
    if (status) cornu__release(to.data);
    else *config->to = to;
    return status;
}
