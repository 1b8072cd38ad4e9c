/* Buckets: how weights are divided, and that updates by bucket equal those of all weights as
 * one. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../nn/cornu.h"
#include "../../../nn/optimizers/optimizer_internal.h"
#include "../../datasets/files.h"
#include "../callbacks/stopper.h"
#include "../golden.h"
#include "../training/trainings.h"

static void *made(void *thing)
{
    if (!thing) fail_msg("%s", cornu_error_message());
    return thing;
}

/* ---- The division ---- */

enum { KIB = 256, MIB = 1 << 18 };   /* in f32 */

typedef struct {
    const char *names[8];
    int64_t     elements[8];
    int         first[8], count;      /* expected of each bucket, the last weights' first */
} Division;

/* A bucket is full at 1 MiB, ends where a layer begins, and only the last one may be smaller. */
static const Division divisions[] = {
    { { "dense/kernel" }, { 1 }, { 0 }, 1 },
    { { "dense/kernel" }, { 8 * MIB }, { 0 }, 1 },
    { { "a/kernel", "a/bias", "b/kernel", "b/bias" }, { MIB - 4, 1, 1, 1 }, { 0 }, 1 },
    { { "a/kernel", "a/bias", "b/kernel", "b/bias" }, { 1, 1, MIB - 1, 1 }, { 2, 0 }, 2 },
    { { "a/kernel", "a/bias", "b/kernel", "b/bias" }, { 1, 1, 1, MIB }, { 2, 0 }, 2 },
    { { "a/kernel", "a/bias", "b/kernel", "b/bias" }, { 1, 1, MIB - 2, 1 }, { 0 }, 1 },
    { { "a/kernel", "a/bias", "b/kernel", "c/kernel", "d/kernel", "d/bias" },
      { 600 * KIB, 8, 600 * KIB, 600 * KIB, 100 * KIB, 8 }, { 2, 0 }, 2 },
    { { "a/kernel", "b/kernel", "c/kernel" }, { MIB, MIB, MIB }, { 2, 1, 0 }, 3 },
    { { "net/a/kernel", "net/b/kernel", "net/b/bias" }, { MIB, 1, MIB }, { 1, 0 }, 2 },
    { { "a/kernel", "ab/kernel", "ab/bias" }, { 1, 1, MIB }, { 1, 0 }, 2 },
    { { "a", "b", "b/kernel" }, { MIB, MIB, MIB }, { 2, 1, 0 }, 3 },
    { { "", "", "" }, { MIB, MIB, 1 }, { 1, 0 }, 2 },
};

static void expect_division(const Division *d, CornuDevice *device, int group_size)
{
    CornuVariable *w[8];
    int            count = 0;
    for (; count < 8 && d->names[count]; count++)
        w[count] = made(cornu_variable_create(
            device, cornu_type(CORNU_F32, d->elements[count]), d->names[count],
            .for_packing = true));
    CornuOptimizer *optimizer = cornu_cross_shard_optimizer(cornu_sgd(),
                                                            .group_size = group_size);
    expect_ok(cornu_optimizer_build(made(optimizer), w, count));
    assert_int_equal(optimizer->bucket_count, d->count);
    for (int b = 0, end = count; b < d->count; end = d->first[b++]) {
        const CornuBucket *bucket = &optimizer->buckets[b];
        assert_int_equal(bucket->first, d->first[b]);
        assert_int_equal(bucket->count, end - d->first[b]);
        char name[40] = "weights";
        if (d->count > 1)
            snprintf(name, sizeof name, "weights (%d of %d)", d->count - b, d->count);
        assert_string_equal(cornu_variable_name(bucket->weights), name);
    }
    for (int i = 0; i < count; i++) cornu_variable_free(w[i]);
    cornu_optimizer_free(optimizer);
}

/* Of weights that another one was built for since nothing is updated. */
static void a_weight_has_one_optimizer(void **state)
{
    (void)state;
    CornuDevice    *device = made(cornu_device_open("cpu"));
    CornuVariable  *w[2];
    CornuOptimizer *first = made(cornu_sgd()), *second = made(cornu_sgd());
    for (int i = 0; i < 2; i++)
        w[i] = made(cornu_variable_create(device, cornu_type(CORNU_F32, 4), i ? "b" : "a"));
    expect_ok(cornu_optimizer_build(first, w, 2));
    expect_ok(cornu_optimizer_build(second, w, 1));
    CornuGraph  *graph = made(cornu_graph_create(device));
    CornuTensor *g[] = { cornu_read(graph, w[0]), cornu_read(graph, w[1]) };
    expect_ok(cornu_optimizer_apply(second, graph, g));
    assert_int_equal(cornu_optimizer_apply(first, graph, g), CORNU_ERR_ARGUMENT);
    assert_string_equal(cornu_error_message(), "sgd: apply: another optimizer was built for a "
                        "since; expected one optimizer for each weight");
    cornu_graph_free(graph);
    cornu_optimizer_free(first);
    cornu_optimizer_free(second);
    for (int i = 0; i < 2; i++) cornu_variable_free(w[i]);
    cornu_device_close(device);
}

