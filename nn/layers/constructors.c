/* The constructor of most layers, by what their class says. */
#include <string.h>

#include "layer_internal.h"

/* Keras' default for arguments of this name, in all classes that have one; `given` for others. */
static CornuInitializer usual_initializer(const char *argument, CornuInitializer given)
{
    static const struct { const char *name, *usual; } usual[] = {
        { "kernel_initializer", "glorot_uniform" },
        { "depthwise_initializer", "glorot_uniform" },
        { "pointwise_initializer", "glorot_uniform" },
        { "recurrent_initializer", "orthogonal" },
        { "embeddings_initializer", "random_uniform" },
        { "bias_initializer", "zeros" },
        { "alpha_initializer", "zeros" },
        { "beta_initializer", "zeros" },
        { "gamma_initializer", "ones" },
        { "moving_mean_initializer", "zeros" },
        { "moving_variance_initializer", "ones" },
    };
    if (given.kind != CORNU_DEFAULT_INITIALIZER || given.call) return given;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (!strcmp(argument, usual[i].name)) return cornu_initializer(usual[i].usual);
    return given;
}

/* Checks what many classes have under one kind of field, so that none forgets to. */
static CornuStatus resolve_fields(CornuLayer *layer)
{
    const CornuKerasClass *keras = cornu__keras_class(layer);
    const char            *name = cornu_layer_name(layer);
    for (const CornuField *field = keras->fields; field->name; field++) {
        void *at = (char *)layer + keras->config_offset + field->offset;
        if (field->kind == CORNU_FIELD_ACTIVATION)
            CORNU__TRY(cornu__check_activation(name, *(const CornuActivation *)at));
        if (field->kind == CORNU_FIELD_INITIALIZER) {
            CORNU__TRY(cornu__check_initializer(name, at));
            *(CornuInitializer *)at = usual_initializer(field->name, *(CornuInitializer *)at);
        }
        if (strcmp(field->name, "activity_regularizer")) continue;
        CORNU__TRY(cornu__check_activity(name, at));
        layer->activity_regularizer = *(const CornuRegularizer *)at;
    }
    return CORNU_OK;
}

static const char **text_in(void *config, size_t offset)
{
    return (const char **)(void *)((char *)config + offset);
}

CornuLayer *cornu__layer_from(const CornuLayerClass *kind, const void *config)
{
    const CornuKerasClass *keras = cornu__keras_class_of(kind);
    if (keras->from) return keras->from(config);
    CornuLayer *layer = cornu_layer_create(kind, *text_in((void *)config, keras->name_offset),
                                           *text_in((void *)config, keras->dtype_offset));
    if (!layer) return NULL;
    layer->from = cornu__layer_from;
    char *own = memcpy((char *)layer + keras->config_offset, config, keras->config_size);
    *text_in(own, keras->name_offset) = *text_in(own, keras->dtype_offset) = NULL;
    if (keras->frozen_offset) layer->frozen = *(const bool *)(own + keras->frozen_offset);
    if (!resolve_fields(layer) && (!keras->resolve || !keras->resolve(layer))) return layer;
    cornu_layer_free(layer);
    return cornu__null();
}
