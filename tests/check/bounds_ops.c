/* The bounds of the results of one op, from those of its operands (bounds.h). */
#include "bounds_internal.h"

#include <stdlib.h>
#include <string.h>

#include "../../device/ops/window.h"

/* Results nearer to zero may be subnormal and lose bits, or be flushed to zero. */
static double smallest(CornuDtype dtype)
{
    switch (dtype) {
    case CORNU_F64: return 0x1p-1022;
    case CORNU_F32: case CORNU_BF16: return 0x1p-126;
    case CORNU_F16: return 0x1p-24;
    default: return 0.0;
    }
}

static int64_t count_in(const BoundsStep *s, int i) { return cornu_type_count(s->call.in[i]); }
static int64_t count_out(const BoundsStep *s, int i) { return cornu_type_count(s->out_type[i]); }

static double *room(int64_t count) { return calloc((size_t)count + 1, sizeof(double)); }

static double *copied(const double *from, int64_t count)
{
    double *to = room(count);
    memcpy(to, from, (size_t)count * sizeof *to);
    return to;
}

static CornuStatus reference(const BoundsStep *s, const double *const *in, double *const *out)
{
    return cornu__op_reference(&(CornuReferenceCall){
        .op = s->call, .in = in, .out = out, .out_type = s->out_type, .count = count_out(s, 0) });
}

static bool is_exact(const double *bound, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (bound[i] != 0.0) return false;
    return true;
}

static void set_all(double *to, int64_t count, double value)
{
    for (int64_t i = 0; i < count; i++) to[i] = value;
}

/* For results up to this size; zeros are exact. */
static double rounding(double size, double units, double u, CornuDtype dtype)
{
    return size == 0.0 || units == 0.0 ? 0.0 : at_least(units * (u * size + smallest(dtype)));
}

static void add_rounding(const BoundsStep *s, double units)
{
    const CornuDtype dtype = s->out_type[0].dtype;
    if (!cornu_dtype_is_float(dtype)) return;
    for (int64_t i = 0; i < count_out(s, 0); i++)
        s->bound[0][i] += rounding(magnitude(s->out[0][i], s->bound[0][i]), units,
                                   unit_roundoff(dtype), dtype);
}

/* A device's result differs where the dtype cannot hold this one: infinite, or wrapped. */
static void bound_overflow(const BoundsStep *s, int k)
{
    const CornuDtype dtype = s->out_type[k].dtype;
    const double     largest = dtype == CORNU_F64 ? 1e300 : dtype == CORNU_F16 ? 65000.0 : 0x1p126;
    for (int64_t i = 0; i < count_out(s, k); i++) {
        const double x = s->out[k][i];
        const bool   held = cornu_dtype_is_float(dtype) ? fabs(x) <= largest
                                                        : rounded(x, dtype) == x;
        if (!held) s->bound[k][i] = INFINITY;
    }
}

/* ---- Kinds of ops ---- */

/* The op applied to the bounds themselves. */
static CornuStatus bound_moved(const BoundsStep *s)
{
    const double *in[MOST_OPERANDS];
    for (int i = 0; i < s->call.in_count; i++) in[i] = s->in_bound[i];
    if (s->call.id == CORNU_OP_PAD) {
        CornuAttributes attributes = *s->call.attributes;
        BoundsStep      zeros = *s;
        attributes.pad.value = 0.0;
        zeros.call.attributes = &attributes;
        CORNU__TRY(reference(&zeros, in, s->bound));
        const double value = s->call.attributes->pad.value;
        const double off = fabs(value - rounded(value, s->out_type[0].dtype));
        for (int64_t i = 0; off > 0.0 && i < count_out(s, 0); i++)
            if (s->out[0][i] == value) s->bound[0][i] += off;
        return CORNU_OK;
    }
    return reference(s, in, s->bound);
}

/* y[i] = f(a[i], b[i], ...), f monotonic in each or largest at an end: the results at all corners
 * of the box of the bounds. An operand without a bound may be NaN, and so may the result. */
