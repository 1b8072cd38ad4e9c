/* What a kernel reads for the first time, block by block with other work between, is asked for
 * before: what processors fetch by themselves ends with the page. */
#ifndef CORNU_DEVICE_HOST_PREFETCH_H
#define CORNU_DEVICE_HOST_PREFETCH_H

#include <stddef.h>
#include <stdint.h>

enum { CORNU_LINE_BYTES = 64 };   /* of the cache */

/* The line `bytes` behind `from`, which need not be memory of anything. */
static inline void cornu__prefetch(const void *from, size_t bytes)
{
    __builtin_prefetch((const void *)((uintptr_t)from + bytes));
}

#endif
