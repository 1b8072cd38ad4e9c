/* Arguments and elements that operations of data sets refuse, and what they say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../../datasets/pipeline/interleave.h"
#include "../../../datasets/pipeline/join.h"
#include "../../../datasets/pipeline/padded_batch.h"
#include "../../../datasets/pipeline/select.h"
#include "../../../datasets/pipeline/sequence.h"
#include "../../expect.h"
#include "numbered.h"
#include "pipelines.h"

static CornuDataset *ten(void) { return pipeline_range(0, 10); }
static CornuDataset *batched(void) { return cornu_dataset_batch(ten(), 4, false); }

static void refused(CornuDataset *dataset, CornuStatus status, const char *part)
{
    expect_failure(dataset, status, part);
}

static void joins_are_refused(void **state)
{
    CornuDataset *mixed[] = { ten(), numbered_rows() }, *rows[] = { ten(), batched() };
    CornuDataset *twice[] = { ten(), NULL }, *one[] = { ten() };
    (void)state;
    refused(cornu_dataset_zip(NULL, 2), CORNU_ERR_ARGUMENT, "zip: 0 data sets, expected 1");
    refused(cornu_dataset_zip(rows, 2), CORNU_ERR_SHAPE,
            "zip: data set 1 has batches of 4 rows, expected 0");
    refused(cornu_dataset_zip(twice, 2), CORNU_ERR_ARGUMENT, "zip: the data set is NULL");
    refused(cornu_dataset_concatenate(ten(), numbered_rows()), CORNU_ERR_SHAPE,
            "concatenate: data set 1 has 2 components");
    refused(cornu_dataset_sample_from_datasets(mixed, 2), CORNU_ERR_SHAPE,
            "sample_from_datasets: data set 1 has 2 components");
    refused(cornu_dataset_sample_from_datasets(one, 1, (double[]){ -1.0 }), CORNU_ERR_VALUE,
            "weight 0 is -1");
    one[0] = ten();
    refused(cornu_dataset_sample_from_datasets(one, 1, (double[]){ 0.0 }), CORNU_ERR_VALUE,
            "the sum of the weights is 0");
    one[0] = ten();
    refused(cornu_dataset_choose_from_datasets(one, 1, .choices = numbered_rows()),
            CORNU_ERR_SHAPE, "the choices have 2 components");
    one[0] = ten();
    refused(cornu_dataset_choose_from_datasets(one, 1), CORNU_ERR_ARGUMENT, "is NULL");
    refused(cornu_dataset_choose_from_datasets(one, 0, .choices = ten()), CORNU_ERR_ARGUMENT,
            "no data sets, expected 1");
}

static void one_source_is_not_two(void **state)
{
    CornuDataset *source = ten(), *both[] = { source, source };
    (void)state;
    refused(cornu_dataset_zip(both, 2), CORNU_ERR_ARGUMENT, "cornu_dataset_retain for several");
    cornu_dataset_retain(source);
    CornuDataset *zip = cornu_dataset_zip(both, 2);
    assert_non_null(zip);
    cornu_dataset_free(zip);

    /* Twice itself, and that again: as many stages as the square of squares. */
    CornuDataset *all = ten();
    for (int i = 0; i < 32 && all; i++)
        all = cornu_dataset_concatenate(cornu_dataset_retain(all), all);
    refused(all, CORNU_ERR_ARGUMENT, "stages with those of its sources, expected at most 4096");
}

static CornuDataset *same(void *context, CornuSample sample, const CornuArray *in)
{
    (void)sample, (void)in;
    return context ? numbered_rows() : NULL;
}

static CornuStatus state_of(void *context, CornuSample sample, void *state, const CornuArray *in,
                            const CornuArray *out)
{
    (void)context, (void)sample, (void)state, (void)in, (void)out;
    return CORNU_OK;
}

