/* Reading FlatBuffers that are not trusted. */
#include "flatbuffer_internal.h"

#include <string.h>

/* Little-endian bits of 1 to 8 bytes that are known to be in the file. */
static uint64_t bits_at(const CornuFlat *from, size_t at, size_t size)
{
    uint64_t bits = 0;
    memcpy(&bits, from->bytes + at, size);
    return bits;
}

/* Whether the bytes lie in the file. */
static bool lies_in(const CornuFlat *from, size_t at, size_t size)
{
    return at <= from->size && size <= from->size - at;
}

static CornuFlatTable no_table(CornuFlat *from)
{
    from->failed = true;
    return (CornuFlatTable){ 0 };
}

/* The table at this place: its distance to the vtable, which may lie before or after it; the vtable
 * has its own size, that of the table, and where in the table each field is. */
static CornuFlatTable table_of(CornuFlat *from, size_t at)
{
    if (!lies_in(from, at, 4)) return no_table(from);
    const int64_t vtable = (int64_t)at - (int32_t)(uint32_t)bits_at(from, at, 4);
    if (vtable < 0 || !lies_in(from, (size_t)vtable, 4)) return no_table(from);
    CornuFlatTable table = {
        .at = at, .fields = (size_t)vtable + 4,
        .field_bytes = (size_t)bits_at(from, (size_t)vtable, 2),
        .size = (size_t)bits_at(from, (size_t)vtable + 2, 2),
    };
    if (table.field_bytes < 4 || table.field_bytes % 2 ||
        !lies_in(from, (size_t)vtable, table.field_bytes) || table.size < 4 ||
        !lies_in(from, at, table.size))
        return no_table(from);
    table.field_bytes -= 4;
    return table;
}

/* The place of a field, 0 if it is absent. */
static size_t field_at(CornuFlat *from, const CornuFlatTable *table, int slot, size_t size)
{
    if (from->failed || !table->at || 2 * (size_t)slot >= table->field_bytes) return 0;
    const size_t offset = (size_t)bits_at(from, table->fields + 2 * (size_t)slot, 2);
    if (!offset) return 0;
    if (offset >= 4 && offset <= table->size && size <= table->size - offset)
        return table->at + offset;
    from->failed = true;
    return 0;
}

/* What an offset at this place refers to; 0 if that is outside of the file. */
static size_t target_of(CornuFlat *from, size_t at)
{
    const size_t distance = (size_t)bits_at(from, at, 4);
    if (distance && lies_in(from, at, distance) && lies_in(from, at + distance, 4))
        return at + distance;
    from->failed = true;
    return 0;
}

bool cornu__flat_open(CornuFlat *from, const char *identifier, CornuFlatTable *root)
{
    *root = (CornuFlatTable){ 0 };
    if (from->size < 8 || memcmp(from->bytes + 4, identifier, 4) != 0) return false;
    const size_t at = target_of(from, 0);
    if (at) *root = table_of(from, at);
    return !from->failed;
}

uint64_t cornu__flat_bits(CornuFlat *from, const CornuFlatTable *table, int slot, size_t size,
                          uint64_t usual)
{
    const size_t at = field_at(from, table, slot, size);
    return at ? bits_at(from, at, size) : usual;
}

CornuFlatTable cornu__flat_table_at(CornuFlat *from, const CornuFlatTable *table, int slot)
{
    const size_t at = field_at(from, table, slot, 4), target = at ? target_of(from, at) : 0;
    return target ? table_of(from, target) : (CornuFlatTable){ 0 };
}

CornuFlatVector cornu__flat_vector_at(CornuFlat *from, const CornuFlatTable *table, int slot,
                                      size_t element)
{
    const size_t at = field_at(from, table, slot, 4), target = at ? target_of(from, at) : 0;
    if (!target) return (CornuFlatVector){ 0 };
    const size_t count = (size_t)bits_at(from, target, 4);
    if (count > (from->size - target - 4) / element) {
        from->failed = true;
        return (CornuFlatVector){ 0 };
    }
    return (CornuFlatVector){ .bytes = from->bytes + target + 4, .count = count, .at = target + 4,
                              .given = true };
}

CornuFlatTable cornu__flat_element(CornuFlat *from, const CornuFlatVector *tables, size_t i)
{
    const size_t target = from->failed ? 0 : target_of(from, tables->at + 4 * i);
    return target ? table_of(from, target) : (CornuFlatTable){ 0 };
}
