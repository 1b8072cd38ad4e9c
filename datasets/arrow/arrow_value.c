/* Values of columns as components of elements. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../device/memory_internal.h"
#include "arrow_internal.h"

/* ---- What a column can become ---- */

static CornuStatus unfit(const struct ArrowSchema *schema, const char *expected)
{
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "the column is of Arrow's format \"%.20s\"%s, "
                       "expected %s", schema->format ? schema->format : "",
                       schema->dictionary ? " with a dictionary" : "", expected);
}

/* The values themselves: of a dictionary those that its indices stand for. */
static const struct ArrowSchema *values_of(const struct ArrowSchema *schema)
{
    return schema->dictionary ? schema->dictionary : schema;
}

static bool is_bytes(CornuArrowKind kind)
{
    return kind == CORNU__ARROW_BYTES || kind == CORNU__ARROW_FIXED_BYTES;
}

/* Below lists there are numbers, or the indices of a dictionary of strings. */
static const struct ArrowSchema *below_lists(const struct ArrowSchema *schema)
{
    for (int depth = 0; depth < CORNU__ARROW_DEPTH; depth++) {
        const CornuArrowKind kind = cornu__arrow_type(schema->format).kind;
        if ((kind != CORNU__ARROW_LIST && kind != CORNU__ARROW_FIXED_LIST) || schema->dictionary)
            return schema;
        schema = schema->children[0];
    }
    return schema;
}

CornuStatus cornu__arrow_fits(const struct ArrowSchema *schema, const CornuFeatureRow *row)
{
    const CornuArrowKind whole = cornu__arrow_type(values_of(schema)->format).kind;
    if (row->feature.kind >= CORNU_FEATURE_RAW)
        return is_bytes(whole) ? CORNU_OK : unfit(schema, "strings or bytes");
    const struct ArrowSchema *leaf = below_lists(schema);
    const CornuArrowKind      kind = cornu__arrow_type(leaf->format).kind;
    const CornuArrowKind      stands_for = cornu__arrow_type(values_of(leaf)->format).kind;
    if (kind > CORNU__ARROW_FLOAT || values_of(leaf)->dictionary ||
        (stands_for > CORNU__ARROW_FLOAT && !is_bytes(stands_for)))
        return unfit(leaf, "numbers; for strings .kind is BYTES, for images IMAGE");
    if (stands_for != CORNU__ARROW_FLOAT || cornu_dtype_is_float(row->type.dtype)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "the column is of floats, expected whole numbers for "
                       "%s", cornu_dtype_name(row->type.dtype));
}

static CornuDtype dtype_of(CornuArrowType type)
{
    switch (type.kind) {
    case CORNU__ARROW_BOOL:  return CORNU_BOOL;
    case CORNU__ARROW_FLOAT: return type.size == 8 ? CORNU_F64 : CORNU_F32;
    case CORNU__ARROW_UINT:
        return type.size == 1 ? CORNU_U8 : type.size == 4 ? CORNU_U32
             : type.size == 8 ? CORNU_I64 : CORNU_I32;
    default: return type.size == 8 ? CORNU_I64 : CORNU_I32;
    }
}

CornuStatus cornu__arrow_infer(const struct ArrowSchema *schema, CornuFeature *feature)
{
    const struct ArrowSchema *at = schema;
    *feature = (CornuFeature){ .name = schema->name };
    while (cornu__arrow_type(at->format).kind == CORNU__ARROW_FIXED_LIST && at->n_children == 1) {
        if (feature->shape.rank == CORNU_MAX_RANK) return unfit(schema, "fewer axes");
        feature->shape.extent[feature->shape.rank++] = cornu__arrow_type(at->format).size;
        at = at->children[0];
    }
    const struct ArrowSchema *values = values_of(at);
    CornuArrowType            type = cornu__arrow_type(values->format);
    if (at->dictionary && is_bytes(type.kind)) type = (CornuArrowType){ CORNU__ARROW_INT, 4 };
    if (type.kind > CORNU__ARROW_FLOAT)
        return unfit(schema, "numbers or lists of a fixed size; others need .features, which say "
                     "their shape");
    feature->dtype = dtype_of(type);
    return CORNU_OK;
}

