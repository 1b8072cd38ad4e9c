#include "split.h"

#include <string.h>

#include "../op_internal.h"
#include "../rows/axes.h"

/* What a rule says of an axis that the op sums along: the results are partial. Both operands of a
 * product have such an axis, and are cut alike. */
enum { SUMMED = -100 };

/* Fills `to` for each axis of an operand as a CornuAxesRule does, or with SUMMED; false: the op
 * needs all of it. */
typedef bool Rule(const CornuAxesCall *c, int to[CORNU_MAX_RANK]);

static int rank_in(const CornuAxesCall *c) { return c->call->in[c->operand].shape.rank; }

static void read_all(const CornuAxesCall *c, int to[CORNU_MAX_RANK])
{
    for (int i = 0; i < rank_in(c); i++) to[i] = CORNU_AXIS_READ;
}

/* ---- Ops that only training has, and sums ---- */

/* Operands of the result's shape are read at its place, others as a whole. */
static bool same_shape(const CornuAxesCall *c, int to[CORNU_MAX_RANK])
{
    read_all(c, to);
    for (int i = 0; i < rank_in(c); i++)
        if (cornu_shape_equal(c->call->in[c->operand].shape, c->out->shape)) to[i] = i;
    return true;
}

/* All is by channel, the last axis of images and the only one of statistics. */
static bool channels(const CornuAxesCall *c, int to[CORNU_MAX_RANK])
{
    read_all(c, to);
    if (rank_in(c) > 0) to[rank_in(c) - 1] = c->out->shape.rank - 1;
    return true;
}

/* Likewise by image, axis 0 of all operands: of the gradients of pools. */
static bool images(const CornuAxesCall *c, int to[CORNU_MAX_RANK])
{
    channels(c, to);
    to[0] = 0;
    return true;
}

static bool matmul(const CornuAxesCall *c, int to[CORNU_MAX_RANK])
{
    cornu__axes_rules[CORNU_READS_MATMUL](c, to);
    for (int i = rank_in(c) - 2; i < rank_in(c); i++)
        if (to[i] == CORNU_AXIS_READ) to[i] = SUMMED;
    return true;
}

static bool conv2d(const CornuAxesCall *c, int to[CORNU_MAX_RANK])
{
    cornu__axes_rules[CORNU_READS_CONV2D](c, to);
    to[c->operand == 0 ? 3 : 2] = SUMMED;
    return true;
}

/* dy (B, h, w, O) and a filter (kh, kw, I, O) give (B, H, W, I). */
static bool conv2d_grad_input(const CornuAxesCall *c, int to[CORNU_MAX_RANK])
{
    read_all(c, to);
    to[3] = SUMMED;
    if (c->operand == 0) to[0] = 0;
    else to[2] = 3;
    return true;
}

/* x (B, H, W, I) and dy (B, h, w, O) give (kh, kw, I, O). */
static bool conv2d_grad_filter(const CornuAxesCall *c, int to[CORNU_MAX_RANK])
{
    read_all(c, to);
    to[0] = SUMMED;
    to[3] = c->operand == 0 ? 2 : 3;
    return true;
}

static bool reduce_sum(const CornuAxesCall *c, int to[CORNU_MAX_RANK])
{
    cornu__axes_rules[CORNU_READS_REDUCE](c, to);
    for (int i = 0; i < rank_in(c); i++)
        if (to[i] == CORNU_AXIS_READ) to[i] = SUMMED;
    return true;
}

/* The largest of each slice; they are compared afterwards. */
static bool largest(const CornuAxesCall *c, int to[CORNU_MAX_RANK])
{
    cornu__axes_rules[cornu__op_reads(c->call->id)](c, to);
    for (int i = 0; i < rank_in(c); i++)
        if (to[i] == CORNU_AXIS_READ) to[i] = SUMMED;
    return true;
}

/* Of a slice of the table's rows each shard gives its own, and zeros for the others. */
static bool gather(const CornuAxesCall *c, int to[CORNU_MAX_RANK])
{
    const CornuDtype dtype = c->out->dtype;
    cornu__axes_rules[CORNU_READS_GATHER](c, to);
    if (c->operand == 0 && (cornu_dtype_is_float(dtype) || dtype == CORNU_I64 ||
                            dtype == CORNU_I32))
        to[0] = SUMMED;
    return true;
}

