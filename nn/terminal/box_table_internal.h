/*
 * Styled text and box tables on a terminal, cell for cell as rich 15 prints them for Keras.
 *
 * A character counts as one cell. Without UTF-8 the box is drawn with + - |, as by rich, and other
 * characters print as '?'.
 * Source: rich/table.py, text.py, _wrap.py, box.py.
 */
#ifndef CORNU_NN_BOX_TABLE_INTERNAL_H
#define CORNU_NN_BOX_TABLE_INTERNAL_H

#include "../../device/status_internal.h"
#include "terminal.h"

/* The kind of a piece of text, which determines its style. */
typedef enum {
    CORNU__TEXT_PLAIN, CORNU__TEXT_BOLD, CORNU__TEXT_NUMBER, CORNU__TEXT_NONE,
    CORNU__TEXT_SYMBOL, CORNU__TEXT_YES, CORNU__TEXT_NO
} CornuTextKind;

typedef struct {
    char          bytes[4];        /* one character in UTF-8 */
    unsigned char length, kind;
} CornuCell;

/* Start from all zeros. */
typedef struct {
    CornuCell *cells;
    int        count, space;
} CornuStyledText;

CornuStatus cornu__text_append(CornuStyledText *text, CornuTextKind kind, const char *format, ...)
    CORNU__PRINTF(3, 4);
void        cornu__text_clear(CornuStyledText *text);    /* keeps the memory */
void        cornu__text_free(CornuStyledText *text);

/* Prints a paragraph: lines break between words, longer words are folded. */
CornuStatus cornu__text_print(const CornuStyledText *text, CornuTerminal terminal, FILE *file);

typedef enum { CORNU__LEFT, CORNU__CENTRE, CORNU__RIGHT } CornuAlignment;

typedef struct {
    const char    *title;
    CornuAlignment alignment;
    int            width;          /* preferred; cornu__box_table_begin reduces it to fit */
} CornuBoxColumn;

enum { CORNU__MAX_COLUMNS = 5 };

typedef struct {
    CornuBoxColumn columns[CORNU__MAX_COLUMNS];
    int            column_count, rows;
    CornuTerminal  terminal;
    FILE          *file;
} CornuBoxTable;

/* Fits the columns into `width` cells, borders included, and prints the header. */
CornuStatus cornu__box_table_begin(CornuBoxTable *table, int width);
/* One text per column. It wraps between words; a word that is too long is cut with "…". */
CornuStatus cornu__box_table_row(CornuBoxTable *table, const CornuStyledText *texts);
void        cornu__box_table_end(CornuBoxTable *table);

#endif
