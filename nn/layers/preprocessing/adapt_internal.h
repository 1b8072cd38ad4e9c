/* Layers that learn from data before training: cornu_adapt (normalization.h). */
#ifndef CORNU_NN_ADAPT_INTERNAL_H
#define CORNU_NN_ADAPT_INTERNAL_H

#include "../../formats/json_internal.h"
#include "../layer_internal.h"

/* Gets the first `count` rows of a batch. */
typedef CornuStatus CornuAdaptStep(void *context, CornuArray rows, int64_t count);

/* Calls `step` with the array, or with each batch of the data set. */
CornuStatus cornu__adapt_each(const CornuAdaptConfig *config, CornuAdaptStep *step, void *context);

/* For cornu_classes_to_json: whether cornu_adapt and cornu_layer_vocabulary_to_json take layers of
 * the class. */
bool cornu__layer_adapts(const CornuLayerClass *kind);
bool cornu__layer_has_vocabulary(const CornuLayerClass *kind);

/* The vocabulary of an IntegerLookup as a list of numbers, and how many special ones begin it. */
json_t *cornu__integer_lookup_vocabulary(const CornuLayer *layer, int64_t *specials);

/* cornu_adapt for a layer of each class that learns from data. */
CornuStatus cornu__adapt_normalization(const CornuAdaptConfig *config);
CornuStatus cornu__adapt_discretization(const CornuAdaptConfig *config);
CornuStatus cornu__adapt_integer_lookup(const CornuAdaptConfig *config);
CornuStatus cornu__adapt_string_lookup(const CornuAdaptConfig *config);
CornuStatus cornu__adapt_text_vectorization(const CornuAdaptConfig *config);

extern const CornuLayerClass cornu__normalization_class, cornu__discretization_class;
extern const CornuLayerClass cornu__integer_lookup_class;
extern const CornuLayerClass cornu__string_lookup_class, cornu__text_vectorization_class;

#endif