static CornuStatus bound_corners(const BoundsStep *s, double units)
{
    const int     operands = s->call.in_count;
    const int64_t count = count_out(s, 0);
    const double *in[3];
    double       *moved[3], *y = room(count);
    CornuStatus   status = CORNU_OK;
    bool          exact = true;
    const bool    squares = s->call.id == CORNU_OP_SQRT && bounds_roots_of_squares;
    for (int k = 0; k < operands; k++) {
        exact = exact && is_exact(s->in_bound[k], count);
        in[k] = moved[k] = room(count);
    }
    set_all(s->bound[0], count, 0.0);
    for (int corner = 0; !exact && corner < 1 << operands && !status; corner++) {
        for (int k = 0; k < operands; k++)
            for (int64_t i = 0; i < count; i++)
                moved[k][i] = s->in[k][i] + (corner >> k & 1 ? 1.0 : -1.0) * s->in_bound[k][i];
        for (int64_t i = 0; i < count && squares; i++)
            if (s->in[0][i] >= 0.0) moved[0][i] = fmax(moved[0][i], 0.0);
        status = reference(s, in, &y);
        for (int64_t i = 0; i < count && !status; i++)
            s->bound[0][i] = fmax(s->bound[0][i],
                                  y[i] == s->out[0][i] ? 0.0 : at_least(fabs(y[i] - s->out[0][i])));
    }
    for (int k = 0; k < operands; k++)
        for (int64_t i = 0; i < count; i++)
            if (!isfinite(s->in_bound[k][i])) s->bound[0][i] = INFINITY;
    free(y);
    for (int k = 0; k < operands; k++) free(moved[k]);
    add_rounding(s, units);
    return status;
}

/* sin and cos may take any value between the corners, but change by no more than x does. */
static CornuStatus bound_wave(const BoundsStep *s, double units)
{
    for (int64_t i = 0; i < count_out(s, 0); i++) {
        const double bound = s->in_bound[0][i];
        s->bound[0][i] = isfinite(bound) ? fmin(bound, 2.0) : INFINITY;
    }
    add_rounding(s, units);
    return CORNU_OK;
}

/* a + b, where either may be a sum to which the other is added as a term. */
static CornuStatus bound_added(const BoundsStep *s)
{
    CORNU__TRY(bound_corners(s, 1.0));
    const double u = sum_roundoff(s->out_type[0].dtype);
    for (int64_t i = 0; i < count_out(s, 0); i++)
        s->bound[0][i] += rounding(fmax(magnitude(s->in[0][i], s->in_bound[0][i]),
                                        magnitude(s->in[1][i], s->in_bound[1][i])),
                                   s->pending, u, s->out_type[0].dtype);
    return CORNU_OK;
}

/* Where a pole may lie between the corners: a divisor that may be zero. */
static CornuStatus bound_quotient(const BoundsStep *s)
{
    CORNU__TRY(bound_corners(s, 1.0));
    for (int64_t i = 0; i < count_out(s, 0); i++)
        if (fabs(s->in[1][i]) <= s->in_bound[1][i]) s->bound[0][i] = INFINITY;
    return CORNU_OK;
}

/* Equality is between the corners. */
static CornuStatus bound_compare(const BoundsStep *s)
{
    CORNU__TRY(bound_corners(s, 0.0));
    for (int64_t i = 0; i < count_out(s, 0); i++) {
        const double apart = fabs(s->in[0][i] - s->in[1][i]);
        const double bound = s->in_bound[0][i] + s->in_bound[1][i];
        if (bound > 0.0 && !(apart > bound)) s->bound[0][i] = 1.0;
    }
    return CORNU_OK;
}

static CornuStatus bound_select(const BoundsStep *s)
{
    for (int64_t i = 0; i < count_out(s, 0); i++) {
        const int chosen = s->in[0][i] != 0.0 ? 1 : 2;
        s->bound[0][i] = s->in_bound[chosen][i];
        if (s->in_bound[0][i] > 0.0)
            s->bound[0][i] = at_least(fmax(s->in_bound[1][i], s->in_bound[2][i]) +
                                      fabs(s->in[1][i] - s->in[2][i]));
    }
    return CORNU_OK;
}

/* Whether all operands are numbers with bounds. If one is not, kernels that multiply it by the
 * zeros of a padding differ from those that skip these. */
