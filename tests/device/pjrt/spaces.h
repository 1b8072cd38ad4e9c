/* XSpaces, as profilers write them, from their inside out. */
#ifndef CORNU_TESTS_DEVICE_PJRT_SPACES_H
#define CORNU_TESTS_DEVICE_PJRT_SPACES_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    unsigned char bytes[1000];
    size_t        size;
} Space;   /* or a part of one */

/* Fields of Protocol Buffers. */
void space_number(Space *to, int field, int64_t number);
void space_bytes(Space *to, int field, const void *bytes, size_t size);

Space space_line(const char *name, int64_t time_ns);
void  space_event(Space *line, int64_t offset_ps, int64_t duration_ps);
Space space_plane(int64_t id, const char *name);
void  space_add_line(Space *plane, const Space *line);
void  space_add_plane(Space *space, const Space *plane);

#endif
