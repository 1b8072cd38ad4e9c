/*
 * The recurrence of a long short-term memory; the products with its input are left to matmul.
 *
 *     a_t = z_t + h_{t-1} U                     gates i, f, c, o side by side, in Keras' order
 *     i, f, o = gate(a), g = tanh(a_c)          gate: recurrence.h
 *     c_t = f c_{t-1} + i g                     h_t = o tanh(c_t)
 *
 * A step whose mask is false leaves h and c as they are. With `reverse` the last step comes first.
 * Hochreiter and Schmidhuber, "Long Short-Term Memory", Neural Computation 9(8), 1997, with the
 * forget gate of Gers, Schmidhuber and Cummins, "Learning to Forget", 2000; keras/src/layers/rnn/
 * lstm.py.
 */
#include <math.h>

#include "recurrence.h"

/* The cell state has h's dtype, or f32 if that is narrower. */
static CornuStatus check_cell(const CornuOpCall *call, int i, CornuDtype narrow, CornuShape shape,
                              const char *names)
{
    const CornuDtype own = call->in[i].dtype == CORNU_F32 ? CORNU_F32 : narrow;
    return cornu__expect_type(call, i, cornu_type_from(own, shape), names);
}

/* ---- lstm: z (B, T, 4U), kernel U (U, 4U), h0 and c0 (B, U), mask (B, T) or none, give
 * h (B, T, U), the last c (B, U), and for the gradient each c (B, T, U) and gate (B, T, 4U) ---- */

enum { Z, KERNEL, H0, C0, MASK };                       /* operands of lstm */
enum { GATES, CELLS, G_C0, G_KERNEL, D_H, D_C, G_MASK }; /* of lstm_grad     */

static CornuStatus lstm_type(const CornuOpCall *call, CornuType *out)
{
    static const char names[] = "z kernel h0 c0 mask";
    CornuExtents      e;
    CORNU__TRY(cornu__expect_count(call, MASK, names));
    CORNU__TRY(cornu__expect_steps(call, Z, 4, names, &e));
    const CornuDtype dtype = call->in[Z].dtype;
    CORNU__TRY(cornu__expect_type(call, KERNEL, cornu_type(dtype, e.units, 4 * e.units), names));
    CORNU__TRY(cornu__expect_type(call, H0, cornu_type(dtype, e.batch, e.units), names));
    CORNU__TRY(check_cell(call, C0, dtype, cornu_shape(e.batch, e.units), names));
    CORNU__TRY(cornu__expect_mask(call, MASK, e, names));
    out[0] = cornu_type(dtype, e.batch, e.steps, e.units);
    out[1] = call->in[C0];
    out[2] = cornu_type(call->in[C0].dtype, e.batch, e.steps, e.units);
    out[3] = call->in[Z];
    return CORNU_OK;
}

/* The product; per unit four additions, five activations of five operations each, and four more. */
static int64_t flops(const CornuOpCall *call, int wide, int64_t rest)
{
    const int64_t *z = call->in[wide].shape.extent, units = z[2] / 4;
    return cornu__flops(4, (const int64_t[]){ z[0], z[1], units, 8 * units + rest });
}

static int64_t lstm_flops(const CornuOpCall *call) { return flops(call, Z, 33); }

/* Row b of step t; h and c are the states before it. */
static void lstm_row(const CornuReferenceCall *call, CornuExtents e, int64_t b, int64_t t,
                     const double *h, const double *c)
{
    const int64_t units = e.units, row = b * e.steps + t;
    const double *z = call->in[Z] + row * 4 * units, *kernel = call->in[KERNEL];
    double       *gates = call->out[3] + row * 4 * units;
    double       *new_h = call->out[0] + row * units, *new_c = call->out[2] + row * units;
    for (int64_t n = 0; n < 4 * units; n++) {
        double sum = z[n];
        for (int64_t k = 0; k < units; k++) sum += h[k] * kernel[k * 4 * units + n];
        gates[n] = n / units == 2 ? tanh(sum) : cornu__gate(&call->op, sum);
    }
    const bool kept = call->op.in_count > MASK && call->in[MASK][row] == 0.0;
    for (int64_t u = 0; u < units; u++) {
        new_c[u] = kept ? c[u] : gates[units + u] * c[u] + gates[u] * gates[2 * units + u];
        new_h[u] = kept ? h[u] : gates[3 * units + u] * tanh(new_c[u]);
    }
}

