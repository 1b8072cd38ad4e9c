/*
 * Generators: causal models that predict token by token, each from what was kept of those before.
 *
 *     CornuTokenGenerator *generator = cornu_generator(model, .batch_size = 2);
 *     cornu_generator_begin(generator, primes, logits);       two sequences of any lengths
 *     cornu_generator_next(generator, tokens, logits);        one more token of each
 *
 * cornu_generate (generate.h) makes one and draws the tokens. What is kept: keys and values of
 * attention, the states of recurrences, the last inputs of causal convolutions. A token costs what
 * one step of the model costs, whatever its place; the first ones are computed together. Results
 * are those of cornu_predict on the whole sequence but for the rounding of f32, and the same bits
 * for any number of threads.
 *
 * A model goes step by step if each of its layers does: MultiHeadAttention and GroupQueryAttention
 * with use_causal_mask, without masks of their own; LSTM, GRU, SimpleRNN and RNN that return
 * sequences; Conv1D with causal padding; PositionEmbedding; models of such layers; and all layers,
 * also of your own that are registered (cornu_register_layer), that compute each step alone, which
 * is found out from the ops that they record. Any other is refused by name.
 */
#ifndef CORNU_NN_GENERATOR_H
#define CORNU_NN_GENERATOR_H

#include "../model/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CornuTokenGenerator CornuTokenGenerator;

/* A model with attention or positions sees a window of its last tokens: as many as its input has,
 * (T), or where that is open .sequence_length. What happens with one more: */
typedef enum {
    CORNU_WINDOW_SLIDES,  /* the oldest is forgotten. As all places change, the whole window is
                             computed again, for each token */
    CORNU_WINDOW_HALVES,  /* the older half is forgotten and the other computed again: once in T / 2
                             tokens, each of which sees between T / 2 and T */
    CORNU_WINDOW_STOPS    /* CORNU_ERR_VALUE */
} CornuWhenFull;            /* Recurrences and convolutions see all tokens, and need no window. */

typedef struct {
    char         unset;
    CornuModel  *model;            /* built, with one input of tokens (T) and one output (T, V);
                                      its weights are copied */
    int64_t      batch_size;       /* sequences; default 1 */
    int64_t      sequence_length;  /* the window where the model leaves it open; default 128 */
    CornuWhenFull  window;           /* default CORNU_WINDOW_SLIDES */
    int64_t      threads;          /* default the device's */
} CornuTokenGeneratorConfig;

/* On a device of its own like the model's. NULL with a pending error: CORNU_ERR_UNSUPPORTED for a
 * layer that does not go step by step, CORNU_ERR_SHAPE for a model of other shapes. */
CornuTokenGenerator *cornu_generator_from(const CornuTokenGeneratorConfig *config);
#define cornu_generator(...) \
    cornu_generator_from(&(CornuTokenGeneratorConfig){ .unset = 0, __VA_ARGS__ })
/* NULL is ignored. */
void cornu_generator_free(CornuTokenGenerator *generator);

/* The copy of the model: for names, class names and notes. It must not be run or changed. */
const CornuModel *cornu_generator_model(const CornuTokenGenerator *generator);
/* The number of sequences. */
int64_t cornu_generator_batch_size(const CornuTokenGenerator *generator);
/* V. */
int64_t cornu_generator_vocabulary(const CornuTokenGenerator *generator);
/* The tokens of a window; 0: the model needs none. */
int64_t cornu_generator_window(const CornuTokenGenerator *generator);

/* Begins sequences: primes[b] are the first tokens of sequence b, (n), at least one, of an integer
 * dtype. `to`, f32 (B, V), receives the model's output for the last of each: what it predicts for
 * the next. CORNU_ERR_VALUE for a token that is not in [0, 2^31); models refuse others
 * themselves. */
CornuStatus cornu_generator_begin(CornuTokenGenerator *generator, const CornuArray *primes,
                                  CornuArray to);

/* Appends a token to each sequence, (B) integers, likewise. One of -1 appends nothing: that
 * sequence has ended, and its row of `to` is of any value. */
CornuStatus cornu_generator_next(CornuTokenGenerator *generator, CornuArray tokens, CornuArray to);

#ifdef __cplusplus
}
#endif
#endif
