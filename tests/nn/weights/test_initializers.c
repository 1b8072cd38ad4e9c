/* Initializers: their JSON and their distributions against real Keras
 * (tests/golden/initializers), their use in layers, files, refusals. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../nn/saving/architecture/architecture_internal.h"
#include "../golden.h"

static const CornuField fields[] = { { "it", CORNU_FIELD_INITIALIZER, 0 }, { 0 } };

static json_t *cases;

static int open_cases(void **state)
{
    (void)state;
    cases = json_load_file("tests/golden/initializers/initializers.json", 0, NULL);
    return cases ? 0 : -1;
}

static int close_cases(void **state)
{
    (void)state;
    json_decref(cases);
    return 0;
}

static CornuInitializer read_initializer(const json_t *value)
{
    CornuInitializer initializer;
    memset(&initializer, 0, sizeof initializer);
    expect_ok(cornu__read_field(NULL, fields, value, &initializer));
    return initializer;
}

static CornuShape shape_of(const json_t *about)
{
    const json_t *extents = json_object_get(about, "shape");
    CornuShape    shape = { .rank = (int)json_array_size(extents) };
    for (int i = 0; i < shape.rank; i++)
        shape.extent[i] = json_integer_value(json_array_get(extents, (size_t)i));
    return shape;
}

static float *draw(CornuInitializer initializer, CornuShape shape, uint64_t seed)
{
    float *values = malloc((size_t)cornu_shape_count(shape) * sizeof *values);
    expect_ok(cornu_initialize(initializer, shape, seed, 3, values));
    return values;
}

/* ---- Against Keras ---- */

static void expect_says(const char *name, CornuInitializer initializer)
{
    const json_t *want = json_object_get(json_object_get(cases, name), "initializer");
    json_t       *got = cornu__fields_to_json(NULL, fields, &initializer, json_object());
    char         *text = json_dumps(got, 0);
    if (!want || !json_equal(json_object_get(got, "it"), want)) fail_msg("%s: %s", name, text);
    free(text);
    json_decref(got);
}

static void keras_json_is_read_and_written(void **state)
{
    (void)state;
    const char *name;
    json_t     *about;
    assert_true(json_object_size(cases) > 30);
    json_object_foreach(cases, name, about)
        expect_says(name, read_initializer(json_object_get(about, "initializer")));
}

static void constructors_say_what_keras_says(void **state)
{
    (void)state;
    expect_says("zeros", cornu_zeros());
    expect_says("zeros", CORNU_ZEROS);
    expect_says("ones", cornu_ones());
    expect_says("ones", CORNU_ONES);
    expect_says("constant", cornu_constant(-2.5));
    expect_says("constant_default", cornu_constant());
    expect_says("identity", cornu_identity());
    expect_says("identity_wide", cornu_identity(3));
    expect_says("orthogonal", cornu_orthogonal());
    expect_says("orthogonal", CORNU_ORTHOGONAL);
    expect_says("orthogonal_arguments", cornu_orthogonal(0.5, 4));
    expect_says("random_uniform", cornu_random_uniform());
    expect_says("random_uniform", CORNU_RANDOM_UNIFORM);
    expect_says("random_uniform_arguments", cornu_random_uniform(CORNU_ZERO, 1.5, CORNU_ZERO));
    expect_says("random_uniform_negative", cornu_random_uniform(-3, -1));
    expect_says("random_normal", cornu_random_normal());
    expect_says("random_normal", CORNU_RANDOM_NORMAL);
    expect_says("random_normal_arguments", cornu_random_normal(1, 0.02, 3));
    expect_says("truncated_normal", cornu_truncated_normal());
    expect_says("truncated_normal", CORNU_TRUNCATED_NORMAL);
    expect_says("truncated_normal_arguments", cornu_truncated_normal(-0.5, 2));
    expect_says("scaling", cornu_variance_scaling());
    expect_says("scaling_in", cornu_variance_scaling(0.1, CORNU_FAN_IN,
                                                     CORNU_DISTRIBUTION_UNIFORM));
    expect_says("scaling_out", cornu_variance_scaling(2, CORNU_FAN_OUT,
                                                      CORNU_DISTRIBUTION_UNTRUNCATED_NORMAL, 11));
    expect_says("scaling_avg", cornu_variance_scaling(3, CORNU_FAN_AVG));
    expect_says("scaling_axes", cornu_variance_scaling(
        .mode = CORNU_FAN_AVG, .distribution = CORNU_DISTRIBUTION_UNIFORM,
        .input_axes = { CORNU_ZERO }, .output_axes = { 1, -1 }));
    expect_says("scaling_vector", cornu_variance_scaling(.distribution =
                                                         CORNU_DISTRIBUTION_NORMAL));
    expect_says("glorot_uniform_dense", cornu_glorot_uniform());
    expect_says("glorot_uniform_dense", CORNU_GLOROT_UNIFORM);
    expect_says("glorot_uniform_axes", cornu_glorot_uniform(2, { CORNU_ZERO }, { 1, 2 }));
    expect_says("glorot_normal", cornu_glorot_normal(INT64_C(2147483648)));
    expect_says("he_uniform", cornu_he_uniform());
    expect_says("he_uniform", CORNU_HE_UNIFORM);
    expect_says("he_normal", cornu_he_normal(.seed = 7));
    expect_says("he_normal_depthwise", CORNU_HE_NORMAL);
    expect_says("lecun_uniform", cornu_lecun_uniform());
    expect_says("lecun_uniform", CORNU_LECUN_UNIFORM);
    expect_says("lecun_normal", cornu_lecun_normal(.input_axes = { -1 },
                                                   .output_axes = { CORNU_ZERO }));
}

