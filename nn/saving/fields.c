/* Writing and reading arguments as Keras' JSON, by the table of a config's fields (layer.h). */
#include "architecture_internal.h"

#include "../metrics/metric_internal.h"
#include "../weights/weight_rules_internal.h"

#include <string.h>

/* ---- Writing ---- */

/* Out of memory jansson returns NULL; given NULL it fails. The functions here do the same, so that
 * one check at the end suffices. */

static const char *const clippings[] = { "rmax", "rmin", "dmax" };
static const char *const modes[] = { [CORNU_ROWS] = "rows", [CORNU_COLUMNS] = "columns" };

json_t *cornu__json_list(const int64_t *numbers, int count)
{
    json_t *result = json_array();
    for (int i = 0; i < count; i++)
        result = cornu__json_append(result, json_integer(numbers[i]));
    return result;
}

json_t *cornu__json_shape(CornuShape shape)
{
    json_t *result = json_array();
    for (int i = 0; i < shape.rank; i++)
        result = cornu__json_append(result, shape.extent[i] == CORNU_NONE
                                                ? json_null() : json_integer(shape.extent[i]));
    return result;
}

json_t *cornu__json_object(const char *module, const char *class_name, json_t *config)
{
    return json_pack("{s:s, s:s, s:o, s:n}", "module", module, "class_name", class_name,
                     "config", config, "registered_name");
}

const char *cornu__field_text(CornuFieldKind kind, int number)
{
    switch (kind) {
    case CORNU_FIELD_PADDING:       return cornu_padding_name((CornuPadding)number);
    case CORNU_FIELD_DATA_FORMAT:   return cornu_data_format_name((CornuDataFormat)number);
    case CORNU_FIELD_MERGE:         return cornu_merge_name((CornuMerge)number);
    case CORNU_FIELD_INTERPOLATION: return cornu_interpolation_name((CornuInterpolation)number);
    case CORNU_FIELD_FILL_MODE:     return cornu_fill_mode_name((CornuFillMode)number);
    case CORNU_FIELD_FLIP_MODE:     return cornu_flip_mode_name((CornuFlipMode)number);
    case CORNU_FIELD_SCORE_MODE:    return cornu_score_mode_name((CornuScoreMode)number);
    case CORNU_FIELD_FAN_MODE:      return cornu__fan_mode_name((CornuFanMode)number);
    case CORNU_FIELD_DISTRIBUTION:  return cornu__distribution_name((CornuDistribution)number);
    case CORNU_FIELD_STANDARDIZE:   return cornu_standardize_name((CornuStandardize)number);
    case CORNU_FIELD_SPLIT:         return cornu_split_name((CornuSplit)number);
    case CORNU_FIELD_OUTPUT_MODE:   return cornu_output_mode_name((CornuOutputMode)number);
    case CORNU_FIELD_REDUCTION:     return cornu__reduction_name((CornuReduction)number);
    case CORNU_FIELD_CURVE:         return cornu__curve_name((CornuCurve)number);
    case CORNU_FIELD_SUMMATION:     return cornu__summation_name((CornuSummation)number);
    case CORNU_FIELD_AVERAGE:       return cornu__average_name((CornuAverage)number);
    case CORNU_FIELD_AGGREGATION:   return cornu__aggregation_name((CornuAggregation)number);
    default:                        return NULL;
    }
}

/* Nested lists, one for each axis. */
static json_t *numbers_to_json(const CornuNumbers *numbers, bool whole, int axis,
                               const double **next)
{
    if (axis == numbers->shape.rank) {
        const double number = *(*next)++;
        return whole ? json_integer((json_int_t)number) : json_real(number);
    }
    json_t *list = json_array();
    for (int64_t i = 0; i < numbers->shape.extent[axis]; i++)
        list = cornu__json_append(list, numbers_to_json(numbers, whole, axis + 1, next));
    return list;
}

/* How many spatial axes the extents of this kind have. */
static int axes_of(CornuFieldKind kind)
{
    switch (kind) {
    case CORNU_FIELD_SINGLE: case CORNU_FIELD_SINGLE_OR_NONE: return 1;
    case CORNU_FIELD_PAIR:   case CORNU_FIELD_PAIR_OR_NONE:   return 2;
    default:                                                  return 3;
    }
}

static bool may_be_none(CornuFieldKind kind)
{
    return kind == CORNU_FIELD_SINGLE_OR_NONE || kind == CORNU_FIELD_PAIR_OR_NONE ||
           kind == CORNU_FIELD_TRIPLE_OR_NONE;
}

