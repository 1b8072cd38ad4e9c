/*
 * Random numbers by Philox; random.h describes the four words of the counter. Row i of axis 0 is
 * row position + i of the global batch; the elements of a row are counted from 0. seed, iteration
 * and position are i64 scalars, so that they can change from run to run; a value that does not fit
 * its word is an error.
 */
#include "../random.h"

#include <math.h>

#include "rules.h"
#include "build.h"

/* Doubles are exact for integers up to here: a larger seed has lost its last bits before it gets to
 * this file. */
static const double MOST_EXACT = 0x1p53;

static CornuStatus check_generator(const CornuOpCall *call, int64_t generator, CornuShape shape,
                                   const char *names)
{
    if (generator < 0 || generator > UINT32_MAX)
        return cornu__refuse(call, CORNU_ERR_VALUE, names, "generator %lld, expected 0 to %lld",
                             (long long)generator, (long long)UINT32_MAX);
    int64_t row = 1;
    for (int i = 1; i < shape.rank; i++) row *= shape.extent[i];
    if (row / 4 > UINT32_MAX)
        return cornu__refuse(call, CORNU_ERR_SHAPE, names, "rows have %lld elements, expected "
                             "fewer than 2^34", (long long)row);
    return CORNU_OK;
}

/* Operands first, first + 1 and first + 2 are i64 scalars. */
static CornuStatus check_scalars(const CornuOpCall *call, int first, const char *names)
{
    for (int i = first; i < first + 3; i++) {
        CORNU__TRY(cornu__expect_dtype(call, i, CORNU_I64, names));
        CORNU__TRY(cornu__expect_rank(call, i, 0, names));
    }
    return CORNU_OK;
}

/* What the draws of one call share. */
typedef struct {
    uint64_t seed;
    uint32_t iteration, generator;
    int64_t  position, row_size;
} Stream;

static CornuStatus stream_of(const double *seed, const double *iteration, const double *position,
                             CornuShape shape, int64_t generator, Stream *stream)
{
    int64_t rows = shape.rank > 0 ? shape.extent[0] : 1;
    if (fabs(*seed) >= MOST_EXACT)
        return cornu__fail(CORNU_ERR_VALUE, "seed is %.0f, expected less than 2^53, since "
                           "this device stores it as a double", *seed);
    if (*iteration < 0 || *iteration > UINT32_MAX)
        return cornu__fail(CORNU_ERR_VALUE, "iteration is %.0f, expected 0 to %.0f", *iteration,
                           (double)UINT32_MAX);
    double last = (double)UINT32_MAX - (double)(rows > 0 ? rows - 1 : 0);
    if (*position < 0 || *position > last)
        return cornu__fail(CORNU_ERR_VALUE, "position is %.0f, expected 0 to %.0f", *position,
                           last);
    *stream = (Stream){
        .seed = (uint64_t)(int64_t)*seed, .iteration = (uint32_t)*iteration,
        .generator = (uint32_t)generator, .position = (int64_t)*position, .row_size = 1,
    };
    for (int i = 1; i < shape.rank; i++) stream->row_size *= shape.extent[i];
    return CORNU_OK;
}

static double uniform_at(const Stream *stream, int64_t i)
{
    int64_t        element = i % stream->row_size, row = stream->position + i / stream->row_size;
    const uint32_t counter[4] = {
        (uint32_t)(element / 4), (uint32_t)row, stream->iteration, stream->generator,
    };
    uint32_t words[4];
    cornu_philox(stream->seed, counter, words);
    return cornu_uniform(words[element % 4]);
}

/* random_uniform(seed, iteration, position): f32 in [0, 1), of the shape in the attributes. */
static CornuStatus random_uniform_type(const CornuOpCall *call, CornuType *out)
{
    static const char             names[] = "seed iteration position";
    const CornuAttributes_RANDOM *random = &call->attributes->random;
    CORNU__TRY(check_scalars(call, 0, names));
    if (random->rank < 0 || random->rank > CORNU_MAX_RANK)
        return cornu__fail(CORNU_ERR_SHAPE, "rank %lld, expected 0 to %d", (long long)random->rank,
                           CORNU_MAX_RANK);
    out[0] = cornu_type_from(CORNU_F32, cornu_shape_from((int)random->rank, random->extents));
    CORNU__TRY(cornu_type_check(out[0]));
    return check_generator(call, random->generator, out[0].shape, names);
}

