/*
 * Elementwise ops on f32, see vector.h, whose error bounds, in units in the last place (ULP), the
 * functions below keep.
 *
 * Reference: libm in double; tests/device/host/machine/test_vector.c compares every op.
 * Source: polynomials of Cephes, and of N. Juffa where a function says so.
 * Gain: not measured on its own.
 */
#include <math.h>
#include <string.h>

#include "../exponential.h"
#include "vector_loop.h"

/* map1_f32 of a function of registers. */
CORNU__INLINE void map1_lanes(const CornuVectorCall *call, int64_t count, Lanes (*f)(Lanes))
{
    const float *x = call->in[0];
    float       *y = call->out[0];
    for (int64_t i = 0; i < count; i += LANES) store(y + i, f(load(x + i)));
}

/* ---- Exponentials: the others are in exponential.h ---- */

/* 1.5 ULP. exp of a polynomial beyond 475/512, an odd polynomial within; the
 * approximation of N. Juffa, "A more accurate single precision error function". */
INLINE Lanes erf_of(Lanes x)
{
    const Lanes t = min_of(all(4.0f), absolute(x)), square = t * t;
    Lanes r = t * -1.72853470e-5f + 3.83197126e-4f;
    const Lanes u = t * -3.88396438e-3f + 2.42546219e-2f;
    r = r * square + u;
    r = r * t - 1.06777877e-1f;
    r = r * t - 6.34846687e-1f;
    r = r * t - 1.28717512e-1f;
    r = r * t - t;
    const Lanes far = signed_as(1.0f - exp_between(r), x);   /* r is between -17 and 0 */
    Lanes p = square * -5.96761703e-4f + 4.99119423e-3f;
    p = p * square - 2.67681349e-2f;
    p = p * square + 1.12819925e-1f;
    p = p * square - 3.76125336e-1f;
    p = p * square + 1.28379166e-1f;
    return choose(t > 0.927734375f, far, p * x + x);
}

/* ---- Logarithms ---- */

/* 1 ULP. x = 2^n (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)); the series of FreeBSD's logf
 * in s = f / (2 + f). */
static inline float log_of(float x)
{
    float    normal = x < 0x1p-126f ? x * 0x1p25f : x;
    int32_t  n = (int32_t)(bits_of(normal) - 0x3f3504f3u) >> 23;
    float    f = float_of(bits_of(normal) - ((uint32_t)n << 23)) - 1.0f;
    float    s = f / (2.0f + f), z = s * s, half = 0.5f * f * f;
    float    r = z * (0.28498786688f + z * 0.24279078841f) + 0.40000972152f;
    r = z * (z * r + 0.66666662693f);
    float    e = (float)(x < 0x1p-126f ? n - 25 : n);
    float    y = s * (half + r) + e * 9.0580006145e-6f - half + f + e * 6.9313812256e-1f;
    y = x == INFINITY ? x : y;
    y = x == 0.0f ? -INFINITY : y;
    return x >= 0.0f ? y : NAN;
}

/* 2 ULP. max(x, 0) + log(1 + e) with e = exp(-|x|), at most 1; the part of e lost by rounding 1 + e
 * is added to first order. */
INLINE Lanes softplus_of(Lanes x)
{
    const Lanes e = exp_of(-absolute(x)), u = e + 1.0f, lost = (e - (u - 1.0f)) / u;
    float       logs[LANES];   /* which compilers make a register again */
    store(logs, u);
    CORNU__SIMD for (int n = 0; n < LANES; n++) logs[n] = log_of(logs[n]);
    return max_of(all(0.0f), x) + (load(logs) + lost);
}

/* ---- Sine and cosine ---- */

/* 1 ULP. x = n pi / 2 + r in double, whose 53 bits leave r accurate while |x| is below 2^28;
 * larger, infinite and NaN angles go to libm (sin_f32, cos_f32). */
static const float far_angle = 0x1p28f;

static inline float sine(float x, int32_t quarter_turns)
{
    double  angle = fabsf(x) < far_angle ? (double)x : 0.0;
    double  shifted = angle * 0x1.45f306dc9c883p-1 + 0x1.8p52;
    double  whole = shifted - 0x1.8p52;
    int32_t n = (int32_t)whole + quarter_turns;
    double  r = (angle - whole * 0x1.921fb50000000p0) - whole * 0x1.110b4611a6263p-26;
    double  z = r * r;
    double  s = -0.16666654943701084 + z * (0.008332178146138854 + z * -1.9517298981385725e-4);
    double  c = 0.04166664568298827 + z * (-0.001388731625493765 + z * 2.443315711809948e-5);
    double  y = n & 1 ? 1.0 - 0.5 * z + z * z * c : r + r * z * s;
    return (float)(n & 2 ? -y : y);
}