static json_t *extents_to_json(CornuFieldKind kind, const int64_t *extents)
{
    const int count = axes_of(kind);
    int64_t   plain[3];
    bool      given = !may_be_none(kind);
    for (int i = 0; i < count; i++) {
        given |= extents[i] != 0;
        plain[i] = cornu__integer(extents[i], 0);
    }
    return given ? cornu__json_list(plain, count) : json_null();
}

static json_t *edges_to_json(const int64_t *edges, int axes)
{
    json_t *list = json_array();
    for (int i = 0; i < axes; i++) {
        const int64_t both[] = { cornu__integer(edges[2 * i], 0), edges[2 * i + 1] };
        list = cornu__json_append(list, cornu__json_list(both, 2));
    }
    return list;
}

/* A name, or a layer. */
static json_t *activation_to_json(const CornuLayersInside *inside, CornuActivation activation)
{
    const CornuLayer *layer = cornu__activation_layer(activation);
    if (!layer) return json_string(cornu_activation_name(activation));
    return inside ? inside->to_json(layer, inside->usual) : NULL;
}

static json_t *field_to_json(const CornuLayersInside *inside, const CornuField *field,
                             const void *config)
{
    const void *at = (const char *)config + field->offset;
    switch (field->kind) {
    case CORNU_FIELD_INTEGER: return json_integer(*(const int64_t *)at);
    case CORNU_FIELD_SINGLE: case CORNU_FIELD_PAIR: case CORNU_FIELD_TRIPLE:
    case CORNU_FIELD_SINGLE_OR_NONE: case CORNU_FIELD_PAIR_OR_NONE:
    case CORNU_FIELD_TRIPLE_OR_NONE:
        return extents_to_json(field->kind, at);
    case CORNU_FIELD_EDGES:    return edges_to_json(at, 2);
    case CORNU_FIELD_EDGES_3D: return edges_to_json(at, 3);
    case CORNU_FIELD_SHAPE: {
        const int64_t *extents = at;
        json_t *shape = json_array();
        for (int i = 0; i < CORNU_MAX_RANK && extents[i] != 0; i++)   /* written as -1 by Keras */
            shape = cornu__json_append(shape, json_integer(extents[i]));
        return shape;
    }
    case CORNU_FIELD_EXTENTS: {
        CornuShape shape = { .rank = 0 };
        while (shape.rank < CORNU_MAX_RANK && ((const int64_t *)at)[shape.rank] != 0) {
            shape.extent[shape.rank] = ((const int64_t *)at)[shape.rank];
            shape.rank++;
        }
        return cornu__json_shape(shape);
    }
    case CORNU_FIELD_TEXT: case CORNU_FIELD_TEXT_OR_DEFAULT: case CORNU_FIELD_TEXT_OR_NONE: {
        const char *text = *(const char *const *)at;
        return text ? json_string(text) : json_null();
    }
    case CORNU_FIELD_SHAPE_OR_NONE: {
        const int64_t *extents = at;
        int            rank = 0;
        while (rank < CORNU_MAX_RANK && extents[rank] != 0) rank++;
        return rank ? cornu__json_shape(cornu_shape_from(rank, extents)) : json_null();
    }
    case CORNU_FIELD_NUMBER: {
        const double number = *(const double *)at;
        return json_real(number == (double)CORNU_ZERO ? 0.0 : number);
    }
    case CORNU_FIELD_RANGE: case CORNU_FIELD_RANGE_OR_NONE: case CORNU_FIELD_REACH: {
        const double *range = at;
        if (field->kind != CORNU_FIELD_RANGE && range[0] == 0.0 && range[1] == 0.0)
            return json_null();
        if (field->kind == CORNU_FIELD_REACH && range[0] == -range[1]) return json_real(range[1]);
        return cornu__json_append(
            cornu__json_append(json_array(), json_real(cornu__number(range[0], 0.0))),
            json_real(cornu__number(range[1], 0.0)));
    }
    case CORNU_FIELD_FLAG: return json_boolean(*(const bool *)at);
    case CORNU_FIELD_NOT:  return json_boolean(!*(const bool *)at);
    case CORNU_FIELD_ACTIVATION:
        return activation_to_json(inside, *(const CornuActivation *)at);
    case CORNU_FIELD_PADDING: case CORNU_FIELD_MERGE: case CORNU_FIELD_INTERPOLATION:
    case CORNU_FIELD_DATA_FORMAT: case CORNU_FIELD_STANDARDIZE: case CORNU_FIELD_SPLIT:
    case CORNU_FIELD_FILL_MODE: case CORNU_FIELD_FLIP_MODE: case CORNU_FIELD_OUTPUT_MODE:
    case CORNU_FIELD_REDUCTION:
    case CORNU_FIELD_CURVE: case CORNU_FIELD_SUMMATION: case CORNU_FIELD_AVERAGE:
    case CORNU_FIELD_AGGREGATION: case CORNU_FIELD_FAN_MODE: case CORNU_FIELD_DISTRIBUTION:
    case CORNU_FIELD_SCORE_MODE: {
        const char *text = cornu__field_text(field->kind, *(const int *)at);
        return text ? json_string(text) : json_null();
    }
    case CORNU_FIELD_LAYER:
        return inside ? inside->to_json(*(CornuLayer *const *)at, inside->usual) : NULL;
    case CORNU_FIELD_LAYERS: {
        CornuLayer *const *layers = at;
        json_t            *list = inside ? json_array() : NULL;
        for (int i = 0; i < CORNU_MAX_WRAPPED && layers[i]; i++)
            list = cornu__json_append(list, inside->to_json(layers[i], inside->usual));
        return list;
    }
    case CORNU_FIELD_INITIALIZER: return cornu__weight_rule_to_json(&cornu__initializers, at);
    case CORNU_FIELD_REGULARIZER: return cornu__weight_rule_to_json(&cornu__regularizers, at);
    case CORNU_FIELD_CONSTRAINT:  return cornu__weight_rule_to_json(&cornu__constraints, at);
    case CORNU_FIELD_ORTHOGONAL_MODE:
        return json_string(modes[*(const CornuOrthogonalMode *)at]);
    case CORNU_FIELD_INTEGER_OR_NONE: case CORNU_FIELD_INTEGER_OR_DEFAULT:
    case CORNU_FIELD_SEED: {
        const int64_t number = *(const int64_t *)at;
        return number ? json_integer(cornu__integer(number, 0)) : json_null();
    }
    case CORNU_FIELD_NUMBER_OR_NONE: case CORNU_FIELD_NUMBER_OR_DEFAULT: {
        const double number = *(const double *)at;
        if (number == 0.0) return json_null();
        return json_real(number == (double)CORNU_ZERO ? 0.0 : number);
    }
    case CORNU_FIELD_ROW_AXES: {
        const int64_t *axis = at;
        int count = 0;
        if (axis[0] == CORNU_ZERO) return json_array();
        while (count < CORNU_MAX_RANK && axis[count] != 0) count++;
        return count == 0 ? json_null() : count == 1 ? json_integer(axis[0])
             : cornu__json_list(axis, count);
    }
    case CORNU_FIELD_AXES_OR_NONE: {
        const int64_t *axis = at;
        json_t        *list = axis[0] ? json_array() : json_null();
        for (int i = 0; i < CORNU_MAX_RANK && axis[i] != 0; i++)
            list = cornu__json_append(list, json_integer(cornu__integer(axis[i], 0)));
        return list;
    }
    case CORNU_FIELD_AXES: {
        const int64_t *axis = at;
        int count = 1;
        while (count < CORNU_MAX_RANK && axis[count] != 0) count++;
        return count == 1 ? json_integer(axis[0]) : cornu__json_list(axis, count);
    }
    case CORNU_FIELD_THRESHOLDS: {
        const double *number = at;
        json_t       *list = json_array();
        for (int i = 0; i < CORNU_MAX_THRESHOLDS && number[i] != 0.0; i++)
            list = cornu__json_append(list, json_real(cornu__number(number[i], 0.0)));
        if (!list || number[0] != 0.0) return list;
        json_decref(list);
        return json_null();
    }
    case CORNU_FIELD_CLIPPING: {
        const double *number = at;
        json_t       *limits = json_object();
        for (int i = 0; i < 3; i++)
            if (number[i] != 0.0)
                limits = cornu__json_with(limits, clippings[i],
                                          json_real(cornu__number(number[i], 0.0)));
        return limits;
    }
    case CORNU_FIELD_CLASSES: {
        const uint64_t classes = *(const uint64_t *)at;
        json_t        *list = json_array();
        for (int i = 0; i < 64; i++)
            if (classes >> i & 1) list = cornu__json_append(list, json_integer(i));
        return list;
    }
    case CORNU_FIELD_NUMBERS: case CORNU_FIELD_INTEGERS: {
        const CornuNumbers *numbers = at;
        const double       *next = numbers->values;
        return numbers_to_json(numbers, field->kind == CORNU_FIELD_INTEGERS, 0, &next);
    }
    case CORNU_FIELD_TEXTS: {
        const CornuTexts *texts = at;
        json_t           *list = json_array();
        for (int64_t i = 0; i < texts->count; i++)
            list = cornu__json_append(list, json_string(texts->values[i]));
        return list;
    }
    }
    return NULL;
}

