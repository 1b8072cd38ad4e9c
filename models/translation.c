/* The search for translations: greedy, or by beams. */
#include "translation.h"

#include <math.h>
#include <string.h>

#include "../nn/config/keywords_internal.h"
#include "translation_internal.h"

enum { MOST_BEAMS = 64 };

struct CornuTranslator {
    CornuTranslatorConfig config;
    CornuDecoding         decoding;
    int32_t              *source, *tokens, *parents;
    int32_t              *paths, *next_paths;   /* (R, T): the tokens of each hypothesis */
    double               *scores;               /* (R): log p of those that go on, or -inf */
    int32_t              *best;                 /* (sentences, T): the best that has ended */
    double               *best_scores;          /* (sentences) */
    int                  *ended;                /* (sentences): how many have */
    float                *probabilities;
};

/* A hypothesis with one more token. */
typedef struct {
    double  score;
    int64_t beam, token;
} Candidate;

/* ---- One sentence ---- */

static double normalized(const CornuTranslator *t, double score, int64_t length)
{
    return score / pow((5.0 + (double)length) / 6.0, t->config.length_penalty);
}

/* Inserts a candidate into the list of the `most` best ones, of which there are *count. */
static void insert(Candidate *list, int64_t most, int64_t *count, Candidate candidate)
{
    if (*count == most && list[most - 1].score >= candidate.score) return;
    int64_t at = *count < most ? (*count)++ : most - 1;
    for (; at > 0 && list[at - 1].score < candidate.score; at--) list[at] = list[at - 1];
    list[at] = candidate;
}

/* Padding and the start never follow; log p of other tokens is finite or not drawn. */
static int64_t find_candidates(const CornuTranslator *t, int64_t sentence, Candidate *list)
{
    const int64_t W = t->config.beams, V = t->decoding.vocabulary;
    int64_t       count = 0;
    for (int64_t w = 0; w < W; w++) {
        const double base = t->scores[sentence * W + w];
        const float *p = t->probabilities + (sentence * W + w) * V;
        if (base == -INFINITY) continue;
        const double least = count == 2 * W ? exp(list[2 * W - 1].score - base) : 0.0;
        for (int64_t v = 1; v < V; v++)
            if (p[v] > 0.0f && (double)p[v] >= least && v != t->config.start)
                insert(list, 2 * W, &count, (Candidate){ base + log((double)p[v]), w, v });
    }
    return count;
}

static void keep_if_best(CornuTranslator *t, int64_t sentence, const int32_t *path, int64_t length,
                         double score)
{
    const int64_t T = t->decoding.target_length;
    if (score <= t->best_scores[sentence]) return;
    t->best_scores[sentence] = score;
    memset(t->best + sentence * T, 0, (size_t)T * sizeof *t->best);
    memcpy(t->best + sentence * T, path, (size_t)length * sizeof *path);
}

/* The hypotheses of a sentence after `length` tokens continue; one among the best whose next token
 * is the end has ended. */
static void advance(CornuTranslator *t, int64_t sentence, int64_t length)
{
    const int64_t W = t->config.beams, T = t->decoding.target_length;
    Candidate     list[2 * MOST_BEAMS];
    const int64_t count = find_candidates(t, sentence, list);
    int64_t       going = 0;
    double        scores[MOST_BEAMS];
    for (int64_t i = 0; i < count && going < W; i++) {
        const int64_t  from = sentence * W + list[i].beam, to = sentence * W + going;
        const int32_t *path = t->paths + from * T;
        if (list[i].token == t->config.end) {
            if (i >= W) continue;
            keep_if_best(t, sentence, path, length, normalized(t, list[i].score, length + 1));
            t->ended[sentence]++;
            continue;
        }
        memcpy(t->next_paths + to * T, path, (size_t)length * sizeof *path);
        t->next_paths[to * T + length] = (int32_t)list[i].token;
        t->tokens[to] = (int32_t)list[i].token;
        t->parents[to] = (int32_t)from;
        scores[going++] = list[i].score;
    }
    for (int64_t w = 0; w < W; w++) {
        const int64_t row = sentence * W + w;
        const bool    goes = w < going && t->ended[sentence] < W;
        t->scores[row] = goes ? scores[w] : -INFINITY;
        if (goes) continue;
        t->tokens[row] = 0;
        t->parents[row] = (int32_t)row;
    }
}