static void whole_layers_fill_buckets_from_the_end(void **state)
{
    (void)state;
    static const int shards[] = { 1, 3, 8, 8 }, groups[] = { 0, 0, 0, 2 };
    for (int s = 0; s < 4; s++) {
        CornuDevice *device = made(cornu_device_open("cpu", .shards = shards[s], .threads = 1));
        for (size_t i = 0; i < sizeof divisions / sizeof *divisions; i++)
            expect_division(&divisions[i], device, groups[s]);
        cornu_device_close(device);
    }
}

/* ---- Updates ---- */

enum { WEIGHTS = 5, MOST = 45, STEPS = 5, MOST_SHARDS = 8, MOST_VALUES = 2000, BUCKETS = 3 };

static const char *const names[WEIGHTS] = { "a/kernel", "a/bias", "b/kernel", "c/kernel",
                                            "c/bias" };
static const CornuShape  shapes[WEIGHTS] = { { 2, { 5, 3 } }, { 1, { 3 } }, { 2, { 9, 5 } },
                                             { 2, { 3, 7 } }, { 1, { 7 } } };

/* What is set on each optimizer. */
typedef struct {
    const char *name;
    double      weight_decay, clipnorm, clipvalue, global_clipnorm, loss_scale_factor;
    bool        use_ema, scales_loss, constrained, rounds;   /* rounds: not the same bits */
    int64_t     ema_overwrite_frequency, accumulation_steps;
    int         group_size;
} Setting;

static const Setting settings[] = {
    { "plain", .weight_decay = 0 },
    { "weight_decay", .weight_decay = 0.1 },
    { "clipvalue", .clipvalue = 0.25, .loss_scale_factor = 4 },
    { "clipnorm", .clipnorm = 0.5 },
    { "global_clipnorm", .global_clipnorm = 0.5, .rounds = true },
    { "use_ema", .use_ema = true, .ema_overwrite_frequency = 2 },
    { "accumulation", .accumulation_steps = 2, .weight_decay = 0.1 },
    { "accumulation with use_ema and clipnorm", .accumulation_steps = 2, .use_ema = true,
      .clipnorm = 0.5 },
    { "accumulation with global_clipnorm", .accumulation_steps = 2, .global_clipnorm = 0.5,
      .rounds = true },
    { "loss scale", .scales_loss = true },
    { "loss scale with accumulation, use_ema and constraints", .scales_loss = true,
      .accumulation_steps = 2, .use_ema = true, .constrained = true },
    { "constraints", .constrained = true },
    { "groups", .group_size = 2, .weight_decay = 0.1 },
};

/* Weights and the optimizer's variables after the steps, and each step's norm. */
typedef struct {
    float  values[MOST_VALUES];
    int    count;
    float  norms[STEPS];
} After;

static CornuOptimizer *optimizer_with(const char *name, const Setting *setting, bool by_bucket)
{
    CornuOptimizer *optimizer = made(cornu_optimizer(name));
    optimizer->weight_decay = setting->weight_decay;
    optimizer->clipnorm = setting->clipnorm;
    optimizer->clipvalue = setting->clipvalue;
    optimizer->global_clipnorm = setting->global_clipnorm;
    optimizer->loss_scale_factor = setting->loss_scale_factor;
    optimizer->use_ema = setting->use_ema;
    optimizer->ema_overwrite_frequency = setting->ema_overwrite_frequency;
    optimizer->accumulation_steps = setting->accumulation_steps;
    optimizer->bucket_bytes = by_bucket ? 1 : SIZE_MAX;
    if (setting->scales_loss) cornu_loss_scale_optimizer(optimizer);
    return cornu_cross_shard_optimizer(optimizer, .group_size = setting->group_size);
}

/* In the second step, with a scale that adapts, the first weight's gradient is infinite on the last
 * shard: no bucket may be updated. */
