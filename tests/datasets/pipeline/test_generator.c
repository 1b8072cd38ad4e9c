/* Generators and ranges: through every transformation, in fit, evaluate and predict, over several
 * epochs, with failures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../allocations.h"
#include "../../nn/golden.h"
#include "../../skip.h"
#include "../../skip.h"

/* ---- A generator of (x, y): x (2,) f32 of i and the epoch, y i ---- */

enum { ELEMENTS = 7 };

typedef struct {
    int64_t    elements, fails_at;     /* fails_at -1: never */
    bool       silent;                 /* fails without a message */
    atomic_int begun, ended, called;   /* counted by the threads of several iterators */
} Source;

typedef struct { Source *source; int64_t next; } Pass;

static CornuStatus yield(void *state, CornuSample sample, const CornuArray *to, bool *end)
{
    Source *source = state;
    source->called++;
    if (sample.index == source->fails_at)
        return source->silent ? CORNU_ERR_DATA : cornu_error_set(CORNU_ERR_FILE, "the tap is dry");
    if (sample.index == source->elements) {
        *end = true;
        return CORNU_OK;
    }
    ((float *)to[0].data)[0] = (float)sample.index;
    ((float *)to[0].data)[1] = (float)sample.epoch;
    ((int32_t *)to[1].data)[0] = (int32_t)sample.index;
    return CORNU_OK;
}

/* The pass keeps track of the next element, as Python's generators do. */
static CornuStatus yield_next(void *state, CornuSample sample, const CornuArray *to, bool *end)
{
    Pass *pass = state;
    sample.index = pass->next++;
    return yield(pass->source, sample, to, end);
}

static CornuStatus begin_pass(void *context, int64_t epoch, void **state)
{
    Pass *pass = malloc(sizeof *pass);
    (void)epoch;
    if (!pass) return cornu_error_set(CORNU_ERR_MEMORY, "no memory for a pass");
    *pass = (Pass){ .source = context };
    pass->source->begun++;
    *state = pass;
    return CORNU_OK;
}

static void end_pass(void *context, void *state)
{
    ((Source *)context)->ended++;
    free(state);
}

static CornuDataset *generated(Source *source)
{
    const CornuType types[] = { cornu_type(CORNU_F32, 2), cornu_scalar(CORNU_I32) };
    return cornu_dataset_generator(yield, types, 2, .context = source);
}

static CornuDataset *generated_in_passes(Source *source)
{
    const CornuType types[] = { cornu_type(CORNU_F32, 2), cornu_scalar(CORNU_I32) };
    return cornu_dataset_generator(yield_next, types, 2, source, begin_pass, end_pass);
}

/* Expects the labels of two epochs, then frees the data set. */
static void expect_labels(CornuDataset *dataset, const int32_t *wanted, int count)
{
    const CornuBatch *batch;
    if (!dataset) fail_msg("%s", cornu_error_message());
    CornuIterator *iterator = cornu_iterator_begin(dataset, 0);
    for (int64_t epoch = 0; epoch < 2; epoch++) {
        int got = 0;
        expect_ok(cornu_iterator_rewind(iterator, epoch));
        while (cornu_iterator_next(iterator, &batch) == CORNU_OK && batch)
            for (int64_t i = 0; i < batch->valid; i++) {
                assert_true(got < count);
                assert_int_equal(((int32_t *)batch->arrays[1].data)[i], wanted[got++]);
                if (cornu_dataset_count(dataset) == CORNU_UNKNOWN)
                    assert_int_equal(((float *)batch->arrays[0].data)[2 * i + 1], epoch);
            }
        assert_int_equal(got, count);
        expect_ok(cornu_iterator_next(iterator, &batch));   /* the end stays the end */
        assert_null(batch);
    }
    cornu_iterator_free(iterator);
    cornu_dataset_free(dataset);
}

