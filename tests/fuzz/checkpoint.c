/* Models in .safetensors files: the input is the header's JSON up to a zero byte, then the data;
 * the length and the checksum are added here. Loaded as a model, and as weights of a model. */
#include "fuzz.h"

static CornuModel *model;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    model = fuzz_small_model();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_safetensors("a.safetensors", data, size);
    CornuModel *whole = cornu_model_load(path);
    if (fuzz_loaded(whole)) fuzz_done(cornu_model_save(whole, fuzz_path("b.safetensors")));
    cornu_model_free(whole);
    fuzz_done(cornu_model_load_weights(model, path));
    return 0;
}
