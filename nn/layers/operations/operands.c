/* The operands of operations: tensors, arrays and numbers, brought to one dtype. */
#include "operation_internal.h"

#include <string.h>

#include "../../../device/integer_internal.h"

/* ---- Dtypes ---- */

CornuDtype cornu__promote(CornuDtype a, CornuDtype b)
{
    if (a == b || b == CORNU_BOOL) return a;
    if (a == CORNU_BOOL) return b;
    const bool a_float = cornu_dtype_is_float(a), b_float = cornu_dtype_is_float(b);
    if (a_float != b_float) return a_float ? a : b;
    if (a_float) {
        if (a == CORNU_F64 || b == CORNU_F64) return CORNU_F64;
        return CORNU_F32;   /* bf16 with f16, or one of them with f32 */
    }
    if (a == CORNU_U8) return b;
    if (b == CORNU_U8) return a;
    return CORNU_I64;       /* i32 with u32, or one of them with i64 */
}

static CornuDtype as_float(CornuDtype dtype)
{
    return cornu_dtype_is_float(dtype) ? dtype : CORNU_F32;
}

/* A number has the dtype of the tensors beside it, unless its kind is a wider one. */
static CornuDtype with_number(CornuDtype dtype, int kind)
{
    if (kind == CORNU__FLOAT) return as_float(dtype);
    return kind == CORNU__INTEGER && dtype == CORNU_BOOL ? CORNU_I32 : dtype;
}

/* ---- Arrays ---- */

/* The shape of nested lists of numbers, and whether all of them are whole. */
static bool measure(const json_t *value, int depth, CornuShape *shape, bool *whole, bool *flags)
{
    if (!json_is_array(value)) {
        *whole &= !json_is_real(value);
        *flags &= json_is_boolean(value);
        return depth == shape->rank && (json_is_number(value) || json_is_boolean(value));
    }
    const size_t count = json_array_size(value);
    if (depth == shape->rank) return false;
    for (size_t i = 0; i < count; i++)
        if ((int64_t)count != shape->extent[depth] ||
            !measure(json_array_get(value, i), depth + 1, shape, whole, flags))
            return false;
    return count > 0;
}

static void fill(const json_t *value, CornuArray array, int64_t *at)
{
    for (size_t i = 0; i < json_array_size(value); i++) fill(json_array_get(value, i), array, at);
    if (json_is_array(value)) return;
    cornu_array_set(array, (*at)++, json_is_boolean(value) ? json_is_true(value)
                                                           : json_number_value(value));
}

/* An array that does not change. 64-bit numbers become 32-bit ones, as on JAX. */
static CornuTensor *constant_array(const CornuOperands *o, const json_t *value, const char *dtype)
{
    CornuType type = { .dtype = CORNU_F32 };
    bool      whole = true, flags = true;
    for (const json_t *list = value; json_is_array(list); list = json_array_get(list, 0)) {
        if (type.shape.rank == CORNU_MAX_RANK)
            return cornu__operation_refuse(o, "an array has too many axes");
        type.shape.extent[type.shape.rank++] = (int64_t)json_array_size(list);
    }
    if (!measure(value, 0, &type.shape, &whole, &flags))
        return cornu__operation_refuse(o, "expected an array of numbers");
    if (!dtype) type.dtype = flags ? CORNU_BOOL : whole ? CORNU_I32 : CORNU_F32;
    else if (!strcmp(dtype, "bool")) type.dtype = CORNU_BOOL;
    else if (!strcmp(dtype, "uint8")) type.dtype = CORNU_U8;
    else if (strstr(dtype, "int")) type.dtype = CORNU_I32;
    if (cornu_type_check(type)) return cornu__null();
    CornuArray array = cornu_array_from(cornu__allocate(cornu_type_bytes(type), 1), type);
    if (!array.data) return cornu__null();
    int64_t at = 0;
    fill(value, array, &at);
    CornuTensor *made = cornu__constant_array(o->call, array);
    cornu__release(array.data);
    return made;
}

/* ---- Operands ---- */

