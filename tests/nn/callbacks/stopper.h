/* Ends a training after so many steps: by the stop flag of its backup or, like a kill, without
 * saving the last steps. At an epoch's end it runs before a backup that is named after it. */
#ifndef CORNU_TESTS_NN_STOPPER_H
#define CORNU_TESTS_NN_STOPPER_H

#include <signal.h>

#include "../../../nn/cornu.h"

typedef struct {
    CornuCallback          base;
    int64_t                steps_left;
    volatile sig_atomic_t *flag;        /* NULL: like a kill */
} Stopper;

/* A callback for one run. Counts on below 0, so that 0 or fewer steps never end it. */
Stopper stop_after(int64_t steps, volatile sig_atomic_t *flag);

#endif
