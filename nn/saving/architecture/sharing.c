/* Layers that stand in several places of an architecture, as one that a wrapper has and the model
 * calls, too: Keras' shared_object_id. Source: keras/src/saving/serialization_lib.py. */
#include "../../model/traced/traced_internal.h"
#include "architecture_internal.h"

#include <stdio.h>

/* Of the architecture that this thread writes, or reads. */
static _Thread_local struct {
    bool         writes, reads;
    CornuLookup  places;      /* how many a layer has */
    CornuLookup  numbers;     /* of ids in `layers` */
    CornuLayer **layers;
    int          count, space;
} sharing;

/* ---- Writing ---- */

static CornuStatus count_places(const CornuLayer *layer);

static CornuStatus count_inner(const CornuLayer *layer)
{
    for (int i = 0; i < layer->inner_count; i++) CORNU__TRY(count_places(layer->inner[i]));
    return CORNU_OK;
}

/* The graphs of a traced layer share the layers that they call by their names. */
static CornuStatus count_graphs(const CornuTraced *traced)
{
    CornuLookup own = { 0 };
    CornuStatus status = CORNU_OK;
    for (int g = 0; g < traced->graph_count; g++) {
        const CornuLayer *model = &traced->graphs[g].model->base;
        for (int i = 0; i < model->inner_count && !status; i++) {
            if (cornu__lookup_find(&own, model->inner[i]) >= 0) continue;
            status = cornu__lookup_set(&own, model->inner[i], 0);
            if (!status) status = count_places(model->inner[i]);
        }
    }
    cornu__lookup_clear(&own);
    return status;
}

static CornuStatus count_places(const CornuLayer *layer)
{
    const int count = cornu__lookup_find(&sharing.places, layer);
    CORNU__TRY(cornu__lookup_set(&sharing.places, layer, count < 0 ? 1 : count + 1));
    if (count > 0) return CORNU_OK;
    return cornu__as_traced(layer) ? count_graphs(cornu__as_traced(layer)) : count_inner(layer);
}

CornuStatus cornu__sharing_write(const CornuModel *model)
{
    sharing.writes = true;
    return count_inner(&model->base);
}

json_t *cornu__shared_to_json(const CornuLayer *layer, json_t *value)
{
    if (!sharing.writes || cornu__lookup_find(&sharing.places, layer) < 2) return value;
    int id = cornu__lookup_find(&sharing.numbers, layer);
    if (id < 0) id = ++sharing.count;
    if (cornu__lookup_set(&sharing.numbers, layer, id)) {
        json_decref(value);
        return NULL;
    }
    return cornu__json_with(value, "shared_object_id", json_integer(id));
}

/* ---- Reading ---- */

void cornu__sharing_read(void)
{
    sharing.reads = true;
    sharing.numbers.of_strings = true;
}

/* The id as a string; false if the value has none. */
static bool id_of(const json_t *value, char id[32])
{
    const json_t *number = json_object_get(value, "shared_object_id");
    if (!sharing.reads || !json_is_integer(number)) return false;
    snprintf(id, 32, "%lld", (long long)json_integer_value(number));
    return true;
}

CornuLayer *cornu__shared_layer(const json_t *value)
{
    char      id[32];
    const int known = id_of(value, id) ? cornu__lookup_find(&sharing.numbers, id) : -1;
    return known < 0 ? NULL : cornu_layer_take(sharing.layers[known]);
}

CornuStatus cornu__share_layer(const json_t *value, CornuLayer *layer)
{
    char id[32];
    if (!id_of(value, id)) return CORNU_OK;
    CORNU__TRY(cornu__reserve(&sharing.layers, &sharing.space, sharing.count, 1,
                              sizeof *sharing.layers));
    CORNU__TRY(cornu__lookup_set(&sharing.numbers, id, sharing.count));
    sharing.layers[sharing.count++] = cornu_layer_take(layer);
    return CORNU_OK;
}

void cornu__sharing_end(void)
{
    for (int i = 0; i < sharing.count && sharing.reads; i++) cornu_layer_free(sharing.layers[i]);
    cornu__release(sharing.layers);
    cornu__lookup_clear(&sharing.places);
    cornu__lookup_clear(&sharing.numbers);
    sharing.layers = NULL;
    sharing.count = sharing.space = 0;
    sharing.writes = sharing.reads = sharing.numbers.of_strings = false;
}
