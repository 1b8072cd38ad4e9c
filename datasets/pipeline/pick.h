/* Some of the components of elements, in another order. */
#ifndef CORNU_DATASETS_PICK_H
#define CORNU_DATASETS_PICK_H

#include "dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Component c of an element, or of a batch, is component components[c] of the source's. The order
 * is any, and one may be there several times. */
CornuDataset *cornu_dataset_pick_from(CornuDataset *source, const int *components, int count);
/* cornu_dataset_pick(source, 2, 0) */
#define cornu_dataset_pick(source, ...)                                   \
    cornu_dataset_pick_from((source), (const int[]){ __VA_ARGS__ },       \
                            (int)(sizeof((const int[]){ __VA_ARGS__ }) / sizeof(int)))

#ifdef __cplusplus
}
#endif
#endif
