/* Optimizers compared with real Keras (tests/golden/optimizers), their errors, and saving. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../nn/optimizers/optimizer_internal.h"
#include "../golden.h"

static double number(const json_t *settings, const char *name)
{
    return json_number_value(json_object_get(settings, name));
}

/* None is CORNU_ZERO. */
static double or_none(const json_t *settings, const char *name)
{
    return json_is_null(json_object_get(settings, name)) ? (double)CORNU_ZERO
                                                         : number(settings, name);
}

static int64_t whole(const json_t *settings, const char *name)
{
    return json_integer_value(json_object_get(settings, name));
}

static bool flag(const json_t *settings, const char *name)
{
    return json_is_true(json_object_get(settings, name));
}

/* ---- Optimizers ---- */

/* Settings that are missing are 0, which is the default. */
static CornuOptimizer *optimizer_of(const char *kind, const json_t *given)
{
    const json_t  *rate = json_object_get(given, "learning_rate");
    CornuSchedule *schedule = NULL;
    if (json_is_array(rate))   /* ["ExponentialDecay", rate, steps, decay] */
        schedule = cornu_exponential_decay(json_number_value(json_array_get(rate, 1)),
                                           json_number_value(json_array_get(rate, 2)),
                                           json_number_value(json_array_get(rate, 3)));
#define COMMON                                                                         \
    .learning_rate = schedule ? 0.0 : json_number_value(rate), .schedule = schedule,   \
    .weight_decay = number(given, "weight_decay"), .clipnorm = number(given, "clipnorm"), \
    .clipvalue = number(given, "clipvalue"),                                           \
    .global_clipnorm = number(given, "global_clipnorm"),                               \
    .use_ema = flag(given, "use_ema"), .ema_momentum = number(given, "ema_momentum"),  \
    .ema_overwrite_frequency = whole(given, "ema_overwrite_frequency"),                \
    .loss_scale_factor = number(given, "loss_scale_factor"),                           \
    .gradient_accumulation_steps = whole(given, "gradient_accumulation_steps")
#define MOMENTS                                                                        \
    .beta_1 = number(given, "beta_1"), .beta_2 = number(given, "beta_2"),              \
    .epsilon = number(given, "epsilon")
    if (!strcmp(kind, "SGD"))
        return cornu_sgd_from(&(CornuSgdConfig){
            .momentum = number(given, "momentum"), .nesterov = flag(given, "nesterov"),
            COMMON });
    if (!strcmp(kind, "RMSprop"))
        return cornu_rmsprop_from(&(CornuRmspropConfig){
            .rho = number(given, "rho"), .momentum = number(given, "momentum"),
            .epsilon = number(given, "epsilon"),
            .centered = flag(given, "centered"), COMMON });
    if (!strcmp(kind, "Adam"))
        return cornu_adam_from(&(CornuAdamConfig){
            MOMENTS, .amsgrad = flag(given, "amsgrad"), COMMON });
    if (!strcmp(kind, "AdamW"))
        return cornu_adamw_from(&(CornuAdamwConfig){
            MOMENTS, .amsgrad = flag(given, "amsgrad"), COMMON });
    if (!strcmp(kind, "Adagrad"))
        return cornu_adagrad_from(&(CornuAdagradConfig){ .initial_accumulator_value = number(given,
            "initial_accumulator_value"),
            .epsilon = number(given, "epsilon"), COMMON });
    if (!strcmp(kind, "Adadelta"))
        return cornu_adadelta_from(&(CornuAdadeltaConfig){
            .rho = number(given, "rho"), .epsilon = number(given, "epsilon"),
            COMMON });
    if (!strcmp(kind, "Adamax")) return cornu_adamax_from(&(CornuMomentsConfig){ MOMENTS, COMMON });
    if (!strcmp(kind, "Nadam")) return cornu_nadam_from(&(CornuMomentsConfig){ MOMENTS, COMMON });
    if (!strcmp(kind, "Lion"))
        return cornu_lion_from(&(CornuLionConfig){
            .beta_1 = number(given, "beta_1"), .beta_2 = number(given, "beta_2"),
            COMMON });
    if (!strcmp(kind, "Lamb")) return cornu_lamb_from(&(CornuMomentsConfig){ MOMENTS, COMMON });
    if (!strcmp(kind, "ScheduleFreeAdamW"))
        return cornu_schedule_free_adamw_from(&(CornuScheduleFreeConfig){
            MOMENTS, .warmup_steps = whole(given, "warmup_steps"), COMMON });
    if (!strcmp(kind, "Adafactor"))
        return cornu_adafactor_from(&(CornuAdafactorConfig){
            .beta_2_decay = number(given, "beta_2_decay"), .epsilon_1 = number(given, "epsilon_1"),
            .epsilon_2 = number(given, "epsilon_2"),
            .clip_threshold = number(given, "clip_threshold"),
            .no_relative_step = json_is_false(json_object_get(given, "relative_step")), COMMON });
    if (!strcmp(kind, "Muon")) {
        const json_t *layers = json_object_get(given, "exclude_layers");
        return cornu_muon_from(&(CornuMuonConfig){
            .adam_beta_1 = number(given, "adam_beta_1"),
            .adam_beta_2 = number(given, "adam_beta_2"), .epsilon = number(given, "epsilon"),
            .adam_weight_decay = or_none(given, "adam_weight_decay"),
            .rms_rate = or_none(given, "rms_rate"), .muon_a = number(given, "muon_a"),
            .muon_b = number(given, "muon_b"), .muon_c = number(given, "muon_c"),
            .adam_lr_ratio = number(given, "adam_lr_ratio"),
            .momentum = number(given, "momentum"), .ns_steps = whole(given, "ns_steps"),
            .no_nesterov = json_is_false(json_object_get(given, "nesterov")),
            .exclude_layers = { json_string_value(json_array_get(layers, 0)),
                                json_string_value(json_array_get(layers, 1)) }, COMMON });
    }
    assert_string_equal(kind, "Ftrl");
    return cornu_ftrl_from(&(CornuFtrlConfig){
        .learning_rate_power = number(given, "learning_rate_power"),
            .initial_accumulator_value = number(given, "initial_accumulator_value"),
            .l1_regularization_strength = number(given, "l1_regularization_strength"),
            .l2_regularization_strength = number(given, "l2_regularization_strength"),
            .l2_shrinkage_regularization_strength =
            number(given, "l2_shrinkage_regularization_strength"),
            .beta = number(given, "beta"), COMMON });
#undef COMMON
#undef MOMENTS
}

