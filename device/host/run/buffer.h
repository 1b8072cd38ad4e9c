/* Buffers of host devices: packed elements of the declared dtype, aligned to 64 bytes. Of a buffer
 * per shard a process has the parts of its own shards. */
#ifndef CORNU_DEVICE_HOST_BUFFER_H
#define CORNU_DEVICE_HOST_BUFFER_H

#include "../../device_internal.h"

/* The class functions of the same names. */
CornuBuffer *cornu__host_buffer_create(CornuDevice *device, CornuType type, bool per_shard,
                                       bool empty);
void         cornu__host_buffer_free(CornuBuffer *buffer);
CornuStatus  cornu__host_buffer_write(CornuBuffer *buffer, int64_t first, CornuArray from);
CornuStatus  cornu__host_buffer_read(const CornuBuffer *buffer, int64_t first, CornuArray to);

CornuStatus  cornu__host_buffer_keep(CornuBuffer *buffer, bool here);
CornuStatus  cornu__host_buffer_deal(CornuBuffer *buffer, uint32_t holders);

void        *cornu__host_buffer_data(const CornuBuffer *buffer, size_t *bytes);

/* The first element in memory. */
void *cornu__host_data(const CornuBuffer *buffer);

/* A gather to the buffer is left to whatever uses it next; NULL: none is any more. */
struct CornuCollective;
void                    cornu__host_gathers(CornuBuffer *buffer, struct CornuCollective *gather);
struct CornuCollective *cornu__host_gather_of(const CornuBuffer *buffer);

#endif
