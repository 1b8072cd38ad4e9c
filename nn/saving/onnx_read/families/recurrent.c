/* LSTM, GRU and RNN: (T, B, C), or with layout 1 (B, T, C); weights (directions, gates U, …).
 * Formulas: docs/Operators.md of ONNX. */
#include "elementwise_internal.h"
#include "quantized_internal.h"

#include <string.h>

/* ---- Activations ---- */

typedef struct { const CornuReadRow *row; double numbers[2]; } Activation;

static CornuTensor *activate(const void *context, CornuTensor *x)
{
    const Activation *f = context;
    return cornu__read_function_of(f->row, x, f->numbers);
}

/* Activation k of a direction; alphas and betas are listed for those activations that have them. */
static CornuStatus find_activation(const CornuReadStep *step, int k, const char *usual,
                                   Activation *f)
{
    static const char *const lists[] = { "activation_alpha", "activation_beta" };
    const CornuReadAttribute *names = cornu__attribute(step, "activations");
    const bool given = names && k < names->text_count;
    int        used[2] = { 0 };
    for (int i = given ? 0 : k; i <= k; i++) {
        f->row = cornu__read_function(given ? names->texts[i] : usual);
        if (!f->row) return cornu_error_take();
        for (int n = 0; n < 2; n++) {
            const CornuReadAttribute *list = cornu__attribute(step, lists[n]);
            const bool own = given && f->row->numbers[n].name && list &&
                             used[n] < list->number_count;
            f->numbers[n] = own ? list->numbers[used[n]++] : f->row->numbers[n].usual;
        }
    }
    return CORNU_OK;
}

static bool is(const Activation *f, const char *name) { return !strcmp(f->row->op, name); }

/* ---- A direction ---- */

typedef struct {
    CornuReadStep *step;
    CornuTensor   *x;           /* (B, T, C) */
    CornuTensor   *mask;        /* (B, T) bool, or NULL */
    int64_t        batch, time, units;
    int            direction;
    bool           reverse, dynamic;   /* `dynamic`: x and h in 8 bits of their own ranges */
    double         clip;        /* 0: none */
    Activation     f, g, h;
    CornuIntegerFilter r;       /* of R as integers; panels NULL: it is not */
} Cell;

/* Slice `direction` of operand i without that axis; NULL if it is absent. */
static CornuTensor *own(const Cell *cell, int i)
{
    CornuTensor *all = cornu__optional(cell->step, i);
    if (!all) return NULL;
    const CornuShape shape = cornu_tensor_shape(all);
    if (shape.rank < 2 || cell->direction >= shape.extent[0])
        return cornu__fail_null(CORNU_ERR_SHAPE, "operand %d has no direction %d", i,
                                cell->direction);
    return cornu__drop_axis(cornu__part_of(all, 0, cell->direction, 1), 0);
}

/* W or R, (gates U, …). The operator of dynamic quantization has them as integers (…, gates U),
 * with scales and zeros (D) or (D, gates U) as operands 8 to 11. */
static CornuTensor *matrix_of(const Cell *cell, int i)
{
    CornuTensor *w = own(cell, i);
    if (!w || !cell->dynamic) return w;
    w = cornu_op_convert(w, CORNU_F32);
    for (int k = 1; k >= 0; k--) {
        CornuTensor *p = cornu__optional_as(cell->step, 2 * i + 6 + k, CORNU_F32);
        if (!p || (cornu__rank_of(p) != 1 && cornu__rank_of(p) != 2)) continue;
        p = cornu__part_of(p, 0, cornu__extent_of(p, 0) > 1 ? cell->direction : 0, 1);
        w = k ? cornu_op_subtract(w, p) : cornu_op_multiply(w, p);
    }
    return cornu_op_transpose(w, (const int[]){ 1, 0 });
}

/* An initial state (D, B, U) of this direction, with layout 1 (B, D, U); zeros if absent. */
static CornuTensor *state_of(const Cell *cell, int i)
{
    const CornuType type = cornu_type(CORNU_F32, cell->batch, cell->units);
    CornuTensor    *all = cornu__optional(cell->step, i);
    if (!all) return cornu_op_constant(cell->step->run->graph, type, 0.0);
    const int axis = cornu__whole(cell->step, "layout", 0) ? 1 : 0;
    if (cornu__rank_of(all) != 3 || cell->direction >= cornu__extent_of(all, axis))
        return cornu__fail_null(CORNU_ERR_SHAPE, "operand %d is not a state", i);
    return cornu_op_reshape(cornu__part_of(all, axis, cell->direction, 1), type.shape);
}

