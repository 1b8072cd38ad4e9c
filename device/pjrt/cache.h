/*
 * Compiled programs from one run to the next: XLA takes seconds for a training step, reading what
 * it made takes a fraction of that.
 *
 * The key is a hash of all that the result depends on: the program, the options, the plugin's
 * library (its size and time of change) and what it says of itself, the kind of device, variables
 * of the environment that XLA reads, and for code that runs on this processor, its name, its
 * instruction sets and the number of threads.
 *
 * CORNU_PJRT_CACHE is off, or a folder (cache_files.h). Nothing here fails: what cannot be read or
 * kept is compiled.
 */
#ifndef CORNU_DEVICE_PJRT_CACHE_H
#define CORNU_DEVICE_PJRT_CACHE_H

#include "cache_files.h"
#include "client.h"
#include "options.h"

typedef struct {
    const CornuPjrtDevice *device;
    CornuPjrtFolder        folder;
    char                   key[CORNU__SHA256_TEXT];
} CornuPjrtCache;

void cornu__pjrt_cache_open(CornuPjrtCache *cache, const CornuPjrtDevice *device,
                            const PjrtProgram *program, const CornuPjrtOptions *options);
void cornu__pjrt_cache_close(CornuPjrtCache *cache);

/* The program of the key, loaded on its devices; NULL if it must be compiled. */
PjrtLoaded *cornu__pjrt_cache_load(const CornuPjrtCache *cache);

void cornu__pjrt_cache_store(const CornuPjrtCache *cache, PjrtLoaded *loaded);

#endif
