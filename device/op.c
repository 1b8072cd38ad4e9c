#include "program_internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "definition_internal.h"
#include "op_internal.h"
#include "text/print.h"

/* ---- Tables: a row per op, a row per attribute field ---- */

typedef enum {
#define CORNU_ATTRIBUTES(LIST, member, fields) LIST_##LIST,
#include "ops/attributes.def"
#undef CORNU_ATTRIBUTES
} List;

static const struct {
    const char *name;
    int         inputs, outputs;
    List        list;
    int         cost;
    CornuReads  reads;
} ops[CORNU_OP_COUNT] = {
#define CORNU_OP(ID, name, inputs, outputs, LIST, cost, READS) \
    { #name, inputs, outputs, LIST_##LIST, cost, CORNU_READS_##READS },
#include "ops/ops.def"
#undef CORNU_OP
};

typedef enum {
    KIND_I64, KIND_I64S, KIND_INTS, KIND_F64, KIND_F64S, KIND_DTYPE, KIND_COMPARISON, KIND_PROGRAM,
    KIND_DEFINITION
} Kind;

typedef struct {
    const char *name;   /* NULL ends the fields of an op */
    Kind        kind;
    size_t      offset;
} Field;

static const Field *fields_of(CornuOpId id)
{
    static const Field none[] = { { NULL, KIND_I64, 0 } };
    switch (ops[id].list) {
#define F(KIND, name) { #name, KIND_##KIND, offsetof(Attributes, name) },
#define CORNU_ATTRIBUTES(LIST, member, fields)                       \
    case LIST_##LIST: {                                              \
        typedef CornuAttributes_##LIST Attributes;                   \
        static const Field list[] = { fields { NULL, KIND_I64, 0 } }; \
        return list;                                                 \
    }
#include "ops/attributes.def"
#undef CORNU_ATTRIBUTES
#undef F
    }
    return none;
}

static const void *field_at(const CornuAttributes *attributes, const Field *field)
{
    return (const char *)attributes + field->offset;
}

static bool known(CornuOpId id) { return (unsigned)id < CORNU_OP_COUNT; }

const char *cornu_op_name(CornuOpId id) { return known(id) ? ops[id].name : "unknown"; }
int         cornu_op_input_count(CornuOpId id) { return known(id) ? ops[id].inputs : 0; }
int         cornu_op_output_count(CornuOpId id) { return known(id) ? ops[id].outputs : 0; }

int        cornu__op_cost(CornuOpId id) { return ops[id].cost; }
CornuReads cornu__op_reads(CornuOpId id) { return ops[id].reads; }

bool cornu__is_elementwise(CornuOpId id)
{
    return ops[id].reads == CORNU_READS_ELEMENTWISE || ops[id].reads == CORNU_READS_RISING;
}

/* ---- Attributes, field by field ---- */

static const Field *field_of_kind(CornuOpId id, Kind kind)
{
    for (const Field *field = fields_of(id); field->name; field++)
        if (field->kind == kind) return field;
    return NULL;
}

static void *place_of_kind(CornuOpId id, CornuAttributes *attributes, Kind kind)
{
    const Field *field = field_of_kind(id, kind);
    return field ? (char *)attributes + field->offset : NULL;
}

const CornuProgram **cornu__attributes_place(CornuOpId id, CornuAttributes *attributes)
{
    return place_of_kind(id, attributes, KIND_PROGRAM);
}

CornuInts *cornu__attributes_list(CornuOpId id, CornuAttributes *attributes)
{
    return place_of_kind(id, attributes, KIND_INTS);
}

const CornuProgram *cornu__attributes_program(CornuOpId id, const CornuAttributes *attributes)
{
    const Field *field = field_of_kind(id, KIND_PROGRAM);
    return field ? *(const CornuProgram *const *)field_at(attributes, field) : NULL;
}

static const CornuDefinition *definition_of(CornuOpId id, const CornuAttributes *attributes)
{
    const Field *field = known(id) && attributes ? field_of_kind(id, KIND_DEFINITION) : NULL;
    return field ? *(const CornuDefinition *const *)field_at(attributes, field) : NULL;
}

const char *cornu__called(CornuOpId id, const CornuAttributes *attributes)
{
    const CornuDefinition *definition = definition_of(id, attributes);
    return definition ? definition->name : cornu_op_name(id);
}

const char *cornu_program_op_name(const CornuProgramOp *op)
{
    return cornu__called(op->id, &op->attributes);
}

int cornu__result_count(CornuOpId id, const CornuAttributes *attributes)
{
    if (ops[id].outputs >= 0) return ops[id].outputs;
    const CornuDefinition *definition = definition_of(id, attributes);
    if (definition) return definition->outputs;
    const CornuProgram *program = cornu__attributes_program(id, attributes);
    return program ? program->output_count : 0;
}

