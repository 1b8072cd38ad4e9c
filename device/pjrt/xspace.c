#include "xspace.h"

#include <stdint.h>
#include <string.h>

/* The fields that are read:
 *     XSpace  planes 1
 *     XPlane  id 1, name 2, lines 3
 *     XLine   name 2, timestamp_ns 3, events 4, display_name 11
 *     XEvent  offset_ps 2, duration_ps 3, num_occurrences 5 (in place of the offset: the sum of
 *             several events) */

/* ---- Protocol Buffers ---- */

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

/* What has not been read of a message. */
typedef struct {
    const unsigned char *at, *end;
    bool                 damaged;
} Message;

typedef struct {
    uint64_t tag;      /* number << 3 | type */
    uint64_t value;    /* of a varint */
    Message  bytes;
} Field;

enum { TAG_PLANE = 1 << 3 | BYTES,
       TAG_PLANE_ID = 1 << 3 | VARINT, TAG_PLANE_NAME = 2 << 3 | BYTES, TAG_LINE = 3 << 3 | BYTES,
       TAG_LINE_NAME = 2 << 3 | BYTES, TAG_LINE_DISPLAYED = 11 << 3 | BYTES,
       TAG_LINE_TIME = 3 << 3 | VARINT, TAG_EVENT = 4 << 3 | BYTES,
       TAG_EVENT_OFFSET = 2 << 3 | VARINT, TAG_EVENT_DURATION = 3 << 3 | VARINT,
       TAG_EVENT_OCCURRENCES = 5 << 3 | VARINT };

static bool fail(Message *from)
{
    from->damaged = true;
    from->at = from->end;
    return false;
}

static bool read_varint(Message *from, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; shift < 64 && from->at < from->end; shift += 7) {
        const uint64_t byte = *from->at++;
        *value |= (byte & 0x7f) << shift;
        if (byte < 0x80) return true;
    }
    return fail(from);
}

static bool skip(Message *from, uint64_t size, Message *skipped)
{
    if (size > (uint64_t)(from->end - from->at)) return fail(from);
    *skipped = (Message){ from->at, from->at + size, false };
    from->at += size;
    return true;
}

/* False at the end, and at what is damaged. A last byte of zero is not a field: profilers append
 * one. */
static bool next(Message *from, Field *field)
{
    *field = (Field){ .tag = 0 };
    if (from->at == from->end || !read_varint(from, &field->tag)) return false;
    if (field->tag == 0 && from->at == from->end) return false;
    if (field->tag >> 3 == 0) return fail(from);
    switch (field->tag & 7) {
    case VARINT:  return read_varint(from, &field->value);
    case FIXED64: return skip(from, 8, &field->bytes);
    case FIXED32: return skip(from, 4, &field->bytes);
    case BYTES:   return read_varint(from, &field->value) &&
                         skip(from, field->value, &field->bytes);
    default:      return fail(from);
    }
}

static bool begins_with(Message text, const char *with)
{
    const size_t length = strlen(with);
    return (size_t)(text.end - text.at) >= length && memcmp(text.at, with, length) == 0;
}

static bool equals(Message text, const char *to)
{
    return begins_with(text, to) && (size_t)(text.end - text.at) == strlen(to);
}

static bool contains(Message text, const char *what)
{
    for (; text.at < text.end; text.at++)
        if (begins_with(text, what)) return true;
    return false;
}

/* ---- Lines ---- */

/* How well a line tells what the device did for a program. Lines of a GPU are named after the kinds
 * of their events: "Stream #13(MemcpyD2D,Compute)". */
typedef enum { NOTHING, ANYTHING, KERNELS, MODULES } Kind;

static Kind kind_of(Message name)
{
    if (equals(name, "XLA Modules")) return MODULES;
    return contains(name, "Compute") || contains(name, "CudaGraph") ? KERNELS : ANYTHING;
}

/* When a device worked. Times of lines are those since 1970, of which a double would lose
 * nanoseconds: seconds are those after the first line's time. */
typedef struct {
    int64_t  id;
    Kind     kind;              /* of the lines that were read; NOTHING: none had an event */
    bool     has_line;
    uint64_t first_ns;          /* of the first line */
    double   begin_s, end_s;
} Device;

