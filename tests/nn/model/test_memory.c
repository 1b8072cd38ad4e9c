/* A model's use of its device's memory, and models that do not fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../../device/device_internal.h"
#include "../../../nn/cornu.h"
#include "../golden.h"

enum { BATCH = 64, FEATURES = 20, HIDDEN = 30, CLASSES = 10 };

static float   x[BATCH * FEATURES];
static int32_t y[BATCH];

static void *made(void *thing)
{
    if (!thing) fail_msg("%s", cornu_error_message());
    return thing;
}

static CornuModel *two_layers(void)
{
    CornuModel *model = made(cornu_sequential(.input_shape = { FEATURES }));
    expect_ok(cornu_model_add(model, cornu_dense(HIDDEN, .activation = CORNU_RELU)));
    expect_ok(cornu_model_add(model, cornu_dense(CLASSES, .activation = CORNU_SOFTMAX)));
    return model;
}

static CornuStatus compile(CornuModel *model, CornuDevice *device)
{
    return cornu_compile(model, .optimizer = cornu_adam(.learning_rate = 1e-3), .device = device,
                         .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                         .metrics = { CORNU_ACCURACY });
}

static CornuStatus train(CornuModel *model, int64_t batch)
{
    return cornu_train_on_batch(model, cornu_array(x, CORNU_F32, batch, FEATURES),
                                cornu_array(y, CORNU_I32, batch), NULL);
}

/* Two kernels and biases, packed at multiples of 16 elements, as many for each shard; Adam's two
 * slots of each, of which a shard holds its slice, its iteration and rate. */
enum {
    PARAMETERS = FEATURES * HIDDEN + HIDDEN + HIDDEN * CLASSES + CLASSES,
    PACKED = FEATURES * HIDDEN + 8 + HIDDEN + 2 + HIDDEN * CLASSES + 4 + CLASSES,
    OTHER = 8 + 2 * (8 + 8)   /* the seed; sum and count of loss and accuracy */
};

static int64_t weights(int64_t shards)
{
    const int64_t multiple = 16 * shards;
    return 4 * ((PACKED + multiple - 1) / multiple * multiple);
}

static int64_t slots(int64_t shards) { return 2 * weights(shards) / shards + 8 + 4; }

/* x, y, the shard's count and position, the batch's count. */
static int64_t infeed(int64_t rows) { return rows * (4 * FEATURES + 4) + 3 * 8; }

static int64_t now(const CornuDevice *device, CornuUse use)
{
    return cornu_device_memory(device).uses[use].now;
}

static void two_layers_by_hand(void **state)
{
    const int    shards = *(const int *)*state;
    CornuDevice *device = made(cornu_device_open(shards == 1 ? "cpu" : "tpu", .threads = 1,
                                                 .shards = shards));
    CornuModel  *model = two_layers();
    assert_int_equal(cornu_device_memory(device).total.peak, 0);
    expect_ok(compile(model, device));
    assert_int_equal(now(device, CORNU_USE_WEIGHTS), weights(shards));
    assert_int_equal(now(device, CORNU_USE_SLOTS), slots(shards));
    assert_int_equal(now(device, CORNU_USE_INFEED), 0);
    assert_int_equal(now(device, CORNU_USE_ACTIVATIONS), 0);

    const int64_t rows = BATCH / shards;
    expect_ok(train(model, BATCH));
    assert_int_equal(now(device, CORNU_USE_INFEED), infeed(rows));
    assert_int_equal(now(device, CORNU_USE_OTHER), OTHER);
    const int64_t planned = cornu_model_statistics(model)->bytes_planned;
    const int64_t activations = now(device, CORNU_USE_ACTIVATIONS);
    /* The hidden layer's output and its gradient's operand, at once, in the policy's dtype. */
    assert_in_range(activations, rows * (HIDDEN + CLASSES) * (shards == 1 ? 4 : 2), planned);
    if (shards == 1) assert_int_equal(activations, planned);
    else assert_int_equal((planned - activations) % (shards - 1), 0);   /* of shards' parts */
    for (int i = 0; i < 3; i++) expect_ok(train(model, BATCH));
    assert_int_equal(now(device, CORNU_USE_ACTIVATIONS), activations);

    expect_ok(train(model, BATCH / 2));   /* another program, with feeds of its own */
    assert_int_equal(now(device, CORNU_USE_INFEED), infeed(rows) + infeed(rows / 2));
    assert_true(now(device, CORNU_USE_ACTIVATIONS) > activations);

    cornu_model_free(model);
    const CornuMemory memory = cornu_device_memory(device);
    assert_int_equal(memory.uses[CORNU_USE_WEIGHTS].now, 0);
    assert_int_equal(memory.uses[CORNU_USE_WEIGHTS].peak, weights(shards));
    assert_int_equal(memory.uses[CORNU_USE_SLOTS].now, 0);
    assert_int_equal(memory.uses[CORNU_USE_INFEED].now, 0);
    assert_int_equal(memory.uses[CORNU_USE_OTHER].now, 0);
    /* The device keeps its executables until their memory is needed. */
    assert_int_equal(memory.total.now, memory.uses[CORNU_USE_ACTIVATIONS].now);
    cornu_device_close(device);
}

