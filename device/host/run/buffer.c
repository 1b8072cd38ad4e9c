#include "buffer.h"

#include <stdio.h>
#include <string.h>

#include "../../integer_internal.h"
#include "../../memory_internal.h"
#include "../../processes/processes_internal.h"
#include "exchange.h"

typedef struct {
    CornuBuffer base;
    void       *data;
    int64_t     each;   /* elements of a shard; 0: all have the same */
    CornuCollective *gather;   /* that is under way to it; NULL: none */
} Buffer;

/* Elements first to end - 1 of a buffer. */
typedef struct { int64_t first, end; } Part;

/* Those that a rank has in memory. */
static Part part_of(const Buffer *buffer, int rank)
{
    const CornuDevice *device = buffer->base.device;
    const int          ranks = cornu_process_count(device->processes);
    if (buffer->each == 0) return (Part){ 0, cornu_type_count(buffer->base.type) };
    const CornuRange own = cornu__range_of(device->shards, rank, ranks);
    return (Part){ own.first * buffer->each, (own.first + own.count) * buffer->each };
}

static Part own_part(const Buffer *buffer)
{
    return part_of(buffer, cornu_process_rank(buffer->base.device->processes));
}

/* What is in both; may be empty. */
static Part both(Part a, Part b)
{
    const Part part = { larger(a.first, b.first), smaller(a.end, b.end) };
    return part.first < part.end ? part : (Part){ 0, 0 };
}

/* The part of the buffer that an array is for, whose first element is element `first`. */
static Part part_for(CornuArray array, int64_t first)
{
    return (Part){ first, first + cornu_type_count(array.type) };
}

CornuBuffer *cornu__host_buffer_create(CornuDevice *device, CornuType type, bool per_shard)
{
    Buffer *buffer = cornu__allocate(1, sizeof *buffer);
    if (!buffer) return NULL;
    if (device->own_programs) per_shard = false;   /* every process has all shards */
    buffer->each = per_shard ? cornu_type_count(type) / device->shards : 0;
    const int64_t count = per_shard ? buffer->each * device->own.count : cornu_type_count(type);
    buffer->data = cornu__allocate_aligned((size_t)count * cornu_dtype_size(type.dtype));
    if (buffer->data) return &buffer->base;
    cornu__release(buffer);
    return NULL;
}

void cornu__host_gathers(CornuBuffer *buffer, CornuCollective *gather)
{
    ((Buffer *)buffer)->gather = gather;
}

CornuCollective *cornu__host_gather_of(const CornuBuffer *buffer)
{
    return ((const Buffer *)buffer)->gather;
}

static CornuStatus end_gather(const Buffer *buffer)
{
    return buffer->gather ? cornu__gather_end(buffer->gather) : CORNU_OK;
}

void *cornu__host_data(const CornuBuffer *buffer) { return ((const Buffer *)buffer)->data; }

void cornu__host_buffer_free(CornuBuffer *buffer)
{
    end_gather((const Buffer *)buffer);   /* a failure is told by whatever comes next */
    cornu__release(cornu__host_data(buffer));
    cornu__release(buffer);
}

/* The address of an element that is in memory; and in an array that begins with element `first`. */
static char *element_of(const Buffer *buffer, int64_t number)
{
    return (char *)buffer->data + (size_t)(number - own_part(buffer).first) *
                                      cornu_dtype_size(buffer->base.type.dtype);
}

static char *element_in(CornuArray array, int64_t first, int64_t number)
{
    return (char *)array.data + (size_t)(number - first) * cornu_dtype_size(array.type.dtype);
}

static size_t bytes_of(const Buffer *buffer, Part part)
{
    return (size_t)(part.end - part.first) * cornu_dtype_size(buffer->base.type.dtype);
}

CornuStatus cornu__host_buffer_write(CornuBuffer *base, int64_t first, CornuArray from)
{
    const Buffer *buffer = (const Buffer *)base;
    const Part    part = both(own_part(buffer), part_for(from, first));
    CORNU__TRY(end_gather(buffer));
    if (part.end > 0 && buffer->data)
        memcpy(element_of(buffer, part.first), element_in(from, first, part.first),
               bytes_of(buffer, part));
    return CORNU_OK;
}

