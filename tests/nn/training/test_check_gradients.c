/* cornu_check_gradients: accepts right gradients, names a wrong one, leaves the model unchanged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "../golden.h"

enum { ROWS = 6 };

static float   x[ROWS * 36];
static int32_t y[ROWS];

static CornuArray rows_x(void) { return cornu_array(x, CORNU_F32, ROWS, 6, 6, 1); }
static CornuArray rows_y(void) { return cornu_array(y, CORNU_I32, ROWS); }

static CornuModel *make_model(CornuDevice *device, CornuInitializer kernel)
{
    for (int i = 0; i < ROWS * 36; i++) x[i] = (float)(i * 29 % 53) / 26.0F - 1.0F;
    for (int i = 0; i < ROWS; i++) y[i] = i % 3;
    cornu_set_random_seed(4);
    CornuModel *model = cornu_sequential(.input_shape = { 6, 6, 1 });
    cornu_model_add(model, cornu_conv2d(3, 3, .activation = CORNU_TANH));
    cornu_model_add(model, cornu_batch_normalization());
    cornu_model_add(model, cornu_flatten());
    cornu_model_add(model, cornu_dropout(0.4));
    cornu_model_add(model, cornu_dense(8, .activation = CORNU_RELU, .kernel_initializer = kernel,
                                       .kernel_regularizer = cornu_l2(0.01)));
    cornu_model_add(model, cornu_dense(3, .activation = CORNU_SOFTMAX));
    expect_ok(cornu_compile(model, .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                            .optimizer = cornu_adam(), .device = device));
    return model;
}

static void right_gradients_agree(void **state)
{
    static const char *const devices[] = { "cpu", "tpu" };
    (void)state;
    for (int d = 0; d < 2; d++) {
        static float before[3 * 300], after[3 * 300];
        CornuDevice *device = cornu_device_open(devices[d], .threads = 1, .shards = 1 + d);
        CornuModel  *model = make_model(device, CORNU_GLOROT_UNIFORM);
        double       worst = -1.0;
        for (int i = 0; i < 2; i++)
            expect_ok(cornu_train_on_batch(model, rows_x(), rows_y(), NULL));
        for (int i = 0; i < 2; i++) {
            const CornuWeight *weight = cornu_model_find_weight(
                model, i ? "batch_normalization/moving_mean" : "conv2d/kernel");
            expect_ok(cornu_weight_read(weight, cornu_array_from(before + 300 * i, weight->type)));
        }
        expect_ok(cornu_check_gradients(model, rows_x(), rows_y(), .worst = &worst));
        assert_true(worst > 0.0 && worst < 1e-4);
        for (int i = 0; i < 2; i++) {
            const CornuWeight *weight = cornu_model_find_weight(
                model, i ? "batch_normalization/moving_mean" : "conv2d/kernel");
            expect_ok(cornu_weight_read(weight, cornu_array_from(after + 300 * i, weight->type)));
        }
        assert_memory_equal(before, after, sizeof before);
        assert_ptr_equal(cornu_model_device(model), device);
        expect_ok(cornu_train_on_batch(model, rows_x(), rows_y(), NULL));
        cornu_model_free(model);
        cornu_device_close(device);
    }
}

/* At relu's kink finite differences give the mean of both slopes, the gradient one of them. */
static void a_wrong_one_is_named(void **state)
{
    (void)state;
    CornuDevice *device = cornu_device_open("cpu", .threads = 1);
    CornuModel  *model = make_model(device, CORNU_ZEROS);
    expect_error(cornu_check_gradients(model, rows_x(), rows_y()), CORNU_ERR_VALUE,
                 "dense/kernel: the gradient by element 0 is");
    expect_ok(cornu_train_on_batch(model, rows_x(), rows_y(), NULL));
    cornu_model_free(model);
    cornu_device_close(device);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    CornuDevice *device = cornu_device_open("cpu", .threads = 1);
    CornuModel  *model = make_model(device, CORNU_GLOROT_UNIFORM);
    expect_error(cornu_check_gradients(model, rows_x()), CORNU_ERR_ARGUMENT, "are required");
    expect_error(cornu_check_gradients(model, rows_x(), rows_y(), .step = -1.0),
                 CORNU_ERR_ARGUMENT, ".step -1");
    expect_ok(cornu_compile(model, .optimizer = cornu_sgd(), .device = device));
    expect_error(cornu_check_gradients(model, rows_x(), rows_y()), CORNU_ERR_ARGUMENT,
                 "without .loss");
    cornu_model_free(model);
    cornu_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_gradients_agree),
        cmocka_unit_test(a_wrong_one_is_named),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