static bool are_known(const BoundsStep *s)
{
    for (int k = 0; k < s->call.in_count; k++)
        for (int64_t i = 0; i < count_in(s, k); i++)
            if (!isfinite(s->in[k][i]) || !isfinite(s->in_bound[k][i])) return false;
    return true;
}

static CornuStatus nothing_known(const BoundsStep *s)
{
    set_all(s->bound[0], count_out(s, 0), INFINITY);
    return CORNU_OK;
}

/* Linear in operand 0; the others are indices, which must be known. An element of the result sums
 * `terms`. */
static CornuStatus bound_sums(BoundsStep *s, double terms)
{
    s->terms = terms;
    const int64_t count = count_out(s, 0);
    const double  u = sum_roundoff(s->out_type[0].dtype);
    const double *in[2] = { s->in_bound[0], s->call.in_count > 1 ? s->in[1] : NULL };
    if (s->call.in_count > 1 && !is_exact(s->in_bound[1], count_in(s, 1))) return nothing_known(s);
    if (s->call.id != CORNU_OP_REDUCE_SUM && !are_known(s)) return nothing_known(s);
    double *sizes = room(count_in(s, 0)), *sums = room(count);
    CornuStatus status = reference(s, in, s->bound);
    for (int64_t i = 0; i < count_in(s, 0); i++)
        sizes[i] = magnitude(s->in[0][i], s->in_bound[0][i]);
    in[0] = sizes;
    if (!status) status = reference(s, in, &sums);
    for (int64_t i = 0; i < count; i++)
        s->bound[0][i] = at_least(s->bound[0][i]) +
                         rounding(sums[i], terms, u, s->call.in[0].dtype);
    free(sizes);
    free(sums);
    if (unit_roundoff(s->out_type[0].dtype) > u) add_rounding(s, 1.0);
    return status;
}

/* Convolutions of 3 x 3 or 5 x 5 taps and gradients of filters of 3 x 3, of each phase if they have
 * strides, may be computed with fewer products, of sums of elements and of sums of taps (Winograd):
 * rounding is then relative to the largest of an image's channel and of a filter's, or of a channel
 * and of d_y's, not to the terms of an output, which may all be zero. */
static bool mixes_terms(const BoundsStep *s)
{
    CornuSweep sweep[2];
    const bool by_filter = s->call.id == CORNU_OP_CONV2D_GRAD_FILTER;
    if (s->call.id != CORNU_OP_CONV2D && s->call.id != CORNU_OP_CONV2D_GRAD_INPUT && !by_filter)
        return false;
    cornu__sweeps(&s->call, sweep);
    for (int a = 0; a < 2; a++)
        if ((sweep[a].size != 3 * sweep[a].stride &&
             (by_filter || sweep[a].size != 5 * sweep[a].stride)) || sweep[a].dilation != 1)
            return false;
    return true;
}

static double largest_of(const double *from, int64_t channel, int64_t channels, int64_t positions)
{
    double most = 0.0;
    for (int64_t i = 0; i < positions; i++) most = fmax(most, from[i * channels + channel]);
    return most;
}

/* What an output's terms are at most, if each were a product of such largest elements. */
static void mix_terms(const BoundsStep *s, const double *x, const double *filter, double *all)
{
    const int64_t *in = s->call.in[0].shape.extent, *out = s->out_type[0].shape.extent;
    const int64_t *taps = s->call.in[1].shape.extent, F = taps[3];
    const bool     back = s->call.id == CORNU_OP_CONV2D_GRAD_INPUT;
    for (int64_t b = 0; b < in[0]; b++)
        for (int64_t k = 0; k < out[3]; k++) {
            double sum = 0.0;
            for (int64_t c = 0; c < in[3]; c++) {
                const double most = largest_of(x + b * in[1] * in[2] * in[3], c, in[3],
                                               in[1] * in[2]);
                double       tap = 0.0;
                for (int64_t i = 0; i < taps[0] * taps[1]; i++)
                    tap = fmax(tap, filter[(i * taps[2] + (back ? k : c)) * F + (back ? c : k)]);
                sum += (double)(taps[0] * taps[1]) * most * tap;
            }
            for (int64_t i = 0; i < out[1] * out[2]; i++)
                all[(b * out[1] * out[2] + i) * out[3] + k] = sum;
        }
}

