/*
 * Translation: an encoder-decoder transformer, and its decoding with cached keys and values.
 *
 *     CornuModel *model = cornu_transformer(.source_vocabulary = 8000, .target_vocabulary = 8002,
 *                                           .sequence_length = 20);
 *     ... compiled and trained: inputs source (S) and target so far (T), 0 is padding ...
 *     CornuTranslator *translator = cornu_translator_create(.model = model, .start = 8000,
 *                                                           .end = 8001, .beams = 4);
 *     cornu_translator_run(translator, sources, translations);
 *     cornu_translator_free(translator);
 */
#ifndef CORNU_MODELS_TRANSLATION_H
#define CORNU_MODELS_TRANSLATION_H

#include "../nn/model/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    char    unset;
    int64_t source_vocabulary, target_vocabulary;   /* required: tokens are below, 0 is padding */
    int64_t sequence_length;   /* most tokens of a sequence; default 20 */
    int64_t channels;          /* of embeddings and blocks; default 256 */
    int64_t key_dim;           /* of each head; default as many as channels */
    int64_t hidden;            /* units between a block's dense layers; default 2048 */
    int64_t heads;             /* default 8 */
    int64_t layers;            /* blocks of the encoder, and of the decoder; default 1 */
    double  dropout;           /* before the last layer; default 0.5; CORNU_ZERO: none */
    const char *name;          /* default "transformer" */
} CornuTransformerConfig;

/*
 * Embeddings of tokens and positions; encoder blocks of attention and two dense layers, decoder
 * blocks of causal attention, attention to the encoder, and two dense layers, each with a
 * residual connection, each after a layer normalization; a softmax over the target's vocabulary.
 * Inputs "source" (S) and "target" (T), padding is masked. With its defaults and vocabularies of
 * 15,000 the network of Keras' example, but for where it normalizes: before each part, as masks
 * then reach all of them.
 * Source: keras-team/keras-io, examples/nlp/neural_machine_translation_with_transformer.py; Vaswani
 * et al., "Attention Is All You Need", section 3.
 */
CornuModel *cornu_transformer_from(const CornuTransformerConfig *config);
#define cornu_transformer(...) \
    cornu_transformer_from(&(CornuTransformerConfig){ .unset = 0, __VA_ARGS__ })

typedef struct CornuTranslator CornuTranslator;

typedef struct {
    char        unset;
    CornuModel *model;         /* of cornu_transformer, compiled for a device with one shard; it
                                  stays the caller's and outlives the translator */
    int64_t     start, end;    /* tokens that begin and end a translation */
    int64_t     beams;         /* hypotheses kept for each sentence; default 1, greedy */
    int64_t     rows;          /* sentences decoded at a time; default 32 */
    double      length_penalty;/* the exponent alpha of hypotheses' lengths; default 0.6,
                                  CORNU_ZERO: none */
} CornuTranslatorConfig;

/*
 * Decodes token by token: each step computes its own keys and values alone, those of earlier tokens
 * and of the source are kept on the device. Hypotheses are compared by
 *     log p / ((5 + length) / 6)^alpha.
 * Source: Wu et al., "Google's Neural Machine Translation System", section 7, without the coverage
 * penalty.
 */
CornuTranslator *cornu_translator_create_from(const CornuTranslatorConfig *config);
#define cornu_translator_create(...) \
    cornu_translator_create_from(&(CornuTranslatorConfig){ .unset = 0, __VA_ARGS__ })

/* source (N, S) i32, as in training; to (N, T) i32 gets the translations, without `start` and
 * `end`, padded with 0. S and T are the model's. */
CornuStatus cornu_translator_run(CornuTranslator *translator, CornuArray source, CornuArray to);

/* With its graphs; the model stays the caller's. NULL is ignored. */
void cornu_translator_free(CornuTranslator *translator);

#ifdef __cplusplus
}
#endif
#endif