/* Keras' values exactly where nothing is random; else Keras' moments, within five standard
 * deviations, and its bounds. */
static void values_are_distributed_as_keras(void **state)
{
    (void)state;
    const char *name;
    json_t     *about;
    json_object_foreach(cases, name, about) {
        const CornuInitializer initializer =
            read_initializer(json_object_get(about, "initializer"));
        const CornuShape shape = shape_of(about);
        const int64_t    count = cornu_shape_count(shape);
        float           *values = draw(initializer, shape, 7);
        const json_t    *exact = json_object_get(about, "values");
        const double     mean = json_number_value(json_object_get(about, "mean"));
        const double     deviation = json_number_value(json_object_get(about, "deviation"));
        const double     near = 5.0 * deviation / sqrt((double)count);
        const json_t    *low = json_object_get(about, "low");
        const json_t    *high = json_object_get(about, "high");
        double           sum = 0.0, squares = 0.0;
        if (exact) assert_int_equal(json_array_size(exact), count);
        for (int64_t i = 0; i < count; i++) {
            if (exact && values[i] != json_number_value(json_array_get(exact, (size_t)i)))
                fail_msg("%s: value %lld is %g", name, (long long)i, values[i]);
            if ((low && values[i] < (float)json_number_value(low)) ||
                (high && values[i] > (float)json_number_value(high)))
                fail_msg("%s: value %lld is %g, out of bounds", name, (long long)i, values[i]);
            sum += values[i];
            squares += (values[i] - mean) * (values[i] - mean);
        }
        const double spread = sqrt(squares / (double)count);
        if (!exact && !(fabs(sum / (double)count - mean) <= near &&
                        fabs(spread - deviation) <= near))
            fail_msg("%s: mean %g, deviation %g; expected %g, %g", name, sum / (double)count,
                     spread, mean, deviation);
        free(values);
    }
}

static void orthogonal_is_orthogonal(void **state)
{
    (void)state;
    static const struct { int64_t m, n; double gain; } sizes[] = {
        { 7, 4, 1.0 }, { 4, 7, -2.0 }, { 6, 6, 0.5 },
    };
    for (int s = 0; s < 3; s++) {
        const int64_t m = sizes[s].m, n = sizes[s].n, less = m < n ? m : n;
        const double  gain = sizes[s].gain;
        float        *q = draw(cornu_orthogonal(gain), cornu_shape(m, n), 1);
        for (int64_t i = 0; i < less; i++)
            for (int64_t j = 0; j < less; j++) {
                double dot = 0.0;
                for (int64_t k = 0; k < (m < n ? n : m); k++)
                    dot += m < n ? (double)q[i * n + k] * q[j * n + k]
                                 : (double)q[k * n + i] * q[k * n + j];
                assert_float_equal(dot, i == j ? gain * gain : 0.0, 1e-6);
            }
        float *one = draw(cornu_orthogonal(), cornu_shape(m, n), 1);
        for (int64_t i = 0; i < m * n; i++) assert_float_equal(q[i], gain * one[i], 1e-6);
        free(one);
        free(q);
    }
}

/* ---- Dependence on seed and generator ---- */