static CornuStatus add_hundred(void *context, CornuSample sample, const CornuArray *in,
                               const CornuArray *out)
{
    (void)context, (void)sample;
    memcpy(out[0].data, in[0].data, cornu_type_bytes(in[0].type));
    *(int32_t *)out[1].data = *(int32_t *)in[1].data + 100;
    return CORNU_OK;
}

static void elements_come_until_the_end(void **state)
{
    static const int32_t all[] = { 0, 1, 2, 3, 4, 5, 6 };
    static const int32_t mapped[] = { 100, 101, 102, 103, 104, 105, 106 };
    Source source = { .elements = ELEMENTS, .fails_at = -1 };
    (void)state;
    CornuDataset *unread = generated(&source);
    assert_int_equal(cornu_dataset_count(unread), CORNU_UNKNOWN);
    assert_int_equal(cornu_dataset_count(unread = cornu_dataset_batch(unread, 2, true)),
                     CORNU_UNKNOWN);
    cornu_dataset_free(unread);
    for (int passes = 0; passes < 2; passes++) {
        CornuDataset *(*make)(Source *) = passes ? generated_in_passes : generated;
        expect_labels(make(&source), all, 7);
        expect_labels(cornu_dataset_prefetch(make(&source), 3), all, 7);
        expect_labels(cornu_dataset_batch(make(&source), 3, false), all, 7);
        expect_labels(cornu_dataset_batch(make(&source), 7, true), all, 7);
        expect_labels(cornu_dataset_batch(make(&source), 3, true), all, 6);
        expect_labels(cornu_dataset_prefetch(cornu_dataset_batch(make(&source), 2, false), 2), all,
                      7);
        expect_labels(cornu_dataset_map(make(&source), add_hundred, NULL, NULL, 0), mapped, 7);
        expect_labels(cornu_dataset_take(make(&source), 4), all, 4);
        expect_labels(cornu_dataset_take(make(&source), 9), all, 7);
        expect_labels(cornu_dataset_take(make(&source), 0), all, 0);
        expect_labels(cornu_dataset_skip(make(&source), 2), all + 2, 5);
        expect_labels(cornu_dataset_skip(make(&source), 9), all, 0);
        expect_labels(cornu_dataset_take(cornu_dataset_skip(make(&source), 1), 3), all + 1, 3);
    }
    assert_true(source.begun > 0);
    assert_int_equal(source.begun, source.ended);
}

static void a_cache_makes_the_count_known(void **state)
{
    static const int32_t all[] = { 0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6 };
    Source source = { .elements = ELEMENTS, .fails_at = -1 };
    (void)state;
    CornuDataset *cache = cornu_dataset_cache(generated(&source));
    assert_int_equal(cornu_dataset_count(cache), ELEMENTS);
    assert_int_equal(source.called, ELEMENTS + 1);
    expect_labels(cornu_dataset_repeat(cornu_dataset_retain(cache), 2), all, 14);
    CornuDataset *shuffled = cornu_dataset_shuffle(cache, 3);
    assert_int_equal(cornu_dataset_count(shuffled), ELEMENTS);
    cornu_dataset_free(shuffled);
    source.elements = 1000;   /* more than the initial size of a cache */
    cache = cornu_dataset_cache(generated(&source));
    assert_int_equal(cornu_dataset_count(cache), 1000);
    CornuIterator    *iterator = cornu_iterator_begin(cache, 0);
    const CornuBatch *batch;
    expect_ok(cornu_iterator_seek(iterator, (CornuSample){ 0, 999 }));
    expect_ok(cornu_iterator_next(iterator, &batch));
    assert_int_equal(*(int32_t *)batch->arrays[1].data, 999);
    cornu_iterator_free(iterator);
    cornu_dataset_free(cache);
}

