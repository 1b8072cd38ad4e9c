/* What files say of a class that they do not hold. */
#include "layer_internal.h"

const CornuKerasClass cornu__no_keras_class = { 0 };
