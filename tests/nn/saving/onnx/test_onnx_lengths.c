/* ONNX files of models whose inputs have unknown extents besides the batch: one file computes
 * batches of several lengths, as Cornu does and as the ONNX runtime does; the latter is skipped
 * without onnx and onnxruntime in the interpreter that CORNU_PYTHON names. */
#include "../../../../nn/cornu.h"
#include "../../../datasets/files.h"
#include "../../../expect.h"
#include "../../golden.h"
#include "onnx_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { ANY = CORNU_NONE, MOST_BYTES = 1 << 16 };

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

/* ---- Models, whose outputs are as long as their inputs or have no length ---- */

static CornuModel *of(const char *name, CornuSymbol *x, CornuSymbol *y)
{
    return cornu_model(.inputs = { x }, .outputs = { y }, .name = name);
}

static CornuModel *windows(void)
{
    CornuSymbol *x = cornu_input(.shape = { ANY, 5 });
    CornuSymbol *y = cornu_call(cornu_conv1d(4, 3, .strides = 2, .padding = CORNU_SAME), x);
    y = cornu_call(cornu_average_pooling1d(3, 2, CORNU_SAME), y);
    y = cornu_call(cornu_conv1d_transpose(3, 3, 3, .padding = CORNU_SAME), y);
    y = cornu_call(cornu_cropping1d(.cropping = { 1, 0 }), y);
    y = cornu_call(cornu_up_sampling1d(2), y);
    y = cornu_call(cornu_conv1d(4, 2, .padding = CORNU_CAUSAL, .dilation_rate = 2), y);
    return of("windows", x, cornu_call(cornu_global_average_pooling1d(), y));
}

static CornuModel *recurrence(void)
{
    CornuSymbol *x = cornu_input(.shape = { ANY, 5 });
    CornuSymbol *y = cornu_call(cornu_masking(), x);
    y = cornu_call(cornu_bidirectional(cornu_lstm(3, .return_sequences = true)), y);
    y = cornu_call(cornu_time_distributed(cornu_layer_normalization()), y);
    y = cornu_call(cornu_gru(6, .return_sequences = true, .activation = CORNU_GELU), y);
    y = cornu_call(cornu_reshape(.target_shape = { ANY, 2, 3 }), y);
    return of("recurrence", x, cornu_call(cornu_time_distributed(cornu_simple_rnn(4)), y));
}

static CornuModel *attention(void)
{
    CornuSymbol *x = cornu_input(.shape = { ANY }), *z = cornu_input(.shape = { ANY, 4 });
    CornuSymbol *words = cornu_call(cornu_embedding(10, 4, .mask_zero = true), x);
    CornuSymbol *y = cornu_call(cornu_multi_head_attention(2, 3, .use_causal_mask = true), words,
                                words);
    y = cornu_call(cornu_layer_normalization(), cornu_call(cornu_add(), words, y));
    y = cornu_call(cornu_group_query_attention(2, 4, 2), y, z);
    y = cornu_call(cornu_additive_attention(.use_causal_mask = true), y, z);
    return cornu_model(.inputs = { x, z }, .outputs = { y }, .name = "attention");
}

static CornuModel *images(void)
{
    CornuSymbol *x = cornu_input(.shape = { ANY, ANY, 3 });
    CornuSymbol *y = cornu_call(cornu_conv2d(4, 3, .strides = { 2, 1 }, .padding = CORNU_SAME), x);
    y = cornu_call(cornu_max_pooling2d(2), y);
    y = cornu_call(cornu_up_sampling2d(2, .interpolation = CORNU_BILINEAR), y);
    y = cornu_call(cornu_group_normalization(2), y);
    y = cornu_call(cornu_resizing(5, 6, .interpolation = CORNU_NEAREST), y);
    return of("images", x, cornu_call(cornu_flatten(), y));
}

/* Halves of halves fit only for certain extents; and with an attention over both axes. */
static CornuModel *halves(void)
{
    CornuSymbol *x = cornu_input(.shape = { ANY, ANY, 2 });
    CornuSymbol *y = cornu_call(cornu_max_pooling2d(2), x);
    y = cornu_call(cornu_up_sampling2d(2), cornu_call(cornu_conv2d(2, 1), y));
    y = cornu_call(cornu_concatenate(), x, y);
    return of("halves", x, cornu_call(cornu_multi_head_attention(2, 2), y, y));
}

static CornuTensor *centred(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuShape shape = cornu_tensor_shape(x);
    (void)layer;
    (void)call;
    CornuTensor *mean = cornu_op_scale(cornu_op_reduce_sum(x, 1 << 1, true),
                                       1.0 / (double)shape.extent[1]);
    CornuTensor *last = cornu_op_slice(
        x, (const int64_t[]){ 0, shape.extent[1] - 1, 0 },
        (const int64_t[]){ shape.extent[0], 1, shape.extent[2] });
    CornuTensor *y = cornu_op_subtract(cornu_op_subtract(x, cornu_op_broadcast(mean, shape)),
                                       cornu_op_broadcast(last, shape));
    y = cornu_op_reshape(y, cornu_shape(shape.extent[0] * shape.extent[1], shape.extent[2]));
    return cornu_op_reshape(y, shape);
}

/* Written op by op. */
static CornuModel *own(void)
{
    static const CornuLayerClass kind = { .class_name = "Centred", .size = sizeof(CornuLayer),
                                          .call = centred };
    CornuSymbol *x = cornu_input(.shape = { ANY, 5 });
    return of("own", x, cornu_call(cornu_layer_create(&kind, NULL, NULL), x));
}

static const struct {
    const char *name;
    CornuModel *(*make)(void);
    int64_t     lengths[2];
} cases[] = {
    { "windows", windows, { 9, 14 } }, { "recurrence", recurrence, { 6, 9 } },
    { "attention", attention, { 5, 8 } }, { "images", images, { 10, 13 } },
    { "halves", halves, { 4, 6 } }, { "own", own, { 5, 8 } },
};
enum { CASES = sizeof cases / sizeof *cases };

/* One file for each length, which are the same byte for byte. */
static void test_lengths(void **state)
{
    static unsigned char bytes[2][MOST_BYTES];
    size_t sizes[2];
    char   name[40];
    (void)state;
    for (int i = 0; i < CASES; i++) {
        for (int k = 0; k < 2; k++) {
            snprintf(name, sizeof name, "%s_%d", cases[i].name, (int)cases[i].lengths[k]);
            cornu_clear_session();
            onnx_write_case(device, name, cases[i].make(), false, cases[i].lengths[k],
                            13 + 5 * (i % 2));
            sizes[k] = files_read(onnx_file(name, ".onnx"), bytes[k], MOST_BYTES);
        }
        assert_int_equal(sizes[0], sizes[1]);
        assert_memory_equal(bytes[0], bytes[1], sizes[0]);
    }
    onnx_run_elsewhere(2 * CASES, "");
}

static void test_refused(void **state)
{
    (void)state;
    CornuSymbol *x = cornu_input(.shape = { ANY, 3 });
    CornuModel  *model = of("refused", x, cornu_call(cornu_adaptive_max_pooling1d(2), x));
    expect_error(cornu_model_save(model, onnx_file("refused", ".onnx")), CORNU_ERR_UNSUPPORTED,
                 "adaptive_max_pooling1d: an input of unknown extents is not available in ONNX "
                 "files, what this layer makes of them depends on their numbers");
    cornu_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_lengths, files_begin, files_end),
        cmocka_unit_test_setup_teardown(test_refused, files_begin, files_end),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
