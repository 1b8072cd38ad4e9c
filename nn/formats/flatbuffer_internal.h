/*
 * Writing and reading FlatBuffers: tables of numbered fields, vectors and strings, which refer to
 * each other by offsets. Numbers are little-endian in the file and on the host.
 * Source: flatbuffers.dev/internals, "FlatBuffer Internals".
 */
#ifndef CORNU_NN_FLATBUFFER_INTERNAL_H
#define CORNU_NN_FLATBUFFER_INTERNAL_H

#include "../../device/files/protobuf_internal.h"

/* ---- Writing ----
 *
 * Offsets point forward, so what refers comes first: a table is put with gaps for its offsets, and
 * cornu__flat_point fills a gap when what it refers to has been put, or never, where that is
 * absent. Places are bytes from the beginning of the file. */

/* A field of a table: `size` bytes of `bits`; `offset`: a gap, whose place is set. A field of size
 * 0 and without an offset is absent. */
typedef struct {
    int      slot, size;
    uint64_t bits;
    bool     offset;
    size_t   place;
} CornuFlatField;

/* Begins a file with the identifier, of four letters; returns the gap of the root. */
size_t cornu__flat_begin(CornuMessage *to, const char *identifier);

/* Returns the place of the table, its fields in ascending order of their slots, fewer than 64. */
size_t cornu__flat_table(CornuMessage *to, CornuFlatField *fields, int count);

void   cornu__flat_point(CornuMessage *to, size_t gap, size_t place);

/* A vector whose first element lies at a multiple of `align`, a power of 2. */
size_t cornu__flat_vector(CornuMessage *to, const void *elements, size_t count, size_t size,
                          size_t align);
size_t cornu__flat_text(CornuMessage *to, const char *text);

/* A vector of offsets; the gap of element i is the result + 4 + 4 i. */
size_t cornu__flat_offsets(CornuMessage *to, size_t count);

/* ---- Reading: bytes from untrusted files ----
 *
 * Nothing is allocated. Every place is checked before it is read; damage sets `failed`, and gives
 * absent fields and empty vectors. Tables may be shared, so what is made of them must be bounded by
 * the reader. */
typedef struct {
    const unsigned char *bytes;
    size_t               size;
    bool                 failed;
} CornuFlat;

/* A table; `at` 0 is an absent one. */
typedef struct { size_t at, size, fields, field_bytes; } CornuFlatTable;

/* Elements in the file, maybe not aligned; bytes NULL if there are none. */
typedef struct {
    const unsigned char *bytes;
    size_t               count, at;   /* `at`: the place of the first one */
    bool                 given;
} CornuFlatVector;

/* Whether the bytes begin as a file with this identifier; `root` is its root. */
bool cornu__flat_open(CornuFlat *from, const char *identifier, CornuFlatTable *root);

/* The bits of a field of `size` bytes, 1 to 8, not sign-extended; `usual` if it is absent. */
uint64_t cornu__flat_bits(CornuFlat *from, const CornuFlatTable *table, int slot, size_t size,
                          uint64_t usual);

static inline int32_t cornu__flat_i32(CornuFlat *from, const CornuFlatTable *table, int slot,
                                      int32_t usual)
{
    return (int32_t)(uint32_t)cornu__flat_bits(from, table, slot, 4, (uint32_t)usual);
}

CornuFlatTable  cornu__flat_table_at(CornuFlat *from, const CornuFlatTable *table, int slot);
CornuFlatVector cornu__flat_vector_at(CornuFlat *from, const CornuFlatTable *table, int slot,
                                      size_t element);

/* Element i of a vector of tables, whose elements are 4 bytes. */
CornuFlatTable cornu__flat_element(CornuFlat *from, const CornuFlatVector *tables, size_t i);

#endif