static CornuStatus lstm_reference(const CornuReferenceCall *call)
{
    const int64_t *shape = call->op.in[Z].shape.extent;
    const CornuExtents e = { shape[0], shape[1], shape[2] / 4 };
    const bool     reverse = call->op.attributes->recurrence.reverse;
    for (int64_t b = 0; b < e.batch; b++) {
        const double *h = call->in[H0] + b * e.units, *c = call->in[C0] + b * e.units;
        for (int64_t step = 0; step < e.steps; step++) {
            const int64_t t = reverse ? e.steps - 1 - step : step;
            lstm_row(call, e, b, t, h, c);
            h = call->out[0] + (b * e.steps + t) * e.units;
            c = call->out[2] + (b * e.steps + t) * e.units;
        }
        for (int64_t u = 0; u < e.units; u++) call->out[1][b * e.units + u] = c[u];
    }
    return CORNU_OK;
}

/* Carries h, c; slices z and the mask; the constant U. Stacked: h, c, gates. */
static CornuStatus lstm_decompose(CornuProgram *program, const CornuOpCall *call,
                                  const CornuValue *in, CornuValue *out)
{
    const bool       masked = call->in_count > MASK;
    const int64_t    units = call->in[H0].shape.extent[1];
    const CornuDtype dtype = call->in[Z].dtype, sums = cornu__sums_dtype(dtype);
    const CornuDtype of_c = call->in[C0].dtype;
    CornuBuilder     body, *b = &body;
    CORNU__TRY(cornu__body_open(b, program));
    CornuValue h = cornu__body_input(b, call->in[H0]), c = cornu__body_input(b, call->in[C0]);
    CornuValue z = cornu__body_input(b, cornu__step_type(call->in[Z]));
    CornuValue mask = CORNU_NO_VALUE;
    if (masked) mask = cornu__body_input(b, cornu__step_type(call->in[MASK]));
    CornuValue kernel = cornu__body_input(b, call->in[KERNEL]), gate[4];
    CornuValue a = plus(b, cornu__build_convert(b, z, sums),
                        cornu__build_product(b, h, kernel, false, sums));
    for (int k = 0; k < 4; k++)
        gate[k] = k == 2 ? cornu__build1(b, CORNU_OP_TANH,
                                         cornu__build_columns(b, a, k * units, units))
                         : cornu__build_gate(b, call,
                                             cornu__build_columns(b, a, k * units, units));
    CornuValue wide_c = plus(b, times(b, gate[1], cornu__build_convert(b, c, sums)),
                             times(b, gate[0], gate[2]));
    CornuValue wide_h = times(b, gate[3], cornu__build1(b, CORNU_OP_TANH, wide_c));
    CornuValue new_h = cornu__build_where(b, mask, cornu__build_convert(b, wide_h, dtype), h);
    CornuValue new_c = cornu__build_where(b, mask, cornu__build_convert(b, wide_c, of_c), c);
    cornu__body_output(b, new_h);
    cornu__body_output(b, new_c);
    cornu__body_output(b, new_h);
    cornu__body_output(b, new_c);
    cornu__body_output(b, cornu__build_convert(b, cornu__build_beside(b, gate, 4), dtype));

    CornuAttributes scan = { .scan = { .carries = 2, .slices = masked ? 2 : 1, .axis = 1,
                                       .steps = call->in[Z].shape.extent[1],
                                       .reverse = call->attributes->recurrence.reverse } };
    CornuValue operands[] = { in[H0], in[C0], in[Z], masked ? in[MASK] : in[KERNEL], in[KERNEL] };
    CornuValue made[5];
    CORNU__TRY(cornu__body_record(program, b, scan, operands, masked ? 5 : 4, made));
    out[0] = made[2];
    out[1] = made[1];
    out[2] = made[3];
    out[3] = made[4];
    return CORNU_OK;
}

const CornuOpRules cornu__lstm_rules = { lstm_type, lstm_flops, lstm_decompose, lstm_reference };

/*
 * ---- lstm_grad: gates (B, T, 4U) and cells (B, T, U), the results of lstm, c0 (B, U), kernel
 * (U, 4U), d_h (B, T, U) of each h, d_c (B, U) of the last c, mask (B, T) or none, give
 * d_z (B, T, 4U), d_h0 and d_c0 (B, U) ----
 *
 * Backwards, with d_h the sum of the operand and the gradient from step t + 1:
 *     d_c += d_h o (1 - tanh(c)^2)
 *     d_z = d_c g i', d_c c_{t-1} f', d_c i (1 - g^2), d_h tanh(c) o'   slopes of gates
 *     d_c_{t-1} = d_c f        d_h_{t-1} = d_z U^T
 */
