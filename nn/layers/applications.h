/*
 * Layers that keras.applications defines for single networks.
 */
#ifndef CORNU_NN_LAYERS_APPLICATIONS_H
#define CORNU_NN_LAYERS_APPLICATIONS_H

#include "layer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y = x gamma, of ConvNeXt: gamma (projection_dim), along the last axis, initially init_values.
 * Source: keras/src/applications/convnext.py; Touvron et al., "Going deeper with Image
 * Transformers", arXiv 2103.17239. */
typedef struct {
    char        unset;
    double      init_values;              /* required; CORNU_ZERO for 0 */
    int64_t     projection_dim;           /* required, at least 1 */
    const char *name;
    bool        frozen;
    const char *dtype;
} CornuLayerScaleConfig;

CornuLayer *cornu_layer_scale_from(const CornuLayerScaleConfig *config);
#define cornu_layer_scale(...) \
    cornu_layer_scale_from(&(CornuLayerScaleConfig){ .unset = 0, __VA_ARGS__ })

/* In training each row becomes 0 with probability drop_path_rate, else it is divided by 1 -
 * drop_path_rate. Source: keras/src/applications/convnext.py; Huang et al., "Deep Networks with
 * Stochastic Depth", arXiv 1603.09382. */
typedef struct {
    char        unset;
    double      drop_path_rate;           /* 0 to 1, less than 1 */
    const char *name;
    const char *dtype;
} CornuStochasticDepthConfig;

CornuLayer *cornu_stochastic_depth_from(const CornuStochasticDepthConfig *config);
#define cornu_stochastic_depth(...) \
    cornu_stochastic_depth_from(&(CornuStochasticDepthConfig){ .unset = 0, __VA_ARGS__ })

/* y = a + scale b of two inputs, of InceptionResNetV2.
 * Source: keras/src/applications/inception_resnet_v2.py. */
typedef struct {
    char        unset;
    double      scale;                    /* required; CORNU_ZERO for 0 */
    const char *name;
    const char *dtype;
} CornuCustomScaleLayerConfig;

CornuLayer *cornu_custom_scale_layer_from(const CornuCustomScaleLayerConfig *config);
#define cornu_custom_scale_layer(...) \
    cornu_custom_scale_layer_from(&(CornuCustomScaleLayerConfig){ .unset = 0, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