json_t *cornu__fields_to_json(const CornuLayersInside *inside, const CornuField *field,
                              const void *config, json_t *object)
{
    for (; field && field->name; field++)
        if (!cornu__is_default(field, config))
            object = cornu__json_with(object, field->name, field_to_json(inside, field, config));
    return object;
}

json_t *cornu__weight_rule_to_json(const CornuWeightRuleFamily *family, const void *rule)
{
    const CornuWeightRuleClass *kind = cornu__weight_rule_class(family, rule);
    char module[40];
    if (!kind) return json_null();
    snprintf(module, sizeof module, "keras.%ss", family->word);
    json_t *config = cornu__fields_to_json(NULL, kind->fields, rule, json_object());
    return cornu__json_object(module, kind->class_name, config);
}

/* ---- Reading ---- */

CornuStatus cornu__unexpected(const char *name, const char *expected)
{
    return cornu__fail(CORNU_ERR_FORMAT, "%s is not %s", name, expected);
}

CornuStatus cornu__read_list(const json_t *value, const char *name, int64_t *numbers, size_t most,
                             size_t *count)
{
    *count = json_array_size(value);
    if (!json_is_array(value) || *count > most)
        return cornu__fail(CORNU_ERR_FORMAT, "%s is not a list of at most %zu numbers", name, most);
    for (size_t i = 0; i < *count; i++) {
        const json_t *number = json_array_get(value, i);
        if (!json_is_integer(number) && !json_is_null(number))
            return cornu__unexpected(name, "a list of whole numbers");
        numbers[i] = json_is_null(number) ? CORNU_NONE : json_integer_value(number);
    }
    return CORNU_OK;
}

