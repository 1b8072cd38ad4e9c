/*
 * The recurrence of a gated recurrent unit whose reset gate comes after the product; the products
 * with its input are left to matmul.
 *
 *     s_t = h_{t-1} U + b                       gates z, r, h side by side, in Keras' order
 *     z, r = gate(x + s), see recurrence.h      g = tanh(x_h + r s_h)
 *     h_t = z h_{t-1} + (1 - z) g
 *
 * A step whose mask is false leaves h as it is. With `reverse` the last step comes first.
 * Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder", arXiv 1406.1078, version
 * 1; keras/src/layers/rnn/gru.py.
 */
#include <math.h>

#include "recurrence.h"

/* ---- gru: x (B, T, 3U), kernel U (U, 3U), h0 (B, U), bias (3U), mask (B, T) or none, give
 * h (B, T, U) and for the gradient z, r, g and s_h (B, T, 4U) ---- */

enum { X, KERNEL, H0, BIAS, MASK };                 /* operands of gru */
enum { GATES, H, G_H0, G_KERNEL, D_H, G_MASK };      /* of gru_grad     */

static CornuStatus gru_type(const CornuOpCall *call, CornuType *out)
{
    static const char names[] = "x kernel h0 bias mask";
    CornuExtents      e;
    CORNU__TRY(cornu__expect_count(call, MASK, names));
    CORNU__TRY(cornu__expect_steps(call, X, 3, names, &e));
    const CornuDtype dtype = call->in[X].dtype;
    CORNU__TRY(cornu__expect_type(call, KERNEL, cornu_type(dtype, e.units, 3 * e.units), names));
    CORNU__TRY(cornu__expect_type(call, H0, cornu_type(dtype, e.batch, e.units), names));
    CORNU__TRY(cornu__expect_type(call, BIAS, cornu_type(dtype, 3 * e.units), names));
    CORNU__TRY(cornu__expect_mask(call, MASK, e, names));
    out[0] = cornu_type(dtype, e.batch, e.steps, e.units);
    out[1] = cornu_type(dtype, e.batch, e.steps, 4 * e.units);
    return CORNU_OK;
}

/* The product, and about thirty operations per unit for activations and update. */
static int64_t flops(CornuType h)
{
    const int64_t *shape = h.shape.extent, units = shape[2];
    return cornu__flops(4, (const int64_t[]){ shape[0], shape[1], units, 6 * units + 30 });
}

static int64_t gru_flops(const CornuOpCall *call)
{
    CornuType h = call->in[X];
    h.shape.extent[2] /= 3;
    return flops(h);
}

/* One row of one step; h is the state before it. */
static void gru_row(const CornuReferenceCall *call, CornuExtents e, int64_t row, const double *h)
{
    const int64_t units = e.units;
    const double *x = call->in[X] + row * 3 * units, *kernel = call->in[KERNEL];
    double       *z = call->out[1] + row * 4 * units, *r = z + units, *g = r + units;
    double       *inner = g + units, *new_h = call->out[0] + row * units;
    const bool    kept = call->op.in_count > MASK && call->in[MASK][row] == 0.0;
    for (int64_t u = 0; u < units; u++) {
        double s[3];
        for (int64_t k = 0; k < 3; k++) {
            s[k] = call->in[BIAS][k * units + u];
            for (int64_t v = 0; v < units; v++)
                s[k] += h[v] * kernel[v * 3 * units + k * units + u];
        }
        z[u] = cornu__gate(&call->op, x[u] + s[0]);
        r[u] = cornu__gate(&call->op, x[units + u] + s[1]);
        inner[u] = s[2];
        g[u] = tanh(x[2 * units + u] + r[u] * inner[u]);
        new_h[u] = kept ? h[u] : z[u] * h[u] + (1.0 - z[u]) * g[u];
    }
}

