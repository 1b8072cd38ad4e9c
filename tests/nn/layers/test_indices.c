/* NaN is neither an index nor a class: an error on every device, where it once was row 0. An index
 * that is out of range is reported as it is, also beyond 2^31. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../golden.h"

static const char *const devices[] = { "reference", "cpu", "tpu" };
enum { DEVICES = 3, MOST = 64 };

typedef CornuLayer *Make(void);

static CornuLayer *embedding(void) { return cornu_embedding(5, 2); }
static CornuLayer *masked(void) { return cornu_embedding(5, 2, .mask_zero = true); }
static CornuLayer *sparse(void) { return cornu_embedding(5, 2, .sparse_gradient = true); }
static CornuLayer *reversible(void) { return cornu_reversible_embedding(5, 2); }
static CornuLayer *spectral(void) { return cornu_spectral_normalization(embedding()); }
static CornuLayer *in_time(void) { return cornu_time_distributed(embedding()); }

static CornuLayer *encoding(CornuOutputMode mode)
{
    return cornu_category_encoding(5, .output_mode = mode);
}
static CornuLayer *multi_hot(void) { return encoding(CORNU_MULTI_HOT_OUTPUT); }
static CornuLayer *counts(void) { return encoding(CORNU_COUNT_OUTPUT); }
static CornuLayer *one_hot(void) { return encoding(CORNU_ONE_HOT_OUTPUT); }

static const double numbers[] = { 1, 3, 4 };
#define VOCABULARY { .values = numbers, .shape = { 1, { 3 } } }

static CornuLayer *lookup(void) { return cornu_integer_lookup(.vocabulary = VOCABULARY); }
static CornuLayer *lookup_hot(void)
{
    return cornu_integer_lookup(.vocabulary = VOCABULARY, .output_mode = CORNU_MULTI_HOT_OUTPUT);
}
static CornuLayer *inverse(void)
{
    return cornu_integer_lookup(.vocabulary = VOCABULARY, .invert = true);
}
static CornuLayer *hashing(void) { return cornu_hashing(4); }
static CornuLayer *hashing_hot(void)
{
    return cornu_hashing(4, .output_mode = CORNU_ONE_HOT_OUTPUT);
}

static CornuModel *model_of(CornuDevice *device, CornuLayer *layer)
{
    CornuModel *model = cornu_sequential(.input_shape = { 2 });
    expect_ok(cornu_model_add(model, layer));
    expect_ok(cornu_compile(model, .device = device));
    return model;
}

static CornuStatus predict(CornuModel *model, CornuArray x)
{
    float      y[MOST];
    CornuShape shape = cornu_model_output_shape(model);
    shape.extent[0] = 1;
    return cornu_predict_on_batch(model, x,
                                  cornu_array_from(y, cornu_type_from(CORNU_F32, shape)));
}

static void nan_is_no_index(void **state)
{
    (void)state;
    static Make *const layers[] = {
        embedding, masked, sparse, reversible, spectral, multi_hot, counts, one_hot, lookup,
        lookup_hot, inverse, hashing, hashing_hot,
    };
    float       bad[] = { 3, NAN }, good[] = { 3, 1 };
    const char *message = "is nan, expected a whole number";
    for (int d = 0; d < DEVICES; d++)
        for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
            CornuDevice *device = cornu_device_open(devices[d], .shards = 1);
            CornuModel  *model = model_of(device, layers[i]());
            const bool   host = layers[i] == hashing || layers[i] == hashing_hot;
            expect_ok(predict(model, cornu_array(good, CORNU_F32, 1, 2)));
            expect_error(predict(model, cornu_array(bad, CORNU_F32, 1, 2)), CORNU_ERR_VALUE,
                         host ? message : "index nan in row 1, expected a whole number");
            expect_ok(predict(model, cornu_array(good, CORNU_F32, 1, 2)));
            cornu_model_free(model);
            cornu_device_close(device);
        }
}

/* Where the input's dtype converts the data before the layer. */
static void integer_inputs_take_none(void **state)
{
    (void)state;
    float        bad[] = { 3, NAN }, y[4];
    CornuSymbol *in = cornu_input(.shape = { 2 }, .dtype = CORNU_I32);
    CornuModel  *model = cornu_model(.inputs = { in }, .outputs = { cornu_call(embedding(), in) });
    expect_ok(cornu_compile(model));
    expect_error(cornu_predict_on_batch(model, cornu_array(bad, CORNU_F32, 1, 2),
                                        cornu_array(y, CORNU_F32, 1, 2, 2)),
                 CORNU_ERR_VALUE, "index nan in row 1, expected a whole number");
    cornu_model_free(model);
}

static void steps_have_none_either(void **state)
{
    (void)state;
    float        bad[] = { 3, 0, 1, NAN }, y[4 * 2];
    CornuModel  *model = cornu_sequential(.input_shape = { 2, 2 });
    expect_ok(cornu_model_add(model, in_time()));
    expect_ok(cornu_compile(model));
    expect_error(cornu_predict_on_batch(model, cornu_array(bad, CORNU_F32, 1, 2, 2),
                                        cornu_array(y, CORNU_F32, 1, 2, 2, 2)),
                 CORNU_ERR_VALUE, "index nan in row 3, expected a whole number");
    cornu_model_free(model);
}

