/* Ops of constants are computed when the file is written: recorded_internal.h. */
#include "recorded_internal.h"

#include "../../../device/memory_internal.h"
#include "../../../device/ops/rules.h"

typedef CornuLiteOp Op;

enum { MOST_OPERANDS = 4 };

/* Not what only repeats or moves a constant, which writers do in its own type, nor what has a
 * body. */
static bool can_be_known(const Op *op)
{
    bool known = op->op->in_count > 0 && op->op->in_count <= MOST_OPERANDS &&
                 op->op->out_count == 1 && op->op->id != CORNU_OP_BROADCAST &&
                 op->op->id != CORNU_OP_RESHAPE && op->op->id != CORNU_OP_TRANSPOSE &&
                 op->op->id != CORNU_OP_CUSTOM && op->op->id != CORNU_OP_SCAN;
    for (int i = 0; i < op->op->in_count && known; i++) {
        const int tensor = cornu__lite_small(op, i);
        known = tensor >= 0 && op->to->graph->tensors[tensor].data;
    }
    for (int w = 1; w < CORNU_LITE_WORLDS && known; w++) {
        const CornuProgram *world = op->program->worlds[w];
        known = cornu_type_equal(world->values[op->out].type,
                                 op->program->program->values[op->out].type) &&
                cornu__attributes_equal(op->op->id, op->attributes,
                                        &world->ops[op->number].attributes);
    }
    return known;
}

/* A constant in a shape that it broadcasts to. */
static void widen(const CornuLiteTensor *from, CornuShape shape, double *to)
{
    const int apart = shape.rank - from->shape.rank;
    for (int64_t i = 0; i < cornu_shape_count(shape); i++) {
        int64_t rest = i, at = 0, stride = 1;
        for (int k = shape.rank - 1; k >= apart; k--) {
            const int64_t extent = from->shape.extent[k - apart];
            if (extent > 1) at += rest % shape.extent[k] * stride;
            rest /= shape.extent[k];
            stride *= extent;
        }
        to[i] = cornu__lite_get(from->data, from->dtype, at);
    }
}

CornuStatus cornu__lite_known(const Op *op, bool *known)
{
    const CornuProgram *program = op->program->program;
    const CornuType     type = program->values[op->out].type;
    const int64_t       count = cornu_type_count(type);
    CornuType           in_type[MOST_OPERANDS];
    const double       *in[MOST_OPERANDS];
    int64_t             elements = count;
    if (!(*known = can_be_known(op))) return CORNU_OK;
    const CornuOpCall call = cornu_program_call(program, op->op, in_type);
    for (int i = 0; i < op->op->in_count; i++) elements += cornu_type_count(in_type[i]);
    double *out = cornu__allocate((size_t)elements, sizeof *out), *next = out + count;
    if (!out) return CORNU_ERR_MEMORY;
    for (int i = 0; i < op->op->in_count; i++) {
        widen(&op->to->graph->tensors[cornu__lite_small(op, i)], in_type[i].shape, next);
        in[i] = next;
        next += cornu_type_count(in_type[i]);
    }
    const CornuStatus status = cornu__op_reference(&(CornuReferenceCall){
        .op = call, .in = in, .out = &out, .out_type = &type, .count = count });
    const CornuLiteDtype kept = cornu__lite_kept(type.dtype);
    const int made = status ? CORNU_LITE_NONE
                            : cornu__lite_add_constant(op->to->graph, "constant", kept, type.shape,
                                                       NULL);
    for (int64_t i = 0; made >= 0 && i < count; i++)
        cornu__lite_set(op->to->graph->tensors[made].data, kept, i, out[i]);
    cornu__release(out);
    return status ? status : cornu__lite_op_give(op, made);
}
