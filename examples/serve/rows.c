/* Source: tensorflow/serving, util/json_tensor.cc: FillPredictRequestFromJson and what it calls,
 * with its messages. */
#include "rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "rows_parts.h"

void rows_free(Rows *rows)
{
    for (int i = 0; i < rows->x_count; i++) {
        Tensor tensor = { .dtype = rows->x[i].type.dtype, .data = rows->x[i].data };
        if (tensor.dtype == CORNU_STRING) tensor.count = cornu_shape_count(rows->x[i].type.shape);
        tensor_free(&tensor);
    }
    *rows = (Rows){ .count = 0 };
}

static int input_of(const Served *served, const char *name)
{
    for (int i = 0; i < served->input_count; i++)
        if (!strcmp(served->inputs[i].name, name)) return i;
    return -1;
}

/* "tag,signal": the names of the inputs. */
static const char *list_inputs(const Served *served, char text[256])
{
    size_t length = 0;
    text[0] = '\0';
    for (int i = 0; i < served->input_count && length < 255; i++)
        length += (size_t)snprintf(text + length, 256 - length, "%s%s", i ? "," : "",
                                   served->inputs[i].name);
    return text;
}

const char *rows_show_shape(char text[200], const int64_t *extent, int rank)
{
    size_t length = (size_t)snprintf(text, 200, "[");
    for (int axis = 0; axis < rank; axis++)
        length += (size_t)snprintf(text + length, 200 - length, "%s%lld", axis ? "," : "",
                                   (long long)extent[axis]);
    snprintf(text + length, 200 - length, "]");
    return text;
}

/* ---- A tensor as the model's input ---- */

static bool fits(const Tensor *tensor, CornuShape want, int rank)
{
    if (rank > tensor->rank + 1 || rank < tensor->rank - 1) return false;
    for (int axis = 0; axis < rank || axis < tensor->rank; axis++) {
        const int64_t got = axis < tensor->rank ? tensor->extent[axis] : 1;
        const int64_t expected = axis < rank ? want.extent[axis] : 1;
        if (axis > 0 && expected != got && (expected != CORNU_NONE || got < 1)) return false;
    }
    return true;
}

/* Hands a tensor to the rows, as input i. A trailing axis of extent 1 may be left out or added. */
static bool give(Rows *rows, const Served *served, int i, Tensor *tensor, Problem *problem)
{
    const CornuType type = served->inputs[i].type;
    const char     *name = served->inputs[i].name;
    char            got[200], expected[200];
    if (tensor->rank < 1 || tensor->extent[0] < 1 || !fits(tensor, type.shape, type.shape.rank))
        return problem_set(problem, CODE_INVALID_ARGUMENT, "Input \"%s\" has shape %s, expected %s",
                           name, rows_show_shape(got, tensor->extent, tensor->rank),
                           rows_show_shape(expected, type.shape.extent, type.shape.rank));
    if (rows->count && tensor->extent[0] != rows->count)
        return problem_set(problem, CODE_INVALID_ARGUMENT, "Input \"%s\" has inconsistent batch "
                           "size: %lld expecting: %lld", name, (long long)tensor->extent[0],
                           (long long)rows->count);
    CornuShape shape = { .rank = type.shape.rank };
    for (int axis = 0; axis < shape.rank; axis++)
        shape.extent[axis] = axis < tensor->rank ? tensor->extent[axis] : 1;
    rows->count = tensor->extent[0];
    rows->squeezed |= tensor->rank < shape.rank;
    rows->x[i] = cornu_array_from(tensor->data, cornu_type_from(type.dtype, shape));
    tensor->data = NULL;
    tensor->count = 0;
    return true;
}

void rows_start(Tensor *tensors, Rows *rows, const Served *served)
{
    rows->x_count = served->input_count;
    for (int i = 0; i < served->input_count; i++) {
        rows->x[i] = (CornuArray){ .data = NULL };
        tensors[i] = (Tensor){ .dtype = served->inputs[i].type.dtype };
    }
}

/* ---- "instances": a row at a time ---- */

bool rows_is_object(const json_t *value) { return json_is_object(value) && !json_is_base64(value); }

/* Adds one row, whose shape must be that of the first. The tensor's axis 0 counts rows. */
static bool add_row(Tensor *tensor, const json_t *value, Problem *problem)
{
    Tensor row = { .dtype = tensor->dtype };
    char   got[200], expected[200];
    if (!tensor_shape(&row, value, problem)) return false;
    if (tensor->rank == 0) {
        tensor->rank = row.rank + 1;
        if (tensor->rank > TENSOR_MAX_RANK)
            return problem_set(problem, CODE_INVALID_ARGUMENT, "Encountered list at unexpected "
                               "level: %d expected < %d", row.rank, TENSOR_MAX_RANK - 1);
        memcpy(tensor->extent + 1, row.extent, sizeof *row.extent * (size_t)row.rank);
    }
    const int64_t before = tensor->count;
    row.data = tensor->data;
    row.count = tensor->count;
    row.space = tensor->space;
    const bool good = tensor_append(&row, value, problem);
    tensor->data = row.data;
    tensor->count = row.count;
    tensor->space = row.space;
    if (!good) return false;
    int64_t size = 1;
    for (int axis = 1; axis < tensor->rank; axis++) size *= tensor->extent[axis];
    if (tensor->count - before != size)
        return problem_set(problem, CODE_INVALID_ARGUMENT, "Expecting tensor size: %lld but got: "
                           "%lld", (long long)size, (long long)(tensor->count - before));
    if (row.rank + 1 != tensor->rank ||
        memcmp(tensor->extent + 1, row.extent, sizeof *row.extent * (size_t)row.rank) != 0)
        return problem_set(problem, CODE_INVALID_ARGUMENT, "Expecting shape %s but got: %s",
                           rows_show_shape(expected, tensor->extent + 1, tensor->rank - 1),
                           rows_show_shape(got, row.extent, row.rank));
    tensor->extent[0]++;
    return true;
}

