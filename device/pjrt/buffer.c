/* Values of the pjrt device, and their copies on the host. */
#include <string.h>

#include "../memory_internal.h"
#include "client.h"

static CornuPjrtBuffer *own(const CornuBuffer *buffer)
{
    return (CornuPjrtBuffer *)(uintptr_t)buffer;
}

/* The device is not known before the buffer is made. */
CornuBuffer *cornu__pjrt_buffer_create(CornuDevice *device, CornuType type, bool per_shard,
                                       bool empty)
{
    (void)empty;   /* its devices are of one process */
    (void)per_shard;
    (void)device, (void)type;
    CornuPjrtBuffer *buffer = cornu__allocate(1, sizeof *buffer);
    if (!buffer) return NULL;
    buffer->host_is_new = true;   /* zeros, which are allocated when they are needed */
    return &buffer->base;
}

void cornu__pjrt_destroy(const CornuPjrtDevice *device, PjrtBuffer *buffer)
{
    PjrtBufferDestroy destroy = PJRT_ARGUMENTS(PjrtBufferDestroy, .buffer = buffer);
    if (buffer) cornu__pjrt_try(device->plugin, PJRT_BUFFER_DESTROY, &destroy);
}

static void drop(CornuPjrtBuffer *buffer)
{
    const CornuPjrtDevice *device = cornu__pjrt_of(buffer->base.device);
    for (int i = 0; i < CORNU_PJRT_REPLICAS; i++) {
        if (buffer->on[i]) cornu__pjrt_destroy(device, buffer->on[i]);
        buffer->on[i] = NULL;
    }
    buffer->device_is_new = false;
}

void cornu__pjrt_buffer_free(CornuBuffer *base)
{
    CornuPjrtBuffer *buffer = own(base);
    drop(buffer);
    cornu__release(buffer->host);
    cornu__release(buffer);
}

static CornuStatus need_host(CornuPjrtBuffer *buffer)
{
    if (!buffer->host) buffer->host = cornu__allocate_aligned(cornu_type_bytes(buffer->base.type));
    return buffer->host ? CORNU_OK : CORNU_ERR_MEMORY;
}

/* ---- From the device ---- */

CornuStatus cornu__pjrt_start_fetch(const CornuPjrtDevice *device, PjrtBuffer *buffer,
                                    CornuType type, void *to, PjrtEvent **done)
{
    const int  rank = type.shape.rank;
    int64_t    minor_to_major[CORNU_MAX_RANK];
    for (int i = 0; i < rank; i++) minor_to_major[i] = rank - 1 - i;
    PjrtLayout layout = PJRT_ARGUMENTS(PjrtLayout, .tiled = PJRT_ARGUMENTS(PjrtTiled,
        .minor_to_major = minor_to_major, .rank = (size_t)rank));
    PjrtBufferToHost fetch = PJRT_ARGUMENTS(PjrtBufferToHost, .buffer = buffer, .layout = &layout,
                                            .to = to, .size = cornu_type_bytes(type));
    CORNU__TRY(cornu__pjrt_call(device->plugin, PJRT_BUFFER_TO_HOST, &fetch));
    *done = fetch.done;
    return CORNU_OK;
}

static CornuStatus fetch(const CornuPjrtDevice *device, PjrtBuffer *buffer, CornuType type,
                         void *to)
{
    PjrtEvent *done;
    CORNU__TRY(cornu__pjrt_start_fetch(device, buffer, type, to, &done));
    return cornu__pjrt_await(device->plugin, done);
}

/* The type of what a shard holds. */
static CornuType type_of_shard(const CornuPjrtBuffer *buffer)
{
    CornuType type = buffer->base.type;
    if (!buffer->split) return type;
    type.shape.rank--;
    memmove(type.shape.extent, type.shape.extent + 1,
            (size_t)type.shape.rank * sizeof *type.shape.extent);
    type.shape.extent[type.shape.rank] = 0;
    return type;
}

