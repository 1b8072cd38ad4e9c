/*
 * Layers that make categories of numbers, and vectors of categories, without weights.
 * Source: keras/src/layers/preprocessing, keras/src/utils/numerical_utils.py.
 */
#ifndef CORNU_NN_LAYERS_CATEGORIES_H
#define CORNU_NN_LAYERS_CATEGORIES_H

#include "layer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What becomes of an index in [0, depth):
 *     int         the index, i32
 *     one_hot     (…, depth), of (…, 1) too, without that axis
 *     multi_hot   (B, T, …) gives (B, …, depth): 1 for every index that is there
 *     count       likewise, how often
 *     tf_idf      likewise, times its weight
 * Other indices are in no category. Here, in lookups and in hashes a NaN is not an index:
 * CORNU_ERR_VALUE when the step runs. */
typedef enum {
    CORNU_DEFAULT_OUTPUT, CORNU_INT_OUTPUT, CORNU_ONE_HOT_OUTPUT, CORNU_MULTI_HOT_OUTPUT,
    CORNU_COUNT_OUTPUT, CORNU_TF_IDF_OUTPUT
} CornuOutputMode;

/* "int", "one_hot", …; NULL for an unknown value. */
const char *cornu_output_mode_name(CornuOutputMode mode);

/* Indices below num_tokens, of any number type, encoded; in the mode count a second input, Keras'
 * count_weights, has weights in x's shape. */
typedef struct {
    char            unset;
    int64_t         num_tokens;           /* required */
    CornuOutputMode output_mode;          /* default multi_hot */
    const char     *name;
    const char     *dtype;
} CornuCategoryEncodingConfig;

CornuLayer *cornu_category_encoding_from(const CornuCategoryEncodingConfig *config);
#define cornu_category_encoding(...) \
    cornu_category_encoding_from(&(CornuCategoryEncodingConfig){ .unset = 0, __VA_ARGS__ })

/* The number of boundaries that are not above x, encoded. cornu_adapt (normalization.h) sets the
 * boundaries so that num_bins have about as many of the data's values each. */
typedef struct {
    char            unset;
    CornuNumbers    bin_boundaries;       /* ascending; this or num_bins */
    int64_t         num_bins;             /* at least 1 */
    double          epsilon;              /* of adapt: the error of ranks; default 0.01 */
    CornuOutputMode output_mode;          /* default int; not tf_idf */
    const char     *name;
    const char     *dtype;
} CornuDiscretizationConfig;

CornuLayer *cornu_discretization_from(const CornuDiscretizationConfig *config);
#define cornu_discretization(...) \
    cornu_discretization_from(&(CornuDiscretizationConfig){ .unset = 0, __VA_ARGS__ })

/* The place of an integer in the vocabulary, encoded. Places begin with that of mask_token, if it
 * is given and the mode is int, then num_oov_indices places of integers that are not in the
 * vocabulary: of
 * several that of the remainder. Without one, such integers have -1. With `invert` a place gives
 * the integer, oov_token where it has none. */
typedef struct {
    char            unset;
    CornuNumbers    vocabulary;           /* required: whole numbers up to 2^53, each once */
    int64_t         max_tokens;           /* 0: any number */
    int64_t         num_oov_indices;      /* default 1, or CORNU_ZERO */
    int64_t         mask_token;           /* 0: none, CORNU_ZERO for 0 */
    int64_t         oov_token;            /* default -1, or CORNU_ZERO */
    bool            invert;
    CornuOutputMode output_mode;          /* default int */
    bool            pad_to_max_tokens;    /* encode to max_tokens elements */
    CornuNumbers    idf_weights;          /* of tf_idf: one for each integer of the vocabulary;
                                             the others have their mean */
    const char     *name;
    const char     *dtype;
} CornuIntegerLookupConfig;

CornuLayer *cornu_integer_lookup_from(const CornuIntegerLookupConfig *config);
#define cornu_integer_lookup(...) \
    cornu_integer_lookup_from(&(CornuIntegerLookupConfig){ .unset = 0, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
