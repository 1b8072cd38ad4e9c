/* A device's memory: buffers, counts by use, the capacity, the message when it is full. */
#include <stdio.h>
#include <string.h>

#include "device_internal.h"
#include "text/print.h"

CornuMemory cornu_device_memory(const CornuDevice *device)
{
    CORNU__NEED_OR(device, (CornuMemory){ .capacity = 0 });
    return device->memory;
}

bool cornu__memory_fits(const CornuDevice *device, int64_t bytes)
{
    const CornuMemory *memory = &device->memory;
    return !memory->capacity || bytes <= memory->capacity - memory->total.now;
}

static void count(CornuBytes *bytes, int64_t more)
{
    bytes->now += more;
    if (bytes->now > bytes->peak) bytes->peak = bytes->now;
}

void cornu__memory_count(CornuDevice *device, CornuUse use, int64_t more)
{
    count(&device->memory.total, more);
    count(&device->memory.uses[use], more);
}

/* ---- The message ---- */

typedef struct { char text[24]; } Size;

static const char *print_size(Size *to, int64_t bytes)
{
    static const char *const units[] = { "B", "kB", "MB", "GB", "TB", "PB", "EB" };
    double value = (double)bytes;
    int    unit = 0;
    for (; value >= 1000.0; unit++) value /= 1000.0;
    cornu__format(to->text, sizeof to->text, "%.*f %s", unit ? 2 : 0, value, units[unit]);
    return to->text;
}

/* The largest allocations seen so far, in descending order. */
typedef struct {
    const CornuHeld *items[CORNU_LARGEST];
    int              count;
} Largest;

static void consider(Largest *largest, const CornuHeld *held)
{
    int at = largest->count;
    while (at > 0 && largest->items[at - 1]->bytes < held->bytes) at--;
    if (!held->bytes || at == CORNU_LARGEST) return;
    if (largest->count < CORNU_LARGEST) largest->count++;
    for (int i = largest->count - 1; i > at; i--) largest->items[i] = largest->items[i - 1];
    largest->items[at] = held;
}

static Largest find_largest(const CornuDevice *device, const CornuHeld parts[CORNU_LARGEST])
{
    Largest largest = { .count = 0 };
    for (int i = 0; i < CORNU_LARGEST; i++) consider(&largest, &parts[i]);
    for (const CornuBuffer *at = device->buffers; at; at = at->next) consider(&largest, &at->held);
    for (const CornuExecutable *at = device->executables; at; at = at->next)
        for (int i = 0; i < CORNU_LARGEST; i++) consider(&largest, &at->largest[i]);
    return largest;
}

CornuStatus cornu__memory_fail(const CornuDevice *device, const char *what, int64_t bytes,
                               const CornuHeld parts[CORNU_LARGEST])
{
    const CornuMemory *memory = &device->memory;
    char   uses[200] = "", tensors[800] = "";
    size_t used = 0;
    Size   a, b, c;
    for (int i = 0; i < CORNU_USE_COUNT; i++)
        if (memory->uses[i].now && used < sizeof uses)
            used += (size_t)snprintf(uses + used, sizeof uses - used, "%s%s %s",
                                     used ? ", " : ": ", cornu_use_name((CornuUse)i),
                                     print_size(&a, memory->uses[i].now));
    const Largest largest = find_largest(device, parts);
    used = 0;
    for (int i = 0; i < largest.count && used < sizeof tensors; i++) {
        const CornuHeld *held = largest.items[i];
        CornuText        type;
        used += (size_t)snprintf(tensors + used, sizeof tensors - used, "%s%s %s %s (%s)",
                                 used ? ", " : "", held->name, cornu_type_print(&type, held->type),
                                 print_size(&a, held->bytes), cornu_use_name(held->use));
    }
    return cornu__fail(CORNU_ERR_MEMORY, "%s%s%s: out of memory: %s takes %s of a shard's %s, "
                       "of which %s are in use%s; the largest: %s", device->class->name,
                       device->profile ? ":" : "", device->profile ? device->profile : "", what,
                       print_size(&a, bytes), print_size(&b, memory->capacity),
                       print_size(&c, memory->total.now), uses, tensors);
}

