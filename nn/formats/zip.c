#include "zip_internal.h"

#include "../../device/memory_internal.h"
#include "file_internal.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Records are fields of 2 and 4 bytes, little-endian, behind a signature of 4: the local header in
 * front of a member, its entry in the directory, and the end of the directory. */
enum { LOCAL = 0x04034B50, ENTRY = 0x02014B50, END = 0x06054B50 };
enum { LOCAL_SIZE = 30, ENTRY_SIZE = 46, END_SIZE = 22, MAX_COMMENT = 0xFFFF };
enum { STORED = 0, DEFLATED = 8, VERSION = 20, ENCRYPTED = 1, UTF8 = 0x800 };
enum { MAX_MEMBERS = 0xFFFF, MAX_NAME = 0xFFFF };     /* counted in two bytes */
enum { DEFLATED_AT_BEST = 1032 };     /* bytes in one */
enum { DATE_1980 = 1 << 5 | 1 };      /* January 1 */
#define LIMIT UINT32_C(0xFFFFFFFF)    /* where ZIP64 begins */

/* ---- Writing ---- */

static void put(FILE *file, int bytes, uint32_t value)
{
    for (int i = 0; i < bytes; i++) fputc((int)(value >> (8 * i) & 0xFF), file);
}

static uint32_t checksum(const void *bytes, size_t size)
{
    return (uint32_t)crc32_z(crc32_z(0, NULL, 0), bytes, size);
}

/* What local header and entry have in common. */
static void put_description(FILE *file, const CornuZipMember *member)
{
    put(file, 2, VERSION);
    put(file, 2, UTF8);
    put(file, 2, STORED);
    put(file, 2, 0);
    put(file, 2, DATE_1980);
    put(file, 4, checksum(member->bytes, member->size));
    put(file, 4, (uint32_t)member->size);
    put(file, 4, (uint32_t)member->size);
    put(file, 2, (uint32_t)strlen(member->name));
    put(file, 2, 0);                              /* no extra field */
}

static CornuStatus check_members(const char *path, const CornuZipMember *members, int count)
{
    uint64_t all = END_SIZE;
    for (int i = 0; i < count; i++)
        if (strlen(members[i].name) > MAX_NAME)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: the name \"%.40s...\" of member %d has %zu "
                               "bytes, a zip archive has room for %d", path, members[i].name, i,
                               strlen(members[i].name), MAX_NAME);
    for (int i = 0; i < count; i++)
        all += LOCAL_SIZE + ENTRY_SIZE + 2 * strlen(members[i].name) + members[i].size;
    if (all < LIMIT && count < MAX_MEMBERS) return CORNU_OK;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: %d members of %llu bytes together are too much "
                       "for a zip archive of less than 4 GiB; .safetensors has no such limit",
                       path, count, (unsigned long long)all);
}

CornuStatus cornu__zip_write(const char *path, const CornuZipMember *members, int count)
{
    CornuNewFile file;
    CORNU__TRY(check_members(path, members, count));
    CORNU__TRY(cornu__file_create(&file, path));
    uint32_t at = 0, size = 0;
    for (int i = 0; i < count; i++) {
        put(file.stream, 4, LOCAL);
        put_description(file.stream, &members[i]);
        fputs(members[i].name, file.stream);
        fwrite(members[i].bytes, 1, members[i].size, file.stream);
    }
    for (int i = 0; i < count; i++) {
        const uint32_t name = (uint32_t)strlen(members[i].name);
        put(file.stream, 4, ENTRY);
        put(file.stream, 2, VERSION);             /* made by; the system is 0 */
        put_description(file.stream, &members[i]);
        put(file.stream, 2, 0);                   /* no comment, */
        put(file.stream, 4, 0);                   /* the first part, no attributes */
        put(file.stream, 4, 0);
        put(file.stream, 4, at);
        fputs(members[i].name, file.stream);
        at += LOCAL_SIZE + name + (uint32_t)members[i].size;
        size += ENTRY_SIZE + name;
    }
    put(file.stream, 4, END);
    put(file.stream, 4, 0);                       /* the only part */
    put(file.stream, 2, (uint32_t)count);
    put(file.stream, 2, (uint32_t)count);
    put(file.stream, 4, size);
    put(file.stream, 4, at);
    put(file.stream, 2, 0);
    return cornu__file_commit(&file);
}

