/* Source: tensorflow/serving, util/json_tensor.cc: FillPredictRequestFromJson,
 * FillClassifyRegressRequestFromJson and what they call, with their messages; those on features are
 * of TensorFlow's parse_example. */
#include "rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensor.h"

void rows_free(Rows *rows)
{
    for (int i = 0; i < rows->x_count; i++) {
        free(rows->x[i].data);
        free(rows->text[i]);
    }
    *rows = (Rows){ .count = 0 };
}

static int input_of(const Served *served, Json name)
{
    for (int i = 0; i < served->input_count; i++)
        if (json_is(name, served->inputs[i].name)) return i;
    return -1;
}

/* found[i] = the member of an object that is input i, or NULL. False with a problem if one comes
 * twice. */
static bool find_inputs(const Served *served, Json object, Json *found, Problem *problem)
{
    const char *names[CORNU_MAX_MODEL_TENSORS];
    for (int i = 0; i < served->input_count; i++) names[i] = served->inputs[i].name;
    return json_find(object, names, served->input_count, found, problem);
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
    rows->x[i] = cornu_array_from(tensor_take(tensor, &rows->text[i]),
                                  cornu_type_from(type.dtype, shape));
    return true;
}

/* Makes empty tensors for all inputs. */
static void start(Tensor *tensors, Rows *rows, const Served *served)
{
    rows->x_count = served->input_count;
    for (int i = 0; i < served->input_count; i++) {
        rows->x[i] = (CornuArray){ .data = NULL };
        rows->text[i] = NULL;
        tensors[i] = (Tensor){ .dtype = served->inputs[i].type.dtype };
    }
}

/* ---- "instances": a row at a time ---- */

/* Whether it is an object that is not bytes in base64. */
static bool is_object(Json value)
{
    return json_kind(value) == JSON_OBJECT && !json_is_base64(value);
}

/* Adds one row, whose shape must be that of the first, and moves *at to its end. The tensor's axis
 * 0 counts rows. */
static bool add_row(Tensor *tensor, Json *at, Problem *problem)
{
    Tensor        row = *tensor;         /* whose elements come after those that are there */
    const int64_t before = tensor->count;
    char          got[200], expected[200];
    if (!tensor_rank(&row, *at, problem)) return false;
    if (row.rank + 1 > TENSOR_MAX_RANK)
        return problem_set(problem, CODE_INVALID_ARGUMENT, "Encountered list at unexpected "
                           "level: %d expected < %d", row.rank, TENSOR_MAX_RANK - 1);
    const bool   good = tensor_append(&row, at, problem);
    const size_t bytes = sizeof *row.extent * (size_t)row.rank;
    Tensor       grown = row;
    grown.rank = tensor->rank;
    memcpy(grown.extent, tensor->extent, sizeof grown.extent);
    *tensor = grown;
    if (!good) return false;
    if (tensor->rank == 0) {
        tensor->rank = row.rank + 1;
        tensor->extent[0] = 0;
        memcpy(tensor->extent + 1, row.extent, bytes);
    }
    int64_t size = 1;
    for (int axis = 1; axis < tensor->rank; axis++) size *= tensor->extent[axis];
    if (tensor->count - before != size)
        return problem_set(problem, CODE_INVALID_ARGUMENT, "Expecting tensor size: %lld but got: "
                           "%lld", (long long)size, (long long)(tensor->count - before));
    if (row.rank + 1 != tensor->rank || memcmp(tensor->extent + 1, row.extent, bytes) != 0)
        return problem_set(problem, CODE_INVALID_ARGUMENT, "Expecting shape %s but got: %s",
                           rows_show_shape(expected, tensor->extent + 1, tensor->rank - 1),
                           rows_show_shape(got, row.extent, row.rank));
    tensor->extent[0]++;
    return true;
}

static bool add_object(Tensor *tensors, const Served *served, long long item, Json *at,
                       Problem *problem)
{
    const Json object = *at;
    bool       seen[CORNU_MAX_MODEL_TENSORS] = { false };
    int        members = 0;
    char       names[256];
    JsonShown  shown;
    for (bool more = json_enter(at); more; more = json_follow(at), members++) {
        const int i = input_of(served, *at);
        json_show_name(&shown, *at);
        if (i < 0)
            return problem_set(problem, CODE_INVALID_ARGUMENT, "Failed to process element: %lld "
                               "key: %s of 'instances' list. Error: INVALID_ARGUMENT: JSON object: "
                               "does not have named input: %s", item, shown.text, shown.text);
        *at = json_value_of(*at);
        if (seen[i])
            problem_set(problem, CODE_INVALID_ARGUMENT, "the name comes twice");
        if (seen[i] || !add_row(&tensors[i], at, problem))
            return problem_prefix(problem, "Failed to process element: %lld key: %s of 'instances' "
                                  "list. Error: %s: ", item, shown.text, code_name(problem->code));
        seen[i] = true;
    }
    if (members == served->input_count) return true;
    return problem_set(problem, CODE_INVALID_ARGUMENT, "Failed to process element: %lld of "
                       "'instances' list. JSON object: %s keys must be equal to: %s", item,
                       json_show(&shown, object), list_inputs(served, names));
}

