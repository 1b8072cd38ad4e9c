/* What belongs to a name, or to an address, found without looking at all the others. */
#ifndef CORNU_DEVICE_LOOKUP_INTERNAL_H
#define CORNU_DEVICE_LOOKUP_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "status_internal.h"

/* Mixes one 64-bit word into a hash: the finalizer of SplitMix64 over a sum that depends on the
 * order of the words.
 * Source: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014,
 * figure 16. */
static inline uint64_t cornu__hash(uint64_t hash, uint64_t word)
{
    uint64_t z = hash * 0x9E3779B97F4A7C15 + word + 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
}

typedef struct {
    void    *key;                  /* NULL: nothing is here */
    uint64_t hash;
    int      value;
} CornuLookupSlot;

/* Empty when it is all zeros. Keys are strings, which are copied, or mere addresses. */
typedef struct {
    bool             is_of_texts;
    CornuLookupSlot *slots;
    int              space, count; /* space is 0 or a power of 2 */
} CornuLookup;

/* The number kept for the key; -1 if there is none. */
int cornu__lookup_find(const CornuLookup *lookup, const void *key);

/* The table's own copy of a string that is in it; NULL if there is none. */
const char *cornu__lookup_text(const CornuLookup *lookup, const char *text);

/* Keeps a number of at least 0 for the key, in place of one that is there. */
CornuStatus cornu__lookup_set(CornuLookup *lookup, const void *key, int value);

/* Forgets all keys, and frees what they took. */
void cornu__lookup_clear(CornuLookup *lookup);

#endif
