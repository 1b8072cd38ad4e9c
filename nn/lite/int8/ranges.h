/* The ranges of the tensors of a model's graph over calibration data, by computing them in f32. */
#ifndef CORNU_NN_LITE_RANGES_H
#define CORNU_NN_LITE_RANGES_H

#include "../../model/model.h"
#include "../graph/graph.h"

typedef struct {
    float low, high;   /* low above high: nothing was seen */
} CornuLiteRange;

enum { CORNU_LITE_MAX_PORTS = 16 };   /* inputs of a graph that is calibrated */

typedef struct CornuLiteRanges CornuLiteRanges;

/* For the graph that cornu__lite_from_model makes of the model. NULL with a pending error. */
CornuLiteRanges *cornu__lite_ranges_create(const CornuModel *model);
void             cornu__lite_ranges_free(CornuLiteRanges *ranges);

/* Widens the ranges by `rows` rows of each input, f32. CORNU_ERR_VALUE for values that are not
 * finite. */
CornuStatus cornu__lite_ranges_add(CornuLiteRanges *ranges, int64_t rows, const float *const *x);

/* Of each tensor that is computed or fed; the ranges own them. */
const CornuLiteRange *cornu__lite_ranges(const CornuLiteRanges *ranges);

#endif
