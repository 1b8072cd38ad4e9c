/*
 * Source: LiteRT, tflite/kernels/{add,sub,mul,activations,kernel_util}.cc for the multipliers,
 * tflite/kernels/internal/reference/integer_ops/{add,mul}.h, leaky_relu.h, requantize.h and
 * quantize.h for the integers, LUTPopulate of tflite/kernels/internal/common.h for tables. Where a
 * factor is rounded to float there before it becomes double, it is here.
 */
#include <math.h>
#include <string.h>

#include "isa/int8.h"
#include "kernels.h"

CornuBounds cornu__int8_bounds(CornuFused activation, CornuAffine y)
{
    const float   low = activation == CORNU_FUSED_RELU_N1_TO_1 ? -1.0f : 0.0f;
    const float   high = activation == CORNU_FUSED_RELU6 ? 6.0f : 1.0f;
    const float   least = roundf(low / y.scale), most = roundf(high / y.scale);
    CornuBounds   bounds = { CORNU_INT8_MIN, CORNU_INT8_MAX };
    if (activation == CORNU_FUSED_NONE) return bounds;
    if (y.zero + least > CORNU_INT8_MIN) bounds.low = y.zero + (int32_t)least;
    if (activation != CORNU_FUSED_RELU && y.zero + most < CORNU_INT8_MAX)
        bounds.high = y.zero + (int32_t)most;
    return bounds;
}

/* ---- Two operands ---- */

/* Sums are made of operands in units of 2^-20 of twice the larger scale. */
enum { SUM_SHIFT = 20 };

void cornu__int8_arithmetic(CornuInt8Binary op, CornuAffine x1, CornuAffine x2, CornuAffine y,
                            CornuFused activation, CornuInt8Arithmetic *to)
{
    const double twice = 2.0f * fmaxf(x1.scale, x2.scale);
    *to = (CornuInt8Arithmetic){
        .op = op, .zero1 = x1.zero, .zero2 = x2.zero, .y_zero = y.zero,
        .bounds = cornu__int8_bounds(activation, y)
    };
    switch (op) {
    case CORNU_INT8_ADD:
    case CORNU_INT8_SUB:
        to->by_terms[0] = cornu__multiplier(x1.scale / twice);
        to->by_terms[1] = cornu__multiplier(x2.scale / twice);
        to->by_y = cornu__multiplier(twice / ((1 << SUM_SHIFT) * y.scale));
        break;
    case CORNU_INT8_MUL:
        to->by_y = cornu__multiplier(x1.scale * x2.scale / y.scale);
        break;
    case CORNU_INT8_PRELU:
        to->by_x1 = cornu__multiplier(x1.scale / y.scale);
        to->by_y = cornu__multiplier(x1.scale * x2.scale / y.scale);
        break;
    case CORNU_INT8_MAXIMUM:
    case CORNU_INT8_MINIMUM:
        break;
    }
}

int32_t cornu__int8_term(const CornuInt8Arithmetic *a, int operand, int32_t x)
{
    const int32_t sign = operand == 1 && a->op == CORNU_INT8_SUB ? -1 : 1;
    const int32_t from_zero = x - (operand == 1 ? a->zero2 : a->zero1);
    return sign * cornu__fixed_scale(from_zero * (1 << SUM_SHIFT), a->by_terms[operand]);
}

/* Elements that a loop converts at a time. */
enum { CHUNK = 256 };

/* A binary operator of int8 in chunks: how they become sums, and these int8 again. */
typedef struct {
    const CornuInt8Arithmetic *a;
    const CornuInt8Loops      *loops;
    CornuInt8Term              terms[2];
    CornuInt8Finish            finish;
    int32_t                    mantissa[CHUNK], left[CHUNK], right[CHUNK];
} Chunks;

static CornuInt8Term term_of(CornuMultiplier by, int32_t zero, int32_t sign)
{
    return (CornuInt8Term){ zero, by.mantissa >> 11, by.mantissa & ((1 << 11) - 1), -by.shift,
                            sign };
}

static void set_chunks(const CornuInt8Arithmetic *a, Chunks *to)
{
    const int32_t left = a->by_y.shift > 0 ? a->by_y.shift : 0;
    const int32_t right = a->by_y.shift > 0 ? 0 : -a->by_y.shift;
    const int64_t largest = a->op == CORNU_INT8_MUL ? 255 * 255 : INT64_C(256) << SUM_SHIFT;
    to->a = a;
    to->loops = cornu__int8_loops();
    to->terms[0] = term_of(a->by_terms[0], a->zero1, 1);
    to->terms[1] = term_of(a->by_terms[1], a->zero2, a->op == CORNU_INT8_SUB ? -1 : 1);
    for (int i = 0; i < CHUNK; i++) {
        to->mantissa[i] = a->by_y.mantissa;
        to->left[i] = left;
        to->right[i] = right;
    }
    to->finish = (CornuInt8Finish){
        NULL, to->mantissa, to->left, to->right, a->y_zero, a->bounds.low, a->bounds.high,
        cornu__int8_is_bounded(largest, left, right, a->y_zero), true, NULL
    };
}

