/* BackupAndRestore: a training stopped anywhere resumes with the same bits, on any number of
 * threads; which files are kept, and which are accepted. */
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../datasets/files.h"
#include "../golden.h"
#include "../training/trainings.h"
#include "stopper.h"

enum { ALL_STEPS = TRAINING_EPOCHS * TRAINING_STEPS, MAX_FILE = 1 << 16 };

/* ---- Trainings that are stopped ---- */

static volatile sig_atomic_t stop;

typedef struct {
    const char *device;
    int         shards;
    Training    training;
} Case;

/* The results of a finished training: the model's file and its logs. */
typedef struct {
    unsigned char bytes[MAX_FILE];
    size_t        size;
    double        logs[TRAINING_EPOCHS][4];
    int64_t       samples[TRAINING_EPOCHS];
    int64_t       steps;             /* of this run */
} Result;

static const char *kept(void) { return files_path(folder, "backup"); }

/* Calls `see` for each backup in the folder; returns their number. */
static int each_backup(void (*see)(const char *path))
{
    DIR *directory = opendir(kept());
    int  count = 0;
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        if (strncmp(entry->d_name, "backup-", 7)) continue;
        if (see) see(files_path(kept(), entry->d_name));
        count++;
    }
    if (directory) closedir(directory);
    return count;
}

static void read_logs(const CornuHistory *history, Result *result)
{
    static const char *const names[] = { "loss", "accuracy", "val_loss", "val_accuracy" };
    assert_int_equal(cornu_history_epochs(history), TRAINING_EPOCHS);
    for (int i = 0; i < TRAINING_EPOCHS; i++) {
        assert_int_equal(cornu_history_epoch(history, i), i);
        result->samples[i] = cornu_history_samples(history, i);
        for (int k = 0; k < 4; k++) {
            const double value = cornu_history_get(history, names[k], i);
            result->logs[i][k] = value == value ? value : -1.0;
        }
    }
}

/* One run; true if it ended, with its result. freq 0: without a backup. */
static bool run(const Case *c, int threads, int64_t steps, bool asks, int64_t freq,
                Result *result)
{
    Stopper stopper = stop_after(steps, asks ? &stop : NULL);
    stop = 0;
    CornuDevice *device = cornu_device_open(c->device, .threads = threads, .shards = c->shards);
    CornuModel  *model = training_model(c->training, device);
    if (!model) fail_msg("%s", cornu_error_message());
    CornuCallback *backup =
        freq ? cornu_backup_and_restore(kept(), freq, .stop = &stop) : NULL;
    CornuHistory *history = training_fit(c->training, model, backup, &stopper.base);
    if (!history && cornu_error_take() != CORNU_ERR_INTERRUPTED)
        fail_msg("%s", cornu_error_message());
    result->steps = steps - stopper.steps_left;
    if (history) {
        const char *path = files_path(folder, "model.safetensors");
        expect_ok(cornu_model_save(model, path));
        result->size = files_read(path, result->bytes, MAX_FILE);
        read_logs(history, result);
    }
    cornu_history_free(history);
    cornu_model_free(model);
    cornu_device_close(device);
    return history != NULL;
}

static void expect_same(const Case *c, const char *how, int64_t at, const Result *a,
                        const Result *b)
{
    if (a->size != b->size || memcmp(a->bytes, b->bytes, a->size))
        fail_msg("%s on %s, %s %lld: the model is another", training_name(c->training), c->device,
                 how, (long long)at);
    if (memcmp(a->samples, b->samples, sizeof a->samples))
        fail_msg("%s on %s, %s %lld: epochs had other numbers of samples",
                 training_name(c->training), c->device, how, (long long)at);
    if (memcmp(a->logs, b->logs, sizeof a->logs))
        fail_msg("%s on %s, %s %lld: the logs are others", training_name(c->training), c->device,
                 how, (long long)at);
}