static CornuStatus lstm_grad_type(const CornuOpCall *call, CornuType *out)
{
    static const char names[] = "gates cells c0 kernel d_h d_c mask";
    CornuExtents      e;
    CORNU__TRY(cornu__expect_count(call, G_MASK, names));
    CORNU__TRY(cornu__expect_steps(call, GATES, 4, names, &e));
    const CornuDtype dtype = call->in[GATES].dtype;
    CORNU__TRY(check_cell(call, CELLS, dtype, cornu_shape(e.batch, e.steps, e.units), names));
    const CornuType cell = cornu_type(call->in[CELLS].dtype, e.batch, e.units);
    CORNU__TRY(cornu__expect_type(call, G_C0, cell, names));
    CORNU__TRY(cornu__expect_type(call, G_KERNEL, cornu_type(dtype, e.units, 4 * e.units), names));
    CORNU__TRY(cornu__expect_type(call, D_H, cornu_type(dtype, e.batch, e.steps, e.units), names));
    CORNU__TRY(cornu__expect_type(call, D_C, cell, names));
    CORNU__TRY(cornu__expect_mask(call, G_MASK, e, names));
    out[0] = call->in[GATES];
    out[1] = cornu_type(dtype, e.batch, e.units);
    out[2] = cell;
    return CORNU_OK;
}

static int64_t lstm_grad_flops(const CornuOpCall *call) { return flops(call, GATES, 30); }

/* One row of one step. d_h and d_c are the gradients from step t + 1 and become those for step
 * t - 1. */
static void lstm_grad_row(const CornuReferenceCall *call, CornuExtents e, int64_t row,
                          const double *before, double *d_h, double *d_c)
{
    const int64_t units = e.units;
    const double *gates = call->in[GATES] + row * 4 * units, *cells = call->in[CELLS] + row * units;
    const double *kernel = call->in[G_KERNEL];
    double       *d_z = call->out[0] + row * 4 * units;
    const bool    kept = call->op.in_count > G_MASK && call->in[G_MASK][row] == 0.0;
    for (int64_t u = 0; u < units; u++) d_h[u] += call->in[D_H][row * units + u];
    for (int64_t n = 0; n < 4 * units; n++) d_z[n] = 0.0;
    if (kept) return;
    for (int64_t u = 0; u < units; u++) {
        const double i = gates[u], f = gates[units + u], g = gates[2 * units + u];
        const double o = gates[3 * units + u], t = tanh(cells[u]);
        const double d = d_c[u] + d_h[u] * o * (1.0 - t * t);
        d_z[u] = d * g * cornu__gate_slope(&call->op, i);
        d_z[units + u] = d * before[u] * cornu__gate_slope(&call->op, f);
        d_z[2 * units + u] = d * i * (1.0 - g * g);
        d_z[3 * units + u] = d_h[u] * t * cornu__gate_slope(&call->op, o);
        d_c[u] = d * f;
    }
    for (int64_t k = 0; k < units; k++) {
        d_h[k] = 0.0;
        for (int64_t n = 0; n < 4 * units; n++) d_h[k] += d_z[n] * kernel[k * 4 * units + n];
    }
}

static CornuStatus lstm_grad_reference(const CornuReferenceCall *call)
{
    const int64_t *shape = call->op.in[GATES].shape.extent;
    const CornuExtents e = { shape[0], shape[1], shape[2] / 4 };
    const bool     reverse = call->op.attributes->recurrence.reverse;
    for (int64_t b = 0; b < e.batch; b++) {
        double *d_h = call->out[1] + b * e.units, *d_c = call->out[2] + b * e.units;
        for (int64_t u = 0; u < e.units; u++) {
            d_h[u] = 0.0;
            d_c[u] = call->in[D_C][b * e.units + u];
        }
        for (int64_t step = e.steps - 1; step >= 0; step--) {
            const int64_t t = reverse ? e.steps - 1 - step : step;
            const int64_t earlier = reverse ? t + 1 : t - 1;
            const double *before = step == 0 ? call->in[G_C0] + b * e.units
                                             : call->in[CELLS] + (b * e.steps + earlier) * e.units;
            lstm_grad_row(call, e, b * e.steps + t, before, d_h, d_c);
        }
    }
    return CORNU_OK;
}

