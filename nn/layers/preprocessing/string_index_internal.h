/* Places of strings, for StringLookup and TextVectorization. */
#ifndef CORNU_NN_STRING_INDEX_INTERNAL_H
#define CORNU_NN_STRING_INDEX_INTERNAL_H

#include "adapt_internal.h"
#include "host_internal.h"
#include "tokens_internal.h"

typedef struct {
    int64_t         oov;                  /* num_oov_indices */
    const char     *mask_token, *oov_token;
    CornuOutputMode mode;
    bool            invert, pad;
    int64_t         max_tokens;
    int64_t         places;               /* all of them, while the vocabulary is not known */
    bool            salted;
    uint64_t        key[2];
    CornuTokens     tokens;               /* the vocabulary without the special ones */
    double         *idf;                  /* of tf_idf: of each place, up to the depth */
    bool            given;                /* the vocabulary is an argument, not learnt */
} CornuStringIndex;

/* Places before those of the vocabulary; in a vector, the number of elements. */
int64_t cornu__string_index_start(const CornuStringIndex *index);
int64_t cornu__string_index_depth(const CornuStringIndex *index);

/* Sets the vocabulary, with or without the special strings at its start. */
CornuStatus cornu__string_index_set(CornuStringIndex *index, const char *layer, CornuTexts texts,
                                    const CornuNumbers *idf);

/* The place; -1 in no category. CORNU_ERR_VALUE for an unknown string where no place is for it. */
CornuStatus cornu__string_index_find(const CornuStringIndex *index, const char *text,
                                     size_t length, int64_t *place);
/* The string at a place. */
const char *cornu__string_index_text(const CornuStringIndex *index, int64_t place);

/* What a vocabulary is learnt from: the strings of the data, each with its number. */
typedef struct {
    CornuTokens seen;
    int64_t     documents;
} CornuStringCounts;

/* Counts one more occurrence of a string. */
CornuStatus cornu__string_counts_add(CornuStringCounts *counts, const char *text, size_t length);
/* Makes the vocabulary of the most frequent strings; frees the counts. */
CornuStatus cornu__string_index_learn(CornuStringIndex *index, CornuStringCounts *counts);

/* For kind->read_asset: a string in each line, the special ones first. */
CornuStatus cornu__string_index_read(CornuStringIndex *index, const char *layer, const char *bytes,
                                     size_t size);

/* For kind->get_array and kind->set_array: the weights of all places, of tf_idf. */
CornuNumbers cornu__string_index_array(const CornuStringIndex *index);
CornuStatus  cornu__string_index_set_array(CornuStringIndex *index, CornuArray array);

/* After the vocabulary is learnt or read: the arguments that a file or a copy of the layer has,
 * kept with the layer. */
CornuStatus cornu__string_index_arguments(const CornuStringIndex *index, CornuLayer *layer,
                                          CornuTexts *vocabulary, CornuNumbers *idf);

/* The strings of all places; the array is freed with free(). */
CornuStatus cornu__string_index_list(const CornuStringIndex *index, CornuTexts *texts);

void cornu__string_index_free(CornuStringIndex *index);

/* The index in a layer of class StringLookup, and in one of class TextVectorization. */
CornuStringIndex *cornu__string_lookup_index(CornuLayer *layer);
CornuStringIndex *cornu__text_vectorization_index(CornuLayer *layer);

#endif