static void stopping_changes_no_bit(void **state)
{
    const Case   *c = *state;
    static Result whole, resumed;
    assert_true(run(c, 1, -1, false, 0, &whole));
    /* Stopped by the flag after each step: no step runs twice, every position is resumed from. */
    int64_t runs = 1;
    while (!run(c, 1 + runs % 2, 1, true, 100, &resumed)) runs++;
    assert_int_equal(runs, ALL_STEPS + 1);
    expect_same(c, "stopped after each step, in all", runs, &whole, &resumed);
    assert_int_equal(files_count(kept()), 0);
    /* Killed at any step: the steps since the last backup run again. */
    for (int64_t at = 1; at <= ALL_STEPS; at += 2) {
        assert_false(run(c, 2, at, false, 2, &resumed));
        assert_true(run(c, 1, -1, false, 2, &resumed));
        expect_same(c, "killed after step", at, &whole, &resumed);
        /* Only those: the newest backup is of the last even step before the kill. */
        const int64_t epoch = (at - 1) / TRAINING_STEPS, step = (at - 1) % TRAINING_STEPS;
        assert_int_equal(resumed.steps, ALL_STEPS - epoch * TRAINING_STEPS - step / 2 * 2);
    }
}

/* ---- Trainings that stop themselves ---- */

static CornuStatus stop_training(CornuCallback *self, CornuModel *model, int64_t epoch,
                                 const CornuLogs *logs)
{
    (void)self, (void)logs;
    if (epoch == 1) cornu_model_stop_training(model);
    return CORNU_OK;
}

/* Started again, as after a failed save, it has nothing left to do. */
static void what_has_stopped_stays_stopped(void **state)
{
    (void)state;
    static unsigned char files[2][MAX_FILE];
    size_t               sizes[2];
    for (int again = 0; again < 2; again++) {
        CornuCallback own = { .epoch_end = again ? NULL : stop_training };
        CornuModel   *model = training_model(TRAINING_SHUFFLED, NULL);
        if (!model) fail_msg("%s", cornu_error_message());
        CornuHistory *history =
            training_fit(TRAINING_SHUFFLED, model,
                         cornu_backup_and_restore(kept(), .keep_checkpoint = true), &own);
        if (!history) fail_msg("%s", cornu_error_message());
        assert_int_equal(cornu_history_epochs(history), 2);
        expect_ok(cornu_model_save(model, files_path(folder, "model.safetensors")));
        sizes[again] = files_read(files_path(folder, "model.safetensors"), files[again], MAX_FILE);
        cornu_history_free(history);
        cornu_model_free(model);
    }
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(files[0], files[1], sizes[0]);
    expect_ok(cornu_backup_remove(kept()));
}

/* ---- Files ---- */

static const Case plain = { "cpu", 1, TRAINING_SHUFFLED };

static void equal_states_are_equal_files(void **state)
{
    (void)state;
    static unsigned char a[MAX_FILE], b[MAX_FILE];
    static const Case    cases[] = { { "cpu", 1, TRAINING_SHUFFLED },
                                     { "tpu", 2, TRAINING_STATEFUL } };
    static Result        none;
    for (int i = 0; i < 2; i++) {
        size_t sizes[2];
        for (int k = 0; k < 2; k++) {
            assert_false(run(&cases[i], 1 + k, 6, true, 100, &none));
            const char *path = files_path(kept(), "backup-000001-00000002.safetensors");
            sizes[k] = files_read(path, k ? b : a, MAX_FILE);
            assert_int_equal(unlink(path), 0);
            assert_int_equal(unlink(files_path(kept(), "backup-000001-00000000.safetensors")), 0);
        }
        assert_int_equal(sizes[0], sizes[1]);
        assert_memory_equal(a, b, sizes[0]);
    }
    rmdir(kept());
}

