/* The rows of classify and regress: "examples", whose features are flat lists. Source:
 * tensorflow/serving, util/json_tensor.cc: FillClassifyRegressRequestFromJson and what it calls;
 * the messages on features are those of TensorFlow's parse_example. */
#include <string.h>

#include "json.h"
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
static bool add_feature(Tensor *tensor, const ServedTensor *input, const json_t *value,
                        Problem *problem)
{
    const bool    list = json_is_array(value);
    const int64_t values = list ? (int64_t)json_array_size(value) : 1;
    for (int64_t i = 0; i < values; i++) {
        const json_t *item = list ? json_array_get(value, (size_t)i) : value;
        if (json_is_array(item) || json_is_null(item) || rows_is_object(item))
            return problem_set(problem, CODE_INVALID_ARGUMENT, "Feature: %s has element with "
                               "unexpected JSON type: %s", input->name, json_kind(item));
        if (!tensor_append_element(tensor, item, problem))
            return problem_prefix(problem, "Key: %s.  Data types don't match. ", input->name);
    }
    return set_shape(tensor, input, values, problem);
}

static bool add_example(Tensor *tensors, const Served *served, const json_t *context,
                        const json_t *example, Problem *problem)
{
    if (!json_is_object(example))
        return problem_set(problem, CODE_INVALID_ARGUMENT, "Example must be JSON object but got "
                           "JSON %s", json_kind(example));
    for (int i = 0; i < served->input_count; i++) {
        const ServedTensor *input = &served->inputs[i];
        const json_t       *own = json_object_get(example, input->name);
        const json_t       *shared = json_object_get(context, input->name);
        if (own && shared)
            return problem_set(problem, CODE_INVALID_ARGUMENT, "Feature: %s is in 'context' and in "
                               "an example, expected in one of them", input->name);
        if (!own && !shared)
            return problem_set(problem, CODE_INVALID_ARGUMENT, "Feature: %s (data type: %s) is "
                               "required but could not be found.", input->name,
                               tensor_dtype_name(input->type.dtype));
        if (!add_feature(&tensors[i], input, own ? own : shared, problem)) return false;
        tensors[i].extent[0]++;
    }
    return true;
}

bool rows_of_examples(Rows *rows, const Served *served, const json_t *request, Problem *problem)
{
    const json_t *context = json_object_get(request, "context");
    const json_t *examples = json_object_get(request, "examples");
    JsonShown     shown;
    Tensor        tensors[CORNU_MAX_MODEL_TENSORS];
    json_t       *example;
    size_t        i;
    bool          good = true;
    if (context && !json_is_object(context))
        return problem_set(problem, CODE_INVALID_ARGUMENT, "Example must be JSON object but got "
                           "JSON %s", json_kind(context));
    if (!examples)
        return problem_set(problem, CODE_INVALID_ARGUMENT, "JSON Value: %s When method is "
                           "classify, key 'examples' is expected and was not found",
                           json_show(&shown, request));
    if (!json_is_array(examples))
        return problem_set(problem, CODE_INVALID_ARGUMENT, "JSON Value: %s Expecting 'examples' "
                           "value to be an list/array", json_show(&shown, request));
    if (!json_array_size(examples))
        return problem_set(problem, CODE_INVALID_ARGUMENT, "JSON Value: %s 'examples' value is an "
                           "empty array", json_show(&shown, request));
    rows_start(tensors, rows, served);
    json_array_foreach(examples, i, example) {
        good = good && add_example(tensors, served, context, example, problem);
    }
    return rows_give_all(rows, served, tensors, good, problem);
}
