/* Views: shapes, slices, transposes and broadcasts are ways to read a value, not work. */
#include <string.h>

#include "source_internal.h"

bool cornu__c_is_read(const CornuProgram *program, CornuValue value)
{
    for (int i = 0; i < program->operand_count; i++)
        if (program->operands[i] == value) return true;
    for (int i = 0; i < program->output_count; i++)
        if (program->outputs[i].value == value) return true;
    return false;
}

CornuCView cornu__c_dense(CornuValue root, CornuShape shape)
{
    CornuCView view = { .root = root };
    int64_t    stride = 1;
    for (int i = shape.rank - 1; i >= 0; i--) {
        view.stride[i] = stride;
        stride *= shape.extent[i];
    }
    return view;
}

bool cornu__c_is_dense(const CornuCView *view, CornuShape shape)
{
    const CornuCView dense = cornu__c_dense(view->root, shape);
    if (view->literal) return false;
    for (int i = 0; i < shape.rank; i++)
        if (shape.extent[i] > 1 && view->stride[i] != dense.stride[i]) return false;
    return true;
}

/* Axes of extent 1 may come and go, and those be split or joined that lie densely in each other. */
static bool reshape(const CornuCView *x, CornuShape from, CornuShape to, CornuCView *out)
{
    const CornuCView   *const views[] = { x };
    const CornuCLoops loops = cornu__c_loops(from, views, 1);
    int64_t           left = 1, stride = 0;
    int               axis = loops.rank;
    *out = (CornuCView){ .root = x->root, .offset = x->offset };
    for (int i = to.rank - 1; i >= 0; i--) {
        if (to.extent[i] == 1) continue;
        if (left == 1 && axis > 0) {
            left = loops.extent[--axis];
            stride = x->stride[loops.axes[axis]];
        }
        if (to.extent[i] == 0 || left % to.extent[i]) return false;
        out->stride[i] = stride;
        stride *= to.extent[i];
        left /= to.extent[i];
    }
    return left == 1;
}

static void broadcast(const CornuCView *x, CornuShape from, CornuShape to, CornuCView *out)
{
    const int missing = to.rank - from.rank;
    *out = (CornuCView){ .root = x->root, .offset = x->offset };
    for (int i = 0; i < from.rank; i++)
        if (from.extent[i] > 1) out->stride[i + missing] = x->stride[i];
}

bool cornu__c_view(const CornuProgram *program, const CornuProgramOp *op, const CornuCView *x,
                   CornuCView *out)
{
    const CornuAttributes *a = &op->attributes;
    const CornuShape to = cornu_program_type(program, op->out_first).shape;
    if (op->id == CORNU_OP_CONSTANT || op->id == CORNU_OP_REPLICA_ID) {
        *out = (CornuCView){ .root = CORNU_NO_VALUE, .literal = true };
        if (op->id == CORNU_OP_CONSTANT) out->number = a->constant.value;
        return true;
    }
    *out = *x;
    if (x->literal) return op->id != CORNU_OP_PAD;
    const CornuShape from = cornu_program_type(program,
                                               cornu_program_operands(program, op)[0]).shape;
    switch (op->id) {
    case CORNU_OP_RESHAPE: return reshape(x, from, to, out);
    case CORNU_OP_BROADCAST: broadcast(x, from, to, out); return true;
    case CORNU_OP_TRANSPOSE:
        for (int i = 0; i < to.rank; i++) out->stride[i] = x->stride[a->permutation.axes[i]];
        return true;
    case CORNU_OP_SLICE:
        for (int i = 0; i < to.rank; i++) out->offset += a->slice.starts[i] * x->stride[i];
        return true;
    case CORNU_OP_FLIP:
        out->offset += (to.extent[a->axis.axis] - 1) * x->stride[a->axis.axis];
        out->stride[a->axis.axis] *= -1;
        return true;
    default: return false;
    }
}

static bool joins(CornuShape shape, const CornuCView *const *views, int count, int outer, int inner)
{
    for (int i = 0; i < count; i++)
        if (!views[i]->literal &&
            views[i]->stride[outer] != views[i]->stride[inner] * shape.extent[inner])
            return false;
    return true;
}

CornuCLoops cornu__c_loops_apart(CornuShape shape, const CornuCView *const *views, int count,
                                 int64_t apart)
{
    CornuCLoops loops = { .rank = 0 };
    for (int i = 0; i < shape.rank; i++) {
        if (shape.extent[i] == 1) continue;
        const int last = loops.rank - 1;
        if (last >= 0 && (apart >> i & 1) == (apart >> loops.axes[last] & 1) &&
            joins(shape, views, count, loops.axes[last], i)) {
            loops.extent[last] *= shape.extent[i];
            loops.axes[last] = i;
            continue;
        }
        loops.extent[loops.rank] = shape.extent[i];
        loops.axes[loops.rank++] = i;
    }
    return loops;
}

CornuCLoops cornu__c_loops(CornuShape shape, const CornuCView *const *views, int count)
{
    return cornu__c_loops_apart(shape, views, count, 0);
}
