/*
 * Elementwise ops on f64, i64 and bool, and loads, stores and rounding of all dtypes; see vector.h.
 * Functions of f64 are libm's.
 *
 * Reference: device/ops/elementwise.c; tests/device/host/machine/test_vector.c and
 *     tests/device/host/run/test_executor.c compare them.
 * Source: own.
 * Gain: f16 converted by vector loops, mnist_cnn at 1024 in mixed_float16 on cpu: 590 ms of
 *     processor time a step, then 243.
 */
#include <math.h>
#include <string.h>

#include "../../../type.h"
#include "../../machine/bf16.h"
#include "vector_loop.h"

/* ---- f64 ---- */

static inline double negative_of(double x) { return -x; }
static inline double absolute_of(double x) { return fabs(x); }
static inline double sign_of(double x) { return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x; }
static inline double sqrt_of(double x) { return sqrt(x); }
static inline double rsqrt_of(double x) { return 1.0 / sqrt(x); }
static inline double relu_of(double x) { return x <= 0.0 ? 0.0 : x; }
static inline double step_of(double x) { return x > 0.0 ? 1.0 : 0.0; }
static inline double sigmoid_of(double x) { return 1.0 / (1.0 + exp(-x)); }
static inline double softplus_of(double x)
{
    return (x < 0.0 ? 0.0 : x) + log1p(exp(-fabs(x)));
}
static inline double add_of(double a, double b) { return a + b; }
static inline double subtract_of(double a, double b) { return a - b; }
static inline double multiply_of(double a, double b) { return a * b; }
static inline double divide_of(double a, double b) { return a / b; }
static inline double maximum_of(double a, double b) { return ((a > b) | (a != a)) ? a : b; }
static inline double minimum_of(double a, double b) { return ((a < b) | (a != a)) ? a : b; }
static inline int equal(double a, double b) { return a == b; }
static inline int not_equal(double a, double b) { return a != b; }
static inline int less(double a, double b) { return a < b; }
static inline int less_equal(double a, double b) { return a <= b; }
static inline int greater(double a, double b) { return a > b; }
static inline int greater_equal(double a, double b) { return a >= b; }

/* Calls of libm are not vectorized. */
static void libm_f64(const CornuVectorCall *call, int64_t count, double (*f)(double))
{
    const double *x = call->in[0];
    double       *y = call->out[0];
    for (int64_t i = 0; i < count; i++) y[i] = f(x[i]);
}

static void power_f64(const CornuVectorCall *call, int64_t count)
{
    const double *a = call->in[0], *b = call->in[1];
    double       *y = call->out[0];
    for (int64_t i = 0; i < count; i++) y[i] = pow(a[i], b[i]);
}