static bool read_event(Message event, double line_s, Kind kind, Device *device)
{
    Field   field;
    int64_t offset = 0, duration = 0;
    bool    is_sum = false;
    while (next(&event, &field)) {
        if (field.tag == TAG_EVENT_OFFSET) offset = (int64_t)field.value;
        if (field.tag == TAG_EVENT_DURATION) duration = (int64_t)field.value;
        if (field.tag == TAG_EVENT_OCCURRENCES) is_sum = true;
    }
    if (event.damaged || duration < 0) return false;
    if (is_sum || kind < device->kind) return true;
    const double begin = line_s + 1e-12 * (double)offset, end = begin + 1e-12 * (double)duration;
    const bool   first = kind > device->kind;   /* others do not count beside these */
    device->kind = kind;
    if (first || begin < device->begin_s) device->begin_s = begin;
    if (first || end > device->end_s) device->end_s = end;
    return true;
}

static bool read_line(Message line, Device *device)
{
    Field    field;
    Message  name = { 0 }, displayed = { 0 }, events = line;
    uint64_t time_ns = 0;
    while (next(&line, &field)) {
        if (field.tag == TAG_LINE_NAME) name = field.bytes;
        if (field.tag == TAG_LINE_DISPLAYED) displayed = field.bytes;
        if (field.tag == TAG_LINE_TIME) time_ns = field.value;
    }
    if (line.damaged) return false;
    if (!device->has_line) device->first_ns = time_ns;
    device->has_line = true;
    const double line_s = 1e-9 * (double)(int64_t)(time_ns - device->first_ns);
    const Kind   kind = kind_of(displayed.at < displayed.end ? displayed : name);
    while (next(&events, &field))
        if (field.tag == TAG_EVENT && !read_event(field.bytes, line_s, kind, device)) return false;
    return true;
}

/* ---- Planes ---- */

/* "/device:TPU:0", but neither "/device:TPU:0 SparseCore 1" nor "/device:CUSTOM:...". */
static bool is_device(Message name)
{
    return begins_with(name, "/device:") && !begins_with(name, "/device:CUSTOM:") &&
           !contains(name, " ");
}

/* device->kind is NOTHING if the plane is that of no device, or of an idle one. */
static bool read_plane(Message plane, Device *device)
{
    Field   field;
    Message name = { 0 }, lines = plane;
    *device = (Device){ .kind = NOTHING };
    while (next(&plane, &field)) {
        if (field.tag == TAG_PLANE_NAME) name = field.bytes;
        if (field.tag == TAG_PLANE_ID) device->id = (int64_t)field.value;
    }
    if (plane.damaged) return false;
    while (is_device(name) && next(&lines, &field))
        if (field.tag == TAG_LINE && !read_line(field.bytes, device)) return false;
    return true;
}

enum { MOST_DEVICES = 64 };

/* By their numbers; equal ones remain in their order. */
static void insert(Device devices[MOST_DEVICES], int count, Device new)
{
    int i = count;
    for (; i > 0 && devices[i - 1].id > new.id; i--) devices[i] = devices[i - 1];
    devices[i] = new;
}

int cornu__xspace_seconds(const void *bytes, size_t size, int most, double *seconds)
{
    Message space = { bytes, size ? (const unsigned char *)bytes + size : bytes, false };
    Field   field;
    Device  devices[MOST_DEVICES], device;
    int     count = 0, found = 0;
    Kind    best = NOTHING;
    while (next(&space, &field)) {
        if (field.tag != TAG_PLANE) continue;
        if (!read_plane(field.bytes, &device)) return -1;
        if (device.kind == NOTHING || count == MOST_DEVICES) continue;
        insert(devices, count++, device);
        if (device.kind > best) best = device.kind;
    }
    if (space.damaged) return -1;
    /* Where one device ran a module, others without did not take part. */
    for (int i = 0; i < count; i++) {
        if (devices[i].kind != best) continue;
        if (found < most) seconds[found] = devices[i].end_s - devices[i].begin_s;
        found++;
    }
    return found;
}
