/* Operators element by element, softmax, and conversions from and to other dtypes. */
#include "steps.h"

/* ---- Two operands ---- */

/* Extents of an operand with as many axes as y, missing ones 1. */
static void align(const CornuLiteTensor *x, int64_t batch, int rank, int64_t *extents)
{
    const int missing = rank - x->shape.rank;
    for (int d = 0; d < missing; d++) extents[d] = 1;
    cornu__step_extents(x, batch, extents + missing);
}

static void run_binary(const CornuLiteStep *step, const CornuLiteBound *bound)
{
    const CornuLiteTensor *y = cornu__step_out(step, 0);
    const int              rank = y->shape.rank;
    int64_t extents[CORNU_INT8_RANK], extents1[CORNU_INT8_RANK], extents2[CORNU_INT8_RANK];
    cornu__step_extents(y, bound->batch, extents);
    align(cornu__step_in(step, 0), bound->batch, rank, extents1);
    align(cornu__step_in(step, 1), bound->batch, rank, extents2);
    cornu__int8_binary(&step->arithmetic, rank, extents, extents1,
                       cornu__step_in_data(step, bound, 0), extents2,
                       cornu__step_in_data(step, bound, 1), cornu__step_out_data(step, bound, 0));
}

static CornuStatus expect_broadcast(const CornuLiteTensor *x1, const CornuLiteTensor *x2,
                                    const CornuLiteTensor *y)
{
    const int rank = y->shape.rank;
    int64_t   a[CORNU_INT8_RANK], b[CORNU_INT8_RANK], c[CORNU_INT8_RANK];
    bool      fits = x1->shape.rank <= rank && x2->shape.rank <= rank;
    if (fits) {
        align(x1, CORNU_NONE, rank, a);
        align(x2, CORNU_NONE, rank, b);
        cornu__step_extents(y, CORNU_NONE, c);
        for (int d = 0; d < rank; d++)
            fits = fits && (a[d] == b[d] || a[d] == 1 || b[d] == 1) &&
                   c[d] == (a[d] == 1 ? b[d] : a[d]);
    }
    if (fits) return CORNU_OK;
    CornuText s1, s2, to;
    return cornu__fail(CORNU_ERR_SHAPE, "%s with %s to %s", cornu_shape_print(&s1, x1->shape),
                       cornu_shape_print(&s2, x2->shape), cornu_shape_print(&to, y->shape));
}

static CornuInt8Binary binary_of(CornuLiteCode code)
{
    return code == CORNU_LITE_ADD ? CORNU_INT8_ADD : code == CORNU_LITE_SUB ? CORNU_INT8_SUB
           : code == CORNU_LITE_MUL ? CORNU_INT8_MUL : code == CORNU_LITE_PRELU ? CORNU_INT8_PRELU
           : code == CORNU_LITE_MAXIMUM ? CORNU_INT8_MAXIMUM : CORNU_INT8_MINIMUM;
}

CornuStatus cornu__step_prepare_binary(CornuLiteStep *step)
{
    CornuStatus status = cornu__step_expect(step, 2, 2, 1);
    if (status != CORNU_OK) return status;
    const CornuLiteTensor *x1 = cornu__step_in(step, 0), *x2 = cornu__step_in(step, 1);
    const CornuLiteTensor *y = cornu__step_out(step, 0);
    CornuAffine            second;
    status = cornu__step_affine(x1, &step->x);
    if (status == CORNU_OK) status = cornu__step_affine(x2, &second);
    if (status == CORNU_OK) status = cornu__step_affine(y, &step->y);
    if (status == CORNU_OK) status = expect_broadcast(x1, x2, y);
    if (status == CORNU_OK) status = cornu__step_fused(step, step->y, &step->bounds);
    if (status != CORNU_OK) return status;
    const CornuInt8Binary op = binary_of(step->op->code);
    cornu__int8_arithmetic(op, step->x, second, step->y,
                           (CornuFused)step->op->options.fused_activation, &step->arithmetic);
    step->run = run_binary;
    if (op != CORNU_INT8_MAXIMUM && op != CORNU_INT8_MINIMUM) return CORNU_OK;
    status = cornu__step_expect_same_scale(step->x, step->y);
    return status == CORNU_OK ? cornu__step_expect_same_scale(second, step->y) : status;
}