/* ---- Reading ---- */

typedef struct {
    char    *name;
    uint32_t method, sum, stored, size;
    size_t   at;                                  /* of its bytes in the file */
} Member;

struct CornuZip {
    CornuFileBytes file;
    Member      *members;
    int          count;
    size_t       stored;                          /* bytes of all members so far */
};

static uint32_t get(const unsigned char *at, int bytes)
{
    return (uint32_t)cornu__little_endian(at, bytes);
}

/* The end of the directory: the last place where it could be, with the comment behind it. */
static const unsigned char *find_end(const CornuFileBytes *map)
{
    for (size_t back = END_SIZE; back <= map->size && back <= END_SIZE + MAX_COMMENT; back++) {
        const unsigned char *at = map->bytes + map->size - back;
        if (get(at, 4) == END && get(at + 20, 2) == back - END_SIZE) return at;
    }
    return NULL;
}

static CornuStatus check_member(const Member *member, uint32_t flags)
{
    if (flags & ENCRYPTED) return cornu__fail(CORNU_ERR_UNSUPPORTED, "is encrypted");
    if (member->method != STORED && member->method != DEFLATED)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "is packed by method %u, expected 0 (stored) or "
                           "8 (deflated)", member->method);
    if (member->stored == LIMIT || member->size == LIMIT)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "has 4 GiB or more (ZIP64)");
    if (member->method == STORED && member->stored != member->size)
        return cornu__fail(CORNU_ERR_FORMAT, "has %u bytes, %u are stored", member->size,
                           member->stored);
    if (member->size / DEFLATED_AT_BEST > member->stored)
        return cornu__fail(CORNU_ERR_FORMAT, "declares %u bytes, but only %u are stored",
                           member->size, member->stored);
    return CORNU_OK;
}

/* The bytes follow on the local header, whose name and extra field have lengths of their own. */
static CornuStatus place(CornuZip *zip, Member *member, size_t local, size_t directory)
{
    const unsigned char *header = zip->file.bytes + local;
    if (local > directory || directory - local < LOCAL_SIZE || get(header, 4) != LOCAL)
        return cornu__fail(CORNU_ERR_FORMAT, "has no header at byte %zu", local);
    member->at = local + LOCAL_SIZE + get(header + 26, 2) + get(header + 28, 2);
    if (member->at > directory || directory - member->at < member->stored)
        return cornu__fail(CORNU_ERR_FORMAT, "has %u bytes at byte %zu, the directory begins at "
                           "byte %zu", member->stored, member->at, directory);
    /* Else a small file could hold the same bytes any number of times. */
    zip->stored += LOCAL_SIZE + member->stored;
    if (zip->stored > directory)
        return cornu__fail(CORNU_ERR_FORMAT, "lies where others do: members so far have %zu bytes, "
                           "the directory begins at byte %zu", zip->stored, directory);
    return CORNU_OK;
}

