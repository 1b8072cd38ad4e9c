/* What small models as Keras writes them (test_models) do not reach: sums by equations, low-rank
 * adaptation and reversed calls by their functions, and mistakes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../nn/layers/einsum_internal.h"
#include "../../datasets/files.h"
#include "../golden.h"

/* ---- Equations ---- */

/* 1, 2, 3, … of a shape */
static CornuTensor *counted(CornuGraph *graph, CornuShape shape)
{
    CornuTensor *flat = cornu_op_iota(graph, cornu_type(CORNU_F32, cornu_shape_count(shape)), 0);
    return cornu_op_reshape(cornu_op_shift(flat, 1.0), shape);
}

static void expect_sum(const char *equation, int count, const CornuShape *shapes,
                       CornuShape result, const float *want)
{
    CornuDevice *device = cornu_device_open("cpu");
    CornuGraph  *graph = cornu_graph_create(device);
    CornuTensor *x[3];
    float        got[64];
    for (int i = 0; i < count; i++) x[i] = counted(graph, shapes[i]);
    CornuTensor *y = cornu__einsum(equation, x, count, CORNU_F32);
    if (!y) fail_msg("%s: %s", equation, cornu_error_message());
    assert_true(cornu_shape_equal(cornu_tensor_shape(y), result));
    CornuArray to = cornu_array_from(got, cornu_tensor_type(y));
    expect_ok(cornu_run(graph, &y, 1, &to));
    for (int64_t i = 0; i < cornu_shape_count(result); i++) assert_true(got[i] == want[i]);
    cornu_graph_free(graph);
    cornu_device_close(device);
}

static void equations_say_what_is_summed(void **state)
{
    (void)state;
    const CornuShape two = cornu_shape(2, 2), column = cornu_shape(2, 1), one = cornu_shape(2);
    expect_sum("ab,bc->ac", 2, (CornuShape[]){ two, two }, two, (float[]){ 7, 10, 15, 22 });
    expect_sum("ab,bc", 2, (CornuShape[]){ two, two }, two, (float[]){ 7, 10, 15, 22 });
    expect_sum("ba", 1, (CornuShape[]){ two }, two, (float[]){ 1, 3, 2, 4 });
    expect_sum("ab->", 1, (CornuShape[]){ two }, (CornuShape){ .rank = 0 }, (float[]){ 10 });
    expect_sum("a,b->ba", 2, (CornuShape[]){ one, one }, two, (float[]){ 1, 2, 2, 4 });
    expect_sum("ab,ab->a", 2, (CornuShape[]){ two, column }, one, (float[]){ 3, 14 });
    expect_sum("ab,cd->ac", 2, (CornuShape[]){ two, two }, two, (float[]){ 9, 21, 21, 49 });
    expect_sum("...b,bc->...c", 2, (CornuShape[]){ two, two }, two, (float[]){ 7, 10, 15, 22 });
    expect_sum("...,...b->...b", 2, (CornuShape[]){ one, column }, cornu_shape(2, 1),
               (float[]){ 1, 4 });
    expect_sum("ab,bc,cd->ad", 3, (CornuShape[]){ two, two, two }, two,
               (float[]){ 37, 54, 81, 118 });
}

static void refuses_equation(const char *equation, int count, CornuStatus status, const char *part)
{
    CornuDevice *device = cornu_device_open("reference");
    CornuGraph  *graph = cornu_graph_create(device);
    CornuTensor *x[3];
    for (int i = 0; i < count; i++) x[i] = counted(graph, cornu_shape(2, i + 2));
    assert_null(cornu__einsum(equation, x, count, CORNU_F32));
    expect_error(cornu_error_take(), status, part);
    cornu_graph_free(graph);
    cornu_device_close(device);
}

static void mistakes_in_equations_are_named(void **state)
{
    (void)state;
    refuses_equation("ab,cb->ac", 2, CORNU_ERR_SHAPE, "the axis 'b' has the extents 2 and 3");
    refuses_equation("abc,cb->ac", 2, CORNU_ERR_SHAPE, "names 3 axes in operand 0");
    refuses_equation("ab->ad", 1, CORNU_ERR_ARGUMENT, "the result has 'd', which no operand has");
    refuses_equation("aa->a", 1, CORNU_ERR_UNSUPPORTED, "has 'a' twice");
    refuses_equation("ab", 2, CORNU_ERR_ARGUMENT, "has 1 operands, 2 tensors were given");
    refuses_equation("ab,cd", 1, CORNU_ERR_ARGUMENT, "more operands than the 1 tensors");
    refuses_equation("a1->a", 1, CORNU_ERR_SHAPE, "names 1 axes");
    refuses_equation("ab->a>", 1, CORNU_ERR_ARGUMENT, "has '>'");
}

/* ---- Low-rank adaptation ---- */

static void read_weight(const CornuModel *model, const char *path, float *to)
{
    const CornuWeight *weight = cornu_model_find_weight(model, path);
    if (!weight) fail_msg("no weight %s", path);
    expect_ok(cornu_weight_read(weight, cornu_array_from(to, weight->type)));
}

