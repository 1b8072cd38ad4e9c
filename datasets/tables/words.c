#include "words_internal.h"

#include <stdlib.h>
#include <string.h>

#include "../../device/memory_internal.h"

/* FNV-1a: draft-eastlake-fnv, section 2. */
static uint64_t hash(const char *word)
{
    uint64_t h = UINT64_C(0xCBF29CE484222325);
    for (; *word; word++) h = (h ^ (unsigned char)*word) * UINT64_C(0x100000001B3);
    return h ^ h >> 32;
}

/* The slot of a word, or the empty one where it belongs. */
static uint32_t *find_slot(const CornuWords *words, const char *word)
{
    uint32_t at = (uint32_t)hash(word) & (words->slots - 1);
    while (words->slot[at] && strcmp(words->word[words->slot[at] - 1], word) != 0)
        at = (at + 1) & (words->slots - 1);
    return &words->slot[at];
}

/* At most half of the slots are taken. */
static CornuStatus grow(CornuWords *words)
{
    enum { FIRST = 64 };
    const uint32_t slots = words->slots ? 2 * words->slots : FIRST;
    uint32_t      *slot = cornu__allocate(slots, sizeof *slot);
    if (!slot) return CORNU_ERR_MEMORY;
    cornu__release(words->slot);
    words->slot = slot;
    words->slots = slots;
    for (int i = 0; i < words->count; i++) *find_slot(words, words->word[i]) = (uint32_t)i + 1;
    return CORNU_OK;
}

CornuStatus cornu__words_find(CornuWords *words, const char *word, int *index)
{
    if ((uint32_t)words->count >= words->slots / 2) CORNU__TRY(grow(words));
    uint32_t *slot = find_slot(words, word);
    if (!*slot) {
        CORNU__TRY(cornu__add_text(&words->word, &words->space, &words->count, word));
        *slot = (uint32_t)words->count;
    }
    *index = (int)*slot - 1;
    return CORNU_OK;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

CornuStatus cornu__words_sort(CornuWords *words, char ***sorted, int *count, int **index)
{
    *index = cornu__allocate((size_t)words->count, sizeof **index);
    char **ordered = cornu__allocate((size_t)words->count, sizeof *ordered);
    if (!*index || !ordered) {
        cornu__release(*index);
        cornu__release(ordered);
        return CORNU_ERR_MEMORY;
    }
    memcpy(ordered, words->word, (size_t)words->count * sizeof *ordered);
    qsort(ordered, (size_t)words->count, sizeof *ordered, by_text);
    for (int i = 0; i < words->count; i++) (*index)[*find_slot(words, ordered[i]) - 1] = i;
    *sorted = ordered;
    *count = words->count;
    words->count = 0;
    return CORNU_OK;
}

void cornu__words_free(CornuWords *words)
{
    for (int i = 0; i < words->count; i++) cornu__release(words->word[i]);
    cornu__release(words->word);
    cornu__release(words->slot);
    *words = (CornuWords){ .count = 0 };
}
