/* Reading protobuf messages. Source: protobuf.dev/programming-guides/encoding. */
#include "protobuf_internal.h"

#include <string.h>

#include "file_internal.h"

enum { MOST_VARINT = 10, MOST_FIELD = (1 << 29) - 1 };

static bool fail(CornuFields *from)
{
    from->failed = true;
    from->at = from->end;
    return false;
}

/* Bits beyond the 64th are dropped, as other readers do. */
static bool next_varint(CornuFields *from, uint64_t *bits)
{
    *bits = 0;
    for (int i = 0; i < MOST_VARINT && from->at < from->end; i++) {
        const unsigned char byte = *from->at++;
        *bits |= (uint64_t)(byte & 0x7F) << (7 * i);
        if (!(byte & 0x80)) return true;
    }
    return fail(from);
}

bool cornu__next_number(CornuFields *from, CornuProtobufKind kind, uint64_t *bits)
{
    if (from->at == from->end) return false;
    if (kind == CORNU_PROTOBUF_VARINT) return next_varint(from, bits);
    const int width = kind == CORNU_PROTOBUF_FIXED64 ? 8 : 4;
    if (from->end - from->at < width) return fail(from);
    *bits = cornu__little_endian(from->at, width);
    from->at += width;
    return true;
}

bool cornu__next_field(CornuFields *from, CornuProtobufField *field)
{
    uint64_t key;
    if (from->at == from->end || !next_varint(from, &key)) return false;
    *field = (CornuProtobufField){ .field = (uint32_t)(key >> 3),
                                   .kind = (CornuProtobufKind)(key & 7) };
    if (key >> 3 == 0 || key >> 3 > MOST_FIELD) return fail(from);
    switch (field->kind) {
    case CORNU_PROTOBUF_VARINT: case CORNU_PROTOBUF_FIXED64: case CORNU_PROTOBUF_FIXED32:
        return cornu__next_number(from, field->kind, &field->bits) || fail(from);
    case CORNU_PROTOBUF_BYTES: {
        uint64_t size;
        if (!next_varint(from, &size) || size > (uint64_t)(from->end - from->at))
            return fail(from);
        field->bytes = from->at;
        field->size = (size_t)size;
        from->at += size;
        return true;
    }
    }
    return fail(from);   /* groups, which ONNX does not use */
}

int64_t cornu__count_numbers(const CornuProtobufField *field, CornuProtobufKind kind)
{
    uint64_t bits;
    int64_t  count = 0;
    if (field->kind == kind) return 1;
    if (field->kind != CORNU_PROTOBUF_BYTES) return -1;
    CornuFields list = cornu__fields(field->bytes, field->size);
    while (cornu__next_number(&list, kind, &bits)) count++;
    return list.failed ? -1 : count;
}

float cornu__float_of(uint64_t bits)
{
    const uint32_t low = (uint32_t)bits;
    float          value;
    memcpy(&value, &low, sizeof value);
    return value;
}

double cornu__double_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
