/* Encoding of indices, and statistics of data for layers that learn from them before training. */
#ifndef CORNU_NN_CATEGORIES_INTERNAL_H
#define CORNU_NN_CATEGORIES_INTERNAL_H

#include "../categories.h"
#include "../layer_internal.h"

/* Indices (of any number type) encoded in the layer's compute dtype; `weights`, if not NULL, are in
 * their shape. tf_idf counts. */
CornuTensor *cornu__encode(const CornuLayer *layer, CornuTensor *indices, CornuOutputMode mode,
                           int64_t depth, CornuTensor *weights);

/* CORNU_ERR_ARGUMENT unless the mode, whose default is `usual`, is from `first` to `last`. */
CornuStatus cornu__check_output_mode(const char *layer, CornuOutputMode *mode,
                                     CornuOutputMode usual, CornuOutputMode first,
                                     CornuOutputMode last);

/* For kind->build: CORNU_ERR_SHAPE for an input without rows of steps, which these modes need. */
CornuStatus cornu__check_encoded(CornuShape input, CornuOutputMode mode);

#endif