/* Seeking to any element; an earlier one needs a new pass. */
static void elements_can_be_sought(void **state)
{
    static const int64_t places[] = { 4, 2, 2, 6, 0, 7, 3 };
    Source            source = { .elements = ELEMENTS, .fails_at = -1 };
    const CornuBatch *batch;
    (void)state;
    CornuDataset  *dataset = generated_in_passes(&source);
    CornuIterator *iterator = cornu_iterator_begin(dataset, 0);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        expect_ok(cornu_iterator_seek(iterator, (CornuSample){ 5, places[i] }));
        expect_ok(cornu_iterator_next(iterator, &batch));
        if (places[i] == ELEMENTS) assert_null(batch);
        else assert_int_equal(*(int32_t *)batch->arrays[1].data, places[i]);
    }
    cornu_iterator_free(iterator);
    assert_int_equal(source.begun, source.ended);
    /* Seeking to the current position starts no pass. */
    source.begun = source.ended = 0;
    iterator = cornu_iterator_begin(dataset, 0);
    for (int64_t i = 0; i < 5; i++) {
        expect_ok(cornu_iterator_seek(iterator, (CornuSample){ 0, i }));
        expect_ok(cornu_iterator_next(iterator, &batch));
    }
    assert_int_equal(source.begun, 1);
    cornu_iterator_free(iterator);
    cornu_dataset_free(dataset);
}

static void failures_carry_through(void **state)
{
    const CornuBatch *batch;
    (void)state;
    for (int prefetch = 0; prefetch < 2; prefetch++) {
        Source        source = { .elements = ELEMENTS, .fails_at = 2 };
        CornuDataset *dataset = generated_in_passes(&source);
        if (prefetch) dataset = cornu_dataset_prefetch(dataset, 4);
        CornuIterator *iterator = cornu_iterator_begin(dataset, 0);
        for (int i = 0; i < 2; i++) expect_ok(cornu_iterator_next(iterator, &batch));
        expect_error(cornu_iterator_next(iterator, &batch), CORNU_ERR_FILE,
                     "generator: element 2 of epoch 0: the tap is dry");
        source.silent = true;
        expect_ok(cornu_iterator_rewind(iterator, 1));
        for (int i = 0; i < 2; i++) expect_ok(cornu_iterator_next(iterator, &batch));
        expect_error(cornu_iterator_next(iterator, &batch), CORNU_ERR_DATA,
                     "generator: element 2 of epoch 1: a data set is missing");
        cornu_iterator_free(iterator);
        cornu_dataset_free(dataset);
        assert_int_equal(source.begun, source.ended);
    }
    Source source = { .elements = ELEMENTS, .fails_at = 3 };
    assert_null(cornu_dataset_cache(generated(&source)));
    expect_error(cornu_error_take(), CORNU_ERR_FILE, "element 3 of epoch 0: the tap is dry");
}

static void expect_refusal(CornuDataset *dataset, const char *part)
{
    assert_null(dataset);
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, part);
}

static void stages_that_need_a_count_are_refused(void **state)
{
    Source          source = { .elements = ELEMENTS, .fails_at = -1 };
    const CornuType type = cornu_scalar(CORNU_I32);
    (void)state;
    expect_refusal(cornu_dataset_shuffle(generated(&source), 0),
                   "shuffle: the number of elements is not known; cache");
    expect_refusal(cornu_dataset_generator(NULL, &type, 1), "generator: .next is NULL");
    expect_refusal(cornu_dataset_generator(yield, NULL, 1), "generator: 0 components");
    expect_refusal(cornu_dataset_generator(yield, &type, 999), "generator: 999 components");
}

/* ---- Ranges ---- */

