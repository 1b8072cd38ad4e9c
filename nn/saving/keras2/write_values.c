/* Writing arrays into files of Keras 2's format, as Keras 3 does. Source:
 * keras/src/legacy/saving/legacy_h5_format.py. */
#include "keras2_weights_internal.h"

#include "../../../device/memory_internal.h"
#include "../../layers/layer_internal.h"
#include "../../model/model_internal.h"

/* Writes arrays under their names into a group, and the list of these. */
static CornuStatus write_listed(CornuHdf5 *file, const char *group, const CornuNamedArray *arrays,
                                const int *order, int count)
{
    const char **names = cornu__allocate((size_t)count + 1, sizeof *names);
    if (!names) return CORNU_ERR_MEMORY;
    CornuStatus status = cornu__hdf5_write_group(file, group);
    for (int i = 0; i < count && !status; i++) {
        const CornuNamedArray *from = &arrays[order ? order[i] : i];
        char                   path[CORNU_KERAS2_MAX_PATH];
        names[i] = from->name;
        status = cornu__keras2_path(path, group, from->name);
        if (!status) status = cornu__hdf5_write(file, path, from->array);
    }
    if (!status) status = cornu__hdf5_write_texts(file, group, "weight_names", names, count);
    cornu__release(names);
    return status;
}

/* Whether a layer, or one in it, has arrays beside its weights. */
static bool has_more(const CornuLayer *layer)
{
    const CornuKerasClass *keras = cornu__keras_class(layer);
    bool more = keras && keras->get_array && keras->get_array(layer).values;
    for (int i = 0; i < layer->inner_count && !more; i++) more = has_more(layer->inner[i]);
    return more;
}

static CornuStatus check(const CornuLayer *layer)
{
    bool narrow = false;
    for (int i = 0; i < layer->weight_count; i++)
        narrow |= layer->weights[i]->stored == CORNU_STORED_I8;
    if (!narrow && !has_more(layer)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s has %s, for which .h5 files of whole models have "
                       "no place; expected one of .keras", cornu_layer_name(layer),
                       narrow ? "weights of 8 bits" : "values beside its weights");
}

CornuStatus cornu__keras2_write_values(CornuHdf5 *file, const CornuModel *model,
                                       const CornuValues *values)
{
    const int    layers = cornu_model_layer_count(model);
    const int    variables = cornu_model_optimizer_variable_count(model);
    const char **names = cornu__allocate((size_t)layers + 1, sizeof *names);
    int         *order = cornu__allocate((size_t)values->weights + 1, sizeof *order);
    CornuStatus  status = names && order ? CORNU_OK : CORNU_ERR_MEMORY;
    for (int i = 0; i < layers && !status; i++) {
        const CornuLayer *layer = cornu_model_layer(model, i);
        char              group[CORNU_KERAS2_MAX_PATH];
        names[i] = cornu_layer_name(layer);
        status = check(layer);
        if (!status) status = cornu__keras2_path(group, "model_weights", names[i]);
        if (!status)
            status = write_listed(file, group, values->arrays, order,
                                  cornu__keras2_order(model, layer, order));
    }
    if (!status)
        status = cornu__hdf5_write_texts(file, "model_weights", "layer_names", names, layers);
    if (!status && variables)
        status = write_listed(file, "optimizer_weights", values->arrays + values->weights, NULL,
                              variables);
    cornu__release(names);
    cornu__release(order);
    return status;
}