static CornuStatus read_text(CornuFieldKind kind, const char *name, const char *text, int *number)
{
    char   all[160];
    size_t length = 0;
    for (int i = 0; i < CORNU_MOST_FIELD_TEXTS; i++) {
        const char *one = cornu__field_text(kind, i);
        if (!one) continue;
        *number = i;
        if (!strcmp(text, one)) return CORNU_OK;
        length += (size_t)snprintf(all + length, sizeof all - length, "%s%s", length ? ", " : "",
                                   one);
    }
    return cornu__fail(CORNU_ERR_FORMAT, "%s is \"%.40s\", expected one of %s", name, text, all);
}

/* A number stands for all axes. */
static CornuStatus read_extents(CornuFieldKind kind, const json_t *value, const char *name,
                                int64_t *extents)
{
    static const char *const numbers[] = { NULL, "one number", "two numbers", "three numbers" };
    const size_t             axes = (size_t)axes_of(kind);
    size_t                   count = axes;
    if (json_is_integer(value))
        for (size_t i = 0; i < axes; i++) extents[i] = json_integer_value(value);
    else
        CORNU__TRY(cornu__read_list(value, name, extents, axes, &count));
    for (size_t i = 0; i < count && may_be_none(kind); i++)
        if (extents[i] == 0) extents[i] = CORNU_ZERO;
    if (count == axes) return CORNU_OK;
    return cornu__fail(CORNU_ERR_FORMAT, "%s is not %sa list of %s", name,
                       may_be_none(kind) ? "null or " : "", numbers[axes]);
}

/* (top, bottom), (left, right), before them (front, back) if there are three axes. A number stands
 * for all of them, a list of numbers has one for each axis, as in Keras' constructors. */
static CornuStatus read_edges(const json_t *value, const char *name, int64_t *edges, size_t axes)
{
    size_t count = json_is_integer(value) ? axes : json_array_size(value), two = 2;
    bool   any = false;
    for (size_t i = 0; i < axes && count == axes && two == 2; i++) {
        const json_t *axis = json_is_integer(value) ? value : json_array_get(value, i);
        if (json_is_integer(axis)) edges[2 * i] = edges[2 * i + 1] = json_integer_value(axis);
        else CORNU__TRY(cornu__read_list(axis, name, edges + 2 * i, 2, &two));
        any |= edges[2 * i] != 0 || edges[2 * i + 1] != 0;
    }
    if (!any) edges[0] = CORNU_ZERO;
    if (count == axes && two == 2) return CORNU_OK;
    return cornu__unexpected(name, axes == 2 ? "a number or two lists of two numbers"
                                             : "a number or three lists of two numbers");
}

/* The two ends of a range, or a number x for -x and x. */
static CornuStatus read_range(const json_t *value, const char *name, double *range)
{
    for (size_t i = 0; i < 2; i++) {
        const json_t *end = json_is_number(value) ? value : json_array_get(value, i);
        if (!json_is_number(end)) return cornu__unexpected(name, "a number or a list of two");
        range[i] = end == value && i == 0 ? -json_number_value(end) : json_number_value(end);
    }
    return CORNU_OK;
}