static bool add_object(Tensor *tensors, const Served *served, size_t item, json_t *object,
                       Problem *problem)
{
    const char *key;
    json_t     *value;
    char        names[256];
    JsonShown   shown;
    json_object_foreach(object, key, value) {
        const int i = input_of(served, key);
        if (i < 0)
            return problem_set(problem, CODE_INVALID_ARGUMENT, "Failed to process element: %zu "
                               "key: %s of 'instances' list. Error: INVALID_ARGUMENT: JSON object: "
                               "does not have named input: %s", item, key, key);
        if (!add_row(&tensors[i], value, problem))
            return problem_prefix(problem, "Failed to process element: %zu key: %s of 'instances' "
                                  "list. Error: %s: ", item, key, code_name(problem->code));
    }
    if (json_object_size(object) == (size_t)served->input_count) return true;
    return problem_set(problem, CODE_INVALID_ARGUMENT, "Failed to process element: %zu of "
                       "'instances' list. JSON object: %s keys must be equal to: %s", item,
                       json_show(&shown, object), list_inputs(served, names));
}

static bool add_instances(Tensor *tensors, const Served *served, const json_t *list,
                          Problem *problem)
{
    json_t    *item;
    size_t     i;
    const bool objects = rows_is_object(json_array_get(list, 0));
    if (!json_is_object(json_array_get(list, 0)) && served->input_count > 1)
        return problem_set(problem, CODE_INVALID_ARGUMENT, "instances is a plain list, but "
                           "expecting list of objects as multiple input tensors required as per "
                           "tensorinfo_map");
    json_array_foreach(list, i, item) {
        if (rows_is_object(item) != objects)
            return problem_set(problem, CODE_INVALID_ARGUMENT, objects
                               ? "Expecting object but got list at item %zu of input list"
                               : "Expecting value/list but got object at item %zu of input list",
                               i);
        if (objects) {
            if (!add_object(tensors, served, i, item, problem)) return false;
        } else if (!add_row(&tensors[0], item, problem)) {
            return problem_prefix(problem, "Failed to process element: %zu of 'instances' list. "
                                  "Error: %s: ", i, code_name(problem->code));
        }
    }
    return true;
}

/* ---- "inputs": a tensor at a time ---- */

static bool add_inputs(Tensor *tensors, const Served *served, const json_t *value,
                       Problem *problem)
{
    if (!rows_is_object(value)) {
        if (served->input_count > 1)
            return problem_set(problem, CODE_INVALID_ARGUMENT, "inputs is a plain value/list, but "
                               "expecting an object as multiple input tensors required as per "
                               "tensorinfo_map");
        return tensor_shape(&tensors[0], value, problem) &&
               tensor_append(&tensors[0], value, problem);
    }
    for (int i = 0; i < served->input_count; i++) {
        const json_t *tensor = json_object_get(value, served->inputs[i].name);
        if (!tensor)
            return problem_set(problem, CODE_INVALID_ARGUMENT, "Missing named input: %s in "
                               "'inputs' object.", served->inputs[i].name);
        if (!tensor_shape(&tensors[i], tensor, problem) ||
            !tensor_append(&tensors[i], tensor, problem))
            return false;
    }
    return true;
}

bool rows_give_all(Rows *rows, const Served *served, Tensor *tensors, bool good,
                     Problem *problem)
{
    for (int i = 0; i < served->input_count && good; i++)
        good = give(rows, served, i, &tensors[i], problem);
    for (int i = 0; i < served->input_count; i++) tensor_free(&tensors[i]);
    if (!good) rows_free(rows);
    return good;
}

bool rows_of_predict(Rows *rows, const Served *served, const json_t *request, Problem *problem)
{
    const json_t *instances = json_object_get(request, "instances");
    const json_t *inputs = json_object_get(request, "inputs");
    JsonShown     shown;
    Tensor        tensors[CORNU_MAX_MODEL_TENSORS];
    if (!instances && !inputs)
        return problem_set(problem, CODE_INVALID_ARGUMENT, "Missing 'inputs' or 'instances' key");
    if (instances && inputs)
        return problem_set(problem, CODE_INVALID_ARGUMENT, "JSON Value: %s Not formatted correctly "
                           "expecting only one of 'inputs' or 'instances' keys to exist ",
                           json_show(&shown, request));
    if (instances && !json_is_array(instances))
        return problem_set(problem, CODE_INVALID_ARGUMENT, "JSON Value: %s Expecting 'instances' "
                           "to be an list/array", json_show(&shown, request));
    if (instances && !json_array_size(instances))
        return problem_set(problem, CODE_INVALID_ARGUMENT, "JSON Value: %s No values in "
                           "'instances' array", json_show(&shown, request));
    rows->columns = !instances;
    rows_start(tensors, rows, served);
    const bool good = instances ? add_instances(tensors, served, instances, problem)
                                : add_inputs(tensors, served, inputs, problem);
    return rows_give_all(rows, served, tensors, good, problem);
}
