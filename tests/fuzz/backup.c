/* Backups that a training resumes from: safetensors files as in checkpoint.c, whose weights may
 * fit, with any states, history and position. */
#include "fuzz.h"

enum { ROWS = 6, FEATURES = 2 };

static CornuDevice *device;
static CornuModel  *model;
static float        x[ROWS * FEATURES], y[ROWS];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    device = cornu_device_open("reference");
    cornu_set_random_seed(1);
    model = cornu_sequential(.name = "model", .input_shape = { FEATURES });
    cornu_model_add(model, cornu_dense(1));
    cornu_compile(model, .optimizer = cornu_sgd(), .loss = CORNU_MEAN_SQUARED_ERROR,
                  .device = device);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *folder = fuzz_path("backup");
    mkdir(folder, 0700);
    fuzz_safetensors("backup/backup-000000-00000001.safetensors", data, size);
    CornuCallback *callbacks[] = { cornu_backup_and_restore(folder),
                                   cornu_early_stopping(.monitor = "loss", .patience = 9) };
    CornuHistory  *history =
        cornu_fit(model, .x = cornu_array(x, CORNU_F32, ROWS, FEATURES),
                  .y = cornu_array(y, CORNU_F32, ROWS, 1), .batch_size = 2, .epochs = 2,
                  .verbose = CORNU_SILENT, .callbacks = { callbacks[0], callbacks[1] });
    fuzz_made(history);
    cornu_history_free(history);
    return 0;
}
