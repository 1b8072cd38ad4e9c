/*
 * Loops over time: the body of a scan is partitioned as the program around it is, so that what its
 * steps exchange stands in it.
 *
 *     h (B, U/n)                 of this shard's units
 *     H = all_gather h           what each step exchanges
 *     a = z + H K                K (U, G U/n), the columns of these units of all gates
 *     …                          gates, cell and the next h, of these units
 *
 * The layouts of operands follow from what the body makes of them: it is partitioned with a guess,
 * and again until nothing changes. A carry is cut as the step makes it. What a step would gather of
 * a constant, or of a slice, is gathered before the loop, and what it would slice is sliced there;
 * results that are stacked are summed over shards after it.
 */
#include "partition_internal.h"

#include "../memory_internal.h"
#include "../op_internal.h"

typedef struct {
    Partition            *outer;
    const CornuProgramOp *op;
    const CornuAttributes_SCAN *scan;
    CornuLayout           layouts[CORNU_MAX_INPUTS];   /* of the body's inputs */
    unsigned              varies[CORNU_MAX_INPUTS];
    bool                  settled[CORNU_MAX_INPUTS];
    CornuLayout           made[CORNU_MAX_OUTPUTS];     /* of its outputs */
    unsigned              partial[CORNU_MAX_OUTPUTS];  /* over which these are summed afterwards */
} Loop;

bool cornu__partition_loops(const Partition *p, const CornuProgramOp *op)
{
    const CornuValue *in = cornu_program_operands(p->from, op);
    int               first = 1, end = op->in_count;   /* of what the loop multiplies by */
    bool              cut = false;
    switch (op->id) {
    case CORNU_OP_SCAN:
        first = (int)(op->attributes.scan.carries + op->attributes.scan.slices);
        break;
    case CORNU_OP_LSTM: case CORNU_OP_GRU: end = 2; break;
    case CORNU_OP_LSTM_GRAD: case CORNU_OP_GRU_GRAD: first = 3, end = 4; break;
    default: return false;
    }
    for (int i = first; i < end; i++) {
        const CornuLayout layout = cornu__form_made(p, in[i])->layout;
        if (op->id != CORNU_OP_SCAN && layout.cut[1] && !layout.blocks[1]) return false;
        for (int k = 0; k < CORNU_MAX_RANK; k++) cut |= layout.cut[k] && !(layout.cut[k] & p->data);
    }
    return cut;
}

/* ---- Layouts of the operands ---- */

static bool is_sliced(const Loop *loop, int i)
{
    return i >= loop->scan->carries && i < loop->scan->carries + loop->scan->slices;
}

/* Of a slice, without the axis of the steps, which is whole; and of what is stacked, with it. */
static CornuLayout step_layout(CornuLayout whole, int axis)
{
    for (int i = axis; i + 1 < CORNU_MAX_RANK; i++) {
        whole.cut[i] = whole.cut[i + 1];
        whole.blocks[i] = whole.blocks[i + 1];
    }
    whole.cut[CORNU_MAX_RANK - 1] = whole.blocks[CORNU_MAX_RANK - 1] = 0;
    return whole;
}

static CornuLayout stacked_layout(CornuLayout step, int axis)
{
    for (int i = CORNU_MAX_RANK - 1; i > axis; i--) {
        step.cut[i] = step.cut[i - 1];
        step.blocks[i] = step.blocks[i - 1];
    }
    step.cut[axis] = step.blocks[axis] = 0;
    return step;
}

/* The layout of a constant whose gradient a carry may be the sum of: of its shape, and added to in
 * each step; else whole. */
static CornuLayout as_constant(const Loop *loop, int carry)
{
    const CornuProgram   *body = loop->scan->body;
    const int             made_by = body->values[body->outputs[carry].value].op;
    const CornuProgramOp *op = &body->ops[made_by < 0 ? 0 : made_by];
    const CornuShape      shape = cornu_program_type(body, body->inputs[carry]).shape;
    if (made_by >= 0 && op->id == CORNU_OP_ADD &&
        cornu_program_operands(body, op)[0] == body->inputs[carry])
        for (int i = (int)(loop->scan->carries + loop->scan->slices); i < body->input_count; i++)
            if (cornu_shape_equal(cornu_program_type(body, body->inputs[i]).shape, shape))
                return loop->layouts[i];
    return (CornuLayout){ .cut = { 0 } };
}