static void negative_f64(const CornuVectorCall *c, int64_t n) { map1_f64(c, n, negative_of); }
static void absolute_f64(const CornuVectorCall *c, int64_t n) { map1_f64(c, n, absolute_of); }
static void sign_f64(const CornuVectorCall *c, int64_t n) { map1_f64(c, n, sign_of); }
static void floor_f64(const CornuVectorCall *c, int64_t n) { libm_f64(c, n, floor); }
static void exp_f64(const CornuVectorCall *c, int64_t n) { libm_f64(c, n, exp); }
static void log_f64(const CornuVectorCall *c, int64_t n) { libm_f64(c, n, log); }
static void sqrt_f64(const CornuVectorCall *c, int64_t n) { map1_f64(c, n, sqrt_of); }
static void rsqrt_f64(const CornuVectorCall *c, int64_t n) { map1_f64(c, n, rsqrt_of); }
static void sin_f64(const CornuVectorCall *c, int64_t n) { libm_f64(c, n, sin); }
static void cos_f64(const CornuVectorCall *c, int64_t n) { libm_f64(c, n, cos); }
static void tanh_f64(const CornuVectorCall *c, int64_t n) { libm_f64(c, n, tanh); }
static void sigmoid_f64(const CornuVectorCall *c, int64_t n) { libm_f64(c, n, sigmoid_of); }
static void erf_f64(const CornuVectorCall *c, int64_t n) { libm_f64(c, n, erf); }
static void softplus_f64(const CornuVectorCall *c, int64_t n) { libm_f64(c, n, softplus_of); }
static void relu_f64(const CornuVectorCall *c, int64_t n) { map1_f64(c, n, relu_of); }
static void step_f64(const CornuVectorCall *c, int64_t n) { map1_f64(c, n, step_of); }
static void add_f64(const CornuVectorCall *c, int64_t n) { map2_f64(c, n, add_of); }
static void subtract_f64(const CornuVectorCall *c, int64_t n) { map2_f64(c, n, subtract_of); }
static void multiply_f64(const CornuVectorCall *c, int64_t n) { map2_f64(c, n, multiply_of); }
static void divide_f64(const CornuVectorCall *c, int64_t n) { map2_f64(c, n, divide_of); }
static void maximum_f64(const CornuVectorCall *c, int64_t n) { map2_f64(c, n, maximum_of); }
static void minimum_f64(const CornuVectorCall *c, int64_t n) { map2_f64(c, n, minimum_of); }
static void equal_f64(const CornuVectorCall *c, int64_t n) { test2_f64(c, n, equal); }
static void not_equal_f64(const CornuVectorCall *c, int64_t n) { test2_f64(c, n, not_equal); }
static void less_f64(const CornuVectorCall *c, int64_t n) { test2_f64(c, n, less); }
static void less_equal_f64(const CornuVectorCall *c, int64_t n) { test2_f64(c, n, less_equal); }
static void greater_f64(const CornuVectorCall *c, int64_t n) { test2_f64(c, n, greater); }
static void greater_equal_f64(const CornuVectorCall *c, int64_t n)
{
    test2_f64(c, n, greater_equal);
}

static void elu_f64(const CornuVectorCall *call, int64_t count)
{
    const double *x = call->in[0];
    double       *y = call->out[0], alpha = call->attributes[0];
    for (int64_t i = 0; i < count; i++) y[i] = x[i] > 0.0 ? x[i] : alpha * expm1(x[i]);
}

static void bounded_relu_f64(const CornuVectorCall *call, int64_t count)
{
    const double *x = call->in[0], bound = call->attributes[0];
    double       *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++) y[i] = relu_of(x[i] >= bound ? bound : x[i]);
}

static void bounded_step_f64(const CornuVectorCall *call, int64_t count)
{
    const double *x = call->in[0], bound = call->attributes[0];
    double       *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++)
        y[i] = ((x[i] > 0.0) & (x[i] < bound)) ? 1.0 : 0.0;
}

static void is_finite_f64(const CornuVectorCall *call, int64_t count)
{
    const double *x = call->in[0];
    uint8_t      *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++) y[i] = fabs(x[i]) < (double)INFINITY;
}

static void select_f64(const CornuVectorCall *call, int64_t count)
{
    const uint8_t *condition = call->in[0];
    const double  *a = call->in[1], *b = call->in[2];
    double        *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++) y[i] = condition[i] ? a[i] : b[i];
}

static void f64_to_f32(const CornuVectorCall *call, int64_t count)
{
    const double *x = call->in[0];
    float        *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++) y[i] = (float)x[i];
}

/* Toward zero; saturated, NaN gives 0. */
static void f64_to_i64(const CornuVectorCall *call, int64_t count)
{
    const double *x = call->in[0];
    int64_t      *y = call->out[0];
    for (int64_t i = 0; i < count; i++)
        y[i] = x[i] >= 0x1p63 ? INT64_MAX
             : x[i] < -0x1p63 ? INT64_MIN
             : x[i] != x[i]   ? 0
                              : (int64_t)x[i];
}

static void f64_to_bool(const CornuVectorCall *call, int64_t count)
{
    const double *x = call->in[0];
    uint8_t      *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++) y[i] = x[i] != 0.0;
}

