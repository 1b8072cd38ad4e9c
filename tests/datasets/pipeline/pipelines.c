#include "pipelines.h"

#include <stdio.h>
#include <string.h>

#include "../../../datasets/pipeline/interleave.h"
#include "../../../datasets/pipeline/join.h"
#include "../../../datasets/pipeline/padded_batch.h"
#include "../../../datasets/pipeline/select.h"
#include "../../../datasets/pipeline/sequence.h"

/* ---- Functions of the pipelines ---- */

typedef bool Test(int64_t i);

static bool is_any(int64_t i) { return i >= 0; }
static bool is_one_of_three(int64_t i) { return i % 3 == 1; }
static bool is_above_30(int64_t i) { return i > 30; }
static bool is_even(int64_t i) { return i % 2 == 0; }
static bool is_below_50_squared(int64_t i) { return i * i < 50; }
static bool is_two_of_three(int64_t i) { return i % 3 < 2; }

static Test *const any = is_any, *const one_of_three = is_one_of_three,
            *const above_30 = is_above_30, *const even = is_even,
            *const below_50_squared = is_below_50_squared, *const two_of_three = is_two_of_three;

static CornuStatus test(void *context, CornuSample sample, const CornuArray *in, bool *holds)
{
    (void)sample;
    *holds = (*(Test *const *)context)(pipeline_number(in));
    return CORNU_OK;
}

static CornuDataset *those(CornuDataset *dataset, Test *const *which)
{
    return cornu_dataset_filter(dataset, test, (void *)(uintptr_t)which);
}

CornuDataset *pipeline_even(CornuDataset *dataset) { return those(dataset, &even); }

/* A range whose count is not known. */
static CornuDataset *unknown(int64_t start, int64_t stop)
{
    return those(pipeline_range(start, stop), &any);
}

/* i elements: 10 i, 10 i + 1, ... */
static CornuDataset *tens(void *context, CornuSample sample, const CornuArray *in)
{
    const int64_t i = pipeline_number(in);
    (void)context, (void)sample;
    return pipeline_range(10 * i, 10 * i + i);
}

static CornuDataset *some_of_tens(void *context, CornuSample sample, const CornuArray *in)
{
    return those(tens(context, sample, in), &two_of_three);
}

static CornuStatus multiply(void *context, CornuSample sample, void *state, const CornuArray *in,
                            const CornuArray *out)
{
    int64_t *sum = state;
    (void)context, (void)sample;
    *(int64_t *)out[0].data = *sum * pipeline_number(in);
    *sum += pipeline_number(in);
    return CORNU_OK;
}

/* ---- The pipelines, by the names of the golden ones ---- */

static CornuDataset *zip(CornuDataset *a, CornuDataset *b)
{
    return cornu_dataset_zip((CornuDataset *[]){ a, b }, 2);
}

static CornuDataset *make_filter(void)
{
    return those(pipeline_range(0, 20), &one_of_three);
}

static CornuDataset *make_filter_none(void)
{
    return those(pipeline_range(0, 20), &above_30);
}

static CornuDataset *make_filter_batches(void)
{
    return pipeline_even(cornu_dataset_batch(pipeline_range(0, 20), 3, false));
}

static CornuDataset *make_take_while(void)
{
    return cornu_dataset_take_while(pipeline_range(0, 20), test,
                                    (void *)(uintptr_t)&below_50_squared);
}

static CornuDataset *make_zip(void) { return zip(pipeline_range(0, 5), pipeline_range(10, 18)); }

static CornuDataset *make_zip_unknown(void)
{
    CornuDataset *all[] = { unknown(0, 9), pipeline_range(10, 14),
                            cornu_dataset_repeat(pipeline_range(0, 3), CORNU_NONE) };
    return cornu_dataset_zip(all, 3);
}

static CornuDataset *make_zip_batches(void)
{
    return zip(cornu_dataset_batch(pipeline_range(0, 7), 3, false),
               cornu_dataset_batch(pipeline_range(10, 17), 3, false));
}

static CornuDataset *make_concatenate(void)
{
    return cornu_dataset_concatenate(pipeline_range(0, 4), pipeline_range(10, 13));
}