static void feed(CornuTensor *input, int i, int step, int shards, bool faulty)
{
    float         values[MOST_SHARDS * MOST];
    const int64_t count = cornu_shape_count(shapes[i]);
    CornuType     type = { .dtype = CORNU_F32, .shape = { shapes[i].rank + 1, { shards } } };
    for (int k = 0; k < shapes[i].rank; k++) type.shape.extent[k + 1] = shapes[i].extent[k];
    for (int64_t k = 0; k < shards * count; k++)
        values[k] = (float)sin(0.7 * (double)(k + 1) * (i + 2) + step);
    if (faulty && step == 1 && i == 0) values[shards * count - 1] = INFINITY;
    expect_ok(cornu_graph_feed(input, cornu_array_from(values, type)));
}

static void append(After *after, const CornuVariable *variable)
{
    const CornuType type = cornu_variable_type(variable);
    const int64_t   count = cornu_type_count(type);
    double          space[MOST];
    CornuArray      to = cornu_array_from(space, type);
    assert_true(after->count + count <= MOST_VALUES);
    expect_ok(cornu_variable_read(variable, to));
    for (int64_t k = 0; k < count; k++)
        after->values[after->count++] = (float)cornu_array_get(to, k);
}

static void take_steps(CornuDevice *device, const char *name, const Setting *setting,
                       bool by_bucket, After *after)
{
    const int       shards = cornu_device_shards(device);
    CornuGraph     *graph = made(cornu_graph_create(device));
    CornuOptimizer *optimizer = made(optimizer_with(name, setting, by_bucket));
    CornuVariable  *w[WEIGHTS];
    CornuTensor    *g[WEIGHTS];
    for (int i = 0; i < WEIGHTS; i++) {
        float           start[MOST];
        const CornuType type = { CORNU_F32, shapes[i] };
        for (int k = 0; k < MOST; k++) start[k] = (float)cos(1.3 * k + i);
        w[i] = made(cornu_variable_create(device, type, names[i]));
        expect_ok(cornu_variable_write(w[i], cornu_array_from(start, type)));
        g[i] = cornu_graph_shard_input(graph, type);
    }
    expect_ok(cornu_optimizer_build(optimizer, w, WEIGHTS));
    assert_int_equal(optimizer->bucket_count, by_bucket ? BUCKETS : 1);
    if (setting->constrained) {
        cornu_optimizer_constrain(optimizer, 2, cornu_max_norm(0.5));
        cornu_optimizer_constrain(optimizer, 4, cornu_unit_norm());
    }
    CornuTensor *norm = made(cornu_optimizer_gradient_norm(optimizer, graph, g));
    expect_ok(cornu_optimizer_apply(optimizer, graph, g));
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < WEIGHTS; i++) feed(g[i], i, step, shards, setting->scales_loss);
        CornuArray to = cornu_array_from(&after->norms[step], cornu_scalar(CORNU_F32));
        expect_ok(cornu_run(graph, &norm, 1, &to));
    }
    after->count = 0;
    for (int i = 0; i < WEIGHTS; i++) append(after, w[i]);
    for (int i = 0; i < cornu_optimizer_variable_count(optimizer); i++)
        append(after, cornu_optimizer_variable(optimizer, i));
    cornu_graph_free(graph);
    for (int i = 0; i < WEIGHTS; i++) cornu_variable_free(w[i]);
    cornu_optimizer_free(optimizer);
}

static bool is_near(float got, float want, double tolerance)
{
    return (isnan(got) && isnan(want)) || got == want ||
           fabs(got - want) <= tolerance * fmax(1, fabs(want));
}

static void expect_equal(const After *got, const After *want, double tolerance, const char *what)
{
    assert_int_equal(got->count, want->count);
    for (int i = 0; i < got->count; i++)
        if (!is_near(got->values[i], want->values[i], tolerance))
            fail_msg("%s: value %d is %.9g, expected %.9g", what, i, got->values[i],
                     want->values[i]);
    for (int i = 0; i < STEPS; i++)   /* a sum in another order */
        if (!is_near(got->norms[i], want->norms[i], 1e-6))
            fail_msg("%s: norm %d is %.9g, expected %.9g", what, i, got->norms[i], want->norms[i]);
}

/* Ftrl divides a difference of roots by the learning rate. */
static double rounding(const char *name) { return strcmp(name, "ftrl") ? 1e-5 : 1e-3; }

