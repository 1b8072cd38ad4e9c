/* A string as tokens: standardized, split, joined to n-grams. */
#ifndef CORNU_NN_TEXT_TOKENS_INTERNAL_H
#define CORNU_NN_TEXT_TOKENS_INTERNAL_H

#include "../text_layers.h"

enum { CORNU__MAX_NGRAM_SIZES = 16 };

typedef struct {
    CornuStandardize standardize;
    CornuSplit       split;
    CornuTextFunction standardize_by, split_by;        /* in place of these, if they have a call */
    int64_t          ngrams[CORNU__MAX_NGRAM_SIZES];   /* numbers of tokens; 0 ends; none: {0} */
} CornuTextRules;

/* Memory that is used again for each string; zeros at first. */
typedef struct {
    char  *text;           /* the standardized string, then the n-gram at hand */
    int    text_space;
    struct CornuTextPart { int begin, length; } *parts;
    int    count, part_space;
    char  *joined;
    int    joined_space;
    struct CornuTextStrings {
        char *bytes;       /* those of the strings that a function has added, each with its 0 */
        int   used, space, count;
    } added;
} CornuTextScratch;

typedef CornuStatus CornuTokenFunction(void *context, const char *token, size_t length);

/* Calls `each` with the tokens of the `count` strings in order: of several, which are tokens
 * already where nothing is split, the n-grams reach over them. */
CornuStatus cornu__each_token(const CornuTextRules *rules, const char *const *texts, int64_t count,
                              CornuTextScratch *scratch, CornuTokenFunction *each, void *context);

void cornu__text_scratch_free(CornuTextScratch *scratch);

#endif
