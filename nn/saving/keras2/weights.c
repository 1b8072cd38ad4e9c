/* Weights and optimizers in the files of Keras 2, and of Keras 3 in that format: arrays by their
 * names, which attributes of their groups list. Source: tf_keras/src/saving/legacy/hdf5_format.py.
 * */
#include "keras2_weights_internal.h"

#include "../../../device/memory_internal.h"
#include "../../model/model_internal.h"

#include <stdio.h>
#include <string.h>

enum { MAX_PATH = CORNU_KERAS2_MAX_PATH };

CornuStatus cornu__keras2_path(char path[MAX_PATH], const char *group, const char *name)
{
    const int length = snprintf(path, MAX_PATH, "%s%s%s", group, *group ? "/" : "", name);
    if (length < MAX_PATH) return CORNU_OK;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "\"%.60s\" has a name of %d characters, expected at "
                       "most %d", group, length, MAX_PATH - 1);
}

/* Reads an array; messages name the weight. */
static CornuStatus read_array(CornuHdf5 *file, const char *path, CornuNamedArray *to)
{
    return cornu__fail_prefix(cornu__hdf5_read(file, path, &to->array), to->name);
}

/* ---- Lists of names ---- */

/* A long list is split over several attributes, "weight_names0", "weight_names1", … */
CornuStatus cornu__keras2_names(CornuHdf5 *file, const char *group, const char *name,
                                char ***texts, int64_t *count)
{
    CORNU__TRY(cornu__hdf5_texts(file, group, name, texts, count));
    for (int part = 0; *count < 0 || part > 0; part++) {
        char    numbered[80], **more;
        int64_t length;
        int     space = (int)(*count > 0 ? *count : 0);
        snprintf(numbered, sizeof numbered, "%s%d", name, part);
        CornuStatus status = cornu__hdf5_texts(file, group, numbered, &more, &length);
        if (status == CORNU_OK && length < 0) return CORNU_OK;
        if (status == CORNU_OK)
            status = cornu__reserve(texts, &space, space, (int)length, sizeof **texts);
        if (status != CORNU_OK) {
            cornu__hdf5_free_texts(more, length);
            cornu__hdf5_free_texts(*texts, *count);
            return status;
        }
        if (*count < 0) *count = 0;
        if (length > 0) memcpy(*texts + *count, more, (size_t)length * sizeof *more);
        *count += length;
        cornu__release(more);
    }
    return CORNU_OK;
}

int cornu__keras2_order(const CornuModel *model, const CornuLayer *layer, int *order)
{
    int count = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < layer->weight_count; i++) {
            if (cornu_layer_trains(layer, layer->weights[i]) != (pass == 0)) continue;
            order[count++] = cornu__model_weight_index(model, layer->weights[i]);
        }
    return count;
}

/* Random layers of tf.keras keep the state of their generator among the weights. */
static bool is_state(const char *name)
{
    static const char *const states[] = { "StateVar:0", "StateVar", "seed_generator_state:0",
                                          "seed_generator_state" };
    const char *last = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (!strcmp(last, states[i])) return true;
    return false;
}

/* The names of the weights that a group lists, without such states; -1 if it lists none. */
static CornuStatus weight_names(CornuHdf5 *file, const char *group, char ***names, int64_t *count)
{
    int64_t kept = 0;
    CORNU__TRY(cornu__keras2_names(file, group, "weight_names", names, count));
    for (int64_t i = 0; i < *count; i++) {
        char *name = (*names)[i];
        if (is_state(name)) cornu__release(name);
        else (*names)[kept++] = name;
    }
    if (*count > 0) *count = kept;
    return CORNU_OK;
}

/* ---- CuDNNLSTM and CuDNNGRU, whose kernels are transposed by gates ---- */

/* In each gate's block of the kernel (rows, gates units) the elements, in their order, fill columns
 * instead of rows. */
static CornuStatus from_cudnn(CornuArray kernel, int64_t gates)
{
    const int64_t rows = kernel.type.shape.extent[0], columns = kernel.type.shape.extent[1];
    const int64_t units = columns / gates;
    float        *block = cornu__allocate((size_t)(rows * units), sizeof *block);
    float        *values = kernel.data;
    if (!block) return CORNU_ERR_MEMORY;
    for (int64_t g = 0; g < gates; g++) {
        for (int64_t r = 0; r < rows; r++)
            for (int64_t u = 0; u < units; u++)
                block[r * units + u] = values[r * columns + g * units + u];
        for (int64_t r = 0; r < rows; r++)
            for (int64_t u = 0; u < units; u++)
                values[r * columns + g * units + u] = block[u * rows + r];
    }
    cornu__release(block);
    return CORNU_OK;
}

/* The gates of a bias that is cuDNN's: twice as long as an LSTM's, and with the two rows of a GRU's
 * one after the other; 0 for one of the model's shape. */
static int64_t cudnn_gates(CornuType wanted, CornuType given)
{
    const CornuShape w = wanted.shape;
    if (given.shape.rank != 1) return 0;
    if (w.rank == 1 && w.extent[0] % 4 == 0 && given.shape.extent[0] == 2 * w.extent[0]) return 4;
    const bool gru = w.rank == 2 && w.extent[0] == 2 && w.extent[1] % 3 == 0;
    return gru && given.shape.extent[0] == 2 * w.extent[1] ? 3 : 0;
}

/* The bias (8 units) of a CuDNNLSTM, of which each gate has two, or (6 units) of a CuDNNGRU; and
 * the kernels before it. */
