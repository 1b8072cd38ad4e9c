/* Pipeline: layers one after another, as one. Source:
 * keras/src/layers/preprocessing/pipeline.py. */
#include "../layer_internal.h"

typedef CORNU__LAYER(CornuPipelineConfig) Pipeline;   /* its layers are the inner layers */

static CornuStatus pipeline_build(CornuLayer *layer, CornuShape input)
{
    for (int i = 0; i < layer->inner_count; i++) {
        CORNU__TRY(cornu__layer_build_inner(layer, i, input));
        input = layer->inner[i]->output;
    }
    return CORNU_OK;
}

/* x and *mask after the first `count` layers. */
static CornuTensor *through(CornuLayer *layer, const CornuCall *call, int count, CornuTensor *x,
                            CornuTensor **mask)
{
    CornuTensor *out[CORNU_MAX_LAYER_TENSORS], *out_masks[CORNU_MAX_LAYER_TENSORS];
    for (int i = 0; i < count && x; i++) {
        x = cornu__layer_call_masked(layer->inner[i], call, &x, 1, mask, out, out_masks);
        *mask = out_masks[0];
    }
    return x;
}

static CornuTensor *pipeline_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    CornuTensor *mask = call->mask;
    return through(layer, call, layer->inner_count, x, &mask);
}

/* A mask that is made of values needs those that the layers before give; they are recorded once
 * more, as in inference, where no layer changes its weights. */
static CornuTensor *mask(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    CornuCall    own = *call;
    CornuTensor *none = call->mask;
    int          last = layer->inner_count - 1;
    while (last >= 0 && !layer->inner[last]->kind->mask) last--;
    if (last < 0) return call->mask;
    if (layer->inner[last]->kind->mask == cornu__no_mask) return NULL;
    own.training = false;
    own.augments = false;
    own.loss = NULL;
    x = through(layer, &own, last, x, &none);
    own.mask = none;
    return cornu_layer_mask(layer->inner[last], &own, x);
}

static CornuLayer *pipeline_from(const void *config) { return cornu_pipeline_from(config); }

static const CornuField fields[] = {
    { "layers", CORNU_FIELD_LAYERS, offsetof(CornuPipelineConfig, layers) },
    { 0 },
};

static const char *const folders[] = { "_pipeline_layers/", NULL };

const CornuLayerClass cornu__pipeline_class = {
    .class_name = "Pipeline", .size = sizeof(Pipeline), .build = pipeline_build,
    .call = pipeline_call, .mask = mask, .keeps_dtypes = true,
    .keras = &(const CornuKerasClass){ CORNU__SAVED(fields, Pipeline, pipeline_from),
                                       .folders = folders,
                                       .never_trains = true, .never_typed = true },
};

static CornuStatus pipeline_check(const CornuPipelineConfig *config, const char *name)
{
    if (!config->layers[0])
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .layers is empty, expected at least one", name);
    for (int i = 0; i < CORNU_MAX_WRAPPED && config->layers[i]; i++) {
        const int outputs = cornu_layer_outputs(config->layers[i]);
        CORNU__TRY(cornu__check_depth(name, config->layers[i]));
        for (int k = 0; k < i; k++)
            if (config->layers[k] == config->layers[i])
                return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .layers has %s twice", name,
                                   cornu_layer_name(config->layers[i]));
        if (outputs > 1)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: layer %d gives %d tensors, expected 1",
                               name, i, outputs);
    }
    return CORNU_OK;
}

CornuLayer *cornu_pipeline_from(const CornuPipelineConfig *config)
{
    CornuLayer *layer = NULL;
    if (cornu__refused() || pipeline_check(config, config->name ? config->name : "pipeline"))
        goto fail;
    layer = cornu_layer_create(&cornu__pipeline_class, config->name, NULL);
    if (!layer) goto fail;
    for (int i = 0; i < CORNU_MAX_WRAPPED && config->layers[i]; i++) {
        ((Pipeline *)layer)->config.layers[i] = config->layers[i];
        cornu__layer_add_inner(layer, config->layers[i], "");
    }
    layer->takes_integers = layer->inner[0]->takes_integers;
    if (cornu__layer_name_list(layer) == CORNU_OK) return layer;
    cornu_layer_free(layer);
    return cornu__null();
fail:
    for (int i = 0; i < CORNU_MAX_WRAPPED && config->layers[i]; i++) {
        bool again = false;
        for (int k = 0; k < i; k++) again |= config->layers[k] == config->layers[i];
        if (!again) cornu__layer_free_unowned(config->layers[i]);
    }
    return cornu__null();
}