static void ranges_are_as_in_python(void **state)
{
    static const struct { int64_t start, stop, step, count, last; } cases[] = {
        { 0, 5, 1, 5, 4 }, { 2, 11, 3, 3, 8 }, { 5, 0, -2, 3, 1 }, { 3, 3, 1, 0, 0 },
        { 3, 0, 1, 0, 0 }, { -4, 4, 4, 2, 0 },
        { INT64_MIN, INT64_MAX, INT64_MAX, 3, INT64_MAX - 1 },
        { INT64_MAX, INT64_MIN, INT64_MIN, 2, -1 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CornuDataset *range = cornu_dataset_range(cases[i].start, cases[i].stop, cases[i].step);
        const CornuBatch *batch;
        assert_int_equal(cornu_dataset_count(range), cases[i].count);
        CornuIterator *iterator = cornu_iterator_begin(range, 0);
        int64_t        last = 0, count = 0;
        for (; cornu_iterator_next(iterator, &batch) == CORNU_OK && batch; count++)
            last = *(int64_t *)batch->arrays[0].data;
        assert_int_equal(count, cases[i].count);
        assert_true(last == cases[i].last);
        cornu_iterator_free(iterator);
        cornu_dataset_free(range);
    }
    expect_refusal(cornu_dataset_range(0, 3, 0), "range: the step is 0");
    expect_refusal(cornu_dataset_range(INT64_MIN, INT64_MAX, 1), "has too many numbers to count");
}

/* ---- In training ---- */

static CornuModel *make_model(void)
{
    CornuModel *model = cornu_sequential(.name = "tiny", .input_shape = { 2 });
    cornu_model_add(model, cornu_dense(7, .activation = CORNU_SOFTMAX));
    expect_ok(cornu_compile(model, .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                            .optimizer = cornu_sgd(.learning_rate = 0.1)));
    return model;
}

static CornuHistory *must(CornuHistory *history)
{
    if (!history) fail_msg("%s", cornu_error_message());
    return history;
}

/* Training equals that on arrays of the same elements, not shuffled. */
static void fit_evaluate_and_predict_take_it(void **state)
{
    float         x[ELEMENTS][2] = { { 0 } }, to[ELEMENTS][7], wanted[ELEMENTS][7];
    int32_t       y[ELEMENTS];
    double        loss[2];
    Source        source = { .elements = ELEMENTS, .fails_at = -1 };
    CornuModel   *models[] = { make_model(), make_model() };
    CornuHistory *histories[2];
    (void)state;
    for (int i = 0; i < ELEMENTS; i++) x[i][0] = (float)(y[i] = i);
    CornuDataset *arrays = cornu_dataset_from_arrays((CornuArray[]){
        cornu_array(x, CORNU_F32, ELEMENTS, 2), cornu_array(y, CORNU_I32, ELEMENTS) }, 2);
    CornuDataset *dataset = generated_in_passes(&source);
    /* One epoch, since the generator's second one differs. */
    histories[0] = must(cornu_fit(models[0], dataset, .batch_size = 3, .verbose = CORNU_SILENT,
                                  .validation_data.data = dataset));
    histories[1] = must(cornu_fit(models[1], arrays, .batch_size = 3, .no_shuffle = true,
                                  .validation_data.data = arrays, .verbose = CORNU_SILENT));
    const char *const keys[] = { "loss", "val_loss" };
    for (int k = 0; k < 2; k++)
        assert_true(cornu_history_get(histories[0], keys[k], 0) ==
                    cornu_history_get(histories[1], keys[k], 0));
    assert_int_equal(cornu_history_samples(histories[0], 0), ELEMENTS);
    for (int i = 0; i < 2; i++)
        expect_ok(cornu_evaluate(models[i], i ? arrays : dataset, .results = &loss[i],
                                 .verbose = CORNU_SILENT));
    assert_true(loss[0] == loss[1]);
    expect_ok(cornu_predict(models[0], dataset, .batch_size = 2, .verbose = CORNU_SILENT,
                            .to = cornu_array(to, CORNU_F32, ELEMENTS, 7)));
    expect_ok(cornu_predict(models[1], arrays, .batch_size = 2, .verbose = CORNU_SILENT,
                            .to = cornu_array(wanted, CORNU_F32, ELEMENTS, 7)));
    assert_memory_equal(to, wanted, sizeof to);
    expect_error(cornu_predict(models[0], dataset, .verbose = CORNU_SILENT,
                               .to = cornu_array(to, CORNU_F32, 3, 7)), CORNU_ERR_SHAPE,
                 ".to has 3 rows, the data 7 or more");

    /* Each of three epochs has all elements; epochs of two batches continue where the last one
     * ended. */
    for (int64_t steps = 0; steps < 3; steps += 2) {
        CornuHistory *history = must(cornu_fit(models[0], dataset, .batch_size = 3, .epochs = 3,
                                               .steps_per_epoch = steps,
                                               .verbose = CORNU_SILENT));
        static const int64_t samples[2][3] = { { 7, 7, 7 }, { 6, 1, 6 } };
        for (int i = 0; i < 3; i++)
            assert_int_equal(cornu_history_samples(history, i), samples[steps == 2][i]);
        cornu_history_free(history);
    }
    assert_int_equal(source.begun, source.ended);
    for (int i = 0; i < 2; i++) {
        cornu_history_free(histories[i]);
        cornu_model_free(models[i]);
    }
    cornu_dataset_free(arrays);
    cornu_dataset_free(dataset);
}

/* With two batches in the data, an epoch of two steps ends with them and the next starts a new
 * pass. */
static void an_epoch_may_start_at_the_end_of_the_data(void **state)
{
    Source        source = { .elements = 6, .fails_at = -1 };
    CornuModel   *model = make_model();
    CornuDataset *dataset = generated(&source);
    (void)state;
    CornuHistory *history = must(cornu_fit(model, dataset, .batch_size = 3, .epochs = 3,
                                           .steps_per_epoch = 2, .verbose = CORNU_SILENT));
    for (int i = 0; i < 3; i++) assert_int_equal(cornu_history_samples(history, i), 6);
    cornu_history_free(history);
    source.elements = 0;
    assert_null(cornu_fit(model, dataset, .verbose = CORNU_SILENT));
    expect_error(cornu_error_take(), CORNU_ERR_DATA, "ended before its first batch");
    source = (Source){ .elements = 6, .fails_at = 4 };
    assert_null(cornu_fit(model, dataset, .verbose = CORNU_SILENT));
    expect_error(cornu_error_take(), CORNU_ERR_FILE, "element 4 of epoch 0: the tap is dry");
    assert_null(cornu_fit(model, dataset, .validation_split = 0.5));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "of unknown length");
    cornu_dataset_free(dataset);
    cornu_model_free(model);
}