static CornuStatus read_entry(CornuZip *zip, const unsigned char *entry, size_t directory)
{
    const size_t length = get(entry + 28, 2);
    Member      *member = &zip->members[zip->count];
    *member = (Member){ .method = get(entry + 10, 2), .sum = get(entry + 16, 4),
                        .stored = get(entry + 20, 4), .size = get(entry + 24, 4),
                        .name = cornu__allocate(length + 1, 1) };
    if (!member->name) return CORNU_ERR_MEMORY;
    zip->count++;
    memcpy(member->name, entry + ENTRY_SIZE, length);
    CornuStatus status = check_member(member, get(entry + 8, 2));
    if (status == CORNU_OK) status = place(zip, member, get(entry + 42, 4), directory);
    char what[120];
    snprintf(what, sizeof what, "member \"%.80s\"", member->name);
    return cornu__fail_prefix(status, what);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static CornuStatus check_names(const CornuZip *zip)
{
    CornuStatus status = CORNU_OK;
    char      **names = cornu__allocate((size_t)zip->count, sizeof *names);
    if (!names) return CORNU_ERR_MEMORY;
    for (int i = 0; i < zip->count; i++) names[i] = zip->members[i].name;
    qsort(names, (size_t)zip->count, sizeof *names, by_text);
    for (int i = 1; i < zip->count && status == CORNU_OK; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            status = cornu__fail(CORNU_ERR_FORMAT, "member \"%.80s\": is there twice", names[i]);
    cornu__release(names);
    return status;
}

static CornuStatus read_directory(CornuZip *zip)
{
    const unsigned char *end = find_end(&zip->file);
    if (!end) return cornu__fail(CORNU_ERR_FORMAT, "is no whole zip archive: its end is missing");
    const uint32_t count = get(end + 10, 2), size = get(end + 12, 4), start = get(end + 16, 4);
    const size_t   before = (size_t)(end - zip->file.bytes);
    if (get(end + 4, 4) != 0 || get(end + 8, 2) != count)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "is one of several parts of an archive");
    if (start > before || before - start < size || count > size / ENTRY_SIZE)
        return cornu__fail(CORNU_ERR_FORMAT, "has %u entries in %u bytes at byte %u, its end is at "
                           "byte %zu", count, size, start, before);
    zip->members = cornu__allocate(count, sizeof *zip->members);
    if (!zip->members) return CORNU_ERR_MEMORY;
    size_t at = start;
    for (uint32_t i = 0; i < count; i++) {
        const unsigned char *entry = zip->file.bytes + at;
        const size_t rest = before - at;
        const size_t length = rest < ENTRY_SIZE ? 0 : ENTRY_SIZE + (size_t)get(entry + 28, 2) +
                                                      get(entry + 30, 2) + get(entry + 32, 2);
        if (length == 0 || length > rest || get(entry, 4) != ENTRY)
            return cornu__fail(CORNU_ERR_FORMAT, "has no entry %u at byte %zu", i, at);
        CORNU__TRY(read_entry(zip, entry, start));
        at += length;
    }
    return check_names(zip);
}

CornuZip *cornu__zip_open(const char *path)
{
    if (cornu_error_pending()) return NULL;
    CornuZip *zip = cornu__allocate(1, sizeof *zip);
    if (!zip) return cornu__null();
    CornuStatus status = cornu__file_read(&zip->file, path);
    if (status == CORNU_OK) status = read_directory(zip);
    if (status == CORNU_OK) return zip;
    cornu__fail_prefix(status, path);
    cornu__zip_close(zip);
    return cornu__null();
}

void cornu__zip_close(CornuZip *zip)
{
    if (!zip) return;
    for (int i = 0; i < zip->count; i++) cornu__release(zip->members[i].name);
    cornu__release(zip->members);
    cornu__file_release(&zip->file);
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

static bool unpack(const Member *member, const unsigned char *from, unsigned char *to)
{
    /* zlib does not write to what it reads. */
    z_stream stream = { .next_in = (Bytef *)from, .avail_in = member->stored,
                        .next_out = to, .avail_out = member->size };
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return false;
    const int  result = inflate(&stream, Z_FINISH);
    const bool whole = result == Z_STREAM_END && stream.avail_out == 0;
    inflateEnd(&stream);
    return whole;
}

CornuStatus cornu__zip_read(const CornuZip *zip, int i, unsigned char **bytes, size_t *size)
{
    const Member        *member = &zip->members[i];
    const unsigned char *from = zip->file.bytes + member->at;
    unsigned char       *to = cornu__allocate((size_t)member->size + 1, 1);
    if (!to) return CORNU_ERR_MEMORY;
    bool whole = true;
    if (member->method == STORED) memcpy(to, from, member->size);
    else whole = unpack(member, from, to);
    if (whole && checksum(to, member->size) == member->sum) {
        *bytes = to;
        *size = member->size;
        return CORNU_OK;
    }
    cornu__release(to);
    return cornu__fail(CORNU_ERR_FORMAT, "member \"%.80s\": its %u bytes are damaged: %s",
                       member->name, member->size, whole ? "the checksum differs"
                                                         : "they cannot be unpacked");
}
