/* Only the table of layers.def, so that no layer depends on the others; or of CORNU_LAYERS, some of
 * its rows (prediction/inference.mk). */
#include "layer_internal.h"

#if !defined(CORNU_LAYERS)
#define CORNU_LAYERS "layers.def"
#endif

#define LAYER(name) extern const CornuLayerClass cornu__##name##_class;
#include CORNU_LAYERS
#undef LAYER

const CornuLayerClass *const cornu__layer_classes[] = {
#define LAYER(name) &cornu__##name##_class,
#include CORNU_LAYERS
#undef LAYER
    NULL
};
