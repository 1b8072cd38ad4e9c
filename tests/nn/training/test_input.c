/* Input of training: batches of different extents, and what is said where it is the limit. */
#define _DEFAULT_SOURCE    /* mkdtemp */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../nn/cornu.h"
#include "../../datasets/pipeline/pipelines.h"
#include "../../expect.h"
#include "../callbacks/stopper.h"

enum { CLASSES = 15, TOKENS = 1500, EPOCHS = 3 };

/* The mean of the tokens' vectors, of any number of them. */
static CornuModel *make_model(void)
{
    cornu_set_random_seed(4);
    CornuModel *model = cornu_sequential(.input_shape = { CORNU_NONE });
    cornu_model_add(model, cornu_embedding(TOKENS, 4));
    cornu_model_add(model, cornu_global_average_pooling1d());
    cornu_model_add(model, cornu_dense(CLASSES, .activation = CORNU_SOFTMAX));
    expect_ok(cornu_compile(model, .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                            .optimizer = cornu_adam(.learning_rate = 0.1)));
    return model;
}

/* One step for each batch, of its valid rows alone. */
static void train_by_hand(CornuModel *model, CornuDataset *batches)
{
    CornuIterator *iterator = cornu_iterator_begin(batches, 0);
    assert_non_null(iterator);
    for (int64_t epoch = 0; epoch < EPOCHS; epoch++) {
        const CornuBatch *batch;
        expect_ok(cornu_iterator_rewind(iterator, epoch));
        for (;;) {
            expect_ok(cornu_iterator_next(iterator, &batch));
            if (!batch) break;
            CornuArray x = batch->arrays[0], y = batch->arrays[1];
            x.type.shape.extent[0] = y.type.shape.extent[0] = batch->valid;
            expect_ok(cornu_train_on_batch(model, x, y));
        }
    }
    cornu_iterator_free(iterator);
}

/* Losses of a model on the batches, whose extents differ. */
static double loss_on(CornuModel *model, CornuDataset *batches)
{
    double loss[2];
    expect_ok(cornu_evaluate(model, batches, .results = loss, .verbose = CORNU_SILENT));
    return loss[0];
}

static void a_fit_takes_batches_of_different_extents(void **state)
{
    static const char *const names[] = { "padded_batch", "bucket", "bucket_rest" };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ListedAs      as;
        CornuDataset *batches = pipeline_make(names[i], &as);
        CornuModel   *model = make_model(), *by_hand = make_model();
        const double  before = loss_on(model, batches);
        train_by_hand(by_hand, batches);
        CornuHistory *history = cornu_fit(model, batches, .epochs = EPOCHS,
                                          .verbose = CORNU_SILENT);
        if (!history) fail_msg("%s: %s", names[i], cornu_error_message());
        const double loss = loss_on(model, batches), wanted = loss_on(by_hand, batches);
        assert_true(loss < 0.9 * before);
        if (fabs(loss - wanted) > 1e-5 * wanted)
            fail_msg("%s: loss %.8g, by hand %.8g", names[i], loss, wanted);
        cornu_history_free(history);
        cornu_model_free(model);
        cornu_model_free(by_hand);
        cornu_dataset_free(batches);
    }
}

/* ---- Resuming ---- */

/* Trains, in a run that is stopped after so many steps; false if it was. */
static bool run(CornuDataset *batches, const char *folder, int64_t steps, double *loss)
{
    volatile sig_atomic_t stop = 0;
    Stopper               stopper = stop_after(steps, &stop);
    CornuModel           *model = make_model();
    CornuHistory         *history = cornu_fit(
        model, batches, .epochs = EPOCHS, .verbose = CORNU_SILENT,
        .callbacks = { cornu_backup_and_restore(folder, 1, .stop = &stop), &stopper.base });
    const bool ended = history != NULL;
    if (!ended) expect_error(cornu_error_take(), CORNU_ERR_INTERRUPTED, "");
    else *loss = loss_on(model, batches);
    cornu_history_free(history);
    cornu_model_free(model);
    return ended;
}