/* Gates of a (gates U, …) tensor in another order. */
static CornuTensor *gates_in(CornuTensor *x, const int *order, int count, int64_t units)
{
    CornuTensor *parts[4];
    if (!x) return NULL;
    if (cornu__extent_of(x, 0) != count * units)
        return cornu__fail_null(CORNU_ERR_SHAPE, "%lld rows for %d gates of %lld units",
                                (long long)cornu__extent_of(x, 0), count, (long long)units);
    for (int i = 0; i < count; i++) parts[i] = cornu__part_of(x, 0, order[i] * units, units);
    return cornu_op_concat(parts, count, 0);
}

static CornuTensor *turned(CornuTensor *x)
{
    return x && cornu__rank_of(x) == 2 ? cornu_op_transpose(x, (const int[]){ 1, 0 }) : NULL;
}

/* The two halves of a bias (2 gates U), in the order of the gates; NULL if it is absent. */
static CornuTensor *bias_of(const Cell *cell, int half, const int *order, int count)
{
    CornuTensor *bias = own(cell, 3);
    if (!bias) return NULL;
    if (cornu__extent_of(bias, 0) != 2 * count * cell->units)
        return cornu__fail_null(CORNU_ERR_SHAPE, "the bias has %lld numbers, expected %lld",
                                (long long)cornu__extent_of(bias, 0),
                                (long long)(2 * count * cell->units));
    return gates_in(cornu__part_of(bias, 0, half * count * cell->units, count * cell->units),
                    order, count, cell->units);
}

/* Scales or zeros, operand i, of this direction: a number, or one for each row of gates. */
static CornuTensor *quantity_of(const Cell *cell, int i, const int *order)
{
    CornuTensor *p = cornu__optional_as(cell->step, i, CORNU_F32);
    if (!p) return NULL;
    p = cornu__part_of(p, 0, cornu__extent_of(p, 0) > 1 ? cell->direction : 0, 1);
    if (cornu__rank_of(p) < 2) return p;
    return gates_in(cornu__drop_axis(p, 0), order, 4, cell->units);
}

/* W or R of the operator of dynamic quantization, if its bytes are weights: false if not. */
static bool integers_of(const Cell *cell, int i, const int *order, CornuIntegerFilter *filter)
{
    CornuTensor *bytes = cell->dynamic ? cell->step->in[i].bytes : NULL, *parts[4];
    if (!bytes || cornu__rank_of(bytes) != 3 || cell->direction >= cornu__extent_of(bytes, 0) ||
        cornu__extent_of(bytes, 2) != 4 * cell->units)
        return false;
    bytes = cornu__drop_axis(cornu__part_of(bytes, 0, cell->direction, 1), 0);
    for (int k = 0; k < 4; k++)
        parts[k] = cornu__part_of(bytes, 1, order[k] * cell->units, cell->units);
    CornuTensor *zeros = quantity_of(cell, 2 * i + 7, order);
    if (!zeros) zeros = cornu_op_constant(cell->step->run->graph, cornu_type(CORNU_F32, 1), 0.0);
    if (cell->step->in[i].onnx_type == CORNU_READ_UINT8) zeros = cornu_op_shift(zeros, -128.0);
    const CornuInt8Window w = cornu__integer_matrix(cornu__extent_of(bytes, 0), 4 * cell->units);
    return !cornu__integer_filter(cornu_op_concat(parts, 4, 1), zeros, &w, filter);
}

/* x in 8 bits of its own range, by those integers. */
static CornuTensor *integer_product(CornuTensor *x, const CornuIntegerFilter *filter,
                                    CornuTensor *by)
{
    CornuTensor *scale = NULL, *zero = NULL, *q = cornu__dynamic(x, &scale, &zero);
    CornuTensor *sums = cornu__integer_matmul(cornu_op_convert(q, CORNU_U8), zero, filter);
    return cornu_op_multiply(cornu_op_convert(sums, CORNU_F32), cornu_op_multiply(by, scale));
}

