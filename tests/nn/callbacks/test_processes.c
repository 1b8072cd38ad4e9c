/* One of everything: what a training of several processes writes, prints, stops by and resumes
 * from. Each rank has a folder of its own, as on machines that share no file system. */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../skip.h"
#include <jansson.h>

#include "../../datasets/files.h"
#include "../../device/processes/ranks.h"
#include "../../expect.h"
#include "../training/trainings.h"
#include "stopper.h"

enum { MAX_FILE = 1 << 18, MOST_FILES = 64, SHARDS = 4,
       ALL_STEPS = TRAINING_EPOCHS * TRAINING_STEPS };

/* ---- What the ranks do, as set before they start ---- */

static struct {
    const char *run;             /* its folder, with one of each rank */
    Training    training;
    int         killed, asked;   /* a rank; -1: none */
    int64_t     after;           /* how many steps that happens */
    bool        keep;            /* the backups */
} task;

static volatile sig_atomic_t stop;

static const char *folder_of(const char *run, int rank)
{
    char name[80];
    snprintf(name, sizeof name, "%s/%d", run, rank);
    return files_path(folder, name);
}

/* Its folder, which may be there from an earlier run, and its output in it. */
static void go_to_folder(int rank)
{
    char path[600];
    snprintf(path, sizeof path, "%s", folder_of(task.run, rank));
    files_path(path, "x");
    mkdir(path, 0777);
    if (chdir(path) || !freopen("out", "w", stdout)) exit(3);
}

static CornuModel *open_model(CornuProcesses *processes, CornuDevice **device)
{
    *device = cornu_device_open("tpu", .threads = 1, .shards = SHARDS, .processes = processes);
    return *device ? training_model(task.training, *device) : NULL;
}

static CornuStatus close_model(CornuModel *model, CornuDevice *device, CornuStatus status)
{
    if (!status && cornu_error_status()) status = cornu_error_take();
    cornu_model_free(model);
    cornu_device_close(device);
    return status;
}

static CornuStatus end_rank(CornuCallback *base, CornuModel *model, int64_t batch,
                            const CornuLogs *logs)
{
    Stopper *self = (Stopper *)base;
    (void)model, (void)batch, (void)logs;
    return --self->steps_left == 0 ? raise(SIGKILL) : CORNU_OK;
}

/* Trains with a backup every second step, and saves the model. */
static CornuStatus train(CornuProcesses *processes)
{
    const int    rank = cornu_process_rank(processes);
    CornuDevice *device;
    CornuModel  *model = open_model(processes, &device);
    Stopper      stopper = stop_after(rank == task.asked ? task.after : -1, &stop);
    if (rank == task.killed) {
        stopper.base.train_batch_end = end_rank;
        stopper.steps_left = task.after;
    }
    CornuHistory *history =
        training_fit(task.training, model,
                     cornu_backup_and_restore("kept", 2, .stop = &stop, .verbose = 1,
                                              .keep_checkpoint = task.keep), &stopper.base);
    CornuStatus status = history ? cornu_model_save(model, "model.safetensors")
                                 : cornu_error_take();
    cornu_history_free(history);
    return close_model(model, device, status);
}

/* ---- Comparing folders ---- */

typedef struct {
    int  count;
    char names[MOST_FILES][120];     /* with their folders, sorted */
} Files;

static int by_name(const void *a, const void *b) { return strcmp(a, b); }

static void list_into(Files *files, const char *path, const char *before)
{
    DIR *directory = opendir(path);
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        char        name[120], full[700];
        struct stat info;
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        snprintf(name, sizeof name, "%.40s%.70s", before, entry->d_name);
        snprintf(full, sizeof full, "%s/%s", path, entry->d_name);
        assert_int_equal(lstat(full, &info), 0);
        if (S_ISDIR(info.st_mode)) {
            strncat(name, "/", sizeof name - strlen(name) - 1);
            list_into(files, full, name);
        } else {
            assert_true(files->count < MOST_FILES);
            strcpy(files->names[files->count++], name);
        }
    }
    if (directory) closedir(directory);
}

static Files list(const char *path)
{
    Files files = { .count = 0 };
    list_into(&files, path, "");
    qsort(files.names, (size_t)files.count, sizeof files.names[0], by_name);
    return files;
}

/* Time, host and process are in it. */
static bool is_events(const char *name) { return strstr(name, "events.out.tfevents.") != NULL; }

static bool has_times(const char *name)
{
    return !strcmp(name, "out") || !strcmp(name, "trace.json") || is_events(name);
}

static const unsigned char *read_bytes(int which, const char *path, size_t *size)
{
    static unsigned char bytes[2][MAX_FILE];
    *size = files_read(path, bytes[which], MAX_FILE);
    assert_in_range(*size, 1, MAX_FILE - 1);
    return bytes[which];
}

