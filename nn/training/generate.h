/*
 * Generating sequences: a model that predicts the next token is fed what it drew.
 *
 *     cornu_generate(model, prime, 250, .temperature = 0.8, .emit = print, .context = text);
 */
#ifndef CORNU_NN_GENERATE_H
#define CORNU_NN_GENERATE_H

#include "../model/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Draws one of `count` tokens: number `uniform` in [0, 1) chooses by p^(1 / temperature), p being
 * probabilities up to a factor, among the top_k most probable ones (the first ones where several
 * are equal); 0 stands for all. A temperature of 0 gives the most probable one. `room` has space
 * for count numbers. -1 if no p is greater than 0, or one is no number. */
int64_t cornu_sample_token(const float *p, int64_t count, double temperature, int64_t top_k,
                           double uniform, double *room);

typedef struct {
    char        unset;
    CornuModel *model;        /* compiled. Stateful, of input (1): one token (B = 1) gives (1, 1, V)
                                 or (1, V) probabilities of the next; its states begin anew. Or of
                                 input (T): as many of the last tokens, with zeros behind the first
                                 ones, give (1, T, V), each from no later ones than itself */
    CornuArray  prime;        /* (n,) tokens of an integer dtype, at least one: read, not emitted */
    int64_t     count;        /* tokens to generate */
    double      temperature;  /* default 1, or CORNU_ZERO */
    int64_t     top_k;        /* default all */
    uint64_t    seed;         /* of the draws */
    /* Called with each token as soon as it is drawn; false ends it, without an error. */
    bool      (*emit)(void *context, int64_t token);
    void       *context;
} CornuGenerateConfig;

/* CORNU_ERR_ARGUMENT for settings out of range, CORNU_ERR_SHAPE for a model of other shapes,
 * CORNU_ERR_VALUE if the model predicts what is no probability. */
CornuStatus cornu_generate_from(const CornuGenerateConfig *config);
#define cornu_generate(...) \
    cornu_generate_from(&(CornuGenerateConfig){ .unset = 0, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
