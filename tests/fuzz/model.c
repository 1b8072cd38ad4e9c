/*
 * Untrusted models are loaded, compiled, trained for a step on data of their inputs' shapes, saved
 * and loaded again. The first byte says what the rest is:
 *
 *     s    a safetensors file, as in checkpoint.c
 *     a    an architecture's JSON, first saved to a .safetensors file with initial weights
 *     k    likewise, in a .keras file
 *     h    a .h5 file
 *     z    a .keras file, an archive
 *
 * Memory is limited, and models that would compute for long are compiled but not run.
 */
#include "fuzz.h"

#include "../../device/memory_internal.h"
#include "../../nn/saving/architecture/architecture_internal.h"
#include "../../nn/formats/json_internal.h"

enum { LIMIT = 1 << 27, ROWS = 2, MOST_NUMBERS = 1 << 20 };
static const double most_flops = 1e8;

static CornuDevice *device;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    device = cornu_device_open("cpu", .threads = 1);
    cornu_set_memory_limit(LIMIT);
    return 0;
}

/* Writes the file of a model with that architecture; false if it is not one. */
static bool write_model(const uint8_t *data, size_t size, const char *path)
{
    json_t     *json = cornu__json_parse((const char *)data, size, CORNU_ARCHITECTURE_DEPTH);
    CornuModel *model = json ? cornu__model_from_config(json, NULL) : NULL;
    if (json) fuzz_made(model);
    json_decref(json);
    const bool small = model && cornu_model_built(model) &&
                       cornu_model_parameters(model) <= MOST_NUMBERS;
    const bool written = small && fuzz_done(cornu_model_save(model, path));
    cornu_model_free(model);
    return written;
}

/* ROWS rows for a symbol; false if that is more numbers than are tried. */
static bool make_rows(const CornuSymbol *symbol, CornuArray *array)
{
    CornuType type = symbol->type;
    type.shape.extent[0] = ROWS;
    if (cornu_type_check(type) || cornu_type_count(type) > MOST_NUMBERS) return false;
    *array = cornu_array_from(cornu__allocate(cornu_type_bytes(type), 1), type);
    for (int64_t i = 0; array->data && i < cornu_type_count(type); i++)
        cornu_array_set(*array, i, (double)(i % 2));
    return array->data;
}

/* Whether the outputs of all layers are small: the cost of a step with several inputs or outputs is
 * not known before it runs. */
static bool is_light(const CornuModel *model)
{
    for (int i = 0; i < cornu_model_layer_count(model); i++) {
        CornuShape row = cornu_model_layer(model, i)->output;
        if (row.rank < 1) return false;
        row.extent[0] = 1;
        if (cornu_type_check(cornu_type_from(CORNU_F32, row)) || cornu_shape_count(row) > 4096)
            return false;
    }
    return cornu_model_parameters(model) < 10000;
}

/* With a loss for every output. */
static void train(CornuModel *model)
{
    CornuArray         x[CORNU_MAX_MODEL_TENSORS] = { { .data = NULL } };
    CornuArray         y[CORNU_MAX_MODEL_TENSORS] = { { .data = NULL } };
    CornuCompileConfig config = { .model = model, .device = device };
    bool               small = true;
    for (int i = 0; i < cornu_model_input_count(model); i++)
        small = small && make_rows(cornu_model_input(model, i), &x[i]);
    for (int i = 0; i < cornu_model_output_count(model); i++) {
        small = small && make_rows(cornu_model_output(model, i), &y[i]);
        config.losses[i] = cornu_loss("mean_squared_error");
    }
    const bool      single = small && cornu_model_input_count(model) == 1 &&
                             cornu_model_output_count(model) == 1;
    const bool      compiled = fuzz_done(cornu_compile_from(&config));
    CornuExecutable *step = compiled && single
                          ? cornu_model_train_step(model, x[0].type, y[0].type) : NULL;
    if (compiled && single) fuzz_made(step);
    if (step && cornu_executable_statistics(step)->flops < most_flops)
        fuzz_done(cornu_train_on_batch(model, x[0], y[0]));
    else if (compiled && small && !single && is_light(model))
        fuzz_done(cornu_train_on_batch_many(model, x, y, NULL));
    for (int i = 0; i < CORNU_MAX_MODEL_TENSORS; i++) {
        cornu__release(x[i].data);
        cornu__release(y[i].data);
    }
}

/* A loading function leaves nothing pending. */
static CornuModel *load(const char *path)
{
    CornuModel *model = cornu_model_load(path);
    fuzz_expect(!cornu_error_pending(), "nothing is pending after loading");
    fuzz_expect(model || *cornu_error_message(), "a model or a message");
    return model;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || !device) return 0;
    const uint8_t kind = *data++;
    const char   *path;
    size--;
    switch (kind) {
    case 's': path = fuzz_safetensors("a.safetensors", data, size); break;
    case 'h': path = fuzz_file("a.h5", data, size); break;
    case 'z': path = fuzz_file("a.keras", data, size); break;
    case 'a':
    case 'k':
        path = fuzz_path(kind == 'k' ? "a.keras" : "a.safetensors");
        if (!write_model(data, size, path)) return 0;
        break;
    default: return 0;
    }
    CornuModel *model = load(path);
    fuzz_expect(model || (kind != 'a' && kind != 'k'), "what was saved can be loaded");
    if (model && cornu_model_parameters(model) <= MOST_NUMBERS) {
        const char *again = fuzz_path("b.safetensors");
        train(model);
        if (fuzz_done(cornu_model_save(model, again))) {
            CornuModel *copy = load(again);
            fuzz_expect(copy != NULL, "what was saved can be loaded");
            cornu_model_free(copy);
        }
    }
    cornu_model_free(model);
    return 0;
}
