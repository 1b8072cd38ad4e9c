#include "table_text_internal.h"

#include <stdarg.h>
#include <string.h>

#include "../../device/memory_internal.h"
#include "../../device/text/print.h"
#include "number_internal.h"

CornuStatus cornu__table_text_fail(const CornuTableText *text, CornuStatus status, int64_t line,
                                   const char *column, const char *format, ...)
{
    char    why[500];
    va_list arguments;
    va_start(arguments, format);
    cornu__vformat(why, sizeof why, format, arguments);
    va_end(arguments);
    return cornu__fail(status, "%s: %s %lld%s%.99s: %s", text->name,
                       text->unit ? text->unit : "line", (long long)line,
                       column ? ", column " : "", column ? column : "", why);
}

/* ---- Chunks ---- */

CornuStatus cornu__table_text_open(CornuTableText *text)
{
    const char delimiter = text->delimiter;
    if (delimiter == '"' || delimiter == '\n' || delimiter == '\r')
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .delimiter is character %d, expected a "
                           "separator such as a comma", text->name, delimiter);
    text->scans = !strchr("+-.0123456789eE", delimiter);
    text->stops[(unsigned char)delimiter] = text->stops['"'] = true;
    text->stops['\n'] = text->stops['\r'] = text->stops[0] = true;
    text->space = CORNU_TABLE_CHUNK;
    if (text->memory && text->size < CORNU_TABLE_CHUNK) text->space = (size_t)text->size + 1;
    text->buffer = cornu__allocate(text->space, 1);
    if (!text->buffer) return CORNU_ERR_MEMORY;
    cornu__table_text_seek(text, 0, 1, CORNU_TABLE_CHUNK);
    return CORNU_OK;
}

void cornu__table_text_close(CornuTableText *text)
{
    cornu__release(text->buffer);
    text->buffer = NULL;
}

void cornu__table_text_seek(CornuTableText *text, int64_t byte, int64_t line, size_t wanted)
{
    text->filled = text->cut = 0;
    text->after = text->buffer[0] = '\0';
    text->at = text->buffer;
    text->next = byte;
    text->line = line;
    text->wanted = wanted;
    text->ended = false;
}

/* Bytes of something other than text, as a NUL at `at` shows. */
static CornuStatus refuse(const CornuTableText *text, const char *bytes, int64_t at)
{
    const bool first = text->next == 0 && at > 0;
    if (first && !memcmp(bytes, "\x1f\x8b", 2))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: is compressed by gzip, expected text; "
                           "uncompress it by gunzip", text->name);
    if (first && (!memcmp(bytes, "\xff\xfe", 2) || !memcmp(bytes, "\xfe\xff", 2)))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: is UTF-16, expected UTF-8; iconv -f utf-16 "
                           "-t utf-8 converts it", text->name);
    return cornu__fail(CORNU_ERR_FORMAT, "%s: contains NUL bytes, at byte %lld, expected text",
                       text->name, (long long)(text->next + at));
}

/* Reads up to `most` bytes to the end of the buffer; *got 0 at the end of the text. */
static CornuStatus read_more(CornuTableText *text, size_t most, size_t *got)
{
    char         *to = text->buffer + text->filled;
    const int64_t left = text->size - text->next;
    *got = left < (int64_t)most ? (size_t)left : most;
    if (text->memory) memcpy(to, text->memory + text->next, *got);
    else CORNU__TRY(cornu__fail_prefix(cornu__input_read(text->input, text->next, to, *got),
                                       text->name));
    const char *nul = memchr(to, '\0', *got);
    if (nul) return refuse(text, to, nul - to);
    text->next += (int64_t)*got;
    text->filled += *got;
    return CORNU_OK;
}

/* The bytes of whole lines: up to the last line break that is not in quotes. A CR at the end may be
 * half of a CR LF. */
static size_t whole_lines(const char *bytes, size_t size)
{
    size_t end = 0;
    bool   quoted = false;
    if (!memchr(bytes, '"', size)) {
        for (size_t i = size; i > 0; i--)
            if (bytes[i - 1] == '\n' || (bytes[i - 1] == '\r' && i < size)) return i;
        return 0;
    }
    for (size_t i = 0; i < size; i++) {
        quoted ^= bytes[i] == '"';
        const bool ends = bytes[i] == '\n' || (bytes[i] == '\r' && i + 1 < size &&
                                               bytes[i + 1] != '\n');
        if (ends && !quoted) end = i + 1;
    }
    return end;
}

/* Moves what follows the chunk to the front, and reads until it has a whole line. */
static CornuStatus next_chunk(CornuTableText *text)
{
    text->buffer[text->cut] = text->after;
    text->filled -= text->cut;
    memmove(text->buffer, text->buffer + text->cut, text->filled);
    text->cut = 0;
    while (!text->cut && !text->ended) {
        if (text->filled + 1 >= text->space) {
            char *larger = text->space < CORNU_MAX_TABLE_LINE
                ? cornu__allocate(2 * text->space, 1) : NULL;
            if (!larger && text->space < CORNU_MAX_TABLE_LINE) return CORNU_ERR_MEMORY;
            if (!larger)
                return cornu__table_text_fail(text, CORNU_ERR_FORMAT, text->line, NULL, "the line "
                                              "has more than %d bytes; is a quote not closed?",
                                              CORNU_MAX_TABLE_LINE);
            memcpy(larger, text->buffer, text->filled);
            cornu__release(text->buffer);
            text->buffer = larger;
            text->space *= 2;
        }
        const size_t left = text->space - 1 - text->filled;
        size_t       got = 0;
        CORNU__TRY(read_more(text, left < text->wanted ? left : text->wanted, &got));
        text->wanted = CORNU_TABLE_CHUNK;
        text->ended = got == 0;
        text->cut = text->ended ? text->filled : whole_lines(text->buffer, text->filled);
    }
    text->after = text->buffer[text->cut];
    text->buffer[text->cut] = '\0';
    text->at = text->buffer;
    return CORNU_OK;
}