static inline float sin_of(float x) { return x == 0.0f ? x : sine(x, 0); }
static inline float cos_of(float x) { return sine(x, 1); }

/* ---- Simple ones ---- */

static inline float negative_of(float x) { return -x; }
static inline float absolute_of(float x) { return fabsf(x); }
static inline float sign_of(float x) { return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x; }
static inline float floor_of(float x) { return floorf(x); }
static inline float sqrt_of(float x) { return sqrtf(x); }
static inline float rsqrt_of(float x) { return 1.0f / sqrtf(x); }
static inline float relu_of(float x) { return x <= 0.0f ? 0.0f : x; }
static inline float step_of(float x) { return x > 0.0f ? 1.0f : 0.0f; }
static inline float add_of(float a, float b) { return a + b; }
static inline float subtract_of(float a, float b) { return a - b; }
static inline float multiply_of(float a, float b) { return a * b; }
static inline float divide_of(float a, float b) { return a / b; }
/* NaN if either is NaN */
static inline float maximum_of(float a, float b) { return ((a > b) | (a != a)) ? a : b; }
static inline float minimum_of(float a, float b) { return ((a < b) | (a != a)) ? a : b; }
static inline int equal(float a, float b) { return a == b; }
static inline int not_equal(float a, float b) { return a != b; }
static inline int less(float a, float b) { return a < b; }
static inline int less_equal(float a, float b) { return a <= b; }
static inline int greater(float a, float b) { return a > b; }
static inline int greater_equal(float a, float b) { return a >= b; }

/* ---- Their loops ---- */

static void negative_f32(const CornuVectorCall *c, int64_t n) { map1_f32(c, n, negative_of); }
static void absolute_f32(const CornuVectorCall *c, int64_t n) { map1_f32(c, n, absolute_of); }
static void sign_f32(const CornuVectorCall *c, int64_t n) { map1_f32(c, n, sign_of); }
static void floor_f32(const CornuVectorCall *c, int64_t n) { map1_f32(c, n, floor_of); }
static void exp_f32(const CornuVectorCall *c, int64_t n) { map1_lanes(c, n, exp_of); }
static void log_f32(const CornuVectorCall *c, int64_t n) { map1_f32(c, n, log_of); }
static void sqrt_f32(const CornuVectorCall *c, int64_t n) { map1_f32(c, n, sqrt_of); }
static void rsqrt_f32(const CornuVectorCall *c, int64_t n) { map1_f32(c, n, rsqrt_of); }
static void tanh_f32(const CornuVectorCall *c, int64_t n) { map1_lanes(c, n, tanh_of); }
static void sigmoid_f32(const CornuVectorCall *c, int64_t n) { map1_lanes(c, n, sigmoid_of); }
static void erf_f32(const CornuVectorCall *c, int64_t n) { map1_lanes(c, n, erf_of); }
static void softplus_f32(const CornuVectorCall *c, int64_t n) { map1_lanes(c, n, softplus_of); }
static void relu_f32(const CornuVectorCall *c, int64_t n) { map1_f32(c, n, relu_of); }
static void step_f32(const CornuVectorCall *c, int64_t n) { map1_f32(c, n, step_of); }
static void add_f32(const CornuVectorCall *c, int64_t n) { map2_f32(c, n, add_of); }
static void subtract_f32(const CornuVectorCall *c, int64_t n) { map2_f32(c, n, subtract_of); }
static void multiply_f32(const CornuVectorCall *c, int64_t n) { map2_f32(c, n, multiply_of); }
static void divide_f32(const CornuVectorCall *c, int64_t n) { map2_f32(c, n, divide_of); }
static void maximum_f32(const CornuVectorCall *c, int64_t n) { map2_f32(c, n, maximum_of); }
static void minimum_f32(const CornuVectorCall *c, int64_t n) { map2_f32(c, n, minimum_of); }
static void equal_f32(const CornuVectorCall *c, int64_t n) { test2_f32(c, n, equal); }
static void not_equal_f32(const CornuVectorCall *c, int64_t n) { test2_f32(c, n, not_equal); }
static void less_f32(const CornuVectorCall *c, int64_t n) { test2_f32(c, n, less); }
static void less_equal_f32(const CornuVectorCall *c, int64_t n) { test2_f32(c, n, less_equal); }
static void greater_f32(const CornuVectorCall *c, int64_t n) { test2_f32(c, n, greater); }
static void greater_equal_f32(const CornuVectorCall *c, int64_t n)
{
    test2_f32(c, n, greater_equal);
}

