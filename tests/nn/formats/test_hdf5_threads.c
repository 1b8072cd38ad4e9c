/* Two threads save and load files that need libhdf5, which is not thread-safe. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "../../../nn/cornu.h"
#include "../../../nn/formats/hdf5_internal.h"
#include "../../datasets/files.h"
#include "../../skip.h"

enum { THREADS = 2, ROUNDS = 40, MAX_FILE = 1 << 17 };

/* The model of a thread and its error message: fail_msg works in the first thread alone. */
typedef struct {
    int         number;
    CornuModel *model;
    char        paths[2][FILES_PATH + 40];
    unsigned char first[2][MAX_FILE], again[MAX_FILE];
    char        failure[1200];
} Work;

static bool fails(Work *work, const char *what)
{
    snprintf(work->failure, sizeof work->failure, "thread %d: %s: %s", work->number, what,
             cornu_error_message());
    return true;
}

static size_t size_of[THREADS][2];

/* Saves and loads the whole model, then its weights. True on failure. */
static bool go_round(Work *work, int round)
{
    if (cornu_model_save(work->model, work->paths[0])) return fails(work, "save");
    if (cornu_model_save_weights(work->model, work->paths[1])) return fails(work, "save weights");
    for (int i = 0; i < 2; i++) {
        unsigned char *to = round ? work->again : work->first[i];
        const size_t   size = files_read(work->paths[i], to, MAX_FILE);
        if (round == 0) size_of[work->number][i] = size;
        if (size != size_of[work->number][i] || (round && memcmp(to, work->first[i], size)))
            return fails(work, "another file than the first time");
    }
    if (cornu_model_load_weights(work->model, work->paths[1])) return fails(work, "load weights");
    CornuModel *loaded = cornu_model_load(work->paths[0]);
    if (!loaded) {
        cornu_error_take();
        return fails(work, "load");
    }
    cornu_model_free(loaded);
    return false;
}

static void *rounds(void *context)
{
    for (int i = 0; i < ROUNDS; i++)
        if (go_round(context, i)) break;
    return NULL;
}

static CornuModel *model_of(int number)
{
    cornu_set_random_seed((uint64_t)number);
    CornuModel *model = cornu_sequential(.input_shape = { 6, 6, 1 });
    cornu_model_add(model, cornu_conv2d(4, 3, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_batch_normalization());
    cornu_model_add(model, cornu_flatten());
    cornu_model_add(model, cornu_dense(10 + number));
    return model;
}

static void two_threads_save_and_load(void **state)
{
    (void)state;
    static Work work[THREADS];
    pthread_t   threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        work[i].number = i;
        work[i].model = model_of(i);
        if (!work[i].model) fail_msg("%s", cornu_error_message());
        snprintf(work[i].paths[0], sizeof work[i].paths[0], "%s/%d.keras", folder, i);
        snprintf(work[i].paths[1], sizeof work[i].paths[1], "%s/%d.weights.h5", folder, i);
    }
    if (cornu_model_save(work[0].model, work[0].paths[0]) == CORNU_ERR_UNSUPPORTED) {
        print_message("%s\n", cornu_error_message());
        for (int i = 0; i < THREADS; i++) cornu_model_free(work[i].model);
        SKIP_FOR(SKIP_HDF5);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, rounds, &work[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        cornu_model_free(work[i].model);
    }
    for (int i = 0; i < THREADS; i++)
        if (*work[i].failure) fail_msg("%s", work[i].failure);
}

static atomic_bool opened;

static void *open_another(void *context)
{
    (void)context;
    CornuHdf5 *file = cornu__hdf5_create();
    opened = file != NULL;
    cornu__hdf5_close(file);
    return NULL;
}

static void others_wait_until_a_file_is_closed(void **state)
{
    (void)state;
    const struct timespec moment = { .tv_nsec = 100 * 1000 * 1000 };
    pthread_t  thread;
    CornuHdf5 *file = cornu__hdf5_create();
    if (!file && cornu_error_status() == CORNU_ERR_UNSUPPORTED) SKIP_FOR(SKIP_HDF5);
    assert_non_null(file);
    assert_int_equal(pthread_create(&thread, NULL, open_another, NULL), 0);
    nanosleep(&moment, NULL);
    assert_false(opened);
    cornu__hdf5_close(file);
    pthread_join(thread, NULL);
    assert_true(opened);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_wait_until_a_file_is_closed),
        cmocka_unit_test_setup_teardown(two_threads_save_and_load, files_begin, files_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
