/* Programs that run beside this one, without a shell: each argument arrives as it is. */
#ifndef CORNU_DATASETS_PROGRAM_INTERNAL_H
#define CORNU_DATASETS_PROGRAM_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct {
    pid_t child;
    int   output;       /* to read its standard output from; -1: that is discarded */
    int   complaints;   /* likewise its standard error */
} CornuProgram;

/* What a program gets as its standard input is written before it runs, into a pipe. */
enum { CORNU__PROGRAM_INPUT = 1 << 16 };

/* Starts arguments[0], found along PATH, with arguments up to NULL. input: its standard input, of
 * fewer than CORNU__PROGRAM_INPUT bytes, which no list of processes shows, as it does arguments;
 * NULL: none. Returns 0 or an error number: ENOENT if there is no such program. */
int cornu__program_start(CornuProgram *program, const char *const *arguments, const char *input,
                         bool output);

/* Kills the program, unless it may end by itself, waits for its end, and closes both pipes. Returns
 * its exit status; -1 if a signal ended it, or nothing is known of it. */
int cornu__program_end(CornuProgram *program, bool kill_it);

/* Appends what came on a pipe to a string of `size` bytes, as one line; what does not fit is
 * dropped. Returns false at the end of the pipe. */
bool cornu__program_hear(int pipe, char *said, size_t size);

/*
 * Runs a program to its end and writes the first line of its output to `line`. Returns 0; an error
 * number if it cannot be started, ETIMEDOUT after so many seconds; or -1 if it fails, with what it
 * says on its standard error in `line` instead.
 */
int cornu__program_line(const char *const *arguments, int seconds, char *line, size_t size);

#endif