static CornuStatus read_cudnn(CornuHdf5 *file, const char *path, CornuType given, int64_t gates,
                              CornuNamedArray *const kernels[2], CornuNamedArray *bias)
{
    CornuNamedArray whole = { bias->name, cornu_array_from(NULL, given) };
    whole.array.type.dtype = CORNU_F32;
    const int64_t count = cornu_type_count(bias->array.type);
    CornuStatus   status = read_array(file, path, &whole);
    if (!status && !bias->array.data)
        bias->array.data = cornu__allocate((size_t)count, sizeof(float));
    if (!status && !bias->array.data) status = CORNU_ERR_MEMORY;
    const float *from = whole.array.data;
    float       *to = bias->array.data;
    for (int64_t i = 0; i < count && !status; i++)
        to[i] = gates == 4 ? from[i] + from[count + i] : from[i];
    cornu__release(whole.array.data);
    for (int k = 0; k < 2 && !status; k++) status = from_cudnn(kernels[k]->array, gates);
    return status;
}

/* ---- Weights of layers ---- */

/* Reads array i of a layer's; order[i - 2] and order[i - 1] have been read. */
static CornuStatus read_weight(CornuHdf5 *file, const char *path, const int *order, int i,
                               CornuValues *values)
{
    CornuNamedArray *to = &values->arrays[order[i]];
    CornuType        given;
    if (i >= 2) {
        CORNU__TRY(cornu__fail_prefix(cornu__hdf5_type(file, path, &given), to->name));
        CornuNamedArray *const kernels[] = { &values->arrays[order[i - 2]],
                                             &values->arrays[order[i - 1]] };
        const int64_t gates = cudnn_gates(to->array.type, given);
        const bool    both = kernels[0]->array.type.shape.rank == 2 &&
                             kernels[1]->array.type.shape.rank == 2;
        if (gates && both) return read_cudnn(file, path, given, gates, kernels, to);
    }
    return read_array(file, path, to);
}

/* Reads the arrays that the group lists into as many values; ignores a group without names. */
static CornuStatus read_listed(CornuHdf5 *file, const char *group, const char *owner,
                               const int *order, int count, CornuValues *values)
{
    char  **names;
    int64_t listed;
    CORNU__TRY(weight_names(file, group, &names, &listed));
    CornuStatus status = CORNU_OK;
    if (listed != count)
        status = cornu__fail(CORNU_ERR_SHAPE, "\"%s\" has %lld weights, the model's %s has %d",
                             group, (long long)(listed < 0 ? 0 : listed), owner, count);
    for (int i = 0; i < count && status == CORNU_OK; i++) {
        char path[MAX_PATH];
        status = cornu__keras2_path(path, group, names[i]);
        if (!status) status = read_weight(file, path, order, i, values);
    }
    cornu__hdf5_free_texts(names, listed);
    return status;
}

/* The next layer with weights; NULL after the last. */
static const CornuLayer *next_layer(const CornuModel *model, int *at)
{
    while (*at < cornu_model_layer_count(model)) {
        const CornuLayer *layer = cornu_model_layer(model, (*at)++);
        if (layer->weight_count > 0) return layer;
    }
    return NULL;
}

/* Layers with weights are paired in their order. */
static CornuStatus read_older_layers(CornuHdf5 *file, const CornuModel *model, const char *root,
                                     char *const *names, int64_t count, int *order,
                                     CornuValues *values)
{
    int at = 0;
    for (int64_t i = 0; i < count; i++) {
        char    group[MAX_PATH], **weights;
        int64_t listed;
        CORNU__TRY(cornu__keras2_path(group, root, names[i]));
        CORNU__TRY(weight_names(file, group, &weights, &listed));
        cornu__hdf5_free_texts(weights, listed);
        if (listed <= 0) continue;
        const CornuLayer *layer = next_layer(model, &at);
        if (!layer)
            return cornu__fail(CORNU_ERR_SHAPE, "its layer %.60s has weights, the model %s has no "
                               "more layers with weights", names[i], cornu_model_name(model));
        const int own = cornu__keras2_order(model, layer, order);
        CORNU__TRY(read_listed(file, group, cornu_layer_name(layer), order, own, values));
    }
    const CornuLayer *left = next_layer(model, &at);
    if (!left) return CORNU_OK;
    return cornu__fail(CORNU_ERR_SHAPE, "there are no weights for the model's layer %s",
                       cornu_layer_name(left));
}

/* Whole models have their weights in a group, files of weights alone have them at the root. */
CornuStatus cornu__keras2_read_weights(CornuHdf5 *file, const CornuModel *model,
                                       CornuValues *values)
{
    char  **names;
    int64_t count;
    bool    whole;
    CORNU__TRY(cornu__hdf5_has(file, "model_weights", &whole));
    const char *root = whole ? "model_weights" : "";
    CORNU__TRY(cornu__keras2_names(file, root, "layer_names", &names, &count));
    int *order = cornu__allocate((size_t)(values->weights + values->variables), sizeof *order);
    CornuStatus status = CORNU_OK;
    if (!order) status = CORNU_ERR_MEMORY;
    else if (count < 0) status = cornu__fail(CORNU_ERR_FORMAT, "does not list its layers by name");
    else status = read_older_layers(file, model, root, names, count, order, values);
    if (status == CORNU_OK && values->variables)
        status = cornu__keras2_read_optimizer(file, model, values);
    cornu__release(order);
    cornu__hdf5_free_texts(names, count);
    return status;
}