static CornuStatus read_mode(const char *text, CornuOrthogonalMode *mode)
{
    *mode = strcmp(text, modes[CORNU_COLUMNS]) ? CORNU_ROWS : CORNU_COLUMNS;
    if (!strcmp(text, modes[*mode])) return CORNU_OK;
    return cornu__fail(CORNU_ERR_FORMAT, "mode is \"%.40s\", expected rows or columns", text);
}

/* One axis, or a list of axes; 0 is stored first. */
static CornuStatus read_axes(const json_t *value, const char *name, int64_t axis[CORNU_MAX_RANK])
{
    size_t count = 1;
    axis[0] = json_integer_value(value);
    if (json_is_integer(value)) return CORNU_OK;
    CORNU__TRY(cornu__read_list(value, name, axis, CORNU_MAX_RANK, &count));
    for (size_t i = 1; i < count; i++)
        if (axis[i] == 0) {
            axis[i] = axis[0];
            axis[0] = 0;
        }
    return count > 0 ? CORNU_OK : cornu__unexpected(name, "a number or a list of one at least");
}

/* One axis or a list of axes; 0 is the batch. */
static CornuStatus read_row_axes(const json_t *value, const char *name,
                                 int64_t axis[CORNU_MAX_RANK])
{
    size_t count = 1;
    if (json_is_integer(value)) axis[0] = json_integer_value(value);
    else if (json_is_null(value)) count = 0;
    else CORNU__TRY(cornu__read_list(value, name, axis, CORNU_MAX_RANK, &count));
    for (size_t i = 0; i < count; i++)
        if (axis[i] == 0)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s has 0, the axis of the batch, which is "
                               "not available", name);
    if (count == 0) axis[0] = CORNU_ZERO;
    return CORNU_OK;
}

/* Axes; an empty list is not the same as null. */
static CornuStatus read_axes_or_none(const json_t *value, const char *name,
                                     int64_t axis[CORNU_MAX_RANK])
{
    size_t count;
    CORNU__TRY(cornu__read_list(value, name, axis, CORNU_MAX_RANK, &count));
    for (size_t i = 0; i < count; i++)
        if (axis[i] == 0) axis[i] = CORNU_ZERO;
    return count > 0 ? CORNU_OK : cornu__unexpected(name, "null or a list of at least one number");
}

/* A number or a list of numbers; 0 is CORNU_ZERO. */
static CornuStatus read_thresholds(const json_t *value, const char *name,
                                   double thresholds[CORNU_MAX_THRESHOLDS])
{
    const size_t count = json_is_number(value) ? 1 : json_array_size(value);
    if (count < 1 || count > CORNU_MAX_THRESHOLDS)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s are not a number or a list of 1 to %d", name,
                           CORNU_MAX_THRESHOLDS);
    for (size_t i = 0; i < count; i++) {
        const json_t *number = json_is_number(value) ? value : json_array_get(value, i);
        if (!json_is_number(number)) return cornu__unexpected(name, "a list of numbers");
        thresholds[i] = json_number_value(number);
        if (thresholds[i] == 0.0) thresholds[i] = (double)CORNU_ZERO;
    }
    return CORNU_OK;
}

static CornuStatus read_clipping(const json_t *value, const char *name, double *limits)
{
    const char   *key;
    const json_t *limit;
    if (!json_is_object(value)) return cornu__unexpected(name, "a dictionary");
    json_object_foreach((json_t *)value, key, limit) {
        int i = 0;
        while (i < 3 && strcmp(key, clippings[i])) i++;
        if (i == 3 || !(json_is_number(limit) || json_is_null(limit)))
            return cornu__fail(CORNU_ERR_FORMAT, "%s has %.40s, expected numbers for rmax, rmin, "
                               "dmax", name, key);
        if (json_is_null(limit)) continue;
        limits[i] = json_number_value(limit);
        if (limits[i] == 0.0) limits[i] = (double)CORNU_ZERO;
    }
    return CORNU_OK;
}

/* A set of classes, as bits. */
static CornuStatus read_classes(const json_t *value, const char *name, uint64_t *classes)
{
    int64_t numbers[64];
    size_t  count;
    CORNU__TRY(cornu__read_list(value, name, numbers, 64, &count));
    for (size_t i = 0; i < count; i++) {
        if (numbers[i] < 0 || numbers[i] >= 64)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s has %lld, expected 0 to 63", name,
                               (long long)numbers[i]);
        *classes |= UINT64_C(1) << numbers[i];
    }
    return count > 0 ? CORNU_OK : cornu__unexpected(name, "a list of at least one number");
}