const CornuVectorClass CORNU__PER_ISA(cornu__class_f64) = {
    .op = {
        [CORNU_OP_NEGATIVE] = negative_f64, [CORNU_OP_ABSOLUTE] = absolute_f64,
        [CORNU_OP_SIGN] = sign_f64,         [CORNU_OP_FLOOR] = floor_f64,
        [CORNU_OP_EXP] = exp_f64,           [CORNU_OP_LOG] = log_f64,
        [CORNU_OP_SQRT] = sqrt_f64,         [CORNU_OP_RSQRT] = rsqrt_f64,
        [CORNU_OP_SIN] = sin_f64,           [CORNU_OP_COS] = cos_f64,
        [CORNU_OP_TANH] = tanh_f64,         [CORNU_OP_SIGMOID] = sigmoid_f64,
        [CORNU_OP_ERF] = erf_f64,           [CORNU_OP_SOFTPLUS] = softplus_f64,
        [CORNU_OP_RELU] = relu_f64,         [CORNU_OP_ELU] = elu_f64,
        [CORNU_OP_STEP] = step_f64,         [CORNU_OP_ADD] = add_f64,
        [CORNU_OP_BOUNDED_RELU] = bounded_relu_f64, [CORNU_OP_BOUNDED_STEP] = bounded_step_f64,
        [CORNU_OP_SUBTRACT] = subtract_f64, [CORNU_OP_MULTIPLY] = multiply_f64,
        [CORNU_OP_DIVIDE] = divide_f64,     [CORNU_OP_MAXIMUM] = maximum_f64,
        [CORNU_OP_MINIMUM] = minimum_f64,   [CORNU_OP_POWER] = power_f64,
        [CORNU_OP_IS_FINITE] = is_finite_f64, [CORNU_OP_SELECT] = select_f64,
    },
    .compare = {
        [CORNU_EQUAL] = equal_f64,     [CORNU_NOT_EQUAL] = not_equal_f64,
        [CORNU_LESS] = less_f64,       [CORNU_LESS_EQUAL] = less_equal_f64,
        [CORNU_GREATER] = greater_f64, [CORNU_GREATER_EQUAL] = greater_equal_f64,
    },
    .convert = {
        [CORNU_CLASS_F32] = f64_to_f32, [CORNU_CLASS_I64] = f64_to_i64,
        [CORNU_CLASS_BOOL] = f64_to_bool,
    },
};

/* ---- i64: overflow wraps, through unsigned arithmetic ---- */

static inline int64_t negative_int(int64_t x) { return (int64_t)(0 - (uint64_t)x); }
static inline int64_t absolute_int(int64_t x) { return x < 0 ? negative_int(x) : x; }
static inline int64_t add_int(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}
static inline int64_t subtract_int(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}
static inline int64_t multiply_int(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}
static inline int64_t maximum_int(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t minimum_int(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int equal_int(int64_t a, int64_t b) { return a == b; }
static inline int not_equal_int(int64_t a, int64_t b) { return a != b; }
static inline int less_int(int64_t a, int64_t b) { return a < b; }
static inline int less_equal_int(int64_t a, int64_t b) { return a <= b; }
static inline int greater_int(int64_t a, int64_t b) { return a > b; }
static inline int greater_equal_int(int64_t a, int64_t b) { return a >= b; }

static void negative_i64(const CornuVectorCall *c, int64_t n) { map1_i64(c, n, negative_int); }
static void absolute_i64(const CornuVectorCall *c, int64_t n) { map1_i64(c, n, absolute_int); }
static void add_i64(const CornuVectorCall *c, int64_t n) { map2_i64(c, n, add_int); }
static void subtract_i64(const CornuVectorCall *c, int64_t n) { map2_i64(c, n, subtract_int); }
static void multiply_i64(const CornuVectorCall *c, int64_t n) { map2_i64(c, n, multiply_int); }
static void maximum_i64(const CornuVectorCall *c, int64_t n) { map2_i64(c, n, maximum_int); }
static void minimum_i64(const CornuVectorCall *c, int64_t n) { map2_i64(c, n, minimum_int); }
static void equal_i64(const CornuVectorCall *c, int64_t n) { test2_i64(c, n, equal_int); }
static void not_equal_i64(const CornuVectorCall *c, int64_t n) { test2_i64(c, n, not_equal_int); }
static void less_i64(const CornuVectorCall *c, int64_t n) { test2_i64(c, n, less_int); }
static void less_equal_i64(const CornuVectorCall *c, int64_t n)
{
    test2_i64(c, n, less_equal_int);
}
static void greater_i64(const CornuVectorCall *c, int64_t n) { test2_i64(c, n, greater_int); }
static void greater_equal_i64(const CornuVectorCall *c, int64_t n)
{
    test2_i64(c, n, greater_equal_int);
}

static void select_i64(const CornuVectorCall *call, int64_t count)
{
    const uint8_t *condition = call->in[0];
    const int64_t *a = call->in[1], *b = call->in[2];
    int64_t       *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++) y[i] = condition[i] ? a[i] : b[i];
}

static void i64_to_f32(const CornuVectorCall *call, int64_t count)
{
    const int64_t *x = call->in[0];
    float         *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++) y[i] = (float)x[i];
}

