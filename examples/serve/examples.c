/* The rows of classify and regress: "examples", whose features are flat lists. Source:
 * tensorflow/serving, util/json_tensor.cc: FillClassifyRegressRequestFromJson and what it calls;
 * the messages on features are those of TensorFlow's parse_example. */
#include <string.h>

#include "rows_parts.h"

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
        if (kind == JSON_LIST || kind == JSON_NULL || rows_is_object(value))
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
    if (!rows_find_inputs(served, example, own, problem)) return false;
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
    if (found[0] && !rows_find_inputs(served, found[0], context, problem)) return false;
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
    rows_start(tensors, rows, served);
    for (; more && good; more = json_follow(&at)) {
        good = add_example(tensors, served, context, at, problem);
        at = json_end(at);
    }
    return rows_give_all(rows, served, tensors, good, problem);
}