/* A list of layers, which a NULL ends unless it is full. */
static CornuStatus read_layers(const CornuLayersInside *inside, const json_t *value,
                               const char *name, CornuLayer **layers)
{
    const size_t count = json_array_size(value);
    if (!inside || !json_is_array(value) || count > CORNU_MAX_WRAPPED)
        return cornu__fail(CORNU_ERR_FORMAT, "%s is not a list of at most %d layers", name,
                           CORNU_MAX_WRAPPED);
    for (size_t i = 0; i < count; i++)
        CORNU__TRY(inside->from_json(json_array_get(value, i), inside->usual, &layers[i]));
    return CORNU_OK;
}

/* A NumPy array is written with its dtype, others as nested lists. */
static const json_t *list_in(const json_t *value)
{
    const char *class_name = json_string_value(json_object_get(value, "class_name"));
    if (!class_name || strcmp(class_name, "__numpy__")) return value;
    return json_object_get(json_object_get(value, "config"), "value");
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
static CornuStatus read_numbers(const json_t *value, const char *name, CornuNumbers *numbers)
{
    CornuShape shape = { 0 };
    value = list_in(value);
    for (const json_t *at = value; json_is_array(at); at = json_array_get(at, 0)) {
        if (shape.rank == CORNU_MAX_RANK || json_array_size(at) == 0)
            return cornu__fail(CORNU_ERR_FORMAT, "%s is %s", name, shape.rank == CORNU_MAX_RANK
                               ? "a list nested too deep" : "an empty list, expected numbers");
        shape.extent[shape.rank++] = (int64_t)json_array_size(at);
    }
    CORNU__TRY(copy_numbers(value, name, &shape, 0, NULL));   /* the file has as many as it says */
    const size_t count = (size_t)cornu_shape_count(shape);
    double      *values = cornu__allocate(count, sizeof *values), *next = values;
    if (!values) return CORNU_ERR_MEMORY;
    *numbers = (CornuNumbers){ values, shape };
    return copy_numbers(value, name, &shape, 0, &next);
}

/* A list of strings, which stay the file's. */
static CornuStatus read_texts(const json_t *value, const char *name, CornuTexts *texts)
{
    value = list_in(value);
    if (!json_is_array(value)) return cornu__unexpected(name, "a list of strings");
    const size_t count = json_array_size(value);
    const char **values = cornu__allocate(count, sizeof *values);
    if (!values) return CORNU_ERR_MEMORY;
    *texts = (CornuTexts){ values, (int64_t)count };
    for (size_t i = 0; i < count; i++)
        if (!(values[i] = json_string_value(json_array_get(value, i))))
            return cornu__unexpected(name, "a list of strings");
    return CORNU_OK;
}

/* A name, a function of that name, or a layer. */
static CornuStatus read_activation(const CornuLayersInside *inside, const json_t *value,
                                   const char *name, CornuActivation *activation)
{
    const char *class_name = json_string_value(json_object_get(value, "class_name"));
    const char *text = json_string_value(value);
    CornuLayer *layer;
    if (class_name && !strcmp(class_name, "function"))
        text = json_string_value(json_object_get(value, "config"));
    if (text && strchr(text, '>'))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s is the registered function \"%.60s\", "
                           "expected one of Keras' activations; a layer class of your own can "
                           "compute it, see cornu_register_layer", name, text);
    if (text) return cornu_activation_find(text, activation);
    if (!class_name || !inside)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s is not a name or a layer; Python functions "
                           "without a name, such as a lambda, are not available", name);
    CORNU__TRY(inside->from_json(value, inside->usual, &layer));
    layer->owners = 0;
    *activation = cornu_activation_of(layer);
    return cornu_error_take();
}

