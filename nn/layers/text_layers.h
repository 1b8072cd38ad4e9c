/*
 * Layers that make numbers of strings, and hashes of strings and integers.
 *
 *     CornuLayer *words = cornu_text_vectorization(.max_tokens = 20000,
 *                                                  .output_sequence_length = 20);
 *     cornu_adapt(words, .data = sentences);
 *     train = cornu_dataset_layer(train, words, 0, 1);
 *
 * Tensors hold numbers, so these layers run on the host: over a data set, in a pipeline of a
 * program's own (cornu_layer_compute), or as the first layers of a model, where fit, evaluate and
 * predict compute them before the step. Strings are arrays of CORNU_STRING, whose elements are
 * const char *, UTF-8.
 * Source: keras/src/layers/preprocessing/index_lookup.py, string_lookup.py, text_vectorization.py,
 * hashing.py, hashed_crossing.py.
 */
#ifndef CORNU_NN_TEXT_LAYERS_H
#define CORNU_NN_TEXT_LAYERS_H

#include "../../datasets/pipeline/dataset.h"
#include "../config/texts.h"
#include "categories.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The place of a string in the vocabulary, encoded. Places begin with that of mask_token, if it is
 * given and the mode is int, then num_oov_indices places of strings that are not in the
 * vocabulary: of several that of the hash, with a salt SipHash, else FarmHash. Without one, such a
 * string is an error. With `invert` a place gives the string, oov_token where it has none.
 * cornu_adapt (normalization.h) learns the vocabulary: the most frequent strings first, of equally
 * frequent ones the larger; idf_weights too. */
typedef struct {
    char            unset;
    CornuTexts      vocabulary;           /* with or without the first special ones; or adapt */
    int64_t         max_tokens;           /* 0: any number */
    int64_t         num_oov_indices;      /* default 1, or CORNU_ZERO */
    const char     *mask_token;           /* NULL: none */
    const char     *oov_token;            /* default "[UNK]" */
    bool            invert;
    CornuOutputMode output_mode;          /* default int */
    bool            pad_to_max_tokens;    /* encode to max_tokens elements */
    CornuNumbers    idf_weights;          /* of tf_idf: one for each string of the vocabulary; the
                                             others have their mean */
    CornuNumbers    salt;                 /* one whole number or two, the key of SipHash */
    int64_t         vocabulary_size;      /* of files: all places, until the vocabulary is read */
    const char     *encoding;             /* "utf-8", the default and the only one */
    const char     *name;
    const char     *dtype;
} CornuStringLookupConfig;

CornuLayer *cornu_string_lookup_from(const CornuStringLookupConfig *config);
#define cornu_string_lookup(...) \
    cornu_string_lookup_from(&(CornuStringLookupConfig){ .unset = 0, __VA_ARGS__ })

/* Of ASCII letters and punctuation alone, as TensorFlow. */
typedef enum {
    CORNU_LOWER_AND_STRIP_PUNCTUATION, CORNU_LOWER, CORNU_STRIP_PUNCTUATION, CORNU_NO_STANDARDIZE
} CornuStandardize;

/* At white space; each character by itself; not at all: each string is a token. */
typedef enum { CORNU_SPLIT_WHITESPACE, CORNU_SPLIT_CHARACTER, CORNU_NO_SPLIT } CornuSplit;

/* Keras' name, "lower"; NULL of CORNU_NO_STANDARDIZE, which is None, and of unknown values. */
const char *cornu_standardize_name(CornuStandardize standardize);
/* Keras' name, "whitespace"; NULL of CORNU_NO_SPLIT, which is None, and of unknown values. */
const char *cornu_split_name(CornuSplit split);

/* A function of the caller's: adds to `out` what it makes of a string, in order. It may run in a
 * thread that reads ahead. `name` is that which files have, by which Keras finds a registered
 * function; it lives as long as the layer. */
typedef struct CornuTextStrings CornuTextStrings;
typedef struct CornuTextFunction {
    CornuStatus (*call)(const struct CornuTextFunction *self, const char *string,
                        CornuTextStrings *out);
    const char *name;                     /* NULL: "function" */
    void       *context;
} CornuTextFunction;
CornuStatus cornu_text_add(CornuTextStrings *out, const char *string);