static CornuStatus gru_reference(const CornuReferenceCall *call)
{
    const int64_t     *shape = call->out_type[0].shape.extent;
    const CornuExtents e = { shape[0], shape[1], shape[2] };
    const bool         reverse = call->op.attributes->recurrence.reverse;
    for (int64_t b = 0; b < e.batch; b++) {
        const double *h = call->in[H0] + b * e.units;
        for (int64_t step = 0; step < e.steps; step++) {
            const int64_t t = reverse ? e.steps - 1 - step : step;
            gru_row(call, e, b * e.steps + t, h);
            h = call->out[0] + (b * e.steps + t) * e.units;
        }
    }
    return CORNU_OK;
}

/* The carry h; slices x and the mask; constants U and the bias. Stacked: h, gates. */
static CornuStatus gru_decompose(CornuProgram *program, const CornuOpCall *call,
                                 const CornuValue *in, CornuValue *out)
{
    const bool       masked = call->in_count > MASK;
    const int64_t    units = call->in[H0].shape.extent[1];
    const CornuDtype dtype = call->in[X].dtype, sums = cornu__sums_dtype(dtype);
    CornuBuilder     body, *b = &body;
    CORNU__TRY(cornu__body_open(b, program));
    CornuValue h = cornu__body_input(b, call->in[H0]);
    CornuValue x = cornu__body_input(b, cornu__step_type(call->in[X])), mask = CORNU_NO_VALUE;
    if (masked) mask = cornu__body_input(b, cornu__step_type(call->in[MASK]));
    CornuValue kernel = cornu__body_input(b, call->in[KERNEL]);
    CornuValue bias = cornu__body_input(b, call->in[BIAS]), gate[4];
    CornuValue s = cornu__build_product(b, h, kernel, false, sums);
    s = plus(b, s, cornu__build_like(b, cornu__build_convert(b, bias, sums), s));
    CornuValue wide_x = cornu__build_convert(b, x, sums), wide_h = cornu__build_convert(b, h, sums);
    for (int k = 0; k < 2; k++)
        gate[k] = cornu__build_gate(b, call,
                                    plus(b, cornu__build_columns(b, wide_x, k * units, units),
                                         cornu__build_columns(b, s, k * units, units)));
    gate[3] = cornu__build_columns(b, s, 2 * units, units);
    gate[2] = cornu__build1(b, CORNU_OP_TANH,
                            plus(b, cornu__build_columns(b, wide_x, 2 * units, units),
                                 times(b, gate[1], gate[3])));
    CornuValue change = cornu__build2(b, CORNU_OP_SUBTRACT, wide_h, gate[2]);
    CornuValue next = cornu__build_convert(b, plus(b, gate[2], times(b, gate[0], change)), dtype);
    next = cornu__build_where(b, mask, next, h);
    cornu__body_output(b, next);
    cornu__body_output(b, next);
    cornu__body_output(b, cornu__build_convert(b, cornu__build_beside(b, gate, 4), dtype));

    CornuAttributes scan = { .scan = { .carries = 1, .slices = masked ? 2 : 1, .axis = 1,
                                       .steps = call->in[X].shape.extent[1],
                                       .reverse = call->attributes->recurrence.reverse } };
    CornuValue operands[5] = { in[H0], in[X] }, made[3];
    int        count = 2;
    if (masked) operands[count++] = in[MASK];
    operands[count++] = in[KERNEL];
    operands[count++] = in[BIAS];
    CORNU__TRY(cornu__body_record(program, b, scan, operands, count, made));
    out[0] = made[1];
    out[1] = made[2];
    return CORNU_OK;
}

const CornuOpRules cornu__gru_rules = { gru_type, gru_flops, gru_decompose, gru_reference };

/*
 * ---- gru_grad: gates (B, T, 4U) and h (B, T, U), the results of gru, h0 (B, U), kernel (U, 3U),
 * d_h (B, T, U) of each h, mask (B, T) or none, give d_x (B, T, 3U), d_h0 (B, U) and d_s
 * (B, T, 3U) ----
 *
 * Backwards, with d the sum of d_h and the gradient from step t + 1:
 *     d_x = d (h_{t-1} - g) z', d_g s_h r', d_g      with d_g = d (1 - z) (1 - g^2)
 *     d_s = the same, but the last d_g r
 *     d_{t-1} = d z + d_s U^T
 */