enum { STEPS = 10, SHARDS = 8, LARGEST = 48 };

static CornuVariable *variable_like(CornuDevice *device, CornuArray start, const char *name)
{
    CornuVariable *variable = cornu_variable_create(device, start.type, name);
    expect_ok(cornu_variable_write(variable, start));
    return variable;
}

static CornuArray row(CornuArray array, int64_t i)
{
    CornuType type = array.type;
    for (int k = 1; k < type.shape.rank; k++) type.shape.extent[k - 1] = type.shape.extent[k];
    type.shape.extent[--type.shape.rank] = 0;
    return cornu_array_from((char *)array.data + (size_t)i * cornu_type_bytes(type), type);
}

static double largest(CornuArray x)
{
    double most = 0.0;
    for (int64_t i = 0; i < cornu_type_count(x.type); i++)
        most = fmax(most, fabs(cornu_array_get(x, i)));
    return most;
}

/* The error in f32 of Ftrl's linear, relative to its largest element. Each update adds w (sqrt(n')
 * - sqrt(n)) / learning_rate; in f32 either root has an error of 2^-24 of itself at most. In f64,
 * ftrl_with_accumulation_all has b_linear[4] = -0.01231966, as the reference has; Keras'
 * -0.01232016 is the f32 result in Keras' order. */
static double linear_rounding(Golden *golden, const char *name, const json_t *given,
                              const char *of, CornuArray linear)
{
    char text[64];
    snprintf(text, sizeof text, "%s0", of);
    double           weights = largest(golden_array(golden, NULL, text));
    const CornuArray after = golden_array(golden, name, of);
    for (int step = 0; step + 1 < STEPS; step++) weights += largest(row(after, step));
    weights /= fmax(1.0, number(given, "gradient_accumulation_steps"));   /* steps that update */
    snprintf(text, sizeof text, "slot_%s_accumulator", of);
    const double root = sqrt(largest(golden_array(golden, name, text)));
    const double rate = number(given, "learning_rate");
    return weights * 2.0 * root * ldexp(1.0, -24) / rate / largest(linear);
}