/* The first guess: operands as they are, but for what is cut along the batch. */
static void begin(Loop *loop)
{
    const Partition  *p = loop->outer;
    const CornuValue *in = cornu_program_operands(p->from, loop->op);
    for (int i = 0; i < loop->op->in_count; i++) {
        const Form    *form = cornu__form_made(p, in[i]);
        const unsigned along = p->to->values[form->value].varies & p->data;
        CornuLayout    layout = form->layout;
        loop->varies[i] = cornu__layout_axes(layout) & p->data
                        ? (p->from->values[in[i]].varies ? p->data : 0) : along;
        for (int k = 0; k < CORNU_MAX_RANK; k++)
            if (layout.cut[k] & p->data) layout.cut[k] = layout.blocks[k] = 0;
        loop->layouts[i] = is_sliced(loop, i) ? step_layout(layout, (int)loop->scan->axis)
                                              : layout;
    }
    for (int i = 0; i < loop->scan->carries; i++)
        if (!cornu__layout_axes(loop->layouts[i])) loop->layouts[i] = as_constant(loop, i);
}

/* ---- The body ---- */

static CornuStatus declare(const Loop *loop, Partition *q)
{
    const CornuProgram *body = q->from;
    for (int i = 0; i < body->input_count; i++) {
        const CornuValue old = body->inputs[i];
        const unsigned   axes = cornu__layout_axes(loop->layouts[i]) | loop->varies[i];
        CornuType        slice;
        CornuValue       own;
        CORNU__TRY(cornu__layout_slice(q->mesh, loop->layouts[i], cornu_program_type(body, old),
                                       &slice));
        CORNU__TRY(axes ? cornu_program_mesh_input(q->to, slice, axes, &own)
                        : cornu_program_input(q->to, slice, &own));
        CORNU__TRY(cornu__form_add(q, old, loop->layouts[i], 0, 0, own));
    }
    for (int i = 0; i < loop->scan->carries; i++)
        cornu__partition_wish(q, body->outputs[i].value, &loop->layouts[i]);
    cornu__partition_spread_wishes(q);
    return CORNU_OK;
}

static CornuStatus split_body(Loop *loop, Partition *q)
{
    const CornuProgram *body = q->from;
    CORNU__TRY(cornu__partition_reserve(q));
    CORNU__TRY(declare(loop, q));
    for (int i = 0; i < body->op_count; i++) {
        CORNU__TRY(cornu__program_follow(q->to, &body->ops[i]));
        if (!*body->ops[i].scope) CORNU__TRY(cornu_program_scope(q->to, loop->outer->to->scope));
        CORNU__TRY(cornu__partition_op(q, &body->ops[i]));
    }
    for (int i = 0; i < body->output_count; i++) {
        const Form *form = cornu__form_made(q, body->outputs[i].value);
        const bool  carry = i < loop->scan->carries;
        CornuValue  value = form->value;
        loop->made[i] = carry ? loop->layouts[i] : form->layout;
        loop->partial[i] = carry ? 0 : form->partial;
        if (carry) CORNU__TRY(cornu__form_bring(q, body->outputs[i].value, loop->made[i], &value));
        CORNU__TRY(cornu_program_output(q->to, value, -1));
    }
    return CORNU_OK;
}

/* The layout that the body brings an input to, if that is one; else as it is given. */
static CornuLayout read_as(const Partition *q, int i)
{
    const Form *form = cornu__form_made(q, q->from->inputs[i]);
    const Form *other = form->next >= 0 ? &q->form[form->next] : form;
    return other->next < 0 ? other->layout : form->layout;
}

/* As the step makes a carry. Where it is a sum over shards, the slices along its last axis cost no
 * more, even if the next step gathers them, than the whole on each shard. */
static CornuLayout made_as(const Partition *q, int i)
{
    const CornuValue value = q->from->outputs[i].value;
    const CornuShape shape = cornu_program_type(q->from, value).shape;
    const Form      *form = cornu__form_made(q, value);
    CornuLayout      layout = form->layout;
    if (form->partial && !cornu__layout_axes(layout) && shape.rank > 1 &&
        shape.extent[shape.rank - 1] % cornu_mesh_size(q->mesh, form->partial) == 0)
        layout.cut[shape.rank - 1] = form->partial;
    return layout;
}

