/* Hash tables from strings or addresses to numbers. */
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
    void    *key;                  /* NULL: empty */
    uint64_t hash;
    int      value;
} CornuLookupSlot;

/* All zeros: empty. Keys are strings, which are copied, or addresses. */
typedef struct {
    bool             of_strings;
    CornuLookupSlot *slots;
    int              space, count; /* space is 0 or a power of 2 */
} CornuLookup;

/* The number of the key; -1 if it is absent. */
int cornu__lookup_find(const CornuLookup *lookup, const void *key);

/* The table's own copy of a string; NULL if it is absent. */
const char *cornu__lookup_text(const CornuLookup *lookup, const char *text);

/* Sets the number of the key, at least 0, and replaces the old one. */
CornuStatus cornu__lookup_set(CornuLookup *lookup, const void *key, int value);

/* Removes all keys and frees their memory. */
void cornu__lookup_clear(CornuLookup *lookup);

#endif
