/* A training from each operation's elements ends with the same bytes of weights for any number of
 * ranks.
 *
 * tests/run: quick
 */
#include <setjmp.h>
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
#include "../../quick.h"
#include "../files.h"

enum { STEPS = 5, FEATURES = 4, CLASSES = 3, SHARDS = 4, BATCH = 16, EPOCHS = 2 };

/* ---- Elements: x f32 (STEPS, FEATURES), y i32 (), how many steps hold data i64 () ---- */

static CornuStatus make_sample(void *context, CornuSample sample, const CornuArray *in,
                               const CornuArray *out)
{
    const int64_t number = *(const int64_t *)in[0].data;
    float        *x = out[0].data;
    (void)context, (void)sample;
    *(int64_t *)out[2].data = 1 + number % STEPS;
    for (int i = 0; i < STEPS * FEATURES; i++)
        x[i] = i / FEATURES > number % STEPS ? 0.0f
             : (float)((number * 31 + i * 37) % 101) / 50.0f - 1.0f;
    *(int32_t *)out[1].data = (int32_t)(number * 7 % CLASSES);
    return CORNU_OK;
}

static const CornuType sample_types[] = { { CORNU_F32, { 2, { STEPS, FEATURES } } },
                                          { CORNU_I32, { 0 } }, { CORNU_I64, { 0 } } };

static CornuDataset *samples(int64_t first, int64_t after)
{
    return cornu_dataset_map(cornu_dataset_range(first, after, 1), make_sample, NULL, sample_types,
                             3);
}

static CornuDataset *batches(CornuDataset *dataset)
{
    return cornu_dataset_batch(cornu_dataset_pick(dataset, 0, 1), BATCH, false);
}

static CornuStatus is_not_one(void *context, CornuSample sample, const CornuArray *in, bool *holds)
{
    (void)context, (void)sample;
    *holds = *(const int32_t *)in[1].data != 1 || *(const int64_t *)in[2].data > 2;
    return CORNU_OK;
}

static CornuStatus is_small(void *context, CornuSample sample, const CornuArray *in, bool *holds)
{
    (void)context, (void)in;
    *holds = sample.index < 70;
    return CORNU_OK;
}

static CornuStatus class_of(void *context, CornuSample sample, const CornuArray *in,
                            int64_t *number)
{
    (void)context, (void)sample;
    *number = *(const int32_t *)in[1].data;
    return CORNU_OK;
}

static CornuDataset *some_samples(void *context, CornuSample sample, const CornuArray *in)
{
    const int64_t number = *(const int64_t *)in[0].data;
    (void)context, (void)sample;
    return samples(40 * number, 40 * number + number % 5 * 9);
}

/* y becomes the class of the sum of those so far. */
static CornuStatus add_up(void *context, CornuSample sample, void *state, const CornuArray *in,
                          const CornuArray *out)
{
    int32_t *sum = state;
    (void)context, (void)sample;
    for (int c = 0; c < 3; c++)
        memcpy(out[c].data, in[c].data, cornu_type_bytes(sample_types[c]));
    *(int32_t *)out[1].data = *sum = (*sum + *(const int32_t *)in[1].data) % CLASSES;
    return CORNU_OK;
}

/* Of a window of samples x (3, STEPS, FEATURES), y (3): the first of each, and the last y. */
static CornuStatus last_of_window(void *context, CornuSample sample, const CornuArray *in,
                                  const CornuArray *out)
{
    (void)context, (void)sample;
    memcpy(out[0].data, in[0].data, cornu_type_bytes(sample_types[0]));
    *(int32_t *)out[1].data = ((const int32_t *)in[1].data)[2];
    *(int64_t *)out[2].data = STEPS;
    return CORNU_OK;
}

/* ---- Pipelines ---- */

static CornuDataset *filtered(void)
{
    return batches(cornu_dataset_filter(samples(0, 200), is_not_one, NULL));
}
static CornuDataset *taken(void)
{
    return batches(cornu_dataset_repeat(cornu_dataset_take_while(samples(0, 200), is_small, NULL),
                                        2));
}
static CornuDataset *interleaved(void)
{
    return batches(cornu_dataset_interleave(cornu_dataset_range(0, 12, 1), some_samples,
                                            .types = sample_types, .count = 3, .cycle_length = 4,
                                            .block_length = 3));
}
static CornuDataset *flattened(void)
{
    return batches(cornu_dataset_flat_map(cornu_dataset_range(0, 9, 1), some_samples, NULL,
                                          sample_types, 3));
}
static CornuDataset *windows(void)
{
    CornuDataset *dataset = cornu_dataset_window(samples(0, 150), 3, .shift = 2,
                                                 .drop_remainder = true);
    return batches(cornu_dataset_map(dataset, last_of_window, NULL, sample_types, 3));
}
static CornuDataset *padded(void)
{
    return cornu_dataset_padded_batch(samples(0, 150), BATCH);
}
static CornuDataset *bucketed(void)
{
    static const int64_t boundaries[] = { 3, 5 }, sizes[] = { 16, 12, 8 };
    return cornu_dataset_bucket_by_sequence_length(samples(0, 150), .bucket_boundaries = boundaries,
                                                   .bucket_batch_sizes = sizes, .boundaries = 2,
                                                   .pad_to_bucket_boundary = true);
}
static CornuDataset *scanned(void)
{
    static const int32_t none = 0;
    return batches(cornu_dataset_scan(samples(0, 150), add_up, &none, sizeof none));
}
static CornuDataset *unbatched(void)
{
    return batches(cornu_dataset_unbatch(cornu_dataset_batch(samples(0, 150), 7, false)));
}
static CornuDataset *zipped(void)
{
    CornuDataset *const both[] = { samples(0, 150), samples(500, 640) };
    return cornu_dataset_batch(cornu_dataset_pick(cornu_dataset_zip(both, 2), 0, 4), BATCH, false);
}
static CornuDataset *concatenated(void)
{
    return batches(cornu_dataset_shuffle(cornu_dataset_concatenate(samples(0, 70),
                                                                   samples(300, 373)), 5));
}
static CornuDataset *sampled(void)
{
    CornuDataset *const both[] = { samples(0, 70), samples(300, 373) };
    return batches(cornu_dataset_sample_from_datasets(both, 2, (double[]){ 1.0, 2.0 }, 9));
}
static CornuDataset *chosen(void)
{
    CornuDataset *const both[] = { samples(0, 70), samples(300, 373) };
    CornuDataset *choices = cornu_dataset_repeat(cornu_dataset_range(0, 2, 1), 60);
    return batches(cornu_dataset_choose_from_datasets(both, 2, choices));
}
static CornuDataset *resampled(void)
{
    CornuDataset *dataset = cornu_dataset_rejection_resample(
        samples(0, 300), class_of, (double[]){ 0.6, 0.2, 0.2 }, CLASSES, .seed = 3);
    const bool numbered = cornu_dataset_components(dataset) == 4;   /* the class comes first */
    return cornu_dataset_batch(numbered ? cornu_dataset_pick(dataset, 1, 2)
                                        : cornu_dataset_pick(dataset, 0, 1), BATCH, false);
}
static CornuDataset *in_a_window(void)
{
    CornuDataset *dataset = cornu_dataset_filter(samples(0, 200), is_not_one, NULL);
    return batches(cornu_dataset_shuffle_window(dataset, 30, 4));
}