/* A carry is cut as the step makes it, or as it reads it. It stays so. */
static bool learn_carry(Loop *loop, const Partition *q, int i)
{
    const unsigned before = cornu__layout_axes(loop->layouts[i]);
    const unsigned varies = q->to->values[q->to->outputs[i].value].varies;
    const bool     learned = (varies & ~(loop->varies[i] | before)) != 0;
    loop->varies[i] |= learned ? varies : 0;
    if (before) return learned;
    loop->layouts[i] = made_as(q, i);
    if (!cornu__layout_axes(loop->layouts[i])) loop->layouts[i] = read_as(q, i);
    return learned || cornu__layout_axes(loop->layouts[i]);
}

/* What the body gathers it is given whole, for good; what it slices alone, in slices. */
static bool learn_operand(Loop *loop, const Partition *q, int i)
{
    const CornuLayout given = loop->layouts[i];
    const bool        is_cut = cornu__layout_axes(given) != 0;
    const bool        as_given = cornu__form_made(q, q->from->inputs[i])->next < 0;
    if (as_given || loop->settled[i]) return false;
    loop->settled[i] = is_cut;
    loop->layouts[i] = is_cut ? (CornuLayout){ .cut = { 0 } } : read_as(q, i);
    return !cornu__layout_equal(given, loop->layouts[i]);
}

/* Whether the guess was wrong, which is then changed. */
static bool learn(Loop *loop, const Partition *q)
{
    bool learned = false;
    for (int i = 0; i < q->from->input_count; i++)
        learned |= i < loop->scan->carries ? learn_carry(loop, q, i) : learn_operand(loop, q, i);
    return learned;
}

/* ---- The loop ---- */

/* A body that knows of no shards is that of each. */
static void forget_shards(CornuProgram *body)
{
    for (int i = 0; i < body->value_count; i++) body->values[i].varies = 0;
}

static CornuStatus record(const Loop *loop, const CornuProgram *body)
{
    Partition        *p = loop->outer;
    const CornuValue *in = cornu_program_operands(p->from, loop->op);
    const int         axis = (int)loop->scan->axis;
    CornuAttributes   scan = { .scan = *loop->scan };
    CornuValue        operands[CORNU_MAX_INPUTS], out[CORNU_MAX_OUTPUTS];
    scan.scan.body = body;
    for (int i = 0; i < loop->op->in_count; i++)
        CORNU__TRY(cornu__form_bring(p, in[i], is_sliced(loop, i)
                                               ? stacked_layout(loop->layouts[i], axis)
                                               : loop->layouts[i], &operands[i]));
    CORNU__TRY(cornu_program_record(p->to, CORNU_OP_SCAN, &scan, operands, loop->op->in_count,
                                    out));
    for (int i = 0; i < loop->op->out_count; i++)
        CORNU__TRY(cornu__form_add(p, loop->op->out_first + i,
                                   i < loop->scan->carries ? loop->made[i]
                                                           : stacked_layout(loop->made[i], axis),
                                   loop->partial[i], 0, out[i]));
    return CORNU_OK;
}

CornuStatus cornu__partition_loop(Partition *p, const CornuProgramOp *op)
{
    Loop        loop = { .outer = p, .op = op, .scan = &op->attributes.scan };
    CornuStatus status = CORNU_OK;
    begin(&loop);
    for (bool again = true; again && !status;) {
        Partition q = { .from = loop.scan->body, .to = cornu__program_create(p->to->rules),
                        .mesh = p->mesh, .layouts = loop.layouts, .data = p->data,
                        .turn = p->turn, .apart = p->apart };
        status = q.to ? split_body(&loop, &q) : cornu_error_take();
        again = !status && learn(&loop, &q);
        if (!again && !status && !cornu__between_shards(q.to)) forget_shards(q.to);
        if (!again && !status) status = record(&loop, q.to);
        cornu__partition_release(&q);
        cornu_program_free(q.to);
    }
    return status;
}