/* Up to a chunk. A step of 0 repeats an operand. */
static void combine(const Chunks *of, int64_t count, const int8_t *x1, int64_t step1,
                    const int8_t *x2, int64_t step2, int8_t *y)
{
    int8_t  repeated1[CHUNK], repeated2[CHUNK];
    int32_t sums[CHUNK];
    if (step1 == 0) x1 = memset(repeated1, *x1, (size_t)count);
    if (step2 == 0) x2 = memset(repeated2, *x2, (size_t)count);
    if (of->a->op != CORNU_INT8_MUL) {
        of->loops->add(of->terms, &of->finish, count, x1, x2, y);
        return;
    }
    of->loops->multiply(of->a->zero1, of->a->zero2, count, x1, x2, sums);
    of->loops->finish(&of->finish, count, sums, y);
}

static void select(const CornuInt8Arithmetic *a, int64_t count, const int8_t *x1, int64_t step1,
                   const int8_t *x2, int64_t step2, int8_t *y)
{
    const bool larger = a->op == CORNU_INT8_MAXIMUM;
    for (int64_t i = 0; i < count; i++) {
        const int8_t first = x1[i * step1], second = x2[i * step2];
        y[i] = (first > second) == larger ? first : second;
    }
}

static void prelu(const CornuInt8Arithmetic *a, int64_t count, const int8_t *x1, int64_t step1,
                  const int8_t *x2, int64_t step2, int8_t *y)
{
    for (int64_t i = 0; i < count; i++) {
        const int32_t x = x1[i * step1] - a->zero1, slope = x2[i * step2] - a->zero2;
        const int32_t to = x >= 0 ? cornu__fixed_scale(x, a->by_x1)
                                  : cornu__fixed_scale(x * slope, a->by_y);
        y[i] = (int8_t)cornu__fixed_clamp(to + a->y_zero, a->bounds.low, a->bounds.high);
    }
}

/* One row along the last axis. */
static void binary_row(const Chunks *of, int64_t count, const int8_t *x1, int64_t step1,
                       const int8_t *x2, int64_t step2, int8_t *y)
{
    const CornuInt8Binary op = of->a->op;
    if (op == CORNU_INT8_MAXIMUM || op == CORNU_INT8_MINIMUM) {
        select(of->a, count, x1, step1, x2, step2, y);
        return;
    }
    if (op == CORNU_INT8_PRELU) {
        prelu(of->a, count, x1, step1, x2, step2, y);
        return;
    }
    for (int64_t i = 0; i < count; i += CHUNK)
        combine(of, count - i < CHUNK ? count - i : CHUNK, x1 + i * step1, step1, x2 + i * step2,
                step2, y + i);
}

static int64_t count_of(int rank, const int64_t *extents)
{
    int64_t count = 1;
    for (int d = 0; d < rank; d++) count *= extents[d];
    return count;
}

void cornu__int8_binary(const CornuInt8Arithmetic *arithmetic, int rank, const int64_t *extents,
                        const int64_t *extents1, const int8_t *x1, const int64_t *extents2,
                        const int8_t *x2, int8_t *y)
{
    Chunks        chunks;
    const int64_t count = count_of(rank, extents);
    set_chunks(arithmetic, &chunks);
    if (count_of(rank, extents1) == count && count_of(rank, extents2) == count) {
        binary_row(&chunks, count, x1, 1, x2, 1, y);
        return;
    }
    int64_t       index[CORNU_INT8_RANK] = { 0 };
    const int64_t inner = rank > 0 ? extents[rank - 1] : 1;
    const int64_t rows = inner > 0 ? count / inner : 0;
    for (int64_t row = 0; row < rows; row++, y += inner) {
        int64_t at1 = 0, at2 = 0;
        for (int d = 0; d < rank - 1; d++) {
            at1 = at1 * extents1[d] + (extents1[d] > 1 ? index[d] : 0);
            at2 = at2 * extents2[d] + (extents2[d] > 1 ? index[d] : 0);
        }
        const int64_t inner1 = rank > 0 ? extents1[rank - 1] : 1;
        const int64_t inner2 = rank > 0 ? extents2[rank - 1] : 1;
        binary_row(&chunks, inner, x1 + at1 * inner1, inner1 > 1, x2 + at2 * inner2, inner2 > 1,
                   y);
        for (int d = rank - 2; d >= 0 && ++index[d] == extents[d]; d--) index[d] = 0;
    }
}

/* ---- Tables ---- */