/* dy (B, …, C) and indices (B, …): the features of rows, and a term of them for some of the
 * lookups. Slices of the rows themselves are made where they are wished. */
static bool gather_grad(const CornuAxesCall *c, int to[CORNU_MAX_RANK])
{
    read_all(c, to);
    if (c->call->in[1].shape.rank > 0) to[0] = SUMMED;
    if (c->operand == 0) to[rank_in(c) - 1] = 1;
    return true;
}

/* Table (V, C), indices (N) and the rows (N, C) that they get. */
static bool scatter_rows(const CornuAxesCall *c, int to[CORNU_MAX_RANK])
{
    read_all(c, to);
    if (c->operand == 0) to[0] = 0;
    if (c->operand != 1) to[1] = 1;
    return true;
}

/* Batches, and heads, axis 2 of (B, T, N, H), where keys and values have as many as queries; they
 * are axis 1 of lse (B, N, T) and of a mask. */
static bool heads(const CornuAxesCall *c, int to[CORNU_MAX_RANK])
{
    const CornuType *in = c->call->in;
    read_all(c, to);
    to[0] = 0;
    if (in[0].shape.extent[2] == in[1].shape.extent[2])
        to[rank_in(c) == 3 || in[c->operand].dtype == CORNU_BOOL ? 1 : 2] = 2;
    return true;
}

/* The gates and cells of rows, and what their gradients are of; the kernel is operand 3. */
static bool recurrence_grad(const CornuAxesCall *c, int to[CORNU_MAX_RANK])
{
    read_all(c, to);
    if (c->operand != 3) to[0] = 0;
    return true;
}

static Rule *const own[CORNU_OP_COUNT] = {
    [CORNU_OP_MATMUL] = matmul,
    [CORNU_OP_CONV2D] = conv2d,
    [CORNU_OP_CONV2D_GRAD_INPUT] = conv2d_grad_input,
    [CORNU_OP_CONV2D_GRAD_FILTER] = conv2d_grad_filter,
    [CORNU_OP_REDUCE_SUM] = reduce_sum,
    [CORNU_OP_REDUCE_MAX] = largest,
    [CORNU_OP_ARGMAX] = largest,
    [CORNU_OP_MAX_POOL2D_GRAD] = images,
    [CORNU_OP_AVERAGE_POOL2D_GRAD] = images,
    [CORNU_OP_BATCH_NORM] = channels,
    [CORNU_OP_BATCH_NORM_GRAD] = channels,
    [CORNU_OP_GATHER] = gather,
    [CORNU_OP_GATHER_GRAD] = gather_grad,
    [CORNU_OP_SCATTER_ROWS] = scatter_rows,
    [CORNU_OP_MOMENTUM_UPDATE] = same_shape,
    [CORNU_OP_RMSPROP_UPDATE] = same_shape,
    [CORNU_OP_ADAM_UPDATE] = same_shape,
    [CORNU_OP_ATTENTION] = heads,
    [CORNU_OP_ATTENTION_GRAD] = heads,
    [CORNU_OP_LSTM_GRAD] = recurrence_grad,
    [CORNU_OP_GRU_GRAD] = recurrence_grad,
};

/* Slices of an axis are slices of an axis of the result if both are the first of what they are
 * joined with or divided into, and both divide. */
static bool reshape(const CornuAxesCall *c, int to[CORNU_MAX_RANK])
{
    const CornuShape in = c->call->in[0].shape, out = c->out->shape;
    int64_t          before = 1;
    read_all(c, to);
    for (int i = 0; i < in.rank; before *= in.extent[i++]) {
        int64_t reached = 1;
        int     j = 0;
        while (j < out.rank && (reached < before || out.extent[j] == 1)) reached *= out.extent[j++];
        if (j < out.rank && reached == before && in.extent[i] > 1) to[i] = j;
    }
    return true;
}

