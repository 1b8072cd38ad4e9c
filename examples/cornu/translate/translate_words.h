/*
 * Sentences as tokens for cornu translate: the two vocabularies, kept in a model's notes, and
 * the data sets of a transformer. The target's vocabulary has two tokens more, which begin and end
 * a translation.
 */
#ifndef CORNU_EXAMPLES_TRANSLATE_WORDS_H
#define CORNU_EXAMPLES_TRANSLATE_WORDS_H

#include <cornu/cornu.h>

typedef struct {
    CornuLayer *source, *target;              /* TextVectorization, of `length` tokens */
    CornuTexts  source_words, target_words;   /* by token */
    int64_t     length;
    int32_t     start, end;
} Words;

/* Learnt from the first `count` pairs; at most `most` words of each language, or all for 0. */
CornuStatus words_learn(Words *words, const CornuPairs *pairs, int64_t count, int64_t most,
                        int64_t length);
/* From a model's notes, and to them. */
CornuStatus words_read(Words *words, const CornuModel *model);
CornuStatus words_note(const Words *words, CornuModel *model);
void        words_free(Words *words);

/* The largest number of words of a sentence. */
int64_t words_longest(const CornuPairs *pairs);

/* Pairs first, first + 1, …, as a data set for training: source, target so far, target. */
CornuDataset *words_dataset(Words *words, const CornuPairs *pairs, int64_t first, int64_t count);

/* Sentences as i32 (count, length), to be freed with free(). */
CornuStatus words_encode(const Words *words, const char *const *sentences, int64_t count,
                         CornuArray *tokens);
/* The words of the target's tokens up to the first 0, a string to be freed with free(). */
char *words_decode(const Words *words, const int32_t *tokens);

/* Lower case without punctuation, as the tokens are, and single blanks: to be freed with free(). */
char *words_plain(const char *sentence);

#endif
