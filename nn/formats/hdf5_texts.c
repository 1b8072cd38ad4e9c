/* Attributes that are strings of variable length, in HDF5 files as h5py writes them: the attribute,
 * in an object header of version 1, states the heap and the index of each string.
 *
 *     header      1, 0, messages (2), users (4), bytes of them (4), 0 (4); messages
 *     message     type (2), bytes (2), flags (1), 0 (3); data
 *       type 16   more messages at (8), bytes (8)
 *       type 12   version (1), flags (1), bytes of name (2), type (2), shape (2); version 3: the
 *                 name's encoding (1); name, type, shape: in version 1 each padded to 8; data
 *     string      length (4), heap at (8), index in it (4)
 *     heap        "GCOL", 1, 0 (3), bytes of all (8); objects: number (2), users (2), 0 (4), bytes
 *                 (8), data padded to 8
 *
 * Source: "HDF5 File Format Specification", version 2.0, III.E, IV.A.
 */
#include "../../device/files/file_internal.h"
#include "hdf5_internal.h"

#include <string.h>

enum { ATTRIBUTE = 12, CONTINUATION = 16, MAX_BLOCKS = 100 };
enum { HEADER_HEAD = 16, MESSAGE_HEAD = 8, TEXT = 16, HEAP_HEAD = 16, OBJECT_HEAD = 16 };

typedef struct {
    const unsigned char *bytes;
    uint64_t             size;
} Span;

/* Part of a span; empty if it exceeds the span. */
static Span part(Span of, uint64_t at, uint64_t size)
{
    if (!of.bytes || at > of.size || size > of.size - at) return (Span){ NULL, 0 };
    return (Span){ of.bytes + at, size };
}

/* A little-endian number; 0 if it exceeds the span. */
static uint64_t number(Span of, uint64_t at, int bytes)
{
    const Span from = part(of, at, (uint64_t)bytes);
    return from.bytes ? cornu__little_endian(from.bytes, bytes) : 0;
}

static uint64_t padded(uint64_t size, bool pad) { return pad ? (size + 7) / 8 * 8 : size; }

/* The data of an attribute message, if it has this name. */
static Span attribute_data(Span message, const char *wanted)
{
    const uint64_t version = number(message, 0, 1), flags = number(message, 1, 1);
    const uint64_t length = number(message, 2, 2), type = number(message, 4, 2);
    const uint64_t shape = number(message, 6, 2);
    const bool     pad = version == 1;
    const uint64_t at = version == 3 ? 9 : 8;
    const Span     name = part(message, at, length), none = { NULL, 0 };
    if (version < 1 || version > 3 || (!pad && flags) || !name.bytes ||
        length != strlen(wanted) + 1 || memcmp(name.bytes, wanted, length))
        return none;
    const uint64_t data = at + padded(length, pad) + padded(type, pad) + padded(shape, pad);
    return data > message.size ? none : part(message, data, message.size - data);
}

/* The data of the attribute, from the messages of the header block or of its continuations. */
static Span find_attribute(Span file, uint64_t header, const char *name)
{
    Span block = part(file, header + HEADER_HEAD, number(file, header + 8, 4)), next = { NULL, 0 };
    if (header > file.size || number(file, header, 1) != 1) return next;
    for (int i = 0; block.bytes && i < MAX_BLOCKS; i++, block = next, next = (Span){ NULL, 0 })
        for (uint64_t at = 0; at + MESSAGE_HEAD <= block.size;) {
            const uint64_t type = number(block, at, 2), size = number(block, at + 2, 2);
            const Span     message = part(block, at + MESSAGE_HEAD, size);
            const Span     data = type == ATTRIBUTE ? attribute_data(message, name)
                                                    : (Span){ NULL, 0 };
            if (data.bytes) return data;
            if (type == CONTINUATION)
                next = part(file, number(message, 0, 8), number(message, 8, 8));
            at += MESSAGE_HEAD + size;
        }
    return next;
}

/* The object of this index in the heap at byte `at`. */
static Span find_object(Span file, uint64_t at, uint64_t wanted)
{
    const Span none = { NULL, 0 }, head = part(file, at, HEAP_HEAD);
    const Span heap = part(file, at, number(head, 8, 8));
    if (!head.bytes || memcmp(head.bytes, "GCOL\1", 5) || wanted == 0) return none;
    for (uint64_t object = HEAP_HEAD; object + OBJECT_HEAD <= heap.size;) {
        const uint64_t found = number(heap, object, 2), size = number(heap, object + 8, 8);
        if (found == wanted) return part(heap, object + OBJECT_HEAD, size);
        if (found == 0 || size > heap.size) break;      /* the rest is free */
        object += OBJECT_HEAD + padded(size, true);
    }
    return none;
}

bool cornu__hdf5_find_text(const unsigned char *bytes, size_t size, uint64_t header,
                           const char *attribute, int64_t i, const char **text, size_t *length)
{
    const Span file = { bytes, size }, data = find_attribute(file, header, attribute);
    const Span at = part(data, (uint64_t)i * TEXT, TEXT);
    const Span found = part(find_object(file, number(at, 4, 8), number(at, 12, 4)), 0,
                            number(at, 0, 4));
    *text = found.bytes ? (const char *)found.bytes : "";
    *length = (size_t)found.size;
    return found.bytes || (at.bytes && number(at, 0, 4) == 0);
}