static CornuStatus gru_grad_type(const CornuOpCall *call, CornuType *out)
{
    static const char names[] = "gates h h0 kernel d_h mask";
    CornuExtents      e;
    CORNU__TRY(cornu__expect_count(call, G_MASK, names));
    CORNU__TRY(cornu__expect_steps(call, GATES, 4, names, &e));
    const CornuDtype dtype = call->in[GATES].dtype;
    const CornuType  h = cornu_type(dtype, e.batch, e.steps, e.units);
    CORNU__TRY(cornu__expect_type(call, H, h, names));
    CORNU__TRY(cornu__expect_type(call, G_H0, cornu_type(dtype, e.batch, e.units), names));
    CORNU__TRY(cornu__expect_type(call, G_KERNEL, cornu_type(dtype, e.units, 3 * e.units), names));
    CORNU__TRY(cornu__expect_type(call, D_H, h, names));
    CORNU__TRY(cornu__expect_mask(call, G_MASK, e, names));
    out[0] = out[2] = cornu_type(dtype, e.batch, e.steps, 3 * e.units);
    out[1] = call->in[G_H0];
    return CORNU_OK;
}

static int64_t gru_grad_flops(const CornuOpCall *call) { return flops(call->in[H]); }

/* One row of one step; d is the gradient from step t + 1 and becomes that for step t - 1. */
static void gru_grad_row(const CornuReferenceCall *call, int64_t units, int64_t row,
                         const double *before, double *d)
{
    const double *z = call->in[GATES] + row * 4 * units, *r = z + units, *g = r + units;
    const double *inner = g + units, *kernel = call->in[G_KERNEL];
    double       *d_x = call->out[0] + row * 3 * units, *d_s = call->out[2] + row * 3 * units;
    const bool    kept = call->op.in_count > G_MASK && call->in[G_MASK][row] == 0.0;
    for (int64_t u = 0; u < units; u++) {
        d[u] += call->in[D_H][row * units + u];
        const double d_g = kept ? 0.0 : d[u] * (1.0 - z[u]) * (1.0 - g[u] * g[u]);
        const double d_r = d_g * inner[u] * cornu__gate_slope(&call->op, r[u]);
        const double d_z = d[u] * (before[u] - g[u]) * cornu__gate_slope(&call->op, z[u]);
        d_x[u] = d_s[u] = kept ? 0.0 : d_z;
        d_x[units + u] = d_s[units + u] = d_r;
        d_x[2 * units + u] = d_g;
        d_s[2 * units + u] = d_g * r[u];
        if (!kept) d[u] *= z[u];
    }
    for (int64_t u = 0; u < units; u++)
        for (int64_t n = 0; n < 3 * units; n++) d[u] += d_s[n] * kernel[u * 3 * units + n];
}

static CornuStatus gru_grad_reference(const CornuReferenceCall *call)
{
    const int64_t *shape = call->op.in[H].shape.extent, steps = shape[1], units = shape[2];
    const bool     reverse = call->op.attributes->recurrence.reverse;
    for (int64_t b = 0; b < shape[0]; b++) {
        double *d = call->out[1] + b * units;
        for (int64_t u = 0; u < units; u++) d[u] = 0.0;
        for (int64_t step = steps - 1; step >= 0; step--) {
            const int64_t t = reverse ? steps - 1 - step : step, earlier = reverse ? t + 1 : t - 1;
            const double *before = step == 0 ? call->in[G_H0] + b * units
                                             : call->in[H] + (b * steps + earlier) * units;
            gru_grad_row(call, units, b * steps + t, before, d);
        }
    }
    return CORNU_OK;
}

/* The carry d in f32; slices gates, h before the step, d_h and the mask; the constant U.
 * Stacked: d_x, d_s. */