/* The same of a filter's gradient, whose terms are those of all positions of d_y. */
static void mix_positions(const BoundsStep *s, const double *x, const double *d_y, double *all)
{
    const int64_t *in = s->call.in[0].shape.extent, *out = s->call.in[1].shape.extent;
    const int64_t *taps = s->out_type[0].shape.extent, C = in[3], F = out[3];
    const int64_t  positions = out[0] * out[1] * out[2];
    for (int64_t c = 0; c < C; c++) {
        const double most = largest_of(x, c, C, in[0] * in[1] * in[2]) * (double)positions;
        for (int64_t f = 0; f < F; f++) {
            const double sum = most * largest_of(d_y, f, F, positions);
            for (int64_t i = 0; i < taps[0] * taps[1]; i++) all[(i * C + c) * F + f] = sum;
        }
    }
}

/* Linear in both operands. Six products of bf16 for one of f32 omit parts of 2^-23 of it. */
static CornuStatus bound_products(BoundsStep *s)
{
    if (!are_known(s)) return nothing_known(s);
    const int64_t count = count_out(s, 0);
    const double  each = (double)cornu_op_flops(&s->call) / 2.0 / (double)(count ? count : 1);
    const double  terms = 6.0 * each + 8.0;
    const double  of_in = sum_roundoff(s->call.in[0].dtype);
    const double  of_out = sum_roundoff(s->out_type[0].dtype);
    /* Of f64 operands matmul is summed in f64, convolutions in what the result is. */
    const double  u = s->call.id == CORNU_OP_MATMUL ? fmin(of_in, of_out) : of_out;
    s->terms = terms;
    double       *size[2], *larger[2], *parts = room(count), *all = room(count);
    CornuStatus   status = CORNU_OK;
    for (int k = 0; k < 2; k++) {
        size[k] = room(count_in(s, k));
        larger[k] = room(count_in(s, k));
        for (int64_t i = 0; i < count_in(s, k); i++) {
            size[k][i] = fabs(s->in[k][i]);
            larger[k][i] = size[k][i] + s->in_bound[k][i];
        }
    }
    status = reference(s, (const double *const[]){ larger[0], larger[1] }, &all);
    if (mixes_terms(s))
        (s->call.id == CORNU_OP_CONV2D_GRAD_FILTER ? mix_positions : mix_terms)(s, larger[0],
                                                                                larger[1], all);
    set_all(s->bound[0], count, 0.0);
    for (int k = 0; k < 2 && !status; k++) {   /* e_a |b|, then (|a| + e_a) e_b */
        status = reference(s, (const double *const[]){ k ? larger[0] : s->in_bound[0],
                                                       k ? s->in_bound[1] : size[1] }, &parts);
        for (int64_t i = 0; i < count; i++) s->bound[0][i] += parts[i];
    }
    for (int64_t i = 0; i < count; i++)
        s->bound[0][i] = at_least(s->bound[0][i]) +
                         rounding(all[i], terms, u, s->call.in[0].dtype);
    add_rounding(s, 1.0);
    free(parts);
    free(all);
    for (int k = 0; k < 2; k++) { free(size[k]); free(larger[k]); }
    return status;
}

/* Bounds of lookups, and of sums over d_y by index. */
static CornuStatus bound_lookup(const BoundsStep *s)
{
    if (is_exact(s->in_bound[1], count_in(s, 1)))
        return reference(s, (const double *const[]){ s->in_bound[0], s->in[1] }, s->bound);
    return nothing_known(s);
}

/* Of which rows there are: exact, or nothing is known. */
static CornuStatus bound_unique(const BoundsStep *s)
{
    const double off = is_exact(s->in_bound[0], count_in(s, 0))
                     ? 0.0 : (double)s->call.attributes->rows.rows;
    for (int k = 0; k < 2; k++) set_all(s->bound[k], count_out(s, k), off);
    return CORNU_OK;
}

static CornuStatus bound_replaced(const BoundsStep *s)
{
    if (is_exact(s->in_bound[1], count_in(s, 1)))
        return reference(s, (const double *const[]){ s->in_bound[0], s->in[1], s->in_bound[2] },
                         s->bound);
    return nothing_known(s);
}