static void check_slots(Golden *golden, const char *name, const CornuOptimizer *optimizer,
                        const json_t *order, const json_t *given)
{
    const bool rate_known = number(given, "learning_rate") > 0.0;
    assert_int_equal(cornu_optimizer_variable_count(optimizer), json_array_size(order));
    for (int i = 0; i < cornu_optimizer_variable_count(optimizer); i++) {
        const CornuVariable *variable = cornu_optimizer_variable(optimizer, i);
        const char          *plain = strchr(cornu_variable_name(variable), '/') + 1;
        assert_string_equal(plain, json_string_value(json_array_get(order, (size_t)i)));
        char slot[64], what[128];
        snprintf(slot, sizeof slot, "slot_%s", plain);
        CornuArray want = golden_array(golden, name, slot);
        if (!want.data) continue;
        float  got[LARGEST];
        double tolerance = 1e-5;
        if (rate_known && !strcmp(plain, "b_linear"))   /* that of a is large, like its gradients */
            tolerance = fmax(tolerance, linear_rounding(golden, name, given, "b", want));
        snprintf(what, sizeof what, "%s/%s", name, slot);
        expect_ok(cornu_variable_read(variable, cornu_array_from(got, want.type)));
        expect_near(what, got, want, tolerance);
    }
}

/* On several shards each has a part of the gradient; if it is clipped, each has the whole, as parts
 * would be clipped separately. */
static CornuTensor *input_of(CornuGraph *graph, CornuType type, bool parts)
{
    return parts ? cornu_graph_shard_input(graph, type) : cornu_graph_input(graph, type);
}

/* Unequal parts whose sum is exact. */
static void feed(CornuTensor *input, CornuArray whole, bool parts)
{
    static const float part[SHARDS] = { 0.5f, 0, 0.25f, 0.125f, 0, 0.0625f, 0, 0.0625f };
    float         values[SHARDS * LARGEST];
    const int64_t count = cornu_type_count(whole.type);
    CornuType     type = { .dtype = CORNU_F32, .shape = { whole.type.shape.rank + 1, { SHARDS } } };
    for (int i = 0; i < whole.type.shape.rank; i++)
        type.shape.extent[i + 1] = whole.type.shape.extent[i];
    for (int64_t i = 0; i < SHARDS * count; i++)
        values[i] = part[i / count] * ((const float *)whole.data)[i % count];
    expect_ok(cornu_graph_feed(input, parts ? cornu_array_from(values, type) : whole));
}

static void run_optimizer(Golden *golden, const char *name, const json_t *about,
                          CornuDevice *device)
{
    const json_t   *given = json_object_get(about, "given");
    CornuOptimizer *optimizer =
        optimizer_of(json_string_value(json_object_get(about, "optimizer")), given);
    if (!optimizer) fail_msg("%s: %s", name, cornu_error_message());
    const bool clips = number(given, "clipnorm") + number(given, "clipvalue") +
                           number(given, "global_clipnorm") > 0;
    const bool parts = cornu_device_shards(device) == SHARDS &&
                       (!clips || whole(given, "gradient_accumulation_steps") > 0);
    static const char *const names[2] = { "a", "b" };
    CornuVariable *w[2];
    CornuArray     gradients[2], after[2];
    CornuTensor   *g[2];
    CornuGraph    *graph = cornu_graph_create(device);
    for (int i = 0; i < 2; i++) {
        char        text[32];
        const char *weight = i == 0 ? "a" : json_string_value(json_object_get(about, "weight"));
        snprintf(text, sizeof text, "%s0", weight);
        w[i] = variable_like(device, golden_array(golden, NULL, text), names[i]);
        snprintf(text, sizeof text, "gradient_%s", weight);
        gradients[i] = golden_array(golden, NULL, text);
        after[i] = golden_array(golden, name, names[i]);
        g[i] = input_of(graph, cornu_variable_type(w[i]), parts);
    }
    expect_ok(cornu_optimizer_build(optimizer, w, 2));
    expect_ok(cornu_optimizer_apply(optimizer, graph, g));
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < 2; i++) feed(g[i], row(gradients[i], step), parts);
        expect_ok(cornu_run(graph, NULL, 0, NULL));
        for (int i = 0; i < 2; i++) {
            float got[LARGEST];
            char  what[128];
            snprintf(what, sizeof what, "%s %d %s/%s step %d", cornu_device_name(device),
                     cornu_device_shards(device), name, names[i], step);
            expect_ok(cornu_variable_read(w[i], cornu_array_from(got, row(after[i], 0).type)));
            expect_near(what, got, row(after[i], step), 1e-5);
        }
    }
    check_slots(golden, name, optimizer, json_object_get(about, "variables"), given);
    cornu_graph_free(graph);
    for (int i = 0; i < 2; i++) cornu_variable_free(w[i]);
    cornu_optimizer_free(optimizer);
}

