#include "op_internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../print.h"

/* ---- Tables: a row per op, a row per attribute field ---- */

typedef enum {
#define CORNU_ATTRIBUTES(LIST, member, fields) LIST_##LIST,
#include "attributes.def"
#undef CORNU_ATTRIBUTES
} List;

static const struct {
    const char         *name;
    int                 inputs, outputs;
    List                list;
    const CornuOpRules *rules;
} ops[CORNU_OP_COUNT] = {
#define CORNU_OP(ID, name, inputs, outputs, LIST) \
    { #name, inputs, outputs, LIST_##LIST, &cornu__##name##_rules },
#include "ops.def"
#undef CORNU_OP
};

typedef enum { KIND_I64, KIND_I64S, KIND_F64, KIND_DTYPE, KIND_COMPARISON, KIND_PROGRAM } Kind;

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
#include "attributes.def"
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
int         cornu_op_output_count(CornuOpId id)
{
    return known(id) ? ops[id].outputs : 0;
}

const CornuOpRules *cornu__op_rules(CornuOpId id) { return ops[id].rules; }

int64_t cornu_op_flops(const CornuOpCall *call)
{
    return ops[call->id].rules->flops(call);
}

/* ---- Attributes, field by field ---- */

static const CornuProgram *program_at(const void *field)
{
    return *(const CornuProgram *const *)field;
}

/* The words a field is compared and hashed by: doubles by their bits, so that NaN equals
 * itself and -0 is not 0; programs by their hash. Returns how many there are. */
static int field_words(const CornuAttributes *attributes, const Field *field,
                       uint64_t words[CORNU_MAX_RANK])
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
    case KIND_DTYPE:      words[0] = (uint64_t)*(const CornuDtype *)at; return 1;
    case KIND_COMPARISON: words[0] = (uint64_t)*(const CornuComparison *)at; return 1;
    case KIND_PROGRAM:
        words[0] = program_at(at) ? cornu_program_hash(program_at(at)) : 0;
        return 1;
    }
    return 0;
}

static bool equal_programs(const CornuProgram *a, const CornuProgram *b)
{
    return a && b ? cornu_program_equal(a, b) : a == b;
}

bool cornu__attributes_equal(CornuOpId id, const CornuAttributes *a, const CornuAttributes *b)
{
    for (const Field *field = fields_of(id); field->name; field++) {
        uint64_t in_a[CORNU_MAX_RANK], in_b[CORNU_MAX_RANK];
        int      count = field_words(a, field, in_a);
        field_words(b, field, in_b);
        for (int i = 0; i < count; i++)
            if (in_a[i] != in_b[i]) return false;
        if (field->kind == KIND_PROGRAM &&
            !equal_programs(program_at(field_at(a, field)), program_at(field_at(b, field))))
            return false;
    }
    return true;
}

uint64_t cornu__attributes_hash(CornuOpId id, const CornuAttributes *attributes, uint64_t hash)
{
    for (const Field *field = fields_of(id); field->name; field++) {
        uint64_t words[CORNU_MAX_RANK];
        int      count = field_words(attributes, field, words);
        for (int i = 0; i < count; i++) hash = cornu__hash(hash, words[i]);
    }
    return hash;
}

const CornuProgram *cornu__attributes_program(CornuOpId id, const CornuAttributes *attributes)
{
    for (const Field *field = fields_of(id); field->name; field++)
        if (field->kind == KIND_PROGRAM) return program_at(field_at(attributes, field));
    return NULL;
}

int cornu__result_count(CornuOpId id, const CornuAttributes *attributes)
{
    if (ops[id].outputs >= 0) return ops[id].outputs;
    const CornuProgram *program = cornu__attributes_program(id, attributes);
    return program ? program->output_count : 0;
}

CornuStatus cornu__attributes_own(CornuOpId id, CornuAttributes *attributes)
{
    CornuStatus status = CORNU_OK;
    for (const Field *field = fields_of(id); field->name; field++) {
        if (field->kind != KIND_PROGRAM) continue;
        void                *place = (char *)attributes + field->offset;
        const CornuProgram **at = place;
        if (*at && !(*at = status ? NULL : cornu_program_copy(*at))) {
            status = CORNU_ERR_MEMORY;
            cornu_error_take();
        }
    }
    return status;
}

void cornu__attributes_free(CornuOpId id, CornuAttributes *attributes)
{
    for (const Field *field = fields_of(id); field->name; field++)
        if (field->kind == KIND_PROGRAM)
            cornu_program_free((CornuProgram *)(uintptr_t)program_at(field_at(attributes, field)));
}

