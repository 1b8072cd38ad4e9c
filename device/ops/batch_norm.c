/*
 * Batch normalization over all axes but the last, in training, and its gradient.
 *   x, y (B, .., C) of a float dtype    scale, offset, mean, variance (C) f32    count () i64
 *   y = (x - mean) / sqrt(variance + epsilon) * scale + offset
 * Statistics are those of the first `count` rows of axis 0; the others pad a partial batch. The
 * variance is the mean of squared differences, without Bessel's correction. With count 0, mean and
 * variance are 0 and 1. A count outside [0, B] is an error; the decompositions, which cannot raise
 * one, clamp it.
 * Source: Ioffe and Szegedy, "Batch Normalization", arXiv 1502.03167, algorithm 1.
 */
#include <math.h>

#include "rules.h"
#include "build.h"

/* x of rank 2 or more, and f32 vectors of its last extent. */
static CornuStatus check_operands(const CornuOpCall *call, int vectors, int count,
                                  const char *names)
{
    CORNU__TRY(cornu__expect_float(call, 0, names));
    CornuShape x = call->in[0].shape;
    if (x.rank < 2)
        return cornu__refuse(call, CORNU_ERR_SHAPE, names, "expected rank 2 or more for x");
    for (int i = 1; i <= vectors; i++) {
        CORNU__TRY(cornu__expect_dtype(call, i, CORNU_F32, names));
        CORNU__TRY(cornu__expect_rank(call, i, 1, names));
        if (call->in[i].shape.extent[0] != x.extent[x.rank - 1])
            return cornu__refuse(call, CORNU_ERR_SHAPE, names,
                                 "x has %lld channels, operand %d has %lld",
                                 (long long)x.extent[x.rank - 1], i,
                                 (long long)call->in[i].shape.extent[0]);
    }
    if (!(call->attributes->epsilon.epsilon >= 0.0))
        return cornu__refuse(call, CORNU_ERR_VALUE, names, "epsilon %g, expected 0 or more",
                             call->attributes->epsilon.epsilon);
    CORNU__TRY(cornu__expect_dtype(call, count, CORNU_I64, names));
    return cornu__expect_rank(call, count, 0, names);
}

/* ---- For the reference kernels ---- */

/* x as a matrix: one row per position that shares a channel's statistics. */
typedef struct {
    int64_t rows, valid, channels;  /* only the first `valid` rows are not padding */
} Matrix;

static CornuStatus matrix_of(const CornuReferenceCall *call, const double *count, Matrix *matrix)
{
    CornuShape x = call->op.in[0].shape;
    int64_t    batch = x.extent[0], channels = x.extent[x.rank - 1], positions = 1;
    if (!(*count >= 0.0 && *count <= (double)batch))
        return cornu__fail(CORNU_ERR_VALUE, "count %.0f, expected 0 to %lld rows", *count,
                           (long long)batch);
    for (int i = 1; i < x.rank - 1; i++) positions *= x.extent[i];
    *matrix = (Matrix){ batch * positions, (int64_t)*count * positions, channels };
    return CORNU_OK;
}

/* ---- For the decompositions ---- */

/* The dtype of sums. */
static CornuDtype computed_in(CornuDtype dtype) { return dtype == CORNU_F64 ? dtype : CORNU_F32; }

static int64_t all_but_last(CornuShape shape) { return (INT64_C(1) << (shape.rank - 1)) - 1; }

/* Which elements of x are not padding: a bool in x's shape. */
static CornuValue valid_rows(CornuBuilder *b, CornuShape shape, CornuValue count)
{
    CornuValue row = cornu__build_rows(b, shape);
    return cornu__build_compare(b, row, CORNU_LESS, cornu__build_like(b, count, row));
}

/* The number of elements in each mean, at least 1, in the type of `like`. */
static CornuValue elements(CornuBuilder *b, CornuShape shape, CornuValue count, CornuValue like)
{
    if (b->status != CORNU_OK) return CORNU_NO_VALUE;
    double positions = 1.0;
    for (int i = 1; i < shape.rank - 1; i++) positions *= (double)shape.extent[i];
    CornuDtype dtype = cornu_program_type(b->program, like).dtype;
    CornuValue batch = cornu__build_constant(b, (double)shape.extent[0], count);
    CornuValue rows = cornu__build2(b, CORNU_OP_MINIMUM, count, batch);
    CornuValue n = cornu__build_scale(b, cornu__build_convert(b, rows, dtype), positions);
    n = cornu__build2(b, CORNU_OP_MAXIMUM, n, cornu__build_constant(b, 1.0, n));
    return cornu__build_like(b, n, like);
}

/* The sum over valid rows, per channel. */
static CornuValue valid_sum(CornuBuilder *b, CornuShape shape, CornuValue valid, CornuValue x)
{
    CornuValue zero = cornu__build_constant(b, 0.0, x);
    return cornu__build_reduce(b, CORNU_OP_REDUCE_SUM, cornu__build_select(b, valid, x, zero),
                               all_but_last(shape), false);
}

