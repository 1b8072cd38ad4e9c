/*
 * phases: a convolution with strides becomes one without.
 *
 * With a stride of s along an axis, and 3 s taps, row i s + u of x is row i + floor(u / s) of those
 * with the remainder u mod s, its phase. So with all phases side by side as channels
 *
 *     x (B, H, W, C) -> (B, H / s, W / s, s s C)     filter (3 s, 3 s, C, F) -> (3, 3, s s C, F)
 *
 * it is a convolution of 3 x 3 taps, which f32 computes with fewer products (conv2d_winograd.c),
 * and few channels become enough to fill registers. Its gradients likewise. Where the former would
 * not be computed so, nothing changes.
 *
 * Gain, Zen 3, AVX2: mnist_cnn_bn at 1024, whose second convolution has 6 x 6 taps, strides of 2
 *     and 12 channels, 168 ms a step, then 153.
 */
#include "../../ops/build.h"
#include "../../ops/rewrite.h"
#include "../../ops/window.h"
#include "../../program_internal.h"
#include "../kernels/kernels.h"
#include "passes.h"

enum { TAPS = 3 };

/* A convolution, whichever of x, filter and y the op makes; strides along the height and width. */
typedef struct {
    CornuType x, filter, y;
    int64_t   strides[2], low[2], high[2];   /* padding after the change */
} Convolution;

static CornuOpCall call_of(const CornuProgram *program, const CornuProgramOp *op, CornuType in[2])
{
    for (int i = 0; i < 2; i++)
        in[i] = cornu_program_type(program, cornu_program_operands(program, op)[i]);
    return (CornuOpCall){ op->id, &op->attributes, 2, in };
}

static bool is_convolution(CornuOpId id)
{
    return id == CORNU_OP_CONV2D || id == CORNU_OP_CONV2D_GRAD_INPUT ||
           id == CORNU_OP_CONV2D_GRAD_FILTER;
}

/* False unless phases along both axes are whole, and all of it is f32. */
static bool find_convolution(const CornuProgram *program, const CornuProgramOp *op,
                             Convolution *c)
{
    CornuType       in[2];
    const CornuType out = cornu_program_type(program, op->out_first);
    CornuSweep      sweep[2];
    if (!is_convolution(op->id)) return false;
    const CornuOpCall call = call_of(program, op, in);
    *c = (Convolution){ .x = in[0], .filter = in[1], .y = out };
    if (op->id == CORNU_OP_CONV2D_GRAD_INPUT) c->x = out, c->y = in[0];
    if (op->id == CORNU_OP_CONV2D_GRAD_FILTER) c->filter = out, c->y = in[1];
    if (in[0].dtype != CORNU_F32 || in[1].dtype != CORNU_F32 || out.dtype != CORNU_F32 ||
        !cornu__sweeps(&call, sweep))
        return false;
    for (int a = 0; a < 2; a++) {
        const int64_t s = sweep[a].stride;
        if (sweep[a].size != TAPS * s || sweep[a].dilation != 1 || sweep[a].in % s ||
            sweep[a].low % s)
            return false;
        c->strides[a] = s;
        c->low[a] = sweep[a].low / s;
        c->high[a] = sweep[a].out + TAPS - 1 - sweep[a].in / s - c->low[a];
    }
    return c->strides[0] * c->strides[1] > 1;
}

static int64_t phases(const Convolution *c) { return c->strides[0] * c->strides[1]; }

/* Whether the convolution without strides is computed with fewer products. */
static bool pays(const CornuHost *host, const Convolution *c)
{
    const int64_t    *x = c->x.shape.extent, *filter = c->filter.shape.extent;
    const CornuMachine machine = cornu__machine(host);
    const CornuType    in[2] = {
        cornu_type(CORNU_F32, x[0], x[1] / c->strides[0], x[2] / c->strides[1], x[3] * phases(c)),
        cornu_type(CORNU_F32, TAPS, TAPS, x[3] * phases(c), filter[3]),
    };
    CornuAttributes attributes = { .conv2d = { .dtype = CORNU_F32 } };
    for (int a = 0; a < 2; a++) {
        attributes.conv2d.low[a] = c->low[a];
        attributes.conv2d.high[a] = c->high[a];
    }
    return cornu__host_conv2d_winograd.accepts(
        &(CornuOpCall){ CORNU_OP_CONV2D, &attributes, 2, in }, &c->y, &machine);
}

/* ---- Changing places ---- */

