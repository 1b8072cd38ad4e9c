/* Operators whose results are known: constants, and what depends on shapes alone. */
#include "../run_internal.h"

#include <math.h>
#include <string.h>

static CornuStatus list_result(CornuReadStep *step, CornuDtype dtype, int rank, int count,
                               const int64_t *integers, const double *numbers)
{
    const CornuArray array = cornu__host_array(
        step->run, cornu_type_from(dtype, cornu_shape_from(rank, (const int64_t[]){ count })));
    if (!array.data) return CORNU_ERR_MEMORY;
    for (int i = 0; i < count; i++) {
        if (integers) ((int64_t *)array.data)[i] = integers[i];
        else if (numbers) cornu_array_set(array, i, numbers[i]);
    }
    return cornu__known_result(step, 0, array);
}

static CornuStatus read_constant(CornuReadStep *step)
{
    for (int i = 0; i < step->node->attribute_count; i++) {
        const CornuReadAttribute *from = &step->node->attributes[i];
        if (!strcmp(from->name, "value") && from->tensor.data) {
            CORNU__TRY(cornu__known_result(step, 0, from->tensor));
            if (cornu__wanted(step, 0)) step->out[0].onnx_type = from->tensor_type;
            return CORNU_OK;
        }
        if (!strcmp(from->name, "value_int"))
            return list_result(step, CORNU_I64, 0, 1, &from->whole, NULL);
        if (!strcmp(from->name, "value_float"))
            return list_result(step, CORNU_F32, 0, 1, NULL, &from->number);
        if (!strcmp(from->name, "value_ints"))
            return list_result(step, CORNU_I64, 1, from->integer_count, from->integers, NULL);
        if (!strcmp(from->name, "value_floats"))
            return list_result(step, CORNU_F32, 1, from->number_count, NULL, from->numbers);
    }
    return cornu__cannot("this kind of constant", "expected numbers");
}

static CornuStatus read_filled(CornuReadStep *step)
{
    const CornuReadAttribute *value = cornu__attribute(step, "value");
    CornuType type = { .dtype = CORNU_F32 };
    CORNU__TRY(cornu__known_integers(step, 0, type.shape.extent, CORNU_MAX_RANK,
                                     &type.shape.rank));
    if (type.shape.rank < 0) return cornu__fail(CORNU_ERR_FORMAT, "the shape is missing");
    if (value && value->tensor.data) type.dtype = value->tensor.type.dtype;
    const CornuArray array = cornu__host_array(step->run, type);
    if (!array.data) return cornu_type_check(type) ? CORNU_ERR_SHAPE : CORNU_ERR_MEMORY;
    const double number = value && value->tensor.data && cornu_type_count(value->tensor.type) > 0
                              ? cornu_array_get(value->tensor, 0) : 0.0;
    const int64_t count = cornu_type_count(type);
    for (int64_t i = 0; i < count && number != 0.0; i++) cornu_array_set(array, i, number);
    return cornu__known_result(step, 0, array);
}

static CornuStatus read_range(CornuReadStep *step)
{
    CornuArray first;
    double     start, limit, by;
    CORNU__TRY(cornu__known(step, 0, &first));
    CORNU__TRY(cornu__known_number(step, 0, 0.0, &start));
    CORNU__TRY(cornu__known_number(step, 1, 0.0, &limit));
    CORNU__TRY(cornu__known_number(step, 2, 1.0, &by));
    const double count = ceil((limit - start) / by);
    if (!(by != 0.0) || !(count < 0x1p31))
        return cornu__fail(CORNU_ERR_FORMAT, "from %g to %g by %g", start, limit, by);
    const CornuArray array = cornu__host_array(
        step->run, cornu_type(first.type.dtype, count > 0.0 ? (int64_t)count : 0));
    if (!array.data) return CORNU_ERR_MEMORY;
    for (int64_t i = 0; i < (int64_t)count; i++)
        cornu_array_set(array, i, start + (double)i * by);
    return cornu__known_result(step, 0, array);
}

static int64_t bounded(int64_t axis, int rank)
{
    if (axis < 0) axis += rank;
    return axis < 0 ? 0 : axis > rank ? rank : axis;
}

static CornuStatus read_shape(CornuReadStep *step)
{
    const CornuShape shape = cornu__operand_type(step, 0).shape;
    const int64_t    begin = bounded(cornu__whole(step, "start", 0), shape.rank);
    const int64_t    end = bounded(cornu__whole(step, "end", shape.rank), shape.rank);
    return list_result(step, CORNU_I64, 1, end > begin ? (int)(end - begin) : 0,
                       shape.extent + begin, NULL);
}

static CornuStatus read_size(CornuReadStep *step)
{
    const int64_t count = cornu_shape_count(cornu__operand_type(step, 0).shape);
    return list_result(step, CORNU_I64, 0, 1, &count, NULL);
}

/* The number of the result's elements depends on those of x: it must be known. */
static CornuStatus read_non_zero(CornuReadStep *step)
{
    CornuArray x;
    int64_t    found = 0;
    CORNU__TRY(cornu__known(step, 0, &x));
    const CornuShape shape = x.type.shape;
    const int64_t    count = cornu_type_count(x.type);
    for (int64_t i = 0; i < count; i++) found += cornu_array_get(x, i) != 0.0;
    const CornuArray array = cornu__host_array(step->run, cornu_type(CORNU_I64, shape.rank, found));
    if (!array.data) return CORNU_ERR_MEMORY;
    int64_t at = 0;
    for (int64_t i = 0; i < count; i++) {
        if (cornu_array_get(x, i) == 0.0) continue;
        int64_t rest = i;
        for (int k = shape.rank - 1; k >= 0; k--) {
            ((int64_t *)array.data)[k * found + at] = rest % shape.extent[k];
            rest /= shape.extent[k];
        }
        at++;
    }
    return cornu__known_result(step, 0, array);
}

const CornuReadRow cornu__read_constants[] = {
    { "Constant", read_constant, .operands = 0 }, { "ConstantOfShape", read_filled, .operands = 0 },
    { "NonZero", read_non_zero, .operands = 0 }, { "Range", read_range, .operands = 0 },
    { "Shape", read_shape, .operands = 0 }, { "Size", read_size, .operands = 0 },
    { 0 },
};