static uint32_t hash_of(const float *values, int64_t count)
{
    const unsigned char *bytes = (const unsigned char *)values;
    uint32_t             hash = 2166136261u;    /* FNV-1a */
    for (size_t i = 0; i < (size_t)count * sizeof *values; i++)
        hash = (hash ^ bytes[i]) * 16777619u;
    return hash;
}

/* Seeds give the bits that they gave before initializers had arguments. */
static void default_draws_stay(void **state)
{
    (void)state;
    static const struct { const char *name; uint32_t hashes[3]; } draws[] = {
        { "zeros", { 0x7ab40545, 0x6e52e835, 0x72a5a2c5 } },
        { "ones", { 0xb1598885, 0xf6295888, 0x465c0045 } },
        { "orthogonal", { 0x7a0a4ffa, 0x6bebf6c7, 0x55063473 } },
        { "random_uniform", { 0xe1677f72, 0xb2eee258, 0xf42e7d53 } },
        { "random_normal", { 0x5184d127, 0xa07b9bb2, 0x8d757cfc } },
        { "truncated_normal", { 0x96610788, 0x7fec2705, 0x24dcec18 } },
        { "glorot_uniform", { 0x25d1b548, 0xe84492d6, 0xd2412951 } },
        { "glorot_normal", { 0xfcb9f12b, 0xe4b6df0e, 0x0d5b07fa } },
        { "he_uniform", { 0x00a4e846, 0x5e46059c, 0x68ed8f4c } },
        { "he_normal", { 0x5a58475f, 0x35452970, 0x9e6a11ed } },
        { "lecun_uniform", { 0xecdeb109, 0x466a7911, 0x525673be } },
        { "lecun_normal", { 0x84c09adb, 0xca765fa5, 0x23060fcb } },
    };
    const CornuShape shapes[3] = { cornu_shape(30, 20), cornu_shape(3, 3, 5, 7),
                                   cornu_shape(50, 8) };
    for (size_t d = 0; d < sizeof draws / sizeof *draws; d++)
        for (int i = 0; i < 3; i++) {
            float *values = draw(cornu_initializer(draws[d].name), shapes[i], 7 + (uint64_t)i);
            if (hash_of(values, cornu_shape_count(shapes[i])) != draws[d].hashes[i])
                fail_msg("%s, shape %d: other bits", draws[d].name, i);
            free(values);
        }
}

/* An element does not depend on other draws, but differs from weight to weight. */
static void draws_are_addressed(void **state)
{
    (void)state;
    float many[60], few[5];
    expect_ok(cornu_initialize(CORNU_RANDOM_NORMAL, cornu_shape(60), 1, 0, many));
    expect_ok(cornu_initialize(CORNU_RANDOM_NORMAL, cornu_shape(5), 1, 0, few));
    assert_memory_equal(few, many, sizeof few);
    expect_ok(cornu_initialize(CORNU_RANDOM_NORMAL, cornu_shape(5), 1, 1, few));
    assert_true(few[0] != many[0]);
}

/* An initializer's own seed overrides the model's seed and the weight's number. */
static void own_seeds_rule(void **state)
{
    (void)state;
    const CornuShape shape = cornu_shape(4, 5);
    const size_t     bytes = 20 * sizeof(float);
    float            first[20], other[20];
    expect_ok(cornu_initialize(cornu_he_normal(3), shape, 1, 4, first));
    expect_ok(cornu_initialize(cornu_he_normal(3), shape, 2, 9, other));
    assert_memory_equal(first, other, bytes);
    expect_ok(cornu_initialize(CORNU_HE_NORMAL, shape, 3, 0, other));   /* as the header says */
    assert_memory_equal(first, other, bytes);
    expect_ok(cornu_initialize(cornu_he_normal(4), shape, 1, 4, other));
    assert_memory_not_equal(first, other, bytes);
    expect_ok(cornu_initialize(cornu_he_normal(CORNU_ZERO), shape, 1, 4, first));
    expect_ok(cornu_initialize(CORNU_HE_NORMAL, shape, 0, 0, other));
    assert_memory_equal(first, other, bytes);
    expect_ok(cornu_initialize(CORNU_HE_NORMAL, shape, 1, 4, other));
    assert_memory_not_equal(first, other, bytes);
}

static CornuModel *model_of(CornuDevice *device, CornuInitializer kernel)
{
    CornuModel *model = cornu_sequential(.input_shape = { 4 });
    cornu_model_add(model, cornu_dense(4, .kernel_initializer = kernel,
                                       .bias_initializer = cornu_constant(0.25)));
    cornu_model_add(model, cornu_dense(4, .kernel_initializer = kernel));
    expect_ok(cornu_error_take());
    if (device) expect_ok(cornu_compile(model, .device = device));
    return model;
}