static void the_newest_are_kept(void **state)
{
    (void)state;
    static Result none;
    assert_false(run(&plain, 1, 7, true, 1, &none));
    assert_int_equal(each_backup(NULL), 2);
    assert_int_equal(access(files_path(kept(), "backup-000001-00000003.safetensors"), F_OK), 0);
    assert_int_equal(access(files_path(kept(), "backup-000001-00000002.safetensors"), F_OK), 0);
    /* The file that a killed process was writing is removed. */
    unsigned char bytes[100];
    files_write(files_path(kept(), ".backup-000001-00000004.safetensors.1-0"), bytes, 0);
    assert_int_equal(files_read(files_path(kept(), "backup-000001-00000003.safetensors"), bytes,
                                sizeof bytes), sizeof bytes);
    files_write(files_path(kept(), ".backup-000001-00000005.safetensors.12-3"), bytes,
                sizeof bytes);
    /* So is the folder, if one was killed when it had made its mark, but not written it. */
    files_write(files_path(kept(), ".cornu-backups"), bytes, 0);
    assert_true(run(&plain, 1, -1, false, 1, &none));
    assert_int_equal(files_count(kept()), 0);
    assert_int_equal(access(kept(), F_OK), -1);
}

/* The user's files stay: with names that resemble ours, or with our names but other content. */
static void only_backups_are_removed(void **state)
{
    static const char names[][48] = {   /* and what is in them: 8 bytes */
        ".backup-notes", ".backup-000001-00000004.safetensors", "backup-7-7.safetensors",
        ".backup-000001-00000004.safetensors.1-0", ".backup-000001-00000004.safetensors.01-0",
        "backup-000000-00000001.safetensors", "backup-000000-00000002.safetensors", "notes",
    };
    enum { NAMES = sizeof names / sizeof *names };
    static Result whole, resumed;
    (void)state;
    assert_true(run(&plain, 1, -1, false, 0, &whole));
    assert_int_equal(mkdir(kept(), 0777), 0);
    assert_false(run(&plain, 1, 7, true, 1, &resumed));
    for (int i = 0; i < NAMES; i++) files_write(files_path(kept(), names[i]), names[i], 8);
    assert_int_equal(each_backup(NULL), 3 + 2);
    assert_true(run(&plain, 1, -1, false, 1, &resumed));
    expect_same(&plain, "among other files, step", 7, &whole, &resumed);
    for (int i = 0; i < NAMES; i++) {
        char bytes[9];
        assert_int_equal(files_read(files_path(kept(), names[i]), bytes, 9), 8);
        assert_memory_equal(bytes, names[i], 8);
        assert_int_equal(unlink(files_path(kept(), names[i])), 0);
    }
    /* The user's folder stays even if empty. */
    assert_true(run(&plain, 1, -1, false, 1, &resumed));
    assert_int_equal(access(kept(), F_OK), 0);
    assert_int_equal(files_count(kept()), 0);
    assert_int_equal(rmdir(kept()), 0);
}

/* A finished training is not lost if its files could not be written. */
static void backups_last_until_they_are_removed(void **state)
{
    static unsigned char first[MAX_FILE], again[MAX_FILE];
    size_t               sizes[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        Stopper        counter = stop_after(0, NULL);
        CornuDevice   *device = cornu_device_open("cpu", .threads = 1);
        CornuModel    *model = training_model(TRAINING_SHUFFLED, device);
        CornuCallback *backup = cornu_backup_and_restore(kept(), .keep_checkpoint = true);
        CornuHistory  *history = training_fit(TRAINING_SHUFFLED, model, backup, &counter.base);
        assert_non_null(history);
        assert_int_equal(cornu_history_epochs(history), TRAINING_EPOCHS);
        assert_int_equal(counter.steps_left, i ? 0 : -ALL_STEPS);
        assert_int_equal(each_backup(NULL), 2);
        const char *path = files_path(folder, "model.safetensors");
        expect_ok(cornu_model_save(model, path));
        sizes[i] = files_read(path, i ? again : first, MAX_FILE);
        cornu_history_free(history);
        cornu_model_free(model);
        cornu_device_close(device);
    }
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(first, again, sizes[0]);
    CornuCallback *training = cornu_backup_and_restore(kept());
    expect_error(cornu_backup_remove(kept()), CORNU_ERR_FILE, "used by another process");
    training->free(training);
    assert_int_equal(each_backup(NULL), 2);
    expect_ok(cornu_backup_remove(kept()));
    assert_int_equal(access(kept(), F_OK), -1);
    expect_ok(cornu_backup_remove(kept()));
}

