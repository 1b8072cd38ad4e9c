/* Operations of tf.data beside TensorFlow's (tests/golden/pipelines): elements and their order, for
 * any number of threads, and read on from any place. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../../datasets/pipeline/dataset_internal.h"
#include "../../../datasets/pipeline/interleave.h"
#include "../../../datasets/pipeline/join.h"
#include "../../../datasets/pipeline/select.h"
#include "../../../datasets/pipeline/sequence.h"
#include "../../allocations.h"
#include "../../expect.h"
#include "../../skip.h"
#include "pipelines.h"

/* ---- Elements ---- */

typedef void CheckFunction(const char *name, CornuDataset *dataset, ListedAs as,
                           const Listed *wanted);

/* Of each golden pipeline. */
static void check_all(CheckFunction *check)
{
    static Listed wanted;
    json_error_t  error;
    json_t       *cases = json_load_file("tests/golden/pipelines/elements.json", 0, &error);
    const char   *name;
    json_t       *elements;
    int           made = 0;
    if (!cases) fail_msg("%s", error.text);
    json_object_foreach(cases, name, elements) {
        ListedAs      as;
        CornuDataset *dataset = pipeline_make(name, &as);
        if (!dataset) fail_msg("%s: %s", name, cornu_error_message());
        listed_from_json(elements, &wanted);
        check(name, dataset, as, &wanted);
        cornu_dataset_free(dataset);
        made++;
    }
    assert_int_equal(made, (int)json_object_size(cases));
    json_decref(cases);
}

static void check_elements(const char *name, CornuDataset *dataset, ListedAs as,
                           const Listed *wanted)
{
    static Listed got;
    for (int threads = 0; threads <= 4; threads++)
        for (int64_t epoch = 0; epoch < 2; epoch++) {
            listed_epoch(dataset, epoch, threads, as, &got);
            listed_equal(name, &got, wanted);
        }
    const int64_t count = cornu_dataset_count(dataset);
    if (count != CORNU_UNKNOWN) assert_int_equal(count, wanted->count);
}

static void elements_are_those_of_tensorflow(void **state)
{
    (void)state;
    check_all(check_elements);
}

/* Forward and back, and from the start. */
static void check_seeking(const char *name, CornuDataset *dataset, ListedAs as,
                          const Listed *wanted)
{
    static char    text[LISTED_LENGTH];
    CornuIterator *iterator = cornu_iterator_begin(dataset, 0);
    assert_non_null(iterator);
    for (int step = 1; step < 6; step += 2)
        for (int i = 0; i <= wanted->count; i++) {
            const int to = i * step % (wanted->count + 1);
            expect_ok(cornu_iterator_seek(iterator, (CornuSample){ 0, to }));
            const bool some = listed_next(iterator, as, text);
            assert_int_equal(some, to < wanted->count);
            if (some && strcmp(text, wanted->text[to]))
                fail_msg("%s: after a seek element %d is %s, expected %s", name, to, text,
                         wanted->text[to]);
        }
    cornu_iterator_free(iterator);
}

static void any_place_can_be_sought(void **state)
{
    (void)state;
    check_all(check_seeking);
}

/* Several processes get the rows of their shards, and the batches of one. */
static void check_shares(const char *name, CornuDataset *dataset, ListedAs as,
                         const Listed *wanted)
{
    CornuDataset *batches = cornu_dataset_retain(dataset);
    (void)as, (void)wanted;
    if (!cornu_dataset_batch_size(batches)) batches = cornu_dataset_batch(batches, 4, false);
    for (int s = 0; s < 6; s++) {
        const int         shards = s < 1 ? 1 : s < 3 ? 2 : 3;
        const CornuShare  share = { shards, s - shards * (shards - 1) / 2, 1 };
        CornuIterator    *whole = cornu_iterator_begin(batches, 1);
        CornuIterator    *own = cornu__iterator_begin_share(batches, 1, share);
        const CornuBatch *all, *some;
        for (;;) {
            expect_ok(cornu_iterator_next(whole, &all));
            expect_ok(cornu_iterator_next(own, &some));
            assert_int_equal(!all, !some);
            if (!all) break;
            assert_int_equal(all->valid, some->valid);
            const CornuOwnRows rows = cornu__own_rows(share, all->valid);
            for (int c = 0; c < all->count; c++) {
                const CornuType type = all->arrays[c].type;
                const size_t    row = cornu_type_bytes(type) / (size_t)type.shape.extent[0];
                assert_true(cornu_type_equal(type, some->arrays[c].type));
                if (memcmp((char *)all->arrays[c].data + (size_t)rows.first * row,
                           (char *)some->arrays[c].data + (size_t)rows.first * row,
                           (size_t)rows.count * row))
                    fail_msg("%s: process %d of %d has other rows in batch %d", name, share.first,
                             shards, (int)all->sample.index);
            }
        }
        cornu_iterator_free(whole);
        cornu_iterator_free(own);
    }
    cornu_dataset_free(batches);
}