static CornuTensor *plus(CornuTensor *a, CornuTensor *b)
{
    return b ? cornu_op_add(a, b) : a;
}

static CornuRecurrence recurrence_of(const Cell *cell, const Activation *outer,
                                     const Activation *inner)
{
    CornuRecurrence to = { .mask = cell->mask, .reverse = cell->reverse };
    if (!is(outer, "Tanh")) {
        to.activation = activate;
        to.activation_context = outer;
    }
    if (inner && !is(inner, "Sigmoid")) {
        to.recurrent_activation = activate;
        to.recurrent_context = inner;
    }
    return to;
}

/* h (B, T, U) at its last step. */
static CornuTensor *last_of(const Cell *cell, CornuTensor *h)
{
    return cornu__drop_axis(cornu__part_of(h, 1, cell->reverse ? 0 : cell->time - 1, 1), 1);
}

/* ---- LSTM with peepholes, a clip, or other things that the op lacks, step by step ---- */

static CornuTensor *clipped(const Cell *cell, CornuTensor *x)
{
    return cell->clip > 0.0 ? cornu_op_clip(x, -cell->clip, cell->clip) : x;
}

/* in: h, c, z (B, 4U) with gates i f c o, [mask (B)], kernel (U, 4U), [peepholes (3U), i o f]; of
 * integers their scale is in place of the kernel, then their panels, zeros and totals follow */
static void lstm_step(void *context, CornuTensor *const *in, CornuTensor **out)
{
    const Cell *cell = context;
    const bool  masked = cell->mask, looks = cornu__given(cell->step, 7);
    const int64_t u = cell->units;
    CornuTensor *h = in[0], *c = in[1], *mask = masked ? in[3] : NULL;
    CornuTensor *kernel = in[3 + masked], *p = looks ? in[4 + masked] : NULL, *gates[4], *peep[3];
    CornuTensor *product;
    if (cell->r.panels) {
        CornuTensor *const *parts = in + 4 + masked + looks;
        product = integer_product(h, &(CornuIntegerFilter){ cell->r.window, parts[0], parts[1],
                                                            parts[2] }, kernel);
    } else {
        product = cornu_op_matmul(cell->dynamic ? cornu__in_8_bits(h) : h, kernel);
    }
    CornuTensor *z = cornu_op_add(in[2], product);
    for (int i = 0; i < 4; i++) gates[i] = cornu__part_of(z, 1, i * u, u);
    for (int i = 0; i < 3; i++) peep[i] = p ? cornu__part_of(p, 0, i * u, u) : NULL;
    for (int i = 0; i < 2; i++)
        if (p) gates[i] = cornu_op_add(gates[i], cornu_op_multiply(peep[i ? 2 : 0], c));
    CornuTensor *i = activate(&cell->f, clipped(cell, gates[0]));
    CornuTensor *f = activate(&cell->f, clipped(cell, gates[1]));
    if (cornu__whole(cell->step, "input_forget", 0) && i)
        f = cornu_op_subtract(cornu_op_constant_like(i, 1.0), i);
    CornuTensor *g = activate(&cell->g, clipped(cell, gates[2]));
    CornuTensor *next = cornu_op_add(cornu_op_multiply(f, c), cornu_op_multiply(i, g));
    if (p) gates[3] = cornu_op_add(gates[3], cornu_op_multiply(peep[1], next));
    CornuTensor *o = activate(&cell->f, clipped(cell, gates[3]));
    CornuTensor *y = cornu_op_multiply(o, activate(&cell->h, next));
    if (masked) {
        mask = cornu__add_axis(mask, 1);
        y = cornu_op_select(mask, y, h);
        next = cornu_op_select(mask, next, c);
    }
    out[0] = y;
    out[1] = next;
    out[2] = y;
}

static CornuTensor *lstm_by_steps(const Cell *cell, CornuTensor *z, CornuTensor *kernel,
                                  CornuTensor *h0, CornuTensor *c0, CornuTensor **c)
{
    CornuTensor *carries[] = { h0, c0 }, *slices[] = { z, cell->mask };
    CornuTensor *constants[5] = { kernel, own(cell, 7) }, *out[3] = { NULL };
    int          count = constants[1] ? 2 : 1;
    if (cell->r.panels) {
        constants[count++] = cell->r.panels;
        constants[count++] = cell->r.zeros;
        constants[count++] = cell->r.totals;
    }
    const CornuScan scan = {
        .carries = carries, .slices = slices, .constants = constants, .carry_count = 2,
        .slice_count = cell->mask ? 2 : 1, .constant_count = count, .axis = 1,
        .stacked_count = 1, .reverse = cell->reverse,
    };
    if (!cornu_op_scan(&scan, lstm_step, (void *)cell, out)) return NULL;
    *c = out[1];
    return out[2];
}