static void moving_to_another_device_gives_memory_back(void **state)
{
    (void)state;
    CornuDevice *a = made(cornu_device_open("cpu", .threads = 1));
    CornuDevice *b = made(cornu_device_open("tpu", .threads = 1, .shards = 2));
    CornuModel  *model = two_layers();
    expect_ok(compile(model, a));
    expect_ok(compile(model, b));
    assert_int_equal(now(a, CORNU_USE_WEIGHTS), 0);
    assert_int_equal(now(a, CORNU_USE_SLOTS), 0);
    assert_int_equal(now(b, CORNU_USE_WEIGHTS), weights(2));
    assert_int_equal(now(b, CORNU_USE_SLOTS), slots(2));
    cornu_model_free(model);
    cornu_device_close(a);
    cornu_device_close(b);
}

/* ---- No room ---- */

/* Neither initialized nor allocated on this machine: 10 GB that it may not have. */
static void a_wide_layer_is_refused_at_once(void **state)
{
    (void)state;
    CornuDevice *device = made(cornu_device_open("tpu", .threads = 1));
    CornuModel  *model = made(cornu_sequential(.input_shape = { 50000 }));
    expect_ok(cornu_model_add(model, cornu_dense(50000, .name = "wide")));
    expect_error(compile(model, device), CORNU_ERR_MEMORY,
                 "tpu:v2-8: out of memory: wide/kernel takes 10.00 GB of a shard's 8.00 GB");
    cornu_model_free(model);
    assert_int_equal(cornu_device_memory(device).total.now, 0);

    model = two_layers();   /* the device is as it was */
    expect_ok(compile(model, device));
    expect_ok(train(model, BATCH));
    cornu_model_free(model);
    cornu_device_close(device);
}

static void expect_same_weights(CornuModel *a, CornuModel *b)
{
    static float of_a[PARAMETERS], of_b[PARAMETERS];
    for (int i = 0; i < cornu_model_weight_count(a); i++) {
        CornuWeight *w = cornu_model_weight(a, i), *v = cornu_model_weight(b, i);
        expect_ok(cornu_weight_read(w, cornu_array_from(of_a, w->type)));
        expect_ok(cornu_weight_read(v, cornu_array_from(of_b, v->type)));
        assert_memory_equal(of_a, of_b, cornu_type_bytes(w->type));
    }
}

/* Memory ends among weights, slots, feeds or the step's values: nothing is lost, and with enough
 * memory the model then trains like any other. */
static void nothing_is_lost_for_lack_of_room(void **state)
{
    (void)state;
    const int64_t apart = 4 * PARAMETERS, packed = weights(8);
    const struct { int64_t capacity; const char *text; } caps[] = {   /* 8: the seed */
        { apart - 1, "dense_1/bias" }, { apart + 8 + 11, "adam/learning_rate" },
        { packed + 8 + 12 - 1, "weights takes" }, { packed + 8 + slots(8) - 1, "adam/velocity" },
        { packed + OTHER + slots(8), "input 0" },
        { packed + slots(8) + OTHER + 1200, "a program" },
    };
    cornu_set_random_seed(5);
    CornuDevice *tpu = made(cornu_device_open("tpu", .threads = 2, .shards = 8));
    CornuModel  *other = two_layers();
    expect_ok(compile(other, tpu));
    expect_ok(train(other, BATCH));
    for (size_t i = 0; i < sizeof caps / sizeof *caps; i++) {
        CornuDevice *device = made(cornu_device_open("tpu", .threads = 2, .shards = 8));
        const int64_t capacity = cornu_device_memory(device).capacity;
        CornuModel   *model = two_layers();
        device->memory.capacity = caps[i].capacity;
        CornuStatus status = compile(model, device);
        if (!status) status = train(model, BATCH);
        expect_error(status, CORNU_ERR_MEMORY, caps[i].text);
        expect_error(train(model, BATCH), CORNU_ERR_MEMORY, caps[i].text);   /* as before */
        device->memory.capacity = capacity;
        expect_ok(train(model, BATCH));
        expect_same_weights(model, other);
        cornu_model_free(model);
        cornu_device_close(device);
    }
    cornu_model_free(other);
    cornu_device_close(tpu);
}

/* One model after the other on a device with memory for one at a time. */
static void models_follow_each_other(void **state)
{
    (void)state;
    CornuDevice *device = made(cornu_device_open("tpu", .threads = 2, .shards = 8));
    for (int64_t i = 0; i < 4; i++) {
        CornuModel *model = two_layers();
        expect_ok(compile(model, device));
        expect_ok(train(model, BATCH - 8 * i));
        cornu_model_free(model);
        if (i == 0) device->memory.capacity = cornu_device_memory(device).total.peak + 100;
    }
    cornu_device_close(device);
}

int main(void)
{
    static int one = 1, eight = 8;
    for (int i = 0; i < BATCH * FEATURES; i++) x[i] = (float)(i * 7 % 23) / 23.0f;
    for (int i = 0; i < BATCH; i++) y[i] = i % CLASSES;
    const struct CMUnitTest tests[] = {
        { "two_layers_by_hand (cpu)", two_layers_by_hand, NULL, NULL, &one },
        { "two_layers_by_hand (tpu, 8 shards)", two_layers_by_hand, NULL, NULL, &eight },
        cmocka_unit_test(moving_to_another_device_gives_memory_back),
        cmocka_unit_test(a_wide_layer_is_refused_at_once),
        cmocka_unit_test(nothing_is_lost_for_lack_of_room),
        cmocka_unit_test(models_follow_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
