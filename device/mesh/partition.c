#include "partition_internal.h"

#include <string.h>

#include "../memory_internal.h"
#include "../op_internal.h"
#include "../ops/rules.h"

/* Room for what is known of the values of `from`, and for an op. */
CornuStatus cornu__partition_reserve(Partition *p)
{
    const CornuProgram *from = p->from;
    const size_t        most = (size_t)cornu__most_operands(from);
    p->uses = cornu__allocate((size_t)from->value_count + 1, sizeof *p->uses);
    p->forms = cornu__allocate((size_t)from->value_count + 1, sizeof *p->forms);
    p->wishes = cornu__allocate((size_t)from->value_count + 1, sizeof *p->wishes);
    p->types = cornu__allocate(most + 1, sizeof *p->types);
    p->have = cornu__allocate(2 * (most + 1), sizeof *p->have);
    p->in = cornu__allocate(most + 1, sizeof *p->in);
    if (!p->uses || !p->forms || !p->wishes || !p->types || !p->have || !p->in)
        return CORNU_ERR_MEMORY;
    p->want = p->have + most + 1;
    for (int i = 0; i < from->operand_count; i++) p->uses[from->operands[i]]++;
    for (int i = 0; i < from->value_count; i++) p->forms[i] = -1;
    return CORNU_OK;
}

void cornu__partition_release(Partition *p)
{
    cornu__release(p->uses);
    cornu__release(p->forms);
    cornu__release(p->form);
    cornu__release(p->wishes);
    cornu__release(p->types);
    cornu__release(p->have);
    cornu__release(p->in);
}

/* ---- Wishes ---- */

void cornu__partition_wish(Partition *p, CornuValue value, const CornuLayout *layout)
{
    Wish *wish = &p->wishes[value];
    if (layout && wish->readers == NOBODY) *wish = (Wish){ *layout, ALIKE };
    else if (!layout || !cornu__layout_equal(wish->layout, *layout)) wish->readers = OTHERWISE;
}

static const CornuLayout *laid_of(const Partition *p, CornuValue value)
{
    for (int i = 0; i < p->laid_count; i++)
        if (p->laid[i].value == value) return &p->laid[i].layout;
    return NULL;
}

/* The layout that an op element by element is computed in, and a sum over the shards: its readers',
 * or of an operand that is an input, as a weight in its update. NULL: any. */
static const CornuLayout *wished(const Partition *p, const CornuProgramOp *op)
{
    const CornuValue *in = cornu_program_operands(p->from, op);
    const Wish       *wish = &p->wishes[op->out_first];
    if (!cornu__split_goes_by_element(op->id) && op->id != CORNU_OP_ALL_REDUCE) return NULL;
    if (laid_of(p, op->out_first)) return laid_of(p, op->out_first);
    if (wish->readers == ALIKE) return &wish->layout;
    for (int i = 0; i < op->in_count; i++) {
        const CornuProgramValue *value = &p->from->values[in[i]];
        if (value->op < 0 && cornu__layout_axes(p->layouts[value->index]))
            return &p->layouts[value->index];
    }
    return NULL;
}

/* From what is written into inputs back through ops that go element by element: what only serves
 * slices, as the scaled gradient of a weight that is cut, is computed of slices. */
static void find_wishes(Partition *p)
{
    for (int i = 0; i < p->from->output_count; i++) {
        const CornuProgramOutput *output = &p->from->outputs[i];
        cornu__partition_wish(p, output->value,
                              output->alias < 0 ? NULL : &p->layouts[output->alias]);
    }
    cornu__partition_spread_wishes(p);
}

/* Of what is joined, or padded, to blocks. */
static bool wish_blocks(Partition *p, const CornuProgramOp *op)
{
    const CornuOpCall call = cornu_program_call(p->from, op, p->types);
    const CornuType   out = cornu_program_type(p->from, op->out_first);
    CornuSplit split = { .mesh = p->mesh, .call = &call, .out = &out, .out_count = 1,
                         .have = p->have, .want = p->want };
    if (!cornu__split_joins_blocks(&split, p->wishes[op->out_first].layout)) return false;
    for (int k = 0; k < op->in_count; k++)
        cornu__partition_wish(p, cornu_program_operands(p->from, op)[k],
                              cornu__layout_axes(p->want[k]) ? &p->want[k] : NULL);
    return true;
}

void cornu__partition_spread_wishes(Partition *p)
{
    const CornuProgram *from = p->from;
    for (int i = from->op_count - 1; i >= 0; i--) {
        const CornuProgramOp *op = &from->ops[i];
        const CornuValue     *in = cornu_program_operands(from, op);
        const CornuLayout    *layout = wished(p, op);
        const CornuShape      shape = cornu_program_type(from, op->out_first).shape;
        if (p->wishes[op->out_first].readers == ALIKE && wish_blocks(p, op)) continue;
        for (int k = 0; k < op->in_count; k++)
            cornu__partition_wish(
                p, in[k],
                cornu_shape_equal(cornu_program_type(from, in[k]).shape, shape) ? layout : NULL);
    }
}

