/* Writing FlatBuffers. */
#include "flatbuffer_internal.h"

#include <string.h>

enum { MOST_FIELDS = 64 };

static void put_zeros(CornuMessage *to, size_t count)
{
    static const unsigned char zeros[64];
    for (size_t size; count > 0; count -= size) {
        size = count < sizeof zeros ? count : sizeof zeros;
        cornu__put(to, zeros, size);
    }
}

/* Zeros up to where `offset` bytes further is a multiple of `align`. */
static void align_to(CornuMessage *to, size_t align, size_t offset)
{
    put_zeros(to, (align - (to->size + offset) % align) % align);
}

static void put_u32(CornuMessage *to, uint32_t value) { cornu__put(to, &value, sizeof value); }

size_t cornu__flat_begin(CornuMessage *to, const char *identifier)
{
    put_u32(to, 0);
    cornu__put(to, identifier, 4);
    return 0;
}

/* The vtable, then the table: the distance to the vtable, and the fields by falling size, so that
 * the first lies where all are aligned. */
size_t cornu__flat_table(CornuMessage *to, CornuFlatField *fields, int count)
{
    uint16_t vtable[2 + MOST_FIELDS] = { 0 };
    uint16_t slots = 0, size = 4;
    size_t   widest = 4;
    for (int i = 0; i < count; i++)
        if (fields[i].offset) fields[i].size = 4;
    for (int i = 0; i < count; i++) {
        if (!fields[i].size) continue;
        slots = (uint16_t)(fields[i].slot + 1);
        if ((size_t)fields[i].size > widest) widest = (size_t)fields[i].size;
    }
    /* Eight bytes after the distance of four leave a gap of four. */
    if (widest == 8) size = 8;
    for (int width = 8; width >= 1; width /= 2)
        for (int i = 0; i < count; i++) {
            if (fields[i].size != width) continue;
            vtable[2 + fields[i].slot] = size;
            size = (uint16_t)(size + width);
        }
    vtable[0] = (uint16_t)(4 + 2 * slots);
    vtable[1] = size;
    align_to(to, widest, vtable[0]);
    cornu__put(to, vtable, vtable[0]);
    const size_t table = to->size;
    put_u32(to, vtable[0]);
    put_zeros(to, size - 4u);
    for (int i = 0; i < count && !to->failed; i++) {
        if (!fields[i].size) continue;
        fields[i].place = table + vtable[2 + fields[i].slot];
        if (!fields[i].offset)
            memcpy(to->bytes + fields[i].place, &fields[i].bits, (size_t)fields[i].size);
    }
    return table;
}

void cornu__flat_point(CornuMessage *to, size_t gap, size_t place)
{
    const uint32_t distance = (uint32_t)(place - gap);
    if (!to->failed) memcpy(to->bytes + gap, &distance, sizeof distance);
}

size_t cornu__flat_vector(CornuMessage *to, const void *elements, size_t count, size_t size,
                          size_t align)
{
    align_to(to, align < 4 ? 4 : align, 4);
    const size_t place = to->size;
    put_u32(to, (uint32_t)count);
    cornu__put(to, elements, count * size);
    return place;
}

/* A zero, which the length does not count, ends a string. */
size_t cornu__flat_text(CornuMessage *to, const char *text)
{
    const size_t place = cornu__flat_vector(to, text, strlen(text), 1, 4);
    put_zeros(to, 1);
    return place;
}

size_t cornu__flat_offsets(CornuMessage *to, size_t count)
{
    const size_t place = cornu__flat_vector(to, NULL, 0, 4, 4);
    const uint32_t length = (uint32_t)count;
    put_zeros(to, 4 * count);
    if (!to->failed) memcpy(to->bytes + place, &length, sizeof length);
    return place;
}
