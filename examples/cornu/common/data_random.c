/* Random data, for times alone. */
#include <stdio.h>
#include <string.h>

#include "data.h"

/* A generator of numbers that are the same everywhere: splitmix64, by Steele, Lea and Flood, "Fast
 * Splittable Pseudorandom Number Generators". */
static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Whole numbers below `most`, which index tables; else 0 to 1. */
static CornuStatus fill(Data *data, CornuType type, int64_t most, uint64_t *state, CornuArray *to)
{
    *to = cornu_array_from(data_own(data, cornu_type_bytes(type)), type);
    if (!to->data) return cornu_error_status();
    for (int64_t i = 0; i < cornu_type_count(type); i++) {
        const uint64_t drawn = next(state) >> 11;
        cornu_array_set(*to, i, most ? (double)(drawn % (uint64_t)most) : (double)drawn * 0x1p-53);
    }
    return CORNU_OK;
}

static CornuStatus fill_labels(Data *data, const CornuModel *model, int output, CornuType type,
                               uint64_t *state)
{
    const CornuLoss *loss = cornu_model_loss(model, output);
    type.dtype = CORNU_F32;
    const int64_t classes = type.shape.extent[type.shape.rank - 1];
    if (!loss) return CORNU_OK;
    const bool sparse = !strcmp(loss->name, "sparse_categorical_crossentropy");
    if (!sparse && strcmp(loss->name, "categorical_crossentropy") != 0)
        return fill(data, type, 0, state, &data->y[output]);
    type.shape.extent[--type.shape.rank] = 0;
    type.dtype = CORNU_I32;
    CornuStatus status = fill(data, type, classes, state, &data->y[output]);
    if (status || sparse || type.shape.rank != 1) return status;
    data->classes = classes;
    return CORNU_OK;
}

CornuStatus data_random(Data *data, const CornuModel *model, int64_t rows, uint64_t seed)
{
    CornuText       text;
    CornuModelTypes types;
    uint64_t        state = seed;
    *data = (Data){ .name = "random", .random = true };
    if (cornu_model_is_function(model))
        return cornu_error_set(CORNU_ERR_UNSUPPORTED, "%s is a function of whole arrays, not of "
                               "rows, and cannot be trained", cornu_model_name(model));
    CornuStatus status = cornu_model_types(model, rows, 0, &types);
    if (status == CORNU_ERR_UNSUPPORTED)
        return cornu_error_set(status, "%s begins with layers that run on the host, as those of "
                               "strings do, expected data: --x FILE or --data",
                               cornu_model_name(model));
    for (int i = 0; i < types.input_count && !status; i++) {
        types.inputs[i].shape.extent[0] = rows;   /* of a model that fixes fewer, too */
        status = fill(data, types.inputs[i], types.rows_of[i], &state, &data->x[i]);
    }
    for (int i = 0; i < types.output_count && !status; i++) {
        types.outputs[i].shape.extent[0] = rows;
        status = fill_labels(data, model, i, types.outputs[i], &state);
    }
    if (status) return status;
    snprintf(data->about, sizeof data->about,
             "RANDOM data, %s%s: times count, losses and accuracies do not",
             cornu_type_print(&text, data->x[0].type),
             types.input_count > 1 ? " and so on" : "");
    return data_label_form(data, model);
}