static const char *const comparisons[] = {
    [CORNU_EQUAL] = "equal",     [CORNU_NOT_EQUAL] = "not_equal",
    [CORNU_LESS] = "less",       [CORNU_LESS_EQUAL] = "less_equal",
    [CORNU_GREATER] = "greater", [CORNU_GREATER_EQUAL] = "greater_equal",
};
enum { COMPARISON_COUNT = sizeof comparisons / sizeof *comparisons };

/* Appends at *used, which counts on past the end as snprintf does. */
CORNU__PRINTF(4, 5)
static void append(char *text, size_t size, int *used, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    size_t at = (size_t)*used < size ? (size_t)*used : size;
    *used += cornu__vformat(size ? text + at : NULL, size - at, format, arguments);
    va_end(arguments);
}

/* The shortest digits that give the same double back. */
static void append_double(char *text, size_t size, int *used, double value)
{
    char digits[40];
    for (int precision = 1; precision <= 17; precision++) {
        cornu__format(digits, sizeof digits, "%.*g", precision, value);
        if (cornu__parse_number(digits, NULL) == value) break;
    }
    append(text, size, used, "%s", digits);
}

int cornu__attributes_print(CornuOpId id, const CornuAttributes *attributes, char *text,
                            size_t size)
{
    int used = 0;
    if (size) text[0] = '\0';
    for (const Field *field = fields_of(id); field->name; field++) {
        uint64_t words[CORNU_MAX_RANK];
        int      count = field_words(attributes, field, words);
        while (count && words[count - 1] == 0) count--;
        if (!count) continue;

        append(text, size, &used, "%s%s=", used ? " " : "", field->name);
        const void *at = field_at(attributes, field);
        switch (field->kind) {
        case KIND_I64:   append(text, size, &used, "%" PRId64, *(const int64_t *)at); break;
        case KIND_F64:   append_double(text, size, &used, *(const double *)at); break;
        case KIND_DTYPE: append(text, size, &used, "%s", cornu_dtype_name(*(const CornuDtype *)at));
            break;
        case KIND_COMPARISON: append(text, size, &used, "%s", comparisons[words[0]]); break;
        case KIND_PROGRAM: append(text, size, &used, "%d ops", program_at(at)->op_count); break;
        case KIND_I64S:
            for (int i = 0; i < count; i++)
                append(text, size, &used, "%s%" PRId64, i ? ", " : "[", ((const int64_t *)at)[i]);
            append(text, size, &used, "]");
            break;
        }
    }
    return used;
}

/* The finalizer of SplitMix64 over a sum that depends on the order of the words.
 * Source: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014,
 * figure 16. */
uint64_t cornu__hash(uint64_t hash, uint64_t word)
{
    uint64_t z = hash * 0x9E3779B97F4A7C15 + word + 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
}

/* ---- Types ---- */

static CornuStatus check_attributes(const CornuOpCall *call)
{
    for (const Field *field = fields_of(call->id); field->name; field++) {
        uint64_t words[CORNU_MAX_RANK];
        field_words(call->attributes, field, words);
        if (field->kind == KIND_DTYPE && words[0] >= CORNU_DTYPE_COUNT)
            return cornu__fail(CORNU_ERR_DTYPE, "%s is %d, expected one of the %d element types",
                               field->name, (int)words[0], (int)CORNU_DTYPE_COUNT);
        if (field->kind == KIND_COMPARISON && words[0] >= COMPARISON_COUNT)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s is %d, expected one of %d", field->name,
                               (int)words[0], COMPARISON_COUNT);
        if (field->kind == KIND_PROGRAM && !program_at(field_at(call->attributes, field)))
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s is NULL, expected a program", field->name);
    }
    return CORNU_OK;
}

CornuStatus cornu__op_type(const CornuOpCall *call, CornuType *out)
{
    if (!known(call->id))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%d is no op, expected 0 to %d", (int)call->id,
                           CORNU_OP_COUNT - 1);
    int expected = ops[call->id].inputs;
    if (expected < 0 ? call->in_count < 1 : call->in_count != expected)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%d operands, expected %s%d", call->in_count,
                           expected < 0 ? "at least " : "", expected < 0 ? 1 : expected);
    CORNU__TRY(check_attributes(call));
    CORNU__TRY(ops[call->id].rules->type(call, out));
    const int count = cornu__result_count(call->id, call->attributes);
    for (int i = 0; i < count; i++) CORNU__TRY(cornu_type_check(out[i]));
    return CORNU_OK;
}

