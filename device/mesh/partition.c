#include "split.h"

#include <string.h>

#include "../memory_internal.h"
#include "../op_internal.h"
#include "../ops/rules.h"
#include "places.h"

/* A value of the recorded program in one layout. */
typedef struct {
    CornuLayout   layout;
    CornuValue    value;     /* of the partitioned program */
    unsigned char partial;   /* axes over which it is still to be summed */
    int           turn;      /* gathered for this layer's turn alone; 0: for all readers */
    int           next;      /* another form of the same value; -1: none */
} Form;

/* In which layout all that read a value want it. */
typedef struct {
    CornuLayout layout;
    enum { NOBODY, ALIKE, OTHERWISE } readers;
} Wish;

typedef struct {
    const CornuProgram *from;
    CornuProgram       *to;
    const CornuMesh    *mesh;
    const CornuLayout  *layouts;   /* by input */
    const CornuLaid    *laid;
    int                 laid_count;
    unsigned            data;
    int                 turn;      /* counts the runs of ops of one layer, forward or backward   */
    int                 apart;     /* the largest number of ops kept apart in `from`           */
    int                *uses;      /* by value: how often it is an operand */
    int                *forms;     /* by value: as the op made it, then those it was brought to */
    Wish               *wishes;    /* by value */
    Form               *form;
    int                 form_count, form_space;
    CornuType          *types;     /* room for an op's operands */
    CornuLayout        *have, *want;
    CornuValue         *in;
} Partition;

/* Room for what is known of the values of `from`, and for an op. */
static CornuStatus reserve(Partition *p)
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

static void release(Partition *p)
{
    cornu__release(p->uses);
    cornu__release(p->forms);
    cornu__release(p->form);
    cornu__release(p->wishes);
    cornu__release(p->types);
    cornu__release(p->have);
    cornu__release(p->in);
}

bool cornu__layout_equal(CornuLayout a, CornuLayout b)
{
    return !memcmp(a.cut, b.cut, sizeof a.cut);
}

unsigned cornu__layout_axes(CornuLayout layout)
{
    unsigned axes = 0;
    for (int i = 0; i < CORNU_MAX_RANK; i++) axes |= layout.cut[i];
    return axes;
}

CornuStatus cornu__layout_slice(const CornuMesh *mesh, CornuLayout layout, CornuType type,
                                CornuType *slice)
{
    CornuText text;
    *slice = type;
    for (int i = 0; i < type.shape.rank; i++) {
        const int parts = cornu_mesh_size(mesh, layout.cut[i]);
        if (type.shape.extent[i] % parts)
            return cornu__fail(CORNU_ERR_SHAPE, "axis %d of %s does not divide into the %d slices "
                               "of its layout", i, cornu_type_print(&text, type), parts);
        slice->shape.extent[i] /= parts;
    }
    return CORNU_OK;
}

/* ---- Forms ---- */

static CornuStatus add_form(Partition *p, CornuValue old, CornuLayout layout, unsigned partial,
                            int turn, CornuValue value)
{
    CORNU__TRY(cornu__reserve(&p->form, &p->form_space, p->form_count, 1, sizeof *p->form));
    int *at = &p->forms[old];
    while (*at >= 0) at = &p->form[*at].next;
    *at = p->form_count;
    p->form[p->form_count++] = (Form){ layout, value, (unsigned char)partial, turn, -1 };
    return CORNU_OK;
}

static const Form *made(const Partition *p, CornuValue old) { return &p->form[p->forms[old]]; }

static CornuType type_of(const Partition *p, CornuValue value)
{
    return cornu_program_type(p->to, value);
}

/* Moves an axis of x to the front, or back. */
static CornuStatus turn(Partition *p, CornuValue *x, int axis, bool back)
{
    CornuAttributes turned = { .permutation = { { 0 } } };
    int64_t        *axes = turned.permutation.axes;
    if (axis == 0) return CORNU_OK;
    for (int i = 0; i < type_of(p, *x).shape.rank; i++)
        axes[i] = back ? (i < axis ? i + 1 : i == axis ? 0 : i)
                       : (i == 0 ? axis : i <= axis ? i - 1 : i);
    return cornu_program_record(p->to, CORNU_OP_TRANSPOSE, &turned, x, 1, x);
}

