/* Source: tensorflow/serving, util/json_tensor.cc: GetDenseTensorShape, FillTensorProto and
 * AddValueToTensor. */
#include "tensor.h"

#include <stdlib.h>
#include <string.h>

#include "json.h"

void tensor_free(Tensor *tensor)
{
    char **strings = (char **)(void *)tensor->data;
    for (int64_t i = 0; tensor->dtype == CORNU_STRING && i < tensor->count; i++) free(strings[i]);
    free(tensor->data);
    tensor->data = NULL;
    tensor->count = tensor->space = 0;
}

const char *tensor_dtype_name(CornuDtype dtype)
{
    static const char *const names[] = {
        [CORNU_F32] = "float", [CORNU_F64] = "double", [CORNU_BF16] = "bfloat16",
        [CORNU_F16] = "half", [CORNU_I64] = "int64", [CORNU_I32] = "int32",
        [CORNU_U32] = "uint32", [CORNU_U8] = "uint8", [CORNU_BOOL] = "bool",
        [CORNU_STRING] = "string",
    };
    return names[dtype];
}

static bool type_error(const json_t *value, CornuDtype dtype, Problem *problem)
{
    JsonShown shown;
    return problem_set(problem, CODE_INVALID_ARGUMENT,
                       "JSON Value: %s Type: %s is not of expected type: %s",
                       json_show(&shown, value), json_kind(value), tensor_dtype_name(dtype));
}

static bool reserve(Tensor *tensor, Problem *problem)
{
    if (tensor->count < tensor->space) return true;
    const int64_t space = 2 * tensor->space + 64;
    char         *data = realloc(tensor->data, (size_t)space * cornu_dtype_size(tensor->dtype));
    if (!data) return problem_set(problem, CODE_RESOURCE_EXHAUSTED, "no memory for a tensor");
    tensor->data = data;
    tensor->space = space;
    return true;
}

/* A string of the value, which is taken. */
static bool append_string(Tensor *tensor, char *string, size_t size, Problem *problem)
{
    if (!string) return problem->code ? false
        : problem_set(problem, CODE_RESOURCE_EXHAUSTED, "no memory for a string");
    if (strlen(string) < size) {
        free(string);
        return problem_set(problem, CODE_INVALID_ARGUMENT, "a string has a zero byte, which the "
                           "models of this server do not take");
    }
    ((char **)(void *)tensor->data)[tensor->count++] = string;
    return true;
}

bool tensor_append_element(Tensor *tensor, const json_t *value, Problem *problem)
{
    const CornuDtype dtype = tensor->dtype;
    const bool       is_integer = json_is_integer(value);
    const int64_t    integer = is_integer ? json_integer_value(value) : 0;
    double           number = 0;
    if (!reserve(tensor, problem)) return false;
    void *at = tensor->data + (size_t)tensor->count * cornu_dtype_size(dtype);
    switch (dtype) {
    case CORNU_STRING:
        if (json_is_object(value)) {
            size_t size = 0;
            char  *bytes = json_decode_base64(value, &size, problem);
            return bytes && append_string(tensor, bytes, size, problem);
        }
        if (!json_is_string(value) || json_number(value, &number))
            return type_error(value, dtype, problem);
        return append_string(tensor, strdup(json_string_value(value)), 0, problem);
    case CORNU_BOOL:
        if (!json_is_boolean(value)) return type_error(value, dtype, problem);
        *(uint8_t *)at = json_is_true(value);
        break;
    case CORNU_I64:
        if (!is_integer) return type_error(value, dtype, problem);
        memcpy(at, &integer, sizeof integer);
        break;
    case CORNU_I32:
    case CORNU_U32:
    case CORNU_U8:
        if (!is_integer || integer < (dtype == CORNU_I32 ? INT32_MIN : 0) ||
            integer > (dtype == CORNU_I32 ? INT32_MAX : dtype == CORNU_U32 ? UINT32_MAX : 255))
            return type_error(value, dtype, problem);
        if (dtype == CORNU_U8) *(uint8_t *)at = (uint8_t)integer;
        else memcpy(at, &(uint32_t){ (uint32_t)integer }, sizeof(uint32_t));
        break;
    default:
        if (!json_number(value, &number)) return type_error(value, dtype, problem);
        if (dtype == CORNU_F32) memcpy(at, &(float){ (float)number }, sizeof(float));
        else if (dtype == CORNU_F64) memcpy(at, &number, sizeof number);
        else
            cornu_array_set(cornu_array(at, dtype, 1), 0, number);
        break;
    }
    tensor->count++;
    return true;
}

bool tensor_shape(Tensor *tensor, const json_t *value, Problem *problem)
{
    for (tensor->rank = 0; json_is_array(value); value = json_array_get(value, 0)) {
        if (tensor->rank == TENSOR_MAX_RANK)
            return problem_set(problem, CODE_INVALID_ARGUMENT, "Encountered list at unexpected "
                               "level: %d expected < %d", tensor->rank, TENSOR_MAX_RANK);
        tensor->extent[tensor->rank++] = (int64_t)json_array_size(value);
    }
    return true;
}

static bool append(Tensor *tensor, const json_t *value, int level, Problem *problem)
{
    JsonShown shown;
    if (!json_is_array(value)) {
        if (level != tensor->rank)
            return problem_set(problem, CODE_INVALID_ARGUMENT, "JSON Value: %s found at incorrect "
                               "level: %d in the JSON DOM. Expected at level: %d",
                               json_show(&shown, value), level + 1, tensor->rank);
        if (json_is_object(value) && tensor->dtype != CORNU_STRING)
            return type_error(value, tensor->dtype, problem);
        return tensor_append_element(tensor, value, problem);
    }
    if (level >= tensor->rank)
        return problem_set(problem, CODE_INVALID_ARGUMENT, "Encountered list at unexpected level: "
                           "%d expected < %d", level, tensor->rank);
    if ((int64_t)json_array_size(value) != tensor->extent[level])
        return problem_set(problem, CODE_INVALID_ARGUMENT, "Encountered list at unexpected size: "
                           "%zu at level: %d expected size: %lld", json_array_size(value), level,
                           (long long)tensor->extent[level]);
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!append(tensor, json_array_get(value, i), level + 1, problem)) return false;
    return true;
}

bool tensor_append(Tensor *tensor, const json_t *value, Problem *problem)
{
    return append(tensor, value, 0, problem);
}
