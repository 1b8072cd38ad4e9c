/* The table of layers.def, and nothing else, so that no layer needs the others. */
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