static CornuStatus gru_grad_decompose(CornuProgram *program, const CornuOpCall *call,
                                      const CornuValue *in, CornuValue *out)
{
    const bool       masked = call->in_count > G_MASK;
    const CornuType  type = call->in[G_H0];
    const CornuDtype dtype = type.dtype, sums = cornu__sums_dtype(dtype);
    const int64_t    units = type.shape.extent[1];
    CornuBuilder     outer = { program, CORNU_OK }, body, *b = &body;
    CornuValue       before = cornu__build_before(&outer, in[G_H0], in[H],
                                                  call->attributes->recurrence.reverse);
    CornuAttributes  zero = { .constant = { sums, 0.0 } };
    CornuValue       zeros = cornu__build_broadcast(
        &outer, cornu__build(&outer, CORNU_OP_CONSTANT, &zero, NULL, 0), type.shape);
    CORNU__TRY(outer.status);

    CORNU__TRY(cornu__body_open(b, program));
    CornuValue later = cornu__body_input(b, cornu_type_from(sums, type.shape));
    CornuValue all = cornu__body_input(b, cornu__step_type(call->in[GATES]));
    CornuValue h = cornu__body_input(b, type), outside = cornu__body_input(b, type);
    CornuValue mask = CORNU_NO_VALUE, gate[4], d_x[3], d_s[3];
    if (masked) mask = cornu__body_input(b, cornu__step_type(call->in[G_MASK]));
    CornuValue kernel = cornu__body_input(b, call->in[G_KERNEL]);
    for (int k = 0; k < 4; k++)
        gate[k] = cornu__build_convert(b, cornu__build_columns(b, all, k * units, units), sums);
    CornuValue d = plus(b, later, cornu__build_convert(b, outside, sums));
    CornuValue change = cornu__build2(b, CORNU_OP_SUBTRACT, cornu__build_convert(b, h, sums),
                                      gate[2]);
    CornuValue rest = cornu__build2(b, CORNU_OP_SUBTRACT, cornu__build_constant(b, 1.0, gate[0]),
                                    gate[0]);
    d_x[0] = d_s[0] = times(b, times(b, d, change), slope(b, call, gate[0]));
    d_x[2] = times(b, times(b, d, rest), one_less_square(b, gate[2]));
    d_x[1] = d_s[1] = times(b, times(b, d_x[2], gate[3]), slope(b, call, gate[1]));
    d_s[2] = times(b, d_x[2], gate[1]);
    CornuValue of_x = cornu__build_convert(b, cornu__build_beside(b, d_x, 3), dtype);
    CornuValue of_s = cornu__build_convert(b, cornu__build_beside(b, d_s, 3), dtype);
    CornuValue next = plus(b, times(b, d, gate[0]),
                           cornu__build_product(b, of_s, kernel, true, sums));
    cornu__body_output(b, cornu__build_where(b, mask, next, d));
    cornu__body_output(b, cornu__build_where(b, mask, of_x, cornu__build_constant(b, 0.0, of_x)));
    cornu__body_output(b, cornu__build_where(b, mask, of_s, cornu__build_constant(b, 0.0, of_s)));

    CornuAttributes scan = { .scan = { .carries = 1, .slices = masked ? 4 : 3, .axis = 1,
                                       .steps = call->in[GATES].shape.extent[1],
                                       .reverse = !call->attributes->recurrence.reverse } };
    CornuValue operands[6] = { zeros, in[GATES], before, in[D_H] }, made[3];
    int        count = 4;
    if (masked) operands[count++] = in[G_MASK];
    operands[count++] = in[G_KERNEL];
    CORNU__TRY(cornu__body_record(program, b, scan, operands, count, made));
    out[0] = made[1];
    out[1] = cornu__build_convert(&outer, made[0], dtype);
    out[2] = made[2];
    return outer.status;
}

const CornuOpRules cornu__gru_grad_rules = {
    gru_grad_type, gru_grad_flops, gru_grad_decompose, gru_grad_reference,
};
