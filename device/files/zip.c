#include "zip_internal.h"

#include "../memory_internal.h"
#include "file_internal.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Records are little-endian fields after a signature of 4 bytes: the local header in front of a
 * member, its entry in the central directory, and the end of the directory. */
enum { LOCAL = 0x04034B50, ENTRY = 0x02014B50, END = 0x06054B50 };
enum { LOCAL_SIZE = 30, ENTRY_SIZE = 46, END_SIZE = 22, MAX_COMMENT = 0xFFFF };
enum { STORED = 0, DEFLATED = 8, VERSION = 20, ENCRYPTED = 1, UTF8 = 0x800 };
enum { MAX_NAME = 0xFFFF };
enum { MAX_DEFLATE_RATIO = 1032 };
enum { DATE_1980 = 1 << 5 | 1 };      /* January 1 */

/* ZIP64: a number too large for its field is written as all ones there, and in 8 bytes in the
 * extra field of the member or in a second record of the directory's end, which a locator finds. */
enum { END64 = 0x06064B50, LOCATOR = 0x07064B50 };
enum { END64_SIZE = 56, LOCATOR_SIZE = 20, EXTRA64 = 1, VERSION64 = 45 };
#define ALL_ONES16 UINT64_C(0xFFFF)
#define ALL_ONES32 UINT64_C(0xFFFFFFFF)

/* ---- Writing ---- */

static void put(FILE *file, int bytes, uint64_t value)
{
    for (int i = 0; i < bytes; i++) fputc((int)(value >> (8 * i) & 0xFF), file);
}

/* A number of an ordinary field, all ones if it does not fit. */
static void put_narrow(FILE *file, int bytes, uint64_t value)
{
    const uint64_t all_ones = bytes == 2 ? ALL_ONES16 : ALL_ONES32;
    put(file, bytes, value < all_ones ? value : all_ones);
}

static uint32_t checksum(const void *bytes, size_t size)
{
    return (uint32_t)crc32_z(crc32_z(0, NULL, 0), bytes, size);
}

/* Bytes of a member's ZIP64 extra field; none if its size and its place are narrow. */
static size_t extra_size(const CornuZipMember *member, uint64_t at)
{
    const size_t numbers = (member->size >= ALL_ONES32 ? 2 : 0) + (at >= ALL_ONES32 ? 1 : 0);
    return numbers ? 4 + 8 * numbers : 0;
}

static int version_of(size_t extra) { return extra ? VERSION64 : VERSION; }

/* The fields that local header and entry share. */
static void put_description(FILE *file, const CornuZipMember *member, uint32_t sum, size_t extra)
{
    put(file, 2, (uint64_t)version_of(extra));
    put(file, 2, UTF8);
    put(file, 2, STORED);
    put(file, 2, 0);
    put(file, 2, DATE_1980);
    put(file, 4, sum);
    put_narrow(file, 4, member->size);
    put_narrow(file, 4, member->size);
    put(file, 2, strlen(member->name));
    put(file, 2, extra);
}

static void put_extra(FILE *file, const CornuZipMember *member, uint64_t at)
{
    const size_t size = extra_size(member, at);
    if (size == 0) return;
    put(file, 2, EXTRA64);
    put(file, 2, size - 4);
    if (member->size >= ALL_ONES32) {
        put(file, 8, member->size);
        put(file, 8, member->size);
    }
    if (at >= ALL_ONES32) put(file, 8, at);
}

/* A local header and the bytes; returns where the next one begins. */
static uint64_t put_member(FILE *file, const CornuZipMember *member, uint32_t sum, uint64_t at)
{
    const size_t extra = extra_size(member, 0), name = strlen(member->name);
    put(file, 4, LOCAL);
    put_description(file, member, sum, extra);
    fwrite(member->name, 1, name, file);
    put_extra(file, member, 0);
    fwrite(member->bytes, 1, member->size, file);
    return at + LOCAL_SIZE + name + extra + member->size;
}

/* Returns the size of the entry. */
static uint64_t put_entry(FILE *file, const CornuZipMember *member, uint32_t sum, uint64_t at)
{
    const size_t extra = extra_size(member, at), name = strlen(member->name);
    put(file, 4, ENTRY);
    put(file, 2, (uint64_t)version_of(extra));    /* made by; the system is 0 */
    put_description(file, member, sum, extra);
    put(file, 2, 0);                              /* no comment, */
    put(file, 4, 0);                              /* the first part, no attributes */
    put(file, 4, 0);
    put_narrow(file, 4, at);
    fwrite(member->name, 1, name, file);
    put_extra(file, member, at);
    return ENTRY_SIZE + name + extra;
}