static bool axes_of(const CornuSplit *s, int operand, int to[CORNU_MAX_RANK])
{
    const CornuAxesCall c = { s->call, &s->out[0], 0, operand };
    const CornuReads    reads = cornu__op_reads(s->call->id);
    if (own[s->call->id]) return own[s->call->id](&c, to);
    if (reads == CORNU_READS_RESHAPE) return reshape(&c, to);
    return cornu__axes_rules[reads](&c, to) >= 0;
}

/* ---- Choosing ---- */

static int64_t parts(const CornuSplit *s, unsigned cut) { return cornu_mesh_size(s->mesh, cut); }

static int64_t extent_in(const CornuSplit *s, int operand, int axis)
{
    return s->call->in[operand].shape.extent[axis];
}

/* Whether the op takes or puts whole blocks of so many elements along the axis. */
static bool moves_blocks(const CornuSplit *s, int axis, int64_t block)
{
    const CornuAttributes *a = s->call->attributes;
    bool                   moves = true;
    switch (s->call->id) {
    case CORNU_OP_SLICE: return a->slice.starts[axis] % block == 0 &&
                                a->slice.sizes[axis] % block == 0;
    case CORNU_OP_PAD:   return a->pad.low[axis] % block == 0 && a->pad.high[axis] % block == 0 &&
                                a->pad.low[axis] >= 0 && a->pad.high[axis] >= 0;
    case CORNU_OP_CONCAT:
        for (int i = 0; i < s->call->in_count; i++) moves &= extent_in(s, i, axis) % block == 0;
        return moves;
    default: return false;
    }
}

/* The axis of the results that an operand's axis is, or makes; below 0: none. */
static int axis_made(int to) { return to < CORNU_AXIS_READ && to != SUMMED ? -2 - to : to; }

/* Whether a reshape joins the axis with others, or divides it. */
static bool is_joined(const CornuSplit *s, int operand, int axis, int to)
{
    return cornu__op_reads(s->call->id) == CORNU_READS_RESHAPE && to >= 0 &&
           extent_in(s, operand, axis) != s->out[0].shape.extent[to];
}

/* Whether the axis of the operand, in blocks of so many elements, becomes one of the results, cut
 * as they are: in such blocks, or in one where a reshape joins it with others. */
static bool follows(const CornuSplit *s, int operand, int axis, int to, int64_t block)
{
    const int     j = axis_made(to);
    const int64_t in = extent_in(s, operand, axis);
    if (j < 0) return false;
    if (to < 0) return moves_blocks(s, j, block);
    return is_joined(s, operand, axis, to) ? block == in : in == s->out[0].shape.extent[j];
}

static unsigned char blocks_of(int64_t extent, int64_t block)
{
    return (unsigned char)(extent > block ? extent / block : 0);
}

/* Whether the op numbers the places along an operand's axis: it knows nothing of blocks there. */
static bool is_numbered(const CornuSplit *s, int axis, int to)
{
    const CornuOpId id = s->call->id;
    return (to == SUMMED && (id == CORNU_OP_GATHER || id == CORNU_OP_ARGMAX)) ||
           (axis == 0 && id == CORNU_OP_SCATTER_ROWS);
}

/* The first cut of an operand's axis that the results can have decides; two axes are not cut by
 * one axis of the mesh. */
static void choose(CornuSplit *s, int operand, const int to[CORNU_MAX_RANK], unsigned *used)
{
    const CornuLayout have = s->have[operand];
    for (int i = 0; i < s->call->in[operand].shape.rank; i++) {
        const unsigned cut = have.cut[i];
        if (!cut || cut & (*used | s->barred)) continue;
        if (have.blocks[i] && is_numbered(s, i, to[i])) continue;
        const int j = axis_made(to[i]);
        int64_t   block = extent_in(s, operand, i) / cornu__layout_blocks(have, i);
        const bool kept = follows(s, operand, i, to[i], block);
        if (kept && is_joined(s, operand, i, to[i])) block = s->out[0].shape.extent[j];
        if (to[i] == SUMMED) {
            s->partial |= cut;
            s->summed_blocks = have.blocks[i];
        } else if (kept && !s->made[0].cut[j] && block % parts(s, cut) == 0) {
            s->made[0].cut[j] = (unsigned char)cut;
            s->made[0].blocks[j] = blocks_of(s->out[0].shape.extent[j], block);
        } else {
            continue;
        }
        *used |= cut;
    }
}