static CornuStatus download(const CornuPjrtBuffer *buffer, char *to)
{
    const CornuPjrtDevice *device = cornu__pjrt_of(buffer->base.device);
    const CornuType        type = type_of_shard(buffer);
    const int              shards = buffer->split ? device->base.shards : 1;
    if (cornu_type_count(type) == 0) return CORNU_OK;
    for (int i = 0; i < shards; i++)
        CORNU__TRY(fetch(device, buffer->on[i], type, to + (size_t)i * cornu_type_bytes(type)));
    return CORNU_OK;
}

static CornuStatus update_host(CornuPjrtBuffer *buffer)
{
    CORNU__TRY(need_host(buffer));
    if (!buffer->host_is_new) CORNU__TRY(download(buffer, buffer->host));
    buffer->host_is_new = true;
    return CORNU_OK;
}

CornuStatus cornu__pjrt_buffer_read(const CornuBuffer *base, int64_t first, CornuArray to)
{
    CornuPjrtBuffer *buffer = own(base);
    const size_t     bytes = cornu_type_bytes(to.type);
    if (!buffer->host_is_new && bytes == cornu_type_bytes(base->type))
        return download(buffer, to.data);
    CORNU__TRY(update_host(buffer));
    memcpy(to.data, (char *)buffer->host + (size_t)first * cornu_dtype_size(base->type.dtype),
           bytes);
    return CORNU_OK;
}

CornuStatus cornu__pjrt_on_host(CornuPjrtBuffer *buffer, const char **data)
{
    CORNU__TRY(update_host(buffer));
    *data = buffer->host;
    return CORNU_OK;
}

/* ---- To the device ---- */

CornuStatus cornu__pjrt_buffer_write(CornuBuffer *base, int64_t first, CornuArray from)
{
    CornuPjrtBuffer *buffer = own(base);
    const size_t     bytes = cornu_type_bytes(from.type);
    if (bytes < cornu_type_bytes(base->type)) CORNU__TRY(update_host(buffer));
    else CORNU__TRY(need_host(buffer));
    memcpy((char *)buffer->host + (size_t)first * cornu_dtype_size(base->type.dtype), from.data,
           bytes);
    buffer->host_is_new = true;
    buffer->device_is_new = false;
    return CORNU_OK;
}

CornuStatus cornu__pjrt_to_device(const CornuPjrtDevice *device, CornuType type, const void *from,
                                  int shard, PjrtBuffer **made)
{
    PjrtBufferFromHost copy = PJRT_ARGUMENTS(PjrtBufferFromHost, .client = device->client,
        .data = from, .type = (int)cornu__pjrt_type(type.dtype), .extents = type.shape.extent,
        .rank = (size_t)type.shape.rank, .semantics = PJRT_DURING_CALL,
        .device = device->devices[shard]);
    CORNU__TRY(cornu__pjrt_call(device->plugin, PJRT_CLIENT_BUFFER_FROM_HOST, &copy));
    *made = copy.buffer;
    return cornu__pjrt_await(device->plugin, copy.done);
}

CornuStatus cornu__pjrt_upload(CornuPjrtBuffer *buffer, CornuType shard, bool split)
{
    if (buffer->device_is_new && buffer->split == split) return CORNU_OK;
    CORNU__TRY(update_host(buffer));
    drop(buffer);
    buffer->split = split;
    const size_t step = split ? cornu_type_bytes(shard) : 0;
    for (int i = 0; i < buffer->base.device->shards; i++)
        CORNU__TRY(cornu__pjrt_to_device(cornu__pjrt_of(buffer->base.device), shard,
                                         (char *)buffer->host + (size_t)i * step, i,
                                         &buffer->on[i]));
    buffer->device_is_new = true;
    return CORNU_OK;
}

/* The host's memory is not needed any more by what only the device writes, such as weights. */
void cornu__pjrt_take_over(CornuPjrtBuffer *buffer, PjrtBuffer *const *on, bool split)
{
    drop(buffer);
    for (int i = 0; i < buffer->base.device->shards; i++) buffer->on[i] = on[i];
    buffer->split = split;
    buffer->device_is_new = true;
    buffer->host_is_new = false;
    cornu__release(buffer->host);
    buffer->host = NULL;
}