static void run_optimizers(const char *device_name, int shards)
{
    Golden       golden = golden_open("tests/golden/optimizers/steps.safetensors");
    CornuDevice *device = cornu_device_open(device_name, .shards = shards);
    const char  *name;
    json_t      *about;
    if (!device) fail_msg("%s: %s", device_name, cornu_error_message());
    assert_int_equal(json_object_size(golden.cases), 197);
    json_object_foreach(golden.cases, name, about) run_optimizer(&golden, name, about, device);
    cornu_device_close(device);
    golden_close(&golden);
}

static void match_keras_on_the_reference(void **state)
{
    (void)state;
    run_optimizers("reference", 1);
}

static void match_keras_on_the_cpu(void **state)
{
    (void)state;
    run_optimizers("cpu", 1);
    run_optimizers("cpu", SHARDS);
}

static void match_keras_on_the_tpu(void **state)
{
    (void)state;
    run_optimizers("tpu", 1);
    run_optimizers("tpu", SHARDS);
}

/* A gradient with an infinite norm must not be clipped to zeros silently: all weights show it, with
 * a global norm also those whose own gradient is finite. */
static void clipping_hides_no_infinity(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        CornuDevice    *device = cornu_device_open("cpu");
        CornuGraph     *graph = cornu_graph_create(device);
        CornuOptimizer *optimizer =
            kind == 2 ? cornu_sgd(.learning_rate = 1, .clipnorm = 2)
                      : cornu_sgd(.learning_rate = 1, .global_clipnorm = 2);
        const float    sources[2] = { kind ? NAN : INFINITY, 1 };
        CornuVariable *w[2];
        CornuTensor   *g[2];
        for (int i = 0; i < 2; i++) {
            w[i] = cornu_variable_create(device, cornu_type(CORNU_F32, 1), "w");
            g[i] = cornu_graph_input(graph, cornu_type(CORNU_F32, 1));
            expect_ok(cornu_graph_feed(g[i], cornu_array((void *)&sources[i], CORNU_F32, 1)));
        }
        expect_ok(cornu_optimizer_build(optimizer, w, 2));
        expect_ok(cornu_optimizer_apply(optimizer, graph, g));
        expect_ok(cornu_run(graph, NULL, 0, NULL));
        for (int i = 0; i < 2; i++) {
            float got;
            expect_ok(cornu_variable_read(w[i], cornu_array(&got, CORNU_F32, 1)));
            if (kind == 2 && i == 1) assert_float_equal(got, -1, 0);
            else assert_true(isnan(got));
            cornu_variable_free(w[i]);
        }
        cornu_graph_free(graph);
        cornu_optimizer_free(optimizer);
        cornu_device_close(device);
    }
}

/* ---- In models ---- */

/* A step with gradients that are not finite changes nothing: no averages, no accumulated gradients,
 * no numbers, and no constraint is applied. */
static void faulty_steps_leave_all_as_it_was(void **state)
{
    (void)state;
    enum { N = 4 };
    CornuDevice    *device = cornu_device_open("cpu");
    CornuVariable  *w = cornu_variable_create(device, cornu_type(CORNU_F32, N), "w");
    CornuOptimizer *optimizer = cornu_loss_scale_optimizer(
        cornu_nadam(.learning_rate = 0.1, .use_ema = true, .ema_overwrite_frequency = 1,
                    .gradient_accumulation_steps = 2, .loss_scale_factor = 7));
    float values[N] = { -1, 2, 3, 4 };
    _Alignas(8) float before[16][N], after[N];   /* of an i64 as well */
    expect_ok(cornu_variable_write(w, cornu_array(values, CORNU_F32, N)));
    expect_ok(cornu_optimizer_build(optimizer, &w, 1));
    cornu_optimizer_constrain(optimizer, 0, cornu_non_neg());
    CornuGraph  *graph = cornu_graph_create(device);
    CornuTensor *g = cornu_graph_input(graph, cornu_type(CORNU_F32, N));
    expect_ok(cornu_optimizer_apply(optimizer, graph, &g));
    const int variables = cornu__optimizer_saved_count(optimizer);
    assert_int_equal(variables, 11);
    assert_int_equal(cornu_optimizer_variable_count(optimizer), 10);   /* without u_product */
    for (int step = 0; step < 4; step++) {
        const bool faulty = step == 0 || step == 3;
        for (int i = 4; i < variables; i++) {   /* after those of the loss scale */
            CornuVariable *v = cornu_optimizer_variable(optimizer, i);
            expect_ok(cornu_variable_read(v, cornu_array_from(before[i], cornu_variable_type(v))));
        }
        expect_ok(cornu_variable_read(w, cornu_array(before[0], CORNU_F32, N)));
        values[1] = faulty ? INFINITY : 32768;
        expect_ok(cornu_graph_feed(g, cornu_array(values, CORNU_F32, N)));
        expect_ok(cornu_run(graph, NULL, 0, NULL));
        for (int i = 4; i < variables; i++) {
            CornuVariable  *v = cornu_optimizer_variable(optimizer, i);
            const CornuType type = cornu_variable_type(v);
            expect_ok(cornu_variable_read(v, cornu_array_from(after, type)));
            if (faulty) assert_memory_equal(after, before[i], cornu_type_bytes(type));
        }
        expect_ok(cornu_variable_read(w, cornu_array(after, CORNU_F32, N)));
        assert_int_equal(memcmp(after, before[0], sizeof after) != 0, step == 1 || step == 2);
        assert_true(step == 0 ? after[0] < 0 : after[0] >= 0);
    }
    cornu_graph_free(graph);
    cornu_optimizer_free(optimizer);
    cornu_variable_free(w);
    cornu_device_close(device);
}