static void expect_same_file(const char *a, const char *b)
{
    size_t               sizes[2];
    const unsigned char *x = read_bytes(0, a, &sizes[0]), *y = read_bytes(1, b, &sizes[1]);
    if (sizes[0] != sizes[1] || memcmp(x, y, sizes[0])) fail_msg("%s differs from %s", a, b);
}

/* The same files, and in them the same bytes unless they have times; of events as many bytes. */
static void expect_same_folder(const char *of, const char *and)
{
    char a[FILES_PATH], b[FILES_PATH];
    snprintf(a, sizeof a, "%s", of);
    snprintf(b, sizeof b, "%s", and);
    const Files x = list(a), y = list(b);
    if (x.count != y.count) fail_msg("%s has %d files, %s %d", a, x.count, b, y.count);
    for (int i = 0; i < x.count; i++) {
        const char *p = files_path(a, x.names[i]), *q = files_path(b, y.names[i]);
        const bool  events = is_events(x.names[i]) && is_events(y.names[i]);
        size_t      sizes[2];
        if (!events) assert_string_equal(x.names[i], y.names[i]);
        if (!has_times(x.names[i])) expect_same_file(p, q);
        if (!events) continue;
        read_bytes(0, p, &sizes[0]);
        read_bytes(1, q, &sizes[1]);
        assert_int_equal(sizes[0], sizes[1]);
    }
}

/* Nothing but its output, which is empty. */
static void expect_nothing(const char *run, int rank)
{
    struct stat info;
    const Files files = list(folder_of(run, rank));
    if (files.count != 1) fail_msg("rank %d has written %s", rank, files.names[0]);
    assert_string_equal(files.names[0], "out");
    assert_int_equal(stat(files_path(folder_of(run, rank), "out"), &info), 0);
    assert_int_equal(info.st_size, 0);
}

/* ---- Runs ---- */

/* A new run, or one that resumes in the folder of an earlier one. */
static void begin_task(const char *run, Training training)
{
    task.run = run;
    task.training = training;
    task.killed = task.asked = -1;
    task.keep = false;
    mkdir(files_path(folder, run), 0777);
}

static void run_ranks(Ranks *ranks, int count, RankBody *body)
{
    ranks_run(ranks, count, "tcp", 20, go_to_folder, body);
}

static void expect_success(const Ranks *ranks)
{
    for (int i = 0; i < ranks->count; i++)
        if (!ranks->ends[i].reported || ranks->ends[i].status)
            fail_msg("rank %d of %d: %s", i, ranks->count, ranks->ends[i].message);
}

static void succeed(int count, RankBody *body)
{
    Ranks ranks;
    run_ranks(&ranks, count, body);
    expect_success(&ranks);
}

/* ---- Everything that a training writes ---- */

static CornuStatus save_all(CornuModel *model)
{
    static const char *const whole[] = { "all.safetensors", "all.keras", "all.onnx" };
    static const char *const weights[] = { "w.npz", "w.weights.h5", "w.safetensors" };
    CornuStatus status = CORNU_OK;
    for (int i = 0; i < 3 && !status; i++) {
        if (cornu_model_save_check(whole[i]) == CORNU_ERR_UNSUPPORTED) continue;   /* no libhdf5 */
        status = cornu_model_save(model, whole[i]);
    }
    for (int i = 0; i < 3 && !status; i++) {
        status = cornu_model_save_weights(model, weights[i]);
        if (status == CORNU_ERR_UNSUPPORTED) status = CORNU_OK;
    }
    return status;
}

static double half(void *context, int64_t epoch, double rate)
{
    (void)context, (void)epoch;
    return rate * 0.5;
}