/* An epoch, a backup, and a second epoch give the same as two epochs at once. */
static void backups_go_on(void **state)
{
    char          folder[] = "/tmp/cornu-generator-XXXXXX";
    Source        source = { .elements = ELEMENTS, .fails_at = -1 };
    CornuModel   *whole = make_model(), *parts[] = { make_model(), make_model() };
    CornuDataset *dataset = generated_in_passes(&source);
    (void)state;
    assert_non_null(mkdtemp(folder));
    CornuHistory *wanted = must(cornu_fit(whole, dataset, .batch_size = 3, .epochs = 2,
                                          .verbose = CORNU_SILENT));
    for (int i = 0; i < 2; i++) {
        CornuHistory *history = must(cornu_fit(
            parts[i], dataset, .batch_size = 3, .epochs = i + 1, .verbose = CORNU_SILENT,
            .callbacks = { cornu_backup_and_restore(folder, .keep_checkpoint = i == 0) }));
        assert_int_equal(cornu_history_epochs(history), i + 1);
        assert_true(cornu_history_get(history, "loss", i) == cornu_history_get(wanted, "loss", i));
        cornu_history_free(history);
        cornu_model_free(parts[i]);
    }
    cornu_history_free(wanted);
    cornu_model_free(whole);
    cornu_dataset_free(dataset);
    assert_int_equal(source.begun, source.ended);
    rmdir(folder);
}

/* ---- Batches of 2, 5, 1 and 3 rows: row r of batch i is (10 i + r, epoch) ---- */

