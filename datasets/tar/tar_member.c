/* Headers of tar archives; tar.h has the sources. */
#include <stdio.h>
#include <string.h>

#include "../../device/status_internal.h"
#include "tar_internal.h"

/* Fields of a header, by byte and length. */
enum { NAME = 0, NAME_SIZE = 100, SIZE = 124, SIZE_SIZE = 12, SUM = 148, SUM_SIZE = 8, TYPE = 156,
       MAGIC = 257, PREFIX = 345, PREFIX_SIZE = 155 };

/* What extends the next header: names and sizes beyond its fields. */
typedef struct {
    CornuTarMember *member;
    bool            has_name, has_size;
    int64_t         size;
} Extended;

/* An octal number after blanks, ended by a blank or NUL or the field's end; or, after a first byte
 * with its high bit, a big-endian one of the others. -1 if it is neither, or negative. */
static int64_t read_number(const unsigned char *field, int size)
{
    int64_t value = 0;
    int     i = 0;
    if (field[0] == 0x80) {
        for (i = 1; i < size; i++) {
            if (value > INT64_MAX >> 8) return -1;
            value = value << 8 | field[i];
        }
        return value;
    }
    while (i < size && field[i] == ' ') i++;
    for (; i < size && field[i] >= '0' && field[i] <= '7'; i++)
        value = value << 3 | (field[i] - '0');
    return i < size && field[i] && field[i] != ' ' ? -1 : value;
}

/* The sum of all bytes, that of the field for it as blanks; signed ones in some old archives. */
static bool has_sum(const unsigned char *header)
{
    const int64_t stated = read_number(header + SUM, SUM_SIZE);
    int64_t       sum = 0, signed_sum = 0;
    for (int i = 0; i < CORNU__TAR_BLOCK; i++) {
        const unsigned char byte = i >= SUM && i < SUM + SUM_SIZE ? ' ' : header[i];
        sum += byte;
        signed_sum += (signed char)byte;
    }
    return stated == sum || stated == signed_sum;
}

static bool is_zero(const unsigned char *header)
{
    for (int i = 0; i < CORNU__TAR_BLOCK; i++)
        if (header[i]) return false;
    return true;
}

static CornuStatus set_name(CornuTarMember *member, const void *name, size_t length)
{
    if (length >= CORNU__TAR_NAME)
        return cornu__fail(CORNU_ERR_FORMAT, "a name of %zu bytes, expected fewer than %d", length,
                           CORNU__TAR_NAME);
    memcpy(member->name, name, length);
    member->name[length] = '\0';
    return CORNU_OK;
}

/* The name of a header by itself; POSIX' has a prefix, GNU's has other fields there. */
static void read_name(const unsigned char *header, CornuTarMember *member)
{
    char prefix[PREFIX_SIZE + 1] = "", name[NAME_SIZE + 1] = "";
    memcpy(name, header + NAME, NAME_SIZE);
    if (!memcmp(header + MAGIC, "ustar", 6)) memcpy(prefix, header + PREFIX, PREFIX_SIZE);
    snprintf(member->name, sizeof member->name, "%s%s%s", prefix, *prefix ? "/" : "", name);
}

/* "LENGTH KEY=VALUE\n", one after the other; the length is that of all of it. */
static CornuStatus read_pax(const unsigned char *bytes, size_t size, Extended *extended)
{
    for (size_t at = 0; at < size;) {
        const char *record = (const char *)bytes + at;
        size_t      length = 0, digits = 0;
        for (; at + digits < size && record[digits] >= '0' && record[digits] <= '9'; digits++)
            if ((length = 10 * length + (size_t)(record[digits] - '0')) > size) break;
        if (!digits || length > size - at || length < digits + 3 || record[digits] != ' ' ||
            record[length - 1] != '\n')
            return cornu__fail(CORNU_ERR_FORMAT, "an extended header whose record at its byte %zu "
                               "is damaged", at);
        const char  *key = record + digits + 1;
        const size_t rest = length - digits - 2;          /* without the newline */
        const char  *equals = memchr(key, '=', rest);
        if (!equals) return cornu__fail(CORNU_ERR_FORMAT, "an extended header without a value");
        const size_t key_size = (size_t)(equals - key), value_size = rest - key_size - 1;
        if (key_size > 11 && !memcmp(key, "GNU.sparse.", 11))
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "a sparse file");
        if (key_size == 4 && !memcmp(key, "path", 4)) {
            CORNU__TRY(set_name(extended->member, equals + 1, value_size));
            extended->has_name = true;
        } else if (key_size == 4 && !memcmp(key, "size", 4)) {
            extended->size = 0;
            for (size_t i = 0; i < value_size; i++) {
                const char digit = equals[1 + i];
                if (digit < '0' || digit > '9' || extended->size > INT64_MAX / 16)
                    return cornu__fail(CORNU_ERR_FORMAT, "an extended header with a size of "
                                       "\"%.*s\"", value_size < 30 ? (int)value_size : 30,
                                       equals + 1);
                extended->size = 10 * extended->size + (digit - '0');
            }
            extended->has_size = value_size > 0;
        }
        at += length;
    }
    return CORNU_OK;
}

