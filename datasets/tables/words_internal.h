/* The different words of a column, numbered as they come. */
#ifndef CORNU_DATASETS_WORDS_INTERNAL_H
#define CORNU_DATASETS_WORDS_INTERNAL_H

#include <stdint.h>

#include "../../device/status.h"

typedef struct {
    char    **word;      /* owned, as the array is */
    int       count, space;
    uint32_t *slot;      /* owned: a hash table of 1 + indices, 0 for none */
    uint32_t  slots;     /* a power of two, or 0 */
} CornuWords;

/* The number of a word, which is added if it is new. */
CornuStatus cornu__words_find(CornuWords *words, const char *word, int *index);

/* Moves the words to *sorted, in byte order; index[i] is where word i is there. The caller frees
 * both; on failure *sorted may have the words, too. */
CornuStatus cornu__words_sort(CornuWords *words, char ***sorted, int *count, int **index);

void cornu__words_free(CornuWords *words);

#endif
