/* Drawing the values of initializers. Source: keras/src/initializers/random_initializers.py. */
#include <math.h>

#include "../../device/memory_internal.h"
#include "../../device/random.h"
#include "../config/keywords_internal.h"
#include "weight_rules_internal.h"

/* ---- Drawing: element i of a weight is word i % 4 of counter i / 4 ---- */

typedef struct {
    uint64_t seed;
    uint32_t generator;
} Draw;

static void words(const Draw *draw, int64_t block, uint32_t out[4])
{
    uint32_t counter[4] = { (uint32_t)block, 0, CORNU_INITIAL_WEIGHTS, draw->generator };
    cornu_philox(draw->seed, counter, out);
}

/* Uniform in [middle - half, middle + half). */
static void fill_uniform(const Draw *draw, double middle, double half, float *values,
                         int64_t count)
{
    uint32_t bits[4];
    for (int64_t i = 0; i < count; i++) {
        if (i % 4 == 0) words(draw, i / 4, bits);
        values[i] = (float)(middle + half * (2.0 * cornu_uniform(bits[i % 4]) - 1.0));
    }
}

/*
 * The quantile of the standard normal distribution, 0 < p < 1. It maps one uniform number to one
 * normal number, so that each element depends on its own word only.
 * Source: Acklam, "An algorithm for computing the inverse normal cumulative distribution
 * function" (relative error 1.15e-9), refined by one step of Halley's method with erfc.
 */
static double normal_quantile(double p)
{
    static const double a[6] = { -3.969683028665376e+01, 2.209460984245205e+02,
                                 -2.759285104469687e+02, 1.383577518672690e+02,
                                 -3.066479806614716e+01, 2.506628277459239e+00 };
    static const double b[5] = { -5.447609879822406e+01, 1.615858368580409e+02,
                                 -1.556989798598866e+02, 6.680131188771972e+01,
                                 -1.328068155288572e+01 };
    static const double c[6] = { -7.784894002430293e-03, -3.223964580411365e-01,
                                 -2.400758277161838e+00, -2.549732539343734e+00,
                                 4.374664141464968e+00, 2.938163982698783e+00 };
    static const double d[4] = { 7.784695709041462e-03, 3.224671290700398e-01,
                                 2.445134137142996e+00, 3.754408661907416e+00 };
    const double tail = p < 0.5 ? p : 1.0 - p;
    double       x;
    if (tail < 0.02425) {
        double q = sqrt(-2.0 * log(tail));
        x = (((((c[0] * q + c[1]) * q + c[2]) * q + c[3]) * q + c[4]) * q + c[5]) /
            ((((d[0] * q + d[1]) * q + d[2]) * q + d[3]) * q + 1.0);
        if (p > 0.5) x = -x;
    } else {
        double q = p - 0.5, r = q * q;
        x = (((((a[0] * r + a[1]) * r + a[2]) * r + a[3]) * r + a[4]) * r + a[5]) * q /
            (((((b[0] * r + b[1]) * r + b[2]) * r + b[3]) * r + b[4]) * r + 1.0);
    }
    const double pi = 3.14159265358979323846;
    double error = 0.5 * erfc(-x / sqrt(2.0)) - p;
    double u = error * sqrt(2.0 * pi) * exp(0.5 * x * x);
    return x - u / (1.0 + 0.5 * x * u);
}

/* Normal numbers, truncated at `cut` deviations (INFINITY: not at all): a uniform number u becomes
 * the quantile of low + u (high - low). */
static void fill_normal(const Draw *draw, double mean, double deviation, double cut, float *values,
                        int64_t count)
{
    const double low = 0.5 * erfc(cut / sqrt(2.0)), high = 1.0 - low;
    uint32_t     bits[4];
    for (int64_t i = 0; i < count; i++) {
        if (i % 4 == 0) words(draw, i / 4, bits);
        double u = cornu_uniform(bits[i % 4]) + 0x1p-25;   /* the middle, never 0 or 1 */
        values[i] = (float)(mean + deviation * normal_quantile(low + u * (high - low)));
    }
}

/* ---- Scaled by the fans ---- */

