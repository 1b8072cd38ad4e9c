#include "generate.h"

#include <math.h>
#include <string.h>

#include "../../device/random.h"
#include "../model/model_internal.h"

/* Draw i uses the counter (i / 4, 0, 0, this), see device/random.h: a generator that no model and
 * no data set uses. */
static const uint32_t draw_generator = UINT32_C(0xFFFF0003);

static double draw_number(uint64_t seed, int64_t i)
{
    uint32_t word[4];
    cornu_philox(seed, (uint32_t[]){ (uint32_t)(i / 4), 0, 0, draw_generator }, word);
    return cornu_uniform(word[i % 4]);
}

/* ---- One token ---- */

static int64_t largest(const double *p, int64_t count)
{
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++)
        if (p[i] > p[best]) best = i;
    return best;
}

/* Sets all but the k largest to 0. Each is found by a linear search, as k is small; the sign marks
 * those found so far. */
static void keep_largest(double *p, int64_t count, int64_t k)
{
    for (int64_t kept = 0; kept < k; kept++) {
        const int64_t best = largest(p, count);
        if (p[best] <= 0.0) break;
        p[best] = -p[best];
    }
    for (int64_t i = 0; i < count; i++) p[i] = p[i] < 0.0 ? -p[i] : 0.0;
}

int64_t cornu_sample_token(const float *p, int64_t count, double temperature, int64_t top_k,
                           double uniform, double *scratch)
{
    double most = 0.0, sum = 0.0;
    for (int64_t i = 0; i < count; i++) {
        if (!(p[i] >= 0.0f && isfinite(p[i]))) return -1;
        scratch[i] = p[i];
        if (scratch[i] > most) most = scratch[i];
    }
    if (most == 0.0) return -1;
    if (temperature == 0.0) return largest(scratch, count);
    if (top_k > 0 && top_k < count) keep_largest(scratch, count, top_k);
    /* Relative to the largest, so that the powers do not all underflow. */
    for (int64_t i = 0; i < count; i++) {
        scratch[i] = pow(scratch[i] / most, 1.0 / temperature);
        sum += scratch[i];
    }
    double  left = uniform * sum;
    int64_t last = -1;
    for (int64_t i = 0; i < count; i++) {
        if (scratch[i] == 0.0) continue;
        last = i;
        if (left < scratch[i]) break;
        left -= scratch[i];
    }
    return last;
}

/* ---- Sequences ---- */

enum { ANY_STEPS = 128 };

typedef struct {
    const CornuGenerateConfig *config;
    double  temperature;
    int64_t vocabulary;
    int64_t steps, filled;     /* tokens that the model reads at once; those in the window so far */
    char   *window;            /* the last tokens, followed by zeros */
    float  *probabilities;     /* of each token's successor */
    double *scratch;
} Generation;

static CornuStatus check_generate(const CornuGenerateConfig *config)
{
    const CornuArray prime = config->prime;
    const double     temperature = cornu__number(config->temperature, 1.0);
    CornuText        text;
    if (!config->model || !config->emit)
        return cornu__fail(CORNU_ERR_ARGUMENT, "generate: no %s is given",
                           config->model ? ".emit" : "model");
    if (prime.type.shape.rank != 1 || prime.type.shape.extent[0] < 1 || !prime.data ||
        cornu_dtype_is_float(prime.type.dtype))
        return cornu__fail(CORNU_ERR_ARGUMENT, "generate: .prime is %s, expected a vector of at "
                           "least one integer", cornu_type_print(&text, prime.type));
    if (config->count < 0 || config->count > INT32_MAX)
        return cornu__fail(CORNU_ERR_ARGUMENT, "generate: .count is %lld, expected 0 to %d",
                           (long long)config->count, INT32_MAX);
    if (!(temperature >= 0.0 && isfinite(temperature)))
        return cornu__fail(CORNU_ERR_ARGUMENT, "generate: .temperature is %g, expected 0 or more",
                           temperature);
    if (config->sequence_length < 0)
        return cornu__fail(CORNU_ERR_ARGUMENT,
                           "generate: .sequence_length is %lld, expected 1 or more",
                           (long long)config->sequence_length);
    if (config->top_k < 0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "generate: .top_k is %lld, expected 0 or more",
                           (long long)config->top_k);
    return CORNU_OK;
}