static void read_weights(CornuModel *model, float to[40])
{
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        const CornuWeight *weight = cornu_model_weight(model, i);
        expect_ok(cornu_weight_read(weight, cornu_array_from(to, weight->type)));
        to += cornu_type_count(weight->type);
    }
}

static void devices_begin_alike(void **state)
{
    (void)state;
    static const struct { const char *name; int shards; } devices[] = {
        { "cpu", 1 }, { "tpu", 8 }, { "reference", 1 },
    };
    float before[40], after[40];
    cornu_set_random_seed(5);
    CornuModel *plain = model_of(NULL, cornu_truncated_normal(1, 0.5));
    read_weights(plain, before);
    cornu_model_free(plain);
    assert_memory_not_equal(before, before + 20, 16 * sizeof(float));   /* without a seed */
    for (int i = 16; i < 20; i++) assert_float_equal(before[i], 0.25, 0);
    for (int d = 0; d < 3; d++) {
        CornuDevice *device = cornu_device_open(devices[d].name, .shards = devices[d].shards);
        cornu_set_random_seed(5);
        CornuModel *model = model_of(device, cornu_truncated_normal(1, 0.5));
        read_weights(model, after);
        assert_memory_equal(before, after, sizeof before);
        cornu_model_free(model);
        model = model_of(device, cornu_truncated_normal(.seed = 2));
        read_weights(model, after);
        assert_memory_equal(after, after + 20, 16 * sizeof(float));
        cornu_model_free(model);
        cornu_device_close(device);
    }
    cornu_set_random_seed(0);
}

/* ---- Custom initializers ---- */

/* Ones with a random sign. */
static CornuStatus signs(const CornuInitializer *self, CornuShape shape, uint64_t seed,
                         int64_t generator, float *values)
{
    const double scale = *(const double *)self->context;
    CornuStatus  status = cornu_initialize(cornu_random_uniform(-1, 1), shape, seed, generator,
                                           values);
    for (int64_t i = 0; i < cornu_shape_count(shape); i++)
        values[i] = (float)(values[i] < 0.0f ? -scale : scale);
    return status;
}

static CornuStatus fails(const CornuInitializer *self, CornuShape shape, uint64_t seed,
                         int64_t generator, float *values)
{
    (void)self, (void)shape, (void)seed, (void)generator, (void)values;
    return cornu_error_set(CORNU_ERR_VALUE, "no luck today");
}

static void a_function_may_initialize(void **state)
{
    (void)state;
    const double scale = 1.5;
    float        drawn[40], uniform[16];
    CornuModel  *model = model_of(NULL, (CornuInitializer){ .call = signs, .context = &scale });
    read_weights(model, drawn);
    int negative = 0;
    for (int i = 0; i < 16; i++) {
        assert_float_equal(fabs(drawn[i]), 1.5, 0);
        negative += drawn[i] < 0;
    }
    assert_true(negative > 0 && negative < 16);
    assert_memory_not_equal(drawn, drawn + 20, 16 * sizeof(float));
    assert_null(cornu_model_clone(model));
    expect_error(cornu_error_take(), CORNU_ERR_UNSUPPORTED,
                 "dense: kernel_initializer is a function");
    cornu_model_free(model);

    const CornuInitializer seeded = { .call = signs, .context = &scale, .seed = 6 };
    expect_ok(cornu_initialize(seeded, cornu_shape(16), 1, 2, drawn));
    expect_ok(cornu_initialize(cornu_random_uniform(-1, 1, 6), cornu_shape(16), 3, 4, uniform));
    for (int i = 0; i < 16; i++) assert_true((drawn[i] < 0) == (uniform[i] < 0));

    model = cornu_sequential(.input_shape = { 4 });
    expect_ok(cornu_model_add(model, cornu_dense(4, .kernel_initializer = { .call = fails })));
    expect_error(cornu_compile(model), CORNU_ERR_VALUE, "dense/kernel: no luck today");
    cornu_error_take();
    cornu_model_free(model);
}

/* ---- Files ---- */

static CornuStatus read_text(const char *text, CornuInitializer *initializer)
{
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
    assert_non_null(value);
    memset(initializer, 0, sizeof *initializer);
    CornuStatus status = cornu__read_field(NULL, fields, value, initializer);
    json_decref(value);
    return status;
}

