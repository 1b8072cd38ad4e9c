/* A weight that several nodes of an ONNX file share stays one and is trained as one: the file of a
 * model that calls its layers twice is trained as that model is. */
#include "../../../../nn/cornu.h"
#include "../../../datasets/files.h"
#include "../../../expect.h"
#include "onnx_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 4, PIXELS = 5 * 5 * 2, OUTPUTS = 3, STEPS = 4, WEIGHTS = 3 };

static CornuDevice *device;

static int open_device(void **state)
{
    (void)state;
    device = cornu_device_open("cpu");
    return !device;
}

static int close_device(void **state)
{
    (void)state;
    cornu_device_close(device);
    return 0;
}

/* Each of the three layers is called twice, all without biases. */
static CornuModel *make(void)
{
    cornu_set_random_seed(5);
    CornuSymbol *x = cornu_input(.shape = { 5, 5, 2 });
    CornuLayer  *conv = cornu_conv2d(2, 3, .padding = CORNU_SAME, .no_bias = true);
    CornuLayer  *dense = cornu_dense(2, .no_bias = true, .activation = CORNU_TANH);
    CornuLayer  *head = cornu_dense(OUTPUTS, .no_bias = true);
    CornuSymbol *y = cornu_call(conv, cornu_call(conv, x));
    y = cornu_call(dense, cornu_call(dense, y));
    CornuSymbol *mean = cornu_call(cornu_global_average_pooling2d(), y);
    CornuSymbol *most = cornu_call(cornu_global_max_pooling2d(), y);
    y = cornu_call(cornu_add(), cornu_call(head, mean), cornu_call(head, most));
    return cornu_model(.inputs = { x }, .outputs = { y });
}

static void train(CornuModel *model, float *losses, float *y)
{
    static float x[ROWS * PIXELS], want[ROWS * OUTPUTS];
    const CornuArray images = cornu_array(x, CORNU_F32, ROWS, 5, 5, 2);
    for (int i = 0; i < ROWS * PIXELS; i++) x[i] = (float)(i * 37 % 101) / 50 - 1;
    for (int i = 0; i < ROWS * OUTPUTS; i++) want[i] = (float)(i % 4) / 4;
    expect_ok(cornu_compile(model, .device = device, .optimizer = cornu_sgd(0.1),
                            .loss = cornu_loss("mse")));
    for (int i = 0; i < STEPS; i++) {
        double logs[8] = { 0 };
        expect_ok(cornu_train_on_batch(model, images,
                                       cornu_array(want, CORNU_F32, ROWS, OUTPUTS), logs));
        losses[i] = (float)logs[0];
    }
    expect_ok(cornu_predict_on_batch(model, images, cornu_array(y, CORNU_F32, ROWS, OUTPUTS)));
}

static void near(const float *a, const float *b, int count)
{
    for (int i = 0; i < count; i++)
        if (!(a[i] - b[i] < 1e-5f && b[i] - a[i] < 1e-5f))
            fail_msg("number %d is %g, not %g", i, (double)a[i], (double)b[i]);
}

static void test_tied(void **state)
{
    float losses[2][STEPS], y[2][ROWS * OUTPUTS];
    (void)state;
    CornuModel *model = make();
    expect_ok(cornu_model_save(model, onnx_file("tied", ".onnx")));
    train(model, losses[0], y[0]);
    cornu_model_free(model);
    model = cornu_model_load(onnx_file("tied", ".onnx"));
    if (!model) fail_msg("%s", cornu_error_message());
    assert_int_equal(cornu_model_weight_count(model), WEIGHTS);
    expect_ok(cornu_model_save(model, onnx_file("again", ".onnx")));
    train(model, losses[1], y[1]);
    cornu_model_free(model);
    near(losses[1], losses[0], STEPS);
    near(y[1], y[0], ROWS * OUTPUTS);
    assert_true(losses[0][STEPS - 1] < losses[0][0]);

    /* Written again, they are still shared. */
    model = cornu_model_load(onnx_file("again", ".onnx"));
    if (!model) fail_msg("%s", cornu_error_message());
    assert_int_equal(cornu_model_weight_count(model), WEIGHTS);
    cornu_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_tied, files_begin, files_end),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
