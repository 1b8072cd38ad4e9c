/* Data in the device's memory: the bits of those that are fed, with fewer bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../datasets/synthetic/synthetic.h"
#include "../../../nn/cornu.h"
#include "../../device/pjrt/opened.h"
#include "../../expect.h"

/* The last batch has fewer rows than others. */
enum { ROWS = 100, BATCH = 16, BATCHES = 7, PIXELS = 784, CLASSES = 10, EPOCHS = 2, MOST = 10000 };

static uint8_t images[ROWS * PIXELS], labels[ROWS];

static int draw(void **state)
{
    (void)state;
    cornu_synthetic_digits(1, 0, ROWS, images, labels);
    return 0;
}

static CornuDataset *digits(void)
{
    return cornu_dataset_from_arrays((CornuArray[]){ cornu_array(images, CORNU_U8, ROWS, PIXELS),
                                                     cornu_array(labels, CORNU_U8, ROWS) }, 2);
}

static CornuModel *make_model(CornuDevice *device)
{
    cornu_set_random_seed(5);
    CornuModel *model = cornu_sequential(.input_shape = { PIXELS }, .input_scale = 1.0 / 255.0);
    cornu_model_add(model, cornu_dense(12, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_dropout(0.2));
    cornu_model_add(model, cornu_dense(CLASSES, .activation = CORNU_SOFTMAX));
    expect_ok(cornu_compile(model, .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                            .metrics = { CORNU_ACCURACY }, .device = device));
    return model;
}

typedef struct {
    float   weights[MOST], predictions[ROWS * CLASSES];
    double  results[2];
    int64_t count, bytes;   /* of the infeed of an epoch */
} Trained;

/* What training, evaluation and prediction give. Frees the data set. */
static void train(CornuDevice *device, CornuDataset *data, Trained *trained)
{
    CornuModel *model = make_model(device);
    if (!data) fail_msg("%s", cornu_error_message());
    CornuHistory *history = cornu_fit(model, data, .batch_size = BATCH, .epochs = EPOCHS,
                                      .verbose = CORNU_SILENT);
    if (!history) fail_msg("%s", cornu_error_message());
    trained->bytes = cornu_history_infeed(history, 1).bytes;
    trained->count = 0;
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        CornuWeight *weight = cornu_model_weight(model, i);
        assert_true(trained->count + cornu_type_count(weight->type) <= MOST);
        expect_ok(cornu_weight_read(weight, cornu_array_from(trained->weights + trained->count,
                                                             weight->type)));
        trained->count += cornu_type_count(weight->type);
    }
    expect_ok(cornu_evaluate(model, data, .batch_size = BATCH, .results = trained->results,
                             .verbose = CORNU_SILENT));
    expect_ok(cornu_predict(model, data, .batch_size = BATCH, .verbose = CORNU_SILENT,
                            .to = cornu_array(trained->predictions, CORNU_F32, ROWS, CLASSES)));
    cornu_history_free(history);
    cornu_dataset_free(data);   /* before the model, whose steps outlive it */
    cornu_model_free(model);
}

static void expect_same(const Trained *a, const Trained *b)
{
    assert_int_equal(a->count, b->count);
    assert_memory_equal(a->weights, b->weights, (size_t)a->count * sizeof(float));
    assert_memory_equal(a->results, b->results, sizeof a->results);
    assert_memory_equal(a->predictions, b->predictions, sizeof a->predictions);
}

static void train_both(CornuDevice *device, int shards)
{
    static Trained fed, resident;
    const int64_t  rows = (BATCH + shards - 1) / shards * shards;
    assert_non_null(device);
    train(device, digits(), &fed);
    train(device, cornu_dataset_to_device(digits(), device), &resident);
    expect_same(&fed, &resident);
    assert_int_equal(fed.bytes, BATCHES * rows * (PIXELS + 1));
    assert_int_equal(resident.bytes, BATCHES * rows * (int64_t)sizeof(int64_t));
    cornu_device_close(device);
}

static void bits_are_those_of_data_that_are_fed(void **state)
{
    (void)state;
    train_both(cornu_device_open("cpu"), 1);
    train_both(cornu_device_open("tpu:v3-8", .shards = 8), 8);
}

static void so_they_are_on_pjrt(void **state)
{
    (void)state;
    train_both(pjrt_open(1), 1);
}

static CornuStatus same(void *context, CornuSample sample, const CornuArray *in,
                        const CornuArray *out)
{
    (void)context, (void)sample;
    for (int c = 0; c < 2; c++) memcpy(out[c].data, in[c].data, cornu_type_bytes(in[c].type));
    return CORNU_OK;
}

