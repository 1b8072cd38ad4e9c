/* The arguments of operations that are not tensors, as Keras writes them. */
#include "operation_internal.h"

#include <math.h>
#include <string.h>

#include "../../../device/integer_internal.h"

void *cornu__operation_refuse(const CornuOperands *o, const char *what)
{
    return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "%s: %s", cornu_layer_name(o->layer), what);
}

/* Notes that an argument of config was read. */
static void note_asked(const CornuOperands *o, const char *name)
{
    const char *key;
    json_t     *value;
    int         i = 0;
    json_object_foreach((json_t *)o->config, key, value) {
        if (!strcmp(key, name)) *o->asked |= UINT64_C(1) << i;
        i += i < 63;
    }
}

const json_t *cornu__argument(const CornuOperands *o, const char *name, int at)
{
    const json_t *value = json_object_get(o->config, name);
    if (value && o->asked) note_asked(o, name);
    if (!value) value = json_object_get(o->kwargs, name);
    if (!value && at >= 0) value = json_array_get(o->args, (size_t)at);
    return json_is_null(value) ? NULL : value;
}

/* ---- Extents ---- */

enum { MOST_DEPTH = 32 };

static const json_t *extent_config(const json_t *value)
{
    const char *class_name = json_string_value(json_object_get(value, "class_name"));
    return class_name && !strcmp(class_name, "__extent__") ? json_object_get(value, "config")
                                                           : NULL;
}

bool cornu__is_rows(const json_t *value)
{
    const json_t *axis = json_object_get(extent_config(value), "axis");
    return axis && json_integer_value(axis) == 0;
}

/* The extent of an axis of a tensor in the list; -1 without one. */
static int64_t leaf(const CornuOperands *o, const json_t *config)
{
    const json_t    *list = json_object_get(o->kwargs, "__extents__");
    const json_int_t of = json_integer_value(json_object_get(config, "of"));
    const json_t    *tensor = of < 0 ? NULL : json_array_get(list, (size_t)of);
    const json_int_t number = tensor ? json_integer_value(json_object_get(tensor, "config")) : -1;
    const json_int_t axis = json_integer_value(json_object_get(config, "axis"));
    if (!o->in || number < 0 || number >= o->in_count || axis < 0) return -1;
    const CornuShape shape = cornu_tensor_shape(o->in[number]);
    return axis < shape.rank ? shape.extent[axis] : -1;
}

static bool evaluate(const CornuOperands *o, const json_t *value, int depth, double *number)
{
    const json_t *config = extent_config(value);
    const char   *operation = json_string_value(json_object_get(config, "operation"));
    const json_t *operands = json_object_get(config, "operands");
    double        a, b;
    *number = json_number_value(value);
    if (!config || depth == MOST_DEPTH) return json_is_number(value);
    if (!operation) return (*number = (double)leaf(o, config)) >= 0.0;
    if (!evaluate(o, json_array_get(operands, 0), depth + 1, &a) ||
        !evaluate(o, json_array_get(operands, 1), depth + 1, &b))
        return false;
    if (!strcmp(operation, "add")) *number = a + b;
    else if (!strcmp(operation, "subtract")) *number = a - b;
    else if (!strcmp(operation, "multiply")) *number = a * b;
    else if (!strcmp(operation, "divide")) *number = a / b;
    else if (!strcmp(operation, "floor_divide")) *number = floor(a / b);
    else if (!strcmp(operation, "minimum")) *number = fmin(a, b);
    else if (!strcmp(operation, "maximum")) *number = fmax(a, b);
    else return false;
    return isfinite(*number);
}

bool cornu__number_of(const CornuOperands *o, const json_t *value, double *number)
{
    return evaluate(o, value, 0, number);
}

bool cornu__whole_of(const CornuOperands *o, const json_t *value, int64_t *number)
{
    double found;
    if (json_is_integer(value)) return *number = json_integer_value(value), true;
    if (!extent_config(value) || !evaluate(o, value, 0, &found) || found != floor(found) ||
        fabs(found) > 9007199254740992.0)
        return false;
    *number = (int64_t)found;
    return true;
}

/* ---- One argument ---- */

int64_t cornu__argument_integer(const CornuOperands *o, const char *name, int64_t usual)
{
    int64_t number;
    return cornu__whole_of(o, cornu__argument(o, name, -1), &number) ? number : usual;
}

double cornu__argument_number(const CornuOperands *o, const char *name, double usual)
{
    double number;
    return cornu__number_of(o, cornu__argument(o, name, -1), &number) ? number : usual;
}

bool cornu__argument_flag(const CornuOperands *o, const char *name)
{
    return json_is_true(cornu__argument(o, name, -1));
}

