/*
 * The lines and fields of a CSV, from memory or a file, of which one chunk of whole lines is in
 * memory at a time.
 */
#ifndef CORNU_DATASETS_TABLE_TEXT_INTERNAL_H
#define CORNU_DATASETS_TABLE_TEXT_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "../../device/files/input_internal.h"

/* Bytes of a file that are read at a time, and of a line at most. */
enum { CORNU_TABLE_CHUNK = 1 << 18, CORNU_MAX_TABLE_LINE = 1 << 26 };

/* A field of a line: `text` ends with a NUL and is valid until the next line. */
typedef struct {
    char  *text;
    double number;
    bool   is_number;
} CornuField;

typedef struct {
    const char *name;           /* of the file, for messages; the owner's */
    const char *unit;           /* what `line` counts, for messages; NULL: "line" */
    char        delimiter;
    bool        stops[256];     /* by character: ends a field that is not quoted */
    bool        scans;          /* the delimiter is not a character of numbers */
    const char *memory;         /* the owner's: all of the text; NULL: a file */
    const CornuInput *input;    /* the file, the owner's */
    int64_t     size;           /* of the text */
    char       *buffer;         /* owned: the chunk, and what follows it */
    size_t      space, filled;
    size_t      cut;            /* where the chunk ends, by a NUL in place of `after` */
    char        after;
    char       *at;             /* in the buffer, whose fields are terminated in place */
    int64_t     next;           /* byte of the text after the buffer's */
    int64_t     line;           /* from 1, of `at` */
    size_t      wanted;         /* bytes of the first chunk after a seek */
    bool        ended;          /* nothing follows the chunk */
} CornuTableText;

/* Fills a zeroed text whose name, delimiter, size, and memory or input are set. Close it in any
 * case. */
CornuStatus cornu__table_text_open(CornuTableText *text);
void        cornu__table_text_close(CornuTableText *text);

/* Goes on from a byte that begins line `line`; `wanted`: the bytes that are soon read. */
void cornu__table_text_seek(CornuTableText *text, int64_t byte, int64_t line, size_t wanted);

/* Moves to the next line that is not empty; *more: whether there is one. Then text->line is its
 * number and cornu__table_text_place the byte where it begins. */
CornuStatus cornu__table_text_line(CornuTableText *text, bool *more);
int64_t     cornu__table_text_place(const CornuTableText *text);

/* Moves past a line at whose start the text is. */
void cornu__table_text_skip(CornuTableText *text);

/* Reads the next field of a line; *last: whether it is the last one. */
CornuStatus cornu__table_text_word(CornuTableText *text, char **field, bool *last);
/* Likewise, and the number that it is, if it is one. */
CornuStatus cornu__table_text_value(CornuTableText *text, CornuField *field, bool *last);

/* "FILE: line 7, column age: …", or without a column if that is NULL. */
CornuStatus cornu__table_text_fail(const CornuTableText *text, CornuStatus status, int64_t line,
                                   const char *column, const char *format, ...)
    CORNU__PRINTF(5, 6);

#endif