#define OBJECT(name, config) "{\"class_name\":\"" name "\",\"config\":{" config "}}"

static void names_and_objects_are_read(void **state)
{
    (void)state;
    static const struct { const char *text, *name; } same[] = {
        { "\"he_normal\"", "he_normal" }, { "\"HeNormal\"", "he_normal" },
        { "\"zero\"", "zeros" }, { "\"one\"", "ones" }, { "\"normal\"", "random_normal" },
        { "\"uniform\"", "random_uniform" }, { "\"OrthogonalInitializer\"", "orthogonal" },
        { "\"IdentityInitializer\"", "identity" }, { OBJECT("HeNormal", ""), "he_normal" },
        { OBJECT("HeNormal", "\"seed\":null,\"input_axes\":null"), "he_normal" },
        { OBJECT("VarianceScaling", "\"scale\":1,\"distribution\":\"normal\""),
          "variance_scaling" },
        { OBJECT("RandomNormal", "\"seed\":{\"class_name\":\"SeedGenerator\"}"), "random_normal" },
        { "{\"class_name\":\"Ones\"}", "ones" }, { "null", NULL },
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        CornuInitializer got;
        CornuInitializer want = same[i].name ? cornu_initializer(same[i].name)
                                             : (CornuInitializer){ 0 };
        expect_ok(read_text(same[i].text, &got));
        assert_memory_equal(&got, &want, sizeof got);
    }
}

static void json_is_checked(void **state)
{
    (void)state;
    static const struct { const char *text; CornuStatus status; const char *message; } bad[] = {
        { "\"he_nomal\"", CORNU_ERR_ARGUMENT,
          "it: initializer \"he_nomal\" is not known; is \"he_normal\" meant?" },
        { OBJECT("STFT", ""), CORNU_ERR_ARGUMENT, "it: initializer \"STFT\" is not known" },
        { "3", CORNU_ERR_FORMAT, "it is not null, a string or an object with a class_name" },
        { OBJECT("Zeros", "\"value\":1"), CORNU_ERR_UNSUPPORTED,
          "it: the argument \"value\" is not known" },
        { OBJECT("HeNormal", "\"scale\":1"), CORNU_ERR_UNSUPPORTED, "\"scale\" is not known" },
        { OBJECT("Constant", "\"value\":[[1],2]"), CORNU_ERR_FORMAT,
          "it: value is not a list whose" },
        { OBJECT("RandomNormal", "\"stddev\":-1"), CORNU_ERR_ARGUMENT,
          "it: random_normal: .stddev is -1, expected 0 or more" },
        { OBJECT("RandomNormal", "\"seed\":1.5"), CORNU_ERR_FORMAT, "seed is not a whole number" },
        { OBJECT("VarianceScaling", "\"mode\":\"fan\""), CORNU_ERR_FORMAT,
          "mode is \"fan\", expected one of fan_in, fan_out, fan_avg" },
        { OBJECT("VarianceScaling", "\"distribution\":\"cauchy\""), CORNU_ERR_FORMAT,
          "distribution is \"cauchy\", expected one of truncated_normal" },
        { OBJECT("VarianceScaling", "\"scale\":0"), CORNU_ERR_ARGUMENT,
          "variance_scaling: .scale is 0, expected above 0" },
        { OBJECT("HeNormal", "\"input_axes\":[]"), CORNU_ERR_FORMAT,
          "input_axes is not null or a list of at least one number" },
        { OBJECT("HeNormal", "\"input_axes\":[0,1,2,3,4,5,6,7,8]"), CORNU_ERR_FORMAT, "at most 8" },
    };
    CornuInitializer got;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect_error(read_text(bad[i].text, &got), bad[i].status, bad[i].message);
}

