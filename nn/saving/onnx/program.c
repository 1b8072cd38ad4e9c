/* The values of a program as ONNX values, and their extents. */
#include "extents_internal.h"
#include "recorded_internal.h"

#include "../../../device/memory_internal.h"

CornuStatus cornu__onnx_open_program(CornuOnnxProgram *program)
{
    const size_t count = (size_t)program->program->value_count;
    program->full = cornu__allocate(2 * count, sizeof *program->full);
    program->extents = cornu__allocate(count, sizeof *program->extents);
    program->first = cornu__allocate(count, sizeof *program->first);
    if (!program->full || !program->extents || !program->first) return CORNU_ERR_MEMORY;
    program->small = program->full + count;
    for (size_t i = 0; i < count; i++) program->first[i] = (CornuValue)i;
    return CORNU_OK;
}

void cornu__onnx_close_program(CornuOnnxProgram *program)
{
    cornu__onnx_free_known(program);
    cornu__release(program->full);
    cornu__release(program->extents);
    cornu__release(program->first);
}

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

static void copy_value(const CornuOnnxProgram *program, CornuValue from, CornuValue to)
{
    program->full[to] = program->full[from];
    program->small[to] = program->small[from];
    program->extents[to] = program->extents[from];
}

int cornu__onnx_small(CornuOnnxProgram *program, CornuValue value)
{
    const CornuValue first = program->first[value];
    if (!program->small[first] && !program->full[first])
        program->full[first] = cornu__onnx_known_value(program, first);
    if (!program->small[value] && !program->full[value]) copy_value(program, first, value);
    return program->small[value] ? program->small[value] : program->full[value];
}

/* Expand leaves an extent as it is where 1 is asked for. */
int cornu__onnx_full(CornuOnnxProgram *program, CornuValue value)
{
    CornuShape shape;
    cornu__onnx_small(program, value);
    if (program->full[value] || !cornu__onnx_extents(program, value, &shape))
        return program->full[value];
    const CornuShape own = program->extents[value];
    for (int i = 1; i <= own.rank; i++)
        if (shape.extent[shape.rank - i] == own.extent[own.rank - i])
            shape.extent[shape.rank - i] = 1;
    return program->full[value] = joined(program->to, "Expand", program->small[value],
                                         cornu__onnx_vector(program->to, shape.extent,
                                                            shape.rank));
}

/* ---- What becomes of an op ---- */

CornuStatus cornu__onnx_refuse_op(const CornuOnnxOp *op, const char *why)
{
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "the op %s is not available in ONNX files, %s",
                       cornu_program_op_name(op->op), why);
}

CornuStatus cornu__onnx_refuse_open(const CornuOnnxOp *op)
{
    return cornu__onnx_refuse_op(op, "what it computes depends on unknown extents in a way that "
                                 "has no nodes");
}

int cornu__onnx_operand(const CornuOnnxOp *op, int i)
{
    return cornu__onnx_full(op->program, op->in[i]);
}

CornuStatus cornu__onnx_give(const CornuOnnxOp *op, int value)
{
    cornu__onnx_set(op->program, op->out, value);
    return CORNU_OK;
}

void cornu__onnx_set_result(const CornuOnnxOp *op, int i, int value)
{
    cornu__onnx_set(op->program, op->out + i, value);
}

static bool are_equal(const CornuOnnxOp *op, int number)
{
    const CornuOnnxProgram *program = op->program;
    const CornuProgramOp   *other = &program->program->ops[number];
    const CornuValue       *in = cornu_program_operands(program->program, other);
    if (other->id != op->op->id || other->in_count != op->op->in_count) return false;
    for (int i = 0; i < other->in_count; i++)
        if (program->first[in[i]] != program->first[op->in[i]]) return false;
    for (int w = 0; w < CORNU_ONNX_WORLDS; w++) {
        const CornuProgram *world = program->worlds[w];
        if (!cornu__attributes_equal(other->id, &world->ops[number].attributes,
                                     &world->ops[op->number].attributes) ||
            !cornu_type_equal(world->values[other->out_first].type, world->values[op->out].type))
            return false;
    }
    return true;
}

bool cornu__onnx_repeats(const CornuOnnxOp *op)
{
    const CornuOnnxProgram *program = op->program;
    for (int i = 0; i < op->number; i++) {
        if (!are_equal(op, i)) continue;
        for (int k = 0; k < op->op->out_count; k++) {
            const CornuValue from = program->program->ops[i].out_first + k, to = op->out + k;
            program->first[to] = program->first[from];
            copy_value(program, from, to);
        }
        return true;
    }
    return false;
}

void cornu__onnx_keep_small(const CornuOnnxOp *op, int value, CornuShape extents)
{
    op->program->small[op->out] = value;
    op->program->extents[op->out] = extents;
}

/* The extents that two small values have together: axes are aligned at the right. */
static CornuShape joined_extents(CornuShape a, CornuShape b)
{
    CornuShape wide = a.rank > b.rank ? a : b, thin = a.rank > b.rank ? b : a;
    for (int i = 0; i < thin.rank; i++) {
        int64_t *extent = &wide.extent[wide.rank - thin.rank + i];
        if (*extent == 1) *extent = thin.extent[i];
    }
    return wide;
}

CornuStatus cornu__onnx_keep(const CornuOnnxOp *op, int value)
{
    CornuShape extents = { 0 }, shape;
    for (int i = 0; i < op->op->in_count; i++) {
        if (!op->program->small[op->in[i]]) return cornu__onnx_give(op, value);
        extents = joined_extents(extents, op->program->extents[op->in[i]]);
    }
    if (!cornu__onnx_extents(op->program, op->out, &shape)) return cornu__onnx_refuse_open(op);
    if (cornu_shape_equal(extents, shape)) return cornu__onnx_give(op, value);
    cornu__onnx_keep_small(op, value, extents);
    return CORNU_OK;
}

CornuStatus cornu__onnx_op_elementwise(const CornuOnnxOp *op, const char *operator,
                                       const CornuOnnxAttribute *attributes, int attribute_count)
{
    int in[3];
    for (int i = 0; i < op->op->in_count; i++) in[i] = cornu__onnx_small(op->program, op->in[i]);
    return cornu__onnx_keep(op, cornu__onnx_elementwise(op->to, operator, in, op->op->in_count,
                                                        attributes, attribute_count));
}

CornuStatus cornu__onnx_op_clip(const CornuOnnxOp *op, double low, double high)
{
    return cornu__onnx_keep(
        op, cornu__onnx_clip(op->to, cornu__onnx_small(op->program, op->in[0]), low, high));
}