static const struct { const char *name; CornuDataset *(*make)(void); } pipelines[] = {
    { "filter", filtered }, { "take_while, repeat", taken }, { "interleave", interleaved },
    { "flat_map", flattened }, { "window", windows }, { "padded_batch", padded },
    { "bucket_by_sequence_length", bucketed }, { "scan", scanned }, { "unbatch", unbatched },
    { "zip", zipped }, { "concatenate, shuffle", concatenated },
    { "sample_from_datasets", sampled }, { "choose_from_datasets", chosen },
    { "rejection_resample", resampled }, { "filter, shuffle_window", in_a_window },
};
enum { PIPELINES = sizeof pipelines / sizeof *pipelines };

/* ---- What the ranks do ---- */

static void go_to_folder(int rank)
{
    char path[FILES_PATH + 40];
    snprintf(path, sizeof path, "%s/%d", folder, rank);
    mkdir(path, 0777);
    if (chdir(path)) exit(3);
}

static CornuStatus train(CornuProcesses *processes, CornuDevice *device, int i)
{
    char path[40];
    (void)processes;
    cornu_set_random_seed(11);
    CornuModel *model = cornu_sequential(.input_shape = { CORNU_NONE, FEATURES });
    cornu_model_add(model, cornu_global_average_pooling1d());
    cornu_model_add(model, cornu_dense(8, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_dense(CLASSES, .activation = CORNU_SOFTMAX));
    CornuDataset *dataset = pipelines[i].make();
    CornuHistory *history = NULL;
    if (!cornu_compile(model, .optimizer = cornu_adam(), .device = device,
                       .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY))
        history = cornu_fit(model, dataset, .epochs = EPOCHS, .verbose = CORNU_SILENT);
    snprintf(path, sizeof path, "%d.safetensors", i);
    const CornuStatus status = history ? cornu_model_save(model, path) : cornu_error_take();
    cornu_history_free(history);
    cornu_dataset_free(dataset);
    cornu_model_free(model);
    return status;
}

static CornuStatus train_all(CornuProcesses *processes)
{
    CornuDevice *device = cornu_device_open("tpu", .threads = 1, .shards = SHARDS,
                                            .processes = processes);
    CornuStatus  status = device ? CORNU_OK : cornu_error_take();
    for (int i = 0; i < PIPELINES && !status; i++) {
        status = train(processes, device, i);
        if (status) cornu_error_set(status, "%s: %s", pipelines[i].name, cornu_error_message());
    }
    cornu_device_close(device);
    return status;
}

static void take_sums(char sums[PIPELINES][CORNU__SHA256_TEXT])
{
    for (int i = 0; i < PIPELINES; i++) {
        char path[FILES_PATH + 40];
        snprintf(path, sizeof path, "%s/0/%d.safetensors", folder, i);
        expect_ok(cornu__sha256_file(path, sums[i]));
        assert_int_equal(remove(path), 0);
    }
}

static void same_bytes_of_any_number_of_ranks(void **state)
{
    (void)state;
    char one[PIPELINES][CORNU__SHA256_TEXT], several[PIPELINES][CORNU__SHA256_TEXT];
    for (int ranks = 1; ranks <= quick(2, 3); ranks++) {
        Ranks ended;
        ranks_run(&ended, ranks, "tcp", 60, go_to_folder, train_all);
        for (int i = 0; i < ranks; i++)
            if (!ended.ends[i].reported || ended.ends[i].status)
                fail_msg("rank %d of %d: %s", i, ranks, ended.ends[i].message);
        take_sums(ranks == 1 ? one : several);
        for (int i = 0; i < PIPELINES && ranks > 1; i++)
            if (strcmp(several[i], one[i]))
                fail_msg("%s: %d ranks have other weights than one", pipelines[i].name, ranks);
    }
    /* The pipelines differ: equal sums are not of a model that has not learned. */
    for (int i = 1; i < PIPELINES; i++) assert_string_not_equal(one[i], one[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(same_bytes_of_any_number_of_ranks) };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