/* ---- Numbers that are not finite ---- */

static void expect_finite(const char *path)
{
    CornuSafetensors *file = cornu_safetensors_open(path);
    assert_non_null(file);
    for (int i = 0; i < cornu_safetensors_count(file); i++) {
        const CornuNamedArray *array = cornu_safetensors_at(file, i);
        if (array->name[0] == '@' && strncmp(array->name, "@metric/loss", 12)) continue;
        for (int64_t k = 0; k < cornu_type_count(array->array.type); k++)
            if (!isfinite(cornu_array_get(array->array, k)))
                fail_msg("%s: element %lld of %s is not finite", path, (long long)k, array->name);
    }
    cornu_safetensors_close(file);
}

/* From the third step of epoch 1 on the training diverges. */
static CornuStatus break_training(CornuCallback *base, CornuModel *model, int64_t batch,
                                  const CornuLogs *logs)
{
    Stopper *self = (Stopper *)base;
    (void)batch, (void)logs;
    if (++self->steps_left != TRAINING_STEPS + 2) return CORNU_OK;
    return cornu_optimizer_set_learning_rate(cornu_model_optimizer(model), 1e38);
}

/* The values before it are. */
static CornuStatus break_last_weight(CornuCallback *base, CornuModel *model, int64_t batch,
                                     const CornuLogs *logs)
{
    static float       nan[64];
    Stopper           *self = (Stopper *)base;
    CornuWeight       *last = cornu_model_weight(model, cornu_model_weight_count(model) - 1);
    const CornuType    type = cornu_variable_host_type(last->variable);
    (void)batch, (void)logs;
    if (++self->steps_left < TRAINING_STEPS + 2) return CORNU_OK;
    assert_int_equal(type.dtype, CORNU_F32);
    assert_in_range(cornu_type_count(type), 1, 64);
    for (int i = 0; i < 64; i++) nan[i] = NAN;
    return cornu_weight_write(last, cornu_array_from(nan, type));
}

static void what_is_not_finite_is_not_kept(void **state)
{
    (void)state;
    for (int way = 0; way < 3; way++) {
        const bool  takes = way > 0;
        Stopper     breaker = { .base = { .train_batch_end = way < 2 ? break_training
                                                                     : break_last_weight,
                                          .takes_nan = takes } };
        CornuDevice *device = cornu_device_open("cpu", .threads = 1);
        CornuModel  *model = training_model(TRAINING_SHUFFLED, device);
        CornuHistory *history =
            training_fit(TRAINING_SHUFFLED, model,
                         cornu_backup_and_restore(kept(), 1, .keep_checkpoint = true),
                         &breaker.base);
        assert_int_equal(history != NULL, takes);
        if (!takes) expect_error(cornu_error_take(), CORNU_ERR_VALUE,
                                  "in epoch 2, between steps 4 and 4");
        assert_int_equal(each_backup(expect_finite), 2);
        cornu_history_free(history);
        cornu_model_free(model);
        cornu_device_close(device);
        expect_ok(cornu_backup_remove(kept()));
    }
}

/* Expects fit to refuse a slightly different model or other data. */
static void expect_refusal(CornuModel *model, int64_t batch_size, CornuStatus wanted,
                           const char *part)
{
    static float   x[30 * 6];
    static int32_t y[30];
    CornuHistory  *history =
        cornu_fit(model, .x = cornu_array(x, CORNU_F32, 30, 6), .y = cornu_array(y, CORNU_I32, 30),
                  .batch_size = batch_size, .epochs = TRAINING_EPOCHS, .verbose = CORNU_SILENT,
                  .callbacks = { cornu_backup_and_restore(kept()) });
    assert_null(history);
    expect_error(cornu_error_take(), wanted, part);
    cornu_model_free(model);
}