const char *cornu__argument_text(const CornuOperands *o, const char *name, const char *usual)
{
    const char *text = json_string_value(cornu__argument(o, name, -1));
    return text ? text : usual;
}

CornuDtype cornu__argument_dtype(const CornuOperands *o, const char *name, CornuDtype usual)
{
    static const char *const names[CORNU_DTYPE_COUNT] = {
        [CORNU_F32] = "float32", [CORNU_F64] = "float64", [CORNU_BF16] = "bfloat16",
        [CORNU_F16] = "float16", [CORNU_I64] = "int64", [CORNU_I32] = "int32",
        [CORNU_U32] = "uint32", [CORNU_U8] = "uint8", [CORNU_BOOL] = "bool",
    };
    /* What the library lacks is the next wider one, as in arrays of Python. */
    static const struct { const char *name; CornuDtype dtype; } wider[] = {
        { "int8", CORNU_I32 }, { "int16", CORNU_I32 }, { "uint16", CORNU_I32 },
        { "uint64", CORNU_I64 },
    };
    const char *text = cornu__argument_text(o, name, NULL);
    int         dtype = 0;
    if (!text) return usual;
    for (size_t i = 0; i < sizeof wider / sizeof *wider; i++)
        if (!strcmp(text, wider[i].name)) return wider[i].dtype;
    while (dtype < CORNU_DTYPE_COUNT && strcmp(text, names[dtype])) dtype++;
    return (CornuDtype)dtype;
}

void *cornu__operation_refuse_dtype(const CornuOperands *o)
{
    const char *text = cornu__argument_text(o, "dtype", "");
    return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "%s: the dtype \"%.40s\" is not available, "
                            "expected bool, uint8, int32, uint32, int64, float16, bfloat16, "
                            "float32 or float64", cornu_layer_name(o->layer), text);
}

int cornu__argument_list(const CornuOperands *o, const char *name, int at,
                         int64_t numbers[CORNU_MAX_RANK])
{
    const json_t *value = cornu__argument(o, name, at);
    if (!value) return -1;
    const size_t count = json_is_array(value) ? json_array_size(value) : 1;
    if (count > CORNU_MAX_RANK)
        return cornu__operation_refuse(o, "a list has too many numbers"), -2;
    for (size_t i = 0; i < count; i++) {
        const json_t *number = json_is_array(value) ? json_array_get(value, i) : value;
        if (!cornu__whole_of(o, number, &numbers[i])) {
            cornu__fail_null(CORNU_ERR_UNSUPPORTED, "%s: %s is not a list of whole numbers",
                             cornu_layer_name(o->layer), name);
            return -2;
        }
    }
    return (int)count;
}

/* The axis counted from the front; -1 with a pending error if there is none. */
static int check_axis(const CornuOperands *o, int64_t axis, int rank)
{
    const int64_t from_front = axis < 0 ? axis + rank : axis;
    if (from_front >= 0 && from_front < rank) return (int)from_front;
    cornu__fail_null(CORNU_ERR_SHAPE, "%s: axis is %lld, the tensor has %d axes",
                     cornu_layer_name(o->layer), (long long)axis, rank);
    return -1;
}

int cornu__argument_axis(const CornuOperands *o, const char *name, int rank, int usual)
{
    int64_t   axes[CORNU_MAX_RANK];
    const int count = cornu__argument_list(o, name, -1, axes);
    if (count == -1) return check_axis(o, usual, rank);
    if (count == 1) return check_axis(o, axes[0], rank);
    if (count >= 0) cornu__operation_refuse(o, "expected one axis");
    return -1;
}

int64_t cornu__argument_axes(const CornuOperands *o, const char *name, int rank)
{
    int64_t   axes[CORNU_MAX_RANK], bits = 0;
    const int count = cornu__argument_list(o, name, -1, axes);
    if (count == -1) return (INT64_C(1) << rank) - 1;
    for (int i = 0; i < count; i++) {
        const int axis = check_axis(o, axes[i], rank);
        if (axis < 0) return 0;
        bits |= INT64_C(1) << axis;
    }
    return bits;
}

CornuTensor *cornu__flat_without_axis(const CornuOperands *o, CornuTensor *x)
{
    if (!x || cornu__argument(o, "axis", -1)) return x;
    return cornu_op_reshape(x, cornu_shape(cornu_shape_count(cornu_tensor_shape(x))));
}

CornuTensor *cornu__with_axes(const CornuOperands *o, CornuTensor *y, CornuTensor *x, int axis)
{
    CornuShape ones = { .rank = cornu_tensor_shape(x).rank };
    if (cornu__argument(o, "axis", -1)) return cornu__add_axis(y, axis);
    for (int i = 0; i < ones.rank; i++) ones.extent[i] = 1;
    return y ? cornu_op_reshape(y, ones) : NULL;
}