static void processes_have_the_same_batches(void **state)
{
    (void)state;
    check_all(check_shares);
}

/* Fails each allocation in turn: an error, and nothing is left. */
static void fail_allocations(const char *name)
{
    bool done = false;
    for (int n = 0; !done; n++) {
        const int64_t held = allocations_held();
        ListedAs      as;
        CornuStatus   status = CORNU_OK;
        allocations_fail_after(n);
        CornuDataset  *dataset = pipeline_make(name, &as);
        CornuIterator *iterator = dataset ? cornu_iterator_begin(dataset, 0) : NULL;
        for (const CornuBatch *batch = NULL; iterator && !status;) {
            status = cornu_iterator_next(iterator, &batch);
            if (!batch) break;
        }
        allocations_fail_after(NEVER);
        if (!iterator) status = cornu_error_take();
        cornu_iterator_free(iterator);
        cornu_dataset_free(dataset);
        done = status == CORNU_OK;
        if (!done) assert_int_equal(status, CORNU_ERR_MEMORY);
        if (allocations_held() != held)
            fail_msg("%s: %d blocks are left after allocation %d failed", name,
                     (int)(allocations_held() - held), n);
        assert_true(n < 1000);
    }
}

static void no_memory_is_an_error(void **state)
{
    (void)state;
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    for (int i = 0; pipeline_name(i); i++) fail_allocations(pipeline_name(i));
    fail_allocations("interleave_3_2");
    fail_allocations("window_4_2_2_0");
}

/* ---- Draws ---- */

static CornuStatus class_of(void *context, CornuSample sample, const CornuArray *in,
                            int64_t *class)
{
    (void)context, (void)sample;
    *class = pipeline_number(in);
    return CORNU_OK;
}

static CornuDataset *make_sample(uint64_t seed, bool stops)
{
    CornuDataset *sources[3];
    for (int i = 0; i < 3; i++)
        sources[i] = cornu_dataset_repeat(pipeline_range(i, i + 1), CORNU_NONE);
    return cornu_dataset_sample_from_datasets(sources, 3, (double[]){ 0.5, 0.2, 0.3 }, seed, stops);
}

/* 60, 30 and 10 in a hundred of classes 0 to 2, without end. */
static CornuDataset *make_resample(bool given)
{
    static const double initial[] = { 0.6, 0.3, 0.1 }, target[] = { 0.2, 0.3, 0.5 };
    CornuDataset *classes[3], *all;
    for (int i = 0; i < 3; i++)
        classes[i] = cornu_dataset_repeat(pipeline_range(i, i + 1), CORNU_NONE);
    all = cornu_dataset_sample_from_datasets(classes, 3, initial, .seed = 5);
    return cornu_dataset_rejection_resample(all, class_of, target, 3, given ? initial : NULL,
                                            .seed = 3);
}

/* Both are draws: their counts of each differ by less than five times what is expected. */
static void draws_have_the_distribution_of_tensorflow(void **state)
{
    enum { OF = 20000 };
    json_error_t error;
    json_t      *cases = json_load_file("tests/golden/pipelines/shares.json", 0, &error);
    const char  *name;
    json_t      *wanted;
    (void)state;
    if (!cases) fail_msg("%s", error.text);
    assert_int_equal(json_object_size(cases), 3);
    json_object_foreach(cases, name, wanted) {
        CornuDataset  *dataset = !strcmp(name, "sample") ? make_sample(3, false)
                                                         : make_resample(!strcmp(name, "resample"));
        CornuIterator *iterator = cornu_iterator_begin(dataset, 0);
        int            got[3] = { 0 };
        assert_non_null(iterator);
        for (int i = 0; i < OF; i++) {
            const CornuBatch *batch;
            expect_ok(cornu_iterator_next(iterator, &batch));
            got[pipeline_number(batch->arrays)]++;
        }
        for (size_t c = 0; c < 3; c++) {
            const double want = json_number_value(json_array_get(wanted, c));
            const double bound = 5.0 * sqrt(2.0 * want * (1.0 - want / OF));
            if (fabs(got[c] - want) > bound)
                fail_msg("%s: %d of class %d, expected %g within %g", name, got[c], (int)c, want,
                         bound);
        }
        cornu_iterator_free(iterator);
        cornu_dataset_free(dataset);
    }
    json_decref(cases);
}