/* ---- Ops ---- */

/* Records an op whose results have these layouts; NULL: they are whole. */
static CornuStatus record(Partition *p, const CornuProgramOp *op,
                          const CornuAttributes *attributes, const CornuLayout *made,
                          unsigned partial)
{
    static const CornuLayout whole;
    CornuValue               out[CORNU_MAX_OUTPUTS];
    CORNU__TRY(cornu_program_record(p->to, op->id, attributes, p->in, op->in_count, out));
    for (int i = 0; i < op->out_count; i++)
        CORNU__TRY(cornu__form_add(p, op->out_first + i, made ? made[i] : whole, partial, 0,
                                   out[i]));
    return CORNU_OK;
}

/* Whether any operand varies in the recorded program, along the axes that share the batch. */
static bool operands_vary(const Partition *p, const CornuProgramOp *op)
{
    const CornuValue *in = cornu_program_operands(p->from, op);
    for (int i = 0; i < op->in_count; i++)
        if (p->from->values[in[i]].varies) return true;
    return false;
}

/* Partial values over the same axes are added before they are summed. */
static bool adds_parts(const Partition *p, const CornuProgramOp *op)
{
    if (op->id != CORNU_OP_ADD) return false;
    const CornuValue *in = cornu_program_operands(p->from, op);
    const Form       *a = cornu__form_made(p, in[0]), *b = cornu__form_made(p, in[1]);
    return a->partial && a->partial == b->partial && cornu__layout_equal(a->layout, b->layout) &&
           cornu_type_equal(cornu_program_type(p->to, a->value),
                            cornu_program_type(p->to, b->value));
}

/* The axes over which the result stays partial: of a term that this op alone reads, and moves or
 * adds up along axes, so that it may be added to others first. */
static unsigned passes_parts(const Partition *p, const CornuProgramOp *op, const CornuLayout *want)
{
    const CornuValue *in = cornu_program_operands(p->from, op);
    if (op->id != CORNU_OP_RESHAPE && op->id != CORNU_OP_TRANSPOSE && op->id != CORNU_OP_REDUCE_SUM)
        return 0;
    const Form *x = cornu__form_made(p, in[0]);
    return p->uses[in[0]] == 1 && cornu__layout_equal(x->layout, *want) ? x->partial : 0;
}

/* The indices, operand 1, of a lookup in a slice of the rows. */
static CornuStatus shift_indices(Partition *p, const CornuSplit *split)
{
    const CornuAttributes *attributes = split->call->attributes;
    const bool    scatter = split->call->id == CORNU_OP_SCATTER_ROWS;
    const bool    gradient = split->call->id == CORNU_OP_GATHER_GRAD;
    const int64_t padded = scatter ? CORNU_PADDED_ABOVE
                         : gradient ? attributes->gather_grad.padded : attributes->gather.padded;
    const CornuType   *table = gradient ? &split->out[0] : &split->call->in[0];
    const CornuCutAxis cut = cornu__form_cut(p, split->rows, table->shape.extent[0]);
    return cornu__own_places(&cut, padded, &p->in[1]);
}

/* Of the largest element of each slice, or its index, that of all. */
static CornuStatus join(Partition *p, const CornuProgramOp *op, const CornuSplit *split)
{
    Form         *form = &p->form[p->forms[op->out_first]];
    const int64_t axis = op->attributes.axis.axis;
    if (op->id == CORNU_OP_REDUCE_MAX) {
        const CornuCutAxis cut = cornu__form_cut(p, split->largest, 0);
        return cornu__join_max(&cut, &form->value);
    }
    const CornuCutAxis cut = cornu__form_cut(p, split->largest,
                                             split->call->in[0].shape.extent[axis]);
    return cornu__join_argmax(&cut, p->in[0], axis, &form->value);
}