static bool add_instances(Tensor *tensors, const Served *served, Json list, Problem *problem)
{
    Json at = list;
    json_enter(&at);
    const bool objects = is_object(at);
    if (json_kind(at) != JSON_OBJECT && served->input_count > 1)
        return problem_set(problem, CODE_INVALID_ARGUMENT, "instances is a plain list, but "
                           "expecting list of objects as multiple input tensors required as per "
                           "tensorinfo_map");
    long long item = 0;
    do {
        if (is_object(at) != objects)
            return problem_set(problem, CODE_INVALID_ARGUMENT, objects
                               ? "Expecting object but got list at item %lld of input list"
                               : "Expecting value/list but got object at item %lld of input list",
                               item);
        if (objects) {
            if (!add_object(tensors, served, item, &at, problem)) return false;
        } else if (!add_row(&tensors[0], &at, problem)) {
            return problem_prefix(problem, "Failed to process element: %lld of 'instances' list. "
                                  "Error: %s: ", item, code_name(problem->code));
        }
        item++;
    } while (json_follow(&at));
    return true;
}

/* ---- "inputs": a tensor at a time ---- */

static bool add_tensor(Tensor *tensor, Json value, Problem *problem)
{
    return tensor_rank(tensor, value, problem) && tensor_append(tensor, &value, problem);
}

static bool add_inputs(Tensor *tensors, const Served *served, Json value, Problem *problem)
{
    Json found[CORNU_MAX_MODEL_TENSORS];
    if (!is_object(value)) {
        if (served->input_count > 1)
            return problem_set(problem, CODE_INVALID_ARGUMENT, "inputs is a plain value/list, but "
                               "expecting an object as multiple input tensors required as per "
                               "tensorinfo_map");
        return add_tensor(&tensors[0], value, problem);
    }
    if (!find_inputs(served, value, found, problem)) return false;
    for (int i = 0; i < served->input_count; i++) {
        if (!found[i])
            return problem_set(problem, CODE_INVALID_ARGUMENT, "Missing named input: %s in "
                               "'inputs' object.", served->inputs[i].name);
        if (!add_tensor(&tensors[i], found[i], problem)) return false;
    }
    return true;
}

/* If all is good, hands the tensors to the rows as the model's inputs, whose shapes they must have.
 * Frees them otherwise, and the rows. */
static bool give_all(Rows *rows, const Served *served, Tensor *tensors, bool good,
                     Problem *problem)
{
    for (int i = 0; i < served->input_count && good; i++)
        good = give(rows, served, i, &tensors[i], problem);
    for (int i = 0; i < served->input_count; i++) tensor_free(&tensors[i]);
    if (!good) rows_free(rows);
    return good;
}

bool rows_of_predict(Rows *rows, const Served *served, Json request, Problem *problem)
{
    static const char *const names[] = { "instances", "inputs" };
    Json      found[2];
    JsonShown shown;
    Tensor    tensors[CORNU_MAX_MODEL_TENSORS];
    if (!json_find(request, names, 2, found, problem)) return false;
    const Json instances = found[0], inputs = found[1];
    if (!instances && !inputs)
        return problem_set(problem, CODE_INVALID_ARGUMENT, "Missing 'inputs' or 'instances' key");
    if (instances && inputs)
        return problem_set(problem, CODE_INVALID_ARGUMENT, "JSON Value: %s Not formatted correctly "
                           "expecting only one of 'inputs' or 'instances' keys to exist ",
                           json_show(&shown, request));
    Json first = instances;
    if (instances && json_kind(instances) != JSON_LIST)
        return problem_set(problem, CODE_INVALID_ARGUMENT, "JSON Value: %s Expecting 'instances' "
                           "to be an list/array", json_show(&shown, request));
    if (instances && !json_enter(&first))
        return problem_set(problem, CODE_INVALID_ARGUMENT, "JSON Value: %s No values in "
                           "'instances' array", json_show(&shown, request));
    rows->columns = !instances;
    start(tensors, rows, served);
    const bool good = instances ? add_instances(tensors, served, instances, problem)
                                : add_inputs(tensors, served, inputs, problem);
    return give_all(rows, served, tensors, good, problem);
}

/* ---- "examples": objects whose features are flat lists ---- */