/* Shuffles in both, so that each epoch has another order of each and between them. */
static CornuDataset *make_mixture(uint64_t seed)
{
    CornuDataset *sources[] = { cornu_dataset_shuffle(pipeline_range(0, 30), seed),
                                cornu_dataset_shuffle(pipeline_range(100, 110), seed) };
    return cornu_dataset_sample_from_datasets(sources, 2, (double[]){ 2.0, 1.0 }, seed);
}

static void a_mixture_follows_from_seed_and_epoch(void **state)
{
    static Listed one, two;
    (void)state;
    for (int64_t epoch = 0; epoch < 3; epoch++) {
        CornuDataset *mixture = make_mixture(7), *other = make_mixture(8);
        assert_int_equal(cornu_dataset_count(mixture), 40);
        listed_epoch(mixture, epoch, 0, LISTED_WHOLE, &one);
        for (int threads = 1; threads <= 4; threads++) {
            listed_epoch(mixture, epoch, threads, LISTED_WHOLE, &two);
            listed_equal("mixture", &two, &one);
        }
        if (epoch == 0) check_seeking("mixture", mixture, LISTED_WHOLE, &one);
        listed_epoch(mixture, epoch + 1, 0, LISTED_WHOLE, &two);
        assert_memory_not_equal(&one, &two, sizeof one);
        listed_epoch(other, epoch, 0, LISTED_WHOLE, &two);
        assert_memory_not_equal(&one, &two, sizeof one);
        cornu_dataset_free(mixture);
        cornu_dataset_free(other);
    }
}

static void sampling_may_stop_with_a_source(void **state)
{
    static Listed one;
    (void)state;
    CornuDataset *sources[] = { pipeline_range(0, 5), pipeline_range(100, 200) };
    CornuDataset *dataset = cornu_dataset_sample_from_datasets(sources, 2, .seed = 1,
                                                               .stop_on_empty_dataset = true);
    assert_int_equal(cornu_dataset_count(dataset), CORNU_UNKNOWN);
    listed_epoch(dataset, 0, 0, LISTED_WHOLE, &one);
    int few = 0;
    for (int i = 0; i < one.count; i++) few += strlen(one.text[i]) < 3;
    assert_int_equal(few, 5);
    assert_in_range(one.count, 5, 104);
    cornu_dataset_free(dataset);
}

/* ---- What is read ---- */

static int reads;

static CornuStatus count_read(void *context, CornuSample sample, const CornuArray *in,
                              const CornuArray *out)
{
    (void)context, (void)sample;
    *(int64_t *)out[0].data = pipeline_number(in);
    reads++;
    return CORNU_OK;
}

static CornuDataset *counted(int64_t start, int64_t stop)
{
    return cornu_dataset_map(pipeline_range(start, stop), count_read, NULL, NULL, 0);
}

static CornuDataset *counted_tens(void *context, CornuSample sample, const CornuArray *in)
{
    (void)context, (void)sample;
    return counted(10 * pipeline_number(in), 10 * pipeline_number(in) + 10);
}

/* Elements that are read for the one at `to`. */
static int reads_to(CornuIterator *iterator, int64_t to, int64_t wanted)
{
    const CornuBatch *batch;
    expect_ok(cornu_iterator_seek(iterator, (CornuSample){ 0, to }));
    reads = 0;
    expect_ok(cornu_iterator_next(iterator, &batch));
    assert_non_null(batch);
    if (wanted >= 0) assert_int_equal(pipeline_number(batch->arrays), wanted);
    return reads;
}