static void adapted_kernels_are_frozen_and_saved_as_sums(void **state)
{
    (void)state;
    cornu_set_random_seed(1);   /* with a larger rate some initial weights diverge */
    CornuSymbol *in = cornu_input(.shape = { 3 }, .name = "in");
    CornuSymbol *out = cornu_call(cornu_dense(4, .name = "d"), in);
    CornuModel  *model = cornu_model(.inputs = { in }, .outputs = { out });
    float        x[6] = { 1, -2, 3, 0.5f, 1, -1 }, y[8] = { 1, 2, 3, 4 }, p[8], q[8];
    float        before[12], after[12], b[8];
    CornuLayer  *layer = cornu_model_find_layer(model, "d");
    expect_ok(cornu_layer_enable_lora(layer, 2, 4.0));
    expect_error(cornu_layer_enable_lora(layer, 2, 0.0), CORNU_ERR_ARGUMENT, "already enabled");
    expect_ok(cornu_compile(model, .optimizer = cornu_sgd(.learning_rate = 0.01),
                            .loss = cornu_loss("mse")));
    read_weight(model, "d/kernel", before);
    double values[4];
    for (int i = 0; i < 3; i++)
        expect_ok(cornu_train_on_batch(model, cornu_array(x, CORNU_F32, 2, 3),
                                       cornu_array(y, CORNU_F32, 2, 4), values));
    read_weight(model, "d/kernel", after);
    read_weight(model, "d/lora_kernel_b", b);
    assert_memory_equal(before, after, sizeof before);
    assert_true(b[0] != 0.0f);
    expect_ok(cornu_predict_on_batch(model, cornu_array(x, CORNU_F32, 2, 3),
                                     cornu_array(p, CORNU_F32, 2, 4)));
    const char *path = files_path(folder, "lora.keras");
    expect_ok(cornu_model_save(model, path));
    read_weight(model, "d/lora_kernel_b", after);
    assert_memory_equal(b, after, sizeof b);   /* saving changes nothing */
    CornuModel *again = cornu_model_load(path);
    assert_non_null(again);
    expect_ok(cornu_compile(again));
    read_weight(again, "d/lora_kernel_b", b);
    assert_true(b[0] == 0.0f);
    expect_ok(cornu_predict_on_batch(again, cornu_array(x, CORNU_F32, 2, 3),
                                     cornu_array(q, CORNU_F32, 2, 4)));
    for (int i = 0; i < 8; i++) assert_float_equal(p[i], q[i], 1e-5);
    cornu_model_free(again);
    cornu_model_free(model);
}

static void adaptation_has_conditions(void **state)
{
    (void)state;
    CornuLayer *plain = cornu_dropout(0.5), *bound = cornu_dense(2, .kernel_constraint =
                                                                        cornu_max_norm());
    const CornuShape shape = cornu_shape(CORNU_NONE, 3);
    expect_error(cornu_layer_enable_lora(plain, 2, 0.0), CORNU_ERR_ARGUMENT,
                 "layers of class Dropout have no low-rank adaptation");
    expect_error(cornu_layer_enable_lora(bound, 0, 0.0), CORNU_ERR_ARGUMENT, ".lora_rank is 0");
    expect_ok(cornu_layer_build(bound, shape));
    expect_error(cornu_layer_enable_lora(bound, 2, 0.0), CORNU_ERR_ARGUMENT,
                 "kernel has a constraint");
    cornu_layer_free(plain);
    cornu_layer_free(bound);
}

/* ---- Mistakes in layers ---- */

static void refuses(CornuLayer *layer, const char *part)
{
    assert_null(layer);
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, part);
}

static void refuses_input(CornuLayer *layer, int count, const CornuShape *in, const char *part)
{
    assert_int_not_equal(cornu_layer_build_many(layer, in, count), CORNU_OK);
    if (!strstr(cornu_error_message(), part)) fail_msg("%s", cornu_error_message());
    cornu_error_take();
    cornu_layer_free(layer);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    const CornuShape a = cornu_shape(CORNU_NONE, 4, 3), b = cornu_shape(CORNU_NONE, 5, 2);
    refuses(cornu_einsum_dense("ab,bc"), "einsum_dense: .equation is \"ab,bc\"");
    refuses(cornu_einsum_dense("...ab...,bc->...ac...", .output_shape = { 3 }), ".equation is");
    refuses(cornu_activity_regularization(.l1 = -1.0), ".l1 is -1");
    refuses(cornu_attention(.dropout = 1.0), "attention: .dropout is 1");
    refuses(cornu_group_query_attention(4, 3, 2), ".num_query_heads is 3, expected a multiple");
    refuses(cornu_spectral_normalization(), ".layer is required");
    refuses(cornu_reversible_embedding(3, 2, .reverse_dtype = "int8"), ".reverse_dtype is int8");
    refuses_input(cornu_einsum_dense("abc,cd->abd", .output_shape = { 2, 6 }), 1, &a,
                  "the axis 'b' has the extent 4 in the input and 2 in .output_shape");
    refuses_input(cornu_einsum_dense("abc,ce->abd", .output_shape = { 4, 6 }), 1, &a,
                  "the kernel's axis 'e' is neither");
    refuses_input(cornu_einsum_dense("abc,cd->abd", .output_shape = { 4, 6 }, .bias_axes = "c"), 1,
                  &a, ".bias_axes has 'c'");
    refuses_input(cornu_attention(), 1, &a, "got 1 tensors, expected query and value");
    refuses_input(cornu_attention(), 2, (CornuShape[]){ a, b }, "expected the same last extent");
    refuses_input(cornu_additive_attention(), 3, (CornuShape[]){ a, b, a },
                  "expected the same number of steps");
    refuses_input(cornu_spectral_normalization(cornu_dropout(0.5)), 1, &a,
                  "has no kernel and no embeddings");
    CornuSymbol *in = cornu_input(.shape = { 3 });
    assert_null(cornu_call_reverse(cornu_dense(2), in));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "have no reverse");
    cornu_clear_session();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equations_say_what_is_summed),
        cmocka_unit_test(mistakes_in_equations_are_named),
        cmocka_unit_test(adapted_kernels_are_frozen_and_saved_as_sums),
        cmocka_unit_test(adaptation_has_conditions),
        cmocka_unit_test(mistakes_are_named),
    };
    if (cornu_set_dtype_policy("float32")) return 1;
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
