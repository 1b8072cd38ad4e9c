/* Source: tensorflow/serving, util/json_tensor.cc: GetDenseTensorShape, FillTensorProto and
 * AddValueToTensor. */
#include "tensor.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { OPEN = -1 };   /* an extent that no list has set */

void tensor_free(Tensor *tensor)
{
    free(tensor->data);
    free(tensor->text);
    tensor->data = tensor->text = NULL;
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

static bool type_error(Json value, CornuDtype dtype, Problem *problem)
{
    JsonShown shown;
    return problem_set(problem, CODE_INVALID_ARGUMENT,
                       "JSON Value: %s Type: %s is not of expected type: %s",
                       json_show(&shown, value), json_kind_name(value), tensor_dtype_name(dtype));
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

/* ---- Strings ---- */

static bool append_string(Tensor *tensor, Json value, Problem *problem)
{
    const bool   is_base64 = *value == '{';
    const size_t room = (is_base64 ? json_base64_room(value) : json_room(value)) + 1;
    if (tensor->text_count + room > tensor->text_space) {
        const size_t space = 2 * tensor->text_space + room + 64;
        char        *text = realloc(tensor->text, space);
        if (!text) return problem_set(problem, CODE_RESOURCE_EXHAUSTED, "no memory for strings");
        tensor->text = text;
        tensor->text_space = space;
    }
    char  *to = tensor->text + tensor->text_count;
    size_t size;
    if (!is_base64) size = json_read(value, to);
    else if (!json_read_base64(value, to, &size, problem)) return false;
    if (memchr(to, '\0', size))
        return problem_set(problem, CODE_INVALID_ARGUMENT, "a string has a zero byte, which the "
                           "models of this server do not take");
    to[size] = '\0';
    ((size_t *)(void *)tensor->data)[tensor->count++] = tensor->text_count;
    tensor->text_count += size + 1;
    return true;
}

void *tensor_take(Tensor *tensor, char **text)
{
    char *data = tensor->data;
    *text = tensor->text;
    for (int64_t i = 0; tensor->dtype == CORNU_STRING && i < tensor->count; i++) {
        size_t begin;
        memcpy(&begin, data + (size_t)i * sizeof begin, sizeof begin);
        char *string = tensor->text + begin;
        memcpy(data + (size_t)i * sizeof string, &string, sizeof string);
    }
    *tensor = (Tensor){ .dtype = tensor->dtype };
    return data;
}

/* ---- Elements ---- */

/* TensorFlow Serving refuses what a float would change: whole numbers that it may not have, and
 * numbers beyond the largest. */
static bool is_lossless(const JsonNumber *number, CornuDtype dtype)
{
    static const double most[] = { [CORNU_F32] = FLT_MAX, [CORNU_F64] = DBL_MAX,
                                   [CORNU_F16] = 65504.0, [CORNU_BF16] = 0x1.fep127 };
    const double magnitude = fabs(number->value);
    if (!isfinite(magnitude)) return true;
    if (number->whole && dtype == CORNU_F32) return magnitude < 0x1p24;
    if (number->whole && dtype == CORNU_F64) return magnitude < 0x1p53;
    return magnitude <= most[dtype];
}

static bool append_float(Tensor *tensor, void *at, Json value, Problem *problem)
{
    const CornuDtype dtype = tensor->dtype;
    JsonShown        shown;
    if (json_kind(value) != JSON_NUMBER) return type_error(value, dtype, problem);
    const JsonNumber number = json_number(value);
    if (!is_lossless(&number, dtype))
        return problem_set(problem, CODE_INVALID_ARGUMENT, "Cannot convert JSON value: %s to %s "
                           "without loss of precision.", json_show(&shown, value),
                           tensor_dtype_name(dtype));
    if (dtype == CORNU_F32) {
        const float single = (float)number.value;
        memcpy(at, &single, sizeof single);
    } else if (dtype == CORNU_F64) {
        memcpy(at, &number.value, sizeof number.value);
    } else {
        cornu_array_set(cornu_array(at, dtype, 1), 0, number.value);
    }
    tensor->count++;
    return true;
}

static bool append_integer(Tensor *tensor, void *at, Json value, Problem *problem)
{
    const CornuDtype dtype = tensor->dtype;
    const JsonNumber number = json_kind(value) == JSON_NUMBER ? json_number(value)
                                                              : (JsonNumber){ .whole = false };
    const int64_t    integer = number.integer;
    const int64_t    least = dtype == CORNU_I64 ? INT64_MIN : dtype == CORNU_I32 ? INT32_MIN : 0;
    const int64_t    most = dtype == CORNU_I64 ? INT64_MAX : dtype == CORNU_I32 ? INT32_MAX
                          : dtype == CORNU_U32 ? UINT32_MAX : UINT8_MAX;
    if (!number.is_integer || integer < least || integer > most)
        return type_error(value, dtype, problem);
    if (dtype == CORNU_I64) memcpy(at, &integer, sizeof integer);
    else if (dtype == CORNU_U8) *(uint8_t *)at = (uint8_t)integer;
    else memcpy(at, &(uint32_t){ (uint32_t)integer }, sizeof(uint32_t));
    tensor->count++;
    return true;
}

bool tensor_append_element(Tensor *tensor, Json value, Problem *problem)
{
    const CornuDtype dtype = tensor->dtype;
    const JsonKind   kind = json_kind(value);
    if (!reserve(tensor, problem)) return false;
    void *at = tensor->data + (size_t)tensor->count * cornu_dtype_size(dtype);
    switch (dtype) {
    case CORNU_STRING:
        if (kind != JSON_OBJECT && kind != JSON_STRING) return type_error(value, dtype, problem);
        return append_string(tensor, value, problem);
    case CORNU_BOOL:
        if (kind != JSON_TRUE && kind != JSON_FALSE) return type_error(value, dtype, problem);
        *(uint8_t *)at = kind == JSON_TRUE;
        tensor->count++;
        return true;
    case CORNU_I64: case CORNU_I32: case CORNU_U32: case CORNU_U8:
        return append_integer(tensor, at, value, problem);
    default:
        return append_float(tensor, at, value, problem);
    }
}

/* ---- Lists ---- */

bool tensor_rank(Tensor *tensor, Json value, Problem *problem)
{
    bool more = true;
    for (tensor->rank = 0; more && json_kind(value) == JSON_LIST; more = json_enter(&value)) {
        if (tensor->rank == TENSOR_MAX_RANK)
            return problem_set(problem, CODE_INVALID_ARGUMENT, "Encountered list at unexpected "
                               "level: %d expected < %d", tensor->rank, TENSOR_MAX_RANK);
        tensor->extent[tensor->rank++] = OPEN;
    }
    return true;
}

static bool append(Tensor *tensor, Json *at, int level, Problem *problem)
{
    const Json value = *at;
    int64_t    count = 0;
    JsonShown  shown;
    if (json_kind(value) != JSON_LIST) {
        *at = json_end(value);
        if (level != tensor->rank)
            return problem_set(problem, CODE_INVALID_ARGUMENT, "JSON Value: %s found at incorrect "
                               "level: %d in the JSON DOM. Expected at level: %d",
                               json_show(&shown, value), level + 1, tensor->rank);
        if (json_kind(value) == JSON_OBJECT && tensor->dtype != CORNU_STRING)
            return type_error(value, tensor->dtype, problem);
        return tensor_append_element(tensor, value, problem);
    }
    if (level >= tensor->rank)
        return problem_set(problem, CODE_INVALID_ARGUMENT, "Encountered list at unexpected level: "
                           "%d expected < %d", level, tensor->rank);
    int64_t *extent = &tensor->extent[level];
    bool     more = json_enter(at);
    for (; more && count != *extent; more = json_follow(at), count++)
        if (!append(tensor, at, level + 1, problem)) return false;
    if (*extent == OPEN) *extent = count;
    if (!more && count == *extent) return true;
    return problem_set(problem, CODE_INVALID_ARGUMENT, "Encountered list at unexpected size: "
                       "%lld at level: %d expected size: %lld", (long long)json_count(value),
                       level, (long long)*extent);
}

bool tensor_append(Tensor *tensor, Json *at, Problem *problem)
{
    return append(tensor, at, 0, problem);
}