enum { ROWS = 8, IN = 3, OUT = 2 };

static CornuModel *small_model(CornuDevice *device, CornuOptimizer *optimizer)
{
    cornu_set_random_seed(5);
    CornuModel *model = cornu_sequential(.input_shape = { IN });
    cornu_model_add(model, cornu_dense(OUT, .activation = CORNU_TANH));
    expect_ok(cornu_compile(model, .optimizer = optimizer, .loss = CORNU_MEAN_SQUARED_ERROR,
                            .device = device));
    return model;
}

static void train(CornuModel *model, int steps)
{
    float x[ROWS * IN], y[ROWS * OUT];
    for (int step = 0; step < steps; step++) {
        for (int i = 0; i < ROWS * IN; i++) x[i] = sinf(0.7f * (float)i);
        for (int i = 0; i < ROWS * OUT; i++) y[i] = cosf(1.3f * (float)i);
        expect_ok(cornu_train_on_batch(model, cornu_array(x, CORNU_F32, ROWS, IN),
                                       cornu_array(y, CORNU_F32, ROWS, OUT), NULL));
    }
}

static void expect_same_state(const CornuModel *a, const CornuModel *b)
{
    float x[16], y[16];
    const int count = cornu_model_optimizer_variable_count(a);
    assert_int_equal(count, cornu_model_optimizer_variable_count(b));
    for (int i = 0; i < count; i++) {
        const CornuVariable *u = cornu_model_optimizer_variable(a, i);
        const CornuVariable *v = cornu_model_optimizer_variable(b, i);
        const CornuType      type = cornu_variable_type(u);
        expect_ok(cornu_variable_read(u, cornu_array_from(x, type)));
        expect_ok(cornu_variable_read(v, cornu_array_from(y, type)));
        if (memcmp(x, y, cornu_type_bytes(type))) fail_msg("%s differs", cornu_variable_name(u));
    }
    for (int i = 0; i < cornu_model_weight_count(a); i++) {
        const CornuType type = cornu_model_weight(a, i)->type;
        expect_ok(cornu_weight_read(cornu_model_weight(a, i), cornu_array_from(x, type)));
        expect_ok(cornu_weight_read(cornu_model_weight(b, i), cornu_array_from(y, type)));
        assert_memory_equal(x, y, cornu_type_bytes(type));
    }
}