/* The ops that the op is made of, as a program whose inputs are the operands. */
static CornuStatus split_inner(Partition *p, const CornuProgramOp *op, const CornuOpCall *call,
                               CornuProgram *inner)
{
    const CornuValue *in = cornu_program_operands(p->from, op);
    CornuValue        x[CORNU_MAX_INPUTS], out[CORNU_MAX_OUTPUTS], value;
    Partition         q = { .from = inner, .to = p->to, .mesh = p->mesh, .data = p->data,
                            .turn = p->turn, .apart = p->apart };
    for (int i = 0; i < op->in_count; i++)
        CORNU__TRY(cornu_program_copy_input(inner, p->from, in[i], &x[i]));
    CORNU__TRY(cornu__op_rules(op->id)->decompose(inner, call, x, out));
    CornuStatus status = cornu__partition_reserve(&q);
    for (int i = 0; i < op->in_count && !status; i++) {
        const CornuLayout layout = cornu__form_made(p, in[i])->layout;
        if (!(status = cornu__form_bring(p, in[i], layout, &value)))
            status = cornu__form_add(&q, x[i], layout, 0, 0, value);
    }
    for (int i = 0; i < inner->op_count && !status; i++)
        status = cornu__partition_op(&q, &inner->ops[i]);
    for (int i = 0; i < op->out_count && !status; i++) {
        const Form *form = cornu__form_made(&q, out[i]);
        status = cornu__form_add(p, op->out_first + i, form->layout, form->partial, 0, form->value);
    }
    cornu__partition_release(&q);
    return status;
}

static CornuStatus expand(Partition *p, const CornuProgramOp *op, const CornuOpCall *call)
{
    CornuProgram *inner = cornu_program_create();
    if (!inner) return cornu_error_take();
    const CornuStatus status = split_inner(p, op, call, inner);
    cornu_program_free(inner);
    return status;
}

/* The cut in which one-hot rows were wanted before, if an operand is of these. */
static CornuLayout of_one_hot(const Partition *p, const CornuProgramOp *op)
{
    const CornuValue *in = cornu_program_operands(p->from, op);
    for (int i = 0; i < op->in_count; i++) {
        const int producer = p->from->values[in[i]].op, other = cornu__form_made(p, in[i])->next;
        if (producer >= 0 && other >= 0 && p->from->ops[producer].id == CORNU_OP_ONE_HOT)
            return p->form[other].layout;
    }
    return (CornuLayout){ .cut = { 0 } };
}

CornuStatus cornu__partition_op(Partition *p, const CornuProgramOp *op)
{
    const CornuOpCall call = cornu_program_call(p->from, op, p->types);
    const CornuValue *in = cornu_program_operands(p->from, op);
    CornuType         out[CORNU_MAX_OUTPUTS];
    for (int i = 0; i < op->out_count; i++) out[i] = cornu_program_type(p->from, op->out_first + i);
    for (int i = 0; i < op->in_count; i++) {
        p->have[i] = cornu__form_made(p, in[i])->layout;
        p->in[i] = cornu__form_made(p, in[i])->value;
    }
    if (cornu__partition_loops(p, op))
        return op->id == CORNU_OP_SCAN ? cornu__partition_loop(p, op) : expand(p, op, &call);
    if (adds_parts(p, op)) return record(p, op, &op->attributes, p->have,
                                         cornu__form_made(p, in[0])->partial);
    CornuSplit split = { .mesh = p->mesh, .call = &call, .out = out, .out_count = op->out_count,
                         .have = p->have, .want = p->want,
                         .barred = operands_vary(p, op) || !cornu__split_keeps_bits(op->id)
                                 ? p->data : 0 };
    const CornuLayout *laid = laid_of(p, op->out_first);
    if (laid)
        split.wish = *laid;
    else if (p->wishes[op->out_first].readers == ALIKE)
        split.wish = p->wishes[op->out_first].layout;
    else if (cornu__split_goes_by_element(op->id))
        split.wish = of_one_hot(p, op);
    cornu__split(&split);
    if (cornu__split_expands(&split)) return expand(p, op, &call);
    const unsigned passed = passes_parts(p, op, p->want);
    for (int i = 0; i < op->in_count && !passed; i++)
        CORNU__TRY(cornu__form_bring(p, in[i], p->want[i], &p->in[i]));
    split.partial |= passed;
    if (passed && op->id == CORNU_OP_REDUCE_SUM) split.attributes.reduce.widen = 1;
    if (split.rows) CORNU__TRY(shift_indices(p, &split));
    CORNU__TRY(record(p, op, &split.attributes, split.made, split.partial));
    return split.largest ? join(p, op, &split) : CORNU_OK;
}

/* An op between the shards that the program was recorded for becomes one along the axes that share
 * the batch; a sum is put off until somebody reads it. */
static CornuStatus between_shards(Partition *p, const CornuProgramOp *op)
{
    static const CornuLayout whole;
    int                      listed[CORNU_MAX_SHARDS];
    const CornuValue        *in = cornu_program_operands(p->from, op);
    if (!p->data && op->in_count) {   /* recorded for one shard */
        const Form *x = cornu__form_made(p, in[0]);
        return cornu__form_add(p, op->out_first, x->layout, x->partial, 0, x->value);
    }
    if (op->attributes.shards.groups.count > 0)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s in groups of its own on a mesh, expected one "
                           "over all shards", cornu_op_name(op->id));
    if (op->id == CORNU_OP_ALL_REDUCE && p->from->values[in[0]].varies) {
        const Form *x = cornu__form_made(p, in[0]);
        return cornu__form_add(p, op->out_first, x->layout, x->partial | p->data, 0, x->value);
    }
    if (op->in_count) CORNU__TRY(cornu__form_bring(p, in[0], whole, &p->in[0]));
    const CornuAttributes along = { .shards = cornu__mesh_shards(p->mesh, p->data, listed) };
    return record(p, op, &along, NULL, 0);
}