/* All ranks read at the same time: each sends its part of it to all others. */
static CornuStatus read_others(const Buffer *buffer, int64_t first, CornuArray to)
{
    CornuProcesses *processes = buffer->base.device->processes;
    const int       ranks = cornu_process_count(processes), rank = cornu_process_rank(processes);
    const Part      own = both(part_of(buffer, rank), part_for(to, first));
    CornuMessage    sends[CORNU_MAX_PROCESSES], receives[CORNU_MAX_PROCESSES];
    char            what[96];
    snprintf(what, sizeof what, "reading %.80s", buffer->base.held.name);
    CornuExchange exchange = { .what = what, .sends = sends, .receives = receives };
    for (int r = 0; r < ranks; r++) {
        const Part part = both(part_of(buffer, r), part_for(to, first));
        if (r == rank) continue;
        if (own.end > 0)
            sends[exchange.send_count++] =
                (CornuMessage){ r, element_of(buffer, own.first), bytes_of(buffer, own) };
        if (part.end > 0)
            receives[exchange.receive_count++] =
                (CornuMessage){ r, element_in(to, first, part.first), bytes_of(buffer, part) };
    }
    CORNU__TRY(cornu__exchange_start(processes, &exchange));
    return cornu__exchange_finish(processes, &exchange);
}

static uint32_t all_ranks(const CornuDevice *device)
{
    const int ranks = cornu_process_count(device->processes);
    return ranks < 32 ? (UINT32_C(1) << ranks) - 1 : ~UINT32_C(0);
}

/* The first rank of `from` sends its bytes to all of `to`. */
static CornuStatus send_copies(const CornuBuffer *base, uint32_t from, uint32_t to, void *data,
                               size_t bytes)
{
    CornuProcesses *processes = base->device->processes;
    const int       ranks = cornu_process_count(processes), rank = cornu_process_rank(processes);
    CornuMessage    sends[32], receive;
    char            what[96];
    int             first = 0;
    while (!(from >> first & 1)) first++;
    snprintf(what, sizeof what, "reading %.80s", base->held.name);
    CornuExchange exchange = { .what = what, .sends = sends, .receives = &receive };
    for (int r = 0; r < ranks && rank == first; r++)
        if (to >> r & 1) sends[exchange.send_count++] = (CornuMessage){ r, data, bytes };
    if (rank != first && (to >> rank & 1)) {
        receive = (CornuMessage){ first, data, bytes };
        exchange.receive_count = 1;
    }
    CORNU__TRY(cornu__exchange_start(processes, &exchange));
    return cornu__exchange_finish(processes, &exchange);
}

CornuStatus cornu__host_buffer_read(const CornuBuffer *base, int64_t first, CornuArray to)
{
    const Buffer *buffer = (const Buffer *)base;
    const Part    part = both(own_part(buffer), part_for(to, first));
    CORNU__TRY(end_gather(buffer));
    if (part.end > 0 && buffer->data)
        memcpy(element_in(to, first, part.first), element_of(buffer, part.first),
               bytes_of(buffer, part));
    if (base->holders && (base->holders & all_ranks(base->device)) != all_ranks(base->device))
        return send_copies(base, base->holders, ~base->holders, to.data, cornu_type_bytes(to.type));
    if (buffer->each == 0 || cornu_process_count(base->device->processes) == 1) return CORNU_OK;
    return read_others(buffer, first, to);
}

/* ---- Dealt to some ranks ---- */

/* Allocates it, or frees it. */
static CornuStatus keep(Buffer *buffer, bool here)
{
    CornuBuffer *base = &buffer->base;
    if (here == (buffer->data != NULL)) return CORNU_OK;
    const int64_t bytes = (int64_t)cornu_type_bytes(base->type);
    if (here && !(buffer->data = cornu__allocate_aligned((size_t)bytes))) return CORNU_ERR_MEMORY;
    if (!here) cornu__release(buffer->data);
    if (!here) buffer->data = NULL;
    base->held.bytes = here ? bytes : 0;
    cornu__memory_count(base->device, base->held.use, here ? bytes : -bytes);
    return CORNU_OK;
}

CornuStatus cornu__host_buffer_deal(CornuBuffer *base, uint32_t holders)
{
    Buffer         *buffer = (Buffer *)base;
    CornuProcesses *processes = base->device->processes;
    const uint32_t  before = base->holders ? base->holders : all_ranks(base->device);
    const uint32_t  after = base->holders ? before | holders : holders;
    CORNU__TRY(cornu__processes_check(processes, "memory for a stage", keep(
        buffer, after >> cornu_process_rank(processes) & 1)));
    if (after & ~before)
        CORNU__TRY(send_copies(base, before, after & ~before, buffer->data,
                               cornu_type_bytes(base->type)));
    base->holders = after;
    base->away = !buffer->data;
    return CORNU_OK;
}
