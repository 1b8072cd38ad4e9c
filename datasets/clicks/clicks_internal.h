/* Shared by the sources of clicks: rows in mapped files. */
#ifndef CORNU_DATASETS_CLICKS_INTERNAL_H
#define CORNU_DATASETS_CLICKS_INTERNAL_H

#include "../../device/status_internal.h"
#include "clicks.h"

typedef struct {
    int32_t ids[CORNU_CLICK_FEATURES];
    float   numbers[CORNU_CLICK_NUMBERS];
    float   click;
} CornuClick;

/* Makes room for the rows, whose features, numbers and counts are known. */
CornuStatus cornu__clicks_map(CornuClicks *clicks);

/* Writes row `row` of the training (0) or test (1) rows. */
void cornu__clicks_set(CornuClicks *clicks, int part, int64_t row, const CornuClick *click);

/* Makes the data sets of the rows. */
CornuStatus cornu__clicks_finish(CornuClicks *clicks);

/* Numbers in [0, 1) that depend on what is given alone. */
double cornu__clicks_uniform(uint64_t seed, uint64_t kind, uint64_t number, uint64_t part);

/* Whether the row is one of the tenth for testing. */
bool cornu__clicks_tests(uint64_t seed, int64_t row);

#endif