static CornuStatus random_uniform_reference(const CornuReferenceCall *call)
{
    Stream stream;
    CORNU__TRY(stream_of(call->in[0], call->in[1], call->in[2], call->out_type[0].shape,
                         call->op.attributes->random.generator, &stream));
    for (int64_t i = 0; i < call->count; i++) call->out[0][i] = uniform_at(&stream, i);
    return CORNU_OK;
}

const CornuOpRules cornu__random_uniform_rules = {
    random_uniform_type, CORNU_NO_FLOPS, CORNU_PRIMITIVE, random_uniform_reference,
};

/*
 * dropout(x, seed, iteration, position): 0 where random_uniform of x's shape is less than the
 * rate, else x times 1 / (1 - rate); y has the type of x. The rate is rounded to f32, like the
 * numbers it is compared with, so that every device drops the same elements.
 * Source: Srivastava et al., "Dropout", JMLR 15 (2014), section 10 (scaling at training time).
 */
static CornuStatus dropout_type(const CornuOpCall *call, CornuType *out)
{
    static const char              names[] = "x seed iteration position";
    const CornuAttributes_DROPOUT *dropout = &call->attributes->dropout;
    CORNU__TRY(cornu__expect_float(call, 0, names));
    CORNU__TRY(check_scalars(call, 1, names));
    if (!(dropout->rate >= 0.0 && dropout->rate < 1.0))
        return cornu__refuse(call, CORNU_ERR_VALUE, names, "rate %g, expected 0 or more and less "
                             "than 1", dropout->rate);
    CORNU__TRY(check_generator(call, dropout->generator, call->in[0].shape, names));
    return cornu__same_type(call, out);
}

/* Scaling is computed in f32 at least: bf16 would round 1 / (1 - rate). */
static CornuStatus dropout_decompose(CornuProgram *program, const CornuOpCall *call,
                                     const CornuValue *in, CornuValue *out)
{
    const CornuAttributes_DROPOUT *dropout = &call->attributes->dropout;
    CornuBuilder    b = { program, CORNU_OK };
    CornuType       type = call->in[0];
    CornuAttributes random = {
        .random = { .rank = type.shape.rank, .generator = dropout->generator },
    };
    for (int i = 0; i < type.shape.rank; i++) random.random.extents[i] = type.shape.extent[i];
    CornuValue uniform = cornu__build(&b, CORNU_OP_RANDOM_UNIFORM, &random, in + 1, 3);
    CornuValue rate = cornu__build_constant(&b, (float)dropout->rate, uniform);
    CornuValue dropped = cornu__build_compare(&b, uniform, CORNU_LESS, rate);
    CornuDtype computed = type.dtype == CORNU_F64 ? CORNU_F64 : CORNU_F32;
    CornuValue x = cornu__build_convert(&b, in[0], computed);
    CornuValue scaled = cornu__build_scale(&b, x, 1.0 / (1.0 - dropout->rate));
    CornuValue zero = cornu__build_constant(&b, 0.0, scaled);
    out[0] = cornu__build_convert(&b, cornu__build_select(&b, dropped, zero, scaled), type.dtype);
    return b.status;
}

static CornuStatus dropout_reference(const CornuReferenceCall *call)
{
    const CornuAttributes_DROPOUT *dropout = &call->op.attributes->dropout;
    Stream                         stream;
    CORNU__TRY(stream_of(call->in[1], call->in[2], call->in[3], call->out_type[0].shape,
                         dropout->generator, &stream));
    double scale = 1.0 / (1.0 - dropout->rate);
    for (int64_t i = 0; i < call->count; i++)
        call->out[0][i] = uniform_at(&stream, i) < (float)dropout->rate ? 0.0
                                                                        : call->in[0][i] * scale;
    return CORNU_OK;
}

const CornuOpRules cornu__dropout_rules = {
    dropout_type, cornu__flops_per_element, dropout_decompose, dropout_reference,
};