static CornuDataset *make_concatenate_unknown(void)
{
    CornuDataset *both = cornu_dataset_concatenate(unknown(0, 4), unknown(10, 13));
    return cornu_dataset_concatenate(both, pipeline_range(30, 33));
}

static CornuDataset *make_enumerate(void)
{
    return cornu_dataset_enumerate(pipeline_range(30, 34), 5);
}

static CornuDataset *make_repeat_unknown(void) { return cornu_dataset_repeat(unknown(0, 3), 3); }

static CornuDataset *make_repeat_endless(void)
{
    return cornu_dataset_take(cornu_dataset_repeat(unknown(0, 3), CORNU_NONE), 8);
}

static CornuDataset *make_interleave_unknown(void)
{
    return cornu_dataset_interleave(pipeline_range(0, 6), some_of_tens, .cycle_length = 3,
                                    .block_length = 2);
}

static CornuDataset *make_flat_map(void)
{
    return cornu_dataset_flat_map(pipeline_range(0, 5), tens, NULL, NULL, 0);
}

static CornuDataset *make_unbatch(void)
{
    return cornu_dataset_unbatch(cornu_dataset_batch(pipeline_range(0, 10), 4, false));
}

static CornuDataset *make_unbatch_elements(void)
{
    int64_t numbers[12];
    for (int i = 0; i < 12; i++) numbers[i] = i;
    const CornuArray array = cornu_array(numbers, CORNU_I64, 4, 3);
    return cornu_dataset_unbatch(cornu_dataset_from_arrays(&array, 1));
}

static CornuDataset *make_scan(void)
{
    return cornu_dataset_scan(pipeline_range(1, 8), multiply, .initial_state = &(int64_t){ 100 },
                              .state_bytes = sizeof(int64_t));
}

enum { SOURCES = 3 };

static void make_sources(CornuDataset **sources)
{
    sources[0] = pipeline_range(0, 5);
    sources[1] = unknown(10, 13);
    sources[2] = pipeline_range(20, 29);
}

static CornuDataset *choose(bool ignore)
{
    int64_t          choices[] = { 0, 1, 2, 1, 1, 0, 1, 2, 2, 0, 0, 2, 0, 0 };
    const CornuArray array = cornu_array(choices, CORNU_I64, 14);
    CornuDataset    *sources[SOURCES];
    make_sources(sources);
    return cornu_dataset_choose_from_datasets(sources, SOURCES,
                                              .choices = cornu_dataset_from_arrays(&array, 1),
                                              .ignore_empty_datasets = ignore);
}

static CornuDataset *make_choose(void) { return choose(false); }
static CornuDataset *make_choose_all(void) { return choose(true); }

static CornuDataset *make_sample_one(void)
{
    CornuDataset *sources[SOURCES];
    make_sources(sources);
    return cornu_dataset_sample_from_datasets(sources, SOURCES, (double[]){ 0.0, 1.0, 0.0 });
}

/* Elements of open extent, up to MOST: of length l and number n 100 n + 1, ..., 100 n + l, and
 * n. */
enum { MOST = 9 };

static CornuStatus sequence(void *context, CornuSample sample, const CornuArray *in,
                            const CornuArray *out)
{
    const int64_t length = ((const int *)context)[pipeline_number(in)];
    int32_t      *entries = out[0].data;
    (void)sample;
    for (int i = 0; i < MOST; i++) entries[i] = (int32_t)(100 * pipeline_number(in) + 1 + i);
    *(int32_t *)out[1].data = (int32_t)pipeline_number(in);
    *(int64_t *)out[2].data = length;
    return CORNU_OK;
}

static CornuDataset *sequences(const int *lengths, int count)
{
    const CornuType types[] = { cornu_type(CORNU_I32, MOST), cornu_scalar(CORNU_I32),
                                cornu_scalar(CORNU_I64) };
    return cornu_dataset_map(pipeline_range(0, count), sequence, (void *)(uintptr_t)lengths, types,
                             3);
}

