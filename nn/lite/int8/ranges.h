/* The ranges of a graph's tensors over calibration data, by computing the graph in f32. */
#ifndef CORNU_NN_LITE_RANGES_H
#define CORNU_NN_LITE_RANGES_H

#include "../graph/graph.h"

typedef struct {
    float low, high;   /* low above high: nothing was seen */
} CornuLiteRange;

enum { CORNU_LITE_MAX_PORTS = 16 };   /* inputs of a graph that is calibrated */

typedef struct CornuLiteRanges CornuLiteRanges;

/* For a graph of f32, which must outlive it. NULL with a message on failure. */
CornuLiteRanges *cornu__lite_ranges_create(const CornuLiteGraph *graph);
void             cornu__lite_ranges_free(CornuLiteRanges *ranges);

/* Widens the ranges by `rows` rows of each input, f32. CORNU_ERR_VALUE for values that are not
 * finite. */
CornuStatus cornu__lite_ranges_add(CornuLiteRanges *ranges, int64_t rows, const float *const *x);

/* Of each tensor that is computed or fed; the ranges own them. */
const CornuLiteRange *cornu__lite_ranges(const CornuLiteRanges *ranges);

#endif
