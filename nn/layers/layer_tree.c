/* What applies to a layer and its inner layers: names, generators, policies, states. */
#include <stdio.h>
#include <string.h>

#include "../fields/field_internal.h"
#include "layer_internal.h"

/* ---- Names ---- */

/* Counts inner layers too, but only the first of a pair: Keras makes both from one. */
CornuStatus cornu__layer_count_label(const CornuLayer *layer, CornuLookup *labels)
{
    const int count = cornu__lookup_find(labels, layer->class_label);
    CORNU__TRY(cornu__lookup_set(labels, layer->class_label, count < 0 ? 1 : count + 1));
    const bool around = layer->inner_count > 0 && layer->inner[0]->outer;
    return around ? cornu__layer_count_label(layer->inner[0], labels) : CORNU_OK;
}

/* Sets the name to prefix + base; base may begin with the prefix already. */
static CornuStatus set_name(CornuLayer *layer, const char *prefix, const char *base)
{
    const size_t known = strlen(prefix), length = known + strlen(base) + 1;
    if (!strncmp(base, prefix, known)) base += known;
    char *name = cornu__allocate(length, 1);
    if (!name) return CORNU_ERR_MEMORY;
    snprintf(name, length, "%s%s", prefix, base);
    cornu__release(layer->name);
    layer->name = name;
    return CORNU_OK;
}

static CornuStatus name_one(CornuLayer *layer, const char *prefix, const CornuLookup *labels)
{
    char      text[sizeof layer->class_label + 16];
    const int same = cornu__lookup_find(labels, layer->class_label);
    if (layer->name) return set_name(layer, prefix, layer->name);
    snprintf(text, sizeof text, same > 0 ? "%s_%d" : "%s", layer->class_label, same);
    return set_name(layer, prefix, text);
}

static CornuStatus name_all(CornuLayer *layer, const char *prefix, const CornuLookup *labels)
{
    CORNU__TRY(name_one(layer, prefix, labels));
    for (int i = 0; i < layer->inner_count && layer->inner[i]->outer; i++)
        CORNU__TRY(name_all(layer->inner[i], layer->inner[i]->prefix, labels));
    return CORNU_OK;
}

CornuStatus cornu__layer_set_name(CornuLayer *layer, const CornuLookup *labels)
{
    return name_all(layer, "", labels);
}

CornuStatus cornu__layer_name_list(CornuLayer *layer)
{
    for (int i = 0; i < layer->inner_count; i++) {
        CornuLayer *inner = layer->inner[i];
        char        name[sizeof inner->class_label + 16];
        int         same = 0;
        for (int k = 0; k < i; k++) same += layer->inner[k]->kind == inner->kind;
        snprintf(name, sizeof name, same ? "%s_%d" : "%s", inner->class_label, same);
        if (!inner->name && !(inner->name = cornu__copy_text(name))) return CORNU_ERR_MEMORY;
    }
    return CORNU_OK;
}

/* ---- Inner layers ---- */

CornuStatus cornu__check_depth(const char *name, const CornuLayer *inner)
{
    if (inner->depth < CORNU_MAX_LAYER_DEPTH) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: contains %s, whose layers are nested %d deep; "
                       "expected less than %d", name, cornu_layer_name(inner),
                       inner->depth, CORNU_MAX_LAYER_DEPTH);
}

void cornu__layer_add_inner(CornuLayer *layer, CornuLayer *inner, const char *prefix)
{
    layer->inner = layer->wrapped;
    layer->inner[layer->inner_count++] = inner;
    inner->owners++;
    if (layer->depth <= inner->depth) layer->depth = inner->depth + 1;
    inner->prefix = prefix;
    inner->outer = layer;
}

void cornu__layer_free_unowned(CornuLayer *inner)
{
    if (inner && inner->owners == 0) cornu_layer_free(inner);
}

void cornu__layer_set_generators(CornuLayer *layer, uint64_t seed, int64_t first)
{
    layer->seed = seed;
    layer->generator = first;
    for (int i = 0; i < layer->inner_count; i++) {
        cornu__layer_set_generators(layer->inner[i], seed, first + 1);
        first += cornu__layer_generators(layer->inner[i]);
    }
    for (int i = 0; i < layer->own_count; i++) {
        layer->weights[i]->seed = seed;
        layer->weights[i]->generator = first + 1 + i;
    }
    layer->numbered = true;
}

void cornu_layer_set_trainable(CornuLayer *layer, bool trainable)
{
    CORNU__NEED_OR(layer, );
    layer->frozen = !trainable;
    for (int i = 0; i < layer->inner_count; i++)
        cornu_layer_set_trainable(layer->inner[i], trainable);
}

void cornu__layer_count_compiled(CornuLayer *layer, int models)
{
    layer->compiled += models;
    for (int i = 0; i < layer->inner_count; i++)
        cornu__layer_count_compiled(layer->inner[i], models);
}