static void put_end(FILE *file, uint64_t count, uint64_t start, uint64_t size)
{
    if (count >= ALL_ONES16 || start >= ALL_ONES32 || size >= ALL_ONES32) {
        put(file, 4, END64);
        put(file, 8, END64_SIZE - 12);            /* what follows these 8 bytes */
        put(file, 2, VERSION64);
        put(file, 2, VERSION64);
        put(file, 8, 0);                          /* the only part */
        put(file, 8, count);
        put(file, 8, count);
        put(file, 8, size);
        put(file, 8, start);
        put(file, 4, LOCATOR);
        put(file, 4, 0);
        put(file, 8, start + size);
        put(file, 4, 1);                          /* part in all */
    }
    put(file, 4, END);
    put(file, 4, 0);                              /* the only part */
    put_narrow(file, 2, count);
    put_narrow(file, 2, count);
    put_narrow(file, 4, size);
    put_narrow(file, 4, start);
    put(file, 2, 0);
}

/* What the entries say of the members, which are written first. */
typedef struct {
    uint64_t at;
    uint32_t sum;
} Written;

static CornuStatus write_archive(const char *path, const CornuZipMember *members, int count,
                                 Written *written)
{
    CornuNewFile file;
    CORNU__TRY(cornu__file_create(&file, path));
    uint64_t start = 0, size = 0;
    for (int i = 0; i < count; i++) {
        written[i] = (Written){ start, checksum(members[i].bytes, members[i].size) };
        start = put_member(file.stream, &members[i], written[i].sum, start);
    }
    for (int i = 0; i < count; i++)
        size += put_entry(file.stream, &members[i], written[i].sum, written[i].at);
    put_end(file.stream, (uint64_t)count, start, size);
    return cornu__file_commit(&file);
}

CornuStatus cornu__zip_write(const char *path, const CornuZipMember *members, int count)
{
    for (int i = 0; i < count; i++)
        if (strlen(members[i].name) > MAX_NAME)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: the name \"%.40s...\" of member %d has %zu "
                               "bytes, a zip archive allows at most %d", path, members[i].name, i,
                               strlen(members[i].name), MAX_NAME);
    Written *written = cornu__allocate((size_t)count, sizeof *written);
    if (!written) return CORNU_ERR_MEMORY;
    const CornuStatus status = write_archive(path, members, count, written);
    cornu__release(written);
    return status;
}

/* ---- Reading ---- */

typedef struct {
    char    *name;
    unsigned method;
    uint32_t sum;
    size_t   stored, size;
    size_t   at;                                  /* of its bytes in the file */
} Member;

struct CornuZip {
    CornuInput input;
    Member    *members;
    int        count;
    size_t     stored;                            /* bytes of all members so far */
};

/* The central directory, as the archive's end describes it. */
typedef struct {
    size_t start, size, count;
    size_t end;                                   /* where the records of the end begin */
    bool   only;                                  /* the archive is not split into parts */
} Directory;

static uint32_t get(const unsigned char *at, int bytes)
{
    return (uint32_t)cornu__little_endian(at, bytes);
}

static size_t get_wide(const unsigned char *at) { return (size_t)cornu__little_endian(at, 8); }

/* Reads the record at byte `at`, which ends before byte `end`; *found: whether it is there. */
static CornuStatus read_record(const CornuZip *zip, uint32_t signature, size_t size, size_t at,
                               size_t end, unsigned char *to, bool *found)
{
    *found = at <= end && end - at >= size;
    if (!*found) return CORNU_OK;
    CORNU__TRY(cornu__input_read(&zip->input, (int64_t)at, to, size));
    *found = get(to, 4) == signature;
    return CORNU_OK;
}

/* The end of the directory: its last signature with a comment of the length that it states, in the
 * last `size` bytes of the file. */
static const unsigned char *find_end(const unsigned char *tail, size_t size)
{
    for (size_t back = END_SIZE; back <= size; back++) {
        const unsigned char *at = tail + size - back;
        if (get(at, 4) == END && get(at + 20, 2) == back - END_SIZE) return at;
    }
    return NULL;
}