/* 1 / sqrt(variance + epsilon), per channel. */
static CornuValue inverse_deviation(CornuBuilder *b, CornuValue variance, double epsilon)
{
    CornuValue term = cornu__build_constant(b, epsilon, variance);
    return cornu__build1(b, CORNU_OP_RSQRT, cornu__build2(b, CORNU_OP_ADD, variance, term));
}

static CornuValue add(CornuBuilder *b, CornuValue x, CornuValue y)
{
    return cornu__build2(b, CORNU_OP_ADD, x, y);
}

/* The second operand is broadcast to the first's shape. */
static CornuValue subtract(CornuBuilder *b, CornuValue x, CornuValue y)
{
    return cornu__build2(b, CORNU_OP_SUBTRACT, x, cornu__build_like(b, y, x));
}

static CornuValue multiply(CornuBuilder *b, CornuValue x, CornuValue y)
{
    return cornu__build2(b, CORNU_OP_MULTIPLY, x, cornu__build_like(b, y, x));
}

static CornuValue divide(CornuBuilder *b, CornuValue x, CornuValue y)
{
    return cornu__build2(b, CORNU_OP_DIVIDE, x, cornu__build_like(b, y, x));
}

/* ---- batch_norm(x, scale, offset, count): y, mean, variance ---- */

static CornuStatus batch_norm_type(const CornuOpCall *call, CornuType *out)
{
    CORNU__TRY(check_operands(call, 2, 3, "x scale offset count"));
    out[0] = call->in[0];
    out[1] = out[2] = call->in[1];
    return CORNU_OK;
}

/* Two passes for the statistics, one to apply them. */
static int64_t batch_norm_flops(const CornuOpCall *call)
{
    return cornu__flops(2, (const int64_t[]){ 8, cornu_type_count(call->in[0]) });
}

static CornuStatus batch_norm_decompose(CornuProgram *program, const CornuOpCall *call,
                                        const CornuValue *in, CornuValue *out)
{
    CornuBuilder b = { program, CORNU_OK };
    CornuShape   shape = call->in[0].shape;
    CornuDtype   dtype = computed_in(call->in[0].dtype);
    CornuValue   x = cornu__build_convert(&b, in[0], dtype);
    CornuValue   scale = cornu__build_convert(&b, in[1], dtype);
    CornuValue   offset = cornu__build_convert(&b, in[2], dtype), count = in[3];

    CornuValue valid = valid_rows(&b, shape, count);
    CornuValue n = elements(&b, shape, count, scale);
    CornuValue mean = divide(&b, valid_sum(&b, shape, valid, x), n);
    CornuValue centred = subtract(&b, x, mean);
    CornuValue squares = multiply(&b, centred, centred);
    CornuValue variance = divide(&b, valid_sum(&b, shape, valid, squares), n);

    CornuValue none = cornu__build_compare(&b, count, CORNU_LESS_EQUAL,
                                           cornu__build_constant(&b, 0.0, count));
    variance = cornu__build_select(&b, cornu__build_like(&b, none, variance),
                                   cornu__build_constant(&b, 1.0, variance), variance);

    CornuValue factor = multiply(&b, scale, inverse_deviation(&b, variance,
                                                call->attributes->epsilon.epsilon));
    CornuValue scaled = multiply(&b, centred, factor);
    CornuValue y = add(&b, scaled, cornu__build_like(&b, offset, scaled));
    out[0] = cornu__build_convert(&b, y, call->in[0].dtype);
    out[1] = cornu__build_convert(&b, mean, CORNU_F32);
    out[2] = cornu__build_convert(&b, variance, CORNU_F32);
    return b.status;
}

static CornuStatus batch_norm_reference(const CornuReferenceCall *call)
{
    const double *x = call->in[0], *scale = call->in[1], *offset = call->in[2];
    double       *y = call->out[0], *mean = call->out[1], *variance = call->out[2];
    double        epsilon = call->op.attributes->epsilon.epsilon;
    Matrix        m;
    CORNU__TRY(matrix_of(call, call->in[3], &m));
    double n = (double)m.valid;
    for (int64_t c = 0; c < m.channels; c++) {
        double sum = 0.0, squares = 0.0;
        for (int64_t i = 0; i < m.valid; i++) sum += x[i * m.channels + c];
        mean[c] = m.valid ? sum / n : 0.0;
        for (int64_t i = 0; i < m.valid; i++)
            squares += pow(x[i * m.channels + c] - mean[c], 2.0);
        variance[c] = m.valid ? squares / n : 1.0;
        for (int64_t i = 0; i < m.rows; i++) {
            double normal = (x[i * m.channels + c] - mean[c]) / sqrt(variance[c] + epsilon);
            y[i * m.channels + c] = normal * scale[c] + offset[c];
        }
    }
    return CORNU_OK;
}