/* An axis that becomes one of the results is cut as that is. */
static void ask_axis(const CornuSplit *s, int operand, int axis, int to, CornuLayout *layout)
{
    const int     j = axis_made(to);
    const int64_t in = extent_in(s, operand, axis);
    if (j < 0 || !s->made[0].cut[j]) return;
    int64_t block = s->out[0].shape.extent[j] / cornu__layout_blocks(s->made[0], j);
    if (is_joined(s, operand, axis, to) && !s->made[0].blocks[j]) block = in;
    if (!follows(s, operand, axis, to, block)) return;
    layout->cut[axis] = s->made[0].cut[j];
    layout->blocks[axis] = blocks_of(in, block);
}

/* Operands are cut as the results are, and along axes that are summed over all alike. */
static void ask(CornuSplit *s, int operand, const int to[CORNU_MAX_RANK])
{
    CornuLayout *layout = &s->want[operand];
    *layout = (CornuLayout){ .cut = { 0 } };
    for (int i = 0; i < s->call->in[operand].shape.rank; i++) {
        if (to[i] == SUMMED)
            layout->cut[i] = s->call->in_count > 1
                           ? (unsigned char)s->partial
                           : (unsigned char)(s->have[operand].cut[i] & s->partial);
        else
            ask_axis(s, operand, i, to[i], layout);
        if (to[i] == SUMMED && layout->cut[i])
            layout->blocks[i] = s->call->in_count > 1 ? s->summed_blocks
                                                      : s->have[operand].blocks[i];
    }
}

/* ---- The op on slices ---- */

static void divide(const CornuSplit *s, int64_t extents[CORNU_MAX_RANK])
{
    for (int i = 0; i < s->out[0].shape.rank; i++) extents[i] /= parts(s, s->made[0].cut[i]);
}

/* Terms of a sum over shards are not rounded to bf16 or f16; the sum is. */
static void keep_digits(CornuSplit *s)
{
    const CornuDtype dtype = s->out[0].dtype;
    if (!s->partial || (dtype != CORNU_BF16 && dtype != CORNU_F16)) return;
    switch (s->call->id) {
    case CORNU_OP_MATMUL:     s->attributes.matmul.dtype = CORNU_F32; break;
    case CORNU_OP_CONV2D:     s->attributes.conv2d.dtype = CORNU_F32; break;
    case CORNU_OP_CONV2D_GRAD_INPUT: case CORNU_OP_CONV2D_GRAD_FILTER:
        s->attributes.conv2d_grad.dtype = CORNU_F32;
        break;
    case CORNU_OP_REDUCE_SUM: s->attributes.reduce.widen = 1; break;
    case CORNU_OP_GATHER_GRAD: s->attributes.gather_grad.dtype = CORNU_F32; break;
    default: break;
    }
}

/* Attributes that repeat extents of the results, or their dtype; of lookups in a slice of the rows
 * also which index is of no row. */
static void adapt(CornuSplit *s)
{
    s->attributes = *s->call->attributes;
    s->rows = 0;
    keep_digits(s);
    switch (s->call->id) {
    case CORNU_OP_GATHER:
        s->rows = s->partial;
        if (s->rows) s->attributes.gather.padded = CORNU_PADDED_ABOVE;
        break;
    case CORNU_OP_GATHER_GRAD:
        s->rows = s->made[0].cut[0];
        s->attributes.gather_grad.rows /= parts(s, s->rows);
        if (s->rows) s->attributes.gather_grad.padded = CORNU_PADDED_ABOVE;
        break;
    case CORNU_OP_SCATTER_ROWS: s->rows = s->made[0].cut[0]; break;
    case CORNU_OP_ONE_HOT: s->rows = s->made[0].cut[s->out[0].shape.rank - 1]; break;
    case CORNU_OP_BROADCAST: case CORNU_OP_RESHAPE:
        divide(s, s->attributes.shape.extents);
        break;
    case CORNU_OP_IOTA:
        divide(s, s->attributes.iota.extents);
        s->rows = s->made[0].cut[s->attributes.iota.axis];
        break;
    case CORNU_OP_SLICE:
        divide(s, s->attributes.slice.starts);
        divide(s, s->attributes.slice.sizes);
        break;
    case CORNU_OP_PAD:
        divide(s, s->attributes.pad.low);
        divide(s, s->attributes.pad.high);
        break;
    default: break;
    }
}

