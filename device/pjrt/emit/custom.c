/* Registered ops: what they are composed of. */
#include "emit.h"

CornuEmit *const cornu__custom_stablehlo = CORNU_DECOMPOSED;