/* The directory's place by the last bytes of the file, of which `tail` has `size`. */
static CornuStatus find_directory(const CornuZip *zip, const unsigned char *tail, size_t size,
                                  Directory *to)
{
    const unsigned char *end = find_end(tail, size);
    const size_t         before = (size_t)zip->input.size - size;
    if (!end)
        return cornu__fail(CORNU_ERR_FORMAT, "truncated, or not a zip archive: the end of its "
                           "directory is missing");
    *to = (Directory){ .start = get(end + 16, 4), .size = get(end + 12, 4),
                       .count = get(end + 10, 2), .end = before + (size_t)(end - tail) };
    to->only = get(end + 4, 4) == 0 && get(end + 8, 2) == to->count;
    const bool wide = to->start == ALL_ONES32 || to->size == ALL_ONES32 || to->count == ALL_ONES16;
    if (!wide || end - tail < LOCATOR_SIZE || get(end - LOCATOR_SIZE, 4) != LOCATOR)
        return CORNU_OK;

    const size_t  at = get_wide(end - LOCATOR_SIZE + 8);
    unsigned char record[END64_SIZE];
    bool          found;
    CORNU__TRY(read_record(zip, END64, END64_SIZE, at, to->end - LOCATOR_SIZE, record, &found));
    if (!found)
        return cornu__fail(CORNU_ERR_FORMAT, "the ZIP64 end of its directory is not at byte %zu",
                           at);
    *to = (Directory){ .start = get_wide(record + 48), .size = get_wide(record + 40),
                       .count = get_wide(record + 32), .end = at };
    to->only = get_wide(record + 16) == 0 && get_wide(record + 24) == to->count;
    return CORNU_OK;
}

static CornuStatus check_member(const Member *member, unsigned flags)
{
    if (flags & ENCRYPTED) return cornu__fail(CORNU_ERR_UNSUPPORTED, "is encrypted");
    if (member->method != STORED && member->method != DEFLATED)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "is compressed by method %u, expected 0 (stored) "
                           "or 8 (deflated)", member->method);
    if (member->method == STORED && member->stored != member->size)
        return cornu__fail(CORNU_ERR_FORMAT, "has %zu bytes, %zu are stored", member->size,
                           member->stored);
    if (member->size / MAX_DEFLATE_RATIO > member->stored)
        return cornu__fail(CORNU_ERR_FORMAT, "declares %zu bytes, more than the %zu that are "
                           "stored can expand to", member->size, member->stored);
    return CORNU_OK;
}

/* Reads from the ZIP64 extra field those of the three numbers that are all ones in the entry. */
static CornuStatus read_extra(const unsigned char *entry, Member *member, size_t *local)
{
    const unsigned char *at = entry + ENTRY_SIZE + get(entry + 28, 2);
    size_t               rest = get(entry + 30, 2), size = 0;
    while (rest >= 4 && get(at, 2) != EXTRA64 && get(at + 2, 2) <= rest - 4) {
        const size_t field = 4 + (size_t)get(at + 2, 2);
        at += field;
        rest -= field;
    }
    if (rest >= 4 && get(at, 2) == EXTRA64 && get(at + 2, 2) <= rest - 4) size = get(at + 2, 2);
    at += 4;
    size_t *const numbers[] = { &member->size, &member->stored, local };
    for (int i = 0; i < 3; i++) {
        if (*numbers[i] != ALL_ONES32) continue;
        if (size < 8)
            return cornu__fail(CORNU_ERR_FORMAT, "has no ZIP64 extra field with its %s",
                               i < 2 ? "size" : "place");
        *numbers[i] = get_wide(at);
        at += 8;
        size -= 8;
    }
    return CORNU_OK;
}

/* The bytes follow the local header, whose name and extra field have lengths of their own. */
static CornuStatus place(CornuZip *zip, Member *member, size_t local, size_t directory)
{
    unsigned char header[LOCAL_SIZE];
    bool          found;
    CORNU__TRY(read_record(zip, LOCAL, LOCAL_SIZE, local, directory, header, &found));
    if (!found) return cornu__fail(CORNU_ERR_FORMAT, "its header is not at byte %zu", local);
    member->at = local + LOCAL_SIZE + get(header + 26, 2) + get(header + 28, 2);
    if (member->at > directory || directory - member->at < member->stored)
        return cornu__fail(CORNU_ERR_FORMAT, "has %zu bytes at byte %zu, the directory begins at "
                           "byte %zu", member->stored, member->at, directory);
    /* Else a small file could hold the same bytes any number of times. */
    zip->stored += LOCAL_SIZE + member->stored;
    if (zip->stored > directory)
        return cornu__fail(CORNU_ERR_FORMAT, "overlaps others: members so far have %zu bytes, the "
                           "directory begins at byte %zu", zip->stored, directory);
    return CORNU_OK;
}