static double along(CornuShape shape, const int64_t *axes)
{
    double product = 1.0;
    for (int i = 0; i < CORNU_MAX_RANK && axes[i] != 0; i++) {
        const int64_t axis = cornu__integer(axes[i], 0);
        product *= (double)shape.extent[axis < 0 ? axis + shape.rank : axis];
    }
    return product;
}

/* Source: compute_fans in the same file. */
static void fans(const CornuInitializer *self, CornuShape shape, double *in, double *out)
{
    *in = *out = 1.0;
    if (self->input_axes[0] && self->output_axes[0]) {
        *in = along(shape, self->input_axes);
        *out = along(shape, self->output_axes);
        return;
    }
    if (shape.rank == 0) return;
    if (shape.rank == 1) {
        *in = *out = (double)shape.extent[0];
        return;
    }
    double field = 1.0;
    for (int i = 0; i < shape.rank - 2; i++) field *= (double)shape.extent[i];
    *in = field * (double)shape.extent[shape.rank - 2];
    *out = field * (double)shape.extent[shape.rank - 1];
}

static void fill_scaled(const CornuInitializer *self, const Draw *draw, CornuShape shape,
                        float *values)
{
    /* The standard deviation of a normal distribution truncated at 2, which Keras corrects for. */
    const double  cut_deviation = 0.87962566103423978;
    const int64_t count = cornu_shape_count(shape);
    double        in, out;
    fans(self, shape, &in, &out);
    const double fan = fmax(1.0, self->mode == CORNU_FAN_IN  ? in
                               : self->mode == CORNU_FAN_OUT ? out : (in + out) / 2.0);
    const double deviation = sqrt(self->scale / fan);
    if (self->distribution == CORNU_DISTRIBUTION_UNIFORM)
        fill_uniform(draw, 0.0, sqrt(3.0 * self->scale / fan), values, count);
    else if (self->distribution == CORNU_DISTRIBUTION_UNTRUNCATED_NORMAL)
        fill_normal(draw, 0.0, deviation, INFINITY, values, count);
    else
        fill_normal(draw, 0.0, deviation / cut_deviation, 2.0, values, count);
}

/* ---- Matrices ---- */

/* In eight partial sums, which a compiler can keep in one vector register. */
static double dot_of(const double *a, const double *b, int64_t m)
{
    double  sum[8] = { 0.0 };
    int64_t i = 0;
    for (; i + 8 <= m; i += 8)
        for (int lane = 0; lane < 8; lane++) sum[lane] += a[i + lane] * b[i + lane];
    for (; i < m; i++) sum[0] += a[i] * b[i];
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

/* Orthonormalizes the n vectors of q (n, m), m >= n: as columns, they become the Q of the QR
 * factorization whose R has a positive diagonal, which is unique. Gram-Schmidt, twice, as one pass
 * loses digits. Source: Golub and Van Loan, "Matrix Computations", section 5.2.8. */
static CornuStatus orthonormalize(double *q, int64_t m, int64_t n)
{
    for (int64_t j = 0; j < n; j++) {
        double *to = q + j * m;
        for (int pass = 0; pass < 2; pass++)
            for (int64_t k = 0; k < j; k++) {
                const double *from = q + k * m, dot = dot_of(from, to, m);
                for (int64_t i = 0; i < m; i++) to[i] -= dot * from[i];
            }
        const double square = dot_of(to, to, m);
        if (!(square > 0.0))
            return cornu__fail(CORNU_ERR_VALUE, "orthogonal: the drawn matrix is singular");
        for (int64_t i = 0; i < m; i++) to[i] /= sqrt(square);
    }
    return CORNU_OK;
}

/* gain Q of a matrix of normal numbers, drawn with at least as many rows as columns and transposed
 * where the weight, flattened to (rows, columns), has fewer rows. */
static CornuStatus fill_orthogonal(const Draw *draw, double gain, CornuShape shape,
                                   float *values)
{
    const int64_t count = cornu_shape_count(shape);
    if (count == 0) return CORNU_OK;
    const int64_t columns = shape.extent[shape.rank - 1], rows = count / columns;
    const int64_t m = rows > columns ? rows : columns, n = rows > columns ? columns : rows;

    double *q = cornu__allocate((size_t)count, sizeof *q);
    if (!q) return CORNU_ERR_MEMORY;
    fill_normal(draw, 0.0, 1.0, INFINITY, values, count);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) q[j * m + i] = values[i * n + j];
    CornuStatus status = orthonormalize(q, m, n);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            const double element = rows < columns ? q[i * m + j] : q[j * m + i];
            values[i * columns + j] = (float)(gain * element);
        }
    cornu__release(q);
    return status;
}

