#include "text.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

void text_free(Text *text)
{
    free(text->bytes);
    *text = (Text){ .bytes = NULL };
}

/* Makes room for so many bytes and a zero. */
static bool reserve(Text *text, size_t count)
{
    if (text->failed || count > SIZE_MAX / 4 - text->length) return !(text->failed = true);
    if (text->length + count < text->space) return true;
    size_t space = text->space ? text->space : 256;
    while (space <= text->length + count) space *= 2;
    char *bytes = realloc(text->bytes, space);
    if (!bytes) return !(text->failed = true);
    text->bytes = bytes;
    text->space = space;
    return true;
}

void text_add_bytes(Text *text, const char *bytes, size_t count)
{
    if (!reserve(text, count)) return;
    if (count) memcpy(text->bytes + text->length, bytes, count);
    text->length += count;
    text->bytes[text->length] = '\0';
}

void text_add_list(Text *text, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    const int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (length < 0 || !reserve(text, (size_t)length)) {
        text->failed = true;
        return;
    }
    vsnprintf(text->bytes + text->length, (size_t)length + 1, format, arguments);
    text->length += (size_t)length;
}

void text_add(Text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    text_add_list(text, format, arguments);
    va_end(arguments);
}

void text_add_quoted(Text *text, const char *string)
{
    json_t *value = json_string(string);
    char   *quoted = NULL;
    if (!value) {                       /* not UTF-8 */
        char *copy = strdup(string);
        for (char *c = copy; c && *c; c++)
            if ((unsigned char)*c >= 0x80) *c = '?';
        value = copy ? json_string(copy) : NULL;
        free(copy);
    }
    if (value) quoted = json_dumps(value, JSON_ENCODE_ANY);
    if (quoted) text_add_bytes(text, quoted, strlen(quoted));
    else text->failed = true;
    free(quoted);
    json_decref(value);
}

void text_add_float(Text *text, float value)
{
    char number[40];
    if (isnan(value)) {
        text_add_bytes(text, "NaN", 3);
        return;
    }
    if (isinf(value)) {
        text_add(text, value < 0 ? "-Infinity" : "Infinity");
        return;
    }
    int length = snprintf(number, sizeof number, "%.6g", (double)value);
    if (strtof(number, NULL) != value)
        length = snprintf(number, sizeof number, "%.9g", (double)value);
    if (!strpbrk(number, ".e")) {
        memcpy(number + length, ".0", 3);
        length += 2;
    }
    text_add_bytes(text, number, (size_t)length);
}