/* ---- Values ---- */

typedef struct {
    const CornuFeatureRow *row;
    void                  *to;
    int64_t                count, most;    /* those beyond the component are counted */
    CornuMissing           missing;
    bool                   null;           /* one of them is */
} Values;

static bool is_null(const struct ArrowArray *array, int64_t at)
{
    const uint8_t *bits = array->null_count ? array->buffers[0] : NULL;
    return bits && !(bits[at / 8] >> at % 8 & 1);
}

static double half(uint16_t bits)
{
    const int    exponent = bits >> 10 & 31;
    const double fraction = bits & 1023, sign = bits >> 15 ? -1.0 : 1.0;
    if (exponent == 31) return fraction != 0.0 ? (double)NAN : sign * (double)INFINITY;
    return sign * (exponent ? ldexp(1024.0 + fraction, exponent - 25) : ldexp(fraction, -24));
}

static int64_t whole_at(const void *values, CornuArrowType type, int64_t at)
{
    const bool is_signed = type.kind == CORNU__ARROW_INT;
    switch (type.size) {
    case 0: return ((const uint8_t *)values)[at / 8] >> at % 8 & 1;
    case 1: return is_signed ? ((const int8_t *)values)[at] : ((const uint8_t *)values)[at];
    case 2: return is_signed ? ((const int16_t *)values)[at] : ((const uint16_t *)values)[at];
    case 4: return is_signed ? ((const int32_t *)values)[at]
                             : (int64_t)((const uint32_t *)values)[at];
    default: return ((const int64_t *)values)[at];
    }
}

static double float_at(const void *values, CornuArrowType type, int64_t at)
{
    if (type.size == 2) return half(((const uint16_t *)values)[at]);
    return type.size == 4 ? (double)((const float *)values)[at] : ((const double *)values)[at];
}

static CornuStatus put_number(Values *values, const void *from, CornuArrowType type, int64_t at)
{
    const CornuDtype dtype = values->row->type.dtype;
    const int64_t    i = values->count++;
    if (i >= values->most) return CORNU_OK;
    const bool    floats = type.kind == CORNU__ARROW_FLOAT;
    const int64_t whole = floats ? 0 : whole_at(from, type, at);
    if (type.kind == CORNU__ARROW_UINT && type.size == 8 && whole < 0)
        return cornu__fail(CORNU_ERR_VALUE, "value %lld is %llu, expected at most %lld",
                           (long long)i, (unsigned long long)whole, (long long)INT64_MAX);
    if (!cornu_dtype_is_float(dtype)) return cornu__feature_integer(dtype, whole, values->to, i);
    const double value = floats ? float_at(from, type, at) : (double)whole;
    if (dtype == CORNU_F32) ((float *)values->to)[i] = (float)value;
    else if (dtype == CORNU_F64) ((double *)values->to)[i] = value;
    else cornu_array_set(cornu_array_from(values->to, values->row->type), i, value);
    return CORNU_OK;
}

/* NaN in place of a null, or the mark that there is one. */
static CornuStatus put_null(Values *values)
{
    const double nan = NAN;
    if (values->missing == CORNU_MISSING_KEPT && cornu_dtype_is_float(values->row->type.dtype))
        return put_number(values, &nan, (CornuArrowType){ CORNU__ARROW_FLOAT, 8 }, 0);
    values->count++;
    values->null = true;
    return CORNU_OK;
}

/* The index that an element of a dictionary's column has. */
static CornuStatus index_at(const struct ArrowSchema *schema, const struct ArrowArray *array,
                            int64_t at, int64_t *index)
{
    *index = whole_at(array->buffers[1], cornu__arrow_type(schema->format), at);
    if (*index >= 0 && *index < array->dictionary->length) return CORNU_OK;
    return cornu__fail(CORNU_ERR_FORMAT, "is index %lld of a dictionary of %lld", (long long)*index,
                       (long long)array->dictionary->length);
}