static CornuStatus bound_argmax(const BoundsStep *s)
{
    const CornuShape shape = s->call.in[0].shape;
    const int        axis = (int)s->call.attributes->axis.axis;
    const int64_t    extent = shape.extent[axis];
    int64_t          inner = 1;
    for (int i = axis + 1; i < shape.rank; i++) inner *= shape.extent[i];
    for (int64_t i = 0; i < count_out(s, 0); i++) {
        const int64_t first = i / inner * extent * inner + i % inner;
        const int64_t best = first + (int64_t)s->out[0][i] * inner;
        s->bound[0][i] = 0.0;
        for (int64_t k = 0; k < extent; k++) {
            const int64_t at = first + k * inner;
            const double  bound = s->in_bound[0][at] + s->in_bound[0][best];
            if (at != best && bound > 0.0 && !(s->in[0][best] - s->in[0][at] > bound))
                s->bound[0][i] = (double)extent;
        }
    }
    return CORNU_OK;
}

/* The taps of each window: what a pool's bounds need. */
typedef struct {
    CornuSweep sweep[2];
    int64_t    batch, channels;
} Windows;

static Windows windows_of(const BoundsStep *s)
{
    Windows w = { .batch = s->call.in[0].shape.extent[0],
                  .channels = s->call.in[0].shape.extent[3] };
    cornu__sweeps(&s->call, w.sweep);
    return w;
}

static int64_t windows_count(const Windows *w)
{
    return w->batch * w->sweep[0].out * w->sweep[1].out * w->channels;
}

/* The element of the larger image under tap (u, v) of window o, -1 for padding. */
static int64_t tap_of(const Windows *w, int64_t o, int64_t u, int64_t v)
{
    const int64_t k = o % w->channels, j = o / w->channels % w->sweep[1].out;
    const int64_t i = o / w->channels / w->sweep[1].out % w->sweep[0].out;
    const int64_t b = o / w->channels / w->sweep[1].out / w->sweep[0].out;
    const int64_t row = cornu__tap(&w->sweep[0], i, u), column = cornu__tap(&w->sweep[1], j, v);
    if (row < 0 || column < 0) return -1;
    return ((b * w->sweep[0].in + row) * w->sweep[1].in + column) * w->channels + k;
}

static CornuStatus bound_max_pool(const BoundsStep *s)
{
    const Windows w = windows_of(s);
    for (int64_t o = 0; o < windows_count(&w); o++) {
        const int64_t position = (int64_t)s->out[1][o], width = w.sweep[1].size;
        const int64_t best = tap_of(&w, o, position / width, position % width);
        s->bound[0][o] = s->bound[1][o] = 0.0;
        for (int64_t u = 0; u < w.sweep[0].size; u++)
        for (int64_t v = 0; v < width; v++) {
            const int64_t at = tap_of(&w, o, u, v);
            if (at < 0) continue;
            const double bound = s->in_bound[0][at] + s->in_bound[0][best];
            s->bound[0][o] = fmax(s->bound[0][o], s->in_bound[0][at]);
            if (at != best && (bound > 0.0 || bounds_any_maximum) &&
                !(s->in[0][best] - s->in[0][at] > bound))
                s->bound[1][o] = (double)(w.sweep[0].size * width);
        }
    }
    return CORNU_OK;
}

static CornuStatus bound_max_pool_grad(const BoundsStep *s)
{
    if (!are_known(s)) return nothing_known(s);
    const Windows w = windows_of(s);
    double       *sizes = room(count_out(s, 0));
    double       *d_y = room(count_in(s, 0));
    const double *in[2] = { s->in_bound[0], s->in[1] };
    CornuStatus   status = reference(s, in, s->bound);
    for (int64_t i = 0; i < count_in(s, 0); i++)
        d_y[i] = magnitude(s->in[0][i], s->in_bound[0][i]);
    in[0] = d_y;
    if (!status) status = reference(s, in, &sizes);
    for (int64_t o = 0; o < windows_count(&w); o++)
        if (s->in_bound[1][o] > 0.0)
            for (int64_t u = 0; u < w.sweep[0].size; u++)
            for (int64_t v = 0; v < w.sweep[1].size; v++) {
                const int64_t at = tap_of(&w, o, u, v);
                if (at >= 0) s->bound[0][at] += d_y[o], sizes[at] += d_y[o];
            }
    const double terms = (double)(w.sweep[0].size * w.sweep[1].size);
    for (int64_t i = 0; i < count_out(s, 0); i++)
        s->bound[0][i] = at_least(s->bound[0][i] + terms * unit_roundoff(s->out_type[0].dtype) *
                                  sizes[i]);
    free(d_y);
    free(sizes);
    return status;
}

