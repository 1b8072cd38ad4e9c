#include "example_internal.h"

#include <stdio.h>

static CornuStatus damaged(const char *what)
{
    return cornu__fail(CORNU_ERR_FORMAT, "is not a tf.train.Example: %s is damaged", what);
}

/* ---- Numbers ---- */

static const char *const lists[] = { "no list", "bytes_list", "float_list", "int64_list" };

/* A list's values are in one field that is packed, in one field each, or in some of both. */
static CornuStatus next_values(CornuFields *list, CornuProtobufKind kind, CornuFields *values,
                               CornuProtobufField *field, bool *more)
{
    while ((*more = cornu__next_field(list, field))) {
        if (field->field != 1) continue;
        *values = cornu__fields(field->bytes, field->size);
        if (field->kind == kind || field->kind == CORNU_PROTOBUF_BYTES) return CORNU_OK;
        return damaged("a list of numbers");
    }
    return list->failed ? damaged("a list of numbers") : CORNU_OK;
}

static CornuStatus count_values(CornuFields list, CornuProtobufKind kind, int64_t *count)
{
    CornuProtobufField field;
    CornuFields        values;
    bool               more;
    *count = 0;
    for (;;) {
        CORNU__TRY(next_values(&list, kind, &values, &field, &more));
        if (!more) return CORNU_OK;
        const int64_t here = kind == CORNU_PROTOBUF_FIXED32 && field.kind != kind &&
                             field.size % 4 == 0 ? (int64_t)(field.size / 4)
                                                 : cornu__count_numbers(&field, kind);
        if (here < 0) return damaged("a list of numbers");
        *count += here;
    }
}

static CornuStatus store_number(CornuProtobufKind kind, CornuDtype dtype, uint64_t bits, void *to,
                                int64_t i)
{
    if (kind != CORNU_PROTOBUF_FIXED32)
        return cornu__feature_integer(dtype, (int64_t)bits, to, i);
    if (dtype == CORNU_F64) ((double *)to)[i] = cornu__float_of(bits);
    else ((float *)to)[i] = cornu__float_of(bits);
    return CORNU_OK;
}

/* The first numbers of a list of this kind, at most `most`. */
static CornuStatus store_values(CornuFields list, CornuProtobufKind kind, int64_t most,
                                CornuDtype dtype, void *to)
{
    CornuProtobufField field;
    CornuFields        values;
    bool               more;
    for (int64_t i = 0; i < most;) {
        CORNU__TRY(next_values(&list, kind, &values, &field, &more));
        if (!more) break;
        const bool alone = field.kind == kind;
        uint64_t   bits = field.bits;
        while (i < most && (alone || cornu__next_number(&values, kind, &bits))) {
            CORNU__TRY(store_number(kind, dtype, bits, to, i++));
            if (alone) break;
        }
    }
    return CORNU_OK;
}

static CornuStatus store_numbers(const CornuFeatureRow *row, int kind, CornuFields list, void *to,
                                 int64_t *used)
{
    const CornuDtype dtype = row->type.dtype;
    const bool       floats = cornu_dtype_is_float(dtype);
    const int        wanted = floats ? CORNU__FLOAT_LIST : CORNU__INT64_LIST;
    int64_t          count, fitting;
    const CornuProtobufKind each = floats ? CORNU_PROTOBUF_FIXED32 : CORNU_PROTOBUF_VARINT;
    if (kind != wanted)
        return cornu__fail(CORNU_ERR_FORMAT, "is %s, expected %s for %s", lists[kind],
                           lists[wanted], cornu_dtype_name(dtype));
    CORNU__TRY(count_values(list, each, &count));
    CORNU__TRY(cornu__feature_fits(row, count, &fitting));
    CORNU__TRY(store_values(list, each, fitting, dtype, to));
    *used = 0;
    if (row->feature.kind == CORNU_FEATURE_VAR && fitting)
        *used = fitting / (cornu_type_count(row->type) / row->type.shape.extent[0]);
    return CORNU_OK;
}

/* ---- Features ---- */

/* The one string of a list. */
static CornuStatus find_string(CornuFields list, CornuProtobufField *string)
{
    CornuProtobufField field;
    int64_t            count = 0;
    while (cornu__next_field(&list, &field)) {
        if (field.field != 1) continue;
        if (field.kind != CORNU_PROTOBUF_BYTES) return damaged("a list of strings");
        *string = field;
        count++;
    }
    if (list.failed) return damaged("a list of strings");
    if (count == 1) return CORNU_OK;
    return cornu__fail(CORNU_ERR_FORMAT, "has %lld strings, expected one", (long long)count);
}

/* A Feature, written to `to`. *there: whether it has values; one without is as one that is
 * missing. */
static CornuStatus store_feature(const CornuFeatureRow *row, const CornuProtobufField *feature,
                                 void *to, int64_t *used, bool *there)
{
    CornuFields        fields = cornu__fields(feature->bytes, feature->size);
    CornuProtobufField field, list = { .field = 0 }, string = { .field = 0 };
    *there = false;
    while (cornu__next_field(&fields, &field)) {
        if (field.field < CORNU__BYTES_LIST || field.field > CORNU__INT64_LIST) continue;
        if (field.kind != CORNU_PROTOBUF_BYTES) return damaged("a feature");
        list = field;
    }
    if (fields.failed) return damaged("a feature");
    if (!list.field) return CORNU_OK;
    *there = true;
    const CornuFields values = cornu__fields(list.bytes, list.size);
    if (row->feature.kind <= CORNU_FEATURE_VAR)
        return store_numbers(row, (int)list.field, values, to, used);
    if (list.field != CORNU__BYTES_LIST)
        return cornu__fail(CORNU_ERR_FORMAT, "is %s, expected bytes_list", lists[list.field]);
    CORNU__TRY(find_string(values, &string));
    return cornu__feature_bytes(row, string.bytes, string.size, to, used);
}

