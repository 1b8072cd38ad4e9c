/* Weights in HDF5 files as they come, which libhdf5 reads for us. */
#include "fuzz.h"

/* Damaged files make libhdf5 1.10.8 lose some memory, which is not ours. Named by the sanitizer. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libhdf5"; }

static CornuModel *model;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    model = fuzz_small_model();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_done(cornu_model_load_weights(model, fuzz_file("a.weights.h5", data, size)));
    return 0;
}