/* Replaces the layers among the arguments by copies; NULL where that fails. */
static void copy_layers(const CornuField *field, char *config)
{
    for (; field->name; field++) {
        CornuLayer **layers = (CornuLayer **)(void *)(config + field->offset);
        for (int i = 0; i < field->kind->most_layers; i++)
            if (layers[i]) layers[i] = cornu__layer_copy(layers[i]);
    }
}

void cornu__layer_copy_remat(CornuLayer *to, const CornuLayer *from)
{
    if (from->remat) {
        cornu__remat_release(to->remat);
        to->remat = cornu__remat_retain(from->remat);
    }
    for (int i = 0; i < to->inner_count && i < from->inner_count; i++)
        cornu__layer_copy_remat(to->inner[i], from->inner[i]);
}

CornuLayer *cornu__layer_copy(const CornuLayer *layer)
{
    const CornuKerasClass *keras = cornu__keras_class(layer);
    char *config = cornu__allocate(keras->config_size, 1);
    if (!config) return cornu__null();
    memcpy(config, cornu__config(layer), keras->config_size);
    copy_layers(keras->fields, config);
    CornuLayer *copy = keras->from ? keras->from(config) : layer->from(layer->kind, config);
    cornu__release(config);
    if (!copy) return NULL;
    copy->own_policy = layer->own_policy;
    copy->quantized = layer->quantized;
    copy->frozen = layer->frozen;
    copy->lora_rank = layer->lora_rank;
    copy->lora_alpha = layer->lora_alpha;
    cornu__layer_copy_remat(copy, layer);
    if (!layer->name) return copy;
    cornu__release(copy->name);
    if ((copy->name = cornu__copy_text(layer->name))) return copy;
    cornu_layer_free(copy);
    return cornu__null();
}

bool cornu__layer_apply_policy(CornuLayer *layer, const CornuPolicy *policy, bool last)
{
    const CornuPolicy *own = layer->own_policy ? layer->own_policy : policy;
    if (layer->kind->apply_policy) return layer->kind->apply_policy(layer, own, last);
    layer->compute = last && layer->weight_count == 0 ? CORNU_F32 : own->compute;
    layer->result = last ? CORNU_F32 : layer->compute;
    layer->variable = own->variable;
    /* Keras scales the loss of mixed precision alone. */
    bool narrow = layer->compute == CORNU_F16 && own->variable == CORNU_F32;
    for (int i = 0; i < layer->inner_count; i++)
        narrow |= cornu__layer_apply_policy(layer->inner[i], policy, last);
    return narrow;
}

/* ---- States ---- */

bool cornu__layer_has_states(const CornuLayer *layer)
{
    bool any = layer->states[0] != NULL;
    for (int i = 0; i < layer->inner_count; i++) any |= cornu__layer_has_states(layer->inner[i]);
    return any;
}

CornuTensor *cornu_layer_state(CornuLayer *layer, const CornuCall *call, int i, CornuShape shape)
{
    const CornuType type = cornu_type_from(CORNU_F32, shape);
    if (call->shapes_only) return cornu_op_constant(call->graph, type, 0.0);
    CornuVariable **state = &layer->states[i];
    if (!*state)
        *state = cornu_variable_create(cornu_graph_device(call->graph), type, "rnn_state",
                                       .spread = CORNU_PER_SHARD);
    if (!*state) return NULL;
    const int64_t rows = cornu_variable_type(*state).shape.extent[0];
    if (rows == shape.extent[0]) return cornu_read(call->graph, *state);
    return cornu__fail_null(CORNU_ERR_SHAPE, "%s: is stateful and began with batches of %lld rows "
                            "on each shard, this one has %lld; expected the same",
                            cornu_layer_name(layer), (long long)rows, (long long)shape.extent[0]);
}

CornuStatus cornu_layer_set_state(CornuLayer *layer, const CornuCall *call, int i,
                                  CornuTensor *value)
{
    value = cornu_op_convert(value, CORNU_F32);
    if (!value) return cornu_error_status();
    return call->shapes_only ? CORNU_OK : cornu_assign(layer->states[i], value);
}

static CornuStatus write_zeros(CornuVariable *state)
{
    const CornuType type = cornu_variable_host_type(state);
    void *zeros = cornu__allocate(cornu_type_bytes(type), 1);
    if (!zeros) return CORNU_ERR_MEMORY;
    CornuStatus status = cornu_variable_write(state, cornu_array_from(zeros, type));
    cornu__release(zeros);
    return status;
}

CornuStatus cornu_layer_reset_states(CornuLayer *layer)
{
    CORNU__NEED(layer);
    for (int i = 0; i < CORNU_MAX_LAYER_STATES; i++)
        if (layer->states[i]) CORNU__TRY(write_zeros(layer->states[i]));
    for (int i = 0; i < layer->inner_count; i++)
        CORNU__TRY(cornu_layer_reset_states(layer->inner[i]));
    return CORNU_OK;
}