/* Elements first to first + count of an array, after its offset. */
static CornuStatus put_values(const struct ArrowSchema *schema, const struct ArrowArray *array,
                              int64_t first, int64_t count, Values *values)
{
    const CornuArrowType type = cornu__arrow_type(schema->format);
    for (int64_t i = first; i < first + count; i++) {
        const int64_t at = array->offset + i;
        int64_t       begin = at * type.size, length = type.size, index;
        CornuStatus   status = CORNU_OK;
        if (is_null(array, at)) {
            status = put_null(values);
        } else if (type.kind <= CORNU__ARROW_FLOAT && array->dictionary &&
                   !is_bytes(cornu__arrow_type(schema->dictionary->format).kind)) {
            status = index_at(schema, array, at, &index);
            if (!status)
                status = put_values(schema->dictionary, array->dictionary, index, 1, values);
        } else if (type.kind <= CORNU__ARROW_FLOAT) {
            status = put_number(values, array->buffers[1], type, at);
        } else {
            if (type.kind == CORNU__ARROW_LIST) {
                const void *offsets = array->buffers[1];
                const bool  narrow = type.size == 4;
                begin = narrow ? ((const int32_t *)offsets)[at] : ((const int64_t *)offsets)[at];
                length = (narrow ? ((const int32_t *)offsets)[at + 1]
                                 : ((const int64_t *)offsets)[at + 1]) - begin;
            }
            status = put_values(schema->children[0], array->children[0], begin, length, values);
        }
        if (status) return status;
    }
    return CORNU_OK;
}

/* The bytes of an element, and how many. */
static size_t bytes_at(const struct ArrowSchema *schema, const struct ArrowArray *array,
                       int64_t index, const unsigned char **bytes)
{
    const CornuArrowType type = cornu__arrow_type(schema->format);
    const int64_t        at = array->offset + index;
    if (type.kind == CORNU__ARROW_FIXED_BYTES) {
        *bytes = (const unsigned char *)array->buffers[1] + at * type.size;
        return (size_t)type.size;
    }
    const void   *offsets = array->buffers[1];
    const bool    narrow = type.size == 4;
    const int64_t begin = narrow ? ((const int32_t *)offsets)[at] : ((const int64_t *)offsets)[at];
    const int64_t end = narrow ? ((const int32_t *)offsets)[at + 1]
                               : ((const int64_t *)offsets)[at + 1];
    *bytes = (array->buffers[2] ? (const unsigned char *)array->buffers[2]
                                : (const unsigned char *)"") + begin;
    return (size_t)(end - begin);
}

static CornuStatus put_bytes(const struct ArrowSchema *schema, const struct ArrowArray *array,
                             int64_t index, const CornuFeatureRow *row, void *to, int64_t *used)
{
    const unsigned char *bytes;
    const size_t         size = bytes_at(schema, array, index, &bytes);
    return cornu__feature_bytes(row, bytes, size, to, used);
}

/* Of a column that is not null there. */
static CornuStatus put_column(const struct ArrowSchema *schema, const struct ArrowArray *array,
                              int64_t index, Values *values, void *const *to)
{
    const CornuFeatureRow *row = values->row;
    int64_t                used = 0, fitting;
    if (row->feature.kind >= CORNU_FEATURE_RAW) {
        if (schema->dictionary) {
            CORNU__TRY(index_at(schema, array, array->offset + index, &index));
            schema = schema->dictionary;
            array = array->dictionary;
        }
        values->null = is_null(array, array->offset + index);
        if (values->null) return CORNU_OK;
        CORNU__TRY(put_bytes(schema, array, index, row, values->to, &used));
    } else {
        CORNU__TRY(put_values(schema, array, index, 1, values));
        if (values->null) return CORNU_OK;
        CORNU__TRY(cornu__feature_fits(row, values->count, &fitting));
        if (row->feature.kind == CORNU_FEATURE_VAR && fitting)
            used = fitting / (cornu_type_count(row->type) / row->type.shape.extent[0]);
    }
    cornu__feature_end(row, used, to);
    return CORNU_OK;
}

