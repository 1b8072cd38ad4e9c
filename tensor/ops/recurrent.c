/* Recurrent ops: lstm and gru with the usual activations are recorded as ops, everything else as a
 * scan. */
#include "../tensor_internal.h"

static const CornuRecurrence usual;

/* Whether it is recorded as one op. */
static bool is_usual(const CornuRecurrence *r)
{
    return !r->recurrent_dropout && !r->activation && !r->recurrent_activation;
}

/* A cell whose step is the body of a scan. */
typedef struct {
    const CornuRecurrence *recurrence;
    int64_t units;
    bool    masked, dropped, biased;   /* which operands are given */
    bool    reset_after;
} Cell;

static CornuTensor *activate(const Cell *cell, CornuTensor *x)
{
    const CornuRecurrence *r = cell->recurrence;
    return r->activation ? r->activation(r->activation_context, x) : cornu_op_tanh(x);
}

static CornuTensor *activate_gate(const Cell *cell, CornuTensor *x)
{
    const CornuRecurrence *r = cell->recurrence;
    if (r->recurrent_activation) return r->recurrent_activation(r->recurrent_context, x);
    if (r->gate_slope == 0.0) return cornu_op_sigmoid(x);
    return cornu_op_clip(cornu_op_shift(cornu_op_scale(x, r->gate_slope), 0.5), 0.0, 1.0);
}

/* Gates first to first + count - 1 of x (…, G U): x itself where these are all, so that the product
 * with a kernel is one with a constant of the scan. */
static CornuTensor *gates(const Cell *cell, CornuTensor *x, int64_t first, int64_t count)
{
    if (!x) return NULL;
    CornuShape shape = cornu_tensor_shape(x);
    int64_t    starts[CORNU_MAX_RANK] = { 0 };
    if (first == 0 && shape.extent[shape.rank - 1] == count * cell->units) return x;
    starts[shape.rank - 1] = first * cell->units;
    shape.extent[shape.rank - 1] = count * cell->units;
    return cornu_op_slice(x, starts, shape.extent);
}

/* The product of h with `count` gates of the kernel from `first` on. With dropout each gate has its
 * own h. */
static CornuTensor *gates_product(const Cell *cell, CornuTensor *h, CornuTensor *kernel,
                                  CornuTensor *dropout, int64_t first, int64_t count)
{
    enum { MOST_GATES = 4 };
    CornuTensor *parts[MOST_GATES];
    if (!dropout) return cornu_op_matmul(h, gates(cell, kernel, first, count));
    for (int64_t i = 0; i < count; i++) {
        CornuTensor *dropped = cornu_op_multiply(h, gates(cell, dropout, first + i, 1));
        parts[i] = cornu_op_matmul(dropped, gates(cell, kernel, first + i, 1));
    }
    return cornu_op_concat(parts, (int)count, 1);
}

/* x where the mask (B) is true, else y. */
static CornuTensor *where(CornuTensor *mask, CornuTensor *x, CornuTensor *y)
{
    if (!mask) return x;
    return cornu_op_select(cornu_op_reshape(mask, cornu_shape(CORNU_NONE, 1)), x, y);
}

/* The operands of a step after its `carries`: z, the mask, the kernel, its bias, dropout. */
typedef struct { CornuTensor *z, *mask, *kernel, *bias, *dropout; } Operands;

static Operands operands_of(const Cell *cell, CornuTensor *const *in, int carries)
{
    Operands o = { .z = in[carries++] };
    if (cell->masked) o.mask = in[carries++];
    o.kernel = in[carries++];
    if (cell->biased) o.bias = in[carries++];
    if (cell->dropped) o.dropout = in[carries];
    return o;
}

/* Scans a cell over time; `carries` are h and, for lstm, c; out[carries] is the stacked h. */
static bool scan(Cell *cell, CornuScanStep *step, CornuTensor *const *carries, int carry_count,
                 const Operands *o, CornuTensor **out)
{
    CornuTensor *slices[2] = { o->z, o->mask }, *constants[3] = { o->kernel };
    int          constant_count = 1;
    if (!o->z || !carries[0]) {
        cornu__fail_null(CORNU_ERR_ARGUMENT, "recurrence: operand %d is NULL", o->z ? 2 : 0);
        return false;
    }
    const CornuShape h = cornu_tensor_shape(carries[0]);
    if (h.rank != 2) {
        CornuText text;
        cornu__fail_null(CORNU_ERR_SHAPE, "recurrence: h0 is %s, expected rank 2",
                         cornu_shape_print(&text, h));
        return false;
    }
    cell->units = h.extent[1];
    cell->masked = o->mask != NULL;
    if ((cell->biased = o->bias != NULL)) constants[constant_count++] = o->bias;
    if ((cell->dropped = o->dropout != NULL)) constants[constant_count++] = o->dropout;
    CornuScan over_time = {
        .carries = carries, .carry_count = carry_count, .slices = slices,
        .slice_count = cell->masked ? 2 : 1, .constants = constants,
        .constant_count = constant_count, .axis = 1, .stacked_count = 1,
        .reverse = cell->recurrence->reverse,
    };
    return cornu_op_scan(&over_time, step, cell, out);
}