/* Three steps, a file, four steps: also in the middle of accumulation. */
static void states_go_to_files_and_back(void **state)
{
    (void)state;
    static const char *const names[] = { "sgd", "rmsprop", "adam", "adamw", "adagrad", "adadelta",
                                         "adamax", "nadam", "lion", "ftrl", NULL };
    char folder[] = "/tmp/cornu-optimizers-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a.safetensors", folder);
    for (int i = 0; i < 2 * (int)(sizeof names / sizeof *names); i++) {
        const char  *name = names[i / 2];
        CornuDevice *device = cornu_device_open("tpu", .shards = i % 2 ? 8 : 1);
        CornuModel  *models[2];
        for (int k = 0; k < 2; k++)
            models[k] = small_model(device, name ? cornu_optimizer(name)
                                                 : cornu_nadam(.use_ema = true,
                                                               .gradient_accumulation_steps = 2));
        train(models[0], 3);
        expect_ok(cornu_model_save_weights(models[0], path));
        expect_ok(cornu_model_load_weights(models[1], path));
        expect_same_state(models[0], models[1]);
        for (int k = 0; k < 2; k++) train(models[k], 4);
        expect_same_state(models[0], models[1]);
        expect_ok(cornu_model_move(models[0], NULL));   /* to another device */
        train(models[0], 1);
        for (int k = 0; k < 2; k++) cornu_model_free(models[k]);
        cornu_device_close(device);
    }
    unlink(path);
    rmdir(folder);
}

static void refuses(CornuOptimizer *optimizer, CornuStatus status, const char *part)
{
    assert_null(optimizer);
    expect_error(cornu_error_take(), status, part);
}

static void constructors_refuse(void **state)
{
    (void)state;
    refuses(cornu_adam(.beta_1 = 2.0), CORNU_ERR_ARGUMENT, "adam: .beta_1 is 2, expected 0 to");
    refuses(cornu_adam(.learning_rate = -1), CORNU_ERR_ARGUMENT, "adam: .learning_rate is -1");
    refuses(cornu_sgd(.clipnorm = 1, .clipvalue = 1), CORNU_ERR_ARGUMENT, "at most one of them");
    refuses(cornu_sgd(.momentum = 1.5), CORNU_ERR_ARGUMENT, "sgd: .momentum is 1.5");
    refuses(cornu_rmsprop(.use_ema = true, .ema_momentum = 1.5), CORNU_ERR_ARGUMENT,
            "rm_sprop: .ema_momentum is 1.5, expected 0 to 1");
    refuses(cornu_rmsprop(.ema_overwrite_frequency = -3), CORNU_ERR_ARGUMENT,
            ".ema_overwrite_frequency is -3, expected 1 or more");
    refuses(cornu_sgd(.gradient_accumulation_steps = 1), CORNU_ERR_ARGUMENT,
            ".gradient_accumulation_steps is 1, expected 2 or more");
    refuses(cornu_sgd(.loss_scale_factor = -1), CORNU_ERR_ARGUMENT, ".loss_scale_factor is -1");
    refuses(cornu_adamw(.weight_decay = -1), CORNU_ERR_ARGUMENT, "adam_w: .weight_decay is -1");
    refuses(cornu_adamw(.beta_2 = 1), CORNU_ERR_ARGUMENT, "adam_w: .beta_2 is 1");
    refuses(cornu_adagrad(.initial_accumulator_value = -1), CORNU_ERR_ARGUMENT,
            "adagrad: .initial_accumulator_value is -1");
    refuses(cornu_adadelta(.rho = 2), CORNU_ERR_ARGUMENT, "adadelta: .rho is 2");
    refuses(cornu_adamax(.epsilon = -1), CORNU_ERR_ARGUMENT, "adamax: .epsilon is -1");
    refuses(cornu_nadam(.beta_1 = 1), CORNU_ERR_ARGUMENT, "nadam: .beta_1 is 1");
    refuses(cornu_lion(.beta_1 = CORNU_ZERO), CORNU_ERR_ARGUMENT, "lion: .beta_1 is 0");
    refuses(cornu_ftrl(.learning_rate_power = 1), CORNU_ERR_ARGUMENT,
            "ftrl: .learning_rate_power is 1");
    refuses(cornu_ftrl(.l1_regularization_strength = -1), CORNU_ERR_ARGUMENT,
            "ftrl: .l1_regularization_strength is -1");
    refuses(cornu_lion(.learning_rate = 1, .schedule = cornu_exponential_decay(1, 1, 1)),
            CORNU_ERR_ARGUMENT, "lion: both .learning_rate and .schedule");
    refuses(cornu_sgd(.learning_rate = 1, .schedule = cornu_exponential_decay(1, 1, 1)),
            CORNU_ERR_ARGUMENT, "both .learning_rate and .schedule");
    refuses(cornu_adam(.schedule = cornu_exponential_decay(1, -1, 1)), CORNU_ERR_ARGUMENT,
            "exponential_decay: the decay steps are -1");
    refuses(cornu_optimizer("adm"), CORNU_ERR_ARGUMENT, "is \"adam\" meant?");
    refuses(cornu_optimizer("sofia"), CORNU_ERR_ARGUMENT,
            "known are sgd rmsprop adam adamw adagrad adadelta adamax nadam lion ftrl lamb "
            "adafactor muon schedule_free_adamw");
    refuses(cornu_muon(.exclude_layers = { "a", "(" }), CORNU_ERR_ARGUMENT,
            "muon: .exclude_layers[1] is \"(\", expected a POSIX extended regular expression");
}

