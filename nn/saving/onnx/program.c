/* The values of a program as ONNX values, and their extents. */
#include "extents_internal.h"
#include "recorded_internal.h"

int64_t cornu__onnx_extent_at(const CornuOnnxProgram *program, CornuValue value, int axis)
{
    int64_t numbers[CORNU_ONNX_WORLDS];
    for (int w = 0; w < CORNU_ONNX_WORLDS; w++)
        numbers[w] = program->worlds[w]->values[value].type.shape.extent[axis];
    return cornu__onnx_extent(program->to, numbers);
}

bool cornu__onnx_extents(const CornuOnnxProgram *program, CornuValue value, CornuShape *shape)
{
    *shape = program->program->values[value].type.shape;
    for (int i = 0; i < shape->rank; i++)
        if (!(shape->extent[i] = cornu__onnx_extent_at(program, value, i))) return false;
    return true;
}

void cornu__onnx_set(const CornuOnnxProgram *program, CornuValue value, int full)
{
    int64_t numbers[CORNU_ONNX_WORLDS];
    program->full[value] = full;
    for (int i = 0; i < program->program->values[value].type.shape.rank; i++) {
        if (cornu__onnx_extent_at(program, value, i)) continue;
        for (int w = 0; w < CORNU_ONNX_WORLDS; w++)
            numbers[w] = program->worlds[w]->values[value].type.shape.extent[i];
        cornu__onnx_axis(program->to, numbers, full, i);
    }
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

int cornu__onnx_full(CornuOnnxProgram *program, CornuValue value)
{
    CornuShape shape;
    if (program->full[value] || !cornu__onnx_extents(program, value, &shape))
        return program->full[value];
    return program->full[value] = joined(program->to, "Expand", program->small[value],
                                         cornu__onnx_vector(program->to, shape.extent,
                                                            shape.rank));
}
