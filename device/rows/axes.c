/* The axes along which ops read, by kind. Of what only training needs nothing is said. */
#include "axes.h"

static CornuShape shape_in(const CornuAxesCall *c) { return c->call->in[c->operand].shape; }

static int last(const CornuAxesCall *c) { return shape_in(c).rank - 1; }

/* All axes as they are. */
static int elementwise(const CornuAxesCall *c, int to[CORNU_MAX_RANK])
{
    for (int i = 0; i <= last(c); i++) to[i] = i;
    return 0;
}

/* All axes but one, which is read as a whole and makes that axis of the result. */
static int along(const CornuAxesCall *c, int axis, int to[CORNU_MAX_RANK])
{
    elementwise(c, to);
    to[axis] = CORNU_AXIS_MAKES(axis);
    return 0;
}

static int read_all(const CornuAxesCall *c, int to[CORNU_MAX_RANK])
{
    for (int i = 0; i <= last(c); i++) to[i] = CORNU_AXIS_READ;
    return 0;
}

/* Bits `from` to `to` - 1. */
static int bits(int from, int to) { return (int)((1u << to) - (1u << from)); }

static int all(const CornuAxesCall *c, int to[CORNU_MAX_RANK])
{
    (void)c, (void)to;
    return -1;
}

/* The same value everywhere. */
static int nothing(const CornuAxesCall *c, int to[CORNU_MAX_RANK])
{
    (void)c, (void)to;
    return 0;
}

static int iota(const CornuAxesCall *c, int to[CORNU_MAX_RANK])
{
    (void)to;
    return 1 << c->call->attributes->iota.axis;
}

/* ---- Shapes ---- */

static int broadcast(const CornuAxesCall *c, int to[CORNU_MAX_RANK])
{
    const int more = c->out->shape.rank - shape_in(c).rank;
    for (int i = 0; i <= last(c); i++) to[i] = i + more;
    return 0;
}

static int transpose(const CornuAxesCall *c, int to[CORNU_MAX_RANK])
{
    for (int i = 0; i <= last(c); i++) to[c->call->attributes->permutation.axes[i]] = i;
    return 0;
}

static int slice(const CornuAxesCall *c, int to[CORNU_MAX_RANK])
{
    elementwise(c, to);
    for (int i = 0; i <= last(c); i++)
        if (c->out->shape.extent[i] != shape_in(c).extent[i]) to[i] = CORNU_AXIS_MAKES(i);
    return 0;
}

static int pad(const CornuAxesCall *c, int to[CORNU_MAX_RANK])
{
    const CornuAttributes_PAD *pad = &c->call->attributes->pad;
    elementwise(c, to);
    for (int i = 0; i <= last(c); i++)
        if (pad->low[i] || pad->high[i]) to[i] = CORNU_AXIS_MAKES(i);
    return 0;
}

static int along_axis(const CornuAxesCall *c, int to[CORNU_MAX_RANK])
{
    return along(c, (int)c->call->attributes->axis.axis, to);
}

/* ---- Reductions ---- */

static void drop(const CornuAxesCall *c, int64_t axes, bool keep, int to[CORNU_MAX_RANK])
{
    int next = 0;
    for (int i = 0; i <= last(c); i++) {
        const bool read = axes >> i & 1;
        to[i] = read ? CORNU_AXIS_READ : next;
        next += keep || !read;
    }
}

static int reduce(const CornuAxesCall *c, int to[CORNU_MAX_RANK])
{
    const CornuAttributes_REDUCE *reduce = &c->call->attributes->reduce;
    drop(c, reduce->axes, reduce->keep, to);
    return 0;
}

static int argmax(const CornuAxesCall *c, int to[CORNU_MAX_RANK])
{
    drop(c, INT64_C(1) << c->call->attributes->axis.axis, false, to);
    return 0;
}

static int along_last(const CornuAxesCall *c, int to[CORNU_MAX_RANK])
{
    return along(c, last(c), to);
}

static int labels(const CornuAxesCall *c, int to[CORNU_MAX_RANK])
{
    elementwise(c, to);
    if (c->operand == 0) to[last(c)] = CORNU_AXIS_READ;
    return 0;
}

static int one_hot(const CornuAxesCall *c, int to[CORNU_MAX_RANK])
{
    elementwise(c, to);
    return 1 << (last(c) + 1);
}

/* ---- Products ---- */

static int matmul(const CornuAxesCall *c, int to[CORNU_MAX_RANK])
{
    const CornuAttributes_MATMUL *matmul = &c->call->attributes->matmul;
    const int  rank = c->out->shape.rank;
    const bool turned = c->operand == 0 ? matmul->transpose_a : matmul->transpose_b;
    /* The axis that stays is the last but one of a, the last of b, unless it is transposed. */
    const bool stays_last = (c->operand == 1) != turned;
    elementwise(c, to);
    to[last(c)] = stays_last ? rank - 2 + c->operand : CORNU_AXIS_READ;
    to[last(c) - 1] = stays_last ? CORNU_AXIS_READ : rank - 2 + c->operand;
    return 0;
}

/* A row of the matrix makes a place along the axis. */
static int resample(const CornuAxesCall *c, int to[CORNU_MAX_RANK])
{
    const int axis = (int)c->call->attributes->axis.axis;
    if (c->operand == 0) return along(c, axis, to);
    to[0] = axis;
    to[1] = CORNU_AXIS_READ;
    return 0;
}

/* Of images (B, H, W, C) batch and channels are left alone by windows of pools. */
static int pool(const CornuAxesCall *c, int to[CORNU_MAX_RANK])
{
    elementwise(c, to);
    to[1] = CORNU_AXIS_MAKES(1);
    to[2] = CORNU_AXIS_MAKES(2);
    return 0;
}

static int conv2d(const CornuAxesCall *c, int to[CORNU_MAX_RANK])
{
    read_all(c, to);
    if (c->operand == 1) {
        /* A filter of several groups reads the channels of its own. */
        to[3] = c->call->id == CORNU_OP_CONV2D ? 3 : CORNU_AXIS_MAKES(3);
        return 0;
    }
    to[0] = 0;
    to[1] = CORNU_AXIS_MAKES(1);
    to[2] = CORNU_AXIS_MAKES(2);
    return 0;
}

static int images(const CornuAxesCall *c, int to[CORNU_MAX_RANK])
{
    read_all(c, to);
    if (c->operand == 0) to[0] = 0;
    return bits(1, 4);
}

/* ---- Lookups ---- */

static int gather(const CornuAxesCall *c, int to[CORNU_MAX_RANK])
{
    elementwise(c, to);
    if (c->operand == 1) return 0;
    to[0] = CORNU_AXIS_READ;
    to[1] = c->out->shape.rank - 1;
    return 0;
}

/* ---- Recurrences and attention: all but the batch is mixed ---- */

static int batch(const CornuAxesCall *c, int to[CORNU_MAX_RANK])
{
    read_all(c, to);
    to[0] = 0;
    return bits(1, c->out->shape.rank);
}

/* z and states; the kernel, operand 1, and of gru the bias are read by all. */
static int lstm(const CornuAxesCall *c, int to[CORNU_MAX_RANK])
{
    return c->operand == 1 ? read_all(c, to) : batch(c, to);
}

static int gru(const CornuAxesCall *c, int to[CORNU_MAX_RANK])
{
    return c->operand == 1 || c->operand == 3 ? read_all(c, to) : batch(c, to);
}

CornuAxesRule *const cornu__axes_rules[CORNU_READS_COUNT] = {
#define X(ID, rule) [CORNU_READS_##ID] = rule,
    CORNU_READS_MAP(X)
#undef X
};
