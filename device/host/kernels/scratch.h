/*
 * Scratch memory, cut into parts: a kernel takes them one after the other by the same calls when it
 * says how many bytes it needs and when it runs.
 */
#ifndef CORNU_DEVICE_HOST_SCRATCH_H
#define CORNU_DEVICE_HOST_SCRATCH_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    char  *memory;   /* aligned to 64 bytes; NULL: only counts them, and parts are NULL */
    size_t bytes;    /* taken so far                                                  */
} CornuScratch;

/* `bytes` bytes, after those taken before. */
static inline void *cornu__take(CornuScratch *scratch, size_t bytes)
{
    void *part = scratch->memory ? scratch->memory + scratch->bytes : NULL;
    scratch->bytes += bytes;
    return part;
}

static inline float *cornu__take_floats(CornuScratch *scratch, int64_t count)
{
    return cornu__take(scratch, (size_t)count * sizeof(float));
}

/* The next part begins with a multiple of 64 bytes. */
static inline void cornu__take_line(CornuScratch *scratch)
{
    scratch->bytes = (scratch->bytes + 63) / 64 * 64;
}

#endif