/* Strings (B,) or (B, 1), standardized, split into tokens, joined with a blank to n-grams, and
 * looked up as by StringLookup with the mask token "", where output_mode is int padded with 0 or
 * truncated to output_sequence_length. Without that length an array gets the longest one of its
 * strings, and a data set is refused. */
typedef struct {
    char             unset;
    int64_t          max_tokens;          /* 0: any number */
    CornuStandardize standardize;         /* default lower_and_strip_punctuation */
    CornuSplit       split;               /* default at white space */
    CornuTextFunction standardize_by;     /* in place of standardize: adds one string */
    CornuTextFunction split_by;           /* in place of split: adds the tokens */
    int64_t          ngrams;              /* of 1 to so many tokens; 0: single tokens */
    CornuNumbers     ngram_sizes;         /* or of these numbers of tokens */
    CornuOutputMode  output_mode;         /* default int */
    int64_t          output_sequence_length;
    bool             pad_to_max_tokens;
    CornuTexts       vocabulary;
    CornuNumbers     idf_weights;
    int64_t          vocabulary_size;     /* of files: all places, until the vocabulary is read */
    const char      *encoding;            /* "utf-8", the default and the only one */
    const char      *name;
    const char      *dtype;
} CornuTextVectorizationConfig;

CornuLayer *cornu_text_vectorization_from(const CornuTextVectorizationConfig *config);
#define cornu_text_vectorization(...) \
    cornu_text_vectorization_from(&(CornuTextVectorizationConfig){ .unset = 0, __VA_ARGS__ })

/* The hash of strings, or of integers as decimals, modulo num_bins, encoded; FarmHash, with a salt
 * SipHash. A mask value is in bin 0 and no other is. */
typedef struct {
    char            unset;
    int64_t         num_bins;             /* required */
    int64_t         mask_value;           /* of integers; 0: none, CORNU_ZERO for 0 */
    const char     *mask_string;          /* of strings; NULL: none. Keras' mask_value, too */
    CornuNumbers    salt;                 /* one whole number or two */
    CornuOutputMode output_mode;          /* default int; not tf_idf */
    const char     *name;
    const char     *dtype;
} CornuHashingConfig;

CornuLayer *cornu_hashing_from(const CornuHashingConfig *config);
#define cornu_hashing(...) cornu_hashing_from(&(CornuHashingConfig){ .unset = 0, __VA_ARGS__ })

/* The hash of several inputs of the same shape, (B,) or (B, 1), strings or integers, modulo
 * num_bins. */
typedef struct {
    char            unset;
    int64_t         num_bins;             /* required */
    CornuOutputMode output_mode;          /* default int, or one_hot */
    const char     *name;
    const char     *dtype;
} CornuHashedCrossingConfig;

CornuLayer *cornu_hashed_crossing_from(const CornuHashedCrossingConfig *config);
#define cornu_hashed_crossing(...) \
    cornu_hashed_crossing_from(&(CornuHashedCrossingConfig){ .unset = 0, __VA_ARGS__ })

/* Keras' get_vocabulary(): *vocabulary gets the strings of all places of a StringLookup or
 * TextVectorization, the special ones included; they are the layer's, the array is freed with
 * free(). */
CornuStatus cornu_layer_vocabulary(const CornuLayer *layer, CornuTexts *vocabulary);

/* The same as a JSON list, of the integers of an IntegerLookup, too; with no_special_tokens
 * without the mask and those that are for others. The caller frees it by free(). NULL and
 * CORNU_ERR_ARGUMENT for a layer of another class, CORNU_ERR_VALUE for a string that JSON cannot
 * hold. */
char *cornu_layer_vocabulary_to_json(const CornuLayer *layer, bool no_special_tokens);

/* Computes a layer of this header on arrays, whose axis 0 is the batch. *to gets the result: its
 * data are freed with free(). Strings in it are the layer's. */
CornuStatus cornu_layer_compute(const CornuLayer *layer, const CornuArray *in, int count,
                                CornuArray *to);

/* Replaces `count` components of a data set, from `first` on, by the layer of them. The layer
 * remains the caller's and must outlive the data set and its iterators. */
CornuDataset *cornu_dataset_layer(CornuDataset *source, const CornuLayer *layer, int first,
                                  int count);

#ifdef __cplusplus
}
#endif
#endif