/* ---- A batch of sentences ---- */

static void begin_batch(CornuTranslator *t, int64_t count)
{
    const int64_t W = t->config.beams;
    for (int64_t row = 0; row < t->decoding.rows; row++) {
        t->tokens[row] = (int32_t)t->config.start;
        t->parents[row] = (int32_t)row;
        t->scores[row] = row % W == 0 && row / W < count ? 0.0 : -INFINITY;
    }
    for (int64_t i = 0; i < t->config.rows; i++) {
        t->best_scores[i] = -INFINITY;
        t->ended[i] = 0;
    }
}

static bool goes_on(const CornuTranslator *t)
{
    bool any = false;
    for (int64_t row = 0; row < t->decoding.rows; row++) any |= t->scores[row] > -INFINITY;
    return any;
}

/* Sentences without an end by the last token. */
static void take_unfinished(CornuTranslator *t, int64_t count, int64_t length)
{
    const int64_t W = t->config.beams, T = t->decoding.target_length;
    for (int64_t row = 0; row < count * W; row++)
        if (t->ended[row / W] == 0 && t->scores[row] > -INFINITY)
            keep_if_best(t, row / W, t->paths + row * T, length,
                         normalized(t, t->scores[row], length));
}

static CornuStatus check_finite(const CornuTranslator *t, int64_t count)
{
    const int64_t V = t->decoding.vocabulary, W = t->config.beams;
    for (int64_t row = 0; row < count * W; row++)
        if (!isfinite(t->probabilities[row * V]))
            return cornu__fail(CORNU_ERR_VALUE, "%s predicts values that are not probabilities; "
                               "its weights may not be finite",
                               cornu_model_name(t->config.model));
    return CORNU_OK;
}

static CornuStatus translate(CornuTranslator *t, const int32_t *source, int64_t count, int32_t *to)
{
    const int64_t S = t->decoding.source_length, T = t->decoding.target_length;
    int64_t       length = 0;
    memset(t->source, 0, (size_t)(t->config.rows * S) * sizeof *t->source);
    memcpy(t->source, source, (size_t)(count * S) * sizeof *source);
    begin_batch(t, count);
    CORNU__TRY(cornu__decoding_encode(&t->decoding, t->source));
    for (; length < T && goes_on(t); length++) {
        CORNU__TRY(cornu__decoding_step(&t->decoding, (int32_t)length, t->tokens, t->parents,
                                        t->probabilities));
        CORNU__TRY(check_finite(t, count));
        for (int64_t i = 0; i < t->config.rows; i++) advance(t, i, length);
        int32_t *paths = t->paths;
        t->paths = t->next_paths;
        t->next_paths = paths;
    }
    take_unfinished(t, count, length);
    memcpy(to, t->best, (size_t)(count * T) * sizeof *to);
    return CORNU_OK;
}

/* ---- The translator ---- */

static CornuStatus check_translator(const CornuTranslatorConfig *c)
{
    if (!c->model) return cornu__fail(CORNU_ERR_ARGUMENT, "the model is missing");
    if (!cornu_model_device(c->model))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s is not compiled", cornu_model_name(c->model));
    if (cornu_device_shards(cornu_model_device(c->model)) != 1)
        return cornu__fail(CORNU_ERR_ARGUMENT, "the device has %d shards, expected one",
                           cornu_device_shards(cornu_model_device(c->model)));
    if (c->beams < 1 || c->beams > MOST_BEAMS || c->rows < 1 || c->rows > 1 << 16)
        return cornu__fail(CORNU_ERR_ARGUMENT, ".beams is %lld and .rows %lld, expected 1 to %d "
                           "and 1 to %d", (long long)c->beams, (long long)c->rows, MOST_BEAMS,
                           1 << 16);
    const CornuShape out = cornu_model_output_shape(c->model);
    const int64_t    V = out.rank == 3 ? out.extent[2] : 0;
    if (c->start < 0 || c->end < 0 || c->start >= V || c->end >= V || c->start == c->end)
        return cornu__fail(CORNU_ERR_ARGUMENT, ".start is %lld and .end %lld, expected two tokens "
                           "below %lld", (long long)c->start, (long long)c->end, (long long)V);
    return isfinite(c->length_penalty) ? CORNU_OK
         : cornu__fail(CORNU_ERR_ARGUMENT, ".length_penalty is %g", c->length_penalty);
}