static void fill_identity(double gain, CornuShape shape, float *values)
{
    const int64_t rows = shape.extent[0], columns = shape.extent[1];
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) values[i * columns + j] = i == j ? (float)gain : 0.0f;
}

/* The array broadcast to the shape. */
static void fill_values(const CornuNumbers *from, CornuShape shape, float *values)
{
    const int64_t count = cornu_shape_count(shape);
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i, at = 0, stride = 1;
        for (int k = 1; k <= from->shape.rank; k++) {
            const int64_t extent = from->shape.extent[from->shape.rank - k];
            const int64_t whole = shape.extent[shape.rank - k];
            if (extent > 1) at += rest % whole * stride;
            stride *= extent;
            rest /= whole;
        }
        values[i] = (float)from->values[at];
    }
}

/* ---- All kinds ---- */

static CornuStatus fill_by_kind(const CornuInitializer *self, const Draw *draw, CornuShape shape,
                                float *values)
{
    const int64_t count = cornu_shape_count(shape);
    switch ((CornuInitializerKind)self->kind) {
    case CORNU_ZEROS_INITIALIZER:
    case CORNU_ONES_INITIALIZER:
    case CORNU_CONSTANT_INITIALIZER:
        if (self->values.values) {
            fill_values(&self->values, shape, values);
            return CORNU_OK;
        }
        for (int64_t i = 0; i < count; i++) values[i] = (float)self->value;
        return CORNU_OK;
    case CORNU_IDENTITY_INITIALIZER: fill_identity(self->gain, shape, values); return CORNU_OK;
    case CORNU_ORTHOGONAL_INITIALIZER: return fill_orthogonal(draw, self->gain, shape, values);
    case CORNU_RANDOM_UNIFORM_INITIALIZER:
        fill_uniform(draw, 0.5 * (self->minval + self->maxval),
                     0.5 * (self->maxval - self->minval), values, count);
        return CORNU_OK;
    case CORNU_RANDOM_NORMAL_INITIALIZER:
    case CORNU_TRUNCATED_NORMAL_INITIALIZER:
        fill_normal(draw, self->mean, self->stddev,
                    self->kind == CORNU_RANDOM_NORMAL_INITIALIZER ? INFINITY : 2.0, values, count);
        return CORNU_OK;
    case CORNU_VARIANCE_SCALING_INITIALIZER:
    case CORNU_GLOROT_UNIFORM_INITIALIZER: case CORNU_GLOROT_NORMAL_INITIALIZER:
    case CORNU_HE_UNIFORM_INITIALIZER:     case CORNU_HE_NORMAL_INITIALIZER:
    case CORNU_LECUN_UNIFORM_INITIALIZER:  case CORNU_LECUN_NORMAL_INITIALIZER:
        fill_scaled(self, draw, shape, values);
        return CORNU_OK;
    case CORNU_DEFAULT_INITIALIZER: break;
    }
    return cornu__fail(CORNU_ERR_ARGUMENT, "an initializer of kind %u draws nothing", self->kind);
}

CornuStatus cornu_initialize(CornuInitializer initializer, CornuShape shape, uint64_t seed,
                             int64_t generator, float *values)
{
    if (initializer.seed) {
        seed = (uint64_t)cornu__integer(initializer.seed, 0);
        generator = 0;
    }
    CORNU__TRY(cornu__initializer_check(&initializer, shape, generator));
    if (initializer.call) return initializer.call(&initializer, shape, seed, generator, values);
    return fill_by_kind(&initializer, &(Draw){ seed, (uint32_t)generator }, shape, values);
}