/* Exchanges two neighbours among the axes of x as `apart`, then takes the result as `shape`. */
static CornuValue exchange(CornuBuilder *b, CornuValue x, CornuShape apart, int axis,
                           CornuShape shape)
{
    CornuAttributes order = { .permutation = { .axes = { 0, 1, 2, 3, 4 } } };
    order.permutation.axes[axis] = axis + 1;
    order.permutation.axes[axis + 1] = axis;
    x = cornu__build_reshape(b, x, apart);
    x = cornu__build(b, CORNU_OP_TRANSPOSE, &order, &x, 1);
    return cornu__build_reshape(b, x, shape);
}

/* x with its phases as channels, and the way back. */
static CornuValue split_x(CornuBuilder *b, const Convolution *c, CornuValue x)
{
    const int64_t *e = c->x.shape.extent, s = c->strides[0], t = c->strides[1];
    return exchange(b, x, cornu_shape(e[0], e[1] / s, s, e[2] / t, t * e[3]), 2,
                    cornu_shape(e[0], e[1] / s, e[2] / t, s * t * e[3]));
}

static CornuValue join_x(CornuBuilder *b, const Convolution *c, CornuValue x)
{
    const int64_t *e = c->x.shape.extent, s = c->strides[0], t = c->strides[1];
    return exchange(b, x, cornu_shape(e[0], e[1] / s, e[2] / t, s, t * e[3]), 2, c->x.shape);
}

/* The same of the filter, whose taps a s + p, b t + q have the phases p, q. */
static CornuValue split_filter(CornuBuilder *b, const Convolution *c, CornuValue filter)
{
    const int64_t *e = c->filter.shape.extent, s = c->strides[0], t = c->strides[1];
    return exchange(b, filter, cornu_shape(TAPS, s, TAPS, t * e[2] * e[3]), 1,
                    cornu_shape(TAPS, TAPS, s * t * e[2], e[3]));
}

static CornuValue join_filter(CornuBuilder *b, const Convolution *c, CornuValue filter)
{
    const int64_t *e = c->filter.shape.extent, s = c->strides[0], t = c->strides[1];
    return exchange(b, filter, cornu_shape(TAPS, TAPS, s, t * e[2] * e[3]), 1, c->filter.shape);
}

/* ---- The pass ---- */

static CornuStatus change(CornuRewrite *rewrite, const CornuProgramOp *op, const Convolution *c)
{
    CornuBuilder    b = { rewrite->to, CORNU_OK };
    CornuAttributes attributes = { 0 };
    const int64_t  *x = c->x.shape.extent;
    CornuValue     *out = &rewrite->map[op->out_first];
    const CornuValue *from = cornu__rewrite_operands(rewrite, op);
    CornuValue        in[2] = { from[0], from[1] };
    if (op->id == CORNU_OP_CONV2D) attributes.conv2d.dtype = CORNU_F32;
    else attributes.conv2d_grad.dtype = CORNU_F32;
    for (int a = 0; a < 2; a++) {
        if (op->id == CORNU_OP_CONV2D) {
            attributes.conv2d.low[a] = c->low[a];
            attributes.conv2d.high[a] = c->high[a];
        } else {
            attributes.conv2d_grad.low[a] = c->low[a];
            attributes.conv2d_grad.high[a] = c->high[a];
            attributes.conv2d_grad.extents[a] =
                op->id == CORNU_OP_CONV2D_GRAD_INPUT ? x[1 + a] / c->strides[a] : TAPS;
        }
    }
    if (op->id != CORNU_OP_CONV2D_GRAD_INPUT) in[0] = split_x(&b, c, in[0]);
    if (op->id != CORNU_OP_CONV2D_GRAD_FILTER) in[1] = split_filter(&b, c, in[1]);
    *out = cornu__build(&b, op->id, &attributes, in, 2);
    if (op->id == CORNU_OP_CONV2D_GRAD_INPUT) *out = join_x(&b, c, *out);
    if (op->id == CORNU_OP_CONV2D_GRAD_FILTER) *out = join_filter(&b, c, *out);
    return b.status;
}

CornuProgram *cornu__phases(const CornuHost *host, const CornuProgram *program)
{
    if (!cornu__pass_runs(CORNU_PASS_PHASES)) return cornu__rewrite_copy(program, false);
    CornuRewrite rewrite;
    CornuStatus  status = cornu__rewrite_begin(&rewrite, program, false);
    for (int i = 0; i < program->op_count && status == CORNU_OK; i++) {
        const CornuProgramOp *op = &program->ops[i];
        Convolution           c;
        status = cornu__program_follow(rewrite.to, op);
        if (status == CORNU_OK)
            status = find_convolution(program, op, &c) && pays(host, &c)
                   ? change(&rewrite, op, &c) : cornu__rewrite_keep(&rewrite, op);
    }
    return cornu__rewrite_end(&rewrite, status);
}