static CornuStatus write_everything(CornuProcesses *processes)
{
    static float   x[30 * 6];
    static int32_t y[30];
    for (int i = 0; i < 30 * 6; i++) x[i] = (float)(i * 37 % 101) / 50.0f - 1.0f;
    for (int i = 0; i < 30; i++) y[i] = (i * 7 + i / 5) % 3;
    CornuDevice  *device;
    CornuModel   *model = open_model(processes, &device);
    CornuHistory *history = cornu_fit(
        model, .x = cornu_array(x, CORNU_F32, 30, 6), .y = cornu_array(y, CORNU_I32, 30),
        .batch_size = 8, .epochs = 3, .verbose = CORNU_LINES,
        .validation_data = { .x = cornu_array(x, CORNU_F32, 10, 6),
                             .y = cornu_array(y, CORNU_I32, 10) },
        .callbacks = {
            cornu_learning_rate_scheduler(half, .verbose = 1),
            cornu_model_checkpoint("each/{epoch}.safetensors", .verbose = 1),
            cornu_model_checkpoint("best.safetensors", .save_best_only = true, .verbose = 1,
                                   .monitor = "loss"),
            cornu_model_checkpoint("steps/{epoch}-{batch}.npz", .save_weights_only = true,
                                   .save_freq = 3),
            cornu_csv_logger("log.csv"), cornu_tensorboard("tb", .histogram_freq = 1),
            cornu_early_stopping(.monitor = "loss", .restore_best_weights = true, .verbose = 1),
            cornu_terminate_on_nan(), cornu_progbar(), cornu_trace("trace.json"),
            cornu_backup_and_restore("kept/here", 2, .keep_checkpoint = true, .verbose = 1) });
    CornuStatus status = history ? save_all(model) : cornu_error_take();
    const CornuRunRecord record = { .model = "m", .device = "tpu", .policy = "float32",
                                    .data = { .name = "numbers" } };
    if (!status) status = cornu_record_write(&record, "record.json");
    if (!status) status = cornu_file_write("bytes", "bytes", 5);
    CornuPlot *plot = status ? NULL : cornu_plot_create(40, 30, 0xffffff);
    if (plot) status = cornu_plot_save(plot, "plot.png");
    cornu_plot_free(plot);
    cornu_history_free(history);
    return close_model(model, device, status);
}

/* The processes of the trace are the ranks, and its times begin at 0. */
static void expect_trace(const char *run, int count)
{
    json_error_t error;
    char         name[40];
    json_t      *file = json_load_file(files_path(folder_of(run, 0), "trace.json"), 0, &error);
    if (!file) fail_msg("%s: %s", run, error.text);
    const json_t *events = json_object_get(file, "traceEvents"), *event;
    double        first = 1e9;
    int           ranks = 0, steps[4] = { 0 };
    size_t        i;
    json_array_foreach(events, i, event) {
        const int   process = (int)json_integer_value(json_object_get(event, "pid"));
        const char *what = json_string_value(json_object_get(event, "name"));
        const int   rank = process == 1 ? 0 : process - 2;
        if (process == 2) continue;
        assert_in_range(rank, 0, count - 1);
        if (!strcmp(what, "process_name")) {
            const char *is = json_string_value(
                json_object_get(json_object_get(event, "args"), "name"));
            snprintf(name, sizeof name, "rank %d of %d, ", rank, count);
            const size_t length = count > 1 ? strlen(name) : 0;
            assert_false(strncmp(is, name, length));
            assert_false(strncmp(is + length, "measured: tpu", 13));
            ranks++;
        }
        steps[rank] += !strcmp(what, "training step");
        const json_t *ts = json_object_get(event, "ts");
        if (ts && json_number_value(ts) < first) first = json_number_value(ts);
    }
    assert_int_equal(ranks, count);
    for (int rank = 0; rank < count; rank++) assert_int_equal(steps[rank], 1);
    assert_true(first == 0.0);
    json_decref(file);
}

static void what_is_written_is_that_of_one_process(void **state)
{
    (void)state;
    for (int count = 1; count <= 3; count++) {
        static const char *const runs[] = { "", "one", "two", "three" };
        begin_task(runs[count], TRAINING_SHUFFLED);
        succeed(count, write_everything);
        for (int rank = 1; rank < count; rank++) expect_nothing(task.run, rank);
        expect_trace(task.run, count);
        if (count > 1) expect_same_folder(folder_of("one", 0), folder_of(task.run, 0));
    }
    const Files files = list(folder_of("one", 0));
    assert_in_range(files.count, 24, MOST_FILES);
}

/* ---- Stopping and resuming ---- */

static void make_whole(Training training)
{
    begin_task("whole", training);
    succeed(1, train);
}

static void expect_whole(int count)
{
    expect_same_file(files_path(folder_of("whole", 0), "model.safetensors"),
                     files_path(folder_of(task.run, 0), "model.safetensors"));
    assert_int_equal(files_count(files_path(folder_of(task.run, 0), "kept")), 0);
    for (int rank = 1; rank < count; rank++) expect_nothing(task.run, rank);
}

static const int numbers[][2] = { { 2, 3 }, { 3, 1 }, { 1, 4 } };   /* before, and after */

static void killed_trainings_resume_with_any_number(void **state)
{
    static const Training trainings[] = { TRAINING_SHUFFLED, TRAINING_STATEFUL, TRAINING_GROUPS };
    (void)state;
    for (int t = 0; t < 3; t++) {
        make_whole(trainings[t]);
        for (int i = 0; i < 3; i++) {
            Ranks ranks;
            begin_task("cut", trainings[t]);
            task.killed = numbers[i][0] - 1;
            task.after = 6 + i;
            run_ranks(&ranks, numbers[i][0], train);
            for (int rank = 0; rank < task.killed; rank++)
                ranks_expect(&ranks, rank, CORNU_ERR_PROCESS, "rank");
            assert_in_range(files_count(files_path(folder_of("cut", 0), "kept")), 2, 3);
            begin_task("cut", trainings[t]);
            succeed(numbers[i][1], train);
            expect_whole(numbers[i][1]);
        }
    }
}

