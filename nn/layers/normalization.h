/*
 * Layers that normalize each row separately, the same in training and inference; and one that
 * normalizes by the statistics of a data set. batch_normalization is in layers.h. Statistics are
 * f32 under any policy.
 *
 * Axes are those of the input after the batch, negative ones count from the last: .axis is one,
 * .axes are several, ending at the first 0; giving both is an error.
 */
#ifndef CORNU_NN_LAYERS_NORM_H
#define CORNU_NN_LAYERS_NORM_H

#include "../../datasets/pipeline/dataset.h"
#include "layer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y = gamma (x - mean) / sqrt(variance + epsilon) + beta: mean and variance, without Bessel's
 * correction, over the axes; gamma and beta have these axes.
 * Source: keras/src/layers/normalization/layer_normalization.py; Ba et al., arXiv 1607.06450. */
typedef struct {
    char             unset;
    int64_t          axis;                /* default -1 */
    double           epsilon;             /* default 0.001, or CORNU_ZERO */
    bool             no_center, no_scale; /* without beta, without gamma  */
    bool             rms_scaling;         /* gamma x / sqrt(variance + epsilon); Keras advises
                                             against it. Not the same as rms_normalization */
    CornuInitializer beta_initializer, gamma_initializer;         /* default zeros, ones */
    CornuRegularizer beta_regularizer, gamma_regularizer;
    CornuConstraint  beta_constraint, gamma_constraint;
    int64_t          axes[CORNU_MAX_RANK];
    const char      *name;
    bool             frozen;
    const char      *dtype;
} CornuLayerNormalizationConfig;

CornuLayer *cornu_layer_normalization_from(const CornuLayerNormalizationConfig *config);
#define cornu_layer_normalization(...) \
    cornu_layer_normalization_from(&(CornuLayerNormalizationConfig){ .unset = 0, __VA_ARGS__ })

/* y = scale x / sqrt(mean of x^2 + epsilon), the mean over the axes; scale has these axes.
 * Source: keras/src/layers/normalization/rms_normalization.py; Zhang and Sennrich,
 * arXiv 1910.07467. */
typedef struct {
    char        unset;
    int64_t     axis;                     /* default -1 */
    double      epsilon;                  /* default 1e-6, or CORNU_ZERO */
    int64_t     axes[CORNU_MAX_RANK];
    const char *name;
    bool        frozen;
    const char *dtype;
} CornuRmsNormalizationConfig;

CornuLayer *cornu_rms_normalization_from(const CornuRmsNormalizationConfig *config);
#define cornu_rms_normalization(...) \
    cornu_rms_normalization_from(&(CornuRmsNormalizationConfig){ .unset = 0, __VA_ARGS__ })

/* y = x / max(|x|, 1e-12), |x| being the l2 norm over the axes.
 * Source: keras/src/layers/normalization/unit_normalization.py. */
typedef struct {
    char        unset;
    int64_t     axis;                     /* default -1 */
    int64_t     axes[CORNU_MAX_RANK];
    const char *name;
    const char *dtype;
} CornuUnitNormalizationConfig;

CornuLayer *cornu_unit_normalization_from(const CornuUnitNormalizationConfig *config);
#define cornu_unit_normalization(...) \
    cornu_unit_normalization_from(&(CornuUnitNormalizationConfig){ .unset = 0, __VA_ARGS__ })

/* As layer_normalization over all axes of a row, but separately for each of `groups` equal groups
 * of channels, which are along .axis; gamma and beta have one element per channel.
 * Source: keras/src/layers/normalization/group_normalization.py; Wu and He, arXiv 1803.08494. */
typedef struct {
    char             unset;
    int64_t          groups;              /* default 32; -1: one per channel */
    int64_t          axis;                /* default -1 */
    double           epsilon;             /* default 0.001, or CORNU_ZERO */
    bool             no_center, no_scale;
    CornuInitializer beta_initializer, gamma_initializer;         /* default zeros, ones */
    CornuRegularizer beta_regularizer, gamma_regularizer;
    CornuConstraint  beta_constraint, gamma_constraint;
    const char      *name;
    bool             frozen;
    const char      *dtype;
} CornuGroupNormalizationConfig;

CornuLayer *cornu_group_normalization_from(const CornuGroupNormalizationConfig *config);
#define cornu_group_normalization(...) \
    cornu_group_normalization_from(&(CornuGroupNormalizationConfig){ .unset = 0, __VA_ARGS__ })

/* y = (x - mean) / max(sqrt(variance), 1e-7), with a mean and a variance for each position along
 * the axes. Both are either given, the same for all positions, or computed by cornu_adapt; until
 * then they are 0 and 1. Non-trainable weights: mean, variance, and Keras' count, which is 0; no
 * weights where mean and variance are given. Source:
 * keras/src/layers/preprocessing/normalization.py. */
typedef struct {
    char        unset;
    int64_t     axis;                     /* default -1; CORNU_ZERO is Keras' None: no axes, a
                                             single mean and variance */
    double      mean, variance;           /* both or none; CORNU_ZERO for 0 */
    bool        invert;                   /* y = x max(sqrt(variance), 1e-7) + mean */
    int64_t     axes[CORNU_MAX_RANK];
    CornuNumbers means, variances;        /* in place of mean and variance: of the same shape,
                                             broadcast to the extents along the axes */
    const char *name;
    const char *dtype;
} CornuNormalizationConfig;

CornuLayer *cornu_normalization_from(const CornuNormalizationConfig *config);
#define cornu_normalization(...) \
    cornu_normalization_from(&(CornuNormalizationConfig){ .unset = 0, __VA_ARGS__ })

/* Sets mean and variance of such a layer to those of the data: the rows of component 0 of a data
 * set, or of an array, of any number type. The layer may be built or not, its model compiled or
 * not. CORNU_ERR_SHAPE if the rows do not have the shape of the layer's input.
 *
 *     CornuLayer *scaler = cornu_normalization();
 *     cornu_adapt(scaler, .x = features);
 *     cornu_model_add(model, scaler);
 */
typedef struct {
    char          unset;
    CornuLayer   *layer;
    CornuDataset *data;                   /* read once from the start; stays the caller's */
    CornuArray    x;
} CornuAdaptConfig;

CornuStatus cornu_adapt_from(const CornuAdaptConfig *config);
#define cornu_adapt(...) cornu_adapt_from(&(CornuAdaptConfig){ .unset = 0, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