/* Records a collective over axes of the mesh, whose slices are along an axis of x. */
static CornuStatus exchange(Partition *p, CornuOpId id, unsigned axes, int axis, CornuValue *x)
{
    int                   listed[CORNU_MAX_SHARDS];
    const CornuAttributes attributes = { .shards = cornu__mesh_shards(p->mesh, axes, listed) };
    CORNU__TRY(turn(p, x, axis, false));
    CORNU__TRY(cornu_program_record(p->to, id, &attributes, x, 1, x));
    return turn(p, x, axis, true);
}

static CornuStatus to_dtype(Partition *p, CornuDtype dtype, CornuValue *x)
{
    const CornuAttributes to = { .convert = { dtype } };
    if (type_of(p, *x).dtype == dtype) return CORNU_OK;
    return cornu_program_record(p->to, CORNU_OP_CONVERT, &to, x, 1, x);
}

/* What is cut along the batch is gathered for each layer that reads it, forward and backward, as
 * whole it is to be in memory only meanwhile. */
static CornuStatus gather(Partition *p, unsigned axes, int axis, int *turn, CornuValue *x)
{
    const int own = p->to->apart;
    if (axes & p->data) {
        *turn = p->turn;
        cornu__program_apart(p->to, p->apart + p->turn);
    }
    const CornuStatus status = exchange(p, CORNU_OP_ALL_GATHER, axes, axis, x);
    cornu__program_apart(p->to, own);
    return status;
}

/* The sum over the axes that x is partial over: of its slice, if it is wanted cut by just these. */
static CornuStatus add_terms(Partition *p, unsigned partial, CornuLayout want, CornuLayout *layout,
                             CornuValue *x)
{
    for (int i = 0; i < type_of(p, *x).shape.rank; i++)
        if (want.cut[i] == partial && !layout->cut[i]) {
            layout->cut[i] = (unsigned char)partial;
            return exchange(p, CORNU_OP_REDUCE_SCATTER, partial, i, x);
        }
    return exchange(p, CORNU_OP_ALL_REDUCE, partial, 0, x);
}

/* Likewise; bf16 and f16 are summed in f32. */
static CornuStatus add_up(Partition *p, CornuValue old, unsigned partial, CornuLayout want,
                          CornuLayout *layout, CornuValue *x)
{
    const CornuDtype dtype = p->from->values[old].type.dtype;
    if (dtype == CORNU_BF16 || dtype == CORNU_F16) CORNU__TRY(to_dtype(p, CORNU_F32, x));
    CORNU__TRY(add_terms(p, partial, want, layout, x));
    return to_dtype(p, dtype, x);
}

static CornuStatus bring(Partition *p, CornuValue old, CornuLayout want, CornuValue *out);

static CornuCutAxis cut_axis(const Partition *p, unsigned axes, int64_t extent)
{
    return (CornuCutAxis){ p->to, p->mesh, axes, extent };
}

/* A value that is made from little is made anew for a slice. */
static CornuStatus make_again(Partition *p, CornuValue old, CornuLayout want, bool *made_again,
                              CornuValue *out)
{
    const CornuProgramValue *value = &p->from->values[old];
    CornuType                types[CORNU_MAX_INPUTS];
    CornuLayout              wanted[CORNU_MAX_INPUTS], none[CORNU_MAX_INPUTS] = { { { 0 } } };
    CornuValue               in[CORNU_MAX_INPUTS];
    *made_again = false;
    if (value->op < 0 || p->from->ops[value->op].in_count > CORNU_MAX_INPUTS) return CORNU_OK;
    const CornuProgramOp *op = &p->from->ops[value->op];
    const CornuOpCall     call = cornu_program_call(p->from, op, types);
    CornuSplit split = { .mesh = p->mesh, .call = &call, .out = &value->type, .out_count = 1,
                         .have = none, .want = wanted };
    if (!cornu__split_for(&split, want)) return CORNU_OK;
    for (int i = 0; i < op->in_count; i++)
        CORNU__TRY(bring(p, cornu_program_operands(p->from, op)[i], wanted[i], &in[i]));
    *made_again = true;
    if (split.rows && op->id == CORNU_OP_IOTA) {
        const CornuCutAxis cut = cut_axis(p, split.rows,
                                          value->type.shape.extent[op->attributes.iota.axis]);
        return cornu__own_iota(&cut, &split.attributes, out);
    }
    if (split.rows) {
        const CornuCutAxis cut = cut_axis(p, split.rows, op->attributes.one_hot.depth);
        return cornu__own_one_hot(&cut, op->attributes.one_hot.dtype, in[0], out);
    }
    return cornu_program_record(p->to, op->id, &split.attributes, in, op->in_count, out);
}