static CornuModel *other_model(uint64_t seed, int64_t units)
{
    cornu_set_random_seed(seed);
    CornuModel *model = cornu_sequential(.input_shape = { 6 });
    cornu_model_add(model, cornu_dense(units, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_batch_normalization(.momentum = 0.9));
    cornu_model_add(model, cornu_dropout(0.3));
    cornu_model_add(model, cornu_dense(3, .activation = CORNU_SOFTMAX));
    expect_ok(cornu_compile(model, .optimizer = cornu_adam(.use_ema = true),
                            .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                            .metrics = { CORNU_ACCURACY }));
    return model;
}

static void other_trainings_are_refused(void **state)
{
    (void)state;
    static Result none;
    assert_false(run(&plain, 1, 6, true, 100, &none));
    expect_refusal(other_model(11, 13), 8, CORNU_ERR_SHAPE,
                   "dense/kernel is (6, 13) in the model and (6, 12) in the file");
    expect_refusal(other_model(12, 12), 8, CORNU_ERR_ARGUMENT,
                   "it is of a training whose seed is 11, this one's is 12");
    expect_refusal(other_model(11, 12), 10, CORNU_ERR_ARGUMENT, "whose batch_size is 8");
    CornuCallback *one = cornu_backup_and_restore(kept());
    assert_non_null(one);
    assert_null(cornu_backup_and_restore(kept()));
    expect_error(cornu_error_take(), CORNU_ERR_FILE, "used by another process");
    one->free(one);
    assert_null(cornu_backup_and_restore("/dev/null/x"));
    expect_error(cornu_error_take(), CORNU_ERR_FILE, "/dev/null");
    assert_null(cornu_backup_and_restore());
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "backup_dir is required");
    /* The training itself is unchanged. */
    assert_true(run(&plain, 1, -1, false, 100, &none));
}

/* ---- Other data and settings ---- */

/* The settings of a training, of which one changes at a time. */
typedef struct {
    double      learning_rate, dropout, value;   /* value: of one element of x */
    const char *policy, *device;
    int         shards, threads, sgd;
    const char *differs;                         /* in the message; NULL: it resumes */
} Setting;

