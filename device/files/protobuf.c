#include "protobuf_internal.h"

#include <string.h>

#include "../memory_internal.h"

enum { MOST_VARINT = 10 };

void cornu__put(CornuMessage *to, const void *bytes, size_t size)
{
    if (to->failed || size == 0) return;
    if (size > to->space - to->size) {
        const size_t   space = 2 * (to->size + size);
        unsigned char *more = cornu__allocate(space, 1);
        if (!more) {
            to->failed = true;
            return;
        }
        if (to->size) memcpy(more, to->bytes, to->size);
        cornu__release(to->bytes);
        to->bytes = more;
        to->space = space;
    }
    memcpy(to->bytes + to->size, bytes, size);
    to->size += size;
}

/* Seven bits a byte, the lowest first; returns the number of bytes. */
static size_t varint(unsigned char to[MOST_VARINT], uint64_t value)
{
    size_t count = 0;
    for (; value >= 0x80; value >>= 7) to[count++] = (unsigned char)(value | 0x80);
    to[count++] = (unsigned char)value;
    return count;
}

void cornu__put_varint(CornuMessage *to, uint64_t value)
{
    unsigned char bytes[MOST_VARINT];
    cornu__put(to, bytes, varint(bytes, value));
}

void cornu__put_key(CornuMessage *to, int field, CornuProtobufKind kind)
{
    cornu__put_varint(to, (uint64_t)field << 3 | (uint64_t)kind);
}

void cornu__put_number(CornuMessage *to, int field, int64_t value)
{
    cornu__put_key(to, field, CORNU_PROTOBUF_VARINT);
    cornu__put_varint(to, (uint64_t)value);
}

void cornu__put_double(CornuMessage *to, int field, double value)
{
    cornu__put_key(to, field, CORNU_PROTOBUF_FIXED64);
    cornu__put(to, &value, sizeof value);
}

void cornu__put_float(CornuMessage *to, int field, float value)
{
    cornu__put_key(to, field, CORNU_PROTOBUF_FIXED32);
    cornu__put(to, &value, sizeof value);
}

void cornu__put_bytes(CornuMessage *to, int field, const void *bytes, size_t size)
{
    cornu__put_key(to, field, CORNU_PROTOBUF_BYTES);
    cornu__put_varint(to, size);
    cornu__put(to, bytes, size);
}

void cornu__put_text(CornuMessage *to, int field, const char *text)
{
    cornu__put_bytes(to, field, text, strlen(text));
}

size_t cornu__begin_field(CornuMessage *to, int field)
{
    cornu__put_key(to, field, CORNU_PROTOBUF_BYTES);
    return to->size;
}

/* Inserts the length, which is known only now, before the bytes. */
void cornu__end_field(CornuMessage *to, size_t begin)
{
    unsigned char length[MOST_VARINT];
    const size_t  size = to->size - begin, width = varint(length, size);
    cornu__put(to, length, width);
    if (to->failed) return;
    memmove(to->bytes + begin + width, to->bytes + begin, size);
    memcpy(to->bytes + begin, length, width);
}