static void i64_to_f64(const CornuVectorCall *call, int64_t count)
{
    const int64_t *x = call->in[0];
    double        *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++) y[i] = (double)x[i];
}

static void i64_to_bool(const CornuVectorCall *call, int64_t count)
{
    const int64_t *x = call->in[0];
    uint8_t       *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++) y[i] = x[i] != 0;
}

const CornuVectorClass CORNU__PER_ISA(cornu__class_i64) = {
    .op = {
        [CORNU_OP_NEGATIVE] = negative_i64, [CORNU_OP_ABSOLUTE] = absolute_i64,
        [CORNU_OP_ADD] = add_i64,           [CORNU_OP_SUBTRACT] = subtract_i64,
        [CORNU_OP_MULTIPLY] = multiply_i64, [CORNU_OP_MAXIMUM] = maximum_i64,
        [CORNU_OP_MINIMUM] = minimum_i64,   [CORNU_OP_SELECT] = select_i64,
    },
    .compare = {
        [CORNU_EQUAL] = equal_i64,     [CORNU_NOT_EQUAL] = not_equal_i64,
        [CORNU_LESS] = less_i64,       [CORNU_LESS_EQUAL] = less_equal_i64,
        [CORNU_GREATER] = greater_i64, [CORNU_GREATER_EQUAL] = greater_equal_i64,
    },
    .convert = {
        [CORNU_CLASS_F32] = i64_to_f32, [CORNU_CLASS_F64] = i64_to_f64,
        [CORNU_CLASS_BOOL] = i64_to_bool,
    },
};

/* ---- bool ---- */

static inline int equal_u8(uint8_t a, uint8_t b) { return a == b; }
static inline int not_equal_u8(uint8_t a, uint8_t b) { return a != b; }
static inline int less_u8(uint8_t a, uint8_t b) { return a < b; }
static inline int less_equal_u8(uint8_t a, uint8_t b) { return a <= b; }
static inline int greater_u8(uint8_t a, uint8_t b) { return a > b; }
static inline int greater_equal_u8(uint8_t a, uint8_t b) { return a >= b; }

static void equal_bool(const CornuVectorCall *c, int64_t n) { test2_bool(c, n, equal_u8); }
static void not_equal_bool(const CornuVectorCall *c, int64_t n) { test2_bool(c, n, not_equal_u8); }
static void less_bool(const CornuVectorCall *c, int64_t n) { test2_bool(c, n, less_u8); }
static void less_equal_bool(const CornuVectorCall *c, int64_t n)
{
    test2_bool(c, n, less_equal_u8);
}
static void greater_bool(const CornuVectorCall *c, int64_t n) { test2_bool(c, n, greater_u8); }
static void greater_equal_bool(const CornuVectorCall *c, int64_t n)
{
    test2_bool(c, n, greater_equal_u8);
}

static void select_bool(const CornuVectorCall *call, int64_t count)
{
    const uint8_t *condition = call->in[0], *a = call->in[1], *b = call->in[2];
    uint8_t       *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++) y[i] = condition[i] ? a[i] : b[i];
}

static void bool_to_f32(const CornuVectorCall *call, int64_t count)
{
    const uint8_t *x = call->in[0];
    float         *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++) y[i] = x[i];
}

static void bool_to_f64(const CornuVectorCall *call, int64_t count)
{
    const uint8_t *x = call->in[0];
    double        *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++) y[i] = x[i];
}

/* Also the load of u8. */
static void bool_to_i64(const CornuVectorCall *call, int64_t count)
{
    const uint8_t *x = call->in[0];
    int64_t       *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++) y[i] = x[i];
}

