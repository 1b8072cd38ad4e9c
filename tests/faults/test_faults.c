/*
 * What can go wrong while a model is built, trained, saved and loaded: memory runs out, disks are
 * full or fail, files are truncated or changed, processes are killed. Each must end in a status
 * with a message or a right result, never in a crash, a leak, or a damaged file that seems intact.
 *
 *     test_faults             each kind of fault as a test, some with fewer tries
 *     test_faults --report    all tries; prints a line for each kind: NAME TRIED SURVIVED
 *
 * tests/run: alone
 */
#define _GNU_SOURCE    /* syscall */

#include <errno.h>
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
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "../allocations.h"
#include "../datasets/files.h"
#include "../nn/training/trainings.h"
#include "../skip.h"

/* ---- Counting ---- */

typedef struct {
    int tried, survived;
} Count;

static bool report_all;

/* Counts a try, and prints why it was not survived. */
static void note(Count *count, bool survived, const char *format, ...)
{
    count->tried++;
    count->survived += survived;
    if (survived) return;
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

/* Which of `all` cases to try next, evenly spread. */
static int64_t stride(int64_t all, int64_t few, int64_t many)
{
    const int64_t wanted = report_all ? many : few;
    return all > wanted ? all / wanted : 1;
}

static const char *message(void) { return cornu_error_message(); }

/* ---- A disk that fails: these functions replace those of the C library ---- */

static int    reads_left = -1, syncs_left = -1, renames_left = -1;   /* before one fails */
static size_t most_read = SIZE_MAX;                                  /* by one call */

static bool fails_now(int *left) { return *left >= 0 && (*left)-- == 0; }

ssize_t read(int descriptor, void *bytes, size_t size)
{
    if (fails_now(&reads_left)) return errno = EIO, -1;
    return syscall(SYS_read, descriptor, bytes, size < most_read ? size : most_read);
}

/* Whether this file or folder has been synced; fsync records it. */
static struct stat looked_for;
static bool        was_synced;

int fsync(int descriptor)
{
    struct stat info;
    if (fails_now(&syncs_left)) return errno = EIO, -1;
    was_synced |= fstat(descriptor, &info) == 0 && info.st_ino == looked_for.st_ino &&
                  info.st_dev == looked_for.st_dev;
    return (int)syscall(SYS_fsync, descriptor);
}

int rename(const char *from, const char *to)
{
    if (fails_now(&renames_left)) return errno = ENOSPC, -1;
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

/* ---- A model and its file ---- */

enum { MAX_FILE = 1 << 17 };

static char path[FILES_PATH], backups[FILES_PATH];

static void set_up(void)
{
    files_begin(NULL);
    strcpy(path, files_path(folder, "model.safetensors"));
    strcpy(backups, files_path(folder, "backups"));
}

/* Not compiled; `units` make the file larger. */
static CornuModel *make_model(int64_t units)
{
    cornu_set_random_seed(3);
    CornuModel *model = cornu_sequential(.name = "fragile", .input_shape = { 6 });
    cornu_model_add(model, cornu_dense(units, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_dropout(0.3));
    cornu_model_add(model, cornu_dense(3, .activation = CORNU_SOFTMAX));
    return model;
}

/* Writes such a model to `path`; returns its bytes and how many. */
static size_t write_model(int64_t units, unsigned char *bytes)
{
    CornuModel *model = make_model(units);
    if (cornu_model_save(model, path)) {
        fprintf(stderr, "%s\n", message());
        abort();
    }
    cornu_model_free(model);
    return files_read(path, bytes, MAX_FILE);
}

static bool has_bytes(const char *at, const unsigned char *bytes, size_t size)
{
    static unsigned char found[MAX_FILE];
    return access(at, F_OK) == 0 && files_read(at, found, MAX_FILE) == size &&
           memcmp(found, bytes, size) == 0;
}

/* ---- Memory ---- */

static void limit_files(rlim_t size)
{
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = size;
    setrlimit(RLIMIT_FSIZE, &limit);
}

static bool loses_disk;      /* whole_way: the disk is full once the training has ended */

/* Building, compiling, a step of fit with its backup, saving. With `again` the backup stays, and
 * the next call resumes from it. */
static CornuStatus whole_way(bool again)
{
    static float   x[8 * 6];
    static int32_t y[8];
    CornuDevice   *device = cornu_device_open("cpu", .threads = 1);
    CornuModel    *model = make_model(5);
    CornuStatus    status = cornu_compile(model, .optimizer = cornu_adam(), .device = device,
                                          .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                                          .metrics = { CORNU_ACCURACY });
    CornuHistory  *history = NULL;
    if (!status) {
        history = cornu_fit(model, .x = cornu_array(x, CORNU_F32, 8, 6),
                            .y = cornu_array(y, CORNU_I32, 8), .batch_size = 8,
                            .verbose = CORNU_SILENT,
                            .callbacks = { cornu_backup_and_restore(backups,
                                                                   .keep_checkpoint = again) });
        if (!history) status = cornu_error_status();
    }
    if (loses_disk) limit_files(0);
    if (!status) status = cornu_model_save(model, path);
    limit_files(RLIM_INFINITY);
    cornu_history_free(history);
    cornu_model_free(model);
    cornu_device_close(device);
    const CornuStatus pending = cornu_error_take();
    return status ? status : pending;
}

static void fail_allocation(Count *count, int64_t at, bool once, bool again,
                            const unsigned char *bytes, size_t size)
{
    int64_t     leaked = 0;
    CornuStatus status = CORNU_OK;
    /* Memory that is kept from the first failure on is not a leak. */
    for (int i = 0; i < 2 && (i == 0 || leaked > 0); i++) {
        unlink(path);
        const int64_t before = allocations_held();
        (once ? allocations_fail_once : allocations_fail_after)(at);
        status = whole_way(again);
        allocations_fail_after(NEVER);
        leaked = allocations_held() - before;
    }
    const bool told = status == CORNU_ERR_MEMORY || status == CORNU_ERR_DEVICE ||
                      status == CORNU_ERR_FILE;
    const bool whole = has_bytes(path, bytes, size);
    note(count, leaked <= 0 && (status ? told && (whole || access(path, F_OK)) : whole),
         "allocation %lld%s: %s, %lld leaked: %s", (long long)at, once ? " alone" : "",
         cornu_status_name(status), (long long)leaked, message());
}

static void fail_each(Count *count, bool again)
{
    static unsigned char bytes[MAX_FILE];
    if (!allocations_counted()) return;
    for (int i = 0; i < 2; i++)
        if (whole_way(again)) {
            note(count, false, "with all memory: %s", message());
            return;
        }
    const size_t  size = files_read(path, bytes, MAX_FILE);
    const int64_t before = allocations();
    whole_way(again);
    const int64_t all = allocations() - before;
    for (int once = 0; once < 2; once++)
        for (int64_t at = once; at < all; at += stride(all, 60, 600))
            fail_allocation(count, at, once, again, bytes, size);
    /* Afterwards everything works. */
    note(count, !whole_way(again) && has_bytes(path, bytes, size), "afterwards: %s", message());
}

static void allocations_fail(Count *count) { fail_each(count, false); }
static void allocations_fail_again(Count *count) { fail_each(count, true); }

/* ---- Files that are truncated or changed ---- */

/* The model in the file, or NULL and why not. */
static CornuModel *load(CornuStatus *status)
{
    CornuModel *model = cornu_model_load(path);
    *status = model ? CORNU_OK : cornu_error_status();
    return model;
}

static void truncated_files(Count *count)
{
    static unsigned char bytes[MAX_FILE];
    const size_t         size = write_model(2500, bytes);
    for (size_t cut = 0; cut < size; cut += 1024) {
        CornuStatus   status;
        const int64_t before = allocations_held();
        files_write(path, bytes, cut);
        CornuModel *model = load(&status);
        cornu_model_free(model);
        note(count, !model && status == CORNU_ERR_FORMAT && allocations_held() <= before,
             "cut to %zu bytes: %s", cut, message());
    }
}

static bool same_weights(const CornuModel *a, const CornuModel *b)
{
    static float x[MAX_FILE], y[MAX_FILE];
    bool         same = cornu_model_weight_count(a) == cornu_model_weight_count(b);
    for (int i = 0; same && i < cornu_model_weight_count(a); i++) {
        const CornuWeight *u = cornu_model_weight(a, i), *v = cornu_model_weight(b, i);
        same = cornu_type_equal(u->type, v->type) &&
               !cornu_weight_read(u, cornu_array_from(x, u->type)) &&
               !cornu_weight_read(v, cornu_array_from(y, v->type)) &&
               !memcmp(x, y, cornu_type_bytes(u->type));
    }
    return same;
}

static void flipped_bits(Count *count)
{
    static unsigned char bytes[MAX_FILE];
    const size_t         size = write_model(2, bytes);
    CornuModel          *right = make_model(2);
    const size_t         bits = 8 * size;
    for (size_t bit = 0; bit < bits; bit += (size_t)stride((int64_t)bits, 300, (int64_t)bits)) {
        CornuStatus   status;
        const int64_t before = allocations_held();
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        files_write(path, bytes, size);
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        CornuModel *model = load(&status);
        const bool  good = model ? same_weights(model, right)
                                 : status == CORNU_ERR_FORMAT || status == CORNU_ERR_UNSUPPORTED;
        cornu_model_free(model);
        note(count, good && allocations_held() <= before, "bit %zu: %s: %s", bit,
             cornu_status_name(status), message());
    }
    cornu_model_free(right);
}

/* ---- Disks ---- */

/* Saves a model over another one's file, which has these bytes; true if saving fails and the old
 * file is unchanged and alone in its folder. */
static bool fails_to_replace(const unsigned char *old, size_t size)
{
    CornuModel       *model = make_model(40);
    const int64_t     before = allocations_held();
    const CornuStatus status = cornu_model_save(model, path);
    const bool        held = allocations_held() > before;
    limit_files(RLIM_INFINITY);
    const bool alone = files_count(folder) == 1;
    cornu_model_free(model);
    return status == CORNU_ERR_FILE && has_bytes(path, old, size) && alone && !held;
}

/* The write that reaches the limit is short, the next one fails. */
static void full_disks(Count *count)
{
    static unsigned char bytes[MAX_FILE];
    static const rlim_t  sizes[] = { 0, 1, 100, 1000, 1024, 1777, 2048, 2500 };
    const size_t         size = write_model(4, bytes);
    signal(SIGXFSZ, SIG_IGN);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        limit_files(sizes[i]);
        note(count, fails_to_replace(bytes, size), "files of %zu bytes: %s", (size_t)sizes[i],
             message());
    }
}

/* The model cannot be written after the training: the backup gives the same model. */
static void unsaved_trainings(Count *count)
{
    static unsigned char bytes[MAX_FILE];
    signal(SIGXFSZ, SIG_IGN);
    if (whole_way(false)) {
        note(count, false, "with a disk: %s", message());
        return;
    }
    const size_t size = files_read(path, bytes, MAX_FILE);
    for (int i = 0; i < 2; i++) {
        unlink(path);
        loses_disk = true;
        const CornuStatus status = whole_way(true);
        loses_disk = false;
        note(count, status == CORNU_ERR_FILE && access(path, F_OK) && !access(backups, F_OK),
             "without a disk: %s", message());
    }
    note(count, !whole_way(true) && has_bytes(path, bytes, size), "afterwards: %s", message());
    note(count, !cornu_backup_remove(backups) && access(backups, F_OK), "removed: %s", message());
}

static void failing_syncs_and_renames(Count *count)
{
    static unsigned char bytes[MAX_FILE];
    const size_t         size = write_model(4, bytes);
    syncs_left = 0;
    note(count, fails_to_replace(bytes, size), "sync: %s", message());
    renames_left = 0;
    note(count, fails_to_replace(bytes, size), "rename: %s", message());
    syncs_left = renames_left = -1;
}

/* The folder above a new folder must be synced, or a crash could lose its contents. */
static void new_folders(Count *count)
{
    char deep[FILES_PATH + 80];
    for (int i = 0; i < 4; i++) {
        /* In folder/0/a/b/c, the first three in which folders are made. */
        was_synced = false;
        snprintf(deep, sizeof deep, "%s/%d", folder, i);
        if (i > 0) mkdir(deep, 0700);
        if (i > 1) strcat(deep, "/a"), mkdir(deep, 0700);
        if (i > 2) strcat(deep, "/b"), mkdir(deep, 0700);
        stat(i ? deep : folder, &looked_for);
        snprintf(deep, sizeof deep, "%s/%d/a/b/c", folder, i);
        CornuCallback *backup = cornu_backup_and_restore(deep);
        note(count, backup && was_synced && access(deep, F_OK) == 0, "folder %d: %s", i, message());
        if (backup) backup->free(backup);
    }
    looked_for = (struct stat){ 0 };
}

static void failing_reads(Count *count)
{
    static unsigned char bytes[MAX_FILE];
    write_model(2500, bytes);
    CornuModel *right = make_model(2500);
    for (int fails = 0; fails < 10; fails++) {
        CornuStatus   status;
        const int64_t before = allocations_held();
        reads_left = fails;
        most_read = 4096;
        CornuModel *model = load(&status);
        cornu_model_free(model);
        note(count, !model && status == CORNU_ERR_FILE && allocations_held() <= before,
             "read %d: %s", fails, message());
    }
    reads_left = -1;
    static const size_t sizes[] = { 1, 3, 7, 100, 1021, 4096 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        CornuStatus status;
        most_read = sizes[i];
        CornuModel *model = load(&status);
        note(count, model && same_weights(model, right), "reads of %zu bytes: %s", sizes[i],
             message());
        cornu_model_free(model);
    }
    most_read = SIZE_MAX;
    cornu_model_free(right);
}

/* ---- Trainings in separate processes ---- */

/* `test_faults train FOLDER DEVICE SHARDS THREADS`: a training with a backup after every step; the
 * model goes to FOLDER/model.safetensors. SIGTERM stops it. */
static volatile sig_atomic_t stop;

static void on_signal(int number) { stop = number; }

static int train(char **arguments)
{
    signal(SIGTERM, on_signal);
    strcpy(folder, arguments[0]);
    CornuDevice *device = cornu_device_open(arguments[1], .shards = atoi(arguments[2]),
                                            .threads = atoi(arguments[3]));
    CornuModel    *model = training_model(TRAINING_SHUFFLED, device);
    CornuCallback *backup = cornu_backup_and_restore(files_path(folder, "backups"), 1,
                                                     .stop = &stop);
    CornuHistory  *history = model ? training_fit(TRAINING_SHUFFLED, model, backup, NULL) : NULL;
    CornuStatus    status = history ? cornu_model_save(model,
                                                       files_path(folder, "model.safetensors"))
                                    : cornu_error_status();
    if (status && status != CORNU_ERR_INTERRUPTED) fprintf(stderr, "training: %s\n", message());
    cornu_history_free(history);
    cornu_model_free(model);
    cornu_device_close(device);
    return (int)status;
}

typedef struct {
    const char *device, *shards, *threads;
} Machine;

static const Machine machines[] = { { "cpu", "1", "1" }, { "cpu", "1", "2" }, { "tpu", "2", "2" } };

static pid_t start(const Machine *machine)
{
    const pid_t child = fork();
    if (child != 0) return child;
    execl("/proc/self/exe", "test_faults", "train", folder, machine->device, machine->shards,
          machine->threads, (char *)NULL);
    _exit(127);
}

/* Its exit status; -1 after a signal. */
static int wait_for(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) { }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void wait_seconds(double seconds)
{
    const double          whole = (double)(time_t)seconds;
    const struct timespec time = { (time_t)whole, (long)(1e9 * (seconds - whole)) };
    nanosleep(&time, NULL);
}

/* Ends a training with `signal` repeatedly, at random times, and then lets it finish. After every
 * `chain` signals its model must be that of an undisturbed training. */
static void end_processes(Count *count, int number, int wanted, int chain, uint64_t seed)
{
    static unsigned char bytes[MAX_FILE];
    for (int m = 0; count->tried < wanted; m = (m + 1) % 3) {
        unlink(path);
        const double begin = seconds_now();
        int          status = wait_for(start(&machines[m]));
        const double usual = seconds_now() - begin;
        const size_t size = status ? 0 : files_read(path, bytes, MAX_FILE);
        unlink(path);
        int ended = 0;
        for (int tries = 0; !status && ended < chain && tries < 4 * chain; tries++) {
            seed = seed * 6364136223846793005 + 1442695040888963407;
            const pid_t child = start(&machines[m]);
            wait_seconds(usual * (double)(seed >> 40) / (double)(1 << 24));
            kill(child, number);
            status = wait_for(child);
            ended += status != 0;
            if (status == -1 || status == CORNU_ERR_INTERRUPTED) status = 0;
        }
        if (!status) status = wait_for(start(&machines[m]));
        /* Killed before it has marked its folder, it leaves an empty one. */
        const int  left = files_count(backups);
        const bool equal = has_bytes(path, bytes, size), same = !status && equal && left == 0;
        for (int i = 0; i < (ended ? ended : 1); i++)
            note(count, same, "signal %d on %s, %s threads: exit status %d, %s, %d backups left",
                 number, machines[m].device, machines[m].threads, status,
                 equal ? "the same model" : "another model", left);
        if (!same) return;
    }
}

static void kills(Count *count) { end_processes(count, SIGKILL, report_all ? 100 : 9, 5, 1); }
static void signals(Count *count) { end_processes(count, SIGTERM, report_all ? 20 : 6, 3, 2); }

/* ---- All faults ---- */

static const struct {
    const char *name;
    void      (*run)(Count *count);
    int         least;         /* tries of a report */
} faults[] = {
    { "allocations", allocations_fail, 100 },
    { "allocations_restoring", allocations_fail_again, 100 },
    { "truncations", truncated_files, 20 },
    { "bit_flips", flipped_bits, 200 },
    { "disk_full", full_disks, 3 },
    { "unsaved_trainings", unsaved_trainings, 4 },
    { "sync_and_rename", failing_syncs_and_renames, 2 },
    { "new_folders", new_folders, 4 },
    { "read_errors", failing_reads, 10 },
    { "kills", kills, 100 },
    { "signals", signals, 20 },
};

enum { FAULTS = sizeof faults / sizeof *faults };

static Count try(int i)
{
    Count count = { 0, 0 };
    set_up();
    faults[i].run(&count);
    files_end(NULL);
    return count;
}

static void survives(void **state)
{
    const int   i = *(const int *)*state;
    const Count count = try(i);
    if (count.tried == 0) SKIP_FOR("failures of this kind: none to try here");
    assert_int_equal(count.survived, count.tried);
}

static int report(void)
{
    int bad = 0;
    report_all = true;
    for (int i = 0; i < FAULTS; i++) {
        const Count count = try(i);
        printf("%s %d %d\n", faults[i].name, count.tried, count.survived);
        fflush(stdout);
        bad |= count.survived != count.tried || count.tried < faults[i].least;
    }
    return bad;
}

int main(int argc, char **argv)
{
    if (argc == 6 && !strcmp(argv[1], "train")) return train(argv + 2);
    if (argc == 2 && !strcmp(argv[1], "--report")) return report();
    static int        numbers[FAULTS];
    struct CMUnitTest tests[FAULTS];
    for (int i = 0; i < FAULTS; i++) {
        numbers[i] = i;
        tests[i] = (struct CMUnitTest){ faults[i].name, survives, NULL, NULL, &numbers[i] };
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
