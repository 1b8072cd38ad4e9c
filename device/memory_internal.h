/* The one door to the allocator: every failure is CORNU_ERR_MEMORY with a message; memory.h says
 * what is too much. */
#ifndef CORNU_DEVICE_MEMORY_INTERNAL_H
#define CORNU_DEVICE_MEMORY_INTERNAL_H

#include <stddef.h>

#include "status_internal.h"

/* CORNU_ERR_MEMORY for more than may be asked for at once: for what is taken by none of the
 * functions below, and before work that would end there. */
CornuStatus cornu__check_memory(size_t bytes);

/* Zeroed memory, or NULL and CORNU_ERR_MEMORY (not pending). count * size may overflow: that
 * fails too. A count of 0 gives memory that can be freed. */
void *cornu__allocate(size_t count, size_t size);

/* Zeroed memory aligned to 64 bytes, a cache line and an AVX-512 register. */
void *cornu__allocate_aligned(size_t bytes);

void cornu__release(void *memory);           /* NULL does nothing; for both kinds */

/* A copy of text, NULL and CORNU_ERR_MEMORY if there is no room. */
char *cornu__copy_text(const char *text);

/* Makes room for `extra` more elements behind `count` in the array *items of *space elements. */
CornuStatus cornu__reserve(void *items, int *space, int count, int extra, size_t size);

#endif
