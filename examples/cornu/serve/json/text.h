/* A string that grows: the body of an answer. */
#ifndef CORNU_SERVE_TEXT_H
#define CORNU_SERVE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* All zeros is empty. Once memory runs out, `failed` is set and nothing is added any more. */
typedef struct {
    char  *bytes;              /* with a zero after them, or NULL */
    size_t length, space;
    bool   failed;
} Text;

void text_free(Text *text);

/* As printf. */
void text_add(Text *text, const char *format, ...);
void text_add_list(Text *text, const char *format, va_list arguments);
void text_add_bytes(Text *text, const char *bytes, size_t count);

/* A JSON string with its quotes. What is not UTF-8 becomes "?". */
void text_add_quoted(Text *text, const char *string);

/* A JSON number that reads back as the same float: six digits if they suffice, else nine, and ".0"
 * after a whole one; or NaN, Infinity, -Infinity, which TensorFlow Serving writes, too. */
void text_add_float(Text *text, float value);

#endif
