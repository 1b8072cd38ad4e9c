/* Accounting of a device's memory: counts by use, the capacity, the message when it is full. */
#include <stdio.h>

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