static void compare_on(const char *device_name, int shards)
{
    CornuDevice *device = made(cornu_device_open(device_name, .shards = shards, .threads = 2));
    for (const CornuOptimizerRow *row = cornu__optimizers; row->name; row++)
        for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
            const Setting *setting = &settings[i];
            static After   one, several;
            char           what[200];
            if (setting->group_size > 0 && shards % setting->group_size) continue;
            if (setting->group_size > 0 && row->kind->update_weight) continue;   /* refused */
            snprintf(what, sizeof what, "%s with %d shards, %s, %s", device_name, shards, row->name,
                     setting->name);
            take_steps(device, row->name, setting, false, &one);
            take_steps(device, row->name, setting, true, &several);
            expect_equal(&several, &one, setting->rounds ? rounding(row->name) : 0, what);
        }
    cornu_device_close(device);
}

static void they_are_updated_as_one(void **state)
{
    (void)state;
    compare_on("cpu", 1);
    compare_on("cpu", 3);
    compare_on("cpu", 8);
    compare_on("tpu", 8);
}

/* ---- Models ---- */

enum { MAX_FILE = 1 << 16 };

typedef struct {
    unsigned char bytes[MAX_FILE];
    size_t        size;
} File;

/* Moved, as that divides the weights of a model that is built already. */
static CornuModel *model_with(Training training, CornuDevice *from, CornuDevice *to,
                              size_t bucket_bytes)
{
    CornuModel *model = made(training_model(training, from));
    cornu_model_optimizer(model)->bucket_bytes = bucket_bytes;
    expect_ok(cornu_model_move(model, to));
    return model;
}

/* Trains to the end, or is killed after some steps; true if it ended, with the model's file. */
static bool train(Training training, int shards, size_t bucket_bytes, int64_t steps, File *file)
{
    Stopper        stopper = stop_after(steps, NULL);
    CornuDevice   *from = made(cornu_device_open("cpu", .shards = shards, .threads = 1));
    CornuDevice   *to = made(cornu_device_open("cpu", .shards = shards, .threads = 2));
    CornuModel    *model = model_with(training, from, to, bucket_bytes);
    CornuCallback *backup = cornu_backup_and_restore(files_path(folder, "backup"), 2);
    CornuHistory  *history = training_fit(training, model, backup, &stopper.base);
    const bool     ended = history != NULL;
    if (!ended && cornu_error_take() != CORNU_ERR_INTERRUPTED)
        fail_msg("%s", cornu_error_message());
    assert_int_equal(cornu_model_optimizer(model)->bucket_count > 1, bucket_bytes == 1);
    if (ended) {
        const char *path = files_path(folder, "model.safetensors");
        expect_ok(cornu_model_save(model, path));
        file->size = files_read(path, file->bytes, MAX_FILE);
    }
    cornu_history_free(history);
    cornu_model_free(model);
    cornu_device_close(to);
    cornu_device_close(from);
    return ended;
}

static void expect_same(const File *got, const File *want, Training training, int shards,
                        const char *how)
{
    if (got->size != want->size || memcmp(got->bytes, want->bytes, want->size))
        fail_msg("%s with %d shards, %s: the model is another", training_name(training), shards,
                 how);
}

/* Nor does a backup depend on the division: a training continues with another one. */
static void models_do_not_depend_on_the_division(void **state)
{
    (void)state;
    static const struct { Training training; int shards; } cases[] = {
        { TRAINING_SHUFFLED, 1 }, { TRAINING_SHUFFLED, 3 }, { TRAINING_SHUFFLED, 8 },
        { TRAINING_STATEFUL, 1 }, { TRAINING_AUGMENTED, 8 }, { TRAINING_GROUPS, 4 },
    };
    enum { WHOLE = -1, KILLED_AFTER = 7 };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const Training training = cases[i].training;
        const int      shards = cases[i].shards;
        static File    one, several, resumed;
        assert_true(train(training, shards, 0, WHOLE, &one));
        assert_true(train(training, shards, 1, WHOLE, &several));
        expect_same(&several, &one, training, shards, "several buckets");
        for (int first = 0; first < 2; first++) {
            assert_false(train(training, shards, (size_t)first, KILLED_AFTER, &resumed));
            assert_true(train(training, shards, (size_t)!first, WHOLE, &resumed));
            expect_same(&resumed, &one, training, shards,
                        first ? "then one bucket" : "then several buckets");
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_weight_has_one_optimizer),
        cmocka_unit_test(whole_layers_fill_buckets_from_the_end),
        cmocka_unit_test(they_are_updated_as_one),
        cmocka_unit_test_setup_teardown(models_do_not_depend_on_the_division, files_begin,
                                        files_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