static const int64_t batch_sizes[] = { 2, 5, 1, 3 };
enum { BATCHES = sizeof batch_sizes / sizeof *batch_sizes };

static CornuStatus say_rows(void *state, CornuSample sample, int64_t *rows)
{
    const Source *source = state;
    if (sample.index == source->fails_at) return cornu_error_set(CORNU_ERR_FILE, "the tap is dry");
    *rows = sample.index < BATCHES ? batch_sizes[sample.index] : 0;
    return CORNU_OK;
}

static CornuStatus write_rows(void *state, CornuSample sample, const CornuArray *to, bool *end)
{
    (void)state, (void)end;
    assert_true(to[0].type.shape.extent[0] >= batch_sizes[sample.index]);
    for (int64_t r = 0; r < batch_sizes[sample.index]; r++) {
        ((float *)to[0].data)[2 * r] = (float)(10 * sample.index + r);
        ((float *)to[0].data)[2 * r + 1] = (float)sample.epoch;
        ((int32_t *)to[1].data)[r] = (int32_t)sample.index;
    }
    return CORNU_OK;
}

static CornuDataset *of_batches(Source *source, int64_t batch_size)
{
    static const CornuType types[] = { { CORNU_F32, { 1, { 2 } } }, { CORNU_I32, { 0, { 0 } } } };
    return cornu_dataset_generator(write_rows, types, 2, .context = source, .batch = say_rows,
                                   .batch_size = batch_size);
}

/* Twice the first component of each row that there is room for. */
static CornuStatus twice(void *context, CornuSample sample, const CornuArray *in,
                         const CornuArray *out)
{
    (void)context, (void)sample;
    memcpy(out[0].data, in[0].data, cornu_type_bytes(in[0].type));
    memcpy(out[1].data, in[1].data, cornu_type_bytes(in[1].type));
    for (int64_t r = 0; r < in[0].type.shape.extent[0]; r++) ((float *)out[0].data)[2 * r] *= 2;
    return CORNU_OK;
}

static void expect_batch(const CornuBatch *batch, int64_t epoch, int64_t i, float times,
                         int64_t room)
{
    assert_non_null(batch);
    assert_int_equal(batch->valid, batch_sizes[i]);
    assert_int_equal(batch->arrays[0].type.shape.extent[0], room);
    assert_int_equal(batch->arrays[1].type.shape.extent[0], room);
    for (int64_t r = 0; r < room; r++) {
        const bool   there = r < batch->valid;
        const float *x = (const float *)batch->arrays[0].data + 2 * r;
        assert_true(x[0] == (there ? times * (float)(10 * i + r) : 0.0f));
        assert_true(x[1] == (there ? (float)epoch : 0.0f));
        assert_int_equal(((const int32_t *)batch->arrays[1].data)[r], there ? i : 0);
    }
}

static CornuIterator *begun(CornuDataset *dataset)
{
    CornuIterator *iterator = cornu_iterator_begin(dataset, 0);
    if (!iterator) fail_msg("%s", cornu_error_message());
    return iterator;
}

static void batches_differ_in_rows(void **state)
{
    (void)state;
    for (int mapped = 0; mapped < 2; mapped++) {
        Source        source = { .fails_at = -1 };
        CornuDataset *dataset = of_batches(&source, 2);
        if (mapped) dataset = cornu_dataset_map(dataset, twice, NULL, NULL, 0);
        const CornuBatch *batch;
        CornuIterator    *iterator = begun(dataset);
        int64_t           room = 2;
        for (int epoch = 0; epoch < 2; epoch++) {
            expect_ok(cornu_iterator_rewind(iterator, epoch));
            for (int64_t i = 0; i < BATCHES; i++) {
                expect_ok(cornu_iterator_next(iterator, &batch));
                if (batch_sizes[i] > room) room = batch_sizes[i];
                expect_batch(batch, epoch, i, mapped ? 2 : 1, room);
            }
            expect_ok(cornu_iterator_next(iterator, &batch));
            assert_null(batch);
        }
        expect_ok(cornu_iterator_seek(iterator, (CornuSample){ 5, 2 }));
        expect_ok(cornu_iterator_next(iterator, &batch));
        expect_batch(batch, 5, 2, mapped ? 2 : 1, 5);
        source.fails_at = 3;
        expect_error(cornu_iterator_next(iterator, &batch), CORNU_ERR_FILE,
                     "element 3 of epoch 5: the tap is dry");
        cornu_iterator_free(iterator);
        cornu_dataset_free(dataset);
    }
}