CornuStatus cornu__arrow_put(const struct ArrowSchema *schema, const struct ArrowArray *batch,
                             const CornuArrowPath *path, int64_t index, const CornuFeatureRow *row,
                             CornuMissing missing, void *const *to, bool *null)
{
    Values values = { .row = row, .to = to[row->component], .missing = missing,
                      .most = cornu_type_count(row->type) };
    bool   absent = false;
    for (int i = 0; i < path->depth; i++) {
        index += batch->offset;
        batch = batch->children[path->child[i]];
        schema = schema->children[path->child[i]];
        absent = absent || is_null(batch, batch->offset + index);
    }
    *null = false;
    /* NaN stands for a number, also for all of a list of a fixed size. */
    const bool replaced = row->feature.default_value || cornu__feature_is_padded(row);
    if (absent && replaced) return cornu__feature_missing(row, to);
    if (absent && missing == CORNU_MISSING_KEPT && row->feature.kind == CORNU_FEATURE_FIXED) {
        for (int64_t i = 0; i < values.most; i++) CORNU__TRY(put_null(&values));
        *null = values.null;
        return CORNU_OK;
    }
    *null = absent;
    if (absent) return CORNU_OK;
    CORNU__TRY(put_column(schema, batch, index, &values, to));
    *null = values.null;
    if (!values.null || !row->feature.default_value) return CORNU_OK;
    *null = false;
    return cornu__feature_missing(row, to);
}

/* ---- Fields of tables ---- */

bool cornu__arrow_is_field(const struct ArrowSchema *schema)
{
    const CornuArrowKind kind = cornu__arrow_type(values_of(schema)->format).kind;
    return !values_of(schema)->dictionary && (kind <= CORNU__ARROW_FLOAT || is_bytes(kind));
}

/* Copies a string, which a NUL in it ends. */
static CornuStatus put_string(CornuArrowString *string, const void *bytes, size_t size)
{
    if (size >= string->space) {
        cornu__release(string->bytes);
        string->space = 0;
        string->bytes = cornu__allocate(2 * size + 1, 1);
        if (!string->bytes) return CORNU_ERR_MEMORY;
        string->space = 2 * size + 1;
    }
    if (size) memcpy(string->bytes, bytes, size);
    string->bytes[size] = '\0';
    return CORNU_OK;
}

static CornuStatus put_number_field(const void *values, CornuArrowType type, int64_t at,
                                    CornuArrowString *string, CornuField *field)
{
    char          text[40] = "";
    const int64_t whole = type.kind == CORNU__ARROW_FLOAT ? 0 : whole_at(values, type, at);
    field->number = type.kind == CORNU__ARROW_FLOAT ? float_at(values, type, at)
                  : type.kind == CORNU__ARROW_UINT ? (double)(uint64_t)whole : (double)whole;
    field->is_number = !isnan(field->number);
    if (field->is_number) snprintf(text, sizeof text, "%.17g", field->number);
    return put_string(string, text, strlen(text));
}

CornuStatus cornu__arrow_field(const struct ArrowSchema *schema, const struct ArrowArray *array,
                               int64_t index, CornuArrowString *string, CornuField *field)
{
    const unsigned char *bytes = NULL;
    size_t               size = 0;
    CornuStatus          status;
    *field = (CornuField){ .number = NAN };
    const bool null = is_null(array, array->offset + index);
    if (!null && schema->dictionary) {
        CORNU__TRY(index_at(schema, array, array->offset + index, &index));
        return cornu__arrow_field(schema->dictionary, array->dictionary, index, string, field);
    }
    const CornuArrowType type = cornu__arrow_type(schema->format);
    if (!null && !is_bytes(type.kind)) {
        status = put_number_field(array->buffers[1], type, array->offset + index, string, field);
    } else {
        if (!null) size = bytes_at(schema, array, index, &bytes);
        status = put_string(string, bytes, size);
    }
    field->text = string->bytes;
    return status;
}
