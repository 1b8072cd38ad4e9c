/* Kinds of fields that are numbers, flags, or a fixed count of numbers. Where 0 stands for
 * something else, a 0 in a file is CORNU_ZERO. */
#include "../config/keywords_internal.h"
#include "field_internal.h"

#include <string.h>

/* ---- Whole numbers ---- */

static json_t *write_integer(const CornuFieldSource *from)
{
    const int64_t number = *(const int64_t *)from->at;
    return number || !from->kind->none ? json_integer(cornu__integer(number, 0)) : json_null();
}

static CornuStatus read_integer(const CornuFieldTarget *to, const json_t *value)
{
    if (!json_is_integer(value)) return cornu__unexpected(to->name, "a whole number");
    *(int64_t *)to->at = json_integer_value(value);
    if (to->kind->none && *(int64_t *)to->at == 0) *(int64_t *)to->at = CORNU_ZERO;
    return CORNU_OK;
}

/* A SeedGenerator draws new numbers each time, as a model does. */
static CornuStatus read_seed(const CornuFieldTarget *to, const json_t *value)
{
    return json_is_object(value) ? CORNU_OK : read_integer(to, value);
}

static bool no_integer(const void *at) { return *(const int64_t *)at == 0; }

#define INTEGER .size = sizeof(int64_t), .write = write_integer
const CornuFieldKind cornu_field_integer = {
    .name = "integer", INTEGER, .read = read_integer, .examples = { "1", "2" },
};
const CornuFieldKind cornu_field_integer_or_none = {
    .name = "integer_or_none", INTEGER, .read = read_integer, .none = true,
};
const CornuFieldKind cornu_field_integer_or_default = {
    .name = "integer_or_default", INTEGER, .read = read_integer, .none = true,
    .is_default = no_integer, .examples = { "1", "2" },
};
const CornuFieldKind cornu_field_seed = {
    .name = "seed", INTEGER, .read = read_seed, .none = true,
};

/* A set of classes, as bits. */
static json_t *write_classes(const CornuFieldSource *from)
{
    const uint64_t classes = *(const uint64_t *)from->at;
    json_t        *list = json_array();
    for (int i = 0; i < 64; i++)
        if (classes >> i & 1) list = cornu__json_append(list, json_integer(i));
    return list;
}

static CornuStatus read_classes(const CornuFieldTarget *to, const json_t *value)
{
    int64_t numbers[64];
    size_t  count;
    CORNU__TRY(cornu__read_list(value, to->name, numbers, 64, &count));
    for (size_t i = 0; i < count; i++) {
        if (numbers[i] < 0 || numbers[i] >= 64)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s has %lld, expected 0 to 63", to->name,
                               (long long)numbers[i]);
        *(uint64_t *)to->at |= UINT64_C(1) << numbers[i];
    }
    return count > 0 ? CORNU_OK
                     : cornu__unexpected(to->name, "a list of at least one number");
}

const CornuFieldKind cornu_field_classes = {
    .name = "classes", .size = sizeof(uint64_t), .write = write_classes,
    .read = read_classes, .is_default = no_integer, .examples = { "[1]" },
};

/* ---- Floats ---- */

static double zeroed(double number) { return number == 0.0 ? (double)CORNU_ZERO : number; }

static json_t *write_number(const CornuFieldSource *from)
{
    const double number = *(const double *)from->at;
    if (number == 0.0 && from->kind->none) return json_null();
    return json_real(cornu__number(number, 0.0));
}

static CornuStatus read_number(const CornuFieldTarget *to, const json_t *value)
{
    if (!json_is_number(value)) return cornu__unexpected(to->name, "a number");
    *(double *)to->at = zeroed(json_number_value(value));
    return CORNU_OK;
}

static bool no_number(const void *at) { return *(const double *)at == 0.0; }

#define NUMBER .size = sizeof(double), .write = write_number, \
               .read = read_number