static CornuStatus check_shapes(const CornuModel *model, CornuDtype tokens)
{
    const CornuShape in = cornu_model_input_shape(model), out = cornu_model_output_shape(model);
    CornuText        a, b;
    const int64_t    steps = in.rank == 2 ? in.extent[1] : 0;
    const bool       each = out.rank == 3 ? out.extent[1] == steps : out.rank == 2 && steps == 1;
    if ((steps < 1 && steps != CORNU_NONE) || !each)
        return cornu__fail(CORNU_ERR_SHAPE, "%s maps %s to %s, expected tokens to the "
                           "probabilities of each token's successor", cornu_model_name(model),
                           cornu_shape_print(&a, in), cornu_shape_print(&b, out));
    const int64_t vocabulary = out.extent[out.rank - 1];
    if (tokens != CORNU_U8 || vocabulary <= 256) return CORNU_OK;
    return cornu__fail(CORNU_ERR_DTYPE, "generate: .prime is u8, expected a wider dtype for %lld "
                       "tokens",
                       (long long)vocabulary);
}

/* Appends a token to the window; a full one loses its oldest. */
static void push(Generation *g, double token)
{
    const CornuDtype dtype = g->config->prime.type.dtype;
    const size_t     each = cornu_dtype_size(dtype);
    if (g->filled == g->steps) {
        memmove(g->window, g->window + each, (size_t)(g->steps - 1) * each);
        g->filled--;
    }
    cornu_array_set(cornu_array(g->window, dtype, g->steps), g->filled++, token);
}

/* *p: the probabilities of the last token's successor. */
static CornuStatus predict(Generation *g, const float **p)
{
    CornuModel *model = g->config->model;
    CornuShape  out = cornu_model_output_shape(model);
    out.extent[0] = 1;
    if (out.rank == 3) out.extent[1] = g->steps;
    *p = g->probabilities + (g->filled - 1) * g->vocabulary;
    return cornu_predict_on_batch(
        model, cornu_array(g->window, g->config->prime.type.dtype, 1, g->steps),
        cornu_array_from(g->probabilities, cornu_type_from(CORNU_F32, out)));
}

/* The row p as probabilities up to a factor, whose largest is 1. */
static void take_exponentials(float *p, int64_t count)
{
    float most = p[0];
    for (int64_t i = 1; i < count; i++)
        if (p[i] > most) most = p[i];
    for (int64_t i = 0; i < count; i++) p[i] = expf(p[i] - most); /* NaN where one is not finite */
}

static CornuStatus generate(Generation *g)
{
    const CornuGenerateConfig *config = g->config;
    const int64_t primes = config->prime.type.shape.extent[0];
    const float  *p;
    CORNU__TRY(cornu_model_reset_states(config->model));
    for (int64_t i = 0; i < primes; i++) {
        push(g, cornu_array_get(config->prime, i));
        if (g->steps == 1 && i + 1 < primes) CORNU__TRY(predict(g, &p));   /* updates the states */
    }
    for (int64_t i = 0; i < config->count; i++) {
        CORNU__TRY(predict(g, &p));
        if (config->logits)
            take_exponentials(g->probabilities + (g->filled - 1) * g->vocabulary, g->vocabulary);
        const int64_t drawn = cornu_sample_token(p, g->vocabulary, g->temperature, config->top_k,
                                                 draw_number(config->seed, i), g->scratch);
        if (drawn < 0)
            return cornu__fail(CORNU_ERR_VALUE, "%s predicts values that are not probabilities "
                               "after %lld tokens; its weights may not be finite",
                               cornu_model_name(config->model), (long long)i);
        if (!config->emit(config->context, drawn)) break;
        push(g, (double)drawn);
    }
    return CORNU_OK;
}

static CornuStatus run_generate(const CornuGenerateConfig *config)
{
    CORNU__TRY(cornu__refused_status());
    CORNU__TRY(check_generate(config));
    CORNU__TRY(check_shapes(config->model, config->prime.type.dtype));
    const CornuShape out = cornu_model_output_shape(config->model);
    Generation       g = { .config = config, .vocabulary = out.extent[out.rank - 1],
                           .temperature = cornu__number(config->temperature, 1.0) };
    g.steps = cornu_model_input_shape(config->model).extent[1];
    if (g.steps == CORNU_NONE)
        g.steps = config->sequence_length ? config->sequence_length : ANY_STEPS;
    g.window = cornu__allocate((size_t)g.steps, cornu_dtype_size(config->prime.type.dtype));
    g.probabilities = cornu__allocate((size_t)(g.steps * g.vocabulary), sizeof *g.probabilities);
    g.scratch = cornu__allocate((size_t)g.vocabulary, sizeof *g.scratch);
    CornuStatus status = g.window && g.probabilities && g.scratch ? generate(&g) : CORNU_ERR_MEMORY;
    cornu__release(g.window);
    cornu__release(g.probabilities);
    cornu__release(g.scratch);
    return status;
}

CornuStatus cornu_generate_from(const CornuGenerateConfig *config)
{
    CORNU__WITHIN(config->model, "cornu_generate", run_generate(config));
}
