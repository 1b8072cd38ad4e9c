#include "tokens_internal.h"

#include <string.h>

#include "../../../device/memory_internal.h"
#include "../../../device/status_internal.h"
#include "hash_internal.h"

/* A block begins with the address of the one before. */
enum { BLOCK = 1 << 16, LINK = sizeof(char *) };

static int64_t slot_of(const CornuTokens *tokens, const char *text, size_t length)
{
    int64_t at = (int64_t)(cornu__farm_hash(text, length) & (uint64_t)(tokens->slot_count - 1));
    for (;; at = (at + 1) & (tokens->slot_count - 1)) {
        const int32_t place = tokens->slots[at];
        if (place == 0) return at;
        const char *item = tokens->items[place - 1].text;
        if (!strncmp(item, text, length) && item[length] == '\0') return at;
    }
}

int64_t cornu__tokens_find(const CornuTokens *tokens, const char *text, size_t length)
{
    return tokens->count ? tokens->slots[slot_of(tokens, text, length)] - 1 : -1;
}

/* Keeps at least half of the slots empty. */
static CornuStatus grow(CornuTokens *tokens)
{
    if (tokens->count == INT32_MAX - 1)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "more than %d different strings", INT32_MAX - 1);
    CORNU__TRY(cornu__reserve(&tokens->items, &tokens->space, tokens->count, 1,
                              sizeof *tokens->items));
    if (2 * (int64_t)(tokens->count + 1) <= tokens->slot_count) return CORNU_OK;
    const int64_t count = tokens->slot_count ? 2 * tokens->slot_count : 64;
    int32_t      *slots = cornu__allocate((size_t)count, sizeof *slots);
    if (!slots) return CORNU_ERR_MEMORY;
    cornu__release(tokens->slots);
    tokens->slots = slots;
    tokens->slot_count = count;
    for (int i = 0; i < tokens->count; i++)
        slots[slot_of(tokens, tokens->items[i].text, strlen(tokens->items[i].text))] = i + 1;
    return CORNU_OK;
}

/* Texts lie in blocks, so that they stay where they are. */
static const char *copy(CornuTokens *tokens, const char *text, size_t length)
{
    if (tokens->left < length + 1) {
        const size_t size = length + 1 > BLOCK ? length + 1 : BLOCK;
        char        *block = cornu__allocate(1, LINK + size);
        if (!block) return NULL;
        memcpy(block, &tokens->block, LINK);
        tokens->block = block;
        tokens->left = size;
        if (size > BLOCK) {      /* a block of its own, which is full */
            tokens->left = 0;
            return memcpy(block + LINK, text, length);
        }
    }
    char *to = tokens->block + LINK + BLOCK - tokens->left;
    memcpy(to, text, length);
    tokens->left -= length + 1;
    return to;
}

CornuStatus cornu__tokens_add(CornuTokens *tokens, const char *text, size_t length, int64_t *place,
                              bool *added)
{
    *added = false;
    *place = cornu__tokens_find(tokens, text, length);
    if (*place >= 0) return CORNU_OK;
    CORNU__TRY(grow(tokens));
    const char *own = copy(tokens, text, length);
    if (!own) return CORNU_ERR_MEMORY;
    const int64_t slot = slot_of(tokens, text, length);
    tokens->items[tokens->count] = (CornuToken){ .text = own, .last = -1 };
    *place = tokens->count++;
    tokens->slots[slot] = tokens->count;
    *added = true;
    return CORNU_OK;
}

void cornu__tokens_free(CornuTokens *tokens)
{
    while (tokens->block) {
        char *block = tokens->block;
        memcpy(&tokens->block, block, LINK);
        cornu__release(block);
    }
    cornu__release(tokens->items);
    cornu__release(tokens->slots);
    *tokens = (CornuTokens){ 0 };
}