/* Of a definition, whose name is the same in every process, as a word. */
static uint64_t name_word(const CornuDefinition *definition)
{
    uint64_t word = 0;
    for (const char *at = definition ? definition->name : ""; *at; at++)
        word = cornu__hash(word, (unsigned char)*at);
    return word;
}

enum { MOST_WORDS = (int)CORNU_OP_NUMBERS > (int)CORNU_MAX_RANK ? (int)CORNU_OP_NUMBERS
                                                              : (int)CORNU_MAX_RANK };

/* The words by which a field is compared and hashed: doubles by their bits, so that NaN equals
 * itself and -0 differs from 0; of a list how many numbers it has. Returns their number, 0 for a
 * program. */
static int field_words(const CornuAttributes *attributes, const Field *field,
                       uint64_t words[MOST_WORDS])
{
    const void *at = field_at(attributes, field);
    switch (field->kind) {
    case KIND_I64:
    case KIND_F64:
        memcpy(words, at, sizeof *words);
        return 1;
    case KIND_I64S:
        memcpy(words, at, CORNU_MAX_RANK * sizeof *words);
        return CORNU_MAX_RANK;
    case KIND_F64S:
        memcpy(words, at, CORNU_OP_NUMBERS * sizeof *words);
        return CORNU_OP_NUMBERS;
    case KIND_DEFINITION:
        words[0] = name_word(*(const CornuDefinition *const *)at);
        return 1;
    case KIND_INTS:       words[0] = (uint64_t)((const CornuInts *)at)->count; return 1;
    case KIND_DTYPE:      words[0] = (uint64_t)*(const CornuDtype *)at; return 1;
    case KIND_COMPARISON: words[0] = (uint64_t)*(const CornuComparison *)at; return 1;
    case KIND_PROGRAM:    break;
    }
    return 0;
}

/* The numbers of a list; none of another field. */
static CornuInts ints_of(const CornuAttributes *attributes, const Field *field)
{
    if (field->kind != KIND_INTS) return (CornuInts){ 0, NULL };
    return *(const CornuInts *)field_at(attributes, field);
}

bool cornu__fields_equal(CornuOpId id, const CornuAttributes *a, const CornuAttributes *b)
{
    for (const Field *field = fields_of(id); field->name; field++) {
        uint64_t in_a[MOST_WORDS], in_b[MOST_WORDS];
        int      count = field_words(a, field, in_a);
        field_words(b, field, in_b);
        for (int i = 0; i < count; i++)
            if (in_a[i] != in_b[i]) return false;
        const CornuInts list = ints_of(a, field);   /* as long as that of b */
        for (int i = 0; i < list.count; i++)
            if (list.at[i] != ints_of(b, field).at[i]) return false;
    }
    return definition_of(id, a) == definition_of(id, b);
}

bool cornu__numbers_equal(CornuOpId id, const CornuAttributes *a, const CornuAttributes *b)
{
    for (const Field *field = fields_of(id); field->name; field++) {
        uint64_t in_a[MOST_WORDS], in_b[MOST_WORDS];
        if (field->kind != KIND_F64 && field->kind != KIND_F64S) continue;
        const int count = field_words(a, field, in_a);
        field_words(b, field, in_b);
        for (int i = 0; i < count; i++)
            if (in_a[i] != in_b[i]) return false;
    }
    return true;
}

uint64_t cornu__fields_hash(CornuOpId id, const CornuAttributes *attributes, uint64_t hash)
{
    for (const Field *field = fields_of(id); field->name; field++) {
        uint64_t words[MOST_WORDS];
        int      count = field_words(attributes, field, words);
        for (int i = 0; i < count; i++) hash = cornu__hash(hash, words[i]);
        const CornuInts list = ints_of(attributes, field);
        for (int i = 0; i < list.count; i++) hash = cornu__hash(hash, (uint64_t)list.at[i]);
    }
    return hash;
}

static const char *const comparisons[] = {
    [CORNU_EQUAL] = "equal",     [CORNU_NOT_EQUAL] = "not_equal",
    [CORNU_LESS] = "less",       [CORNU_LESS_EQUAL] = "less_equal",
    [CORNU_GREATER] = "greater", [CORNU_GREATER_EQUAL] = "greater_equal",
};
enum { COMPARISON_COUNT = sizeof comparisons / sizeof *comparisons };

/* Appends at *used, which counts on past the end as snprintf does. */
CORNU__PRINTF(4, 5)
static void append_text(char *text, size_t size, int *used, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    size_t at = (size_t)*used < size ? (size_t)*used : size;
    *used += cornu__vformat(size ? text + at : NULL, size - at, format, arguments);
    va_end(arguments);
}

