/* .onnx and .tflite files that are loaded are also run. The first byte is "t" for .tflite;
 * otherwise its bits say which open extents are 2, not 1. The rest is the file. Memory is
 * limited. */
#include "fuzz.h"

#include "../../device/memory_internal.h"

enum { LIMIT = 1 << 27, MOST_NUMBERS = 1 << 18 };

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    cornu_set_memory_limit(LIMIT);
    return 0;
}

/* Zeros, with small numbers in them; false if those are more than are tried. */
static bool make(CornuType type, uint8_t open, CornuArray *array)
{
    for (int i = 0; i < type.shape.rank; i++)
        if (type.shape.extent[i] < 0) type.shape.extent[i] = 1 + (open >> i & 1);
    if (cornu_type_check(type) || cornu_type_count(type) > MOST_NUMBERS ||
        type.dtype == CORNU_STRING)
        return false;
    *array = cornu_array_from(cornu__allocate(cornu_type_bytes(type) + 1, 1), type);
    for (int64_t i = 0; array->data && i < cornu_type_count(type); i++)
        cornu_array_set(*array, i, (double)(i % 3));
    return array->data;
}

static void run(CornuPredictor *predictor, uint8_t open)
{
    CornuArray x[CORNU_MAX_MODEL_TENSORS] = { { .data = NULL } };
    CornuArray y[CORNU_MAX_MODEL_TENSORS] = { { .data = NULL } };
    CornuType  types[CORNU_MAX_MODEL_TENSORS];
    const int  outputs = cornu_predictor_output_count(predictor);
    bool       small = true;
    for (int i = 0; i < cornu_predictor_input_count(predictor); i++)
        small = small && make(cornu_predictor_input_type(predictor, i), open, &x[i]);
    small = small && fuzz_done(cornu_predictor_output_types(predictor, x, types));
    for (int i = 0; i < outputs; i++) small = small && make(types[i], 0, &y[i]);
    if (small && fuzz_done(cornu_predictor_predict(predictor, x, y)))
        for (int i = 0; i < outputs; i++) fuzz_read(y[i].data, cornu_type_bytes(y[i].type));
    for (int i = 0; i < CORNU_MAX_MODEL_TENSORS; i++) {
        cornu__release(x[i].data);
        cornu__release(y[i].data);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) return 0;
    CornuModel *model = cornu_model_load(fuzz_file(*data == 't' ? "a.tflite" : "a.onnx", data + 1,
                                                   size - 1));
    if (fuzz_loaded(model)) {
        CornuPredictor *predictor = cornu_predictor(model, .max_batch_size = 2, .threads = 1);
        if (fuzz_made(predictor)) run(predictor, *data);
        cornu_predictor_free(predictor);
    }
    cornu_model_free(model);
    return 0;
}