/* The bytes of a header that extends the next one. */
static CornuStatus read_extension(CornuReader *reader, int file, char type, int64_t at,
                                  int64_t size, Extended *extended)
{
    enum { MOST = 1 << 20 };
    const unsigned char *bytes;
    if (type == 'K' || type == 'g') return CORNU_OK;   /* of a link, of all files */
    if (size > MOST)
        return cornu__fail(CORNU_ERR_FORMAT, "an extended header of %lld bytes, expected at most "
                           "%d", (long long)size, MOST);
    CORNU__TRY(cornu__reader_get(reader, file, at, (size_t)size, &bytes));
    if (type == 'x') return read_pax(bytes, (size_t)size, extended);
    const unsigned char *nul = memchr(bytes, '\0', (size_t)size);
    extended->has_name = true;
    return set_name(extended->member, bytes, nul ? (size_t)(nul - bytes) : (size_t)size);
}

/* One header: *size is that of the bytes after it, which the file has. */
static CornuStatus read_header(CornuReader *reader, int file, int64_t at,
                               const unsigned char **header, int64_t *size)
{
    const int64_t left = cornu__inputs_size(reader->inputs, file) - at;
    if (left < CORNU__TAR_BLOCK)
        return cornu__fail(CORNU_ERR_FORMAT, "%lld bytes are left, a header has %d",
                           (long long)left, CORNU__TAR_BLOCK);
    CORNU__TRY(cornu__reader_get(reader, file, at, CORNU__TAR_BLOCK, header));
    if (is_zero(*header)) return CORNU_OK;
    if (!has_sum(*header))
        return cornu__fail(CORNU_ERR_FORMAT, "wrong checksum of the header%s",
                           at ? "" : ": not a tar archive");
    *size = read_number(*header + SIZE, SIZE_SIZE);
    if (*size >= 0) return CORNU_OK;
    return cornu__fail(CORNU_ERR_FORMAT, "its size is not a number, or negative");
}

static CornuStatus check_size(CornuReader *reader, int file, int64_t at, int64_t size)
{
    const int64_t left = cornu__inputs_size(reader->inputs, file) - at - CORNU__TAR_BLOCK;
    if (size <= left) return CORNU_OK;
    return cornu__fail(CORNU_ERR_FORMAT, "has %lld bytes, the file has %lld more", (long long)size,
                       (long long)left);
}

/* The byte after `size` bytes from `at` on, filled up to whole blocks. */
static int64_t end_of(int64_t at, int64_t size)
{
    return at + (size / CORNU__TAR_BLOCK + (size % CORNU__TAR_BLOCK != 0)) * CORNU__TAR_BLOCK;
}

CornuStatus cornu__tar_member(CornuReader *reader, int file, int64_t at, CornuTarMember *member,
                              bool *end)
{
    Extended             extended = { .member = member };
    const unsigned char *header;
    *end = at == cornu__inputs_size(reader->inputs, file) && at > 0;
    while (!*end) {
        int64_t size = 0;
        CORNU__TRY(read_header(reader, file, at, &header, &size));
        *end = is_zero(header);
        if (*end) break;
        const char type = (char)header[TYPE];
        const bool extends = type && strchr("LKxg", type);
        if (!extends && !extended.has_name) read_name(header, member);
        if (!extends && extended.has_size) size = extended.size;
        if (type == 'S') return cornu__fail(CORNU_ERR_UNSUPPORTED, "a sparse file");
        /* Links and devices have no bytes, whatever their size is. */
        if (type && strchr("123456", type)) size = 0;
        CORNU__TRY(check_size(reader, file, at, size));
        if (!extends) {
            const size_t length = strlen(member->name);
            member->header = at;
            member->at = at + CORNU__TAR_BLOCK;
            member->size = size;
            member->next = end_of(member->at, size);
            member->is_file = (!type || type == '0' || type == '7') &&
                              !(length && member->name[length - 1] == '/');
            return CORNU_OK;
        }
        CORNU__TRY(read_extension(reader, file, type, at + CORNU__TAR_BLOCK, size, &extended));
        at = end_of(at + CORNU__TAR_BLOCK, size);
    }
    return CORNU_OK;
}