/* ---- Tables ---- */

static void run_table(const CornuLiteStep *step, const CornuLiteBound *bound)
{
    cornu__int8_map(&step->table, cornu__step_tensor_count(cornu__step_out(step, 0), bound->batch),
                    cornu__step_in_data(step, bound, 0), cornu__step_out_data(step, bound, 0));
}

static CornuStatus prepare_map(CornuLiteStep *step)
{
    CornuStatus status = cornu__step_expect(step, 1, 1, 1);
    if (status != CORNU_OK) return status;
    const CornuLiteTensor *x = cornu__step_in(step, 0), *y = cornu__step_out(step, 0);
    return cornu__step_expect_extents(y, x->shape.rank, x->shape.extent);
}

static CornuStatus prepare_unary(CornuLiteStep *step)
{
    CornuStatus status = prepare_map(step);
    if (status == CORNU_OK) status = cornu__step_affine(cornu__step_in(step, 0), &step->x);
    if (status == CORNU_OK) status = cornu__step_affine(cornu__step_out(step, 0), &step->y);
    return status;
}

/* The result of a function whose range is known has this scale. */
static CornuStatus expect_scale(CornuAffine y, float scale, int32_t zero)
{
    if (y.scale == scale && y.zero == zero) return CORNU_OK;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "output has scale %g and zero point %d, expected %g "
                       "and %d", (double)y.scale, (int)y.zero, (double)scale, (int)zero);
}

CornuStatus cornu__step_prepare_table(CornuLiteStep *step)
{
    CornuStatus status = prepare_unary(step);
    if (status != CORNU_OK) return status;
    const CornuAffine x = step->x, y = step->y;
    step->run = run_table;
    switch (step->op->code) {
    case CORNU_LITE_RELU: cornu__int8_table_relu(CORNU_FUSED_RELU, x, y, &step->table); break;
    case CORNU_LITE_RELU6: cornu__int8_table_relu(CORNU_FUSED_RELU6, x, y, &step->table); break;
    case CORNU_LITE_RELU_N1_TO_1:
        cornu__int8_table_relu(CORNU_FUSED_RELU_N1_TO_1, x, y, &step->table);
        break;
    case CORNU_LITE_LEAKY_RELU:
        cornu__int8_table_leaky_relu(step->op->options.alpha, x, y, &step->table);
        break;
    case CORNU_LITE_EXP:  cornu__int8_table_exp(x, y, &step->table); break;
    case CORNU_LITE_ELU:  cornu__int8_table_elu(x, y, &step->table); break;
    case CORNU_LITE_GELU:
        cornu__int8_table_gelu(step->op->options.approximate, x, y, &step->table);
        break;
    case CORNU_LITE_TANH:
        cornu__int8_table_tanh(x, y, &step->table);
        return expect_scale(y, 1.0f / 128, 0);
    default:
        cornu__int8_table_logistic(x, y, &step->table);
        return expect_scale(y, 1.0f / 256, CORNU_INT8_MIN);
    }
    return CORNU_OK;
}

static void run_softmax(const CornuLiteStep *step, const CornuLiteBound *bound)
{
    const CornuLiteTensor *x = cornu__step_in(step, 0);
    const int64_t depth = x->shape.extent[x->shape.rank - 1];
    cornu__int8_softmax(step->x, step->op->options.beta,
                        cornu__step_tensor_count(x, bound->batch) / depth, depth,
                        cornu__step_in_data(step, bound, 0), cornu__step_out_data(step, bound, 0));
}