/* Batches of two data sets of unknown lengths. */
static CornuDataset *make_mixture(void)
{
    ListedAs      as;
    CornuDataset *both[] = { pipeline_make("bucket", &as), pipeline_make("bucket_rest", &as) };
    return cornu_dataset_sample_from_datasets(both, 2, .seed = 2);
}

/* Stopped after every step, by each of these data sets. */
static void stopping_changes_no_bit(void **state)
{
    ListedAs      as;
    CornuDataset *sets[] = { pipeline_make("padded_batch", &as), pipeline_make("bucket", &as),
                             make_mixture() };
    (void)state;
    for (int i = 0; i < 3; i++) {
        char   folder[] = "/tmp/cornu-input-XXXXXX";
        double whole = 0.0, parts = 0.0;
        int    runs = 1;
        assert_non_null(mkdtemp(folder));
        assert_true(run(sets[i], folder, -1, &whole));
        while (!run(sets[i], folder, 1, &parts)) assert_true(++runs < 100);
        if (runs < 7) fail_msg("data set %d: %d runs", i, runs);
        assert_memory_equal(&whole, &parts, sizeof whole);
        rmdir(folder);
        cornu_dataset_free(sets[i]);
    }
}

/* ---- Where input is the limit ---- */

static CornuStatus slow(void *context, CornuSample sample, const CornuArray *in,
                        const CornuArray *out)
{
    (void)sample;
    nanosleep(context, NULL);
    ((float *)out[0].data)[0] = ((float *)out[0].data)[1] = 1.0f;
    *(int32_t *)out[1].data = (int32_t)(pipeline_number(in) % 3);
    return CORNU_OK;
}

/* What the progress bar prints of two epochs of 24 batches of 4 elements that take so long. */
static void read_bar(long nanoseconds, char *text, size_t size)
{
    struct timespec wait = { 0, nanoseconds };
    const CornuType types[] = { cornu_type(CORNU_F32, 2), cornu_scalar(CORNU_I32) };
    CornuDataset   *dataset = cornu_dataset_map(pipeline_range(0, 96), slow, &wait, types, 2);
    CornuModel     *model = cornu_sequential(.input_shape = { 2 });
    FILE           *file = tmpfile();
    assert_non_null(file);
    cornu_model_add(model, cornu_dense(3, .activation = CORNU_SOFTMAX));
    expect_ok(cornu_compile(model, .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY));
    CornuCallback *bar = cornu_progbar(.file = file);
    CornuHistory  *history = cornu_fit(model, dataset, .batch_size = 4, .epochs = 2,
                                       .verbose = CORNU_LINES, .callbacks = { bar });
    assert_non_null(history);
    rewind(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
    cornu_history_free(history);
    cornu_model_free(model);
    cornu_dataset_free(dataset);
}

static void the_bar_says_when_input_is_the_limit(void **state)
{
    static char text[4096];
    (void)state;
    read_bar(15000000, text, sizeof text);   /* 60 ms a batch: 1.4 s an epoch */
    const char *line = strstr(text, "Input is the limit: steps waited ");
    double      share, seconds, each, map;
    if (!line) fail_msg("no advice in %s", text);
    if (sscanf(line, "Input is the limit: steps waited %lf %% of %lf s for batches, each of which "
               "takes %lf ms: map %lf", &share, &seconds, &each, &map) != 4)
        fail_msg("not as expected: %s", line);
    assert_true(share > 50.0 && share <= 100.0);
    assert_true(seconds > 1.0 && each > 59.0 && map > 59.0 && map <= each);
    assert_non_null(strstr(line, "(1 thread; see cornu_dataset_parallel)\n"));
    assert_null(strstr(line + 1, "Input is the limit"));
    read_bar(1000, text, sizeof text);
    assert_null(strstr(text, "Input is"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fit_takes_batches_of_different_extents),
        cmocka_unit_test(stopping_changes_no_bit),
        cmocka_unit_test(the_bar_says_when_input_is_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
