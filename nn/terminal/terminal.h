/*
 * What an output stream can show: a terminal or a file, how wide, how colourful, which letters.
 *
 * The library only asks; a program that wants its user's language calls setlocale(LC_CTYPE, "")
 * first, else the C locale's plain ASCII is what the stream is taken for.
 */
#ifndef CORNU_NN_TERMINAL_H
#define CORNU_NN_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* From poor to rich, so that they compare: no escape codes at all, bold only (NO_COLOR is
 * set), the 16 colours every terminal has, 256 colours. */
typedef enum { CORNU_PLAIN, CORNU_BOLD, CORNU_16_COLOURS, CORNU_256_COLOURS } CornuStyling;

typedef struct {
    bool         is_terminal;
    bool         utf8;
    int          columns;     /* COLUMNS, else the terminal's, else 80 */
    CornuStyling styling;     /* by TERM, COLORTERM and NO_COLOR; CORNU_PLAIN in a file */
} CornuTerminal;

CornuTerminal cornu_terminal(FILE *file);

#ifdef __cplusplus
}
#endif
#endif