/* tests/nn/saving/test_compiled.c compares a training with Keras. */
static void several_optimizers_refuse(void **state)
{
    (void)state;
    refuses(cornu_multi_optimizer(.optimizer_map = { { "a", cornu_sgd() } }), CORNU_ERR_ARGUMENT,
            "multi_optimizer: .default_optimizer is required");
    refuses(cornu_multi_optimizer(cornu_adam(), { { .path = "a" } }), CORNU_ERR_ARGUMENT,
            "multi_optimizer: \"a\" has no optimizer");
    refuses(cornu_multi_optimizer(cornu_adam(), { { "(", cornu_sgd() } }), CORNU_ERR_ARGUMENT,
            "the path \"(\" is not a POSIX extended regular expression");
    refuses(cornu_multi_optimizer(cornu_loss_scale_optimizer(cornu_adam())), CORNU_ERR_ARGUMENT,
            "adam is made of another, expected an optimizer that is new and plain");
    refuses(cornu_loss_scale_optimizer(cornu_multi_optimizer(cornu_adam())), CORNU_ERR_UNSUPPORTED,
            "multi_optimizer: made of several optimizers, it cannot scale the loss");
    CornuModel *model = cornu_sequential(.input_shape = { 3 });
    cornu_model_add(model, cornu_dense(2, .name = "dense"));
    CornuOptimizer *optimizer = cornu_multi_optimizer(
        cornu_adam(), { { "dense/.*", cornu_sgd() }, { ".*kernel", cornu_sgd() } });
    expect_error(cornu_compile(model, .optimizer = optimizer, .loss = CORNU_MEAN_SQUARED_ERROR),
                 CORNU_ERR_ARGUMENT,
                 "multi_optimizer: 2 paths of .optimizer_map match dense/kernel, expected one");
    optimizer = cornu_multi_optimizer(cornu_adam(), { { "dense/kernel", cornu_sgd() } });
    expect_ok(cornu_compile(model, .optimizer = optimizer, .loss = CORNU_MEAN_SQUARED_ERROR,
                            .gradient_norm = true));
    /* iteration and rate, those of sgd, those of adam with momentum and velocity of the bias */
    assert_int_equal(cornu_model_optimizer_variable_count(model), 2 + 2 + 4);
    float            x[6] = { 1, 2, 3, 4, 5, 6 }, y[4] = { 0 };
    const CornuArray xs = cornu_array(x, CORNU_F32, 2, 3), ys = cornu_array(y, CORNU_F32, 2, 2);
    double           values[2], steps;
    expect_ok(cornu_train_on_batch(model, xs, ys, values));
    assert_true(values[1] > 0.0);
    expect_ok(cornu_variable_get(cornu_optimizer_iteration(optimizer), &steps));
    assert_true(steps == 1.0);
    CornuDevice *other = cornu_device_open("reference");
    expect_error(cornu_model_move(model, other), CORNU_ERR_UNSUPPORTED, "cannot move to another");
    expect_error(cornu_optimizer_set_learning_rate(optimizer, 1), CORNU_ERR_UNSUPPORTED,
                 "multi_optimizer: has no learning rate of its own");
    cornu_model_free(model);
    cornu_device_close(other);
}

