/* What fuse.c asks of recompute.c. */
#ifndef CORNU_DEVICE_HOST_RECOMPUTE_H
#define CORNU_DEVICE_HOST_RECOMPUTE_H

#include "units.h"

/* An op's result, with ops joined into units: of no group; in registers; also in memory, but only
 * for groups of as many elements; and for others. */
typedef enum {
    CORNU_RESULT_OUTSIDE, CORNU_RESULT_INSIDE, CORNU_RESULT_FOR_GROUPS, CORNU_RESULT_FOR_ALL
} CornuResult;

/* The program with ops recorded again for units that then need not read what these have made;
 * NULL: there are none. results: by op. A unit has most_ops at most. The caller frees the program,
 * CORNU_ERR_MEMORY. */
CornuStatus cornu__recompute(const CornuUnits *units, const CornuResult *results, int most_ops,
                             CornuProgram **again);

#endif