/* The fewest digits that parse back to the same double. */
static void append_double(char *text, size_t size, int *used, double value)
{
    char digits[40];
    for (int precision = 1; precision <= 17; precision++) {
        cornu__format(digits, sizeof digits, "%.*g", precision, value);
        if (cornu__parse_number(digits, NULL) == value) break;
    }
    append_text(text, size, used, "%s", digits);
}

int cornu__attributes_print(CornuOpId id, const CornuAttributes *attributes, char *text,
                            size_t size)
{
    int used = 0;
    if (size) text[0] = '\0';
    for (const Field *field = fields_of(id); field->name; field++) {
        uint64_t            words[MOST_WORDS];
        int                 count = field_words(attributes, field, words);
        const void         *at = field_at(attributes, field);
        const CornuProgram *program =
            field->kind == KIND_PROGRAM ? *(const CornuProgram *const *)at : NULL;
        while (count && words[count - 1] == 0) count--;
        /* A definition's name is printed as the op's. */
        if ((!count && !program) || field->kind == KIND_DEFINITION) continue;

        append_text(text, size, &used, "%s%s=", used ? " " : "", field->name);
        switch (field->kind) {
        case KIND_I64:   append_text(text, size, &used, "%" PRId64, *(const int64_t *)at); break;
        case KIND_F64:   append_double(text, size, &used, *(const double *)at); break;
        case KIND_DTYPE: append_text(text, size, &used, "%s",
                                     cornu_dtype_name(*(const CornuDtype *)at));
            break;
        case KIND_COMPARISON: append_text(text, size, &used, "%s", comparisons[words[0]]); break;
        case KIND_PROGRAM: append_text(text, size, &used, "%d ops", program->op_count); break;
        case KIND_I64S:
            for (int i = 0; i < count; i++)
                append_text(text, size, &used, "%s%" PRId64, i ? ", " : "[",
                            ((const int64_t *)at)[i]);
            append_text(text, size, &used, "]");
            break;
        case KIND_F64S:
            for (int i = 0; i < count; i++) {
                append_text(text, size, &used, "%s", i ? ", " : "[");
                append_double(text, size, &used, ((const double *)at)[i]);
            }
            append_text(text, size, &used, "]");
            break;
        case KIND_DEFINITION: break;
        case KIND_INTS:
            for (int i = 0; i < ints_of(attributes, field).count; i++)
                append_text(text, size, &used, "%s%d", i ? ", " : "[",
                            ints_of(attributes, field).at[i]);
            append_text(text, size, &used, "]");
            break;
        }
    }
    return used;
}

CornuStatus cornu__attributes_check(CornuOpId id, const CornuAttributes *attributes)
{
    for (const Field *field = fields_of(id); field->name; field++) {
        uint64_t words[MOST_WORDS] = { 0 };
        field_words(attributes, field, words);
        if (field->kind == KIND_DTYPE && words[0] >= CORNU_DTYPE_COUNT)
            return cornu__fail(CORNU_ERR_DTYPE, "%s is %d, expected one of the %d element types",
                               field->name, (int)words[0], (int)CORNU_DTYPE_COUNT);
        if (field->kind == KIND_COMPARISON && words[0] >= COMPARISON_COUNT)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s is %d, expected one of %d", field->name,
                               (int)words[0], COMPARISON_COUNT);
        if (ints_of(attributes, field).count < 0)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s has %d numbers, expected 0 or more",
                               field->name, ints_of(attributes, field).count);
        if (field->kind == KIND_DEFINITION && !definition_of(id, attributes))
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s is NULL, expected a registered op",
                               field->name);
        /* A definition may do without a program. */
        if (field->kind == KIND_PROGRAM && !field_of_kind(id, KIND_DEFINITION) &&
            !cornu__attributes_program(id, attributes))
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s is NULL, expected a program", field->name);
    }
    return CORNU_OK;
}

/* ---- Collectives ---- */

CornuMembers cornu__members(const CornuAttributes *attributes, int shards, int shard)
{
    const CornuInts groups = attributes->shards.groups;
    const int       size = (int)attributes->shards.size;
    int             at = 0;
    if (groups.count == 0) return (CornuMembers){ .size = shards, .rank = shard };
    while (groups.at[at] != shard) at++;
    return (CornuMembers){ size, at % size, groups.at + at / size * size };
}

bool cornu__crosses(CornuOpId id)
{
    return ops[id].reads == CORNU_READS_SHARDS || ops[id].reads == CORNU_READS_SCATTER;
}

bool cornu__is_collective(CornuOpId id)
{
    return cornu__crosses(id) || id == CORNU_OP_SHARD_SLICE;
}

CornuStatus cornu__collective_fits(const CornuOpCall *call, int shards)
{
    const CornuAttributes_SHARDS *s = &call->attributes->shards;
    const int64_t expected = s->groups.count ? s->groups.count : s->size;
    if (expected == 0 || expected == shards) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: recorded for %lld shards, the device has %d",
                       cornu_op_name(call->id), (long long)expected, shards);
}