/* Whether all values of a program are numbers with bounds. If one is not, a kernel for the whole op
 * may do anything with it: multiply it by 0, or select another value. */
static bool is_known(const Bounds *b, const CornuProgram *program)
{
    for (int v = 0; v < b->count; v++)
        for (int64_t i = 0; i < bounds_count(b, program, v); i++)
            if (!isfinite(b->value[v][i]) || !isfinite(b->bound[v][i])) return false;
    return true;
}

/* Whether elements do not depend on each other, known or not. */
static bool is_elementwise(CornuOpId id)
{
    return id == CORNU_OP_DROPOUT || id == CORNU_OP_MOMENTUM_UPDATE ||
           id == CORNU_OP_RMSPROP_UPDATE || id == CORNU_OP_ADAM_UPDATE;
}

/* The bounds of another program, whose outputs are the op's. */
static CornuStatus bound_by(const BoundsStep *s, const CornuProgram *program,
                            const CornuValue *made)
{
    double *in[MOST_OPERANDS], *in_bound[MOST_OPERANDS];
    for (int i = 0; i < s->call.in_count; i++) {
        in[i] = (double *)s->in[i];
        in_bound[i] = (double *)s->in_bound[i];
    }
    Bounds      b;
    CornuStatus status = bounds_of(&b, program, 1, in, in_bound);
    const bool known = !status && (is_elementwise(s->call.id) || is_known(&b, program));
    for (int k = 0; !status && k < cornu__result_count(s->call.id, s->call.attributes); k++)
        for (int64_t i = 0; i < count_out(s, k); i++)
            s->bound[k][i] = !known ? INFINITY
                                    : at_least(b.bound[made[k]][i] +
                                               fabs(b.value[made[k]][i] - s->out[k][i]));
    bounds_free(&b);
    return status;
}

static CornuStatus bound_decomposed(const BoundsStep *s)
{
    const CornuOpRules *rules = cornu__op_rules(s->call.id);
    CornuValue          in[MOST_OPERANDS], made[CORNU_MAX_OUTPUTS];
    CornuProgram       *program = cornu_program_create();
    CornuStatus         status = CORNU_OK;
    for (int i = 0; i < s->call.in_count && !status; i++)
        status = cornu_program_input(program, s->call.in[i], &in[i]);
    if (!status) status = rules->decompose(program, &s->call, in, made);
    if (!status) status = bound_by(s, program, made);
    cornu_program_free(program);
    return status;
}

/* Element i of slice t in the whole; `inner` elements follow the axis of the steps. */
static int64_t place(int64_t i, int64_t t, int64_t steps, int64_t inner)
{
    return (i / inner * steps + t) * inner + i % inner;
}

static int64_t inner_of(CornuType whole, int64_t axis)
{
    int64_t inner = 1;
    for (int i = (int)axis + 1; i < whole.shape.rank; i++) inner *= whole.shape.extent[i];
    return inner > 0 ? inner : 1;
}

