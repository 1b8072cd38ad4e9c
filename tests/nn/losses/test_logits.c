/* Crossentropies of a model whose last layer is a softmax or a sigmoid use its logits: numbers of
 * Keras 3.15.1 on TensorFlow, where probabilities that round to 0 and 1 would give 16.118 and no
 * gradient. One row, a kernel that is the identity, SGD of rate 1, so that the bias becomes minus
 * its gradient. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "../golden.h"

static const char *const devices[] = { "reference", "cpu", "tpu" };
enum { DEVICES = 3 };

typedef enum { IN_DENSE, ACTIVATION, OWN_LAYER, NESTED, RESCALED, HOWS } How;

/* The last layer: a dense one of as many units as features. */
static CornuModel *last_layer(How how, int64_t units, const char *policy)
{
    const CornuActivation activation = units > 1 ? CORNU_SOFTMAX : CORNU_SIGMOID;
    const bool  within = how == IN_DENSE || how == NESTED || how == RESCALED;
    CornuLayer *dense = cornu_dense(units, .activation = within ? activation : CORNU_LINEAR,
                                    .kernel_initializer = units > 1 ? cornu_identity()
                                                                    : CORNU_ONES);
    CornuModel *model = cornu_sequential(.input_shape = { units }, .policy = policy), *inner = NULL;
    if (how == NESTED) {
        inner = cornu_sequential(.input_shape = { units });
        expect_ok(cornu_model_add(inner, dense));
        dense = cornu_as_layer(inner);
    }
    expect_ok(cornu_model_add(model, dense));
    cornu_model_free(inner);
    if (how == ACTIVATION) expect_ok(cornu_model_add(model, cornu_activation(activation)));
    if (how == OWN_LAYER)
        expect_ok(cornu_model_add(model, units > 1 ? cornu_softmax()
                                                   : cornu_activation(CORNU_SIGMOID)));
    if (how == RESCALED) expect_ok(cornu_model_add(model, cornu_rescaling(0.5)));
    return model;
}

typedef struct {
    const char *name;
    CornuLoss *(*loss)(void);
    int64_t     units;
    float       x[2], y[2];   /* one label, or one of each unit */
    int64_t     labels;
    float       value, d_bias[2];
} Case;

static CornuLoss *sparse(void) { return cornu_sparse_categorical_crossentropy(); }
static CornuLoss *categorical(void) { return cornu_categorical_crossentropy(); }
static CornuLoss *binary(void) { return cornu_binary_crossentropy(); }
static CornuLoss *binary_focal(void) { return cornu_binary_focal_crossentropy(); }
static CornuLoss *smoothed(void)
{
    return cornu_categorical_crossentropy(.label_smoothing = 0.2);
}
static CornuLoss *of_logits(void)
{
    return cornu_sparse_categorical_crossentropy(.from_logits = true);
}
static CornuLoss *binary_of_logits(void)
{
    return cornu_binary_crossentropy(.from_logits = true);
}

static const Case cases[] = {
    { "sparse", sparse, 2, { 30, 0 }, { 1 }, 1, 30, { 1, -1 } },
    { "categorical", categorical, 2, { 30, 0 }, { 0, 1 }, 2, 30, { 1, -1 } },
    { "smoothed", smoothed, 2, { 30, 0 }, { 0, 1 }, 2, 27, { 0.9f, -0.9f } },
    { "binary", binary, 1, { -30 }, { 1 }, 1, 30, { -1 } },
    { "binary focal", binary_focal, 1, { -30 }, { 1 }, 1, 30, { -1 } },
    { "of logits", of_logits, 2, { 30, 0 }, { 1 }, 1, 30, { 1, -1 } },
    { "binary of logits", binary_of_logits, 1, { -30 }, { 1 }, 1, 30, { -1 } },
};

static CornuArray x_of(const Case *c)
{
    return cornu_array((void *)(uintptr_t)c->x, CORNU_F32, 1, c->units);
}

static CornuArray y_of(const Case *c)
{
    return cornu_array((void *)(uintptr_t)c->y, CORNU_F32, 1, c->labels);
}

static void check(const Case *c, How how, float value, const float d_bias[2])
{
    bool near = fabsf(value - c->value) <= 1e-5f * c->value;
    for (int i = 0; i < c->units; i++) near &= fabsf(d_bias[i] - c->d_bias[i]) <= 1e-6f;
    if (!near)
        fail_msg("%s, %d: loss %.7g, gradient %.7g %.7g; expected %g, %g %g", c->name, (int)how,
                 (double)value, (double)d_bias[0], (double)d_bias[1], (double)c->value,
                 (double)c->d_bias[0], (double)c->d_bias[1]);
}

