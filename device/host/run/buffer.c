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

/* Those that a rank has in memory, if its group has the buffer. */
static Part part_of(const Buffer *buffer, int rank)
{
    const CornuDevice *device = buffer->base.device;
    const int          ranks = cornu__device_sharers(device);
    if (buffer->each == 0) return (Part){ 0, cornu_type_count(buffer->base.type) };
    const CornuRange own = cornu__range_of(device->shards, rank % ranks, ranks);
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

CornuBuffer *cornu__host_buffer_create(CornuDevice *device, CornuType type, bool per_shard,
                                       bool empty)
{
    Buffer *buffer = cornu__allocate(1, sizeof *buffer);
    if (!buffer) return NULL;
    buffer->each = per_shard ? cornu_type_count(type) / device->shards : 0;
    const int64_t count = per_shard ? buffer->each * device->own.count : cornu_type_count(type);
    if (!empty)
        buffer->data = cornu__allocate_aligned((size_t)count * cornu_dtype_size(type.dtype));
    if (buffer->data || empty) return &buffer->base;
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

static size_t bytes_of(const Buffer *buffer, Part part)
{
    return (size_t)(part.end - part.first) * cornu_dtype_size(buffer->base.type.dtype);
}

void *cornu__host_buffer_data(const CornuBuffer *base, size_t *bytes)
{
    const Buffer *buffer = (const Buffer *)base;
    end_gather(buffer);
    *bytes = bytes_of(buffer, own_part(buffer));
    return buffer->data;
}

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

static bool has(const CornuBuffer *buffer, int group)
{
    return !buffer->holders || buffer->holders >> group & 1;
}

/* When all ranks read at the same time: whether one sends its part to another. Who shares the
 * shards with others of its group gets their parts; a group that lacks the buffer gets it from the
 * first that has it. */
static bool sends_part(const Buffer *buffer, int from, int to)
{
    const int sharers = cornu__device_sharers(buffer->base.device);
    const int group = from / sharers, other = to / sharers;
    const bool alike = from % sharers == to % sharers;
    if (!has(&buffer->base, group)) return false;
    if (group == other) return buffer->each > 0 && !alike;
    for (int g = 0; g < group; g++)
        if (has(&buffer->base, g)) return false;
    return !has(&buffer->base, other) && (buffer->each > 0 || alike);
}

static bool is_everywhere(const Buffer *buffer)
{
    const CornuDevice *device = buffer->base.device;
    bool               everywhere = buffer->each == 0 || cornu__device_sharers(device) == 1;
    for (int g = 0; g < device->groups; g++) everywhere &= has(&buffer->base, g);
    return everywhere;
}

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
        if (sends_part(buffer, rank, r) && own.end > 0)
            sends[exchange.send_count++] =
                (CornuMessage){ r, element_of(buffer, own.first), bytes_of(buffer, own) };
        if (sends_part(buffer, r, rank) && part.end > 0)
            receives[exchange.receive_count++] =
                (CornuMessage){ r, element_in(to, first, part.first), bytes_of(buffer, part) };
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
    return is_everywhere(buffer) ? CORNU_OK : read_others(buffer, first, to);
}

/* ---- Dealt to some groups ---- */

CornuStatus cornu__host_buffer_keep(CornuBuffer *base, bool here)
{
    Buffer *buffer = (Buffer *)base;
    CORNU__TRY(end_gather(buffer));
    if (!here) cornu__release(buffer->data);
    buffer->data = here ? cornu__allocate_aligned(bytes_of(buffer, own_part(buffer))) : NULL;
    return buffer->data || !here ? CORNU_OK : CORNU_ERR_MEMORY;
}

/* Each rank of the first group that had it sends its part to those that have it now. */
static CornuStatus send_copies(Buffer *buffer, uint32_t had, uint32_t has)
{
    const CornuDevice *device = buffer->base.device;
    CornuProcesses    *processes = device->processes;
    const int          sharers = cornu__device_sharers(device), group =
        cornu_process_rank(processes) / sharers, place = cornu_process_rank(processes) % sharers;
    CornuMessage       sends[32], receive;
    size_t             bytes;
    void              *data = cornu__host_buffer_data(&buffer->base, &bytes);
    char               what[96];
    int                first = 0;
    while (!(had >> first & 1)) first++;
    snprintf(what, sizeof what, "dealing %.80s", buffer->base.held.name);
    CornuExchange exchange = { .what = what, .sends = sends, .receives = &receive };
    for (int g = 0; g < device->groups && group == first; g++)
        if (has >> g & 1)
            sends[exchange.send_count++] = (CornuMessage){ g * sharers + place, data, bytes };
    if (has >> group & 1) {
        receive = (CornuMessage){ first * sharers + place, data, bytes };
        exchange.receive_count = 1;
    }
    CORNU__TRY(cornu__exchange_start(processes, &exchange));
    return cornu__exchange_finish(processes, &exchange);
}

CornuStatus cornu__host_buffer_deal(CornuBuffer *base, uint32_t holders)
{
    Buffer         *buffer = (Buffer *)base;
    CornuProcesses *processes = base->device->processes;
    const int       group = cornu_process_rank(processes) / cornu__device_sharers(base->device);
    const uint32_t  all = base->device->groups < 32 ? (UINT32_C(1) << base->device->groups) - 1
                                                    : ~UINT32_C(0);
    const uint32_t  before = base->holders ? base->holders : all;
    const uint32_t  after = base->holders ? before | holders : holders;
    CORNU__TRY(cornu__processes_check(processes, "memory for a stage",
                                      cornu__buffer_keep(base, after >> group & 1)));
    if (after & ~before) CORNU__TRY(send_copies(buffer, before, after & ~before));
    base->holders = after;
    return CORNU_OK;
}