/* The extents of an input's rows, of which one may be open. */
static bool set_shape(Tensor *tensor, const ServedTensor *input, int64_t values, Problem *problem)
{
    const CornuShape shape = input->type.shape;
    char             expected[200];
    int64_t          known = 1;
    int              open = 0;
    for (int axis = 1; axis < shape.rank; axis++)
        if (shape.extent[axis] == CORNU_NONE) open++;
        else known *= shape.extent[axis];
    if (open > 1 || (open ? values % known || !values : values != known))
        return problem_set(problem, CODE_INVALID_ARGUMENT, "Key: %s.  Number of %s values != "
                           "expected.  Values size: %lld but output shape: %s", input->name,
                           tensor_dtype_name(tensor->dtype), (long long)values,
                           rows_show_shape(expected, shape.extent + 1, shape.rank - 1));
    int64_t extent[TENSOR_MAX_RANK] = { 0 };
    for (int axis = 1; axis < shape.rank; axis++)
        extent[axis] = shape.extent[axis] == CORNU_NONE ? values / known : shape.extent[axis];
    if (tensor->rank && memcmp(tensor->extent + 1, extent + 1,
                               sizeof *extent * (size_t)(shape.rank - 1)) != 0)
        return problem_set(problem, CODE_INVALID_ARGUMENT, "Key: %s.  Examples have different "
                           "numbers of values", input->name);
    tensor->rank = shape.rank;
    memcpy(tensor->extent + 1, extent + 1, sizeof *extent * (size_t)(shape.rank - 1));
    return true;
}

/* Adds the values of a feature: one, or a list. */
static bool add_feature(Tensor *tensor, const ServedTensor *input, Json value, Problem *problem)
{
    const bool    list = json_kind(value) == JSON_LIST;
    const int64_t before = tensor->count;
    bool          more = !list || json_enter(&value);
    for (; more; more = list && json_follow(&value)) {
        const JsonKind kind = json_kind(value);
        if (kind == JSON_LIST || kind == JSON_NULL || is_object(value))
            return problem_set(problem, CODE_INVALID_ARGUMENT, "Feature: %s has element with "
                               "unexpected JSON type: %s", input->name, json_kind_name(value));
        if (!tensor_append_element(tensor, value, problem))
            return problem_prefix(problem, "Key: %s.  Data types don't match. ", input->name);
        value = json_end(value);
    }
    return set_shape(tensor, input, tensor->count - before, problem);
}

static bool add_example(Tensor *tensors, const Served *served, const Json *context, Json example,
                        Problem *problem)
{
    Json own[CORNU_MAX_MODEL_TENSORS];
    if (json_kind(example) != JSON_OBJECT)
        return problem_set(problem, CODE_INVALID_ARGUMENT, "Example must be JSON object but got "
                           "JSON %s", json_kind_name(example));
    if (!find_inputs(served, example, own, problem)) return false;
    for (int i = 0; i < served->input_count; i++) {
        const ServedTensor *input = &served->inputs[i];
        if (own[i] && context[i])
            return problem_set(problem, CODE_INVALID_ARGUMENT, "Feature: %s is in 'context' and in "
                               "an example, expected in one of them", input->name);
        if (!own[i] && !context[i])
            return problem_set(problem, CODE_INVALID_ARGUMENT, "Feature: %s (data type: %s) is "
                               "required but could not be found.", input->name,
                               tensor_dtype_name(input->type.dtype));
        if (!add_feature(&tensors[i], input, own[i] ? own[i] : context[i], problem)) return false;
        tensors[i].extent[0]++;
    }
    return true;
}

bool rows_of_examples(Rows *rows, const Served *served, Json request, Problem *problem)
{
    static const char *const names[] = { "context", "examples" };
    Json      found[2], context[CORNU_MAX_MODEL_TENSORS] = { NULL };
    JsonShown shown;
    Tensor    tensors[CORNU_MAX_MODEL_TENSORS];
    bool      good = true;
    if (!json_find(request, names, 2, found, problem)) return false;
    if (found[0] && json_kind(found[0]) != JSON_OBJECT)
        return problem_set(problem, CODE_INVALID_ARGUMENT, "Example must be JSON object but got "
                           "JSON %s", json_kind_name(found[0]));
    if (found[0] && !find_inputs(served, found[0], context, problem)) return false;
    if (!found[1])
        return problem_set(problem, CODE_INVALID_ARGUMENT, "JSON Value: %s When method is "
                           "classify, key 'examples' is expected and was not found",
                           json_show(&shown, request));
    if (json_kind(found[1]) != JSON_LIST)
        return problem_set(problem, CODE_INVALID_ARGUMENT, "JSON Value: %s Expecting 'examples' "
                           "value to be an list/array", json_show(&shown, request));
    Json at = found[1];
    bool more = json_enter(&at);
    if (!more)
        return problem_set(problem, CODE_INVALID_ARGUMENT, "JSON Value: %s 'examples' value is an "
                           "empty array", json_show(&shown, request));
    start(tensors, rows, served);
    for (; more && good; more = json_follow(&at)) {
        good = add_example(tensors, served, context, at, problem);
        at = json_end(at);
    }
    return give_all(rows, served, tensors, good, problem);
}
