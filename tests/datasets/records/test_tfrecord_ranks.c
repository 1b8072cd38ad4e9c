/* A training from 37 TFRecord files of different lengths ends with the same bytes for any number of
 * ranks and of reading threads, undisturbed or killed and resumed with others in the middle of an
 * epoch.
 *
 * tests/run: quick
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../device/hash/sha256_internal.h"
#include "../../../nn/cornu.h"
#include "../../device/processes/ranks.h"
#include "../../expect.h"
#include "../../nn/callbacks/stopper.h"
#include "../../quick.h"
#include "../files.h"

enum { FILES = 37, FEATURES = 6, CLASSES = 3, SHARDS = 4, BATCH = 16, EPOCHS = 2 };

/* ---- What the ranks do, as set before they start ---- */

static struct {
    const char *run;         /* the folder of rank 0; the others' are beside it */
    bool        compressed;  /* which are shuffled within a window */
    int         threads;
    int64_t     killed;      /* after how many steps the last rank ends; 0: never */
} task;

static CornuDataset *records(void)
{
    static const CornuFeature features[] = { { "x", .shape = { 1, { FEATURES } } },
                                             { "y", .dtype = CORNU_I32 },
                                             { .name = NULL } };
    char pattern[FILES_PATH + 40];
    snprintf(pattern, sizeof pattern, "%s/part-*.%s", folder, task.compressed ? "gz" : "tfrecord");
    CornuDataset *dataset = cornu_tfrecord_dataset(pattern, features, .cycle_length = 5,
                                                   .block_length = 2);
    dataset = task.compressed ? cornu_dataset_shuffle_window(dataset, 50, 7)
                              : cornu_dataset_shuffle(dataset, 7);
    return cornu_dataset_parallel(cornu_dataset_batch(dataset, BATCH, false), task.threads);
}

static void go_to_folder(int rank)
{
    char path[FILES_PATH + 40];
    snprintf(path, sizeof path, "%s/%s-%d", folder, task.run, rank);
    mkdir(path, 0777);
    if (chdir(path)) exit(3);
}

static CornuModel *make_model(CornuDevice *device)
{
    cornu_set_random_seed(11);
    CornuModel *model = cornu_sequential(.input_shape = { FEATURES });
    cornu_model_add(model, cornu_dense(12, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_dropout(0.3));
    cornu_model_add(model, cornu_dense(CLASSES, .activation = CORNU_SOFTMAX));
    if (!cornu_compile(model, .optimizer = cornu_adam(), .device = device,
                       .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY))
        return model;
    cornu_model_free(model);
    return NULL;
}

static CornuStatus end_rank(CornuCallback *base, CornuModel *model, int64_t batch,
                            const CornuLogs *logs)
{
    Stopper *self = (Stopper *)base;
    (void)model, (void)batch, (void)logs;
    return --self->steps_left == 0 ? raise(SIGKILL) : CORNU_OK;
}

/* Trains with a backup every third step, and saves the model. */
static CornuStatus train(CornuProcesses *processes)
{
    const bool   last = cornu_process_rank(processes) == cornu_process_count(processes) - 1;
    Stopper      stopper = stop_after(last ? task.killed : 0, NULL);
    CornuDevice *device = cornu_device_open("tpu", .threads = 1, .shards = SHARDS,
                                            .processes = processes);
    CornuModel   *model = device ? make_model(device) : NULL;
    CornuDataset *dataset = model ? records() : NULL;
    stopper.base.train_batch_end = end_rank;
    CornuHistory *history =
        cornu_fit(model, dataset, .epochs = EPOCHS, .verbose = CORNU_SILENT,
                  .callbacks = { cornu_backup_and_restore("kept", 3), &stopper.base });
    CornuStatus status = history ? cornu_model_save(model, "model.safetensors")
                                 : cornu_error_take();
    cornu_history_free(history);
    cornu_dataset_free(dataset);
    cornu_model_free(model);
    cornu_device_close(device);
    return status;
}

/* ---- Runs ---- */

static void write_files(const char *ending)
{
    for (int file = 0; file < FILES; file++) {
        char name[40];
        snprintf(name, sizeof name, "part-%02d.%s", file, ending);
        CornuTfrecordWriter *writer = cornu_tfrecord_writer_open(files_path(folder, name));
        for (int record = 0; record < file * 5 % 13; record++) {
            float   x[FEATURES];
            int32_t y = (file + record) % CLASSES;
            for (int i = 0; i < FEATURES; i++)
                x[i] = (float)((file * 31 + record * 17 + i * 37) % 101) / 50.0f - 1.0f;
            cornu_tfrecord_writer_example(writer, (CornuExampleFeature[]){
                { "x", .values = cornu_array(x, CORNU_F32, FEATURES) },
                { "y", .values = cornu_array(&y, CORNU_I32, 1) } }, 2);
        }
        expect_ok(cornu_tfrecord_writer_close(writer));
    }
}

static int write_all(void **state)
{
    if (files_begin(state)) return 1;
    write_files("tfrecord");
    write_files("gz");
    return 0;
}

/* Of the model that rank 0 has written, which is removed. */
static void take_sum(char sum[CORNU__SHA256_TEXT])
{
    char path[FILES_PATH + 40];
    snprintf(path, sizeof path, "%s/%s-0/model.safetensors", folder, task.run);
    expect_ok(cornu__sha256_file(path, sum));
    assert_int_equal(remove(path), 0);
}

static void run(int ranks, int threads, int64_t killed)
{
    Ranks ended;
    task.threads = threads;
    task.killed = killed;
    ranks_run(&ended, ranks, "tcp", 20, go_to_folder, train);
    for (int i = 0; i < ranks && !killed; i++)
        if (!ended.ends[i].reported || ended.ends[i].status)
            fail_msg("rank %d of %d: %s", i, ranks, ended.ends[i].message);
    if (killed) assert_false(ended.ends[ranks - 1].reported);
}

static void train_with_any_number(bool compressed)
{
    char whole[CORNU__SHA256_TEXT], other[CORNU__SHA256_TEXT];
    task.compressed = compressed;
    task.run = compressed ? "gz" : "plain";
    run(1, 1, 0);
    take_sum(whole);
    for (int ranks = 1; ranks <= 3; ranks++)
        for (int threads = 1; threads <= 4; threads += quick(3, 1)) {
            run(ranks, threads, 0);
            take_sum(other);
            assert_string_equal(other, whole);
            /* In the first epoch, then in the second, of 14 steps. */
            run(ranks, threads, threads % 2 ? 8 : 20);
            run(ranks % 3 + 1, 5 - threads, 0);
            take_sum(other);
            assert_string_equal(other, whole);
        }
}

static void plain_files(void **state)
{
    (void)state;
    train_with_any_number(false);
}

static void compressed_files(void **state)
{
    (void)state;
    train_with_any_number(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(plain_files),
                                        cmocka_unit_test(compressed_files) };
    return cmocka_run_group_tests(tests, write_all, files_end);
}