const CornuFieldKind cornu_field_number = { .name = "number", NUMBER, .examples = { "0.5" } };
const CornuFieldKind cornu_field_number_or_none = {
    .name = "number_or_none", NUMBER, .none = true,
};
const CornuFieldKind cornu_field_number_or_default = {
    .name = "number_or_default", NUMBER, .none = true, .is_default = no_number,
    .examples = { "0.5" },
};

static json_t *write_range(const CornuFieldSource *from)
{
    const double *range = from->at;
    if (from->kind->none && range[0] == 0.0 && range[1] == 0.0) return json_null();
    if (from->kind == CORNU_FIELD_REACH && range[0] == -range[1]) return json_real(range[1]);
    json_t *list = cornu__json_append(json_array(), json_real(cornu__number(range[0], 0.0)));
    return cornu__json_append(list, json_real(cornu__number(range[1], 0.0)));
}

/* The two ends of a range, or a number x for -x and x. */
static CornuStatus read_range(const CornuFieldTarget *to, const json_t *value)
{
    double *range = to->at;
    for (size_t i = 0; i < 2; i++) {
        const json_t *end = json_is_number(value) ? value : json_array_get(value, i);
        if (!json_is_number(end))
            return cornu__unexpected(to->name, "a number or a list of two");
        range[i] = end == value && i == 0 ? -json_number_value(end) : json_number_value(end);
        if (to->kind->none) range[i] = zeroed(range[i]);
    }
    return CORNU_OK;
}

#define RANGE .size = 2 * sizeof(double), .write = write_range, \
              .read = read_range, .examples = { "0.5" }
const CornuFieldKind cornu_field_range = { .name = "range", RANGE };
const CornuFieldKind cornu_field_range_or_none = {
    .name = "range_or_none", RANGE, .none = true,
};
const CornuFieldKind cornu_field_reach = { .name = "reach", RANGE, .none = true };

static const char *const clippings[] = { "rmax", "rmin", "dmax" };

static json_t *write_clipping(const CornuFieldSource *from)
{
    const double *number = from->at;
    json_t       *limits = json_object();
    for (int i = 0; i < 3; i++)
        if (number[i] != 0.0)
            limits = cornu__json_with(limits, clippings[i],
                                      json_real(cornu__number(number[i], 0.0)));
    return limits;
}

static CornuStatus read_clipping(const CornuFieldTarget *to, const json_t *value)
{
    const char   *key;
    const json_t *limit;
    if (!json_is_object(value)) return cornu__unexpected(to->name, "a dictionary");
    json_object_foreach((json_t *)value, key, limit) {
        int i = 0;
        while (i < 3 && strcmp(key, clippings[i])) i++;
        if (i == 3 || !(json_is_number(limit) || json_is_null(limit)))
            return cornu__fail(CORNU_ERR_FORMAT, "%s has %.40s, expected numbers for rmax, rmin, "
                               "dmax", to->name, key);
        if (!json_is_null(limit)) ((double *)to->at)[i] = zeroed(json_number_value(limit));
    }
    return CORNU_OK;
}

const CornuFieldKind cornu_field_clipping = {
    .name = "clipping", .size = 3 * sizeof(double), .write = write_clipping,
    .read = read_clipping,
};

/* ---- Flags ---- */

static json_t *write_flag(const CornuFieldSource *from)
{
    return json_boolean(*(const bool *)from->at == (from->kind == CORNU_FIELD_FLAG));
}

/* Null is false, as in Python. */
static CornuStatus read_flag(const CornuFieldTarget *to, const json_t *value)
{
    if (!json_is_boolean(value) && !json_is_null(value))
        return cornu__unexpected(to->name, "true or false");
    *(bool *)to->at = json_is_true(value) == (to->kind == CORNU_FIELD_FLAG);
    return CORNU_OK;
}

#define FLAG .name = "flag", .size = sizeof(bool), .write = write_flag, \
             .read = read_flag
const CornuFieldKind cornu_field_flag = { FLAG };
const CornuFieldKind cornu_field_not = { FLAG, .takes_null = true };