const CornuVectorClass CORNU__PER_ISA(cornu__class_bool) = {
    .op = { [CORNU_OP_SELECT] = select_bool },
    .compare = {
        [CORNU_EQUAL] = equal_bool,     [CORNU_NOT_EQUAL] = not_equal_bool,
        [CORNU_LESS] = less_bool,       [CORNU_LESS_EQUAL] = less_equal_bool,
        [CORNU_GREATER] = greater_bool, [CORNU_GREATER_EQUAL] = greater_equal_bool,
    },
    .convert = {
        [CORNU_CLASS_F32] = bool_to_f32, [CORNU_CLASS_F64] = bool_to_f64,
        [CORNU_CLASS_I64] = bool_to_i64,
    },
};

/* ---- Between memory and registers ---- */

static void load_i32(const CornuVectorCall *call, int64_t count)
{
    const int32_t *x = call->in[0];
    int64_t       *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++) y[i] = x[i];
}

static void load_u32(const CornuVectorCall *call, int64_t count)
{
    const uint32_t *x = call->in[0];
    int64_t        *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++) y[i] = x[i];
}

/* cornu_f16_to_float and cornu_f16_from_float on bits, without branches, so that they become vector
 * loops. Exponents are re-biased by 127 - 15 = 112, those of Inf and NaN twice. */
CORNU__INLINE uint32_t wide_f16(uint32_t x)
{
    const uint32_t sign = (x & 0x8000) << 16, size = (x & 0x7fff) << 13;
    const uint32_t subnormal = size + (113u << 23), smallest = 113u << 23;
    float          value, less;
    uint32_t       small;
    memcpy(&value, &subnormal, sizeof value);
    memcpy(&less, &smallest, sizeof less);
    value -= less;
    memcpy(&small, &value, sizeof small);
    const uint32_t normal = size + (112u << 23) + (size < 31u << 23 ? 0 : 112u << 23);
    return sign | (size < 1u << 23 ? small : normal);
}

CORNU__INLINE uint32_t narrow_f16(uint32_t bits)
{
    const uint32_t sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    float          value;
    uint32_t       small;
    memcpy(&value, &size, sizeof value);
    value += 0.5f;   /* of a subnormal: the hardware rounds at the last bit of 2^-24 */
    memcpy(&small, &value, sizeof small);
    const uint32_t normal = (size + 0xc8000000 + 0xfff + (size >> 13 & 1)) >> 13;
    const uint32_t finite = size < 0x38800000 ? small - 0x3f000000 : normal;
    return sign | (size > 0x7f800000 ? 0x7e00 : size >= 0x477ff000 ? 0x7c00 : finite);
}

static void load_bf16(const CornuVectorCall *call, int64_t count)
{
    CORNU__PER_ISA(cornu__bf16).widen(call->in[0], count, call->out[0]);
}

static void load_f16(const CornuVectorCall *call, int64_t count)
{
    const uint16_t *x = call->in[0];
    uint32_t       *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++) y[i] = wide_f16(x[i]);
}

static void store_i32(const CornuVectorCall *call, int64_t count)
{
    const int64_t *x = call->in[0];
    int32_t       *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++) y[i] = (int32_t)x[i];
}

static void store_u32(const CornuVectorCall *call, int64_t count)
{
    const int64_t *x = call->in[0];
    uint32_t      *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++) y[i] = (uint32_t)x[i];
}

static void store_u8(const CornuVectorCall *call, int64_t count)
{
    const int64_t *x = call->in[0];
    uint8_t       *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++) y[i] = (uint8_t)x[i];
}

static void store_bf16(const CornuVectorCall *call, int64_t count)
{
    const uint32_t *x = call->in[0];
    uint16_t       *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++) y[i] = (uint16_t)(x[i] >> 16);
}

static void store_f16(const CornuVectorCall *call, int64_t count)
{
    const uint32_t *x = call->in[0];
    uint16_t       *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++) y[i] = (uint16_t)narrow_f16(x[i]);
}

static void round_i32(const CornuVectorCall *call, int64_t count)
{
    const int64_t *x = call->in[0];
    int64_t       *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++)
        y[i] = x[i] < INT32_MIN ? INT32_MIN : x[i] > INT32_MAX ? INT32_MAX : x[i];
}

static void round_u32(const CornuVectorCall *call, int64_t count)
{
    const int64_t *x = call->in[0];
    int64_t       *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++)
        y[i] = x[i] < 0 ? 0 : x[i] > UINT32_MAX ? UINT32_MAX : x[i];
}

