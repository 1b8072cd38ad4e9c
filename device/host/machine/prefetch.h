/* Software prefetch, for what a kernel reads for the first time, block by block with other work
 * between: the processor's own prefetching ends with the page. */
#ifndef CORNU_DEVICE_HOST_PREFETCH_H
#define CORNU_DEVICE_HOST_PREFETCH_H

#include <stddef.h>
#include <stdint.h>

enum { CORNU_LINE_BYTES = 64 };   /* of the cache */

/* Asks for the line `bytes` after `from`, which may be any address. */
static inline void cornu__prefetch(const void *from, size_t bytes)
{
    __builtin_prefetch((const void *)((uintptr_t)from + bytes));
}

/* The same, but no nearer than the second-level cache. */
static inline void cornu__prefetch_near(const void *from, size_t bytes)
{
    __builtin_prefetch((const void *)((uintptr_t)from + bytes), 0, 2);
}

/* The lines of `bytes` from `to` on, which will be written, for the second-level cache. */
static inline void cornu__prefetch_to_write(const void *to, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += CORNU_LINE_BYTES)
        __builtin_prefetch((const void *)((uintptr_t)to + at), 1, 2);
}

#endif
