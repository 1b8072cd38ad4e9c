/* Layers that learn from data before training: cornu_adapt (normalization.h). */
#ifndef CORNU_NN_ADAPT_INTERNAL_H
#define CORNU_NN_ADAPT_INTERNAL_H

#include "../layer_internal.h"

/* Gets the first `count` rows of a batch. */
typedef CornuStatus CornuAdaptStep(void *context, CornuArray rows, int64_t count);

/* Calls `step` with the array, or with each batch of the data set. */
CornuStatus cornu__adapt_each(const CornuAdaptConfig *config, CornuAdaptStep *step, void *context);

/* cornu_adapt of each class. */
CornuStatus cornu__adapt_normalization(const CornuAdaptConfig *config);
CornuStatus cornu__adapt_discretization(const CornuAdaptConfig *config);
CornuStatus cornu__adapt_integer_lookup(const CornuAdaptConfig *config);
CornuStatus cornu__adapt_string_lookup(const CornuAdaptConfig *config);
CornuStatus cornu__adapt_text_vectorization(const CornuAdaptConfig *config);

extern const CornuLayerClass cornu__normalization_class, cornu__discretization_class;
extern const CornuLayerClass cornu__integer_lookup_class;
extern const CornuLayerClass cornu__string_lookup_class, cornu__text_vectorization_class;

#endif