static CornuStatus open_translator(CornuTranslator *t)
{
    CORNU__TRY(check_translator(&t->config));
    CORNU__TRY(cornu__decoding_open(&t->decoding, &t->config));
    const CornuDecoding *d = &t->decoding;
    const size_t rows = (size_t)d->rows, sentences = (size_t)d->sentences;
    const size_t T = (size_t)d->target_length, S = (size_t)d->source_length;
    t->source = cornu__allocate(sentences * S, sizeof *t->source);
    t->tokens = cornu__allocate(rows, sizeof *t->tokens);
    t->parents = cornu__allocate(rows, sizeof *t->parents);
    t->paths = cornu__allocate(rows * T, sizeof *t->paths);
    t->next_paths = cornu__allocate(rows * T, sizeof *t->next_paths);
    t->scores = cornu__allocate(rows, sizeof *t->scores);
    t->best = cornu__allocate(sentences * T, sizeof *t->best);
    t->best_scores = cornu__allocate(sentences, sizeof *t->best_scores);
    t->ended = cornu__allocate(sentences, sizeof *t->ended);
    t->probabilities = cornu__allocate(rows * (size_t)d->vocabulary, sizeof *t->probabilities);
    return t->source && t->tokens && t->parents && t->paths && t->next_paths && t->scores &&
           t->best && t->best_scores && t->ended && t->probabilities ? CORNU_OK : CORNU_ERR_MEMORY;
}

CornuTranslator *cornu_translator_create_from(const CornuTranslatorConfig *config)
{
    if (cornu__refused()) return NULL;
    CornuTranslator *t = cornu__allocate(1, sizeof *t);
    if (!t) return cornu__null();
    t->config = *config;
    if (!t->config.beams) t->config.beams = 1;
    if (!t->config.rows) t->config.rows = 32;
    t->config.length_penalty = cornu__number(config->length_penalty, 0.6);
    if (!cornu__fail_prefix(open_translator(t), "cornu_translator")) return t;
    cornu_translator_free(t);
    return cornu__null();
}

CornuStatus cornu_translator_run(CornuTranslator *t, CornuArray source, CornuArray to)
{
    CornuText a, b;
    CORNU__TRY(cornu__refused_status());
    if (!t) return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_translator_run: no translator");
    const int64_t S = t->decoding.source_length, T = t->decoding.target_length;
    const int64_t N = source.type.shape.rank == 2 ? source.type.shape.extent[0] : -1;
    if (!cornu_type_equal(source.type, cornu_type(CORNU_I32, N, S)) ||
        !cornu_type_equal(to.type, cornu_type(CORNU_I32, N, T)))
        return cornu__fail(CORNU_ERR_SHAPE, "cornu_translator_run: got %s and %s, expected i32 of "
                           "as many rows, %lld and %lld long", cornu_type_print(&a, source.type),
                           cornu_type_print(&b, to.type), (long long)S, (long long)T);
    for (int64_t first = 0; first < N; first += t->config.rows) {
        const int64_t count = N - first < t->config.rows ? N - first : t->config.rows;
        CORNU__TRY(translate(t, (const int32_t *)source.data + first * S, count,
                             (int32_t *)to.data + first * T));
    }
    return CORNU_OK;
}

void cornu_translator_free(CornuTranslator *t)
{
    if (!t) return;
    cornu__decoding_close(&t->decoding);
    cornu__release(t->source), cornu__release(t->tokens), cornu__release(t->parents);
    cornu__release(t->paths), cornu__release(t->next_paths), cornu__release(t->scores);
    cornu__release(t->best), cornu__release(t->best_scores), cornu__release(t->ended);
    cornu__release(t->probabilities);
    cornu__release(t);
}
