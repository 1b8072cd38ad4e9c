/* What the pjrt device trains is saved and loaded on another device, and resumes where it
 * stopped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../datasets/files.h"
#include "../../device/pjrt/opened.h"
#include "../../expect.h"
#include "../training/trainings.h"
#include "stopper.h"

enum { MAX_FILE = 1 << 16, ALL_STEPS = TRAINING_EPOCHS * TRAINING_STEPS };

/* ---- BackupAndRestore ---- */

static volatile sig_atomic_t stop;

typedef struct {
    unsigned char bytes[MAX_FILE];
    size_t        size;
} File;

/* One run, which ends by itself with steps -1; whether it did, with the model's file. */
static bool fit(Training training, CornuDevice *device, int64_t steps, bool asks, int64_t freq,
                File *file)
{
    Stopper stopper = stop_after(steps, asks ? &stop : NULL);
    stop = 0;
    CornuModel *model = training_model(training, device);
    if (!model) fail_msg("%s", cornu_error_message());
    CornuCallback *backup =
        freq ? cornu_backup_and_restore(files_path(folder, "backup"), freq, .stop = &stop) : NULL;
    CornuHistory *history = training_fit(training, model, backup, &stopper.base);
    if (!history) expect_error(cornu_error_take(), CORNU_ERR_INTERRUPTED, "");
    const char *path = files_path(folder, "model.safetensors");
    if (history) expect_ok(cornu_model_save(model, path));
    if (history) file->size = files_read(path, file->bytes, MAX_FILE);
    cornu_history_free(history);
    cornu_model_free(model);
    return history != NULL;
}

static void expect_same(const char *what, Training training, const File *a, const File *b)
{
    if (a->size != b->size || memcmp(a->bytes, b->bytes, a->size))
        fail_msg("%s, %s: the model is another", training_name(training), what);
}

static void stopping_changes_no_bit(void **state)
{
    const Training training = *(const Training *)*state;
    CornuDevice   *device = pjrt_open(training == TRAINING_GROUPS ? 4 : 1);
    static File    whole, resumed;
    assert_true(fit(training, device, -1, false, 0, &whole));
    int64_t runs = 1;
    while (!fit(training, device, 5, true, 100, &resumed)) runs++;
    assert_int_equal(runs, 1 + (ALL_STEPS - 1) / 5);
    expect_same("stopped after five steps each", training, &whole, &resumed);
    assert_false(fit(training, device, 7, false, 2, &resumed));
    assert_true(fit(training, device, -1, false, 2, &resumed));
    expect_same("killed after seven steps", training, &whole, &resumed);
    cornu_device_close(device);
}

/* ---- Files ---- */

enum { ROWS = 5, FEATURES = 6, CLASSES = 3 };

static void predict(CornuModel *model, float to[ROWS * CLASSES])
{
    static float x[ROWS * FEATURES];
    for (int i = 0; i < ROWS * FEATURES; i++) x[i] = (float)(i * 29 % 31) / 15.0f - 1.0f;
    expect_ok(cornu_predict(model, .x = cornu_array(x, CORNU_F32, ROWS, FEATURES),
                            .verbose = CORNU_SILENT,
                            .to = cornu_array(to, CORNU_F32, ROWS, CLASSES)));
}

/* From a device to a file, and from there to another: the same predictions, and the same file. */
static void hand_over(const char *suffix, CornuDevice *from, CornuDevice *to)
{
    const char *first = files_path(folder, suffix);
    float       before[ROWS * CLASSES], after[ROWS * CLASSES];
    CornuModel *model = training_model(TRAINING_SHUFFLED, from);
    static File written, again;
    if (!model) fail_msg("%s", cornu_error_message());
    cornu_history_free(training_fit(TRAINING_SHUFFLED, model, NULL, NULL));
    expect_ok(cornu_model_save(model, first));
    written.size = files_read(first, written.bytes, MAX_FILE);
    predict(model, before);
    cornu_model_free(model);

    CornuModel *loaded = cornu_model_load(first);
    if (!loaded) fail_msg("%s", cornu_error_message());
    expect_ok(cornu_compile(loaded, .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY, .device = to,
                            .optimizer = cornu_adam(.use_ema = true, .ema_momentum = 0.8),
                            .metrics = { CORNU_ACCURACY }));
    expect_ok(cornu_model_load_weights(loaded, first));
    predict(loaded, after);
    for (int i = 0; i < ROWS * CLASSES; i++) assert_float_equal(before[i], after[i], 1e-6);
    /* A file for Keras is written with its time. */
    if (strstr(suffix, ".safetensors")) {
        expect_ok(cornu_model_save(loaded, first));
        again.size = files_read(first, again.bytes, MAX_FILE);
        expect_same(suffix, TRAINING_SHUFFLED, &written, &again);
    }
    cornu_model_free(loaded);
}

static void models_go_from_device_to_device(void **state)
{
    CornuDevice *device = pjrt_open(1), *cpu = cornu_device_open("cpu", .threads = 1);
    hand_over(*state, device, cpu);
    hand_over(*state, cpu, device);
    cornu_device_close(device);
    cornu_device_close(cpu);
}

int main(void)
{
    static Training all[] = { TRAINING_SHUFFLED, TRAINING_STATEFUL, TRAINING_AUGMENTED,
                              TRAINING_GROUPS };
#define STOPPING(name, i) { name, stopping_changes_no_bit, files_begin, files_end, &all[i] }
#define FILES(suffix) { suffix, models_go_from_device_to_device, files_begin, files_end, suffix }
    const struct CMUnitTest tests[] = {
        STOPPING("shuffled", 0), STOPPING("stateful", 1), STOPPING("augmented", 2),
        STOPPING("groups", 3),   FILES("model.keras"),    FILES("model.safetensors"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