/* A map computes elements, and another device has none of them: both are fed. */
static void what_is_not_there_is_fed(void **state)
{
    static Trained fed, mapped, elsewhere;
    CornuDevice   *device = cornu_device_open("cpu"), *other = cornu_device_open("cpu");
    (void)state;
    train(device, digits(), &fed);
    train(device, cornu_dataset_map(cornu_dataset_to_device(digits(), device), same, NULL, NULL, 0),
          &mapped);
    train(device, cornu_dataset_to_device(digits(), other), &elsewhere);
    expect_same(&fed, &mapped);
    expect_same(&fed, &elsewhere);
    assert_int_equal(mapped.bytes, fed.bytes);
    assert_int_equal(elsewhere.bytes, fed.bytes);
    cornu_device_close(device);
    cornu_device_close(other);
}

/* Part of a data set, in another order, several times. */
static CornuDataset *arranged(CornuDataset *data)
{
    data = cornu_dataset_shuffle(cornu_dataset_skip(cornu_dataset_take(data, 90), 5), 9);
    return cornu_dataset_prefetch(cornu_dataset_batch(cornu_dataset_repeat(data, 2), 16, true), 2);
}

static void indices_may_be_mapped(void **state)
{
    CornuDevice *device = cornu_device_open("cpu");
    double       results[2][2];
    int64_t      bytes[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        CornuModel   *model = make_model(device);
        CornuDataset *data = arranged(i ? cornu_dataset_to_device(digits(), device) : digits());
        CornuHistory *history = cornu_fit(model, data, .epochs = EPOCHS, .verbose = CORNU_SILENT);
        if (!history) fail_msg("%s", cornu_error_message());
        bytes[i] = cornu_history_infeed(history, 0).bytes;
        expect_ok(cornu_evaluate(model, data, .results = results[i], .verbose = CORNU_SILENT));
        cornu_history_free(history);
        cornu_model_free(model);
        cornu_dataset_free(data);
    }
    assert_memory_equal(results[0], results[1], sizeof results[0]);
    assert_int_equal(bytes[0], 10 * 16 * (PIXELS + 1));
    assert_int_equal(bytes[1], 10 * 16 * 8);
    cornu_device_close(device);
}

static void refusals_name_what_is_wrong(void **state)
{
    float        y[ROWS] = { 0.0f };
    CornuDevice *device = cornu_device_open("cpu");
    CornuDevice *small = cornu_device_open("tpu:v3-8", .shards = 1, .shard_memory = 50000);
    (void)state;
    assert_non_null(small);
    expect_failure(cornu_dataset_to_device(digits(), NULL), CORNU_ERR_ARGUMENT,
                   "to_device: the device");
    expect_failure(cornu_dataset_to_device(NULL, device), CORNU_ERR_ARGUMENT, "to_device");
    expect_failure(cornu_dataset_to_device(cornu_dataset_batch(digits(), 8, false), device),
                   CORNU_ERR_ARGUMENT, "to_device before batch");
    expect_failure(cornu_dataset_to_device(cornu_dataset_repeat(digits(), CORNU_NONE), device),
                   CORNU_ERR_ARGUMENT, "the number of elements is -1");
    expect_failure(cornu_dataset_to_device(digits(), small), CORNU_ERR_MEMORY, "to_device: ");
    y[7] = 1e10f;   /* no class */
    CornuDataset *odd = cornu_dataset_from_arrays((CornuArray[]){
        cornu_array(images, CORNU_U8, ROWS, PIXELS), cornu_array(y, CORNU_F32, ROWS) }, 2);
    CornuModel   *model = make_model(device);
    odd = cornu_dataset_to_device(odd, device);
    assert_null(cornu_fit(model, odd, .verbose = CORNU_SILENT));
    expect_error(cornu_error_take(), CORNU_ERR_VALUE, "label 1e+10 in row 7");
    cornu_model_free(model);
    cornu_dataset_free(odd);
    cornu_device_close(device);
    cornu_device_close(small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(bits_are_those_of_data_that_are_fed, draw),
        cmocka_unit_test_setup(so_they_are_on_pjrt, draw),
        cmocka_unit_test_setup(what_is_not_there_is_fed, draw),
        cmocka_unit_test_setup(indices_may_be_mapped, draw),
        cmocka_unit_test_setup(refusals_name_what_is_wrong, draw),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