/* evaluate, then fit. */
static void fit_uses_them(CornuDevice *device, const Case *c, How how, const char *policy)
{
    double      results[2];
    float       bias[2] = { 0 };
    CornuModel *model = last_layer(how, c->units, policy);
    expect_ok(cornu_compile(model, .device = device, .optimizer = cornu_sgd(.learning_rate = 1.0),
                            .loss = c->loss(),
                            .metrics = { cornu_loss_metric("again", c->loss()) }));
    expect_ok(cornu_evaluate(model, .x = x_of(c), .y = y_of(c), .verbose = CORNU_SILENT,
                             .results = results));
    assert_float_equal(results[1], results[0], 1e-5);   /* the loss as a metric */
    CornuHistory *history = cornu_fit(model, .x = x_of(c), .y = y_of(c), .verbose = CORNU_SILENT);
    expect_ok(history ? CORNU_OK : cornu_error_take());
    cornu_history_free(history);
    expect_ok(cornu_weight_read(cornu_model_weight(model, 1),
                                cornu_array(bias, CORNU_F32, c->units)));
    for (int i = 0; i < c->units; i++) bias[i] = -bias[i];
    check(c, how, (float)results[0], bias);
    cornu_model_free(model);
}

/* As examples/custom_loop.c. */
static void steps_by_hand_use_them(CornuDevice *device, const Case *c, How how)
{
    CornuModel *model = last_layer(how, c->units, NULL);
    CornuLoss  *loss = c->loss();
    expect_ok(cornu_compile(model, .device = device));
    CornuGraph  *graph = cornu_graph_create(device);
    CornuTensor *x = cornu_graph_input(graph, x_of(c).type);
    CornuTensor *y = cornu_graph_input(graph, y_of(c).type);
    CornuTensor *p = cornu_model_call(model, x, &(CornuCall){ .training = true });
    CornuTensor *fetches[2], *bias = cornu_read(graph, cornu_model_weight(model, 1)->variable);
    fetches[0] = cornu_op_sum(loss->call(loss, y, p));
    expect_ok(cornu_gradients(fetches[0], &bias, 1, &fetches[1]));
    float value, d_bias[2] = { 0 };
    CornuArray to[] = { cornu_array_from(&value, cornu_scalar(CORNU_F32)),
                              cornu_array(d_bias, CORNU_F32, c->units) };
    expect_ok(cornu_graph_feed(x, x_of(c)));
    expect_ok(cornu_graph_feed(y, y_of(c)));
    expect_ok(cornu_run(graph, fetches, 2, to));
    check(c, how, value, d_bias);
    cornu_graph_free(graph);
    cornu_loss_free(loss);
    cornu_model_free(model);
}

static void logits_are_used(void **state)
{
    (void)state;
    for (int d = 0; d < DEVICES; d++) {
        CornuDevice *device = cornu_device_open(devices[d], .shards = 1);
        cornu_set_dtype_policy("float32");
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            for (How how = IN_DENSE; how < RESCALED; how++) {
                fit_uses_them(device, &cases[i], how, "float32");
                steps_by_hand_use_them(device, &cases[i], how);
            }
        cornu_device_close(device);
    }
}

/* Predictions in bf16 are converted to f32 after the softmax. */
static void also_of_mixed_precision(void **state)
{
    (void)state;
    CornuDevice *device = cornu_device_open("cpu");
    for (How how = IN_DENSE; how < RESCALED; how++)
        for (int i = 0; i < 2; i++) fit_uses_them(device, &cases[3 * i], how, "mixed_bfloat16");
    cornu_device_close(device);
}

/* What follows the softmax hides it: the clipped loss, without a gradient. */
static void others_are_clipped(void **state)
{
    (void)state;
    const Case   clipped = { "clipped", sparse, 2, { 30, 0 }, { 1 }, 1, 16.118095f, { 0, 0 } };
    CornuDevice *device = cornu_device_open("cpu");
    fit_uses_them(device, &clipped, RESCALED, "float32");
    steps_by_hand_use_them(device, &clipped, RESCALED);
    cornu_device_close(device);
}

static char logged[512];

static void remember(void *context, CornuLogLevel level, const char *message)
{
    (void)context;
    if (level == CORNU_LOG_WARNING)
        strncat(logged, message, sizeof logged - strlen(logged) - 1);
}

static void from_logits_of_a_softmax_is_logged(void **state)
{
    (void)state;
    CornuDevice *device = cornu_device_open("reference");
    cornu_set_log(CORNU_LOG_WARNING, remember, NULL);
    steps_by_hand_use_them(device, &cases[0], IN_DENSE);
    assert_string_equal(logged, "");
    steps_by_hand_use_them(device, &cases[5], IN_DENSE);
    assert_string_equal(logged, "sparse_categorical_crossentropy: .from_logits is true, but the "
                                "predictions are of a softmax; its logits are used");
    cornu_set_log(CORNU_LOG_NOTHING, NULL, NULL);
    cornu_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_are_used),
        cmocka_unit_test(also_of_mixed_precision),
        cmocka_unit_test(others_are_clipped),
        cmocka_unit_test(from_logits_of_a_softmax_is_logged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
