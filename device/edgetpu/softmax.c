/*
 * Softmax of int8 in fixed point: numbers are named by their integer bits, Q5 has 26 fractional
 * bits of 32.
 *
 * Source: LiteRT, tflite/kernels/internal/reference/softmax.h and PreprocessSoftmaxScaling and
 * CalculateInputRadius of quantization_util.cc; gemmlowp, fixedpoint/fixedpoint.h.
 */
#include <math.h>

#include "kernels.h"

enum { DIFFERENCE_BITS = 5, SUM_BITS = 12 };

/* exp(x) in Q0 for x in Q0 of [-1/4, 0): the Taylor series about -1/8 to the fourth power. */
static int32_t exp_of_quarter(int32_t a)
{
    const int32_t constant = 1895147668;   /* exp(-1/8) */
    const int32_t third = 715827883;       /* 1/3 */
    const int32_t x = a + (1 << 28);
    const int32_t x2 = cornu__fixed_product(x, x), x3 = cornu__fixed_product(x2, x);
    const int32_t x4 = cornu__fixed_product(x2, x2);
    /* x^4 / 24 + x^3 / 6 + x^2 / 2 */
    const int32_t higher = cornu__fixed_shift_right(
        cornu__fixed_product(cornu__fixed_shift_right(x4, 2) + x3, third) + x2, 1);
    return constant + cornu__fixed_product(constant, x + higher);
}

/* exp(x) in Q0 for x in Q5 of [-32, 0]: that of the remainder below a quarter, times the powers for
 * the bits of the quarters. */
static int32_t exp_of_negative(int32_t x)
{
    static const int32_t powers[] = {   /* exp(-1/4), exp(-1/2), exp(-1), ... exp(-16) in Q0 */
        1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242
    };
    enum { FRACTION = 31 - DIFFERENCE_BITS, QUARTER = 1 << (FRACTION - 2) };
    if (x == 0) return INT32_MAX;
    const int32_t below = (x & (QUARTER - 1)) - QUARTER, quarters = below - x;
    int32_t       y = exp_of_quarter(cornu__fixed_shift_left(below, DIFFERENCE_BITS));
    for (int i = 0; i < 7; i++)
        if (quarters & QUARTER << i) y = cornu__fixed_product(y, powers[i]);
    return y;
}

/* x << shift, saturated. */
static int32_t raised(int32_t x, int shift)
{
    const int64_t y = (int64_t)x * (1 << shift);
    return y > INT32_MAX ? INT32_MAX : y < INT32_MIN ? INT32_MIN : (int32_t)y;
}

/* 1 / (1 + x) in Q0 for x in Q0 of [0, 1]: Newton's division, three steps. */
static int32_t one_over_one_plus(int32_t x)
{
    const int32_t start = 1515870810, slope = -1010580540;   /* 48/17 and -32/17 in Q2 */
    const int32_t half = (int32_t)(((int64_t)x + INT32_MAX + 1) / 2);
    int32_t       y = start + cornu__fixed_product(half, slope);
    for (int i = 0; i < 3; i++) {
        const int32_t error = (1 << 29) - cornu__fixed_product(half, y);
        y += raised(cornu__fixed_product(y, error), 2);   /* Q4 to Q2 */
    }
    return raised(y, 1);   /* y / 2 in Q1 has the bits of y in Q2 */
}

static int leading_zeros(uint32_t x)
{
    int zeros = 0;
    while (zeros < 32 && !(x >> (31 - zeros))) zeros++;
    return zeros;
}

typedef struct {
    CornuMultiplier by;      /* from differences to Q5 */
    int32_t         least;   /* differences below count as 0 */
} Scaling;

static Scaling scaling_of(double beta, double scale)
{
    Scaling scaling;
    scaling.by = cornu__multiplier(fmin(beta * scale * (1 << (31 - DIFFERENCE_BITS)),
                                        0x1p31 - 1.0));
    const double most = ((1 << DIFFERENCE_BITS) - 1) * ldexp(1.0, 31 - DIFFERENCE_BITS) /
                        ldexp(1.0, scaling.by.shift);
    scaling.least = -(int32_t)fmin(floor(most), INT32_MAX);
    return scaling;
}

/* exps: of the largest less x, in Q0; -1: counts as 0. */
static void softmax_row(const int32_t exps[256], int64_t depth, const int8_t *x, int8_t *y)
{
    int8_t max = CORNU_INT8_MIN;
    for (int64_t i = 0; i < depth; i++) max = x[i] > max ? x[i] : max;

    uint32_t sum = 0;    /* in Q12 */
    for (int64_t i = 0; i < depth; i++)
        if (exps[max - x[i]] >= 0)
            sum += (uint32_t)cornu__fixed_shift_right(exps[max - x[i]], SUM_BITS);

    /* From 512 equal elements on no quotient reaches 1/512, and LiteRT ends the program. */
    const int     zeros = leading_zeros(sum), shift = SUM_BITS - zeros + 31 - 8;
    const int32_t fraction = (int32_t)((sum << zeros) - (UINT32_C(1) << 31));
    const int32_t scale = one_over_one_plus(fraction);
    for (int64_t i = 0; i < depth; i++) {
        const int32_t e = exps[max - x[i]];
        const int32_t to = e < 0 || shift > 31 ? 0 : cornu__fixed_shift_right(
            cornu__fixed_product(scale, e), shift);
        y[i] = (int8_t)cornu__fixed_clamp(to + CORNU_INT8_MIN, CORNU_INT8_MIN, CORNU_INT8_MAX);
    }
}

void cornu__int8_softmax_exps(CornuAffine x, float beta, int32_t exps[256])
{
    const Scaling scaling = scaling_of(beta, x.scale);
    for (int32_t d = 0; d < 256; d++)
        exps[d] = -d >= scaling.least ? exp_of_negative(cornu__fixed_scale(-d, scaling.by)) : -1;
}

void cornu__int8_softmax(CornuAffine x, float beta, int64_t rows, int64_t depth, const int8_t *in,
                         int8_t *y)
{
    int32_t exps[256];
    cornu__int8_softmax_exps(x, beta, exps);
    for (int64_t row = 0; row < rows; row++)
        softmax_row(exps, depth, in + row * depth, y + row * depth);
}