/* ---- lstm ---- */

static void lstm_step(void *context, CornuTensor *const *in, CornuTensor **out)
{
    const Cell    *cell = context;
    const Operands o = operands_of(cell, in, 2);
    CornuTensor   *h = in[0], *c = in[1];
    CornuTensor   *a = cornu_op_add(o.z, gates_product(cell, h, o.kernel, o.dropout, 0, 4));
    CornuTensor   *i = activate_gate(cell, gates(cell, a, 0, 1));
    CornuTensor   *f = activate_gate(cell, gates(cell, a, 1, 1));
    CornuTensor   *g = activate(cell, gates(cell, a, 2, 1));
    CornuTensor   *output = activate_gate(cell, gates(cell, a, 3, 1));
    if (!output || !c) return;
    const CornuDtype of_c = cornu_tensor_type(c).dtype, of_h = cornu_tensor_type(h).dtype;
    CornuTensor *new_c = cornu_op_add(cornu_op_multiply(cornu_op_convert(f, of_c), c),
                                      cornu_op_convert(cornu_op_multiply(i, g), of_c));
    CornuTensor *new_h = cornu_op_multiply(output, cornu_op_convert(activate(cell, new_c), of_h));
    out[0] = out[2] = where(o.mask, new_h, h);
    out[1] = where(o.mask, new_c, c);
}

CornuTensor *cornu_op_lstm(CornuTensor *z, CornuTensor *kernel, CornuTensor *h0, CornuTensor *c0,
                           const CornuRecurrence *recurrence, CornuTensor **last_c)
{
    const CornuRecurrence *r = recurrence ? recurrence : &usual;
    CornuTensor           *out[CORNU_MAX_OUTPUTS] = { NULL }, *h = NULL, *c = NULL;
    if (!is_usual(r)) {
        Cell cell = { .recurrence = r };
        if (scan(&cell, lstm_step, (CornuTensor *[]){ h0, c0 }, 2,
                 &(Operands){ z, r->mask, kernel, NULL, r->recurrent_dropout }, out)) {
            h = out[2];
            c = out[1];
        }
    } else {
        CornuAttributes attributes = { .recurrence = { r->reverse, r->gate_slope } };
        CornuTensor    *in[5] = { z, kernel, h0, c0, r->mask };
        h = cornu__record(CORNU_OP_LSTM, &attributes, in, r->mask ? 5 : 4, out);
        c = out[1];
    }
    if (last_c) *last_c = c;
    return h;
}

/* The state before each step: `first` (B, U), then x (B, T, U) without the last step. */
static CornuTensor *before(CornuTensor *first, CornuTensor *x, const CornuRecorded *op)
{
    const bool     reverse = op->attributes->recurrence.reverse;
    CornuShape     shape = cornu_tensor_shape(x);
    const int64_t  starts[CORNU_MAX_RANK] = { 0, reverse };
    CornuTensor   *one = cornu_op_reshape(first, cornu_shape(shape.extent[0], 1, shape.extent[2]));
    shape.extent[1]--;
    if (shape.extent[1] == 0) return one;
    CornuTensor *others = cornu_op_slice(x, starts, shape.extent);
    return cornu_op_concat((CornuTensor *[]){ reverse ? others : one, reverse ? one : others }, 2,
                           1);
}

/* One op gives d_z, d_h0 and d_c0; d_kernel is one product over all steps, of the h before each
 * step with its d_z. The cells and gates kept for the gradient have none themselves. */
static void lstm_gradient(const CornuRecorded *op, CornuTensor *const *d_y, CornuTensor **d_x)
{
    enum { Z, KERNEL, H0, C0, MASK };
    CornuTensor *h = op->out[0], *made[CORNU_MAX_OUTPUTS];
    CornuTensor *d_h = d_y[0] ? d_y[0] : cornu_op_constant_like(h, 0.0);
    CornuTensor *d_c = d_y[1] ? d_y[1] : cornu_op_constant_like(op->out[1], 0.0);
    CornuTensor *in[7] = { op->out[3], op->out[2], op->in[C0], op->in[KERNEL], d_h, d_c };
    const bool   masked = op->in_count > MASK;
    if (masked) in[6] = op->in[MASK];
    CornuTensor *d_z = cornu__record(CORNU_OP_LSTM_GRAD, op->attributes, in, masked ? 7 : 6, made);
    if (!d_z) return;
    d_x[Z] = d_z;
    d_x[H0] = made[1];
    d_x[C0] = made[2];
    if (op->wanted[KERNEL])
        d_x[KERNEL] = cornu__product_over_rows(before(op->in[H0], h, op), d_z,
                                               cornu__gradient_dtype(op->in[KERNEL]));
}
CornuGradient *const cornu__lstm_gradient = lstm_gradient;
CornuGradient *const cornu__lstm_grad_gradient = CORNU_NO_GRADIENT;

/* ---- gru ---- */

