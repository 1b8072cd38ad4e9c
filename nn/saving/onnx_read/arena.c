/* Memory that is freed at once. */
#include "parse_internal.h"

#include <string.h>

#include "../../../device/memory_internal.h"

/* A block is as large as all before it together: a layer keeps its own few hundred bytes, a file
 * megabytes. */
enum { LEAST_BLOCK = 1 << 9, MOST_BLOCK = 1 << 16, ALIGN = 16, USUAL = 1 << 30 };

struct CornuArenaBlock {
    CornuArenaBlock *next;
    size_t           used, size;
    _Alignas(ALIGN) unsigned char bytes[];
};

static size_t next_block(const CornuArena *arena)
{
    if (arena->taken < LEAST_BLOCK) return LEAST_BLOCK;
    return arena->taken < MOST_BLOCK ? arena->taken : MOST_BLOCK;
}

void *cornu__arena_take(CornuArena *arena, size_t count, size_t size)
{
    if (size && count > (SIZE_MAX / 2 - ALIGN) / size) {
        cornu__fail(CORNU_ERR_MEMORY, "%zu elements of %zu bytes are too many", count, size);
        return NULL;
    }
    const size_t     bytes = (count * size + ALIGN) & ~(size_t)(ALIGN - 1);
    if (arena->limit && (arena->taken > arena->limit || bytes > arena->limit - arena->taken)) {
        cornu__fail(CORNU_ERR_MEMORY, "it takes %zu bytes in addition to %zu, expected at most %zu "
                    "in all for a file of its size; CORNU_MAX_MEMORY raises this", bytes,
                    arena->taken, arena->limit);
        return NULL;
    }
    CornuArenaBlock *block = arena->blocks;
    if (!block || bytes > block->size - block->used) {
        const bool   large = bytes > next_block(arena) / 4;
        const size_t space = large ? bytes : next_block(arena);
        CornuArenaBlock *made = cornu__allocate(1, sizeof *made + space);
        if (!made) return NULL;
        made->size = space;
        /* A large piece has a block of its own, behind the one that still has room. */
        made->next = block && large ? block->next : block;
        if (block && large) block->next = made;
        else arena->blocks = made;
        block = made;
    }
    void *piece = block->bytes + block->used;
    block->used += bytes;
    arena->taken += bytes;
    return piece;
}

void cornu__arena_limit(CornuArena *arena)
{
    const size_t usual = arena->taken < SIZE_MAX / 32 ? USUAL + 16 * arena->taken : SIZE_MAX;
    const size_t more = cornu__memory_budget(usual);
    arena->limit = more < SIZE_MAX - arena->taken ? arena->taken + more : SIZE_MAX;
}

char *cornu__arena_text(CornuArena *arena, const void *bytes, size_t size)
{
    char *text = cornu__arena_take(arena, size + 1, 1);
    if (text && size) memcpy(text, bytes, size);
    return text;
}

size_t cornu__arena_size(const CornuArena *arena)
{
    size_t size = 0;
    for (const CornuArenaBlock *block = arena->blocks; block; block = block->next)
        size += block->used;
    return size;
}

void cornu__arena_free(CornuArena *arena)
{
    for (CornuArenaBlock *block = arena->blocks, *next; block; block = next) {
        next = block->next;
        cornu__release(block);
    }
    *arena = (CornuArena){ .blocks = NULL };
}