static CornuStatus bound_scan(const BoundsStep *s)
{
    const CornuAttributes_SCAN *scan = &s->call.attributes->scan;
    const CornuProgram         *body = scan->body;
    double *in[MOST_OPERANDS], *bound[MOST_OPERANDS];
    for (int k = 0; k < body->input_count; k++) {
        const int64_t count = cornu_type_count(cornu_program_type(body, body->inputs[k]));
        const bool    sliced = k >= scan->carries && k < scan->carries + scan->slices;
        in[k] = sliced ? room(count) : copied(s->in[k], count);
        bound[k] = sliced ? room(count) : copied(s->in_bound[k], count);
    }
    CornuStatus status = CORNU_OK;
    bool        known = true;
    for (int64_t step = 0; step < scan->steps && !status; step++) {
        const int64_t t = scan->reverse ? scan->steps - 1 - step : step;
        for (int64_t k = scan->carries; k < scan->carries + scan->slices; k++) {
            const int64_t inner = inner_of(s->call.in[k], scan->axis);
            const int64_t count = cornu_type_count(cornu_program_type(body, body->inputs[k]));
            for (int64_t i = 0; i < count; i++) {
                in[k][i] = s->in[k][place(i, t, scan->steps, inner)];
                bound[k][i] = s->in_bound[k][place(i, t, scan->steps, inner)];
            }
        }
        Bounds b;
        status = bounds_of(&b, body, 1, in, bound);
        known = known && !status && is_known(&b, body);
        for (int64_t k = 0; k < body->output_count && !status; k++) {
            const CornuValue made = body->outputs[k].value;
            const int64_t    count = cornu_type_count(cornu_program_type(body, made));
            const bool       carry = k < scan->carries;
            const int64_t    inner = carry ? 1 : inner_of(s->out_type[k], scan->axis);
            for (int64_t i = 0; i < count; i++)
                s->bound[k][carry ? i : place(i, t, scan->steps, inner)] = b.bound[made][i];
        }
        for (int64_t k = 0; k < scan->carries && !status; k++) {
            const CornuValue made = body->outputs[k].value;
            const size_t     bytes = sizeof(double) *
                                     (size_t)cornu_type_count(cornu_program_type(body, made));
            memcpy(in[k], b.value[made], bytes);
            memcpy(bound[k], b.bound[made], bytes);
        }
        bounds_free(&b);
    }
    for (int k = 0; k < body->output_count && !known; k++)
        set_all(s->bound[k], count_out(s, k), INFINITY);
    for (int k = 0; k < body->input_count; k++) { free(in[k]); free(bound[k]); }
    return status;
}

static double window_size(const BoundsStep *s)
{
    const bool     whole = s->call.id == CORNU_OP_AVERAGE_POOL2D;
    const int64_t *size = whole ? s->call.attributes->window.size
                                : s->call.attributes->window_grad.size;
    return (double)(size[0] * size[1]) + 2.0;   /* a quotient, by a rounded reciprocal */
}