bool cornu__split_goes_by_element(CornuOpId id)
{
    return cornu__is_elementwise(id) || own[id] == same_shape;
}

bool cornu__split_keeps_bits(CornuOpId id)
{
    static const bool moves[CORNU_READS_COUNT] = {
        [CORNU_READS_NOTHING] = true, [CORNU_READS_IOTA] = true, [CORNU_READS_BROADCAST] = true,
        [CORNU_READS_RESHAPE] = true, [CORNU_READS_TRANSPOSE] = true, [CORNU_READS_SLICE] = true,
        [CORNU_READS_PAD] = true, [CORNU_READS_ONE_HOT] = true,
    };
    return cornu__split_goes_by_element(id) || moves[cornu__op_reads(id)];
}

/* Whether results of other shapes have the batch along axis 0, too, and nothing else is cut. */
static bool goes_by_row(CornuOpId id)
{
    const CornuReads reads = cornu__op_reads(id);
    return reads == CORNU_READS_LSTM || reads == CORNU_READS_GRU || own[id] == recurrence_grad;
}

/* The layout of a result, by that of the first: of another shape it is a statistic, of channels or
 * of heads. False if it has none. */
static bool make_result(CornuSplit *s, int result)
{
    const CornuShape shape = s->out[result].shape, first = s->out[0].shape;
    CornuLayout     *layout = &s->made[result];
    *layout = s->made[0];
    if (cornu_shape_equal(shape, first)) return true;
    *layout = (CornuLayout){ .cut = { 0 } };
    if (own[s->call->id] == channels) {
        layout->cut[shape.rank - 1] = s->made[0].cut[first.rank - 1];
        layout->blocks[shape.rank - 1] = s->made[0].blocks[first.rank - 1];
    } else if (own[s->call->id] == heads) {
        layout->cut[0] = s->made[0].cut[0];
        layout->cut[shape.rank == 3 ? 1 : 2] = s->made[0].cut[2];
        layout->blocks[shape.rank == 3 ? 1 : 2] = s->made[0].blocks[2];
    } else if (goes_by_row(s->call->id)) {
        layout->cut[0] = s->made[0].cut[0];
    } else {
        return cornu__layout_axes(s->made[0]) == 0;
    }
    return true;
}

/* Grants the wish as far as operands have not decided otherwise: to ops element by element, and to
 * the gradients of weights, which are products, and of the tables of lookups. */
static void grant(CornuSplit *s, unsigned used)
{
    const CornuOpId id = s->call->id;
    const bool      decided = cornu__layout_axes(s->made[0]) || s->partial;
    if (decided || (cornu__layout_axes(s->wish) & (used | s->barred))) return;
    if (s->wish.blocks[0] && id == CORNU_OP_GATHER_GRAD) return;   /* it numbers them */
    if (cornu__split_goes_by_element(id) || id == CORNU_OP_MATMUL || id == CORNU_OP_GATHER_GRAD)
        s->made[0] = s->wish;
}

/* Who decides how an op is cut: its operands in order, the last one first, or what is wished of the
 * result. */
typedef enum { FIRST, LAST, WISH, WAYS } Way;

static void decide(CornuSplit *s, Way way)
{
    const int count = s->call->in_count;
    int       to[CORNU_MAX_RANK];
    unsigned  used = 0;
    bool      known = true;
    s->made[0] = (CornuLayout){ .cut = { 0 } };
    s->partial = 0;
    for (int i = 0; i < count && known; i++) {
        const int operand = way == LAST ? count - 1 - i : i;
        known = axes_of(s, operand, to);
        if (known && way != WISH) choose(s, operand, to, &used);
    }
    if (known) grant(s, used);
    for (int i = 0; i < s->out_count; i++) known = known && make_result(s, i);
    if (!known) s->partial = 0;
    for (int i = 0; i < s->out_count && !known; i++) s->made[i] = (CornuLayout){ .cut = { 0 } };
    for (int i = 0; i < count; i++) {
        if (known) axes_of(s, i, to);
        if (known) ask(s, i, to);
        else s->want[i] = (CornuLayout){ .cut = { 0 } };
    }
}

