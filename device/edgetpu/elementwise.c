/*
 * Source: LiteRT, tflite/kernels/{add,sub,mul,activations,kernel_util}.cc for the multipliers,
 * tflite/kernels/internal/reference/integer_ops/{add,mul}.h, leaky_relu.h, requantize.h and
 * quantize.h for the integers, LUTPopulate of tflite/kernels/internal/common.h for tables. Where a
 * factor is rounded to float there before it becomes double, it is here.
 */
#include <math.h>

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

CornuInt8Arithmetic cornu__int8_arithmetic(CornuInt8Binary op, CornuAffine x1, CornuAffine x2,
                                           CornuAffine y, CornuFused activation)
{
    CornuInt8Arithmetic a = {
        .op = op, .zero1 = x1.zero, .zero2 = x2.zero, .y_zero = y.zero,
        .bounds = cornu__int8_bounds(activation, y)
    };
    const double twice = 2.0f * fmaxf(x1.scale, x2.scale);
    switch (op) {
    case CORNU_INT8_ADD:
    case CORNU_INT8_SUB:
        a.by1 = cornu__multiplier(x1.scale / twice);
        a.by2 = cornu__multiplier(x2.scale / twice);
        a.by_y = cornu__multiplier(twice / ((1 << SUM_SHIFT) * y.scale));
        break;
    case CORNU_INT8_MUL:
        a.by_y = cornu__multiplier(x1.scale * x2.scale / y.scale);
        break;
    case CORNU_INT8_MAXIMUM:
    case CORNU_INT8_MINIMUM:
        break;
    }
    return a;
}

static inline int8_t finish(const CornuInt8Arithmetic *a, int32_t x)
{
    const int32_t y = cornu__fixed_scale(x, a->by_y) + a->y_zero;
    return (int8_t)cornu__fixed_clamp(y, a->bounds.low, a->bounds.high);
}

static inline int32_t sum_operand(int8_t x, int32_t zero, CornuMultiplier by)
{
    return cornu__fixed_scale((x - zero) * (1 << SUM_SHIFT), by);
}

static inline int8_t binary(const CornuInt8Arithmetic *a, int8_t x1, int8_t x2)
{
    switch (a->op) {
    case CORNU_INT8_ADD:
        return finish(a, sum_operand(x1, a->zero1, a->by1) + sum_operand(x2, a->zero2, a->by2));
    case CORNU_INT8_SUB:
        return finish(a, sum_operand(x1, a->zero1, a->by1) - sum_operand(x2, a->zero2, a->by2));
    case CORNU_INT8_MUL:     return finish(a, (x1 - a->zero1) * (x2 - a->zero2));
    case CORNU_INT8_MAXIMUM: return x1 > x2 ? x1 : x2;
    case CORNU_INT8_MINIMUM: return x1 < x2 ? x1 : x2;
    }
    return 0;
}

/* One row along the last axis; a step of 0 repeats an operand. */
static void binary_row(const CornuInt8Arithmetic *a, int64_t count, const int8_t *x1,
                       int64_t step1, const int8_t *x2, int64_t step2, int8_t *y)
{
    for (int64_t i = 0; i < count; i++) y[i] = binary(a, x1[i * step1], x2[i * step2]);
}

void cornu__int8_binary(const CornuInt8Arithmetic *arithmetic, int rank, const int64_t *extents,
                        const int64_t *extents1, const int8_t *x1, const int64_t *extents2,
                        const int8_t *x2, int8_t *y)
{
    int64_t index[CORNU_INT8_RANK] = { 0 };
    const int64_t inner = rank > 0 ? extents[rank - 1] : 1;
    int64_t rows = 1;
    for (int d = 0; d < rank - 1; d++) rows *= extents[d];
    for (int64_t row = 0; row < rows; row++, y += inner) {
        int64_t at1 = 0, at2 = 0;
        for (int d = 0; d < rank - 1; d++) {
            at1 = at1 * extents1[d] + (extents1[d] > 1 ? index[d] : 0);
            at2 = at2 * extents2[d] + (extents2[d] > 1 ? index[d] : 0);
        }
        const int64_t inner1 = rank > 0 ? extents1[rank - 1] : 1;
        const int64_t inner2 = rank > 0 ? extents2[rank - 1] : 1;
        binary_row(arithmetic, inner, x1 + at1 * inner1, inner1 > 1, x2 + at2 * inner2,
                   inner2 > 1, y);
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
    scale_table(negative, alpha < 0 ? -1 : 1, positive, cornu__int8_bounds(CORNU_FUSED_NONE, y), x, y, table);
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