/* Indices that the model computes: 2 x, where x is infinite less infinite. */
static void computed_indices_are_checked(void **state)
{
    (void)state;
    static const struct { const char *name, *arguments; int64_t count; } operations[] = {
        { "one_hot", "{\"num_classes\": 5}", 10 }, { "multi_hot", "{\"num_classes\": 5}", 5 },
    };
    for (int d = 0; d < DEVICES; d++)
        for (int i = 0; i < 2; i++) {
            float        bad[] = { 1, NAN }, good[] = { 1, 2 }, y[MOST];
            CornuDevice *device = cornu_device_open(devices[d], .shards = 1);
            CornuSymbol *in = cornu_input(.shape = { 2 });
            CornuSymbol *scaled = cornu_call(cornu_rescaling(2.0), in);
            CornuModel  *model = cornu_model(
                .inputs = { in },
                .outputs = { cornu_operation(operations[i].name, operations[i].arguments,
                                             scaled) });
            expect_ok(cornu_compile(model, .device = device));
            const CornuArray to = i ? cornu_array(y, CORNU_F32, 1, 5)
                                    : cornu_array(y, CORNU_F32, 1, 2, 5);
            expect_ok(cornu_predict_on_batch(model, cornu_array(good, CORNU_F32, 1, 2), to));
            assert_float_equal(y[2], 1.0f, 0.0);
            expect_error(cornu_predict_on_batch(model, cornu_array(bad, CORNU_F32, 1, 2), to),
                         CORNU_ERR_VALUE, "index nan in row 1, expected a whole number");
            cornu_model_free(model);
            cornu_device_close(device);
        }
}

/* 2^32 of floats and of integers; and 2^31, which is one more than an i32 holds. */
static void large_indices_are_reported_as_they_are(void **state)
{
    (void)state;
    float    floats[] = { 3, 0x1p32f }, few[] = { 3, 0x1p31f }, least[] = { 3, -1 };
    int64_t  wide[] = { 3, INT64_C(1) << 32 };
    uint32_t whole[] = { 3, UINT32_C(1) << 31 };
    const struct { CornuArray x; const char *part; } cases[] = {
        { cornu_array(floats, CORNU_F32, 1, 2), "index 4294967296 in row 1, expected 0 to 4" },
        { cornu_array(few, CORNU_F32, 1, 2), "index 2147483648 in row 1, expected 0 to 4" },
        { cornu_array(wide, CORNU_I64, 1, 2), "index 4294967296 in row 1, expected 0 to 4" },
        { cornu_array(whole, CORNU_U32, 1, 2), "index 2147483648 in row 1, expected 0 to 4" },
        { cornu_array(least, CORNU_F32, 1, 2), "index -1 in row 1, expected 0 to 4" },
    };
    static Make *const layers[] = { embedding, sparse, reversible };
    for (int d = 0; d < DEVICES; d++)
        for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
            CornuDevice *device = cornu_device_open(devices[d], .shards = 1);
            CornuModel  *model = model_of(device, layers[i]());
            for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
                expect_error(predict(model, cases[k].x), CORNU_ERR_VALUE, cases[k].part);
            cornu_model_free(model);
            cornu_device_close(device);
        }
}

/* In steps by hand nothing looks at labels before the loss; fit names the row of the data. */
static void nan_is_no_class(void **state)
{
    (void)state;
    float bad[] = { 0, NAN }, far[] = { 0, 0x1p32f }, p[2][3] = { { .2f, .3f, .5f }, { 1, 0, 0 } };
    for (int d = 0; d < DEVICES; d++)
        for (int i = 0; i < 2; i++) {
            CornuDevice *device = cornu_device_open(devices[d], .shards = 1);
            CornuLoss   *loss = cornu_sparse_categorical_crossentropy(.from_logits = i == 1);
            CornuGraph  *graph = cornu_graph_create(device);
            CornuTensor *y = cornu_graph_input(graph, cornu_type(CORNU_F32, 2));
            CornuTensor *x = cornu_graph_input(graph, cornu_type(CORNU_F32, 2, 3));
            CornuTensor *value = cornu_op_sum(loss->call(loss, y, x));
            float        out;
            CornuArray   to = cornu_array_from(&out, cornu_scalar(CORNU_F32));
            expect_ok(cornu_graph_feed(x, cornu_array(p, CORNU_F32, 2, 3)));
            expect_ok(cornu_graph_feed(y, cornu_array(bad, CORNU_F32, 2)));
            expect_error(cornu_run(graph, &value, 1, &to), CORNU_ERR_VALUE,
                         "label nan in row 1, expected a whole number");
            expect_ok(cornu_graph_feed(y, cornu_array(far, CORNU_F32, 2)));
            expect_error(cornu_run(graph, &value, 1, &to), CORNU_ERR_VALUE,
                         "label 4294967296 in row 1, expected 0 to 2");
            cornu_graph_free(graph);
            cornu_loss_free(loss);
            cornu_device_close(device);
        }
}

static void nan_is_in_no_vocabulary(void **state)
{
    (void)state;
    float       data[] = { 3, NAN, 1 };
    CornuLayer *layer = cornu_integer_lookup();
    expect_error(cornu_adapt(layer, .x = cornu_array(data, CORNU_F32, 3)), CORNU_ERR_VALUE,
                 "element 1 is nan, expected a whole number");
    cornu_layer_free(layer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nan_is_no_index),
        cmocka_unit_test(integer_inputs_take_none),
        cmocka_unit_test(steps_have_none_either),
        cmocka_unit_test(computed_indices_are_checked),
        cmocka_unit_test(large_indices_are_reported_as_they_are),
        cmocka_unit_test(nan_is_no_class),
        cmocka_unit_test(nan_is_in_no_vocabulary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
