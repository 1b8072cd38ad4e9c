/* Random data, for times alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"

/* What stands for an extent that the model leaves open: of pictures, else of sequences; then others,
 * as a model may take multiples of 32 alone, or lines of text of one height. */
enum { ANY_STEPS = 32, ANY_SIZE = 224 };
static const int64_t others[] = { 0, 128, 224, 256, 512, 64, 48, 32, 16, 8, 4, 2, 1, 96, 160, 299 };
enum { OTHERS = sizeof others / sizeof *others, PROBED_ROWS = 2 };

typedef struct {
    CornuType in[DATA_MOST], out[DATA_MOST];
} Types;

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

static CornuType closed(CornuType type, int64_t rows, int64_t extent)
{
    type.shape.extent[0] = rows;
    for (int i = 1; i < type.shape.rank; i++)
        if (type.shape.extent[i] == CORNU_NONE)
            type.shape.extent[i] = extent ? extent : type.shape.rank == 4 ? ANY_SIZE : ANY_STEPS;
    return type;
}

static bool leaves_open(CornuType type)
{
    for (int i = 1; i < type.shape.rank; i++)
        if (type.shape.extent[i] == CORNU_NONE) return true;
    return false;
}

static void close_all(Types *types, const CornuModel *model, int64_t rows, int64_t extent)
{
    for (int i = 0; i < cornu_model_input_count(model); i++)
        types->in[i] = closed(cornu_symbol_type(cornu_model_input(model, i)), rows, extent);
    for (int i = 0; i < cornu_model_output_count(model); i++)
        types->out[i] = closed(cornu_symbol_type(cornu_model_output(model, i)), rows, extent);
}

/* What the model gives for such inputs. */
static CornuStatus try(CornuPredictor *predictor, const CornuModel *model, Types *types)
{
    CornuArray  x[DATA_MOST] = { { .data = NULL } };
    CornuStatus status = CORNU_OK;
    for (int i = 0; i < cornu_model_input_count(model) && !status; i++) {
        x[i] = cornu_array_from(calloc(1, cornu_type_bytes(types->in[i]) + 1), types->in[i]);
        if (!x[i].data) status = cornu_error_set(CORNU_ERR_MEMORY, "no memory for random data");
    }
    if (!status) status = cornu_predictor_output_types(predictor, x, types->out);
    for (int i = 0; i < cornu_model_input_count(model); i++) free(x[i].data);
    return status;
}

/* The types of `rows` rows, with the first extents that the model takes where it leaves them
 * open. */
static CornuStatus choose_types(Types *types, CornuModel *model, int64_t rows)
{
    const int64_t fixed = cornu_model_batch_size(model);
    bool          open = false;
    CornuStatus   status = CORNU_OK;
    close_all(types, model, rows, 0);
    for (int i = 0; i < cornu_model_input_count(model); i++)
        open |= leaves_open(cornu_symbol_type(cornu_model_input(model, i)));
    if (!open) return CORNU_OK;
    CornuDevice    *device = cornu_device_open("cpu", .threads = 1, .shards = 1);
    CornuPredictor *predictor = device ? cornu_predictor(model, .device = device) : NULL;
    if (!predictor) cornu_error_take();   /* a model with states: what is usual */
    for (int i = 0; i < OTHERS && predictor; i++) {
        if (status) cornu_error_take();
        close_all(types, model, fixed > 0 ? fixed : PROBED_ROWS, others[i]);
        status = try(predictor, model, types);
        if (!status || status == CORNU_ERR_MEMORY) break;
    }
    for (int i = 0; i < DATA_MOST && !status; i++) {
        types->in[i].shape.extent[0] = rows;
        if (types->out[i].shape.rank) types->out[i].shape.extent[0] = rows;
    }
    cornu_predictor_free(predictor);
    cornu_device_close(device);
    return status;
}

/* The rows of its smallest table of embeddings, or 2: tokens of any model of them. */
static int64_t tokens_of(const CornuModel *model)
{
    int64_t least = 0;
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        const CornuWeight *weight = cornu_model_weight(model, i);
        const int64_t      rows = weight->type.shape.extent[0];
        if (strstr(weight->path, "embeddings") && weight->type.shape.rank == 2 && rows > 0 &&
            (!least || rows < least))
            least = rows;
    }
    return least ? least : 2;
}

/* An Embedding takes floats, too, where the file's input has no other dtype. */
static bool starts_with_tokens(const CornuModel *model, int input)
{
    const CornuType type = cornu_symbol_type(cornu_model_input(model, input));
    if (!cornu_dtype_is_float(type.dtype)) return true;
    for (int i = 0; i < 2 && i < cornu_model_layer_count(model); i++)
        if (!strcmp(cornu_model_layer(model, i)->kind->class_name, "Embedding")) return true;
    return false;
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

CornuStatus data_random(Data *data, CornuModel *model, int64_t rows, uint64_t seed)
{
    CornuText text;
    Types     types;
    uint64_t  state = seed;
    *data = (Data){ .name = "random", .random = true };
    if (cornu_model_is_function(model))
        return cornu_error_set(CORNU_ERR_UNSUPPORTED,
                               "%s is a function of whole arrays, not of rows, "
                               "and cannot be trained",
                               cornu_model_name(model));
    for (int i = 0; i < cornu_model_input_count(model); i++)
        if (cornu_symbol_type(cornu_model_input(model, i)).dtype == CORNU_STRING)
            return cornu_error_set(CORNU_ERR_UNSUPPORTED,
                                   "%s takes strings, expected data: --x FILE "
                                   "or --data",
                                   cornu_model_name(model));
    if (choose_types(&types, model, rows)) return cornu_error_status();
    for (int i = 0; i < cornu_model_input_count(model); i++)
        if (fill(data, types.in[i], starts_with_tokens(model, i) ? tokens_of(model) : 0, &state,
                 &data->x[i]))
            return cornu_error_status();
    for (int i = 0; i < cornu_model_output_count(model); i++)
        if (fill_labels(data, model, i, types.out[i], &state)) return cornu_error_status();
    snprintf(data->about, sizeof data->about,
             "RANDOM data, %s%s: times count, losses and accuracies do "
             "not",
             cornu_type_print(&text, data->x[0].type),
             cornu_model_input_count(model) > 1 ? " and so on" : "");
    return data_label_form(data, model);
}