static CornuStatus read_entry(CornuZip *zip, const unsigned char *entry, size_t directory)
{
    const size_t length = get(entry + 28, 2);
    size_t       local = get(entry + 42, 4);
    Member      *member = &zip->members[zip->count];
    *member = (Member){ .method = get(entry + 10, 2), .sum = get(entry + 16, 4),
                        .stored = get(entry + 20, 4), .size = get(entry + 24, 4),
                        .name = cornu__allocate(length + 1, 1) };
    if (!member->name) return CORNU_ERR_MEMORY;
    zip->count++;
    memcpy(member->name, entry + ENTRY_SIZE, length);
    CornuStatus status = read_extra(entry, member, &local);
    if (status == CORNU_OK) status = check_member(member, get(entry + 8, 2));
    if (status == CORNU_OK) status = place(zip, member, local, directory);
    char what[120];
    snprintf(what, sizeof what, "member \"%.80s\"", member->name);
    return cornu__fail_prefix(status, what);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static CornuStatus check_names(const CornuZip *zip)
{
    CornuStatus status = CORNU_OK;
    char      **names = cornu__allocate((size_t)zip->count, sizeof *names);
    if (!names) return CORNU_ERR_MEMORY;
    for (int i = 0; i < zip->count; i++) names[i] = zip->members[i].name;
    qsort(names, (size_t)zip->count, sizeof *names, by_name);
    for (int i = 1; i < zip->count && status == CORNU_OK; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            status = cornu__fail(CORNU_ERR_FORMAT, "there are two members \"%.80s\"", names[i]);
    cornu__release(names);
    return status;
}

/* Reads the entries, the bytes of the directory and of what follows it. */
static CornuStatus read_entries(CornuZip *zip, const Directory *d, const unsigned char *bytes)
{
    const size_t whole = d->end - d->start;
    size_t       at = 0;
    for (size_t i = 0; i < d->count; i++) {
        const unsigned char *entry = bytes + at;
        const bool   found = whole - at >= ENTRY_SIZE && get(entry, 4) == ENTRY;
        const size_t length = !found ? 0 : ENTRY_SIZE + (size_t)get(entry + 28, 2) +
                                           get(entry + 30, 2) + get(entry + 32, 2);
        if (length == 0 || length > whole - at)
            return cornu__fail(CORNU_ERR_FORMAT, "entry %zu of its directory is not at byte %zu", i,
                               d->start + at);
        CORNU__TRY(read_entry(zip, entry, d->start));
        at += length;
    }
    return check_names(zip);
}

static CornuStatus read_directory(CornuZip *zip, const unsigned char *tail, size_t size)
{
    Directory d = { 0 };
    CORNU__TRY(find_directory(zip, tail, size, &d));
    if (!d.only) return cornu__fail(CORNU_ERR_UNSUPPORTED, "is one part of a split archive");
    if (d.start > d.end || d.end - d.start < d.size || d.count > d.size / ENTRY_SIZE ||
        d.count > INT_MAX)
        return cornu__fail(CORNU_ERR_FORMAT, "its directory has %zu entries in %zu bytes at byte "
                           "%zu, its end is at byte %zu", d.count, d.size, d.start, d.end);
    zip->members = cornu__allocate(d.count, sizeof *zip->members);
    unsigned char *bytes = zip->members ? cornu__allocate(d.end - d.start, 1) : NULL;
    CornuStatus    status = bytes ? cornu__input_read(&zip->input, (int64_t)d.start, bytes,
                                                      d.end - d.start)
                                  : CORNU_ERR_MEMORY;
    if (status == CORNU_OK) status = read_entries(zip, &d, bytes);
    cornu__release(bytes);
    return status;
}

/* The end of the directory is within the last bytes of the file. */
static CornuStatus read_tail(CornuZip *zip)
{
    enum { TAIL = LOCATOR_SIZE + END_SIZE + MAX_COMMENT };
    const size_t   size = zip->input.size < TAIL ? (size_t)zip->input.size : TAIL;
    unsigned char *tail = cornu__allocate(size, 1);
    if (!tail) return CORNU_ERR_MEMORY;
    CornuStatus status = cornu__input_read(&zip->input, zip->input.size - (int64_t)size, tail,
                                           size);
    if (status == CORNU_OK) status = read_directory(zip, tail, size);
    cornu__release(tail);
    return status;
}

CornuZip *cornu__zip_open_input(CornuInput *input, const char *name)
{
    CornuZip *zip = cornu__allocate(1, sizeof *zip);
    if (!zip) {
        cornu__input_close(input);
        return cornu__null();
    }
    zip->input = *input;
    *input = (CornuInput){ .descriptor = -1 };
    const CornuStatus status = read_tail(zip);
    if (status == CORNU_OK) return zip;
    cornu__fail_prefix(status, name);
    cornu__zip_close(zip);
    return cornu__null();
}

CornuZip *cornu__zip_open(const char *path)
{
    CornuInput input;
    if (cornu_error_pending()) return NULL;
    const CornuStatus status = cornu__input_open(&input, path);
    if (status == CORNU_OK) return cornu__zip_open_input(&input, path);
    cornu__fail_prefix(status, path);
    return cornu__null();
}

void cornu__zip_close(CornuZip *zip)
{
    if (!zip) return;
    for (int i = 0; i < zip->count; i++) cornu__release(zip->members[i].name);
    cornu__release(zip->members);
    cornu__input_close(&zip->input);
    cornu__release(zip);
}

int cornu__zip_count(const CornuZip *zip) { return zip->count; }

const char *cornu__zip_name(const CornuZip *zip, int i) { return zip->members[i].name; }

int cornu__zip_find(const CornuZip *zip, const char *name)
{
    for (int i = 0; i < zip->count; i++)
        if (strcmp(zip->members[i].name, name) == 0) return i;
    return -1;
}

size_t cornu__zip_size(const CornuZip *zip, int i) { return zip->members[i].size; }

CornuStatus cornu__zip_check_size(const CornuZip *zip, int i, size_t most)
{
    const Member *member = &zip->members[i];
    if (member->size <= most) return CORNU_OK;
    return cornu__fail(CORNU_ERR_FORMAT, "member \"%.80s\": has %zu bytes, expected at most %zu",
                       member->name, member->size, most);
}

static uInt zlib_size(size_t left) { return left < UINT_MAX ? (uInt)left : UINT_MAX; }

static bool inflate_all(const Member *member, const unsigned char *from, unsigned char *to)
{
    /* zlib does not write to its input. */
    z_stream stream = { .next_in = (Bytef *)from, .next_out = to };
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return false;
    size_t in = member->stored, out = member->size;
    int    result = Z_OK;
    while (result == Z_OK) {
        stream.avail_in = zlib_size(in);
        stream.avail_out = zlib_size(out);
        in -= stream.avail_in;
        out -= stream.avail_out;
        result = inflate(&stream, Z_NO_FLUSH);
        in += stream.avail_in;
        out += stream.avail_out;
    }
    inflateEnd(&stream);
    return result == Z_STREAM_END && out == 0;
}

size_t cornu__zip_place(const CornuZip *zip, int i, bool *stored)
{
    *stored = zip->members[i].method == STORED;
    return zip->members[i].at;
}

static CornuStatus read_member(const CornuZip *zip, const Member *member, unsigned char *to,
                               bool *whole)
{
    const int64_t at = (int64_t)member->at;
    *whole = true;
    if (member->method == STORED) return cornu__input_read(&zip->input, at, to, member->size);
    unsigned char *from = cornu__allocate(member->stored, 1);
    CornuStatus    status = from ? cornu__input_read(&zip->input, at, from, member->stored)
                                 : CORNU_ERR_MEMORY;
    if (status == CORNU_OK) *whole = inflate_all(member, from, to);
    cornu__release(from);
    return status;
}

CornuStatus cornu__zip_read(const CornuZip *zip, int i, unsigned char **bytes, size_t *size)
{
    const Member  *member = &zip->members[i];
    unsigned char *to = cornu__allocate(member->size + 1, 1);
    bool           whole = true;
    CornuStatus    status = to ? read_member(zip, member, to, &whole) : CORNU_ERR_MEMORY;
    if (status == CORNU_OK && whole && checksum(to, member->size) == member->sum) {
        *bytes = to;
        *size = member->size;
        return CORNU_OK;
    }
    cornu__release(to);
    if (status != CORNU_OK) return status;
    return cornu__fail(CORNU_ERR_FORMAT, "member \"%.80s\": its %zu bytes are damaged: %s",
                       member->name, member->size, whole ? "the checksum differs"
                                                         : "they cannot be inflated");
}
