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

/* A row for each op, and below a loop one for each op of its body, in 120 columns; before them how
 * many are native, decomposed, by reference. */
CornuStatus explain_check_print(const Check *check, FILE *to);

/* The same as JSON. */
CornuStatus explain_check_write(const Check *check, const char *path);

#endif
