/* Kinds of fields that are strings, and lists of numbers or strings of any length. */
#include "../../device/memory_internal.h"
#include "../config/numbers.h"
#include "../config/texts.h"
#include "field_internal.h"

/* ---- Strings ---- */

static json_t *write_text(const CornuFieldSource *from)
{
    const char *text = *(const char *const *)from->at;
    return text ? json_string(text) : json_null();
}

static CornuStatus read_text(const CornuFieldTarget *to, const json_t *value)
{
    const char *text = json_is_null(value) ? "none" : json_string_value(value);
    if (!text) return cornu__unexpected(to->name, "a string");
    *(const char **)to->at = text;
    return CORNU_OK;
}

static bool no_text(const void *at) { return !*(const char *const *)at; }

#define TEXT .write = write_text, .read = read_text
const CornuFieldKind cornu_field_text = {
    .name = "text", TEXT, .examples = { "\"ab,bc->ac\"" },
};
const CornuFieldKind cornu_field_text_or_none = {
    .name = "text_or_none", TEXT, .takes_null = true,
};
const CornuFieldKind cornu_field_text_or_default = {
    .name = "text_or_default", TEXT, .is_default = no_text, .for_strings = true,
};

static json_t *write_texts(const CornuFieldSource *from)
{
    const CornuTexts *texts = from->at;
    json_t           *list = json_array();
    for (int64_t i = 0; i < texts->count; i++)
        list = cornu__json_append(list, json_string(texts->values[i]));
    return list;
}

/* The strings stay the file's. */
static CornuStatus read_texts(const CornuFieldTarget *to, const json_t *value)
{
    value = cornu__json_list_in(value);
    if (!json_is_array(value)) return cornu__unexpected(to->name, "a list of strings");
    const size_t count = json_array_size(value);
    const char **values = cornu__allocate(count, sizeof *values);
    if (!values) return CORNU_ERR_MEMORY;
    *(CornuTexts *)to->at = (CornuTexts){ values, (int64_t)count };
    for (size_t i = 0; i < count; i++)
        if (!(values[i] = json_string_value(json_array_get(value, i))))
            return cornu__unexpected(to->name, "a list of strings");
    return CORNU_OK;
}

static bool  no_texts(const void *at) { return !((const CornuTexts *)at)->values; }
static void *texts_memory(const void *at)
{
    return (void *)(uintptr_t)((const CornuTexts *)at)->values;
}

const CornuFieldKind cornu_field_texts = {
    .name = "texts", .write = write_texts, .read = read_texts,
    .is_default = no_texts, .memory = texts_memory, .examples = { "[\"a\"]" },
};

/* ---- Numbers ---- */

/* Nested lists, one for each axis. */
static json_t *nested(const CornuNumbers *numbers, bool whole, int axis, const double **next)
{
    if (axis == numbers->shape.rank) {
        const double number = *(*next)++;
        return whole ? json_integer((json_int_t)number) : json_real(number);
    }
    json_t *list = json_array();
    for (int64_t i = 0; i < numbers->shape.extent[axis]; i++)
        list = cornu__json_append(list, nested(numbers, whole, axis + 1, next));
    return list;
}

static json_t *write_numbers(const CornuFieldSource *from)
{
    const double *next = ((const CornuNumbers *)from->at)->values;
    return nested(from->at, from->kind == CORNU_FIELD_INTEGERS, 0, &next);
}

/* Checks the numbers and, unless `next` is NULL, copies them. */
static CornuStatus copy_numbers(const json_t *value, const char *name, const CornuShape *shape,
                                int axis, double **next)
{
    if (axis == shape->rank) {
        if (!json_is_number(value)) return cornu__unexpected(name, "a list of numbers");
        if (next) *(*next)++ = json_number_value(value);
        return CORNU_OK;
    }
    if (!json_is_array(value) || (int64_t)json_array_size(value) != shape->extent[axis])
        return cornu__unexpected(name, "a list whose parts have the same lengths");
    for (size_t i = 0; i < json_array_size(value); i++)
        CORNU__TRY(copy_numbers(json_array_get(value, i), name, shape, axis + 1, next));
    return CORNU_OK;
}

/* A number, or an array as nested lists. */
static CornuStatus read_numbers(const CornuFieldTarget *to, const json_t *value)
{
    const char *name = to->name;
    CornuShape  shape = { 0 };
    value = cornu__json_list_in(value);
    for (const json_t *list = value; json_is_array(list); list = json_array_get(list, 0)) {
        if (shape.rank == CORNU_MAX_RANK || json_array_size(list) == 0)
            return cornu__fail(CORNU_ERR_FORMAT, "%s is %s", name, shape.rank == CORNU_MAX_RANK
                               ? "a list nested too deep" : "an empty list, expected numbers");
        shape.extent[shape.rank++] = (int64_t)json_array_size(list);
    }
    CORNU__TRY(copy_numbers(value, name, &shape, 0, NULL));   /* the file has as many as it says */
    const size_t count = (size_t)cornu_shape_count(shape);
    double      *values = cornu__allocate(count, sizeof *values), *next = values;
    if (!values) return CORNU_ERR_MEMORY;
    *(CornuNumbers *)to->at = (CornuNumbers){ values, shape };
    return copy_numbers(value, name, &shape, 0, &next);
}

static bool  no_numbers(const void *at) { return !((const CornuNumbers *)at)->values; }
static void *numbers_memory(const void *at)
{
    return (void *)(uintptr_t)((const CornuNumbers *)at)->values;
}

#define NUMBERS .write = write_numbers, .read = read_numbers, \
                .is_default = no_numbers, .memory = numbers_memory
const CornuFieldKind cornu_field_numbers = {
    .name = "numbers", NUMBERS, .examples = { "[0.5]" },
};
const CornuFieldKind cornu_field_integers = { .name = "integers", NUMBERS };
