/* .tflite files of others: their operators, variables, branches and quantized numbers, by what
 * LiteRT's interpreter computes from them (tests/golden/make_lite_read.py). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../../expect.h"
#include "../../../nn/cornu.h"
#include "../../../nn/lite/file/file.h"

static CornuDevice *device;

static int open_device(void **state)
{
    (void)state;
    return (device = cornu_device_open("cpu")) ? 0 : -1;
}

static int close_device(void **state)
{
    (void)state;
    cornu_device_close(device);
    return 0;
}

typedef struct { char text[100]; } Path;
static const char *golden(Path *path, const char *name, const char *suffix)
{
    snprintf(path->text, sizeof path->text, "tests/golden/lite_read/%s%s", name, suffix);
    return path->text;
}

/* Row `run` of an array whose axis 0 are runs. */
static CornuArray run_of(CornuArray all, int64_t run)
{
    CornuArray one = all;
    one.type.shape.rank--;
    memmove(one.type.shape.extent, one.type.shape.extent + 1,
            (size_t)one.type.shape.rank * sizeof *one.type.shape.extent);
    one.data = (char *)all.data + (size_t)run * cornu_type_bytes(one.type);
    return one;
}

static CornuArray find(CornuNpz *npz, char letter, int i)
{
    char name[16];
    snprintf(name, sizeof name, "%c%d", letter, i);
    const CornuNamedArray *found = cornu_npz_find(npz, name);
    if (!found) fail_msg("no array %s", name);
    return found->array;
}

/* One run after another: p0, p1, … within `tolerance`. */
static void expect_runs(CornuModel *model, CornuNpz *npz, const char *name, double tolerance)
{
    const int64_t runs = find(npz, 'x', 0).type.shape.extent[0];
    CornuArray    in[CORNU_MAX_MODEL_TENSORS], out[CORNU_MAX_MODEL_TENSORS];
    for (int64_t r = 0; r < runs; r++) {
        for (int i = 0; i < cornu_model_input_count(model); i++)
            in[i] = run_of(find(npz, 'x', i), r);
        for (int i = 0; i < cornu_model_output_count(model); i++) {
            out[i] = run_of(find(npz, 'p', i), r);
            out[i].type.dtype = CORNU_F32;
            out[i].data = malloc(cornu_type_bytes(out[i].type));
        }
        if (cornu_predict_on_batch_many(model, in, out))
            fail_msg("%s: %s", name, cornu_error_message());
        for (int i = 0; i < cornu_model_output_count(model); i++) {
            const CornuArray want = run_of(find(npz, 'p', i), r);
            for (int64_t k = 0; k < cornu_type_count(want.type); k++) {
                const double got = (double)((float *)out[i].data)[k], x = cornu_array_get(want, k);
                if (!(got - x <= tolerance && x - got <= tolerance))
                    fail_msg("%s: output %d of run %d, element %d: %g, not %g", name, i, (int)r,
                             (int)k, got, x);
            }
            free(out[i].data);
        }
    }
}

static void expect_file(const char *name, double tolerance)
{
    Path        path;
    CornuModel *model = cornu_model_load(golden(&path, name, ".tflite"));
    CornuNpz   *npz = cornu_npz_open(golden(&path, name, ".npz"));
    if (!model || !npz) fail_msg("%s: %s", name, cornu_error_message());
    expect_ok(cornu_compile(model, .device = device));
    expect_runs(model, npz, name, tolerance);
    cornu_model_free(model);
    cornu_npz_close(npz);
}

static void test_operators(void **state)
{
    (void)state;
    static const char *const names[] = { "pads", "blocks", "splits", "slices", "lookups",
        "arithmetic", "windows", "spectrum", "volumes", "extents", "atrous" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) expect_file(names[i], 1e-5);
}

static void test_sparse_constants_and_custom_operators(void **state)
{
    (void)state;
    expect_file("sparse", 1e-5);
    expect_file("transpose_bias", 1e-5);
}

static void test_branches(void **state)
{
    (void)state;
    expect_file("branch", 1e-6);
}

/* States go on from run to run, and begin anew when they are reset. */
static void test_variables(void **state)
{
    (void)state;
    Path        path;
    CornuModel *model = cornu_model_load(golden(&path, "variables", ".tflite"));
    CornuNpz   *npz = cornu_npz_open(golden(&path, "variables", ".npz"));
    if (!model || !npz) fail_msg("%s", cornu_error_message());
    expect_ok(cornu_compile(model, .device = device));
    expect_runs(model, npz, "variables", 1e-5);
    expect_ok(cornu_model_reset_states(model));
    expect_runs(model, npz, "variables, again", 1e-5);
    float             x[3] = { 1, 2, 3 }, y[3], z[3];
    const CornuArray  in = cornu_array(x, CORNU_F32, 1, 1, 3);
    const CornuArray  outs[] = { cornu_array(y, CORNU_F32, 1, 3), cornu_array(z, CORNU_F32, 1, 3) };
    CornuPredictor   *predictor = cornu_predictor(model);
    expect_error(cornu_predictor_predict(predictor, &in, outs), CORNU_ERR_UNSUPPORTED, "stateful");
    cornu_predictor_free(predictor);
    cornu_model_free(model);
    cornu_npz_close(npz);
}

/* Inputs and outputs are the stored integers. Rounding may differ by a step where activations have
 * 16 bits, of which there are 65,536. */
static void test_quantized_files(void **state)
{
    (void)state;
    expect_file("int8", 0.0);
    expect_file("bytes", 0.0);
    expect_file("int16", 1.0);
    expect_file("dynamic", 1e-2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operators),
        cmocka_unit_test(test_sparse_constants_and_custom_operators),
        cmocka_unit_test(test_branches),
        cmocka_unit_test(test_variables),
        cmocka_unit_test(test_quantized_files),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
