#include "pairs.h"

#include <stdio.h>
#include <string.h>

#include "../../device/memory_internal.h"
#include "../../device/open.h"
#include "../../device/status_internal.h"
#include "../synthetic/synthetic.h"
#include "text_internal.h"

enum { MOST_BYTES = 1 << 29 };

/* A place in the file, for messages: columns are counted in characters. */
typedef struct {
    const char *name;
    int64_t     line, column;
} Place;

static CornuStatus fail_at(const Place *place, const char *what)
{
    return cornu__fail(CORNU_ERR_FORMAT, "%s: line %lld, column %lld: %s", place->name,
                       (long long)place->line, (long long)place->column, what);
}

/* Checks a line and finds its tab. The column of a failure is where the line breaks the rule. */
static CornuStatus read_line(char *line, const char *end, Place *place, char **tab)
{
    char *at = line;
    *tab = NULL;
    for (place->column = 1; at < end; place->column++) {
        uint32_t  code;
        const int length = cornu__utf8_read((const unsigned char *)at, (size_t)(end - at), &code);
        if (length == 0) return fail_at(place, "not valid UTF-8");
        if (code == '\t') {
            if (*tab) return fail_at(place, "a second tab, expected a pair, source TAB target");
            if (at == line) return fail_at(place, "the source is empty");
            *tab = at;
        } else if (code < 0x20 || code == 0x7F) {
            return fail_at(place, "a control character");
        }
        at += length;
    }
    if (!*tab) return fail_at(place, "no tab, expected a pair, source TAB target");
    return *tab + 1 == end ? fail_at(place, "the target is empty") : CORNU_OK;
}

static bool is_blank(const char *text) { return text[strspn(text, " ")] == '\0'; }

/* Lines end in LF, CR LF, or CR alone, as on old Macs. */
static bool ends_line(char c) { return c == '\n' || c == '\r'; }

static CornuStatus read_lines(CornuPairs *pairs, char *at, char *end, const char *name)
{
    Place place = { .name = name };
    for (; at < end; pairs->count++) {
        char *stop = at, *tab;
        while (stop < end && !ends_line(*stop)) stop++;
        char *next = stop + (stop < end);
        if (next < end && *stop == '\r' && *next == '\n') next++;
        place.line++;
        CORNU__TRY(read_line(at, stop, &place, &tab));
        *tab = *stop = '\0';
        place.column = 1;
        if (is_blank(at)) return fail_at(&place, "the source is empty");
        if (is_blank(tab + 1)) {
            for (const char *c = at; c <= tab; c++) place.column += (*c & 0xC0) != 0x80;
            return fail_at(&place, "the target is empty");
        }
        pairs->source[pairs->count] = at;
        pairs->target[pairs->count] = tab + 1;
        at = next;
    }
    return pairs->count ? CORNU_OK : cornu__fail(CORNU_ERR_FORMAT, "%s: has no pairs", name);
}

CornuPairs *cornu_pairs_parse(const char *bytes, size_t size, const char *name)
{
    static const char mark[] = "\xEF\xBB\xBF";
    if (cornu__refused()) return NULL;
    CornuPairs *pairs = cornu__allocate(1, sizeof *pairs);
    char       *texts = cornu__allocate(size + 1, 1);
    if (!pairs || !texts) {
        cornu__release(pairs);
        cornu__release(texts);
        return cornu__null();
    }
    if (size) memcpy(texts, bytes, size);
    pairs->texts = texts;
    char  *begin = size >= 3 && !memcmp(texts, mark, 3) ? texts + 3 : texts, *end = texts + size;
    size_t lines = 1;
    while (end > begin && ends_line(end[-1])) end--;
    for (const char *c = begin; c < end; c++) lines += ends_line(*c);
    pairs->source = cornu__allocate(lines, sizeof *pairs->source);
    pairs->target = cornu__allocate(lines, sizeof *pairs->target);
    if (pairs->source && pairs->target && !read_lines(pairs, begin, end, name)) return pairs;
    cornu_pairs_free(pairs);
    return cornu__null();
}

static CornuStatus read_file(FILE *file, const char *path, char **bytes, size_t *size)
{
    if (fseek(file, 0, SEEK_END)) return cornu__fail(CORNU_ERR_FILE, "%s cannot be read", path);
    const long length = ftell(file);
    if (length < 0 || length > MOST_BYTES)
        return cornu__fail(CORNU_ERR_FORMAT, "%s has %ld bytes, expected at most %d", path, length,
                           MOST_BYTES);
    rewind(file);
    *bytes = cornu__allocate((size_t)length + 1, 1);
    if (!*bytes) return CORNU_ERR_MEMORY;
    *size = fread(*bytes, 1, (size_t)length, file);
    return *size == (size_t)length ? CORNU_OK
                                   : cornu__fail(CORNU_ERR_FILE, "%s cannot be read", path);
}

CornuPairs *cornu_pairs_load(const char *path)
{
    FILE  *file;
    char  *bytes = NULL;
    size_t size = 0;
    if (cornu__refused()) return NULL;
    if (cornu__open_to_read(path, &file)) return cornu__null();
    const CornuStatus status = read_file(file, path, &bytes, &size);
    fclose(file);
    CornuPairs *pairs = status ? cornu__null() : cornu_pairs_parse(bytes, size, path);
    cornu__release(bytes);
    return pairs;
}

CornuPairs *cornu_pairs_synthetic(uint64_t seed, int64_t count)
{
    if (cornu__refused()) return NULL;
    CornuPairs  *pairs = cornu__allocate(1, sizeof *pairs);
    const size_t lines = count > 0 ? (size_t)count : 0;
    if (!pairs) return cornu__null();
    pairs->count = count;
    pairs->source = cornu__allocate(lines, sizeof *pairs->source);
    pairs->target = cornu__allocate(lines, sizeof *pairs->target);
    if (pairs->source && pairs->target &&
        !cornu_synthetic_pairs(seed, count, pairs->source, pairs->target, &pairs->texts))
        return pairs;
    cornu_pairs_free(pairs);
    return cornu__null();
}

void cornu_pairs_free(CornuPairs *pairs)
{
    if (!pairs) return;
    cornu__release(pairs->source);
    cornu__release(pairs->target);
    cornu__release(pairs->texts);
    cornu__release(pairs);
}
