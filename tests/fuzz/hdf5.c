/* Weights in HDF5 files, which libhdf5 reads. */
#include "fuzz.h"

/* libhdf5 1.10.8 itself leaks memory on damaged files. The sanitizer calls this. */
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
