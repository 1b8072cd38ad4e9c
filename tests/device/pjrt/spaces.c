#include "spaces.h"

#include <string.h>

static void put_varint(Space *to, uint64_t number)
{
    for (; number >= 0x80; number >>= 7) to->bytes[to->size++] = (unsigned char)(number | 0x80);
    to->bytes[to->size++] = (unsigned char)number;
}

void space_number(Space *to, int field, int64_t number)
{
    put_varint(to, (uint64_t)field << 3);
    put_varint(to, (uint64_t)number);
}

void space_bytes(Space *to, int field, const void *bytes, size_t size)
{
    put_varint(to, (uint64_t)field << 3 | 2);
    put_varint(to, size);
    memcpy(to->bytes + to->size, bytes, size);
    to->size += size;
}

Space space_line(const char *name, int64_t time_ns)
{
    Space line = { .size = 0 };
    space_bytes(&line, 2, name, strlen(name));
    space_number(&line, 3, time_ns);
    return line;
}

void space_event(Space *line, int64_t offset_ps, int64_t duration_ps)
{
    Space event = { .size = 0 };
    space_number(&event, 1, 1);
    space_number(&event, 2, offset_ps);
    space_number(&event, 3, duration_ps);
    space_bytes(line, 4, event.bytes, event.size);
}

Space space_plane(int64_t id, const char *name)
{
    Space plane = { .size = 0 };
    space_number(&plane, 1, id);
    space_bytes(&plane, 2, name, strlen(name));
    return plane;
}

void space_add_line(Space *plane, const Space *line)
{
    space_bytes(plane, 3, line->bytes, line->size);
}

void space_add_plane(Space *space, const Space *plane)
{
    space_bytes(space, 1, plane->bytes, plane->size);
}