/* From the layout that the value was made in: sums, then gathers, then slices. `turn` is set if
 * it is for one layer alone. */
static CornuStatus convert(Partition *p, CornuValue old, CornuLayout want, int *turn,
                           CornuValue *out)
{
    const Form  from = *made(p, old);
    CornuLayout layout = from.layout;
    bool        again = false;
    *out = from.value;
    if (!from.partial) CORNU__TRY(make_again(p, old, want, &again, out));
    if (again) return CORNU_OK;
    if (from.partial) CORNU__TRY(add_up(p, old, from.partial, want, &layout, out));
    for (int i = 0; i < CORNU_MAX_RANK; i++) {
        if (!layout.cut[i] || layout.cut[i] == want.cut[i]) continue;
        CORNU__TRY(gather(p, layout.cut[i], i, turn, out));
        layout.cut[i] = 0;
    }
    for (int i = 0; i < CORNU_MAX_RANK; i++)
        if (want.cut[i] != layout.cut[i])
            CORNU__TRY(exchange(p, CORNU_OP_SHARD_SLICE, want.cut[i], i, out));
    return CORNU_OK;
}

/* The value in this layout, summed. */
static CornuStatus bring(Partition *p, CornuValue old, CornuLayout want, CornuValue *out)
{
    int turn = 0;
    for (int i = p->forms[old]; i >= 0; i = p->form[i].next) {
        const Form *form = &p->form[i];
        if (form->partial || (form->turn && form->turn != p->turn) ||
            !cornu__layout_equal(form->layout, want))
            continue;
        *out = form->value;
        return CORNU_OK;
    }
    CORNU__TRY(convert(p, old, want, &turn, out));
    return add_form(p, old, want, 0, turn, *out);
}

/* ---- Wishes ---- */

static void add_wish(Partition *p, CornuValue value, const CornuLayout *layout)
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
    const CornuProgram *from = p->from;
    for (int i = 0; i < from->output_count; i++)
        add_wish(p, from->outputs[i].value,
                 from->outputs[i].alias < 0 ? NULL : &p->layouts[from->outputs[i].alias]);
    for (int i = from->op_count - 1; i >= 0; i--) {
        const CornuProgramOp *op = &from->ops[i];
        const CornuValue     *in = cornu_program_operands(from, op);
        const CornuLayout    *layout = wished(p, op);
        const CornuShape      shape = cornu_program_type(from, op->out_first).shape;
        for (int k = 0; k < op->in_count; k++)
            add_wish(p, in[k],
                     cornu_shape_equal(cornu_program_type(from, in[k]).shape, shape) ? layout
                                                                                     : NULL);
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
        CORNU__TRY(add_form(p, op->out_first + i, made ? made[i] : whole, partial, 0, out[i]));
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
    const Form       *a = made(p, in[0]), *b = made(p, in[1]);
    return a->partial && a->partial == b->partial && cornu__layout_equal(a->layout, b->layout) &&
           cornu_type_equal(type_of(p, a->value), type_of(p, b->value));
}

/* The axes over which the result stays partial: of a term that this op alone reads, and moves or
 * adds up along axes, so that it may be added to others first. */
static unsigned passes_parts(const Partition *p, const CornuProgramOp *op, const CornuLayout *want)
{
    const CornuValue *in = cornu_program_operands(p->from, op);
    if (op->id != CORNU_OP_RESHAPE && op->id != CORNU_OP_TRANSPOSE && op->id != CORNU_OP_REDUCE_SUM)
        return 0;
    const Form *x = made(p, in[0]);
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
    const CornuCutAxis cut = cut_axis(p, split->rows, table->shape.extent[0]);
    return cornu__own_places(&cut, padded, &p->in[1]);
}

/* Of the largest element of each slice, or its index, that of all. */
static CornuStatus join(Partition *p, const CornuProgramOp *op, const CornuSplit *split)
{
    Form         *form = &p->form[p->forms[op->out_first]];
    const int64_t axis = op->attributes.axis.axis;
    if (op->id == CORNU_OP_REDUCE_MAX) {
        const CornuCutAxis cut = cut_axis(p, split->largest, 0);
        return cornu__join_max(&cut, &form->value);
    }
    const CornuCutAxis cut = cut_axis(p, split->largest, split->call->in[0].shape.extent[axis]);
    return cornu__join_argmax(&cut, p->in[0], axis, &form->value);
}

