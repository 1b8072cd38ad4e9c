/* Slices as Slice, or Split. */
#include "recorded_internal.h"

typedef CornuOnnxOp Op;

static CornuShape shape_of(const Op *op)
{
    return op->program->program->values[op->in[0]].type.shape;
}

static const CornuAttributes_SLICE *slice_of(const CornuOnnxProgram *program, int world, int number)
{
    return &program->worlds[world]->ops[number].attributes.slice;
}

/* ---- Equal parts ---- */

/* The axis of which the slice is one of equal parts, and their number; else no parts. */
static int64_t parts_of(const CornuOnnxProgram *program, int number, CornuShape shape, int *axis)
{
    const CornuAttributes_SLICE *at = slice_of(program, 0, number);
    int64_t                      parts = 0;
    for (int i = 0; i < shape.rank; i++) {
        if (at->sizes[i] == shape.extent[i]) continue;
        if (parts || at->sizes[i] < 1 || shape.extent[i] % at->sizes[i] ||
            at->starts[i] % at->sizes[i])
            return 0;
        parts = shape.extent[i] / at->sizes[i];
        *axis = i;
    }
    for (int w = 1; w < CORNU_ONNX_WORLDS && parts; w++)
        if (slice_of(program, w, number)->sizes[*axis] != at->sizes[*axis] ||
            slice_of(program, w, number)->starts[*axis] != at->starts[*axis])
            return 0;
    return parts;
}

/* Slices of a value that are all of its equal parts along an axis are one Split; false if this one
 * is not of such. */
static bool is_split(const Op *op)
{
    enum { MOST_PARTS = 8 };
    const CornuProgram *program = op->program->program;
    const CornuShape    shape = shape_of(op);
    CornuValue          out[MOST_PARTS];
    int                 axis = 0, other = 0, found = 0, x, lying;
    int64_t             order[CORNU_MAX_RANK];
    const int64_t       parts = parts_of(op->program, op->number, shape, &axis);
    if (parts < 2 || parts > MOST_PARTS ||
        cornu__onnx_extent_at(op->program, op->in[0], axis) != shape.extent[axis])
        return false;
    for (int i = op->number; i < program->op_count; i++) {
        const CornuProgramOp *at = &program->ops[i];
        if (at->id != CORNU_OP_SLICE || cornu_program_operands(program, at)[0] != op->in[0] ||
            parts_of(op->program, i, shape, &other) != parts || other != axis)
            continue;
        const CornuAttributes_SLICE *slice = &at->attributes.slice;
        const int                    part = (int)(slice->starts[axis] / slice->sizes[axis]);
        if (!(found >> part & 1)) out[part] = at->out_first;
        found |= 1 << part;
    }
    if (found != (1 << parts) - 1) return false;
    x = cornu__onnx_operand(op, 0);
    cornu__onnx_lying(op->to, &x, 1, &lying, order);
    const int first = cornu__onnx_split(op->to, lying, order[axis], (int)parts);
    for (int i = 0; i < parts; i++)
        cornu__onnx_set(op->program, out[i],
                        cornu__onnx_transpose(op->to, first + i, order, shape.rank));
    return true;
}

/* ---- Others ---- */

/* Where a slice of an axis begins, and after the end; 0 for an end that nothing explains. */
static bool is_whole(const Op *op, int axis, int64_t *begin, int64_t *end)
{
    int64_t begins[CORNU_ONNX_WORLDS], ends[CORNU_ONNX_WORLDS];
    bool    whole = true;
    for (int w = 0; w < CORNU_ONNX_WORLDS; w++) {
        const CornuAttributes_SLICE *at = slice_of(op->program, w, op->number);
        begins[w] = at->starts[axis];
        ends[w] = at->starts[axis] + at->sizes[axis];
        whole &= at->sizes[axis] ==
                 op->program->worlds[w]->values[op->in[0]].type.shape.extent[axis];
    }
    *begin = cornu__onnx_extent(op->to, begins);
    *end = cornu__onnx_extent(op->to, ends);
    if (*begin == 0 && (begins[0] != 0 || begins[1] != 0)) *end = 0;
    return whole;
}

/* In the stored order, as the next ops. */
CornuStatus cornu__onnx_op_slice(const CornuOnnxOp *op)
{
    if (op->program->full[op->out] || is_split(op)) return CORNU_OK;
    const int rank = shape_of(op).rank, given = cornu__onnx_operand(op, 0);
    int64_t   begins[CORNU_MAX_RANK], ends[CORNU_MAX_RANK], axes[CORNU_MAX_RANK];
    int64_t   order[CORNU_MAX_RANK];
    int       in[4], count = 0;
    cornu__onnx_lying(op->to, &given, 1, in, order);
    for (int i = 0; i < rank; i++) {
        if (is_whole(op, i, &begins[count], &ends[count])) continue;
        if (ends[count] == 0) return cornu__onnx_refuse_open(op);
        axes[count++] = order[i];
    }
    if (!count) return cornu__onnx_give(op, given);
    in[1] = cornu__onnx_vector(op->to, begins, count);
    in[2] = cornu__onnx_vector(op->to, ends, count);
    in[3] = cornu__onnx_integers(op->to, axes, count);
    const int y = cornu__onnx_node(op->to, "Slice", in, 4, NULL, 0, 1);
    return cornu__onnx_give(op, cornu__onnx_transpose(op->to, y, order, rank));
}