/* From here on the value is as if it had been made in the layout that is asked for. */
static CornuStatus lay(Partition *p, CornuValue old)
{
    const CornuLayout *layout = laid_of(p, old);
    CornuValue         value;
    if (!layout) return CORNU_OK;
    CORNU__TRY(cornu__form_bring(p, old, *layout, &value));
    int *at = &p->forms[old];
    while (p->form[*at].partial || !cornu__layout_equal(p->form[*at].layout, *layout))
        at = &p->form[*at].next;
    const int found = *at;
    *at = p->form[found].next;
    p->form[found].next = p->forms[old];
    p->forms[old] = found;
    return CORNU_OK;
}

static CornuStatus declare_inputs(Partition *p)
{
    const CornuProgram *from = p->from;
    for (int i = 0; i < from->input_count; i++) {
        const CornuProgramValue *value = &from->values[from->inputs[i]];
        const CornuLayout        layout = p->layouts[i];
        CornuType                slice;
        CornuValue               own;
        CORNU__TRY(cornu__layout_slice(p->mesh, layout, value->type, &slice));
        const unsigned axes = cornu__layout_axes(layout) | (value->varies ? p->data : 0);
        CORNU__TRY(axes ? cornu_program_mesh_input(p->to, slice, axes, &own)
                        : cornu_program_input(p->to, slice, &own));
        if (value->fixed) cornu_program_fix_input(p->to, own);
        CORNU__TRY(cornu__form_add(p, from->inputs[i], layout, 0, 0, own));
    }
    return CORNU_OK;
}

/* What is written into slices differs from shard to shard, as they do: a constant is sliced. */
static CornuStatus bring_output(Partition *p, const CornuProgramOutput *output, CornuLayout want,
                                CornuValue *value)
{
    static const CornuLayout whole;
    CORNU__TRY(cornu__form_bring(p, output->value, want, value));
    if (!cornu__layout_axes(want) || p->to->values[*value].varies) return CORNU_OK;
    CORNU__TRY(cornu__form_bring(p, output->value, whole, value));
    return cornu__form_slice(p, want, value);
}

static CornuStatus declare_outputs(Partition *p)
{
    static const CornuLayout whole;
    const CornuProgram      *from = p->from;
    p->turn++;
    for (int i = 0; i < from->output_count; i++) {
        const CornuProgramOutput *output = &from->outputs[i];
        CornuValue                value;
        CORNU__TRY(bring_output(p, output, output->alias < 0 ? whole : p->layouts[output->alias],
                                &value));
        CORNU__TRY(cornu_program_output(p->to, value, output->alias));
    }
    return CORNU_OK;
}

static CornuStatus partition(Partition *p)
{
    const CornuProgram *from = p->from;
    p->to = cornu_program_create();
    if (!p->to) return cornu_error_take();
    CORNU__TRY(cornu__partition_reserve(p));
    find_wishes(p);
    p->apart = cornu__program_most_apart(from);
    CORNU__TRY(declare_inputs(p));
    for (int i = 0; i < from->op_count; i++) {
        const CornuProgramOp *op = &from->ops[i];
        p->turn += i == 0 || op->apart != op[-1].apart || strcmp(op->scope, op[-1].scope) != 0;
        CORNU__TRY(cornu__program_follow(p->to, op));
        CORNU__TRY(cornu__is_collective(op->id) || op->id == CORNU_OP_REPLICA_ID
                       ? between_shards(p, op) : cornu__partition_op(p, op));
        for (int k = 0; k < op->out_count; k++) CORNU__TRY(lay(p, op->out_first + k));
    }
    return declare_outputs(p);
}

CornuProgram *cornu__partition(const CornuProgram *program, const CornuMesh *mesh, unsigned data,
                               const CornuLayout *layouts)
{
    return cornu__partition_laid(program, mesh, data, layouts, NULL, 0);
}

CornuProgram *cornu__partition_laid(const CornuProgram *program, const CornuMesh *mesh,
                                    unsigned data, const CornuLayout *layouts,
                                    const CornuLaid *laid, int laid_count)
{
    Partition   p = { .from = program, .mesh = mesh, .data = data, .layouts = layouts,
                      .laid = laid, .laid_count = laid_count };
    CornuStatus status = partition(&p);
    cornu__partition_release(&p);
    if (!status) return p.to;
    cornu_program_free(p.to);
    return cornu__null();
}