CornuStatus cornu__read_field(const CornuLayersInside *inside, const CornuField *field,
                              const json_t *value, void *config)
{
    void *at = (char *)config + field->offset;
    const char *text = json_string_value(value);
    size_t count;
    switch (field->kind) {
    case CORNU_FIELD_SEED:
        /* A SeedGenerator draws new numbers each time, as a model does. */
        if (json_is_object(value)) return CORNU_OK;   /* fall through */
    case CORNU_FIELD_INTEGER:
    case CORNU_FIELD_INTEGER_OR_NONE:
    case CORNU_FIELD_INTEGER_OR_DEFAULT:
        if (!json_is_integer(value)) return cornu__unexpected(field->name, "a whole number");
        *(int64_t *)at = json_integer_value(value);
        if (field->kind != CORNU_FIELD_INTEGER && *(int64_t *)at == 0) *(int64_t *)at = CORNU_ZERO;
        return CORNU_OK;
    case CORNU_FIELD_SINGLE: case CORNU_FIELD_PAIR: case CORNU_FIELD_TRIPLE:
    case CORNU_FIELD_SINGLE_OR_NONE: case CORNU_FIELD_PAIR_OR_NONE:
    case CORNU_FIELD_TRIPLE_OR_NONE:
        return read_extents(field->kind, value, field->name, at);
    case CORNU_FIELD_EDGES:    return read_edges(value, field->name, at, 2);
    case CORNU_FIELD_EDGES_3D: return read_edges(value, field->name, at, 3);
    case CORNU_FIELD_RANGE: return read_range(value, field->name, at);
    case CORNU_FIELD_RANGE_OR_NONE: case CORNU_FIELD_REACH: {
        double *range = at;
        CORNU__TRY(read_range(value, field->name, range));
        for (int i = 0; i < 2; i++) range[i] = range[i] == 0.0 ? (double)CORNU_ZERO : range[i];
        return CORNU_OK;
    }
    case CORNU_FIELD_TEXT: case CORNU_FIELD_TEXT_OR_DEFAULT: case CORNU_FIELD_TEXT_OR_NONE:
        if (json_is_null(value)) text = "none";
        if (!text) return cornu__unexpected(field->name, "a string");
        *(const char **)at = text;
        return CORNU_OK;
    case CORNU_FIELD_SHAPE:
    case CORNU_FIELD_EXTENTS:
    case CORNU_FIELD_SHAPE_OR_NONE:
        return cornu__read_list(value, field->name, at, CORNU_MAX_RANK, &count);
    case CORNU_FIELD_NUMBER:
    case CORNU_FIELD_NUMBER_OR_NONE:
    case CORNU_FIELD_NUMBER_OR_DEFAULT:
        if (!json_is_number(value)) return cornu__unexpected(field->name, "a number");
        *(double *)at = json_number_value(value);
        if (*(double *)at == 0.0) *(double *)at = (double)CORNU_ZERO;
        return CORNU_OK;
    case CORNU_FIELD_FLAG:
    case CORNU_FIELD_NOT:   /* null is false, as in Python */
        if (!json_is_boolean(value) && !json_is_null(value))
            return cornu__unexpected(field->name, "true or false");
        *(bool *)at = json_is_true(value) == (field->kind == CORNU_FIELD_FLAG);
        return CORNU_OK;
    case CORNU_FIELD_ACTIVATION:
        if (!json_is_null(value)) return read_activation(inside, value, field->name, at);
        *(CornuActivation *)at = CORNU_LINEAR;
        return CORNU_OK;
    case CORNU_FIELD_FAN_MODE: case CORNU_FIELD_DISTRIBUTION:
    case CORNU_FIELD_PADDING: case CORNU_FIELD_INTERPOLATION: case CORNU_FIELD_FILL_MODE:
    case CORNU_FIELD_DATA_FORMAT: case CORNU_FIELD_SCORE_MODE:
    case CORNU_FIELD_FLIP_MODE: case CORNU_FIELD_OUTPUT_MODE:
    case CORNU_FIELD_REDUCTION: case CORNU_FIELD_CURVE:
    case CORNU_FIELD_SUMMATION: case CORNU_FIELD_AVERAGE:
        return text ? read_text(field->kind, field->name, text, at)
                    : cornu__unexpected(field->name, "a string");
    case CORNU_FIELD_LAYER:
        return inside ? inside->from_json(value, inside->usual, at)
                      : cornu__unexpected(field->name, "an argument of a layer");
    case CORNU_FIELD_LAYERS: return read_layers(inside, value, field->name, at);
    case CORNU_FIELD_INITIALIZER:
        return cornu__read_weight_rule(&cornu__initializers, value, field->name, at);
    case CORNU_FIELD_REGULARIZER:
        return cornu__read_weight_rule(&cornu__regularizers, value, field->name, at);
    case CORNU_FIELD_CONSTRAINT:
        return cornu__read_weight_rule(&cornu__constraints, value, field->name, at);
    case CORNU_FIELD_ORTHOGONAL_MODE:
        return text ? read_mode(text, at) : cornu__unexpected(field->name, "a string");
    case CORNU_FIELD_AXES: return read_axes(value, field->name, at);
    case CORNU_FIELD_AXES_OR_NONE: return read_axes_or_none(value, field->name, at);
    case CORNU_FIELD_ROW_AXES: return read_row_axes(value, field->name, at);
    case CORNU_FIELD_MERGE: case CORNU_FIELD_AGGREGATION: case CORNU_FIELD_STANDARDIZE:
    case CORNU_FIELD_SPLIT:
        if (json_is_null(value)) {
            if (field->kind == CORNU_FIELD_MERGE) *(CornuMerge *)at = CORNU_MERGE_NONE;
            else if (field->kind == CORNU_FIELD_SPLIT) *(CornuSplit *)at = CORNU_NO_SPLIT;
            else if (field->kind == CORNU_FIELD_STANDARDIZE)
                *(CornuStandardize *)at = CORNU_NO_STANDARDIZE;
            else *(CornuAggregation *)at = CORNU_NO_AGGREGATION;
            return CORNU_OK;
        }
        return text ? read_text(field->kind, field->name, text, at)
                    : cornu__unexpected(field->name, "null or a string");
    case CORNU_FIELD_THRESHOLDS: return read_thresholds(value, field->name, at);
    case CORNU_FIELD_CLIPPING: return read_clipping(value, field->name, at);
    case CORNU_FIELD_CLASSES: return read_classes(value, field->name, at);
    case CORNU_FIELD_NUMBERS: case CORNU_FIELD_INTEGERS:
        return read_numbers(value, field->name, at);
    case CORNU_FIELD_TEXTS: return read_texts(value, field->name, at);
    }
    return CORNU_OK;
}