static CornuStatus train_with(const Setting *setting, bool stops)
{
    static float   x[30 * 6];
    static int32_t y[30];
    for (int i = 0; i < 30 * 6; i++) x[i] = (float)(i % 7) - 3.0f;
    x[17] += (float)setting->value;
    Stopper      stopper = stop_after(stops ? 3 : -1, NULL);
    CornuDevice *device = cornu_device_open(setting->device ? setting->device : "tpu",
                                            .threads = setting->threads,
                                            .shards = setting->shards ? setting->shards : 2);
    cornu_set_random_seed(3);
    CornuModel *model = cornu_sequential(.input_shape = { 6 },
                                         .policy = setting->policy ? setting->policy : "float32");
    cornu_model_add(model, cornu_dense(5, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_dropout(setting->dropout != 0.0 ? setting->dropout : 0.1));
    cornu_model_add(model, cornu_dense(2, .activation = CORNU_SOFTMAX));
    const double rate = setting->learning_rate != 0.0 ? setting->learning_rate : 0.01;
    expect_ok(cornu_compile(model, .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY, .device = device,
                            .optimizer = setting->sgd ? cornu_sgd(.learning_rate = rate)
                                                      : cornu_rmsprop(.learning_rate = rate)));
    CornuHistory *history = cornu_fit(
        model, .x = cornu_array(x, CORNU_F32, 30, 6), .y = cornu_array(y, CORNU_I32, 30),
        .batch_size = 8, .epochs = 2, .verbose = CORNU_SILENT,
        .callbacks = { &stopper.base,
                       cornu_backup_and_restore(kept(), 1, .keep_checkpoint = true) });
    const CornuStatus status = cornu_error_take();
    assert_int_equal(history != NULL, status == CORNU_OK);
    cornu_history_free(history);
    cornu_model_free(model);
    cornu_device_close(device);
    return status;
}

static void other_settings_are_refused(void **state)
{
    static const Setting settings[] = {
        { .learning_rate = 0.02,
          .differs = "compiled.optimizer.config.learning_rate was 0.01 and is 0.02" },
        { .sgd = 1, .differs = "" },   /* other variables: a name is missing */
        { .dropout = 0.2, .differs = "config.rate was 0.1" },
        { .value = 0.25, .differs = "data.checksum was " },
        { .policy = "mixed_bfloat16", .differs = "policy was float32 and is mixed_bfloat16" },
        { .device = "cpu", .differs = "device was tpu and is cpu" },
        { .shards = 4, .differs = "shards was 2 and is 4" },
        { .threads = 2 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        assert_int_equal(train_with(&(Setting){ .threads = 1 }, true), CORNU_ERR_INTERRUPTED);
        const CornuStatus status = train_with(&settings[i], false);
        const char *differs = settings[i].differs;
        if (!differs) expect_ok(status);
        else if (*differs) expect_error(status, CORNU_ERR_ARGUMENT, differs);
        else assert_int_not_equal(status, CORNU_OK);
        expect_ok(cornu_backup_remove(kept()));
    }
}

/* A backup by a version that did not save settings. */
static void backups_without_settings_go_on(void **state)
{
    static Result  whole, resumed;
    CornuMetadata  training = { "training", NULL };
    CornuNamedArray arrays[100];
    (void)state;
    assert_true(run(&plain, 1, -1, false, 0, &whole));
    assert_false(run(&plain, 1, 5, true, 100, &resumed));
    const char       *path = files_path(kept(), "backup-000001-00000001.safetensors");
    CornuSafetensors *file = cornu_safetensors_open(path);
    assert_non_null(file);
    assert_non_null(cornu_safetensors_metadata(file, "settings"));
    training.text = cornu_safetensors_metadata(file, "training");
    for (int i = 0; i < cornu_safetensors_count(file); i++)
        arrays[i] = *cornu_safetensors_at(file, i);
    expect_ok(cornu_safetensors_write(path, arrays, cornu_safetensors_count(file), &training, 1));
    cornu_safetensors_close(file);

    FILE        *said = tmpfile();
    char         text[2000] = "";
    CornuDevice *device = cornu_device_open("cpu", .threads = 1);
    CornuModel  *model = training_model(TRAINING_SHUFFLED, device);
    CornuHistory *history = training_fit(TRAINING_SHUFFLED, model,
                                         cornu_backup_and_restore(kept(), .verbose = 1,
                                                                  .file = said), NULL);
    assert_non_null(history);
    read_logs(history, &resumed);
    assert_memory_equal(resumed.logs, whole.logs, sizeof whole.logs);
    rewind(said);
    assert_true(fread(text, 1, sizeof text - 1, said) > 0);
    assert_non_null(strstr(text, "does not record its data and settings"));
    fclose(said);
    cornu_history_free(history);
    cornu_model_free(model);
    cornu_device_close(device);
}

static void damage(const char *name)
{
    static unsigned char bytes[MAX_FILE];
    const char          *path = files_path(kept(), name);
    const size_t         size = files_read(path, bytes, MAX_FILE);
    bytes[size - 5] ^= 1;
    files_write(path, bytes, size);
}

static void damaged_files_are_passed_over(void **state)
{
    (void)state;
    static Result whole, resumed;
    assert_true(run(&plain, 1, -1, false, 0, &whole));
    assert_false(run(&plain, 1, 7, true, 1, &resumed));
    damage("backup-000001-00000003.safetensors");
    assert_true(run(&plain, 1, -1, false, 1, &resumed));
    expect_same(&plain, "one damaged file after step", 7, &whole, &resumed);

    assert_false(run(&plain, 1, 7, true, 1, &resumed));
    damage("backup-000001-00000003.safetensors");
    damage("backup-000001-00000002.safetensors");
    expect_refusal(other_model(11, 12), 8, CORNU_ERR_FORMAT, "none of its 2 backups can be used");
    assert_int_equal(each_backup(NULL), 2);
}

/* ---- Callbacks ---- */

typedef struct {
    CornuCallback base;
    double        numbers[2];      /* epochs and batches seen */
} Counter;

static double *counter_state(CornuCallback *base, int *count)
{
    *count = 2;
    return ((Counter *)base)->numbers;
}

static CornuStatus count_epoch(CornuCallback *base, CornuModel *model, int64_t epoch,
                               const CornuLogs *logs)
{
    (void)model, (void)epoch, (void)logs;
    ((Counter *)base)->numbers[0] += 1.0;
    return CORNU_OK;
}

static CornuStatus count_batch(CornuCallback *base, CornuModel *model, int64_t batch,
                               const CornuLogs *logs)
{
    (void)batch, (void)logs;
    Counter *self = (Counter *)base;
    self->numbers[1] += 1.0;
    if (self->numbers[1] == 6.0 && self->numbers[0] == 1.0) stop = 1;
    (void)model;
    return CORNU_OK;
}

static void callbacks_go_on_too(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        stop = 0;
        CornuDevice *device = cornu_device_open("cpu", .threads = 1);
        CornuModel  *model = training_model(TRAINING_SHUFFLED, device);
        Counter      counter = { .base = { .state = counter_state, .epoch_end = count_epoch,
                                           .train_batch_end = count_batch } };
        CornuHistory *history =
            training_fit(TRAINING_SHUFFLED, model,
                         cornu_backup_and_restore(kept(), .stop = &stop), &counter.base);
        assert_int_equal(history != NULL, i);
        cornu_error_take();
        if (i) assert_int_equal(counter.numbers[0], TRAINING_EPOCHS);
        if (i) assert_int_equal(counter.numbers[1], ALL_STEPS);
        cornu_history_free(history);
        cornu_model_free(model);
        cornu_device_close(device);
    }
}

int main(void)
{
    static const Case cases[] = {
        { "cpu", 1, TRAINING_SHUFFLED }, { "cpu", 1, TRAINING_STATEFUL },
        { "cpu", 1, TRAINING_AUGMENTED }, { "tpu", 2, TRAINING_SHUFFLED },
        { "tpu", 2, TRAINING_STATEFUL }, { "tpu", 8, TRAINING_AUGMENTED },
        { "tpu", 4, TRAINING_GROUPS }, { "cpu", 4, TRAINING_GROUPS },
    };
    enum { CASES = sizeof cases / sizeof *cases };
    static char names[CASES][80];
    struct CMUnitTest tests[CASES + 11];
    for (int i = 0; i < CASES; i++) {
        snprintf(names[i], sizeof names[i], "stopping_changes_no_bit %s %s",
                 training_name(cases[i].training), cases[i].device);
        tests[i] = (struct CMUnitTest){ names[i], stopping_changes_no_bit, files_begin, files_end,
                                        (void *)(uintptr_t)&cases[i] };
    }
    const struct CMUnitTest more[] = {
        cmocka_unit_test_setup_teardown(equal_states_are_equal_files, files_begin, files_end),
        cmocka_unit_test_setup_teardown(the_newest_are_kept, files_begin, files_end),
        cmocka_unit_test_setup_teardown(only_backups_are_removed, files_begin, files_end),
        cmocka_unit_test_setup_teardown(backups_last_until_they_are_removed, files_begin,
                                        files_end),
        cmocka_unit_test_setup_teardown(what_is_not_finite_is_not_kept, files_begin, files_end),
        cmocka_unit_test_setup_teardown(other_trainings_are_refused, files_begin, files_end),
        cmocka_unit_test_setup_teardown(other_settings_are_refused, files_begin, files_end),
        cmocka_unit_test_setup_teardown(backups_without_settings_go_on, files_begin, files_end),
        cmocka_unit_test_setup_teardown(damaged_files_are_passed_over, files_begin, files_end),
        cmocka_unit_test_setup_teardown(callbacks_go_on_too, files_begin, files_end),
        cmocka_unit_test_setup_teardown(what_has_stopped_stays_stopped, files_begin, files_end),
    };
    memcpy(tests + CASES, more, sizeof more);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
