#include "generate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../device/log_internal.h"
#include "../../device/random.h"
#include "../training/training_internal.h"

/* Draw i of sequence b uses the counter (i / 4, b, 0, this), see device/random.h: a generator that
 * no model and no data set uses. */
static const uint32_t draw_generator = UINT32_C(0xFFFF0003);

static double draw_number(uint64_t seed, int64_t i, int64_t b)
{
    uint32_t word[4];
    cornu_philox(seed, (uint32_t[]){ (uint32_t)(i / 4), (uint32_t)b, 0, draw_generator }, word);
    return cornu_uniform(word[i % 4]);
}

enum { ANY_STEPS = 128 };

/* A sequence that is written. */
typedef struct {
    CornuArray prime;
    int64_t    number;
    int64_t   *tail;           /* its last tokens, as many as the longest .stop has */
    int64_t    drawn;          /* tokens so far */
    bool       ended;
} Sequence;

typedef struct {
    const CornuGenerateConfig *config;
    const CornuModel    *model;             /* .model, or the generator's */
    CornuTokenGenerator *generator, *own;   /* NULL: whole windows; made here */
    double               temperature, top_p;
    int64_t              vocabulary;
    int64_t              longest;           /* of .stop */
    int64_t              count;
    Sequence            *sequences;
    int64_t             *tails;
    int32_t             *tokens;            /* of a step of the generator */
    float               *p;                 /* what is predicted for each sequence */
    double              *scratch;
    int64_t              steps, filled;     /* tokens that the model reads at once; in the window */
    char                *window;            /* the last tokens, followed by zeros */
    float               *predictions;       /* of each token's successor */
} Generation;

/* ---- Checks ---- */

static CornuStatus check_tokens(CornuArray tokens, const char *what)
{
    CornuText text;
    if (tokens.type.shape.rank == 1 && tokens.type.shape.extent[0] >= 1 && tokens.data &&
        !cornu_dtype_is_float(tokens.type.dtype))
        return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "generate: %s is %s, expected a vector of at least one "
                       "integer", what, cornu_type_print(&text, tokens.type));
}

/* Whose sequences there are, and who gets them. */
static CornuStatus check_sequences(const CornuGenerateConfig *config)
{
    const bool many = config->primes != NULL;
    char       what[40];
    if (!config->model == !config->generator)
        return cornu__fail(CORNU_ERR_ARGUMENT, "generate: %s", config->model
                               ? ".model and .generator are given, expected one of them"
                               : "no model is given");
    if (many ? !config->emit_each : !config->emit)
        return cornu__fail(CORNU_ERR_ARGUMENT, "generate: no .%s is given",
                           many ? "emit_each" : "emit");
    if (many && (config->prime.data || config->emit || config->prime_count < 1 ||
                 config->prime_count > INT32_MAX))
        return cornu__fail(CORNU_ERR_ARGUMENT, "generate: .primes are %lld%s%s, expected 1 or more "
                           "and .emit_each alone", (long long)config->prime_count,
                           config->prime.data ? ", .prime is given" : "",
                           config->emit ? ", .emit is given" : "");
    if (config->generator && (config->window || config->sequence_length))
        return cornu__fail(CORNU_ERR_ARGUMENT, "generate: .%s is given with a .generator, which "
                           "has its own", config->window ? "window" : "sequence_length");
    if (!many) return check_tokens(config->prime, ".prime");
    for (int64_t b = 0; b < config->prime_count; b++) {
        snprintf(what, sizeof what, ".primes[%lld]", (long long)b);
        CORNU__TRY(check_tokens(config->primes[b], what));
    }
    return CORNU_OK;
}