/* The row of an argument. Of two with the same name the second one is for lists or strings. */
static const CornuField *find_field(const CornuField *field, const char *name, const json_t *value)
{
    const CornuField *found = NULL;
    const bool        listed = json_is_array(list_in(value));
    for (; field && field->name; field++) {
        const bool fits = field->kind == CORNU_FIELD_TEXT_OR_DEFAULT ? json_is_string(value)
                                                                     : !found || listed;
        if (!strcmp(field->name, name) && fits) found = field;
    }
    return found;
}

/* Arguments of every layer, whatever its class. */
static bool is_common(const char *name)
{
    static const char *const names[] = { "name", "trainable", "dtype", "lora_rank", "lora_alpha",
                                         "quantization_config" };
    size_t i = 0;
    while (i < sizeof names / sizeof *names && strcmp(name, names[i])) i++;
    return i < sizeof names / sizeof *names;
}

/* Arguments that Keras writes and no class here has, with the value that they must have; NULL if
 * any value will do. */
static const struct { const char *name, *value; } foreign[] = {
    { "data_format", "\"channels_last\"" }, { "seed", NULL },
    { "rms_scaling", "false" },
    { "fill_mode", "\"constant\"" }, { "sparse", "false" },
    { "ragged", "false" },
    { "vocabulary_size", NULL }, { "vocabulary_dtype", NULL }, { "oov_method", "\"floormod\"" },
};

static CornuStatus check_foreign(const char *name, const json_t *value)
{
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        if (strcmp(foreign[i].name, name)) continue;
        if (!foreign[i].value || cornu__json_is(value, foreign[i].value)) return CORNU_OK;
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "the argument \"%s\" is only available as %s",
                           name, foreign[i].value);
    }
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "the argument \"%.60s\" is not known", name);
}

/* Whether null is a value, or none that there can be, and not the default: no merge_mode, a linear
 * activation, no bias, no axis that is kept. */
static bool takes_null(const CornuField *field)
{
    const CornuFieldKind kind = field->kind;
    return kind == CORNU_FIELD_MERGE || kind == CORNU_FIELD_STANDARDIZE ||
           kind == CORNU_FIELD_SPLIT || kind == CORNU_FIELD_TEXT_OR_NONE ||
           kind == CORNU_FIELD_ACTIVATION || kind == CORNU_FIELD_NOT ||
           kind == CORNU_FIELD_AXES ||
           (kind == CORNU_FIELD_ROW_AXES && !strcmp(field->name, "axis"));
}

CornuStatus cornu__read_arguments(const CornuLayersInside *inside, const CornuField *fields,
                                  const json_t *config, void *arguments)
{
    const char *name;
    json_t     *value;
    json_object_foreach((json_t *)config, name, value) {
        const CornuField *field = find_field(fields, name, value);
        if (json_is_null(value) && !(field && takes_null(field))) continue;   /* not given */
        if (field)
            CORNU__TRY(cornu__read_field(inside, field, value, arguments));
        else if (!is_common(name))
            CORNU__TRY(check_foreign(name, value));
    }
    return CORNU_OK;
}

CornuStatus cornu__read_weight_rule(const CornuWeightRuleFamily *family, const json_t *value,
                                    const char *name, void *rule)
{
    const json_t *class_name = json_is_object(value) ? json_object_get(value, "class_name") : value;
    if (json_is_null(value)) return CORNU_OK;
    if (!json_is_string(class_name))
        return cornu__unexpected(name, "null, a string or an object with a class_name");
    CORNU__TRY(cornu__fail_prefix(
        cornu__weight_rule_find(family, json_string_value(class_name), rule), name));
    const json_t *config = json_object_get(value, "config");
    if (!config) return CORNU_OK;
    const CornuField *fields = cornu__weight_rule_class(family, rule)->fields;
    CORNU__TRY(cornu__fail_prefix(cornu__read_arguments(NULL, fields, config, rule), name));
    return cornu__fail_prefix(family->resolve(rule), name);
}