static void settings_are_refused(void **state)
{
    (void)state;
    refused(cornu_dataset_filter(ten(), NULL, NULL), CORNU_ERR_ARGUMENT,
            "filter: the function is NULL");
    refused(cornu_dataset_take_while(NULL, NULL, NULL), CORNU_ERR_ARGUMENT, "take_while");
    refused(cornu_dataset_enumerate(batched(), 0), CORNU_ERR_ARGUMENT, "enumerate before batch");
    refused(cornu_dataset_enumerate(ten(), INT64_MAX - 3), CORNU_ERR_ARGUMENT, "range of i64");
    refused(cornu_dataset_window(batched(), 2), CORNU_ERR_ARGUMENT, "window before batch");
    refused(cornu_dataset_window(ten(), 0), CORNU_ERR_ARGUMENT, "window: .size is 0");
    refused(cornu_dataset_window(ten(), 2, -1), CORNU_ERR_ARGUMENT, "window: .shift is -1");
    refused(cornu_dataset_window(ten(), INT32_MAX, 1, INT32_MAX), CORNU_ERR_SHAPE, "window: ");
    refused(cornu_dataset_unbatch(ten()), CORNU_ERR_SHAPE, "unbatch: component 0 is");
    refused(cornu_dataset_unbatch(numbered_rows()), CORNU_ERR_SHAPE, "unbatch: component 1 is");
    refused(cornu_dataset_scan(ten(), state_of), CORNU_ERR_ARGUMENT, "expected .initial_state");
    refused(cornu_dataset_interleave(ten(), NULL), CORNU_ERR_ARGUMENT,
            "interleave: the function is NULL");
    refused(cornu_dataset_interleave(ten(), same, .cycle_length = 1 << 20), CORNU_ERR_ARGUMENT,
            ".cycle_length is 1048576, expected 1 to 65536");
    refused(cornu_dataset_flat_map(ten(), same, NULL, NULL, 3), CORNU_ERR_ARGUMENT,
            "flat_map: 0 components");
    refused(cornu_dataset_rejection_resample(ten(), NULL), CORNU_ERR_ARGUMENT, "function is NULL");
}

static void padding_is_refused(void **state)
{
    static const int64_t boundaries[] = { 2, 8 }, sizes[] = { 1, 1, 1 };
    const char *const    name = "padded_batch";
    ListedAs             as;
    (void)state;
    refused(cornu_dataset_padded_batch(numbered_rows(), 0), CORNU_ERR_ARGUMENT, "batch size 0");
    refused(cornu_dataset_padded_batch(ten(), 2), CORNU_ERR_SHAPE,
            "the last of 1 component is i64");
    refused(cornu_dataset_padded_batch(numbered_rows(), 2, (int[]){ 1 }, 1), CORNU_ERR_ARGUMENT,
            ".open[0] is 1, expected 0 to 0");
    refused(cornu_dataset_bucket_by_sequence_length(numbered_rows(), boundaries, sizes, 2),
            CORNU_ERR_ARGUMENT, "the last boundary is 8, but the open axis has 3 entries");
    refused(cornu_dataset_unbatch(pipeline_make(name, &as)), CORNU_ERR_ARGUMENT,
            "unbatch: the batches of the data set differ in extents");
}

/* What elements are refused for is said when they are read. */
static void expect_read(CornuDataset *dataset, CornuStatus status, const char *part)
{
    const CornuBatch *batch = NULL;
    CornuStatus       got = CORNU_OK;
    CornuIterator    *iterator = cornu_iterator_begin(dataset, 0);
    assert_non_null(iterator);
    do got = cornu_iterator_next(iterator, &batch);
    while (!got && batch);
    expect_error(got, status, part);
    cornu_iterator_free(iterator);
    cornu_dataset_free(dataset);
}

static CornuStatus class_of(void *context, CornuSample sample, const CornuArray *in,
                            int64_t *class)
{
    (void)context, (void)sample;
    *class = pipeline_number(in);
    return CORNU_OK;
}

static void elements_are_refused(void **state)
{
    CornuDataset *one[] = { ten() };
    CornuDataset *pair[] = { batched(), cornu_dataset_batch(pipeline_range(0, 11), 4, false) };
    (void)state;
    expect_read(cornu_dataset_choose_from_datasets(one, 1, .choices = ten()), CORNU_ERR_VALUE,
                "choice 1 is data set 1, expected 0 to 0");
    expect_read(cornu_dataset_zip(pair, 2), CORNU_ERR_SHAPE,
                "zip: batch 2 has 3 rows in data set 1, expected 2");
    expect_read(cornu_dataset_interleave(ten(), same), CORNU_ERR_DATA,
                "interleave: the function made no data set of element 0 of epoch 0");
    expect_read(cornu_dataset_flat_map(ten(), same, &state, NULL, 0), CORNU_ERR_SHAPE,
                "the data set has 2 components");
    expect_read(cornu_dataset_rejection_resample(ten(), class_of, (double[]){ 1.0, 2.0 }, 2),
                CORNU_ERR_VALUE, "element 2 of epoch 0 is of class 2, expected 0 to 1");
    /* The labels of numbered rows, 0 to 22, as lengths of rows of 3. */
    expect_read(cornu_dataset_padded_batch(numbered_rows(), 2), CORNU_ERR_VALUE,
                "padded_batch: element 4 of epoch 0 has 4 entries, expected 0 to 3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joins_are_refused),
        cmocka_unit_test(one_source_is_not_two),
        cmocka_unit_test(settings_are_refused),
        cmocka_unit_test(padding_is_refused),
        cmocka_unit_test(elements_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
