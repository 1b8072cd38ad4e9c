/* Kinds of fields that are extents, shapes and axes. */
#include "../config/keywords_internal.h"
#include "field_internal.h"

/* ---- Windows and edges ---- */

static json_t *write_extents(const CornuFieldSource *from)
{
    const int64_t *extents = from->at;
    int64_t        plain[3];
    bool           given = !from->kind->none;
    for (int i = 0; i < from->kind->axes; i++) {
        given |= extents[i] != 0;
        plain[i] = cornu__integer(extents[i], 0);
    }
    return given ? cornu__json_list(plain, from->kind->axes) : json_null();
}

/* Reads a list with an extent for each axis, or one number for all of them. */
static CornuStatus read_extents(const CornuFieldTarget *to, const json_t *value)
{
    static const char *const numbers[] = { NULL, "one number", "two numbers", "three numbers" };
    const size_t             axes = (size_t)to->kind->axes;
    const bool               none = to->kind->none;
    int64_t                 *extents = to->at;
    size_t                   count = axes;
    if (json_is_integer(value))
        for (size_t i = 0; i < axes; i++) extents[i] = json_integer_value(value);
    else
        CORNU__TRY(cornu__read_list(value, to->name, extents, axes, &count));
    for (size_t i = 0; i < count && none; i++)
        if (extents[i] == 0) extents[i] = CORNU_ZERO;
    if (count == axes) return CORNU_OK;
    return cornu__fail(CORNU_ERR_FORMAT, "%s is not %sa list of %s", to->name,
                       none ? "null or " : "", numbers[axes]);
}

#define EXTENTS(count) .axes = count, .size = (count) * sizeof(int64_t), .read = read_extents, \
                       .write = write_extents
#define REQUIRED       .examples = { "1", "2" }
const CornuFieldKind cornu_field_single = { .name = "single", EXTENTS(1), REQUIRED };
const CornuFieldKind cornu_field_pair = { .name = "pair", EXTENTS(2), REQUIRED };
const CornuFieldKind cornu_field_triple = { .name = "triple", EXTENTS(3), REQUIRED };
const CornuFieldKind cornu_field_single_or_none = {
    .name = "single_or_none", EXTENTS(1), .none = true,
};
const CornuFieldKind cornu_field_pair_or_none = {
    .name = "pair_or_none", EXTENTS(2), .none = true,
};
const CornuFieldKind cornu_field_triple_or_none = {
    .name = "triple_or_none", EXTENTS(3), .none = true,
};

static json_t *write_edges(const CornuFieldSource *from)
{
    const int64_t *edges = from->at;
    json_t        *list = json_array();
    for (int i = 0; i < from->kind->axes; i++) {
        const int64_t both[] = { cornu__integer(edges[2 * i], 0), edges[2 * i + 1] };
        list = cornu__json_append(list, cornu__json_list(both, 2));
    }
    return list;
}

/* (top, bottom), (left, right), before them (front, back) if there are three axes. A number stands
 * for all of them, a list of numbers has one for each axis, as in Keras' constructors. */
static CornuStatus read_edges(const CornuFieldTarget *to, const json_t *value)
{
    const size_t axes = (size_t)to->kind->axes;
    int64_t     *edges = to->at;
    size_t       count = json_is_integer(value) ? axes : json_array_size(value), two = 2;
    bool         any = false;
    for (size_t i = 0; i < axes && count == axes && two == 2; i++) {
        const json_t *axis = json_is_integer(value) ? value : json_array_get(value, i);
        if (json_is_integer(axis)) edges[2 * i] = edges[2 * i + 1] = json_integer_value(axis);
        else CORNU__TRY(cornu__read_list(axis, to->name, edges + 2 * i, 2, &two));
        any |= edges[2 * i] != 0 || edges[2 * i + 1] != 0;
    }
    if (!any) edges[0] = CORNU_ZERO;
    if (count == axes && two == 2) return CORNU_OK;
    return cornu__unexpected(to->name, axes == 2 ? "a number or two lists of two numbers"
                                                    : "a number or three lists of two numbers");
}

#define EDGES(count) .axes = count, .size = 2 * (count) * sizeof(int64_t), .read = read_edges, \
                     .write = write_edges
const CornuFieldKind cornu_field_edges = { .name = "edges", EDGES(2) };
const CornuFieldKind cornu_field_edges_3d = { .name = "edges_3d", EDGES(3) };

/* ---- Shapes ---- */

/* The number of extents, or of axes, before the first 0 from `least` on. */
static int count_of(const int64_t *list, int least)
{
    int count = least;
    while (count < CORNU_MAX_RANK && list[count] != 0) count++;
    return count;
}