/* A clone, or a model read from the architecture, keeps the arguments, not the values. */
static void clones_keep_the_arguments(void **state)
{
    (void)state;
    CornuModel *model = cornu_sequential(.input_shape = { 6 });
    cornu_model_add(model, cornu_embedding(9, 4, .embeddings_initializer =
                                                     cornu_random_uniform(-1, 2, .seed = 8)));
    cornu_model_add(model, cornu_bidirectional(cornu_gru(
        3, .kernel_initializer = cornu_variance_scaling(2, CORNU_FAN_OUT, .seed = 1),
        .recurrent_initializer = cornu_identity(0.5), .bias_initializer = cornu_constant(-1))));
    expect_ok(cornu_error_take());
    CornuModel *clone = cornu_model_clone(model);
    assert_non_null(clone);
    json_t *first = cornu__model_config(model), *second = cornu__model_config(clone);
    assert_non_null(first);
    assert_true(json_equal(first, second));
    float ours[36], theirs[36];
    const CornuArray to = cornu_array(ours, CORNU_F32, 9, 4);
    expect_ok(cornu_weight_read(cornu_model_weight(model, 0), to));
    expect_ok(cornu_weight_read(cornu_model_weight(clone, 0),
                                cornu_array(theirs, CORNU_F32, 9, 4)));
    assert_memory_equal(ours, theirs, sizeof ours);
    json_decref(first);
    json_decref(second);
    cornu_model_free(model);
    cornu_model_free(clone);
}

/* ---- Refusals ---- */

static void refuses(CornuInitializer initializer, const char *part)
{
    const CornuInitializer none = { 0 };
    assert_memory_equal(&initializer, &none, sizeof none);
    assert_null(cornu_dense(3, .kernel_initializer = initializer));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, part);
}

static void constructors_refuse(void **state)
{
    (void)state;
    refuses(cornu_constant(INFINITY), "constant: .value is inf, expected a finite number");
    refuses(cornu_identity(NAN), "identity: .gain is ");
    refuses(cornu_orthogonal(-INFINITY), "orthogonal: .gain is -inf");
    refuses(cornu_random_uniform(1), "random_uniform: .minval is 1 and .maxval 0.05, expected "
            ".minval <= .maxval");
    refuses(cornu_truncated_normal(.stddev = -0.5), "truncated_normal: .stddev is -0.5");
    refuses(cornu_variance_scaling(-1), "variance_scaling: .scale is -1, expected above 0");
    refuses(cornu_variance_scaling(CORNU_ZERO), "variance_scaling: .scale is 0, expected above 0");
    refuses(cornu_variance_scaling(.mode = (CornuFanMode)3), ".mode is 3, expected CORNU_FAN_IN");
    refuses(cornu_variance_scaling(.distribution = (CornuDistribution)9), ".distribution is 9");
    refuses(cornu_initializer("glorot_unform"), "is \"glorot_uniform\" meant?");
    assert_null(cornu_dense(3, .bias_initializer = { .kind = 99 }));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "dense: an initializer is of kind 99");
}

static void refuses_to_build(CornuLayer *layer, const char *part)
{
    CornuModel *model = cornu_sequential(.input_shape = { 8, 8, 3 });
    expect_error(cornu_model_add(model, layer), CORNU_ERR_SHAPE, part);
    cornu_error_take();
    cornu_model_free(model);
}

static void shapes_are_refused(void **state)
{
    (void)state;
    float one;
    refuses_to_build(cornu_conv2d(4, 3, .kernel_initializer = cornu_identity()),
                     "conv2d: kernel: identity: the shape is (3, 3, 3, 4), expected 2 axes");
    refuses_to_build(cornu_conv2d(4, 3, .bias_initializer = CORNU_ORTHOGONAL),
                     "conv2d: bias: orthogonal: the shape is (4,), expected 2 axes or more");
    refuses_to_build(cornu_conv2d(4, 3, .kernel_initializer =
                                            cornu_he_normal(.input_axes = { 1 },
                                                            .output_axes = { 4 })),
                     "conv2d: kernel: he_normal: .output_axes has 4, "
                     "which the shape (3, 3, 3, 4) lacks");
    expect_error(cornu_initialize((CornuInitializer){ 0 }, cornu_shape(1), 1, 2, &one),
                 CORNU_ERR_ARGUMENT, "an initializer of kind 0 draws nothing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keras_json_is_read_and_written),
        cmocka_unit_test(constructors_say_what_keras_says),
        cmocka_unit_test(values_are_distributed_as_keras),
        cmocka_unit_test(orthogonal_is_orthogonal),
        cmocka_unit_test(default_draws_stay),
        cmocka_unit_test(draws_are_addressed),
        cmocka_unit_test(own_seeds_rule),
        cmocka_unit_test(devices_begin_alike),
        cmocka_unit_test(a_function_may_initialize),
        cmocka_unit_test(names_and_objects_are_read),
        cmocka_unit_test(json_is_checked),
        cmocka_unit_test(clones_keep_the_arguments),
        cmocka_unit_test(constructors_refuse),
        cmocka_unit_test(shapes_are_refused),
    };
    return cmocka_run_group_tests(tests, open_cases, close_cases);
}