static CornuStatus bound_step(BoundsStep *s)
{
    const int64_t in = s->call.in_count ? count_in(s, 0) : 0, out = count_out(s, 0);
    for (int k = 0; k < cornu__result_count(s->call.id, s->call.attributes); k++)
        set_all(s->bound[k], count_out(s, k), 0.0);
    switch (s->call.id) {
    case CORNU_OP_CONSTANT: case CORNU_OP_IOTA:
        for (int64_t i = 0; i < out; i++)
            s->bound[0][i] = fabs(s->out[0][i] - rounded(s->out[0][i], s->out_type[0].dtype));
        return CORNU_OK;
    case CORNU_OP_REPLICA_ID:
        return CORNU_OK;
    case CORNU_OP_RANDOM_UNIFORM:
        for (int i = 0; i < s->call.in_count; i++)
            if (s->in_bound[i][0] != 0.0) set_all(s->bound[0], out, 1.0);
        return CORNU_OK;
    case CORNU_OP_NEGATIVE: case CORNU_OP_ABSOLUTE: case CORNU_OP_SIGN: case CORNU_OP_FLOOR:
    case CORNU_OP_RELU: case CORNU_OP_STEP: case CORNU_OP_BOUNDED_RELU:
    case CORNU_OP_BOUNDED_STEP: case CORNU_OP_MAXIMUM: case CORNU_OP_MINIMUM:
        return bound_corners(s, 0.0);
    case CORNU_OP_ADD: case CORNU_OP_SUBTRACT:
        s->terms = s->pending;
        return bound_added(s);
    case CORNU_OP_MULTIPLY: case CORNU_OP_SQRT:
        return bound_corners(s, 1.0);
    case CORNU_OP_DIVIDE:
        return bound_quotient(s);
    case CORNU_OP_EXP: case CORNU_OP_LOG: case CORNU_OP_RSQRT: case CORNU_OP_TANH:
    case CORNU_OP_SIGMOID: case CORNU_OP_ERF: case CORNU_OP_SOFTPLUS: case CORNU_OP_ELU:
    case CORNU_OP_POWER:
        return bound_corners(s, 2.0 * 2.5);   /* 2.5 units in the last place: vector.h */
    case CORNU_OP_SIN: case CORNU_OP_COS:
        return bound_wave(s, 2.0 * 2.5);
    case CORNU_OP_IS_FINITE:
        for (int64_t i = 0; i < out; i++) s->bound[0][i] = isfinite(s->in_bound[0][i]) ? 0.0 : 1.0;
        return CORNU_OK;
    case CORNU_OP_COMPARE: return bound_compare(s);
    case CORNU_OP_SELECT:  return bound_select(s);
    case CORNU_OP_CONVERT: {
        s->terms = s->pending;
        const double from = unit_roundoff(s->call.in[0].dtype);
        const double to = unit_roundoff(s->out_type[0].dtype);
        const bool narrows = smallest(s->out_type[0].dtype) > smallest(s->call.in[0].dtype);
        CORNU__TRY(bound_corners(s, from == 0.0 || to > from || narrows ? 1.0 : 0.0));
        for (int64_t i = 0; i < out && s->out_type[0].dtype == CORNU_BOOL; i++)
            if (s->in_bound[0][i] > 0.0 && fabs(s->in[0][i]) <= s->in_bound[0][i])
                s->bound[0][i] = 1.0;   /* zero may lie between the corners */
        return CORNU_OK;
    }
    case CORNU_OP_BROADCAST: case CORNU_OP_RESHAPE: case CORNU_OP_TRANSPOSE: case CORNU_OP_SLICE:
    case CORNU_OP_PAD: case CORNU_OP_CONCAT: case CORNU_OP_FLIP: case CORNU_OP_PACK:
    case CORNU_OP_ALL_REDUCE: case CORNU_OP_REDUCE_SCATTER: case CORNU_OP_ALL_GATHER:
    case CORNU_OP_SHARD_SLICE:  /* of one shard */
    case CORNU_OP_REDUCE_MAX:   /* the largest moves by no more than the largest bound */
        s->terms = s->pending;
        return bound_moved(s);
    case CORNU_OP_REDUCE_SUM:          return bound_sums(s, out ? (double)in / (double)out : 0.0);
    case CORNU_OP_GATHER_GRAD:         return bound_sums(s, (double)count_in(s, 1));
    case CORNU_OP_AVERAGE_POOL2D: case CORNU_OP_AVERAGE_POOL2D_GRAD:
        return bound_sums(s, window_size(s));
    case CORNU_OP_GATHER: case CORNU_OP_ONE_HOT:
        if (s->call.id == CORNU_OP_GATHER) return bound_lookup(s);
        if (!is_exact(s->in_bound[0], in)) set_all(s->bound[0], out, 1.0);
        return CORNU_OK;
    case CORNU_OP_UNIQUE_ROWS:         return bound_unique(s);
    case CORNU_OP_SCATTER_ROWS:        return bound_replaced(s);
    case CORNU_OP_ARGMAX:              return bound_argmax(s);
    case CORNU_OP_MAX_POOL2D:          return bound_max_pool(s);
    case CORNU_OP_MAX_POOL2D_GRAD:     return bound_max_pool_grad(s);
    case CORNU_OP_MATMUL: case CORNU_OP_CONV2D: case CORNU_OP_CONV2D_GRAD_INPUT:
    case CORNU_OP_CONV2D_GRAD_FILTER: case CORNU_OP_GROUPED_CONV2D:
    case CORNU_OP_GROUPED_CONV2D_GRAD_INPUT: case CORNU_OP_GROUPED_CONV2D_GRAD_FILTER:
        return bound_products(s);
    case CORNU_OP_SCAN:                return bound_scan(s);
    default:                           return bound_decomposed(s);
    }
}

CornuStatus bounds_of_op(BoundsStep *s, int shard)
{
    CORNU__TRY(reference(s, s->in, s->out));
    if (s->call.id == CORNU_OP_REPLICA_ID) s->out[0][0] = shard;
    CORNU__TRY(bound_step(s));
    for (int k = 0; k < cornu__result_count(s->call.id, s->call.attributes); k++)
        bound_overflow(s, k);
    return CORNU_OK;
}