/* ---- Buffers ---- */

/* A weight or a slot of several groups of processes, of which one is to have it that is not known
 * yet: so long none has memory for it. */
static bool is_dealt_later(const CornuBufferConfig *config)
{
    return config->device->groups > 1 && config->type.shape.rank > 0 &&
           (config->use == CORNU_USE_WEIGHTS || config->use == CORNU_USE_SLOTS);
}

CornuBuffer *cornu_buffer_create_from(const CornuBufferConfig *config)
{
    if (cornu__refused()) return NULL;
    CornuDevice    *device = config->device;
    const CornuType type = config->type;
    CornuText       text;
    if (!device)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "a buffer needs a device, got NULL");
    if (cornu_type_check(type) != CORNU_OK) return cornu__null();
    if (config->per_shard && (type.shape.rank < 1 || type.shape.extent[0] != device->shards))
        return cornu__fail_null(CORNU_ERR_SHAPE, "a buffer per shard is %s, expected %d in axis 0",
                                cornu_type_print(&text, type), device->shards);
    CornuHeld parts[CORNU_LARGEST] = { { .type = type, .use = config->use } }, *held = parts;
    const int64_t bytes = (int64_t)cornu_type_bytes(type) /
                          (config->per_shard ? device->shards : 1);
    const bool    empty = is_dealt_later(config);
    held->bytes = empty ? 0 : bytes;
    snprintf(held->name, sizeof held->name, "%s", config->name ? config->name : "a buffer");
    if (cornu__memory_evict(device, held->name, held->bytes, parts)) return cornu__null();
    const bool   plans = device->plans;
    CornuBuffer *buffer = device->class->buffer_create(
        device, plans ? cornu_scalar(type.dtype) : type, config->per_shard && !plans, empty);
    if (!buffer) return cornu__null();
    buffer->bytes = bytes;
    buffer->empty = empty;
    buffer->device = device;
    buffer->type = type;
    buffer->held = *held;
    buffer->next = device->buffers;
    if (buffer->next) buffer->next->previous = buffer;
    device->buffers = buffer;
    cornu__device_retain(device);
    cornu__memory_count(device, held->use, held->bytes);
    return buffer;
}

CornuStatus cornu__buffer_keep(CornuBuffer *buffer, bool here)
{
    CornuDevice *device = buffer->device;
    const bool   has = !buffer->empty && !buffer->away;
    CornuHeld    parts[CORNU_LARGEST] = { buffer->held };
    parts->bytes = buffer->bytes;
    if (here && !has)
        CORNU__TRY(cornu__memory_evict(device, buffer->held.name, buffer->bytes, parts));
    if (here != has) CORNU__TRY(device->class->buffer_keep(buffer, here));
    if (here != has)
        cornu__memory_count(device, buffer->held.use, here ? buffer->bytes : -buffer->bytes);
    buffer->held.bytes = here ? buffer->bytes : 0;
    buffer->empty = false;
    buffer->away = !here;
    return CORNU_OK;
}

/* Starts runs that are collected before what they are given changes. What they are fed they have
 * copies of. */
static CornuStatus flush(const CornuBuffer *buffer)
{
    CornuDevice *device = buffer->device;
    if (!device->class->flush || buffer->held.use == CORNU_USE_INFEED) return CORNU_OK;
    return device->class->flush(device);
}

CornuStatus cornu__device_end_runs(CornuDevice *device)
{
    return device->class->wait ? device->class->wait(device) : CORNU_OK;
}

static void flush_quietly(CornuDevice *device)
{
    CornuFailure before;
    cornu__error_keep(&before);
    device->class->flush(device);
    cornu__error_restore(&before);
}

