/*
 * The capabilities of an output stream: terminal or file, width, colours, character set.
 *
 * The library does not set the locale. In a program that has not called setlocale(LC_CTYPE, "")
 * either, a terminal is UTF-8 if the environment's locale is (LC_ALL, LC_CTYPE, LANG), or without
 * one its driver (stty iutf8); any other stream is taken for plain ASCII.
 */
#ifndef CORNU_NN_TERMINAL_H
#define CORNU_NN_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* In increasing order: no escape codes, bold only (NO_COLOR is set), the 16 colours of every
 * terminal, 256 colours. */
typedef enum { CORNU_PLAIN, CORNU_BOLD, CORNU_16_COLOURS, CORNU_256_COLOURS } CornuStyling;

typedef struct {
    bool         is_terminal;
    bool         utf8;
    int          columns;     /* COLUMNS, else the terminal's, else 80 */
    CornuStyling styling;     /* by TERM, COLORTERM and NO_COLOR; CORNU_PLAIN in a file */
} CornuTerminal;

/* What `file` is written to; by the environment where it is a terminal. */
CornuTerminal cornu_terminal(FILE *file);

#ifdef __cplusplus
}
#endif
#endif