static void a_signal_to_any_rank_stops_all_at_one_step(void **state)
{
    (void)state;
    Ranks ranks;
    make_whole(TRAINING_SHUFFLED);
    begin_task("stopped", TRAINING_SHUFFLED);
    task.asked = 0;
    task.after = 5;
    run_ranks(&ranks, 1, train);
    ranks_expect(&ranks, 0, CORNU_ERR_INTERRUPTED, "stopped after 1 of 4 steps in epoch 2");
    for (int asked = 0; asked < 3; asked++) {
        static const char *const runs[] = { "asked0", "asked1", "asked2" };
        begin_task(runs[asked], TRAINING_SHUFFLED);
        task.asked = asked;
        task.after = 5;
        run_ranks(&ranks, 3, train);
        for (int rank = 0; rank < 3; rank++)
            ranks_expect(&ranks, rank, CORNU_ERR_INTERRUPTED,
                         "stopped after 1 of 4 steps in epoch 2");
        expect_same_folder(folder_of("stopped", 0), folder_of(task.run, 0));
        expect_nothing(task.run, 1);
        begin_task(runs[asked], TRAINING_SHUFFLED);
        succeed(2, train);
        expect_whole(2);
    }
}

/* ---- Disks that are full ---- */

static CornuCallback *writer_of(int which)
{
    switch (which) {
    case 0:  return cornu_model_checkpoint("full.safetensors");
    case 1:  return cornu_csv_logger("full.csv");
    case 2:  return cornu_backup_and_restore("kept", 2, .keep_checkpoint = true);
    case 3:  return cornu_trace("trace.json");
    default: return cornu_tensorboard("tb", .histogram_freq = 1);
    }
}

static int which_writer;

/* Of rank 0 files of more than 2000 bytes cannot be written, and full.* nothing. */
static CornuStatus write_to_full_disk(CornuProcesses *processes)
{
    const int    rank = cornu_process_rank(processes);
    CornuDevice *device;
    CornuModel  *model = open_model(processes, &device);
    signal(SIGXFSZ, SIG_IGN);
    if (rank == 0) {
        (void)!symlink("/dev/full", "full.safetensors");
        (void)!symlink("/dev/full", "full.csv");
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 2000, 2000 });
    }
    CornuCallback *writer = which_writer < 5 ? writer_of(which_writer) : NULL;
    CornuHistory  *history = training_fit(task.training, model, writer, NULL);
    CornuStatus    status = history ? CORNU_OK : cornu_error_take();
    if (!status && which_writer == 5) status = cornu_model_save(model, "full.safetensors");
    if (!status && which_writer == 6) status = cornu_model_save(model, "big.keras");
    cornu_history_free(history);
    return close_model(model, device, status);
}

static void a_full_disk_ends_all_ranks(void **state)
{
    static const char *const written[] = { "full.safetensors", "full.csv", "kept/backup-",
                                           "trace.json", "tb/", "full.safetensors", "big.keras" };
    (void)state;
    if (access("/dev/full", W_OK)) SKIP_FOR("/dev/full: Linux");
    for (which_writer = 0; which_writer < 7; which_writer++) {
        Ranks ranks;
        char  part[120];
        if (which_writer == 6 && cornu_model_save_check(files_path(folder, "a.keras"))) continue;
        begin_task("full", TRAINING_SHUFFLED);
        run_ranks(&ranks, 3, write_to_full_disk);
        for (int rank = 0; rank < 3; rank++) {
            const RankEnd *end = &ranks.ends[rank];
            snprintf(part, sizeof part, "%s%s", rank ? "rank 0: " : "", written[which_writer]);
            if (!end->reported || !end->status || !strstr(end->message, part))
                fail_msg("%s: rank %d ends with \"%s\"", written[which_writer], rank,
                         end->message);
            assert_true(end->seconds < 15);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_written_is_that_of_one_process, files_begin,
                                        files_end),
        cmocka_unit_test_setup_teardown(killed_trainings_resume_with_any_number, files_begin,
                                        files_end),
        cmocka_unit_test_setup_teardown(a_signal_to_any_rank_stops_all_at_one_step, files_begin,
                                        files_end),
        cmocka_unit_test_setup_teardown(a_full_disk_ends_all_ranks, files_begin, files_end),
    };
    return cmocka_run_group_tests_name("processes", tests, NULL, NULL);
}