/* ---- Lines ---- */

/* The length of the line break here: LF, CR LF, or CR alone, as on old Macs; 0 without one. */
static int line_break(const char *at)
{
    return *at == '\n' ? 1 : *at == '\r' ? 1 + (at[1] == '\n') : 0;
}

/* Moves on from `at`, over the line break or the delimiter there. */
static void skip_stop(CornuTableText *text, char *at)
{
    const int length = line_break(at);
    text->line += length > 0;
    text->at = at + (length ? length : *at != '\0');
}

static bool is_blank(const CornuTableText *text, char c)
{
    return (c == ' ' || c == '\t') && c != text->delimiter;
}

CornuStatus cornu__table_text_line(CornuTableText *text, bool *more)
{
    for (;;) {
        char *end = text->at;
        while (is_blank(text, *end)) end++;
        if (line_break(end)) {
            skip_stop(text, end);
            continue;
        }
        *more = *end != '\0';
        if (*more || text->ended) return CORNU_OK;
        CORNU__TRY(next_chunk(text));
    }
}

int64_t cornu__table_text_place(const CornuTableText *text)
{
    return text->next - (int64_t)text->filled + (text->at - text->buffer);
}

void cornu__table_text_skip(CornuTableText *text)
{
    bool quoted = false;
    for (char *at = text->at;; at++) {
        if (!text->stops[(unsigned char)*at]) continue;
        quoted ^= *at == '"';
        if (!*at || (line_break(at) && !quoted)) {
            skip_stop(text, at);
            return;
        }
        text->line += *at == '\n' || (*at == '\r' && at[1] != '\n');
    }
}

/* ---- Fields ---- */

static CornuStatus quoted_field(CornuTableText *text, char **field)
{
    const int64_t line = text->line;
    char         *from = text->at + 1, *to = from;
    *field = to;
    for (; *from != '"' || from[1] == '"'; from++) {
        if (!*from)
            return cornu__table_text_fail(text, CORNU_ERR_FORMAT, line, NULL,
                                          "a quote is not closed");
        if (*from == '"') from++;
        text->line += *from == '\n' || (*from == '\r' && from[1] != '\n');
        *to++ = *from;
    }
    for (from++; is_blank(text, *from);) from++;
    *to = '\0';
    text->at = from;
    if (!*from || line_break(from) || *from == text->delimiter) return CORNU_OK;
    return cornu__table_text_fail(text, CORNU_ERR_FORMAT, text->line, NULL,
                                  "text after a closing quote");
}

CornuStatus cornu__table_text_word(CornuTableText *text, char **field, bool *last)
{
    while (is_blank(text, *text->at)) text->at++;
    char *end = NULL;
    if (*text->at == '"') {
        CORNU__TRY(quoted_field(text, field));
    } else {
        *field = text->at;
        while (!text->stops[(unsigned char)*text->at]) text->at++;
        for (end = text->at; end > *field && is_blank(text, end[-1]);) end--;
        if (*text->at == '"')
            return cornu__table_text_fail(text, CORNU_ERR_FORMAT, text->line, NULL, "a quote "
                                          "within a field; put the field in quotes and double "
                                          "those in it");
    }
    *last = *text->at != text->delimiter;
    skip_stop(text, text->at);
    if (end) *end = '\0';
    return CORNU_OK;
}

/* Whether a field is a finite decimal number, in any locale. */
static bool is_number(const CornuTableText *text, const char *field, double *number)
{
    const char *end, *limit = text->buffer + text->cut + 1;
    return cornu__scan_number(field, limit, &end, number) && !*end;
}

CornuStatus cornu__table_text_value(CornuTableText *text, CornuField *field, bool *last)
{
    const char *end, *limit = text->buffer + text->cut + 1;
    while (is_blank(text, *text->at)) text->at++;
    *field = (CornuField){ .text = NULL };
    if (text->scans && cornu__scan_number(text->at, limit, &end, &field->number)) {
        char *number_end = text->at + (end - text->at), *stop = number_end;
        while (is_blank(text, *stop)) stop++;
        if (*stop == text->delimiter || line_break(stop) || !*stop) {
            field->is_number = true;
            field->text = text->at;
            *last = *stop != text->delimiter;
            skip_stop(text, stop);
            *number_end = '\0';
            return CORNU_OK;
        }
    }
    const bool quoted = *text->at == '"';
    CORNU__TRY(cornu__table_text_word(text, &field->text, last));
    if (quoted || !text->scans)
        field->is_number = is_number(text, field->text, &field->number);
    return CORNU_OK;
}
