/* Layers of products with weights other than Dense, and layers that change nothing. */
#ifndef CORNU_NN_LAYERS_CORE_H
#define CORNU_NN_LAYERS_CORE_H

#include "activations.h"
#include "layer.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * y = activation(einsum(equation, x, kernel) + bias). The equation has one of the forms "X,Y->Z",
 * "...X,Y->...Z" and "X...,Y->Z...", a letter for each axis:
 *
 *     cornu_einsum_dense("abc,cd->abd", .output_shape = { CORNU_NONE, 64 }, .bias_axes = "d")
 *
 * The kernel's extents are those of the input and of output_shape, its fans the products of the
 * extents that are summed over and of those that remain. The output has no mask, as in Keras.
 * Source: keras/src/layers/core/einsum_dense.py.
 */
typedef struct {
    char             unset;
    const char      *equation;            /* required; copied */
    int64_t          output_shape[CORNU_MAX_RANK]; /* without the batch and the axes of "...";
                                             CORNU_NONE: as the input's; ends at the first 0 */
    CornuActivation  activation;
    const char      *bias_axes;           /* letters of the result that the bias has; default: no
                                             bias */
    CornuInitializer kernel_initializer;  /* default glorot_uniform */
    CornuInitializer bias_initializer;    /* default zeros          */
    CornuRegularizer kernel_regularizer, bias_regularizer, activity_regularizer;
    CornuConstraint  kernel_constraint, bias_constraint;
    const char      *name;
    bool             frozen;
    const char      *dtype;
} CornuEinsumDenseConfig;

CornuLayer *cornu_einsum_dense_from(const CornuEinsumDenseConfig *config);
#define cornu_einsum_dense(...) \
    cornu_einsum_dense_from(&(CornuEinsumDenseConfig){ .unset = 0, __VA_ARGS__ })

/*
 * The layer, with its kernel W, or its embeddings, divided by an estimate of its largest singular
 * value in training. The estimate begins with the vector u, the weight vector_u (1, N), for which
 * power_iterations times v = unit(u W'), u = unit(v W) is computed; it is v W u'. Gradients pass
 * through W, not through u and v. The kernel itself is trained without being replaced by the
 * quotient, as Keras' JAX backend does; a regularizer is of W itself. The layer is taken, also on
 * failure. Source: keras/src/layers/normalization/spectral_normalization.py; Miyato et al., arXiv
 * 1802.05957.
 */
typedef struct {
    char        unset;
    CornuLayer *layer;                    /* required: with a weight kernel or embeddings */
    int64_t     power_iterations;         /* default 1 */
    const char *name;
    bool        frozen;
    const char *dtype;
} CornuSpectralNormalizationConfig;

CornuLayer *cornu_spectral_normalization_from(const CornuSpectralNormalizationConfig *config);
#define cornu_spectral_normalization(...) \
    cornu_spectral_normalization_from(        \
        &(CornuSpectralNormalizationConfig){ .unset = 0, __VA_ARGS__ })

/*
 * An embedding, and its reverse (cornu_call_reverse in functional.h):
 *     y = rows of embeddings (input_dim, output_dim), as embedding;
 *     y = x embeddings' or, with no_tie_weights, x reverse_embeddings (output_dim, input_dim):
 *         logits (B, …, input_dim), with logit_soft_cap c tanh(y / c) c
 *
 *     CornuLayer *tokens = cornu_reversible_embedding(1000, 64);
 *     CornuSymbol *x = cornu_call(tokens, text), *logits = cornu_call_reverse(tokens, x);
 *
 * Source: keras/src/layers/core/reversible_embedding.py; Press and Wolf, arXiv 1608.05859.
 */
typedef struct {
    char             unset;
    int64_t          input_dim, output_dim;   /* required, at least 1 */
    bool             no_tie_weights;
    CornuInitializer embeddings_initializer;  /* default random_uniform; of both weights */
    CornuRegularizer embeddings_regularizer, activity_regularizer;
    CornuConstraint  embeddings_constraint;
    bool             mask_zero;
    const char      *reverse_dtype;           /* of the reverse: "float32", "bfloat16" or
                                                 "float16"; default the layer's */
    double           logit_soft_cap;          /* default none */
    const char      *name;
    bool             frozen;
    const char      *dtype;
} CornuReversibleEmbeddingConfig;

CornuLayer *cornu_reversible_embedding_from(const CornuReversibleEmbeddingConfig *config);
#define cornu_reversible_embedding(...) \
    cornu_reversible_embedding_from(&(CornuReversibleEmbeddingConfig){ .unset = 0, __VA_ARGS__ })

/* y = x. Source: keras/src/layers/core/identity.py. */
typedef struct {
    char        unset;
    const char *name;
    const char *dtype;
} CornuIdentityLayerConfig;

CornuLayer *cornu_identity_layer_from(const CornuIdentityLayerConfig *config);
#define cornu_identity_layer(...) \
    cornu_identity_layer_from(&(CornuIdentityLayerConfig){ .unset = 0, __VA_ARGS__ })

/* Layers one after another, each with the mask of the one before; they are taken, also on failure.
 * Source: keras/src/layers/preprocessing/pipeline.py. */
typedef struct {
    char        unset;
    CornuLayer *layers[CORNU_MAX_WRAPPED];    /* at least one, up to the first NULL */
    const char *name;
} CornuPipelineConfig;

CornuLayer *cornu_pipeline_from(const CornuPipelineConfig *config);
#define cornu_pipeline(...) \
    cornu_pipeline_from(&(CornuPipelineConfig){ .unset = 0, .layers = { __VA_ARGS__ } })

/* y = x, and l1 times the sum of |x|, l2 times the sum of x^2, both divided by the rows of the
 * batch, are added to the loss.
 * Source: keras/src/layers/regularization/activity_regularization.py. */
typedef struct {
    char        unset;
    double      l1, l2;                   /* 0 or more */
    const char *name;
    const char *dtype;
} CornuActivityRegularizationConfig;

CornuLayer *cornu_activity_regularization_from(const CornuActivityRegularizationConfig *config);
#define cornu_activity_regularization(...)                                                     \
    cornu_activity_regularization_from(&(CornuActivityRegularizationConfig){ .unset = 0, \
                                                                                __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
