/* Only the table of layers.def, so that no layer depends on the others. */
#include "layer_internal.h"

#define LAYER(name) extern const CornuLayerClass cornu__##name##_class;
#include "layers.def"
#undef LAYER

const CornuLayerClass *const cornu__layer_classes[] = {
#define LAYER(name) &cornu__##name##_class,
#include "layers.def"
#undef LAYER
    NULL
};