CornuStatus cornu__op_reference(const CornuReferenceCall *call)
{
    return cornu__fail_prefix(ops[call->op.id].rules->reference(call), ops[call->op.id].name);
}

/* ---- What rules are written with ---- */

int64_t cornu__no_flops(const CornuOpCall *call)
{
    (void)call;
    return 0;
}

/* A marker: whoever decomposes compares with it and never gets here by accident. */
CornuStatus cornu__primitive(CornuProgram *program, const CornuOpCall *call,
                             const CornuValue *in, CornuValue *out)
{
    (void)program, (void)in, (void)out;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s is primitive: it stands for no other ops",
                       cornu_op_name(call->id));
}

CornuStatus cornu__same_type(const CornuOpCall *call, CornuType *out)
{
    for (int i = 0; i < ops[call->id].outputs; i++) out[i] = call->in[0];
    return CORNU_OK;
}

int64_t cornu__flops_per_element(const CornuOpCall *call)
{
    return cornu_type_count(call->in[0]);
}

int64_t cornu__flops(int count, const int64_t *factors)
{
    int64_t product = 1;
    for (int i = 0; i < count; i++) {
        if (factors[i] == 0) return 0;
        product = product > INT64_MAX / factors[i] ? INT64_MAX : product * factors[i];
    }
    return product;
}

CornuStatus cornu__refuse(const CornuOpCall *call, CornuStatus status, const char *names,
                          const char *format, ...)
{
    char text[512];
    int  used = 0;
    for (int i = 0; i < call->in_count && *names; i++) {
        int       length = (int)strcspn(names, " ");
        CornuText type;
        append(text, sizeof text, &used, "%s%.*s is %s", i ? ", " : "", length, names,
               cornu_type_print(&type, call->in[i]));
        names += length + (names[length] == ' ');
    }
    char    reason[512];
    va_list arguments;
    va_start(arguments, format);
    cornu__vformat(reason, sizeof reason, format, arguments);
    va_end(arguments);
    return cornu__fail(status, "%s: %s", text, reason);
}

bool cornu__is_number(CornuDtype dtype) { return dtype != CORNU_BOOL; }

bool cornu__is_integer(CornuDtype dtype)
{
    return cornu__is_number(dtype) && !cornu_dtype_is_float(dtype);
}

/* The i-th of some words separated by blanks, for "%.*s". */
static const char *name_of(const char *names, int i, int *length)
{
    while (i-- > 0) names += strcspn(names, " ") + 1;
    *length = (int)strcspn(names, " ");
    return names;
}

CornuStatus cornu__expect_float(const CornuOpCall *call, int i, const char *names)
{
    if (cornu_dtype_is_float(call->in[i].dtype)) return CORNU_OK;
    int         length;
    const char *name = name_of(names, i, &length);
    return cornu__refuse(call, CORNU_ERR_DTYPE, names, "expected a float as %.*s", length, name);
}

CornuStatus cornu__expect_dtype(const CornuOpCall *call, int i, CornuDtype dtype,
                                const char *names)
{
    if (call->in[i].dtype == dtype) return CORNU_OK;
    int         length;
    const char *name = name_of(names, i, &length);
    return cornu__refuse(call, CORNU_ERR_DTYPE, names, "expected %s as %.*s",
                         cornu_dtype_name(dtype), length, name);
}

CornuStatus cornu__expect_rank(const CornuOpCall *call, int i, int rank, const char *names)
{
    if (call->in[i].shape.rank == rank) return CORNU_OK;
    int         length;
    const char *name = name_of(names, i, &length);
    return cornu__refuse(call, CORNU_ERR_SHAPE, names, "expected rank %d for %.*s", rank, length,
                         name);
}

CornuStatus cornu__expect_alike(const CornuOpCall *call, int i, int j, const char *names)
{
    int         length_i, length_j;
    const char *name_i = name_of(names, i, &length_i), *name_j = name_of(names, j, &length_j);
    if (call->in[i].dtype != call->in[j].dtype)
        return cornu__refuse(call, CORNU_ERR_DTYPE, names, "%.*s and %.*s need one dtype",
                             length_i, name_i, length_j, name_j);
    if (!cornu_shape_equal(call->in[i].shape, call->in[j].shape))
        return cornu__refuse(call, CORNU_ERR_SHAPE, names, "%.*s and %.*s need one shape",
                             length_i, name_i, length_j, name_j);
    return CORNU_OK;
}