static bool read_operand(const CornuOperands *o, const json_t *value, CornuOperand *operand)
{
    const char   *class_name = json_string_value(json_object_get(value, "class_name"));
    const json_t *config = json_object_get(value, "config");
    *operand = (CornuOperand){ .tensor = NULL };
    if (class_name && !strcmp(class_name, "__extent__") &&
        cornu__number_of(o, value, &operand->number)) {
        operand->kind = json_is_true(json_object_get(config, "float")) ? CORNU__FLOAT
                                                                       : CORNU__INTEGER;
        return true;
    }
    if (json_is_number(value) || json_is_boolean(value)) {
        operand->kind = json_is_real(value) ? CORNU__FLOAT
                      : json_is_integer(value) ? CORNU__INTEGER : CORNU__BOOL;
        operand->number = json_is_boolean(value) ? json_is_true(value) : json_number_value(value);
        return true;
    }
    const json_int_t number = json_is_integer(config) ? json_integer_value(config) : -1;
    if (class_name && !strcmp(class_name, "__keras_tensor__") && number >= 0 &&
        number < o->in_count)
        operand->tensor = o->in[number];
    else if (class_name && (!strcmp(class_name, "__numpy__") || !strcmp(class_name, "__tensor__"))
             && json_object_get(config, "dtype"))
        operand->tensor = constant_array(o, json_object_get(config, "value"),
                                         json_string_value(json_object_get(config, "dtype")));
    else if (json_is_array(value))
        operand->tensor = constant_array(o, value, NULL);
    else
        cornu__operation_refuse(o, "an operand is neither a tensor nor a number");
    return operand->tensor != NULL;
}

bool cornu__operand(const CornuOperands *o, const char *name, int at, CornuOperand *operand)
{
    return read_operand(o, cornu__argument(o, name, at), operand);
}

static CornuTensor *scalar(const CornuOperands *o, double number, CornuDtype dtype)
{
    return cornu_op_constant(o->graph, cornu_scalar(dtype), number);
}

static CornuTensor *tensor_of(const CornuOperands *o, const CornuOperand *operand)
{
    static const CornuDtype usual[] = {
        [CORNU__BOOL] = CORNU_BOOL, [CORNU__INTEGER] = CORNU_I32, [CORNU__FLOAT] = CORNU_F32,
    };
    return operand->tensor ? operand->tensor : scalar(o, operand->number, usual[operand->kind]);
}

CornuTensor *cornu__operand_tensor(const CornuOperands *o, const char *name, int at)
{
    CornuOperand operand;
    return cornu__operand(o, name, at, &operand) ? tensor_of(o, &operand) : NULL;
}

bool cornu__operands_join(const CornuOperands *o, CornuOperand *operands, int count, bool floats,
                          CornuTensor **x)
{
    CornuDtype dtype = CORNU_BOOL;
    bool       any = false;
    for (int i = 0; i < count; i++) {
        if (!operands[i].tensor) continue;
        const CornuDtype own = cornu_tensor_type(operands[i].tensor).dtype;
        dtype = any ? cornu__promote(dtype, own) : own;
        any = true;
    }
    for (int i = 0; i < count; i++)
        if (!operands[i].tensor) dtype = with_number(dtype, operands[i].kind);
    if (floats) dtype = as_float(dtype);
    for (int i = 0; i < count; i++) {
        x[i] = operands[i].tensor ? cornu_op_convert(operands[i].tensor, dtype)
                                  : scalar(o, operands[i].number, dtype);
        if (!x[i]) return false;
    }
    return true;
}

bool cornu__operand_pair(const CornuOperands *o, bool floats, CornuTensor **a, CornuTensor **b)
{
    CornuOperand operands[2];
    CornuTensor *x[2];
    if (!cornu__operand(o, "x1", 0, &operands[0]) || !cornu__operand(o, "x2", 1, &operands[1]) ||
        !cornu__operands_join(o, operands, 2, floats, x))
        return false;
    *a = x[0];
    *b = x[1];
    return true;
}

int cornu__operand_list(const CornuOperands *o, const char *name, int at, CornuTensor **x)
{
    CornuOperand  operands[CORNU_MAX_LAYER_TENSORS];
    const json_t *list = cornu__argument(o, name, at);
    const bool    one = !json_is_array(list);
    const size_t  count = one ? 1 : json_array_size(list);
    if (count > CORNU_MAX_LAYER_TENSORS)
        return cornu__operation_refuse(o, "too many operands"), -1;
    for (size_t i = 0; i < count; i++)
        if (!read_operand(o, one ? list : json_array_get(list, i), &operands[i])) return -1;
    return cornu__operands_join(o, operands, (int)count, false, x) ? (int)count : -1;
}

CornuTensor *cornu__operand_x(const CornuOperands *o) { return cornu__operand_tensor(o, "x", 0); }

CornuTensor *cornu__operand_float(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_x(o);
    return x ? cornu_op_convert(x, as_float(cornu_tensor_type(x).dtype)) : NULL;
}