static CornuStatus check_generate(const CornuGenerateConfig *config)
{
    const double temperature = cornu__number(config->temperature, 1.0);
    char         what[40];
    CORNU__TRY(check_sequences(config));
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
    if (!(config->top_p >= 0.0 && config->top_p <= 1.0))
        return cornu__fail(CORNU_ERR_ARGUMENT, "generate: .top_p is %g, expected more than 0, at "
                           "most 1", config->top_p);
    for (int i = 0; i < CORNU_MAX_STOPS && config->stop[i].data; i++) {
        snprintf(what, sizeof what, ".stop[%d]", i);
        CORNU__TRY(check_tokens(config->stop[i], what));
    }
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

/* ---- One token ---- */

/* The row p as probabilities up to a factor, whose largest is 1. */
static void take_exponentials(float *p, int64_t count)
{
    float most = p[0];
    for (int64_t i = 1; i < count; i++)
        if (p[i] > most) most = p[i];
    for (int64_t i = 0; i < count; i++) p[i] = expf(p[i] - most); /* NaN where one is not finite */
}

/* Whether what was drawn last is the tokens of a .stop. */
static bool is_stopped(const Generation *g, const Sequence *sequence)
{
    for (int i = 0; i < CORNU_MAX_STOPS && g->config->stop[i].data; i++) {
        const CornuArray stop = g->config->stop[i];
        const int64_t    length = stop.type.shape.extent[0];
        bool             same = length <= sequence->drawn;
        for (int64_t k = 0; k < length && same; k++)
            same = cornu_array_get(stop, k) == (double)sequence->tail[g->longest - length + k];
        if (same) return true;
    }
    return false;
}

static bool emit(const Generation *g, const Sequence *sequence, int64_t token)
{
    const CornuGenerateConfig *config = g->config;
    return config->primes ? config->emit_each(config->context, sequence->number, token)
                          : config->emit(config->context, token);
}

/* Draws the next token of the sequence from p, and emits it. */
static CornuStatus draw(Generation *g, Sequence *sequence, float *p, int64_t *token)
{
    const CornuGenerateConfig *config = g->config;
    if (config->logits) take_exponentials(p, g->vocabulary);
    *token = cornu_sample_top_p(p, g->vocabulary, g->temperature, config->top_k, g->top_p,
                                draw_number(config->seed, sequence->drawn, sequence->number),
                                g->scratch);
    if (*token < 0)
        return cornu__fail(CORNU_ERR_VALUE, "%s predicts values that are not probabilities "
                           "after %lld tokens; its weights may not be finite",
                           cornu_model_name(g->model), (long long)sequence->drawn);
    if (g->longest > 0) {
        memmove(sequence->tail, sequence->tail + 1,
                (size_t)(g->longest - 1) * sizeof *sequence->tail);
        sequence->tail[g->longest - 1] = *token;
    }
    sequence->drawn++;
    sequence->ended = !emit(g, sequence, *token) || is_stopped(g, sequence) ||
                      sequence->drawn == config->count;
    return CORNU_OK;
}

/* ---- Whole windows, for each token ---- */

/* Appends a token to the window; a full one loses its oldest. */
static void push(Generation *g, CornuDtype dtype, double token)
{
    const size_t each = cornu_dtype_size(dtype);
    if (g->filled == g->steps) {
        memmove(g->window, g->window + each, (size_t)(g->steps - 1) * each);
        g->filled--;
    }
    cornu_array_set(cornu_array(g->window, dtype, g->steps), g->filled++, token);
}

/* *p: the probabilities of the last token's successor. */
static CornuStatus predict(Generation *g, CornuDtype dtype, float **p)
{
    CornuShape out = cornu_model_output_shape(g->model);
    out.extent[0] = 1;
    if (out.rank == 3) out.extent[1] = g->steps;
    *p = g->predictions + (g->filled - 1) * g->vocabulary;
    return cornu_predict_on_batch(
        g->config->model, cornu_array(g->window, dtype, 1, g->steps),
        cornu_array_from(g->predictions, cornu_type_from(CORNU_F32, out)));
}

static CornuStatus write_by_windows(Generation *g, Sequence *sequence)
{
    const CornuArray prime = sequence->prime;
    const CornuDtype dtype = prime.type.dtype;
    const int64_t    primes = prime.type.shape.extent[0];
    int64_t          token;
    float           *p;
    CORNU__TRY(check_shapes(g->model, dtype));
    CORNU__TRY(cornu_model_reset_states(g->config->model));
    g->filled = 0;
    memset(g->window, 0, (size_t)g->steps * sizeof(int64_t));
    for (int64_t i = 0; i < primes; i++) {
        push(g, dtype, cornu_array_get(prime, i));
        if (g->steps == 1 && i + 1 < primes)
            CORNU__TRY(predict(g, dtype, &p));   /* updates the states */
    }
    while (!sequence->ended) {
        CORNU__TRY(predict(g, dtype, &p));
        CORNU__TRY(draw(g, sequence, p, &token));
        push(g, dtype, (double)token);
    }
    return CORNU_OK;
}

static CornuStatus generate_by_windows(Generation *g)
{
    g->steps = cornu_model_input_shape(g->model).extent[1];
    if (g->steps == CORNU_NONE)
        g->steps = g->config->sequence_length ? g->config->sequence_length : ANY_STEPS;
    g->window = cornu__allocate((size_t)g->steps, sizeof(int64_t));   /* of any dtype */
    g->predictions = cornu__allocate((size_t)(g->steps * g->vocabulary), sizeof *g->predictions);
    if (!g->window || !g->predictions) return CORNU_ERR_MEMORY;
    for (int64_t b = 0; b < g->count; b++) CORNU__TRY(write_by_windows(g, &g->sequences[b]));
    return CORNU_OK;
}

/* ---- Step by step ---- */

static CornuStatus generate_by_steps(Generation *g)
{
    const CornuArray to = cornu_array(g->p, CORNU_F32, g->count, g->vocabulary);
    CornuArray      *primes = cornu__allocate((size_t)g->count, sizeof *primes);
    int64_t          left = g->count, token;
    if (!primes) return CORNU_ERR_MEMORY;
    for (int64_t b = 0; b < g->count; b++) primes[b] = g->sequences[b].prime;
    CornuStatus status = cornu_generator_begin(g->generator, primes, to);
    cornu__release(primes);
    while (!status) {
        for (int64_t b = 0; b < g->count && !status; b++) {
            Sequence *sequence = &g->sequences[b];
            g->tokens[b] = -1;
            if (sequence->ended) continue;
            status = draw(g, sequence, g->p + b * g->vocabulary, &token);
            if (sequence->ended) left--;
            else g->tokens[b] = (int32_t)token;
        }
        if (status || !left) break;
        status = cornu_generator_next(g->generator, cornu_array(g->tokens, CORNU_I32, g->count),
                                      to);
    }
    return status;
}

/* Makes a generator, unless there is one, or the model does not go step by step. */
static CornuStatus find_generator(Generation *g)
{
    const CornuGenerateConfig *config = g->config;
    g->generator = config->generator;
    if (config->generator && cornu_generator_batch_size(config->generator) != g->count)
        return cornu__fail(CORNU_ERR_ARGUMENT, "generate: %lld sequences for a generator of %lld, "
                           "expected as many", (long long)g->count,
                           (long long)cornu_generator_batch_size(config->generator));
    if (config->generator || cornu_model_input_shape(config->model).extent[1] == 1) return CORNU_OK;
    g->generator = g->own = cornu_generator(config->model, g->count, config->sequence_length,
                                            config->window);
    if (g->own) return CORNU_OK;
    const CornuStatus status = cornu_error_take();
    if (status == CORNU_ERR_MEMORY || config->window) return status;
    cornu__log(CORNU_LOG_INFO, "generate: whole windows are computed: %s", cornu_error_message());
    return CORNU_OK;
}

/* ---- Both ---- */

static CornuStatus allocate(Generation *g)
{
    const CornuGenerateConfig *config = g->config;
    const CornuShape           out = cornu_model_output_shape(g->model);
    g->vocabulary = out.extent[out.rank - 1];
    g->temperature = cornu__number(config->temperature, 1.0);
    g->top_p = config->top_p == 0.0 ? 1.0 : config->top_p;
    for (int i = 0; i < CORNU_MAX_STOPS && config->stop[i].data; i++)
        if (config->stop[i].type.shape.extent[0] > g->longest)
            g->longest = config->stop[i].type.shape.extent[0];
    const size_t count = (size_t)g->count, longest = (size_t)g->longest;
    g->sequences = cornu__allocate(count, sizeof *g->sequences);
    g->tails = cornu__allocate(count * longest + 1, sizeof *g->tails);
    g->tokens = cornu__allocate(count, sizeof *g->tokens);
    g->p = cornu__allocate(count * (size_t)g->vocabulary, sizeof *g->p);
    g->scratch = cornu__allocate(2 * (size_t)g->vocabulary, sizeof *g->scratch);
    if (!g->sequences || !g->tails || !g->tokens || !g->p || !g->scratch) return CORNU_ERR_MEMORY;
    for (int64_t b = 0; b < g->count; b++)
        g->sequences[b] = (Sequence){ .prime = config->primes ? config->primes[b] : config->prime,
                                      .number = b, .tail = g->tails + b * g->longest,
                                      .ended = config->count == 0 };
    return CORNU_OK;
}

static CornuStatus generate(Generation *g)
{
    const CornuGenerateConfig *config = g->config;
    g->count = config->primes ? config->prime_count : 1;
    g->model = config->generator ? cornu_generator_model(config->generator) : config->model;
    for (int64_t b = 0; b < g->count; b++)
        CORNU__TRY(check_shapes(g->model, (config->primes ? config->primes[b]
                                                          : config->prime).type.dtype));
    CORNU__TRY(allocate(g));
    if (config->count == 0) return CORNU_OK;
    CORNU__TRY(find_generator(g));
    return g->generator ? generate_by_steps(g) : generate_by_windows(g);
}

static CornuStatus run_generate(const CornuGenerateConfig *config)
{
    Generation g = { .config = config };
    CORNU__TRY(cornu__refused_status());
    CORNU__TRY(check_generate(config));
    const CornuStatus status = generate(&g);
    cornu_generator_free(g.own);
    cornu__release(g.sequences);
    cornu__release(g.tails);
    cornu__release(g.tokens);
    cornu__release(g.p);
    cornu__release(g.scratch);
    cornu__release(g.window);
    cornu__release(g.predictions);
    return status;
}

CornuStatus cornu_generate_from(const CornuGenerateConfig *config)
{
    CORNU__WITHIN(config->model, "cornu_generate", run_generate(config));
}