/* The angles that `sine` cannot reduce, one by one; x was saved, as y may overwrite it. */
static void far_angles(const float *x, float *y, int64_t count, float (*f)(float))
{
    for (int64_t i = 0; i < count; i++)
        if (!(fabsf(x[i]) < far_angle)) y[i] = f(x[i]);
}

static void sin_f32(const CornuVectorCall *call, int64_t count)
{
    float x[CORNU_BLOCK];
    memcpy(x, call->in[0], (size_t)count * sizeof *x);
    map1_f32(call, count, sin_of);
    far_angles(x, call->out[0], count, sinf);
}

static void cos_f32(const CornuVectorCall *call, int64_t count)
{
    float x[CORNU_BLOCK];
    memcpy(x, call->in[0], (size_t)count * sizeof *x);
    map1_f32(call, count, cos_of);
    far_angles(x, call->out[0], count, cosf);
}

/* libm's, one by one: powers are of scalars of a schedule, not of activations. */
static void power_f32(const CornuVectorCall *call, int64_t count)
{
    const float *a = call->in[0], *b = call->in[1];
    float       *y = call->out[0];
    for (int64_t i = 0; i < count; i++) y[i] = powf(a[i], b[i]);
}

static void elu_f32(const CornuVectorCall *call, int64_t count)
{
    const float *x = call->in[0];
    float       *y = call->out[0], alpha = (float)call->attributes[0];
    for (int64_t i = 0; i < count; i += LANES) {
        const Lanes at = load(x + i), below = min_of(all(0.0f), at);
        store(y + i, choose(at < 0.0f, expm1_of_negative(below) * alpha, at));
    }
}

static void bounded_relu_f32(const CornuVectorCall *call, int64_t count)
{
    const float *x = call->in[0], bound = (float)call->attributes[0];
    float       *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++) y[i] = relu_of(x[i] >= bound ? bound : x[i]);
}

static void bounded_step_f32(const CornuVectorCall *call, int64_t count)
{
    const float *x = call->in[0], bound = (float)call->attributes[0];
    float       *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++)
        y[i] = ((x[i] > 0.0f) & (x[i] < bound)) ? 1.0f : 0.0f;
}

static void is_finite_f32(const CornuVectorCall *call, int64_t count)
{
    const float *x = call->in[0];
    uint8_t     *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++) y[i] = fabsf(x[i]) < INFINITY;
}

static void select_f32(const CornuVectorCall *call, int64_t count)
{
    const uint8_t *condition = call->in[0];
    const float   *a = call->in[1], *b = call->in[2];
    float         *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++) y[i] = condition[i] ? a[i] : b[i];
}

/* ---- Optimizer updates: in w, slots, g, rate; out w, slots; formulas in tensor/ops.h ---- */

static void momentum_f32(const CornuVectorCall *call, int64_t count)
{
    const float *w = call->in[0], *m = call->in[1], *g = call->in[2], *rate = call->in[3];
    float       *new_w = call->out[0], *new_m = call->out[1];
    float        momentum = (float)call->attributes[0];
    int          nesterov = call->attributes[1] != 0.0;
    CORNU__SIMD for (int64_t i = 0; i < count; i++) {
        float step = rate[i] * g[i], moved = momentum * m[i] - step;
        float w_i = w[i] + (nesterov ? momentum * moved - step : moved);
        new_m[i] = moved;
        new_w[i] = w_i;
    }
}

static void rmsprop_f32(const CornuVectorCall *call, int64_t count)
{
    const float *w = call->in[0], *v = call->in[1], *g = call->in[2], *rate = call->in[3];
    float       *new_w = call->out[0], *new_v = call->out[1];
    float        rho = (float)call->attributes[0], rest = (float)call->attributes[1];
    float        epsilon = (float)call->attributes[2];
    CORNU__SIMD for (int64_t i = 0; i < count; i++) {
        float v_i = rho * v[i] + rest * (g[i] * g[i]);
        float w_i = w[i] - rate[i] * g[i] / sqrtf(v_i + epsilon);
        new_v[i] = v_i;
        new_w[i] = w_i;
    }
}