static json_t *write_shape(const CornuFieldSource *from)
{
    const int rank = count_of(from->at, 0);
    if (from->kind == CORNU_FIELD_SHAPE) return cornu__json_list(from->at, rank);
    if (rank == 0 && from->kind->none) return json_null();
    return cornu__json_shape(cornu_shape_from(rank, from->at));
}

static CornuStatus read_shape(const CornuFieldTarget *to, const json_t *value)
{
    size_t count;
    return cornu__read_list(value, to->name, to->at, CORNU_MAX_RANK, &count);
}

#define LIST  .size = CORNU_MAX_RANK * sizeof(int64_t)
#define SHAPE LIST, .write = write_shape, .read = read_shape, \
              .examples = { "[1]" }
const CornuFieldKind cornu_field_shape = { .name = "shape", SHAPE };
const CornuFieldKind cornu_field_extents = { .name = "extents", SHAPE };
const CornuFieldKind cornu_field_shape_or_none = {
    .name = "shape_or_none", SHAPE, .none = true,
};

/* ---- Axes ---- */

static json_t *one_or_list(const int64_t *axis, int count)
{
    return count == 1 ? json_integer(axis[0]) : cornu__json_list(axis, count);
}

static json_t *write_axes(const CornuFieldSource *from)
{
    return one_or_list(from->at, count_of(from->at, 1));
}

/* One axis, or a list of axes; 0 is stored first. */
static CornuStatus read_axes(const CornuFieldTarget *to, const json_t *value)
{
    int64_t *axis = to->at;
    size_t   count = 1;
    axis[0] = json_integer_value(value);
    if (json_is_integer(value)) return CORNU_OK;
    CORNU__TRY(cornu__read_list(value, to->name, axis, CORNU_MAX_RANK, &count));
    for (size_t i = 1; i < count; i++)
        if (axis[i] == 0) {
            axis[i] = axis[0];
            axis[0] = 0;
        }
    return count > 0 ? CORNU_OK
                     : cornu__unexpected(to->name, "a number or a list of one at least");
}

/* A list of axes; null, which Keras writes for its default, is the empty list. */
const CornuFieldKind cornu_field_axes = {
    .name = "axes", LIST, .write = write_axes, .read = read_axes,
    .takes_null = true, .examples = { "[1]" },
};

static json_t *write_row_axes(const CornuFieldSource *from)
{
    const int64_t *axis = from->at;
    const int      count = count_of(from->at, 0);
    if (axis[0] == CORNU_ZERO) return json_array();
    return count ? one_or_list(axis, count) : json_null();
}

/* One axis or a list of axes; 0 is the batch. */
static CornuStatus read_row_axes(const CornuFieldTarget *to, const json_t *value)
{
    int64_t *axis = to->at;
    size_t   count = 1;
    if (json_is_integer(value)) axis[0] = json_integer_value(value);
    else if (json_is_null(value)) count = 0;
    else CORNU__TRY(cornu__read_list(value, to->name, axis, CORNU_MAX_RANK, &count));
    for (size_t i = 0; i < count; i++)
        if (axis[i] == 0)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s has 0, the axis of the batch, which is "
                               "not available", to->name);
    if (count == 0) axis[0] = CORNU_ZERO;
    return CORNU_OK;
}

#define ROW_AXES .name = "row_axes", LIST, .write = write_row_axes, \
                 .read = read_row_axes, .examples = { "[1]" }
const CornuFieldKind cornu_field_row_axes = { ROW_AXES, .takes_null = true };
const CornuFieldKind cornu_field_row_axes_or_none = { ROW_AXES };

static json_t *write_axes_or_none(const CornuFieldSource *from)
{
    const int64_t *axis = from->at;
    json_t        *list = axis[0] ? json_array() : json_null();
    for (int i = 0; i < count_of(axis, 0); i++)
        list = cornu__json_append(list, json_integer(cornu__integer(axis[i], 0)));
    return list;
}

/* An empty list is not the same as null. */
static CornuStatus read_axes_or_none(const CornuFieldTarget *to, const json_t *value)
{
    int64_t *axis = to->at;
    size_t   count;
    CORNU__TRY(cornu__read_list(value, to->name, axis, CORNU_MAX_RANK, &count));
    for (size_t i = 0; i < count; i++)
        if (axis[i] == 0) axis[i] = CORNU_ZERO;
    return count > 0 ? CORNU_OK
                     : cornu__unexpected(to->name, "null or a list of at least one number");
}

const CornuFieldKind cornu_field_axes_or_none = {
    .name = "axes_or_none", LIST, .write = write_axes_or_none,
    .read = read_axes_or_none, .examples = { "[1]" },
};
