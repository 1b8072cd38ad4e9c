/* How a device computes each op of a training step: `explain --check`. */
#ifndef CORNU_EXAMPLES_EXPLAIN_CHECK_H
#define CORNU_EXAMPLES_EXPLAIN_CHECK_H

#include <stdio.h>

#include <cornu/cornu.h>

typedef struct {
    const char      *model;
    int64_t          batch;
    CornuExecutable *executable;   /* of the step */
} Check;

/* What the step is of, and the table of cornu_executable_print_placement. */
CornuStatus explain_check_print(const Check *check, FILE *to);

/* The same as JSON. */
CornuStatus explain_check_write(const Check *check, const char *path);

#endif