/* Carries d_h, d_c in f32; slices gates, c, c before the step, d_h and the mask; the constant U.
 * Stacked: d_z. */
static CornuStatus lstm_grad_decompose(CornuProgram *program, const CornuOpCall *call,
                                       const CornuValue *in, CornuValue *out)
{
    const bool       masked = call->in_count > G_MASK;
    const CornuType  cell = call->in[G_C0], type = cornu__step_type(call->in[D_H]);
    const CornuDtype dtype = type.dtype, sums = cornu__sums_dtype(dtype);
    const int64_t    units = type.shape.extent[1];
    CornuBuilder     outer = { program, CORNU_OK }, body, *b = &body;
    CornuValue       before = cornu__build_before(&outer, in[G_C0], in[CELLS],
                                                  call->attributes->recurrence.reverse);
    CornuAttributes zero = { .constant = { sums, 0.0 } };
    CornuValue      zeros = cornu__build_broadcast(
        &outer, cornu__build(&outer, CORNU_OP_CONSTANT, &zero, NULL, 0), type.shape);
    CornuValue d_c_last = cornu__build_convert(&outer, in[D_C], sums);
    CORNU__TRY(outer.status);

    CORNU__TRY(cornu__body_open(b, program));
    const CornuType carry = cornu_type_from(sums, type.shape);
    CornuValue      d_h_in = cornu__body_input(b, carry), d_c_in = cornu__body_input(b, carry);
    CornuValue      all = cornu__body_input(b, cornu__step_type(call->in[GATES]));
    CornuValue      c = cornu__body_input(b, cell), c_before = cornu__body_input(b, cell);
    CornuValue      from_outside = cornu__body_input(b, type), mask = CORNU_NO_VALUE, gate[4], d[4];
    if (masked) mask = cornu__body_input(b, cornu__step_type(call->in[G_MASK]));
    CornuValue kernel = cornu__body_input(b, call->in[G_KERNEL]);
    for (int k = 0; k < 4; k++)
        gate[k] = cornu__build_convert(b, cornu__build_columns(b, all, k * units, units), sums);
    CornuValue d_h = plus(b, d_h_in, cornu__build_convert(b, from_outside, sums));
    CornuValue t = cornu__build1(b, CORNU_OP_TANH, cornu__build_convert(b, c, sums));
    CornuValue d_c = plus(b, d_c_in, times(b, times(b, d_h, gate[3]), one_less_square(b, t)));
    d[0] = times(b, times(b, d_c, gate[2]), slope(b, call, gate[0]));
    d[1] = times(b, times(b, d_c, cornu__build_convert(b, c_before, sums)),
                 slope(b, call, gate[1]));
    d[2] = times(b, times(b, d_c, gate[0]), one_less_square(b, gate[2]));
    d[3] = times(b, times(b, d_h, t), slope(b, call, gate[3]));
    CornuValue d_z = cornu__build_convert(b, cornu__build_beside(b, d, 4), dtype);
    d_z = cornu__build_where(b, mask, d_z, cornu__build_constant(b, 0.0, d_z));
    CornuValue next = cornu__build_product(b, d_z, kernel, true, sums);
    cornu__body_output(b, cornu__build_where(b, mask, next, d_h));
    cornu__body_output(b, cornu__build_where(b, mask, times(b, d_c, gate[1]), d_c_in));
    cornu__body_output(b, d_z);

    CornuAttributes scan = { .scan = { .carries = 2, .slices = masked ? 5 : 4, .axis = 1,
                                       .steps = call->in[GATES].shape.extent[1],
                                       .reverse = !call->attributes->recurrence.reverse } };
    CornuValue operands[] = { zeros, d_c_last, in[GATES], in[CELLS], before, in[D_H],
                              masked ? in[G_MASK] : in[G_KERNEL], in[G_KERNEL] };
    CornuValue made[3];
    CORNU__TRY(cornu__body_record(program, b, scan, operands, masked ? 8 : 7, made));
    out[0] = made[2];
    out[1] = cornu__build_convert(&outer, made[0], dtype);
    out[2] = cornu__build_convert(&outer, made[1], cell.dtype);
    return outer.status;
}

const CornuOpRules cornu__lstm_grad_rules = {
    lstm_grad_type, lstm_grad_flops, lstm_grad_decompose, lstm_grad_reference,
};