/* ---- The three operators ---- */

/* h (B, T, U) of one direction, and for an LSTM its last c. */
typedef CornuTensor *Run(Cell *cell, CornuTensor **c);

static CornuTensor *input_product(const Cell *cell, const int *order, int count,
                                  CornuTensor *bias)
{
    CornuTensor *w = turned(gates_in(matrix_of(cell, 1), order, count, cell->units));
    CornuTensor *x = cell->dynamic ? cornu__in_8_bits(cell->x) : cell->x;
    return plus(cornu_op_matmul(x, w), bias);
}

static CornuTensor *run_lstm(Cell *cell, CornuTensor **c)
{
    static const int order[] = { 0, 2, 3, 1 };   /* i o f c to i f c o */
    CornuTensor *bias = bias_of(cell, 0, order, 4);
    if (bias) bias = cornu_op_add(bias, bias_of(cell, 1, order, 4));
    CornuIntegerFilter w;
    CornuTensor *z = integers_of(cell, 1, order, &w)
                         ? plus(integer_product(cell->x, &w, quantity_of(cell, 8, order)), bias)
                         : input_product(cell, order, 4, bias);
    CornuTensor *kernel = integers_of(cell, 2, order, &cell->r)
                              ? quantity_of(cell, 10, order)
                              : turned(gates_in(matrix_of(cell, 2), order, 4, cell->units));
    CornuTensor *h0 = state_of(cell, 5), *c0 = state_of(cell, 6);
    if (cornu__given(cell->step, 7) || cell->dynamic || cell->clip > 0.0 ||
        cell->g.row != cell->h.row || cornu__whole(cell->step, "input_forget", 0))
        return lstm_by_steps(cell, z, kernel, h0, c0, c);
    const CornuRecurrence options = recurrence_of(cell, &cell->g, &cell->f);
    return cornu_op_lstm(z, kernel, h0, c0, &options, c);
}

static CornuTensor *run_gru(Cell *cell, CornuTensor **c)
{
    static const int order[] = { 0, 1, 2 };
    const bool   after = cornu__whole(cell->step, "linear_before_reset", 0);
    CornuTensor *bias = bias_of(cell, 0, order, 3), *second = bias_of(cell, 1, order, 3);
    (void)c;
    if (cell->clip > 0.0)
        return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "clip is not supported");
    if (!after && bias) bias = cornu_op_add(bias, second);
    CornuTensor *z = input_product(cell, order, 3, bias);
    CornuTensor *kernel = turned(own(cell, 2)), *h0 = state_of(cell, 5);
    const CornuRecurrence options = recurrence_of(cell, &cell->g, &cell->f);
    return cornu_op_gru(z, kernel, after ? second : NULL, h0, after, &options);
}

static CornuTensor *run_rnn(Cell *cell, CornuTensor **c)
{
    static const int order[] = { 0 };
    CornuTensor *bias = bias_of(cell, 0, order, 1);
    (void)c;
    if (cell->clip > 0.0)
        return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "clip is not supported");
    if (bias) bias = cornu_op_add(bias, bias_of(cell, 1, order, 1));
    CornuTensor *z = input_product(cell, order, 1, bias);
    CornuTensor *kernel = turned(own(cell, 2)), *h0 = state_of(cell, 5);
    const CornuRecurrence options = recurrence_of(cell, &cell->f, NULL);
    return cornu_op_simple_rnn(z, kernel, h0, &options);
}

/* Steps below the length of their row. */
static CornuTensor *mask_of(CornuReadStep *step, int64_t batch, int64_t time)
{
    CornuTensor *lengths = cornu__optional(step, 4);
    if (!lengths) return NULL;
    lengths = cornu_op_reshape(cornu_op_convert(lengths, CORNU_I64), cornu_shape(batch, 1));
    CornuTensor *t = cornu__count_along(step->run->graph, CORNU_I64, 2, 1, time);
    return cornu_op_compare(t, CORNU_LESS, lengths);
}

