/* The values of a program as ONNX values, and shapes with an open batch. */
#include "recorded_internal.h"

bool cornu__onnx_extents(const CornuOnnxProgram *program, CornuValue value, CornuShape *shape)
{
    const CornuShape one = program->program->values[value].type.shape;
    const CornuShape two = program->other->values[value].type.shape;
    *shape = one;
    for (int i = 0; i < one.rank; i++) {
        if (one.extent[i] == two.extent[i]) continue;
        const int64_t times = one.extent[i] / CORNU_ONNX_ROWS;
        if (times * CORNU_ONNX_ROWS != one.extent[i] ||
            times * CORNU_ONNX_OTHER_ROWS != two.extent[i])
            return false;
        shape->extent[i] = -times;
    }
    return true;
}

int cornu__onnx_type(CornuDtype dtype)
{
    return dtype == CORNU_BOOL           ? CORNU_ONNX_BOOL
           : cornu_dtype_is_float(dtype) ? CORNU_ONNX_FLOAT : CORNU_ONNX_INT64;
}

int cornu__onnx_small(const CornuOnnxProgram *program, CornuValue value)
{
    return program->small[value] ? program->small[value] : program->full[value];
}

/* The extent of the batch, a vector of one. */
static int rows_of(CornuOnnxProgram *program)
{
    CornuOnnx    *to = program->to;
    const int64_t first = 0;
    if (*program->rows) return *program->rows;
    const int shape = cornu__onnx_node(to, "Shape", &program->source, 1, NULL, 0, 1);
    return *program->rows = joined(to, "Gather", shape, cornu__onnx_integers(to, &first, 1));
}

int cornu__onnx_shape(CornuOnnxProgram *program, CornuShape shape)
{
    CornuOnnx *to = program->to;
    int        parts[CORNU_MAX_RANK], count = 0, known = 0;
    for (int i = 0; i < shape.rank; i++) known += shape.extent[i] >= 0;
    if (known == shape.rank) return cornu__onnx_integers(to, shape.extent, shape.rank);
    const int rows = rows_of(program);
    for (int i = 0; i < shape.rank; i++) {
        const int64_t times = -shape.extent[i];
        parts[count++] = times < 0  ? cornu__onnx_integers(to, &shape.extent[i], 1)
                         : times == 1 ? rows
                         : joined(to, "Mul", rows, cornu__onnx_integers(to, &times, 1));
    }
    return cornu__onnx_node(to, "Concat", parts, count,
                            &(CornuOnnxAttribute){ .name = "axis", .whole = 0 }, 1, 1);
}

int cornu__onnx_full(CornuOnnxProgram *program, CornuValue value)
{
    CornuShape shape;
    if (program->full[value] || !cornu__onnx_extents(program, value, &shape))
        return program->full[value];
    return program->full[value] = joined(program->to, "Expand", program->small[value],
                                         cornu__onnx_shape(program, shape));
}