static void a_seek_reads_nothing_before_it(void **state)
{
    (void)state;
    CornuDataset *pair[] = { counted(0, 1000), counted(1000, 3000) };
    CornuDataset *mixed[] = { counted(0, 1000), counted(1000, 3000) };
    CornuDataset *sets[] = {
        cornu_dataset_zip(pair, 2),
        cornu_dataset_concatenate(counted(0, 500), counted(500, 1000)),
        cornu_dataset_sample_from_datasets(mixed, 2),
        cornu_dataset_interleave(pipeline_range(0, 100), counted_tens, .cycle_length = 4),
        cornu_dataset_window(counted(0, 1000), 2, 1, .drop_remainder = true),
    };
    const int each[] = { 2, 1, 1, 1, 2 };
    for (int i = 0; i < 5; i++) {
        CornuIterator *iterator = cornu_iterator_begin(sets[i], 0);
        assert_non_null(iterator);
        assert_int_equal(reads_to(iterator, 900, i < 2 ? 900 : -1), each[i]);
        assert_int_equal(reads_to(iterator, 77, i < 2 ? 77 : -1), each[i]);
        cornu_iterator_free(iterator);
        cornu_dataset_free(sets[i]);
    }
}

static void windows_make_each_element_once(void **state)
{
    static Listed all;
    (void)state;
    CornuDataset *dataset = cornu_dataset_window(counted(0, 50), 10, 1, .drop_remainder = true);
    reads = 0;
    listed_epoch(dataset, 0, 0, LISTED_WHOLE, &all);
    assert_int_equal(all.count, 41);
    assert_int_equal(reads, 50);
    cornu_dataset_free(dataset);
}

/* Half of 10,000: of every eighth of these the filter knows where it is. */
static void a_filter_remembers_where_elements_are(void **state)
{
    (void)state;
    CornuDataset  *dataset = pipeline_even(counted(0, 10000));
    CornuIterator *iterator = cornu_iterator_begin(dataset, 0);
    assert_int_equal(reads_to(iterator, 4900, 9800), 9801);
    for (int64_t to = 4800; to > 0; to -= 333)
        assert_in_range(reads_to(iterator, to, 2 * to), 1, 16);
    cornu_iterator_free(iterator);
    cornu_dataset_free(dataset);
}

static CornuDataset *batches_of_four(bool drop_remainder)
{
    return cornu_dataset_batch(pipeline_range(0, 10), 4, drop_remainder);
}

/* Where the order of whole batches alone was changed the rows are as many as before. */
static void unbatch_counts_the_rows_of_batches(void **state)
{
    (void)state;
    CornuDataset *made[] = {
        cornu_dataset_unbatch(batches_of_four(false)),
        cornu_dataset_unbatch(cornu_dataset_shuffle(batches_of_four(false), 1)),
        cornu_dataset_unbatch(cornu_dataset_shuffle(batches_of_four(true), 1)),
        cornu_dataset_unbatch(cornu_dataset_skip(batches_of_four(false), 1)),
        cornu_dataset_unbatch(cornu_dataset_repeat(batches_of_four(false), CORNU_NONE)) };
    const int64_t counts[] = { 10, 10, 8, CORNU_UNKNOWN, CORNU_NONE };
    const int     read[] = { 10, 10, 8, 6, -1 };
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        assert_int_equal(cornu_dataset_count(made[i]), counts[i]);
        CornuIterator    *iterator = read[i] < 0 ? NULL : cornu_iterator_begin(made[i], 3);
        const CornuBatch *element = NULL;
        int64_t           sum = 0;
        int               rows = 0;
        while (iterator && cornu_iterator_next(iterator, &element) == CORNU_OK && element) {
            sum += *(const int64_t *)element->arrays[0].data;
            rows++;
        }
        if (iterator) assert_int_equal(rows, read[i]);
        if (rows == 10) assert_int_equal(sum, 45);
        cornu_iterator_free(iterator);
        cornu_dataset_free(made[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_are_those_of_tensorflow),
        cmocka_unit_test(any_place_can_be_sought),
        cmocka_unit_test(processes_have_the_same_batches),
        cmocka_unit_test(no_memory_is_an_error),
        cmocka_unit_test(draws_have_the_distribution_of_tensorflow),
        cmocka_unit_test(a_mixture_follows_from_seed_and_epoch),
        cmocka_unit_test(sampling_may_stop_with_a_source),
        cmocka_unit_test(a_seek_reads_nothing_before_it),
        cmocka_unit_test(windows_make_each_element_once),
        cmocka_unit_test(a_filter_remembers_where_elements_are),
        cmocka_unit_test(unbatch_counts_the_rows_of_batches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