static void round_u8(const CornuVectorCall *call, int64_t count)
{
    const int64_t *x = call->in[0];
    int64_t       *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++)
        y[i] = x[i] < 0 ? 0 : x[i] > UINT8_MAX ? UINT8_MAX : x[i];
}

/* To nearest even in the upper 16 bits; NaN stays a quiet NaN, as in cornu_bf16_from_float. */
static void round_bf16(const CornuVectorCall *call, int64_t count)
{
    const uint32_t *x = call->in[0];
    uint32_t       *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++) {
        uint32_t nan = x[i] | 0x400000, rounded = x[i] + 0x7fff + (x[i] >> 16 & 1);
        y[i] = ((x[i] & 0x7fffffff) > 0x7f800000 ? nan : rounded) & 0xffff0000;
    }
}

static void round_f16(const CornuVectorCall *call, int64_t count)
{
    const uint32_t *x = call->in[0];
    uint32_t       *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++) y[i] = wide_f16(narrow_f16(x[i]));
}

/* ---- Sources ---- */

static void iota_i64(const CornuVectorCall *call, int64_t count)
{
    int64_t *y = call->out[0], repeat = call->repeat, extent = call->extent;
    int64_t  index = call->first / repeat % extent, run = call->first % repeat;
    for (int64_t i = 0; i < count; i++) {
        y[i] = index;
        if (++run < repeat) continue;
        run = 0;
        index = index + 1 < extent ? index + 1 : 0;
    }
}

extern const CornuVectorClass CORNU__PER_ISA(cornu__class_f32);
CornuVector CORNU__PER_ISA(cornu__uniform);
void  CORNU__PER_ISA(cornu__add_row)(float *sum, const float *x, int64_t count);
void  CORNU__PER_ISA(cornu__max_row)(float *max, const float *x, int64_t count);
void CORNU__PER_ISA(cornu__sum_runs)(const float *x, int64_t runs, int64_t count, float *y);
void CORNU__PER_ISA(cornu__max_runs)(const float *x, int64_t runs, int64_t count, float *y);
void CORNU__PER_ISA(cornu__repeat_runs)(const float *x, int64_t runs, int64_t count, float *y);
void  CORNU__PER_ISA(cornu__sum_rows)(float *to, const float *const *x, int rows, int64_t count);
float CORNU__PER_ISA(cornu__read)(const float *x, int64_t count);

const CornuVectors CORNU__PER_ISA(cornu__vectors) = {
    .class = {
        [CORNU_CLASS_F32] = &CORNU__PER_ISA(cornu__class_f32),
        [CORNU_CLASS_F64] = &CORNU__PER_ISA(cornu__class_f64),
        [CORNU_CLASS_I64] = &CORNU__PER_ISA(cornu__class_i64),
        [CORNU_CLASS_BOOL] = &CORNU__PER_ISA(cornu__class_bool),
    },
    .load = {
        [CORNU_BF16] = load_bf16, [CORNU_F16] = load_f16, [CORNU_I32] = load_i32,
        [CORNU_U32] = load_u32,   [CORNU_U8] = bool_to_i64,
    },
    .store = {
        [CORNU_BF16] = store_bf16, [CORNU_F16] = store_f16, [CORNU_I32] = store_i32,
        [CORNU_U32] = store_u32,   [CORNU_U8] = store_u8,
    },
    .round = {
        [CORNU_BF16] = round_bf16, [CORNU_F16] = round_f16, [CORNU_I32] = round_i32,
        [CORNU_U32] = round_u32,   [CORNU_U8] = round_u8,
    },
    .uniform = CORNU__PER_ISA(cornu__uniform),
    .iota = iota_i64,
    .add_row = CORNU__PER_ISA(cornu__add_row),
    .max_row = CORNU__PER_ISA(cornu__max_row),
    .sum_runs = CORNU__PER_ISA(cornu__sum_runs),
    .max_runs = CORNU__PER_ISA(cornu__max_runs),
    .repeat_runs = CORNU__PER_ISA(cornu__repeat_runs),
    .sum_rows = CORNU__PER_ISA(cornu__sum_rows),
    .read = CORNU__PER_ISA(cornu__read),
};