static const int all_lengths[] = { 2, 5, 1, 7, 3, 4, 9, 2, 6, 8, 1, 3, 5, 0, 4 },
                 rest_lengths[] = { 7, 1, 4, 8, 8 },
                 short_lengths[] = { 2, 5, 1, 4, 3, 4, 0, 2, 5 };

static CornuDataset *make_padded_batch(void)
{
    return cornu_dataset_padded_batch(sequences(all_lengths, 15), 4);
}

static CornuDataset *make_padded_batch_drop(void)
{
    return cornu_dataset_padded_batch(sequences(all_lengths, 15), 4,
                                      .padding_values = (double[]){ -1.0 },
                                      .drop_remainder = true);
}

static const int64_t boundaries[] = { 3, 6 }, batch_sizes[] = { 3, 2, 2 };

static CornuDataset *make_bucket(void)
{
    return cornu_dataset_bucket_by_sequence_length(sequences(all_lengths, 15), boundaries,
                                                   batch_sizes, 2);
}

static CornuDataset *make_bucket_rest(void)
{
    return cornu_dataset_bucket_by_sequence_length(sequences(rest_lengths, 5), boundaries,
                                                   batch_sizes, 2);
}

static CornuDataset *make_bucket_drop(void)
{
    return cornu_dataset_bucket_by_sequence_length(sequences(all_lengths, 15), boundaries,
                                                   batch_sizes, 2, .drop_remainder = true);
}

static CornuDataset *make_bucket_boundary(void)
{
    return cornu_dataset_bucket_by_sequence_length(sequences(short_lengths, 9), boundaries,
                                                   batch_sizes, 2, .pad_to_bucket_boundary = true,
                                                   .padding_values = (double[]){ -1.0 });
}

static const struct { const char *name; CornuDataset *(*make)(void); } pipelines[] = {
    { "filter", make_filter },
    { "filter_none", make_filter_none },
    { "filter_batches", make_filter_batches },
    { "take_while", make_take_while },
    { "zip", make_zip },
    { "zip_unknown", make_zip_unknown },
    { "zip_batches", make_zip_batches },
    { "concatenate", make_concatenate },
    { "concatenate_unknown", make_concatenate_unknown },
    { "enumerate", make_enumerate },
    { "repeat_unknown", make_repeat_unknown },
    { "repeat_endless", make_repeat_endless },
    { "interleave_unknown", make_interleave_unknown },
    { "flat_map", make_flat_map },
    { "unbatch", make_unbatch },
    { "unbatch_elements", make_unbatch_elements },
    { "scan", make_scan },
    { "choose", make_choose },
    { "choose_all", make_choose_all },
    { "sample_one", make_sample_one },
    { "padded_batch", make_padded_batch },
    { "padded_batch_drop", make_padded_batch_drop },
    { "bucket", make_bucket },
    { "bucket_rest", make_bucket_rest },
    { "bucket_drop", make_bucket_drop },
    { "bucket_boundary", make_bucket_boundary },
};

/* Those whose names hold their settings. */
static CornuDataset *make_by_settings(const char *name, ListedAs *as)
{
    int size, shift, stride, whole, cycle, block;
    if (sscanf(name, "interleave_%d_%d", &cycle, &block) == 2)
        return cornu_dataset_interleave(pipeline_range(0, 6), tens, .cycle_length = cycle,
                                        .block_length = block);
    if (sscanf(name, "window_%d_%d_%d_%d", &size, &shift, &stride, &whole) != 4) return NULL;
    if (!whole) *as = LISTED_COUNTED;
    return cornu_dataset_window(pipeline_range(0, 10), size, shift, stride,
                                .drop_remainder = whole);
}

CornuDataset *pipeline_make(const char *name, ListedAs *as)
{
    *as = LISTED_WHOLE;
    CornuDataset *made = make_by_settings(name, as);
    for (size_t i = 0; i < sizeof pipelines / sizeof *pipelines && !made; i++)
        if (!strcmp(pipelines[i].name, name)) made = pipelines[i].make();
    if (made && *as == LISTED_WHOLE) *as = listed_as(made);
    return made;
}

const char *pipeline_name(int i)
{
    return i < (int)(sizeof pipelines / sizeof *pipelines) ? pipelines[i].name : NULL;
}
