/* Values of a program that is partitioned, in the layouts that their readers want. */
#include "partition_internal.h"

#include "../memory_internal.h"
#include "../op_internal.h"
#include "../ops/build.h"

/* ---- Layouts ---- */

bool cornu__layout_equal(CornuLayout a, CornuLayout b)
{
    for (int i = 0; i < CORNU_MAX_RANK; i++)
        if (a.cut[i] != b.cut[i] || (a.cut[i] && a.blocks[i] != b.blocks[i])) return false;
    return true;
}

bool cornu__layout_alike(CornuLayout a, CornuLayout b, int axis)
{
    return a.cut[axis] == b.cut[axis] && a.blocks[axis] == b.blocks[axis];
}

int64_t cornu__layout_blocks(CornuLayout layout, int axis)
{
    return layout.blocks[axis] ? layout.blocks[axis] : 1;
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

CornuStatus cornu__form_add(Partition *p, CornuValue old, CornuLayout layout, unsigned partial,
                            int turn, CornuValue value)
{
    CORNU__TRY(cornu__reserve(&p->form, &p->form_space, p->form_count, 1, sizeof *p->form));
    int *at = &p->forms[old];
    while (*at >= 0) at = &p->form[*at].next;
    *at = p->form_count;
    p->form[p->form_count++] = (Form){ layout, value, (unsigned char)partial, turn, -1 };
    return CORNU_OK;
}

const Form *cornu__form_made(const Partition *p, CornuValue old)
{
    return &p->form[p->forms[old]];
}

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

static CornuStatus between(Partition *p, CornuOpId id, unsigned axes, CornuValue *x)
{
    int                   listed[CORNU_MAX_SHARDS];
    const CornuAttributes attributes = { .shards = cornu__mesh_shards(p->mesh, axes, listed) };
    return cornu_program_record(p->to, id, &attributes, x, 1, x);
}

/* The first axis of x, `outer` times `inner` equal pieces, with these in the other order. */
static CornuStatus regroup(Partition *p, int64_t outer, int64_t inner, CornuValue *x)
{
    const CornuType       type = type_of(p, *x);
    const CornuAttributes turned = { .permutation = { { 1, 0, 2 } } };
    CornuBuilder          b = { p->to, CORNU_OK };
    if (outer == 1 || inner == 1) return CORNU_OK;
    const CornuShape pieces = cornu_shape(outer, inner, cornu_type_count(type) / (outer * inner));
    CornuValue       y = cornu__build_reshape(&b, *x, pieces);
    y = cornu__build(&b, CORNU_OP_TRANSPOSE, &turned, &y, 1);
    *x = cornu__build_reshape(&b, y, type.shape);
    return b.status;
}

/* Records a collective whose slices are along an axis of x, cut in this way. */
static CornuStatus exchange(Partition *p, CornuOpId id, CornuLayout by, int axis, CornuValue *x)
{
    const int64_t blocks = cornu__layout_blocks(by, axis);
    const int64_t parts = cornu_mesh_size(p->mesh, by.cut[axis]);
    CORNU__TRY(turn(p, x, axis, false));
    if (id != CORNU_OP_ALL_GATHER) CORNU__TRY(regroup(p, blocks, parts, x));
    CORNU__TRY(between(p, id, by.cut[axis], x));
    if (id == CORNU_OP_ALL_GATHER) CORNU__TRY(regroup(p, parts, blocks, x));
    return turn(p, x, axis, true);
}

CornuStatus cornu__form_slice(Partition *p, CornuLayout layout, CornuValue *x)
{
    for (int i = 0; i < CORNU_MAX_RANK; i++)
        if (layout.cut[i]) CORNU__TRY(exchange(p, CORNU_OP_SHARD_SLICE, layout, i, x));
    return CORNU_OK;
}

static CornuStatus to_dtype(Partition *p, CornuDtype dtype, CornuValue *x)
{
    const CornuAttributes to = { .convert = { dtype } };
    if (type_of(p, *x).dtype == dtype) return CORNU_OK;
    return cornu_program_record(p->to, CORNU_OP_CONVERT, &to, x, 1, x);
}

/* What is cut along the batch is gathered for each layer that reads it, forward and backward, as
 * whole it is to be in memory only meanwhile. */
static CornuStatus gather(Partition *p, CornuLayout from, int axis, int *turn, CornuValue *x)
{
    const int own = p->to->apart;
    if (from.cut[axis] & p->data) {
        *turn = p->turn;
        cornu__program_apart(p->to, p->apart + p->turn);
    }
    const CornuStatus status = exchange(p, CORNU_OP_ALL_GATHER, from, axis, x);
    cornu__program_apart(p->to, own);
    return status;
}

/* The sum over the axes that x is partial over: of its slice, if it is wanted cut by just these. */
static CornuStatus add_terms(Partition *p, unsigned partial, CornuLayout want, CornuLayout *layout,
                             CornuValue *x)
{
    for (int i = 0; i < type_of(p, *x).shape.rank; i++)
        if (want.cut[i] == partial && !layout->cut[i]) {
            layout->cut[i] = want.cut[i];
            layout->blocks[i] = want.blocks[i];
            return exchange(p, CORNU_OP_REDUCE_SCATTER, want, i, x);
        }
    return between(p, CORNU_OP_ALL_REDUCE, partial, x);
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

CornuCutAxis cornu__form_cut(const Partition *p, unsigned axes, int64_t extent)
{
    return (CornuCutAxis){ p->to, p->mesh, axes, extent };
}

/* A value that is made from little is made anew for a slice. */
static CornuStatus make_again(Partition *p, CornuValue old, CornuLayout want, bool *made_again,
                              CornuValue *out)
{
    const CornuProgramValue *value = &p->from->values[old];
    CornuType                types[CORNU_MAX_INPUTS];
    CornuLayout              wanted[CORNU_MAX_INPUTS];
    CornuLayout              none[CORNU_MAX_INPUTS] = { { .cut = { 0 } } };
    CornuValue               in[CORNU_MAX_INPUTS];
    *made_again = false;
    if (value->op < 0 || p->from->ops[value->op].in_count > CORNU_MAX_INPUTS) return CORNU_OK;
    const CornuProgramOp *op = &p->from->ops[value->op];
    const CornuOpCall     call = cornu_program_call(p->from, op, types);
    CornuSplit split = { .mesh = p->mesh, .call = &call, .out = &value->type, .out_count = 1,
                         .have = none, .want = wanted };
    if (!cornu__split_for(&split, want)) return CORNU_OK;
    for (int i = 0; i < op->in_count; i++)
        CORNU__TRY(cornu__form_bring(p, cornu_program_operands(p->from, op)[i], wanted[i],
                                     &in[i]));
    *made_again = true;
    if (split.rows && op->id == CORNU_OP_IOTA) {
        const int64_t      extent = value->type.shape.extent[op->attributes.iota.axis];
        const CornuCutAxis cut = cornu__form_cut(p, split.rows, extent);
        return cornu__own_iota(&cut, &split.attributes, out);
    }
    if (split.rows) {
        const CornuCutAxis cut = cornu__form_cut(p, split.rows, op->attributes.one_hot.depth);
        return cornu__own_one_hot(&cut, op->attributes.one_hot.dtype, in[0], out);
    }
    return cornu_program_record(p->to, op->id, &split.attributes, in, op->in_count, out);
}

/* From the layout that the value was made in: sums, then gathers, then slices. `turn` is set if
 * it is for one layer alone. */
static CornuStatus convert(Partition *p, CornuValue old, CornuLayout want, int *turn,
                           CornuValue *out)
{
    const Form  from = *cornu__form_made(p, old);
    CornuLayout layout = from.layout;
    bool        again = false;
    *out = from.value;
    if (!from.partial) CORNU__TRY(make_again(p, old, want, &again, out));
    if (again) return CORNU_OK;
    if (from.partial) CORNU__TRY(add_up(p, old, from.partial, want, &layout, out));
    for (int i = 0; i < CORNU_MAX_RANK; i++) {
        if (cornu__layout_alike(layout, want, i)) want.cut[i] = 0;   /* there is nothing to do */
        else if (layout.cut[i]) CORNU__TRY(gather(p, layout, i, turn, out));
    }
    return cornu__form_slice(p, want, out);
}

/* The value in this layout, summed. */
CornuStatus cornu__form_bring(Partition *p, CornuValue old, CornuLayout want, CornuValue *out)
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
    return cornu__form_add(p, old, want, 0, turn, *out);
}