/* Whether an operand's cut is lost, so that it is gathered. */
static bool is_gathered(CornuLayout have, CornuLayout want)
{
    for (int i = 0; i < CORNU_MAX_RANK; i++)
        if (have.cut[i] && !cornu__layout_alike(have, want, i)) return true;
    return false;
}

/* Bytes that shards exchange: operands that are gathered, the sum of a partial result, which costs
 * as much twice, and a result that its readers want cut otherwise. */
static double exchanged(const CornuSplit *s)
{
    const double out = (double)cornu_type_bytes(s->out[0]);
    double       bytes = s->partial ? 2.0 * out : 0.0;
    for (int i = 0; i < s->call->in_count; i++)
        if (is_gathered(s->have[i], s->want[i]))
            bytes += (double)cornu_type_bytes(s->call->in[i]);
    if (!s->partial && cornu__layout_axes(s->wish) && is_gathered(s->made[0], s->wish))
        bytes += out;
    return bytes;
}

/* Takes the other way if less is exchanged. */
static void prefer(CornuSplit *s, Way way)
{
    const unsigned wished = cornu__layout_axes(s->wish);
    if (way == WISH && (!wished || wished & s->barred)) return;
    CornuLayout want[2];   /* of the factors */
    CornuSplit  other = *s;
    other.want = want;
    decide(&other, way);
    if (exchanged(&other) >= exchanged(s)) return;
    memcpy(s->want, want, sizeof want);
    other.want = s->want;
    *s = other;
}

void cornu__split(CornuSplit *s)
{
    decide(s, FIRST);
    for (Way way = LAST; way < WAYS && own[s->call->id] == matmul && exchanged(s) > 0.0; way++)
        prefer(s, way);
    s->largest = own[s->call->id] == largest ? s->partial : 0;
    if (s->largest) s->partial = 0;
    adapt(s);
}

bool cornu__split_expands(const CornuSplit *s)
{
    const CornuOpId id = s->call->id;
    bool            gathers = false;
    for (int i = 0; i < s->call->in_count; i++)
        gathers |= (cornu__layout_axes(s->have[i]) & ~cornu__layout_axes(s->want[i]) &
                    ~s->barred) != 0;
    return gathers && (id == CORNU_OP_SOFTMAX || id == CORNU_OP_LOG_SOFTMAX ||
                       id == CORNU_OP_SPARSE_CROSS_ENTROPY || id == CORNU_OP_DROPOUT ||
                       id == CORNU_OP_BATCH_NORM || id == CORNU_OP_BATCH_NORM_GRAD);
}

bool cornu__split_joins_blocks(CornuSplit *s, CornuLayout made)
{
    int  to[CORNU_MAX_RANK];
    bool blocks = false;
    for (int i = 0; i < CORNU_MAX_RANK; i++) blocks |= made.blocks[i] != 0;
    if (!blocks || (s->call->id != CORNU_OP_PAD && s->call->id != CORNU_OP_CONCAT)) return false;
    s->made[0] = made;
    for (int i = 0; i < s->call->in_count; i++) {
        axes_of(s, i, to);
        ask(s, i, to);
    }
    return true;
}

bool cornu__split_for(CornuSplit *s, CornuLayout made)
{
    int to[CORNU_MAX_RANK];
    s->made[0] = made;
    s->partial = 0;
    if (s->call->id != CORNU_OP_IOTA && s->call->id != CORNU_OP_BROADCAST &&
        s->call->id != CORNU_OP_ONE_HOT)
        return false;
    for (int i = 0; i < CORNU_MAX_RANK && s->call->id != CORNU_OP_BROADCAST; i++)
        if (made.blocks[i]) return false;   /* they number places */
    for (int i = 0; i < s->call->in_count; i++) {
        axes_of(s, i, to);
        ask(s, i, to);
    }
    adapt(s);
    return true;
}
