/*
 * Data sets in a device's memory.
 *
 *     CornuDataset *train = cornu_dataset_to_device(cornu_train_test_take_train(data), device);
 *     cornu_fit(model, train, .batch_size = 128, .epochs = 12);
 */
#ifndef CORNU_NN_TO_DEVICE_H
#define CORNU_NN_TO_DEVICE_H

#include "../../datasets/pipeline/dataset.h"
#include "../../device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The same elements, computed once, in memory and in that of the device: fit, evaluate and predict
 * of a model on this device then feed a step with the numbers of its rows alone, and the step takes
 * the rows from the device's memory. Worth it where the link to the device is the limit; the bits
 * are the same in any case.
 *
 * That is so where what follows maps indices: shuffle, take, skip, repeat, batch, prefetch and
 * parallel, but no map, and for models of which a step takes a batch, not a pipeline's
 * microbatches, nor all rows at once. Elsewhere elements are fed as those of any data set.
 *
 * The source is finite and not batched, with no more than 2^31 - 1 elements of numbers; it is
 * taken, also on failure. NULL with a pending error: CORNU_ERR_MEMORY if the elements exceed what
 * the device has left, with what it has.
 */
CornuDataset *cornu_dataset_to_device(CornuDataset *source, CornuDevice *device);

#ifdef __cplusplus
}
#endif
#endif
