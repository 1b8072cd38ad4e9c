/* An open-addressed hash table. Source: Knuth, "The Art of Computer Programming", volume 3,
 * section 6.4, algorithm L. */
#include "lookup_internal.h"

#include "memory_internal.h"

#include <string.h>

/* Starts from an address that is unknown to the author of a file, so that no file can contain names
 * chosen to collide. */
static uint64_t hash_of(const CornuLookup *lookup, const void *key)
{
    static const char beginning;
    uint64_t          hash = (uint64_t)(uintptr_t)&beginning;
    if (!lookup->of_strings) return cornu__hash(hash, (uint64_t)(uintptr_t)key);
    for (const char *letter = key; *letter; letter++)
        hash = cornu__hash(hash, (uint64_t)(unsigned char)*letter);
    return hash;
}

/* The slot of the key, or the empty one where it belongs. */
static CornuLookupSlot *slot_of(const CornuLookup *lookup, const void *key, uint64_t hash)
{
    const uint64_t mask = (uint64_t)lookup->space - 1;
    for (uint64_t at = hash & mask;; at = (at + 1) & mask) {
        CornuLookupSlot *slot = &lookup->slots[at];
        if (!slot->key || slot->key == key) return slot;
        if (lookup->of_strings && slot->hash == hash && !strcmp(slot->key, key)) return slot;
    }
}

int cornu__lookup_find(const CornuLookup *lookup, const void *key)
{
    if (lookup->count == 0) return -1;
    const CornuLookupSlot *slot = slot_of(lookup, key, hash_of(lookup, key));
    return slot->key ? slot->value : -1;
}

const char *cornu__lookup_text(const CornuLookup *lookup, const char *text)
{
    return lookup->count > 0 ? slot_of(lookup, text, hash_of(lookup, text))->key : NULL;
}

/* At least a third stays empty. */
static CornuStatus reserve_slot(CornuLookup *lookup)
{
    enum { FIRST = 16 };
    if (3 * ((int64_t)lookup->count + 1) <= 2 * (int64_t)lookup->space) return CORNU_OK;
    CornuLookup larger = *lookup;
    larger.space = lookup->space ? 2 * lookup->space : FIRST;
    larger.slots = cornu__allocate((size_t)larger.space, sizeof *larger.slots);
    if (!larger.slots) return CORNU_ERR_MEMORY;
    for (int i = 0; i < lookup->space; i++) {
        const CornuLookupSlot *slot = &lookup->slots[i];
        if (slot->key) *slot_of(&larger, slot->key, slot->hash) = *slot;
    }
    cornu__release(lookup->slots);
    *lookup = larger;
    return CORNU_OK;
}

CornuStatus cornu__lookup_set(CornuLookup *lookup, const void *key, int value)
{
    const uint64_t hash = hash_of(lookup, key);
    CORNU__TRY(reserve_slot(lookup));
    CornuLookupSlot *slot = slot_of(lookup, key, hash);
    if (!slot->key) {
        void *kept = lookup->of_strings ? cornu__copy_text(key) : (void *)key;
        if (!kept) return CORNU_ERR_MEMORY;
        *slot = (CornuLookupSlot){ .key = kept, .hash = hash };
        lookup->count++;
    }
    slot->value = value;
    return CORNU_OK;
}

void cornu__lookup_clear(CornuLookup *lookup)
{
    for (int i = 0; i < lookup->space && lookup->of_strings; i++)
        cornu__release(lookup->slots[i].key);
    cornu__release(lookup->slots);
    lookup->slots = NULL;
    lookup->space = lookup->count = 0;
}