static void adam_f32(const CornuVectorCall *call, int64_t count)
{
    const float *w = call->in[0], *m = call->in[1], *v = call->in[2], *g = call->in[3];
    const float *rate = call->in[4];
    float       *new_w = call->out[0], *new_m = call->out[1], *new_v = call->out[2];
    float        rest_1 = (float)call->attributes[0];   /* 1 - beta */
    float        rest_2 = (float)call->attributes[1];
    float        epsilon = (float)call->attributes[2];
    CORNU__SIMD for (int64_t i = 0; i < count; i++) {
        float m_i = m[i] + (g[i] - m[i]) * rest_1;
        float v_i = v[i] + (g[i] * g[i] - v[i]) * rest_2;
        float w_i = w[i] - rate[i] * m_i / (sqrtf(v_i) + epsilon);
        new_m[i] = m_i;
        new_v[i] = v_i;
        new_w[i] = w_i;
    }
}

/* ---- To other classes ---- */

static void f32_to_f64(const CornuVectorCall *call, int64_t count)
{
    const float *x = call->in[0];
    double      *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++) y[i] = x[i];
}

/* Toward zero; saturated, NaN gives 0. The largest i64 is not a float: from 2^63 on it is set. */
static void f32_to_i64(const CornuVectorCall *call, int64_t count)
{
    const float *x = call->in[0];
    int64_t     *y = call->out[0];
    for (int64_t i = 0; i < count; i++)
        y[i] = x[i] >= 0x1p63f ? INT64_MAX
             : x[i] < -0x1p63f ? INT64_MIN
             : x[i] != x[i]    ? 0
                               : (int64_t)x[i];
}

static void f32_to_bool(const CornuVectorCall *call, int64_t count)
{
    const float *x = call->in[0];
    uint8_t     *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++) y[i] = x[i] != 0.0f;
}

const CornuVectorClass CORNU__PER_ISA(cornu__class_f32) = {
    .op = {
        [CORNU_OP_NEGATIVE] = negative_f32, [CORNU_OP_ABSOLUTE] = absolute_f32,
        [CORNU_OP_SIGN] = sign_f32,         [CORNU_OP_FLOOR] = floor_f32,
        [CORNU_OP_EXP] = exp_f32,           [CORNU_OP_LOG] = log_f32,
        [CORNU_OP_SQRT] = sqrt_f32,         [CORNU_OP_RSQRT] = rsqrt_f32,
        [CORNU_OP_SIN] = sin_f32,           [CORNU_OP_COS] = cos_f32,
        [CORNU_OP_TANH] = tanh_f32,         [CORNU_OP_SIGMOID] = sigmoid_f32,
        [CORNU_OP_ERF] = erf_f32,           [CORNU_OP_SOFTPLUS] = softplus_f32,
        [CORNU_OP_RELU] = relu_f32,         [CORNU_OP_ELU] = elu_f32,
        [CORNU_OP_STEP] = step_f32,         [CORNU_OP_ADD] = add_f32,
        [CORNU_OP_BOUNDED_RELU] = bounded_relu_f32, [CORNU_OP_BOUNDED_STEP] = bounded_step_f32,
        [CORNU_OP_SUBTRACT] = subtract_f32, [CORNU_OP_MULTIPLY] = multiply_f32,
        [CORNU_OP_DIVIDE] = divide_f32,     [CORNU_OP_MAXIMUM] = maximum_f32,
        [CORNU_OP_MINIMUM] = minimum_f32,   [CORNU_OP_POWER] = power_f32,
        [CORNU_OP_IS_FINITE] = is_finite_f32, [CORNU_OP_SELECT] = select_f32,
        [CORNU_OP_MOMENTUM_UPDATE] = momentum_f32,
        [CORNU_OP_RMSPROP_UPDATE] = rmsprop_f32,
        [CORNU_OP_ADAM_UPDATE] = adam_f32,
    },
    .compare = {
        [CORNU_EQUAL] = equal_f32,     [CORNU_NOT_EQUAL] = not_equal_f32,
        [CORNU_LESS] = less_f32,       [CORNU_LESS_EQUAL] = less_equal_f32,
        [CORNU_GREATER] = greater_f32, [CORNU_GREATER_EQUAL] = greater_equal_f32,
    },
    .convert = {
        [CORNU_CLASS_F64] = f32_to_f64, [CORNU_CLASS_I64] = f32_to_i64,
        [CORNU_CLASS_BOOL] = f32_to_bool,
    },
};