/* A Feature of an Example, or of a context. */
static CornuStatus read_feature(const CornuFeatureRow *row, const CornuProtobufField *value,
                                void *const *to, bool *there)
{
    int64_t used = 0;
    CORNU__TRY(store_feature(row, value, to[row->component], &used, there));
    if (*there) cornu__feature_end(row, used, to);
    return CORNU_OK;
}

/* A FeatureList: a Feature for each step. */
static CornuStatus read_steps(const CornuFeatureRow *row, const CornuProtobufField *value,
                              void *const *to, bool *there)
{
    CornuFields        fields = cornu__fields(value->bytes, value->size);
    const int64_t      length = row->type.shape.extent[0];
    CornuProtobufField step;
    int64_t            steps = 0, used;
    bool               has_values;
    while (cornu__next_field(&fields, &step)) {
        if (step.field != 1) continue;
        if (step.kind != CORNU_PROTOBUF_BYTES) return damaged("a list of features");
        if (steps >= length && row->feature.truncate) break;
        if (steps >= length)
            return cornu__fail(CORNU_ERR_FORMAT, "has more than %lld steps; .truncate takes the "
                               "first ones", (long long)length);
        char        what[40];
        void       *at = (char *)to[row->component] + (size_t)steps * row->step_bytes;
        CornuStatus status = store_feature(row, &step, at, &used, &has_values);
        if (!status && !has_values) status = cornu__fail(CORNU_ERR_FORMAT, "has no values");
        snprintf(what, sizeof what, "step %lld", (long long)steps);
        CORNU__TRY(cornu__fail_prefix(status, what));
        steps++;
    }
    if (fields.failed) return damaged("a list of features");
    *there = true;
    cornu__feature_end(row, steps, to);
    return CORNU_OK;
}

/* ---- Maps ---- */

/* Of an element that is being read: which rows of the table it has. */
typedef struct {
    const CornuFeatureTable *table;
    void *const             *to;
    bool                     there[CORNU_MAX_COMPONENTS];
} Reading;

static CornuStatus read_entry(Reading *reading, const CornuProtobufField *entry, bool sequence)
{
    CornuFields        fields = cornu__fields(entry->bytes, entry->size);
    CornuProtobufField field, key = { .bytes = (const unsigned char *)"" }, value = { .field = 0 };
    while (cornu__next_field(&fields, &field)) {
        if (field.field > 2) continue;
        if (field.kind != CORNU_PROTOBUF_BYTES) return damaged("an entry of a map");
        *(field.field == 1 ? &key : &value) = field;
    }
    if (fields.failed) return damaged("an entry of a map");
    CornuFeatureRow *row = cornu__features_find(reading->table, key.bytes, key.size);
    if (!row || row->feature.sequence != sequence) return CORNU_OK;
    char what[100];
    bool *there = &reading->there[row - reading->table->rows];
    snprintf(what, sizeof what, "feature \"%.80s\"", row->feature.name);
    if (!value.bytes) value.bytes = (const unsigned char *)"";
    return cornu__fail_prefix(sequence ? read_steps(row, &value, reading->to, there)
                                       : read_feature(row, &value, reading->to, there), what);
}

static CornuStatus read_map(Reading *reading, const CornuProtobufField *map, bool sequence)
{
    CornuFields        fields = cornu__fields(map->bytes, map->size);
    CornuProtobufField entry;
    while (cornu__next_field(&fields, &entry)) {
        if (entry.field != 1) continue;
        if (entry.kind != CORNU_PROTOBUF_BYTES) return damaged("a map of features");
        CORNU__TRY(read_entry(reading, &entry, sequence));
    }
    return fields.failed ? damaged("a map of features") : CORNU_OK;
}

CornuStatus cornu__example_parse(const CornuFeatureTable *table, const unsigned char *bytes,
                                 size_t size, void *const *to)
{
    enum { FEATURES = 1, FEATURE_LISTS = 2 };
    Reading            reading = { .table = table, .to = to };
    CornuFields        fields = cornu__fields(bytes, size);
    CornuProtobufField field;
    while (cornu__next_field(&fields, &field)) {
        if (field.field != FEATURES && field.field != FEATURE_LISTS) continue;
        if (field.kind != CORNU_PROTOBUF_BYTES) return damaged("the message");
        CORNU__TRY(read_map(&reading, &field, field.field == FEATURE_LISTS));
    }
    if (fields.failed) return damaged("the message");
    for (int i = 0; i < table->count; i++) {
        char what[100];
        if (reading.there[i]) continue;
        snprintf(what, sizeof what, "feature \"%.80s\"", table->rows[i].feature.name);
        CORNU__TRY(cornu__fail_prefix(cornu__feature_missing(&table->rows[i], to), what));
    }
    return CORNU_OK;
}