static CornuStatus split_op(Partition *p, const CornuProgramOp *op);

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
    CornuStatus status = reserve(&q);
    for (int i = 0; i < op->in_count && !status; i++) {
        const CornuLayout layout = made(p, in[i])->layout;
        if (!(status = bring(p, in[i], layout, &value)))
            status = add_form(&q, x[i], layout, 0, 0, value);
    }
    for (int i = 0; i < inner->op_count && !status; i++) status = split_op(&q, &inner->ops[i]);
    for (int i = 0; i < op->out_count && !status; i++) {
        const Form *form = made(&q, out[i]);
        status = add_form(p, op->out_first + i, form->layout, form->partial, 0, form->value);
    }
    release(&q);
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
        const int producer = p->from->values[in[i]].op, other = made(p, in[i])->next;
        if (producer >= 0 && other >= 0 && p->from->ops[producer].id == CORNU_OP_ONE_HOT)
            return p->form[other].layout;
    }
    return (CornuLayout){ { 0 } };
}

static CornuStatus split_op(Partition *p, const CornuProgramOp *op)
{
    const CornuOpCall call = cornu_program_call(p->from, op, p->types);
    const CornuValue *in = cornu_program_operands(p->from, op);
    CornuType         out[CORNU_MAX_OUTPUTS];
    for (int i = 0; i < op->out_count; i++) out[i] = cornu_program_type(p->from, op->out_first + i);
    for (int i = 0; i < op->in_count; i++) {
        p->have[i] = made(p, in[i])->layout;
        p->in[i] = made(p, in[i])->value;
    }
    if (adds_parts(p, op)) return record(p, op, &op->attributes, p->have,
                                         made(p, in[0])->partial);
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
        CORNU__TRY(bring(p, in[i], p->want[i], &p->in[i]));
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
    if (op->attributes.shards.groups.count > 0)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s in groups of its own on a mesh, expected one "
                           "over all shards", cornu_op_name(op->id));
    if (op->id == CORNU_OP_ALL_REDUCE && p->from->values[in[0]].varies) {
        const Form *x = made(p, in[0]);
        return add_form(p, op->out_first, x->layout, x->partial | p->data, 0, x->value);
    }
    if (op->in_count) CORNU__TRY(bring(p, in[0], whole, &p->in[0]));
    const CornuAttributes along = { .shards = cornu__mesh_shards(p->mesh, p->data, listed) };
    return record(p, op, &along, NULL, 0);
}

/* From here on the value is as if it had been made in the layout that is asked for. */
static CornuStatus lay(Partition *p, CornuValue old)
{
    const CornuLayout *layout = laid_of(p, old);
    CornuValue         value;
    if (!layout) return CORNU_OK;
    CORNU__TRY(bring(p, old, *layout, &value));
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
        CORNU__TRY(add_form(p, from->inputs[i], layout, 0, 0, own));
    }
    return CORNU_OK;
}

/* What is written into slices differs from shard to shard, as they do: a constant is sliced. */
static CornuStatus bring_output(Partition *p, const CornuProgramOutput *output, CornuLayout want,
                                CornuValue *value)
{
    static const CornuLayout whole;
    CORNU__TRY(bring(p, output->value, want, value));
    if (!cornu__layout_axes(want) || p->to->values[*value].varies) return CORNU_OK;
    CORNU__TRY(bring(p, output->value, whole, value));
    for (int i = 0; i < CORNU_MAX_RANK; i++)
        if (want.cut[i]) CORNU__TRY(exchange(p, CORNU_OP_SHARD_SLICE, want.cut[i], i, value));
    return CORNU_OK;
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
    CORNU__TRY(reserve(p));
    find_wishes(p);
    p->apart = cornu__program_most_apart(from);
    CORNU__TRY(declare_inputs(p));
    for (int i = 0; i < from->op_count; i++) {
        const CornuProgramOp *op = &from->ops[i];
        p->turn += i == 0 || op->apart != op[-1].apart || strcmp(op->scope, op[-1].scope) != 0;
        CORNU__TRY(cornu__program_follow(p->to, op));
        CORNU__TRY(cornu__is_collective(op->id) || op->id == CORNU_OP_REPLICA_ID
                       ? between_shards(p, op) : split_op(p, op));
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
    release(&p);
    if (!status) return p.to;
    cornu_program_free(p.to);
    return cornu__null();
}
