/*
 * Writing and reading protobuf messages: fields, each a key and a number, or a key, a length and
 * bytes.
 * Numbers are little-endian in the message and on the host.
 * Source: protobuf.dev/programming-guides/encoding.
 */
#ifndef CORNU_DEVICE_PROTOBUF_INTERNAL_H
#define CORNU_DEVICE_PROTOBUF_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Start from all zeros. Out of memory it fails, and what is put after that is dropped. Setting size
 * to 0 starts a new message in the same memory, which the owner releases. */
typedef struct {
    unsigned char *bytes;
    size_t         size, space;
    bool           failed;
} CornuMessage;

typedef enum {
    CORNU_PROTOBUF_VARINT = 0, CORNU_PROTOBUF_FIXED64 = 1, CORNU_PROTOBUF_BYTES = 2,
    CORNU_PROTOBUF_FIXED32 = 5
} CornuProtobufKind;

/* Raw bytes. */
void cornu__put(CornuMessage *to, const void *bytes, size_t size);

/* A number by itself, as in a packed list. */
void cornu__put_varint(CornuMessage *to, uint64_t value);

/* The key of a field, before its value. */
void cornu__put_key(CornuMessage *to, int field, CornuProtobufKind kind);

void cornu__put_number(CornuMessage *to, int field, int64_t value);
void cornu__put_double(CornuMessage *to, int field, double value);
void cornu__put_float(CornuMessage *to, int field, float value);
void cornu__put_bytes(CornuMessage *to, int field, const void *bytes, size_t size);
void cornu__put_text(CornuMessage *to, int field, const char *text);

/* A submessage: the fields put between the two calls; end takes what begin returned. */
size_t cornu__begin_field(CornuMessage *to, int field);
void   cornu__end_field(CornuMessage *to, size_t begin);

/* ---- Reading: bytes from untrusted files ---- */

/* What is left of a message. It points into the caller's bytes. */
typedef struct {
    const unsigned char *at, *end;
    bool                 failed;   /* the bytes are not a message: a length or number runs over */
} CornuFields;

/* A field: its number and, by its kind, a number in its 64 bits or the bytes of a string or
 * submessage. */
typedef struct {
    uint32_t             field;
    CornuProtobufKind    kind;
    uint64_t             bits;
    const unsigned char *bytes;
    size_t               size;
} CornuProtobufField;

static inline CornuFields cornu__fields(const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    return (CornuFields){ .at = at, .end = size ? at + size : at };
}

/* Reads the next field; false at the end, or if the bytes are damaged. Nothing is allocated, and
 * submessages are left to the caller. */
bool cornu__next_field(CornuFields *from, CornuProtobufField *field);

/* Reads the next number of a packed list, which has this kind. */
bool cornu__next_number(CornuFields *from, CornuProtobufKind kind, uint64_t *bits);

/* The numbers of a field that may be packed: how many, of the kind that they have alone. -1 if the
 * field is damaged or has another kind. */
int64_t cornu__count_numbers(const CornuProtobufField *field, CornuProtobufKind kind);

/* The value of a fixed32 or fixed64 field. */
float  cornu__float_of(uint64_t bits);
double cornu__double_of(uint64_t bits);

#endif
