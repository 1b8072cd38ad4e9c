/*
 * A run over many seeds. Seeds are tried in processes that each take a number of them, so that a
 * crash or a hang ends one process and counts as a finding of its seed.
 */
#ifndef CORNU_TESTS_CHECK_RUNS_H
#define CORNU_TESTS_CHECK_RUNS_H

#include <stdbool.h>
#include <stdint.h>

#include "../../device/status_internal.h"

enum { RUN_NAMES = 256 };

/* What the process that tries seeds tells the one that counts, in shared memory. */
typedef struct {
    uint64_t seed;                /* the current one */
    int64_t  tried;
    int64_t  compared, unbounded; /* numbers, and those with an infinite bound */
    int64_t  counted[RUN_NAMES];  /* how often each name occurred */
    bool     failed;
    int      setting;             /* the finder's own; -1 before */
    char     where[200], message[500];
} Run;

typedef struct {
    const char *what;                                 /* "programs" */
    void      (*try_one)(uint64_t seed, Run *run);    /* sets run->failed and the message */
    void      (*report)(uint64_t seed, const Run *run);   /* prints more about a finding */
    double      seconds;                              /* of a run without arguments */
    const char *(*name_of)(int i);                    /* what must occur */
    int         names;
    int64_t     enough;                               /* tries by which all names must have */
} Runs;

void run_says(Run *run, const char *format, ...) CORNU__PRINTF(2, 3);

/* --seconds N, --seed N, --count N; without arguments a test that reports in TAP. */
int run_main(int argc, char **argv, const Runs *runs);

#endif