void cornu_buffer_free(CornuBuffer *buffer)
{
    if (!buffer) return;
    CornuDevice *device = buffer->device;
    if (device->class->flush) flush_quietly(device);
    cornu__memory_count(device, buffer->held.use, -buffer->held.bytes);
    *(buffer->previous ? &buffer->previous->next : &device->buffers) = buffer->next;
    if (buffer->next) buffer->next->previous = buffer->previous;
    device->class->buffer_free(buffer);
    cornu__device_release(device);
}

CornuType cornu_buffer_type(const CornuBuffer *buffer) { return buffer->type; }

CornuStatus cornu__check_stored(CornuType expected, CornuType received, const char *what)
{
    if (cornu_type_equal(expected, received)) return CORNU_OK;
    CornuText expected_text, received_text;
    return cornu__fail(expected.dtype == received.dtype ? CORNU_ERR_SHAPE : CORNU_ERR_DTYPE,
                       "%s is %s, expected %s", what, cornu_type_print(&received_text, received),
                       cornu_type_print(&expected_text, expected));
}

static CornuStatus expect_data(CornuArray array, const char *function)
{
    if (array.data || cornu_type_count(array.type) == 0) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: the array's data are NULL", function);
}

static CornuStatus write_buffer(CornuBuffer *buffer, int64_t first, CornuArray from)
{
    if (buffer->device->plans) return CORNU_OK;
    CORNU__TRY(flush(buffer));
    if (buffer->empty) CORNU__TRY(cornu__buffer_keep(buffer, true));
    return buffer->device->class->buffer_write(buffer, first, from);
}

static CornuStatus read_buffer(const CornuBuffer *buffer, int64_t first, CornuArray to)
{
    if (buffer->device->plans) return CORNU_OK;
    CORNU__TRY(cornu__device_end_runs(buffer->device));
    if (!buffer->empty) return buffer->device->class->buffer_read(buffer, first, to);
    if (cornu_type_count(to.type)) memset(to.data, 0, cornu_type_bytes(to.type));
    return CORNU_OK;
}

CornuStatus cornu_buffer_write(CornuBuffer *buffer, CornuArray from)
{
    CORNU__NEED(buffer);
    CORNU__TRY(expect_data(from, __func__));
    CORNU__TRY(cornu__check_stored(buffer->type, from.type, "the array written to a buffer"));
    return write_buffer(buffer, 0, from);
}

CornuStatus cornu_buffer_read(const CornuBuffer *buffer, CornuArray to)
{
    CORNU__NEED(buffer);
    CORNU__TRY(expect_data(to, __func__));
    CORNU__TRY(cornu__check_stored(buffer->type, to.type, "the array read from a buffer"));
    return read_buffer(buffer, 0, to);
}

static CornuStatus expect_part(const CornuBuffer *buffer, int64_t first, CornuType part)
{
    CornuText      text;
    const int64_t  all = cornu_type_count(buffer->type);
    if (part.dtype == buffer->type.dtype && first >= 0 && first <= all &&
        cornu_type_count(part) <= all - first)
        return CORNU_OK;
    return cornu__fail(CORNU_ERR_SHAPE, "%s from element %lld on does not lie in a buffer of %lld "
                       "%s", cornu_type_print(&text, part), (long long)first, (long long)all,
                       cornu_dtype_name(buffer->type.dtype));
}

CornuStatus cornu_buffer_write_part(CornuBuffer *buffer, int64_t first, CornuArray from)
{
    CORNU__NEED(buffer);
    CORNU__TRY(expect_data(from, __func__));
    CORNU__TRY(expect_part(buffer, first, from.type));
    return write_buffer(buffer, first, from);
}

CornuStatus cornu_buffer_read_part(const CornuBuffer *buffer, int64_t first, CornuArray to)
{
    CORNU__NEED(buffer);
    CORNU__TRY(expect_data(to, __func__));
    CORNU__TRY(expect_part(buffer, first, to.type));
    return read_buffer(buffer, first, to);
}