static void such_batches_are_steps(void **state)
{
    (void)state;
    Source        source = { .fails_at = -1 };
    CornuModel   *model = make_model();
    CornuDataset *dataset = of_batches(&source, 2);
    CornuHistory *history = must(cornu_fit(model, dataset, .epochs = 2, .verbose = CORNU_SILENT));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(cornu_history_samples(history, i), 11);
        assert_int_equal(cornu_history_infeed(history, i).batches, BATCHES);
    }
    cornu_history_free(history);
    assert_null(cornu_fit(model, dataset, .batch_size = 3, .verbose = CORNU_SILENT));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "batched already");
    cornu_dataset_free(dataset);
    cornu_model_free(model);
}

/* ---- Batches of 2 rows of 3, 1 and 4 numbers: number k of row r of batch i is 10 i + r ---- */

static const int64_t lengths[] = { 3, 1, 4 };
enum { LENGTHS = sizeof lengths / sizeof *lengths };

static CornuStatus say_two_rows(void *state, CornuSample sample, int64_t *rows)
{
    (void)state;
    *rows = sample.index < LENGTHS ? 2 : 0;
    return CORNU_OK;
}

static CornuStatus say_length(void *state, CornuSample sample, CornuType *types)
{
    const Source *source = state;
    types[0].shape.extent[0] = lengths[sample.index];
    if (sample.index == source->fails_at) types[0].dtype = CORNU_I32;
    return CORNU_OK;
}

static CornuStatus write_numbers(void *state, CornuSample sample, const CornuArray *to, bool *end)
{
    (void)state, (void)end;
    assert_int_equal(to[0].type.shape.extent[1], lengths[sample.index]);
    for (int64_t i = 0; i < 2 * lengths[sample.index]; i++)
        ((float *)to[0].data)[i] = (float)(10 * sample.index + i / lengths[sample.index]);
    return CORNU_OK;
}

static CornuStatus negated(void *context, CornuSample sample, const CornuArray *in,
                           const CornuArray *out)
{
    (void)context, (void)sample;
    assert_true(cornu_type_equal(in[0].type, out[0].type));
    for (int64_t i = 0; i < cornu_type_count(in[0].type); i++)
        ((float *)out[0].data)[i] = -((const float *)in[0].data)[i];
    return CORNU_OK;
}

static void batches_differ_in_other_axes(void **state)
{
    const CornuType type = cornu_type(CORNU_F32, 3);
    Source          source = { .fails_at = -1 };
    (void)state;
    CornuDataset *dataset = cornu_dataset_generator(
        write_numbers, &type, 1, .context = &source, .batch = say_two_rows, .batch_size = 2,
        .row_types = say_length);
    dataset = cornu_dataset_map(dataset, negated, NULL, NULL, 0);
    CornuIterator    *iterator = begun(dataset);
    const CornuBatch *batch;
    for (int epoch = 0; epoch < 2; epoch++) {
        expect_ok(cornu_iterator_rewind(iterator, epoch));
        for (int64_t i = 0; i < LENGTHS; i++) {
            expect_ok(cornu_iterator_next(iterator, &batch));
            assert_int_equal(batch->arrays[0].type.shape.extent[0], 2);
            assert_int_equal(batch->arrays[0].type.shape.extent[1], lengths[i]);
            for (int64_t k = 0; k < 2 * lengths[i]; k++)
                assert_true(((const float *)batch->arrays[0].data)[k] ==
                            -(float)(10 * i + k / lengths[i]));
        }
        expect_ok(cornu_iterator_next(iterator, &batch));
        assert_null(batch);
    }
    source.fails_at = 1;
    expect_ok(cornu_iterator_seek(iterator, (CornuSample){ 3, 1 }));
    expect_error(cornu_iterator_next(iterator, &batch), CORNU_ERR_SHAPE,
                 "element 1 of epoch 3: component 0 has rows of i32 (1,)");
    cornu_iterator_free(iterator);
    cornu_dataset_free(dataset);
}

