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

/* As many multiply-adds take as long as one element. */
enum { BINARY_WORK = 64 };

/* Of operands of one shape, that threads may share. */
static void run_same(const CornuLiteStep *step, const CornuLiteBound *bound)
{
    const int64_t begin = bound->count * bound->part.index / bound->part.count;
    const int64_t count = bound->count * (bound->part.index + 1) / bound->part.count - begin;
    cornu__int8_binary(&step->arithmetic, 1, &count, &count, (const int8_t *)bound->x + begin,
                       &count, (const int8_t *)bound->tensors[step->op->in[1]] + begin,
                       (int8_t *)bound->y + begin);
}

static void run_binary(const CornuLiteStep *step, const CornuLiteBound *bound)
{
    const int rank = step->out->shape.rank;
    int64_t   extents1[CORNU_INT8_RANK], extents2[CORNU_INT8_RANK];
    align(step->in, bound->batch, rank, extents1);
    align(cornu__step_in(step, 1), bound->batch, rank, extents2);
    cornu__int8_binary(&step->arithmetic, rank, bound->y_extents, extents1, bound->x, extents2,
                       bound->tensors[step->op->in[1]], bound->y);
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
    switch (code) {
    case CORNU_LITE_ADD:     return CORNU_INT8_ADD;
    case CORNU_LITE_SUB:     return CORNU_INT8_SUB;
    case CORNU_LITE_MUL:     return CORNU_INT8_MUL;
    case CORNU_LITE_PRELU:   return CORNU_INT8_PRELU;
    case CORNU_LITE_MAXIMUM: return CORNU_INT8_MAXIMUM;
    default:                 return CORNU_INT8_MINIMUM;
    }
}

CornuStatus cornu__step_prepare_binary(CornuLiteStep *step)
{
    CornuAffine second;
    CORNU__TRY(cornu__step_affine(cornu__step_in(step, 1), &second));
    CORNU__TRY(expect_broadcast(step->in, cornu__step_in(step, 1), step->out));
    CORNU__TRY(cornu__step_fused(step));
    cornu__int8_arithmetic(binary_of(step->op->code), step->x, second, step->y,
                           (CornuFused)step->op->options.fused_activation, &step->arithmetic);
    const bool same = cornu_shape_equal(step->in->shape, cornu__step_in(step, 1)->shape);
    step->run = same ? run_same : run_binary;
    if (same) step->work = BINARY_WORK * cornu__lite_count(step->out->shape, 1);
    return CORNU_OK;
}

/* ---- Tables ---- */

static void run_table(const CornuLiteStep *step, const CornuLiteBound *bound)
{
    cornu__int8_map(&step->table, bound->count, bound->x, bound->y);
}

CornuStatus cornu__step_prepare_table(CornuLiteStep *step)
{
    const CornuLiteOptions *o = &step->op->options;
    const CornuAffine       x = step->x, y = step->y;
    CornuInt8Table         *table = &step->table;
    step->run = run_table;
    switch (step->op->code) {
    case CORNU_LITE_RELU:         cornu__int8_table_relu(CORNU_FUSED_RELU, x, y, table); break;
    case CORNU_LITE_RELU6:        cornu__int8_table_relu(CORNU_FUSED_RELU6, x, y, table); break;
    case CORNU_LITE_RELU_N1_TO_1:
        cornu__int8_table_relu(CORNU_FUSED_RELU_N1_TO_1, x, y, table);
        break;
    case CORNU_LITE_LEAKY_RELU:   cornu__int8_table_leaky_relu(o->alpha, x, y, table); break;
    case CORNU_LITE_EXP:          cornu__int8_table_exp(x, y, table); break;
    case CORNU_LITE_ELU:          cornu__int8_table_elu(x, y, table); break;
    case CORNU_LITE_GELU:         cornu__int8_table_gelu(o->approximate, x, y, table); break;
    case CORNU_LITE_TANH:         cornu__int8_table_tanh(x, y, table); break;
    default:                      cornu__int8_table_logistic(x, y, table);
    }
    return CORNU_OK;
}

bool cornu__step_is_table(const CornuLiteStep *step) { return step->run == run_table; }

static void run_softmax(const CornuLiteStep *step, const CornuLiteBound *bound)
{
    const int64_t depth = step->in->shape.extent[step->in->shape.rank - 1];
    cornu__int8_softmax(step->x, step->op->options.beta, bound->count / depth, depth, bound->x,
                        bound->y);
}

CornuStatus cornu__step_prepare_softmax(CornuLiteStep *step)
{
    const CornuShape *shape = &step->in->shape;
    if (shape->rank < 1 || shape->extent[shape->rank - 1] == CORNU_NONE)
        return cornu__fail(CORNU_ERR_SHAPE, "expected a known last axis");
    if (shape->extent[shape->rank - 1] > CORNU_INT8_SOFTMAX)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "rows of %lld, at most %d are handled",
                           (long long)shape->extent[shape->rank - 1], CORNU_INT8_SOFTMAX);
    if (!(step->op->options.beta > 0))
        return cornu__fail(CORNU_ERR_FORMAT, "beta %g, expected more than 0",
                           (double)step->op->options.beta);
    step->run = run_softmax;
    return CORNU_OK;
}

/* ---- Other dtypes ---- */

static void run_quantize(const CornuLiteStep *step, const CornuLiteBound *bound)
{
    cornu__int8_quantize(step->y, bound->count, bound->x, bound->y);
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
    const CornuLiteTensor       *x = step->in;
    const CornuLiteQuantization *q = &x->quantization;
    CORNU__TRY(cornu__step_affine(step->out, &step->y));
    step->run = x->dtype == CORNU_LITE_F32 ? run_quantize : run_table;
    if (x->dtype == CORNU_LITE_F32) return CORNU_OK;
    if (x->dtype != CORNU_LITE_U8) {
        CORNU__TRY(cornu__step_affine(x, &step->x));
        cornu__int8_table_requantize(step->x, step->y, &step->table);
        return CORNU_OK;
    }
    if (q->count != 1 || !(q->scales[0] > 0) || q->zero_points[0] < 0 ||
        q->zero_points[0] > UINT8_MAX)
        return cornu__fail(CORNU_ERR_FORMAT, "tensor %s: expected one scale above 0 and a zero "
                           "point from 0 to 255", x->name);
    requantize_u8((CornuAffine){ q->scales[0], (int32_t)q->zero_points[0] }, step->y, &step->table);
    return CORNU_OK;
}

static void run_dequantize(const CornuLiteStep *step, const CornuLiteBound *bound)
{
    cornu__int8_dequantize(step->x, bound->count, bound->x, bound->y);
}

CornuStatus cornu__step_prepare_dequantize(CornuLiteStep *step)
{
    step->run = run_dequantize;
    CORNU__TRY(cornu__step_affine(step->in, &step->x));
    if (step->out->dtype == CORNU_LITE_F32) return CORNU_OK;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "to %s, expected f32",
                       cornu__lite_dtype_name(step->out->dtype));
}
