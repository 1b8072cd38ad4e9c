/* The data of cornu_adapt: an array, or the batches of a data set. */
#include "adapt_internal.h"

#include "../../../datasets/pipeline/iterator.h"

CornuStatus cornu__adapt_each(const CornuAdaptConfig *config, CornuAdaptStep *step, void *context)
{
    const CornuBatch *batch;
    if (!config->data == !config->x.data)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s a data set %s .x given, expected one of them",
                           config->data ? "both" : "neither", config->data ? "and" : "nor");
    if (!config->data)
        return step(context, config->x,
                    config->x.type.shape.rank ? config->x.type.shape.extent[0] : 1);
    if (cornu_dataset_count(config->data) == CORNU_NONE)
        return cornu__fail(CORNU_ERR_ARGUMENT, "the data set is infinite, expected a finite one");
    CornuIterator *iterator = cornu_iterator_begin(config->data, 0);
    if (!iterator) return cornu_error_take();
    CornuStatus status;
    while (!(status = cornu_iterator_next(iterator, &batch)) && batch && !status)
        if ((status = step(context, batch->arrays[0], batch->valid))) break;
    cornu_iterator_free(iterator);
    return status;
}