static void they_are_only_mapped(void **state)
{
    (void)state;
    Source source = { .fails_at = -1 };
    expect_failure(cornu_dataset_prefetch(of_batches(&source, 2), 2), CORNU_ERR_ARGUMENT,
                   "prefetch: the batches of the data set differ in rows");
    expect_failure(cornu_dataset_shuffle_window(of_batches(&source, 2), 2, 1), CORNU_ERR_ARGUMENT,
                   "differ in rows");
    expect_failure(cornu_dataset_cache(of_batches(&source, 2)), CORNU_ERR_ARGUMENT,
                   "differ in rows");
    expect_failure(cornu_dataset_take(of_batches(&source, 2), 1), CORNU_ERR_ARGUMENT,
                   "differ in rows");
    expect_failure(of_batches(&source, 0), CORNU_ERR_ARGUMENT, ".batch_size is 0, expected 1 to");
}

/* Also where buffers grow; a later attempt has the room. */
static void memory_may_run_out_for_a_larger_batch(void **state)
{
    (void)state;
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    Source            source = { .fails_at = -1 };
    CornuDataset     *dataset = cornu_dataset_map(of_batches(&source, 2), twice, NULL, NULL, 0);
    CornuIterator    *iterator = begun(dataset);
    const CornuBatch *batch = NULL;
    int               failures = 0;
    for (int64_t n = 0; !batch; n++) {
        assert_true(n < 20);
        expect_ok(cornu_iterator_seek(iterator, (CornuSample){ n, 1 }));
        allocations_fail_after(n);
        const CornuStatus status = cornu_iterator_next(iterator, &batch);
        allocations_fail_after(NEVER);
        if (batch) expect_batch(batch, n, 1, 2, 5);
        else assert_int_equal(status, CORNU_ERR_MEMORY);
        failures += !batch;
    }
    assert_true(failures >= 2);
    cornu_iterator_free(iterator);
    cornu_dataset_free(dataset);
}

static void memory_may_run_out_anywhere(void **state)
{
    Source source = { .elements = 100, .fails_at = -1 };
    (void)state;
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    CornuDataset *cache = NULL;
    for (int64_t n = 0; !cache; n++) {
        assert_true(n < 100);
        allocations_fail_after(n);
        cache = cornu_dataset_cache(generated(&source));
        allocations_fail_after(NEVER);
        if (!cache) assert_int_equal(cornu_error_take(), CORNU_ERR_MEMORY);
    }
    cornu_dataset_free(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_differ_in_rows),
        cmocka_unit_test(such_batches_are_steps),
        cmocka_unit_test(they_are_only_mapped),
        cmocka_unit_test(batches_differ_in_other_axes),
        cmocka_unit_test(memory_may_run_out_for_a_larger_batch),
        cmocka_unit_test(elements_come_until_the_end),
        cmocka_unit_test(a_cache_makes_the_count_known),
        cmocka_unit_test(elements_can_be_sought),
        cmocka_unit_test(failures_carry_through),
        cmocka_unit_test(stages_that_need_a_count_are_refused),
        cmocka_unit_test(ranges_are_as_in_python),
        cmocka_unit_test(fit_evaluate_and_predict_take_it),
        cmocka_unit_test(an_epoch_may_start_at_the_end_of_the_data),
        cmocka_unit_test(backups_go_on),
        cmocka_unit_test(memory_may_run_out_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