/* Directions as (…, D, …), beside each other along a new axis. */
static CornuTensor *stacked(CornuTensor *const *x, int count, int axis)
{
    CornuTensor *parts[2];
    for (int i = 0; i < count; i++) parts[i] = cornu__add_axis(x[i], axis);
    return count > 1 ? cornu_op_concat(parts, count, axis) : parts[0];
}

static CornuStatus recurrent(CornuReadStep *step, Run *run, int gates, const char *const *usual,
                             int functions)
{
    CornuTensor *x = cornu__operand_of(step, 0), *h[2] = { NULL }, *last[2], *c[2] = { NULL };
    const bool   rows = cornu__whole(step, "layout", 0);
    const char  *direction = cornu__word(step, "direction", "forward");
    const int    directions = !strcmp(direction, "bidirectional") ? 2 : 1;
    const bool   dynamic = !strcmp(step->node->op, "DynamicQuantizeLSTM");
    CornuShape   w = cornu__operand_type(step, 2).shape;
    if (!x) return cornu_error_take();
    if (cornu__rank_of(x) != 3 || w.rank != 3)
        return cornu__fail(CORNU_ERR_SHAPE, "x has rank %d and R %d, expected 3",
                           cornu__rank_of(x), w.rank);
    if (!rows) x = cornu__move_axis(x, 0, 1);
    if (dynamic) w = cornu_shape(w.extent[0], w.extent[2], w.extent[1]);
    Cell cells[2];
    for (int i = 0; i < directions; i++) {
        Cell *cell = &cells[i];
        *cell = (Cell){ .step = step, .x = x, .batch = cornu__extent_of(x, 0),
                        .time = cornu__extent_of(x, 1), .units = w.extent[2], .direction = i,
                        .reverse = i == 1 || !strcmp(direction, "reverse"), .dynamic = dynamic,
                        .clip = cornu__real(step, "clip", 0.0) };
        cell->mask = mask_of(step, cell->batch, cell->time);
        Activation *const to[] = { &cell->f, &cell->g, &cell->h };
        for (int k = 0; k < functions; k++)
            CORNU__TRY(find_activation(step, i * functions + k, usual[k], to[k]));
        if (w.extent[1] != gates * cell->units)
            return cornu__fail(CORNU_ERR_SHAPE, "R has %lld rows for %lld units",
                               (long long)w.extent[1], (long long)cell->units);
        h[i] = run(cell, &c[i]);
        if (!h[i]) return cornu_error_take();
        last[i] = last_of(cell, h[i]);
        if (cell->mask) {
            h[i] = cornu_op_select(cornu__add_axis(cell->mask, 2), h[i],
                                   cornu_op_constant_like(h[i], 0.0));
        }
        if (!rows) h[i] = cornu__move_axis(h[i], 0, 1);
    }
    /* (T, D, B, U), or (B, T, D, U) */
    if (cornu__wanted(step, 0)) CORNU__TRY(cornu__result(step, 0, stacked(h, directions,
                                                                          rows ? 2 : 1)));
    if (cornu__wanted(step, 1)) CORNU__TRY(cornu__result(step, 1, stacked(last, directions, rows)));
    if (!cornu__wanted(step, 2)) return CORNU_OK;
    return cornu__result(step, 2, stacked(c, directions, rows));
}

static CornuStatus read_lstm(CornuReadStep *step)
{
    return recurrent(step, run_lstm, 4, (const char *const[]){ "Sigmoid", "Tanh", "Tanh" }, 3);
}

static CornuStatus read_gru(CornuReadStep *step)
{
    return recurrent(step, run_gru, 3, (const char *const[]){ "Sigmoid", "Tanh" }, 2);
}

static CornuStatus read_rnn(CornuReadStep *step)
{
    return recurrent(step, run_rnn, 1, (const char *const[]){ "Tanh" }, 1);
}

const CornuReadRow cornu__read_recurrent[] = {
    { "GRU", read_gru, .operands = 3 }, { "LSTM", read_lstm, .operands = 3 },
    { "RNN", read_rnn, .operands = 3 },
    { "com.microsoft.DynamicQuantizeLSTM", read_lstm, .operands = 3 },
    { 0 },
};
