/* ONNX files of several opsets: ONNX' checker accepts them and the ONNX runtime computes what Cornu
 * does. Skipped without onnx and onnxruntime in the interpreter that CORNU_PYTHON names. */
#include "../../../../nn/cornu.h"
#include "../../../datasets/files.h"
#include "../../../expect.h"
#include "onnx_files.h"
#include "onnx_models.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

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

/* Sums by index came with opset 16. */
static bool is_refused(const char *name, int opset) { return opset < 16 && !strcmp(name, "tiles"); }

/* All models in the first opset, which has the fewest operators, and each in one of the others. */
static void test_opsets(void **state)
{
    static const int others[] = { 14, 15, 16, 17, 19, 20, 21, 23, 27 };
    enum { OTHERS = sizeof others / sizeof *others };
    char name[60];
    int  count = 0;
    (void)state;
    for (int i = 0; i < onnx_case_count; i++) {
        const int opsets[] = { 13, others[i % OTHERS] };
        for (int k = 0; k < 2; k++) {
            if (is_refused(onnx_cases[i].name, opsets[k])) continue;
            snprintf(name, sizeof name, "%s_%d", onnx_cases[i].name, opsets[k]);
            onnx_write_case(device, name, onnx_cases[i].make(), false, 0, opsets[k]);
            count++;
        }
    }
    onnx_run_elsewhere(count, "");
}

static void test_refused(void **state)
{
    (void)state;
    CornuModel *model = onnx_tiles();
    const char *path = onnx_file("refused", ".onnx");
    expect_error(cornu_model_export(model, path, 15), CORNU_ERR_UNSUPPORTED,
                 "the op gather_grad is not available in ONNX files, sums by index came with "
                 "opset 16");
    expect_error(cornu_model_export(model, path, .opset_version = 12), CORNU_ERR_VALUE,
                 "the opset version is 12, expected 13 to");
    expect_error(cornu_model_export(model, files_path(folder, "refused.keras")),
                 CORNU_ERR_UNSUPPORTED, "models cannot be exported as .keras, expected one of "
                 ".onnx");
    assert_int_equal(files_count(folder), 0);
    cornu_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_opsets, files_begin, files_end),
        cmocka_unit_test_setup_teardown(test_refused, files_begin, files_end),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