void cornu__int8_table_of(CornuInt8Function *function, CornuAffine x, CornuAffine y,
                          CornuInt8Table *table)
{
    const float inverse = 1 / y.scale;
    for (int32_t i = 0; i < 256; i++) {
        const float real = x.scale * (float)(i + CORNU_INT8_MIN - x.zero);
        const float rounded = roundf(function(real) * inverse);
        /* In float: integers up to 2^24 are exact, and what is beyond saturates. */
        table->y[i] = (int8_t)fminf(fmaxf(rounded + (float)y.zero, CORNU_INT8_MIN),
                                    CORNU_INT8_MAX);
    }
}

static float logistic_of(float x) { return 1.0f / (1.0f + expf(-x)); }

void cornu__int8_table_logistic(CornuAffine x, CornuAffine y, CornuInt8Table *table)
{
    cornu__int8_table_of(logistic_of, x, y, table);
}

void cornu__int8_table_tanh(CornuAffine x, CornuAffine y, CornuInt8Table *table)
{
    cornu__int8_table_of(tanhf, x, y, table);
}

void cornu__int8_table_exp(CornuAffine x, CornuAffine y, CornuInt8Table *table)
{
    cornu__int8_table_of(expf, x, y, table);
}

static float elu_of(float x) { return x < 0.0f ? expm1f(x) : x; }

void cornu__int8_table_elu(CornuAffine x, CornuAffine y, CornuInt8Table *table)
{
    cornu__int8_table_of(elu_of, x, y, table);
}

/* x Phi(x), with the constants rounded to f32 as LiteRT has them. */
static float gelu_of(float x) { return 0.5f * x * erfcf(x * -0x1.6a09e6p-1f); }

static float gelu_by_tanh(float x)
{
    return 0.5f * x * (1.0f + tanhf(0x1.988454p-1f * (x + 0.044715f * x * x * x)));
}

void cornu__int8_table_gelu(bool approximate, CornuAffine x, CornuAffine y, CornuInt8Table *table)
{
    cornu__int8_table_of(approximate ? gelu_by_tanh : gelu_of, x, y, table);
}

/* y = x by `positive`, or by `negative` times `sign` where x is below 0. */
static void scale_table(CornuMultiplier negative, int sign, CornuMultiplier positive,
                        CornuBounds bounds, CornuAffine x, CornuAffine y, CornuInt8Table *table)
{
    for (int32_t i = 0; i < 256; i++) {
        const int32_t from = i + CORNU_INT8_MIN - x.zero;
        const int32_t to = from >= 0 ? cornu__fixed_scale(from, positive)
                                     : sign * cornu__fixed_scale(from, negative);
        table->y[i] = (int8_t)cornu__fixed_clamp(to + y.zero, bounds.low, bounds.high);
    }
}

void cornu__int8_table_relu(CornuFused activation, CornuAffine x, CornuAffine y,
                            CornuInt8Table *table)
{
    const CornuMultiplier by = cornu__multiplier(x.scale / y.scale);
    scale_table(by, 1, by, cornu__int8_bounds(activation, y), x, y, table);
}

void cornu__int8_table_leaky_relu(float alpha, CornuAffine x, CornuAffine y, CornuInt8Table *table)
{
    const CornuMultiplier positive = cornu__multiplier(x.scale / y.scale);
    const CornuMultiplier negative = cornu__multiplier(x.scale * fabsf(alpha) / y.scale);
    scale_table(negative, alpha < 0 ? -1 : 1, positive, cornu__int8_bounds(CORNU_FUSED_NONE, y), x,
                y, table);
}

void cornu__int8_table_requantize(CornuAffine x, CornuAffine y, CornuInt8Table *table)
{
    const CornuMultiplier by = cornu__multiplier((double)x.scale / (double)y.scale);
    scale_table(by, 1, by, cornu__int8_bounds(CORNU_FUSED_NONE, y), x, y, table);
}

void cornu__int8_map(const CornuInt8Table *table, int64_t count, const int8_t *x, int8_t *y)
{
    for (int64_t i = 0; i < count; i++) y[i] = table->y[x[i] - CORNU_INT8_MIN];
}

/* ---- To and from float ---- */

void cornu__int8_quantize(CornuAffine y, int64_t count, const float *in, int8_t *out)
{
    for (int64_t i = 0; i < count; i++) {
        const float rounded = roundf(in[i] / y.scale) + (float)y.zero;
        out[i] = (int8_t)(rounded != rounded ? (float)y.zero
                          : fminf(fmaxf(rounded, CORNU_INT8_MIN), CORNU_INT8_MAX));
    }
}

void cornu__int8_dequantize(CornuAffine x, int64_t count, const int8_t *in, float *out)
{
    const double scale = x.scale;
    for (int64_t i = 0; i < count; i++) out[i] = (float)(scale * (in[i] - x.zero));
}