const CornuOpRules cornu__batch_norm_rules = {
    batch_norm_type, batch_norm_flops, batch_norm_decompose, batch_norm_reference,
};

/*
 * ---- batch_norm_grad(x, scale, mean, variance, d_y, count): d_x, d_scale, d_offset ----
 *
 * With normal = (x - mean) / sqrt(variance + epsilon) and n elements in each mean:
 *   d_offset = sum of d_y        d_scale = sum of d_y normal
 *   d_x = scale / sqrt(variance + epsilon) (d_y - d_offset / n - normal d_scale / n)
 * over the valid rows; in the others d_x is 0, whatever d_y is there.
 */
static CornuStatus batch_norm_grad_type(const CornuOpCall *call, CornuType *out)
{
    static const char names[] = "x scale mean variance d_y count";
    CORNU__TRY(check_operands(call, 3, 5, names));
    CORNU__TRY(cornu__expect_alike(call, 0, 4, names));
    out[0] = call->in[0];
    out[1] = out[2] = call->in[1];
    return CORNU_OK;
}

/* One pass for the two sums, one to apply them. */
static int64_t batch_norm_grad_flops(const CornuOpCall *call)
{
    return cornu__flops(2, (const int64_t[]){ 10, cornu_type_count(call->in[0]) });
}

static CornuStatus batch_norm_grad_decompose(CornuProgram *program, const CornuOpCall *call,
                                             const CornuValue *in, CornuValue *out)
{
    CornuBuilder b = { program, CORNU_OK };
    CornuShape   shape = call->in[0].shape;
    CornuDtype   dtype = computed_in(call->in[0].dtype);
    CornuValue   x = cornu__build_convert(&b, in[0], dtype);
    CornuValue   scale = cornu__build_convert(&b, in[1], dtype);
    CornuValue   mean = cornu__build_convert(&b, in[2], dtype);
    CornuValue   variance = cornu__build_convert(&b, in[3], dtype);
    CornuValue   d_y = cornu__build_convert(&b, in[4], dtype), count = in[5];

    CornuValue valid = valid_rows(&b, shape, count);
    CornuValue n = elements(&b, shape, count, scale);
    CornuValue inverse = inverse_deviation(&b, variance, call->attributes->epsilon.epsilon);
    CornuValue normal = multiply(&b, subtract(&b, x, mean), inverse);
    CornuValue d_offset = valid_sum(&b, shape, valid, d_y);
    CornuValue d_scale = valid_sum(&b, shape, valid, multiply(&b, d_y, normal));

    CornuValue without_mean = subtract(&b, d_y, divide(&b, d_offset, n));
    CornuValue along = multiply(&b, normal, divide(&b, d_scale, n));
    CornuValue d_x = multiply(&b, subtract(&b, without_mean, along),
                              multiply(&b, scale, inverse));
    d_x = cornu__build_select(&b, valid, d_x, cornu__build_constant(&b, 0.0, d_x));
    out[0] = cornu__build_convert(&b, d_x, call->in[0].dtype);
    out[1] = cornu__build_convert(&b, d_scale, CORNU_F32);
    out[2] = cornu__build_convert(&b, d_offset, CORNU_F32);
    return b.status;
}

static CornuStatus batch_norm_grad_reference(const CornuReferenceCall *call)
{
    const double *x = call->in[0], *scale = call->in[1], *mean = call->in[2];
    const double *variance = call->in[3], *d_y = call->in[4];
    double       *d_x = call->out[0], *d_scale = call->out[1], *d_offset = call->out[2];
    Matrix        m;
    CORNU__TRY(matrix_of(call, call->in[5], &m));
    double n = (double)m.valid;
    for (int64_t c = 0; c < m.channels; c++) {
        double deviation = sqrt(variance[c] + call->op.attributes->epsilon.epsilon);
        d_scale[c] = d_offset[c] = 0.0;
        for (int64_t i = 0; i < m.valid; i++) {
            int64_t at = i * m.channels + c;
            d_offset[c] += d_y[at];
            d_scale[c] += d_y[at] * (x[at] - mean[c]) / deviation;
        }
        for (int64_t i = 0; i < m.rows; i++) {
            int64_t at = i * m.channels + c;
            double  normal = (x[at] - mean[c]) / deviation;
            d_x[at] = i < m.valid ? scale[c] / deviation * (d_y[at] - d_offset[c] / n -
                                                            normal * d_scale[c] / n)
                                  : 0.0;
        }
    }
    return CORNU_OK;
}

const CornuOpRules cornu__batch_norm_grad_rules = {
    batch_norm_grad_type, batch_norm_grad_flops, batch_norm_grad_decompose,
    batch_norm_grad_reference,
};