CornuStatus cornu__step_prepare_softmax(CornuLiteStep *step)
{
    CornuStatus status = prepare_unary(step);
    if (status != CORNU_OK) return status;
    const CornuShape *shape = &cornu__step_in(step, 0)->shape;
    if (shape->rank < 1 || shape->extent[shape->rank - 1] == CORNU_NONE)
        return cornu__fail(CORNU_ERR_SHAPE, "expected a known last axis");
    if (shape->extent[shape->rank - 1] > CORNU_INT8_SOFTMAX)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "rows of %lld, at most %d are handled",
                           (long long)shape->extent[shape->rank - 1], CORNU_INT8_SOFTMAX);
    if (!(step->op->options.beta > 0))
        return cornu__fail(CORNU_ERR_FORMAT, "beta %g, expected more than 0",
                           (double)step->op->options.beta);
    step->run = run_softmax;
    return expect_scale(step->y, 1.0f / 256, CORNU_INT8_MIN);
}

/* ---- Other dtypes ---- */

static void run_quantize(const CornuLiteStep *step, const CornuLiteBound *bound)
{
    cornu__int8_quantize(step->y, cornu__step_tensor_count(cornu__step_out(step, 0), bound->batch),
                         cornu__step_in_data(step, bound, 0),
                         cornu__step_out_data(step, bound, 0));
}

/* A table from u8: stored from the int8 with the same bits on. */
static void requantize_u8(CornuAffine x, CornuAffine y, CornuInt8Table *table)
{
    CornuInt8Table shifted;
    cornu__int8_table_requantize((CornuAffine){ x.scale, x.zero + CORNU_INT8_MIN }, y, &shifted);
    for (int i = 0; i < 256; i++) table->y[i ^ 128] = shifted.y[i];
}

/* From f32, u8 or int8. */
CornuStatus cornu__step_prepare_quantize(CornuLiteStep *step)
{
    CornuStatus status = prepare_map(step);
    if (status != CORNU_OK) return status;
    const CornuLiteTensor *x = cornu__step_in(step, 0);
    status = cornu__step_affine(cornu__step_out(step, 0), &step->y);
    if (status != CORNU_OK) return status;
    if (x->dtype == CORNU_LITE_F32) {
        step->run = run_quantize;
        return CORNU_OK;
    }
    step->run = run_table;
    if (x->dtype == CORNU_LITE_U8) {
        const CornuLiteQuantization *q = &x->quantization;
        if (q->count != 1 || !(q->scales[0] > 0) || q->zero_points[0] < 0 ||
            q->zero_points[0] > UINT8_MAX)
            return cornu__fail(CORNU_ERR_FORMAT, "tensor %s: expected one scale above 0 and a zero "
                               "point from 0 to 255", x->name);
        requantize_u8((CornuAffine){ q->scales[0], (int32_t)q->zero_points[0] }, step->y,
                      &step->table);
        return CORNU_OK;
    }
    status = cornu__step_affine(x, &step->x);
    cornu__int8_table_requantize(step->x, step->y, &step->table);
    return status;
}

static void run_dequantize(const CornuLiteStep *step, const CornuLiteBound *bound)
{
    cornu__int8_dequantize(step->x, cornu__step_tensor_count(cornu__step_out(step, 0),
                                                             bound->batch),
                           cornu__step_in_data(step, bound, 0),
                           cornu__step_out_data(step, bound, 0));
}

CornuStatus cornu__step_prepare_dequantize(CornuLiteStep *step)
{
    CornuStatus status = prepare_map(step);
    if (status == CORNU_OK) status = cornu__step_affine(cornu__step_in(step, 0), &step->x);
    if (status == CORNU_OK && cornu__step_out(step, 0)->dtype != CORNU_LITE_F32)
        status = cornu__fail(CORNU_ERR_UNSUPPORTED, "to %s, expected f32",
                             cornu__lite_dtype_name(cornu__step_out(step, 0)->dtype));
    step->run = run_dequantize;
    return status;
}
