/*
 * A layer's arguments by Keras' names, for what translates layers: by the fields that its class has
 * for files.
 */
#ifndef CORNU_NN_LAYERS_ARGUMENTS_INTERNAL_H
#define CORNU_NN_LAYERS_ARGUMENTS_INTERNAL_H

#include "layer_internal.h"

/* The place of the argument in the config; NULL if the class does not have it. */
const void *cornu__layer_argument(const CornuLayer *layer, const char *name);

/* An argument's array, with values NULL if none is given. */
const CornuNumbers *cornu__layer_numbers(const CornuLayer *layer, const char *name);

static inline int64_t whole(const CornuLayer *layer, const char *name)
{
    return *(const int64_t *)cornu__layer_argument(layer, name);
}

static inline double number(const CornuLayer *layer, const char *name)
{
    return cornu__number(*(const double *)cornu__layer_argument(layer, name), 0.0);
}

static inline bool flag(const CornuLayer *layer, const char *name)
{
    return *(const bool *)cornu__layer_argument(layer, name);
}

/* A flag that is named by the opposite of Keras'. */
static inline bool given(const CornuLayer *layer, const char *name) { return !flag(layer, name); }

static inline CornuActivation activation_of(const CornuLayer *layer, const char *name)
{
    return *(const CornuActivation *)cornu__layer_argument(layer, name);
}

#endif
