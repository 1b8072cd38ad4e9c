/* A data set with a layer that runs on the host computed of some of its components. */
#include <string.h>

#include "../../../datasets/pipeline/dataset_internal.h"
#include "host_internal.h"

typedef struct {
    const CornuLayer *layer;
    int               first, count;      /* of the components that the layer gets */
} HostMap;

static CornuStatus fetch(CornuStage *stage, CornuSample at, void *const *to, int64_t *valid)
{
    const CornuDataset *dataset = stage->dataset, *source = dataset->source;
    const HostMap      *map = dataset->own;
    CornuArray          in[CORNU_MAX_LAYER_TENSORS];
    CORNU__TRY(cornu__stage_fetch(stage->source, at, stage->map.element, valid));
    for (int c = 0, from = 0; c < dataset->components; c++, from++) {
        if (c != map->first) {
            memcpy(to[c], stage->map.element[from], source->bytes[from]);
            continue;
        }
        from += map->count - 1;
    }
    /* Rows of padding, which are zeros, are not valid data: an unknown string may be an error. */
    CornuArray out = cornu_array_from(to[map->first], dataset->type[map->first]);
    for (int i = 0; i < map->count; i++) {
        CornuType type = source->type[map->first + i];
        if (!dataset->batch_size) {        /* an element is a batch of one row */
            memmove(type.shape.extent + 1, type.shape.extent,
                    sizeof *type.shape.extent * (size_t)type.shape.rank);
            type.shape.rank++;
            type.shape.extent[0] = 1;
        } else {
            type.shape.extent[0] = *valid;
        }
        in[i] = cornu_array_from(stage->map.element[map->first + i], type);
    }
    if (dataset->batch_size) {
        memset(to[map->first], 0, dataset->bytes[map->first]);
        out.type.shape.extent[0] = *valid;
    } else {
        memmove(out.type.shape.extent + 1, out.type.shape.extent,
                sizeof *out.type.shape.extent * (size_t)out.type.shape.rank);
        out.type.shape.rank++;
        out.type.shape.extent[0] = 1;
    }
    if (*valid == 0) return CORNU_OK;
    return cornu__fail_prefix(map->layer->kind->host_call(map->layer, in, map->count, out),
                              cornu_layer_name(map->layer));
}

static CornuStatus open_stage(CornuStage *stage)
{
    stage->map.memory = cornu__element_allocate(stage->dataset->source, stage->map.element);
    return stage->map.memory ? CORNU_OK : CORNU_ERR_MEMORY;
}

static void close_stage(CornuStage *stage) { cornu__release(stage->map.memory); }

static void free_map(CornuDataset *dataset)
{
    cornu__release(dataset->own);
}

static const CornuDatasetKind host_kind = { .fetch = fetch, .open = open_stage,
                                            .close = close_stage, .free = free_map };

/* The type of the layer's result for an element or a batch. */
static CornuStatus result_type(const CornuDataset *dataset, const HostMap *map, CornuType *out)
{
    CornuArray in[CORNU_MAX_LAYER_TENSORS];
    CornuText  text;
    for (int i = 0; i < map->count; i++) {
        CornuType type = cornu_dataset_type(dataset->source, map->first + i);
        if (type.shape.rank == CORNU_MAX_RANK)
            return cornu__fail(CORNU_ERR_SHAPE, "component %d has %d axes, expected fewer",
                               map->first + i, type.shape.rank);
        memmove(type.shape.extent + 1, type.shape.extent,
                sizeof *type.shape.extent * (size_t)type.shape.rank);
        type.shape.rank++;
        type.shape.extent[0] = dataset->batch_size ? dataset->batch_size : 1;
        in[i] = cornu_array_from(NULL, type);
    }
    CORNU__TRY(map->layer->kind->host_type(map->layer, in, map->count, out));
    for (int i = 1; i < out->shape.rank; i++)
        if (out->shape.extent[i] == CORNU_NONE)
            return cornu__fail(CORNU_ERR_SHAPE, "the result is %s, expected one length for a data "
                               "set: give .output_sequence_length",
                               cornu_shape_print(&text, out->shape));
    if (dataset->batch_size) return CORNU_OK;
    out->shape.rank--;
    memmove(out->shape.extent, out->shape.extent + 1,
            sizeof *out->shape.extent * (size_t)out->shape.rank);
    return CORNU_OK;
}

CornuDataset *cornu_dataset_layer(CornuDataset *source, const CornuLayer *layer, int first,
                                  int count)
{
    CornuDataset *dataset = cornu__dataset_derive(source, &host_kind, "cornu_dataset_layer");
    if (!dataset) return NULL;
    HostMap   *map = dataset->own = cornu__allocate(1, sizeof *map);
    CornuType  type;
    if (!map) goto fail;
    if (!layer || !cornu__on_host(layer) || first < 0 || count < 1 ||
        count > source->components - first) {
        cornu__fail(CORNU_ERR_ARGUMENT, "cornu_dataset_layer: %s on component %d of %d, expected "
                    "a layer that runs on the host, and a component",
                    layer ? cornu_layer_name(layer) : "NULL", first, source->components);
        goto fail;
    }
    *map = (HostMap){ layer, first, count };
    if (cornu__fail_prefix(result_type(dataset, map, &type), cornu_layer_name(layer))) goto fail;
    dataset->components -= count - 1;
    for (int c = first + 1; c < dataset->components; c++) {
        dataset->type[c] = source->type[c + count - 1];
        dataset->bytes[c] = source->bytes[c + count - 1];
    }
    dataset->type[first] = type;
    dataset->bytes[first] = cornu_type_bytes(type);
    return dataset;
fail:
    cornu_dataset_free(dataset);
    return cornu__null();
}
