#include "memory_internal.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 };

void *cornu__allocate(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory)
        cornu__fail(CORNU_ERR_MEMORY, "no memory for %zu elements of %zu bytes", count, size);
    return memory;
}

void *cornu__allocate_aligned(size_t bytes)
{
    /* aligned_alloc wants a multiple of the alignment. */
    size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    void  *memory = NULL;
    if (rounded >= bytes) memory = aligned_alloc(ALIGNMENT, rounded ? rounded : ALIGNMENT);
    if (!memory) {
        cornu__fail(CORNU_ERR_MEMORY, "no memory for %zu bytes", bytes);
        return NULL;
    }
    return memset(memory, 0, rounded);
}

void cornu__release(void *memory) { free(memory); }

char *cornu__copy_text(const char *text)
{
    size_t size = strlen(text) + 1;
    char  *copy = cornu__allocate(size, 1);
    return copy ? memcpy(copy, text, size) : NULL;
}

CornuStatus cornu__reserve(void *items, int *space, int count, int extra, size_t size)
{
    if (extra <= *space - count) return CORNU_OK;
    if (count > INT_MAX / 2 - extra)
        return cornu__fail(CORNU_ERR_MEMORY, "more than %d elements in one list", INT_MAX / 2);
    int    wanted = 2 * *space > count + extra ? 2 * *space : count + extra;
    /* items is the address of some T *, which a void ** may not alias. */
    void *memory;
    memcpy(&memory, items, sizeof memory);
    memory = realloc(memory, (size_t)wanted * size);
    if (!memory)
        return cornu__fail(CORNU_ERR_MEMORY, "no memory for %d elements of %zu bytes", wanted,
                           size);
    memcpy(items, &memory, sizeof memory);
    *space = wanted;
    return CORNU_OK;
}