static void the_rate_is_a_variable(void **state)
{
    (void)state;
    CornuDevice    *device = cornu_device_open("reference");
    CornuVariable  *w = cornu_variable_create(device, cornu_scalar(CORNU_F32), "w");
    CornuOptimizer *optimizer = cornu_sgd(.learning_rate = CORNU_ZERO);
    double          value;
    expect_ok(cornu_optimizer_learning_rate(optimizer, &value));
    assert_float_equal(value, 0.0, 0.0);
    expect_ok(cornu_optimizer_build(optimizer, &w, 1));
    expect_ok(cornu_optimizer_set_learning_rate(optimizer, 0.5));
    CornuGraph  *graph = cornu_graph_create(device);
    CornuTensor *g = cornu_op_constant(graph, cornu_scalar(CORNU_F32), 1.0);
    expect_ok(cornu_optimizer_apply(optimizer, graph, &g));
    expect_ok(cornu_run(graph, NULL, 0, NULL));
    expect_ok(cornu_optimizer_set_learning_rate(optimizer, 0.25));
    expect_ok(cornu_run(graph, NULL, 0, NULL));
    expect_ok(cornu_variable_get(w, &value));
    assert_float_equal(value, -0.75, 0.0);
    cornu_graph_free(graph);
    cornu_optimizer_free(optimizer);

    optimizer = cornu_sgd(.schedule = cornu_exponential_decay(8, 1, 0.5));
    expect_ok(cornu_optimizer_build(optimizer, &w, 1));
    expect_ok(cornu_variable_set(cornu_optimizer_variable(optimizer, 0), 2));
    expect_ok(cornu_optimizer_learning_rate(optimizer, &value));
    assert_float_equal(value, 2.0, 1e-6);
    expect_error(cornu_optimizer_set_learning_rate(optimizer, 1), CORNU_ERR_UNSUPPORTED,
                 "follows exponential_decay");
    cornu_optimizer_free(optimizer);
    cornu_variable_free(w);
    cornu_device_close(device);
}

/* TensorFlow 1's RMSProp by hand: v = 0.9 v + 0.1 g^2 from v = 1, w -= 0.01 g / sqrt(v + 1e-10).
 * g = 3: v = 0.9 + 0.9 = 1.8; g = -1: v = 1.62 + 0.1 = 1.72. */
static void rmsprop_of_tensorflow_1(void **state)
{
    (void)state;
    static const float gradients[] = { 3.0f, -1.0f };
    const double       by_hand[] = { 2.0 - 0.03 / sqrt(1.8), 2.0 - 0.03 / sqrt(1.8) +
                                                                0.01 / sqrt(1.72) };
    CornuDevice    *device = cornu_device_open("cpu");
    CornuVariable  *w = cornu_variable_create(device, cornu_type(CORNU_F32, 3), "w");
    CornuOptimizer *optimizer = cornu_rmsprop(.learning_rate = 0.01, .epsilon = 1e-10,
                                              .momentum = 1e-30, .initial_velocity = 1.0);
    const CornuType three = cornu_variable_type(w);
    float           values[] = { 2.0f, 2.0f, 2.0f };
    expect_ok(cornu_variable_write(w, cornu_array_from(values, three)));
    expect_ok(cornu_optimizer_build(optimizer, &w, 1));
    expect_ok(cornu_variable_read(cornu_optimizer_variable(optimizer, 2),
                                  cornu_array_from(values, three)));
    for (int i = 0; i < 3; i++) assert_float_equal(values[i], 1.0, 0.0);
    expect_ok(cornu_variable_read(cornu_optimizer_variable(optimizer, 3),
                                  cornu_array_from(values, three)));
    for (int i = 0; i < 3; i++) assert_float_equal(values[i], 0.0, 0.0);

    CornuGraph  *graph = cornu_graph_create(device);
    CornuTensor *g = cornu_graph_input(graph, three);
    expect_ok(cornu_optimizer_apply(optimizer, graph, &g));
    for (int step = 0; step < 2; step++) {
        for (int i = 0; i < 3; i++) values[i] = gradients[step];
        expect_ok(cornu_graph_feed(g, cornu_array_from(values, three)));
        expect_ok(cornu_run(graph, NULL, 0, NULL));
        expect_ok(cornu_variable_read(w, cornu_array_from(values, three)));
        for (int i = 0; i < 3; i++) assert_float_equal(values[i], by_hand[step], 1e-6);
    }
    cornu_graph_free(graph);
    cornu_optimizer_free(optimizer);
    cornu_variable_free(w);
    cornu_device_close(device);
    refuses(cornu_rmsprop(.initial_velocity = -1.0), CORNU_ERR_ARGUMENT,
            "rm_sprop: .initial_velocity is -1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(match_keras_on_the_reference),
        cmocka_unit_test(match_keras_on_the_cpu),
        cmocka_unit_test(match_keras_on_the_tpu),
        cmocka_unit_test(clipping_hides_no_infinity),
        cmocka_unit_test(faulty_steps_leave_all_as_it_was),
        cmocka_unit_test(states_go_to_files_and_back),
        cmocka_unit_test(constructors_refuse),
        cmocka_unit_test(several_optimizers_refuse),
        cmocka_unit_test(the_rate_is_a_variable),
        cmocka_unit_test(rmsprop_of_tensorflow_1),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