static void gru_step(void *context, CornuTensor *const *in, CornuTensor **out)
{
    const Cell    *cell = context;
    const Operands o = operands_of(cell, in, 1);
    CornuTensor   *h = in[0], *inner, *bias_h = NULL;
    CornuTensor   *zr = gates_product(cell, h, o.kernel, o.dropout, 0, 2);
    if (o.bias) {
        zr = cornu_op_add(zr, gates(cell, o.bias, 0, 2));
        bias_h = gates(cell, o.bias, 2, 1);
    }
    zr = cornu_op_add(gates(cell, o.z, 0, 2), zr);
    CornuTensor *z = activate_gate(cell, gates(cell, zr, 0, 1));
    CornuTensor *r = activate_gate(cell, gates(cell, zr, 1, 1));
    if (cell->reset_after) {
        inner = gates_product(cell, h, o.kernel, o.dropout, 2, 1);
        if (bias_h) inner = cornu_op_add(inner, bias_h);
        inner = cornu_op_multiply(r, inner);
    } else {
        inner = gates_product(cell, cornu_op_multiply(r, h), o.kernel, o.dropout, 2, 1);
        if (bias_h) inner = cornu_op_add(inner, bias_h);
    }
    CornuTensor *g = activate(cell, cornu_op_add(gates(cell, o.z, 2, 1), inner));
    CornuTensor *kept = cornu_op_multiply(z, cornu_op_subtract(h, g));   /* z h + (1 - z) g */
    out[0] = out[1] = where(o.mask, cornu_op_add(g, kept), h);
}

CornuTensor *cornu_op_gru(CornuTensor *x, CornuTensor *kernel, CornuTensor *bias, CornuTensor *h0,
                          bool reset_after, const CornuRecurrence *recurrence)
{
    const CornuRecurrence *r = recurrence ? recurrence : &usual;
    CornuTensor           *out[CORNU_MAX_OUTPUTS] = { NULL };
    if (!reset_after || !is_usual(r)) {
        Cell cell = { .recurrence = r, .reset_after = reset_after };
        scan(&cell, gru_step, &h0, 1,
             &(Operands){ x, r->mask, kernel, bias, r->recurrent_dropout }, out);
        return out[1];
    }
    if (!x) return cornu__fail_null(CORNU_ERR_ARGUMENT, "gru: operand 0 is NULL");
    const CornuType  of_x = cornu_tensor_type(x);
    const CornuShape shape = of_x.shape;
    if (!bias && shape.rank > 0)
        bias = cornu_op_constant(x->graph, cornu_type(of_x.dtype, shape.extent[shape.rank - 1]),
                                 0.0);
    CornuAttributes attributes = { .recurrence = { r->reverse, r->gate_slope } };
    return cornu__record(CORNU_OP_GRU, &attributes,
                         (CornuTensor *[]){ x, kernel, h0, bias, r->mask }, r->mask ? 5 : 4, out);
}

/* As lstm_gradient; d_s is the gradient with respect to h U + bias. */
static void gru_gradient(const CornuRecorded *op, CornuTensor *const *d_y, CornuTensor **d_x)
{
    enum { X, KERNEL, H0, BIAS, MASK };
    CornuTensor *h = op->out[0], *made[CORNU_MAX_OUTPUTS];
    const bool   masked = op->in_count > MASK;
    CornuTensor *in[6] = { op->out[1], h, op->in[H0], op->in[KERNEL], d_y[0] };
    if (!d_y[0]) return;
    if (masked) in[5] = op->in[MASK];
    d_x[X] = cornu__record(CORNU_OP_GRU_GRAD, op->attributes, in, masked ? 6 : 5, made);
    if (!d_x[X]) return;
    d_x[H0] = made[1];
    if (op->wanted[KERNEL])
        d_x[KERNEL] = cornu__product_over_rows(before(op->in[H0], h, op), made[2],
                                               cornu__gradient_dtype(op->in[KERNEL]));
    if (op->wanted[BIAS]) {
        CornuTensor *terms = cornu_op_convert(made[2], cornu__gradient_dtype(op->in[BIAS]));
        d_x[BIAS] = cornu_op_reduce_sum(terms, 3, false);
    }
}
CornuGradient *const cornu__gru_gradient = gru_gradient;
CornuGradient *const cornu__gru_grad_gradient = CORNU_NO_GRADIENT;

/* ---- simple_rnn ---- */

static void simple_rnn_step(void *context, CornuTensor *const *in, CornuTensor **out)
{
    const Cell    *cell = context;
    const Operands o = operands_of(cell, in, 1);
    CornuTensor   *a = cornu_op_add(o.z, gates_product(cell, in[0], o.kernel, o.dropout, 0, 1));
    out[0] = out[1] = where(o.mask, activate(cell, a), in[0]);
}

CornuTensor *cornu_op_simple_rnn(CornuTensor *z, CornuTensor *kernel, CornuTensor *h0,
                                 const CornuRecurrence *recurrence)
{
    const CornuRecurrence *r = recurrence ? recurrence : &usual;
    CornuTensor           *out[CORNU_MAX_OUTPUTS] = { NULL };
    Cell                   cell = { .recurrence = r };
    scan(&cell, simple_rnn_step, &h0, 1,
         &(Operands){ z, r->mask, kernel, NULL, r->recurrent_dropout }, out);
    return out[1];
}
