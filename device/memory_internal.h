/* The library's allocator: every failure is CORNU_ERR_MEMORY with a message. memory.h describes the
 * limit. */
#ifndef CORNU_DEVICE_MEMORY_INTERNAL_H
#define CORNU_DEVICE_MEMORY_INTERNAL_H

#include <stddef.h>

#include "status_internal.h"

/* CORNU_ERR_MEMORY above the limit: for memory that is allocated by other means than the functions
 * below, and before work that would fail at the end. */
CornuStatus cornu__check_memory(size_t bytes);

/* Zeroed memory, or NULL and CORNU_ERR_MEMORY (not pending). count * size may overflow: that
 * fails too. A count of 0 gives memory that can be freed. */
void *cornu__allocate(size_t count, size_t size);

/* Zeroed memory aligned to 64 bytes, a cache line and an AVX-512 register. */
void *cornu__allocate_aligned(size_t bytes);

void cornu__release(void *memory);           /* NULL does nothing; for both kinds */
/* Gives free pages back to the system, where the C library keeps them: after what took much. */
void cornu__give_back_memory(void);

/* A copy of a string, or NULL and CORNU_ERR_MEMORY. */
char *cornu__copy_text(const char *text);

/* Makes room for `extra` elements after the first `count` of *items, an array of *space. */
CornuStatus cornu__reserve(void *items, int *space, int count, int extra, size_t size);

/* Adds a copy of a string to the *count strings of *texts, an array of *space. */
CornuStatus cornu__add_text(char ***texts, int *space, int *count, const char *text);

/* What one task may take in all: `usual` bytes or, where they are less or were asked for, those of
 * cornu_memory_limit. */
size_t cornu__memory_budget(size_t usual);

#endif
