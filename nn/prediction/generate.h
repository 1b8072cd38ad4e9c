/*
 * Generates sequences: a model predicts the next token and is fed the one drawn.
 *
 *     cornu_generate(model, prime, 250, .temperature = 0.8, .emit = print, .context = text);
 *
 * Where the model goes step by step (generator.h) a token costs one step of it, and one of
 * recurrences and convolutions sees all tokens, also more than its input has. Of another model the
 * last tokens, as many as its input has, are computed again for each.
 */
#ifndef CORNU_NN_GENERATE_H
#define CORNU_NN_GENERATE_H

#include "generator.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Draws one of `count` tokens with probability proportional to p^(1 / temperature), among the top_k
 * most probable ones (the first ones where several are equal), or all for 0; p are probabilities up
 * to a factor, `uniform` a random number in [0, 1). A temperature of 0 gives the most probable
 * token. `scratch` holds count numbers. -1 if no p is greater than 0 or one is not finite. */
int64_t cornu_sample_token(const float *p, int64_t count, double temperature, int64_t top_k,
                           double uniform, double *scratch);
/* Likewise among the most probable of those that together have top_p of what the temperature makes
 * of their probability, or all for 1; `scratch` holds 2 count numbers.
 * Source: Holtzman et al., arXiv 1904.09751. */
int64_t cornu_sample_top_p(const float *p, int64_t count, double temperature, int64_t top_k,
                           double top_p, double uniform, double *scratch);

enum { CORNU_MAX_STOPS = 8 };

typedef struct {
    char        unset;
    CornuModel *model;        /* built. Either stateful, of input (1): one token (B = 1) gives
                                 the next one's probabilities (1, 1, V) or (1, V); its states are
                                 reset first. Or of input (T): the last tokens, padded with zeros at
                                 the end, give (1, T, V), each from no later token than itself */
    CornuArray  prime;        /* (n,) tokens of an integer dtype, at least one: read, not emitted */
    int64_t     count;        /* tokens to generate */
    double      temperature;  /* default 1, or CORNU_ZERO */
    int64_t     top_k;        /* default all */
    uint64_t    seed;         /* of the draws */
    /* Called with each token as soon as it is drawn; false stops, without an error. */
    bool      (*emit)(void *context, int64_t token);
    void       *context;
    int64_t     sequence_length;   /* T, where the model leaves it open; default 128 */
    bool        logits;       /* the model gives these in place of probabilities, as one that was
                                 compiled with from_logits */
    double      top_p;        /* above 0, at most 1, the default: cornu_sample_top_p */
    CornuArray  stop[CORNU_MAX_STOPS];   /* tokens, (n,) of an integer dtype, up to the first
                                 without data: a sequence ends when the last that were generated are
                                 these, which are emitted too */
    CornuWhenFull window;     /* of a model that goes step by step; another's slides */

    /* In place of .prime and .emit: several sequences, of any lengths. Sequence b draws numbers of
     * its own, the first one those of a single one; false ends the sequence. They are written
     * together, a token of each in turn, or one after the other where windows are computed. */
    const CornuArray *primes;
    int64_t     prime_count;
    bool      (*emit_each)(void *context, int64_t sequence, int64_t token);

    CornuTokenGenerator *generator;   /* in place of .model: one that is used again, of as many
                                 sequences; it stays the caller's. Not with .sequence_length and
                                 .window, which are its own */
} CornuGenerateConfig;

/* CORNU_ERR_ARGUMENT for settings out of range, CORNU_ERR_SHAPE for a model of other shapes,
 * CORNU_ERR_VALUE if the model predicts values that are not probabilities. */
CornuStatus cornu_generate_from(const CornuGenerateConfig *config);
#define cornu_generate(...) \
    cornu_generate_from(&(CornuGenerateConfig){ .unset = 0, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
