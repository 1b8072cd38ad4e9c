/* Models of tests as files, and what the ONNX runtime makes of them. */
#include "onnx_files.h"

#include "../../../../nn/model/model_internal.h"
#include "../../../datasets/files.h"
#include "../../../expect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../../../skip.h"

enum { ROWS = 3 };

const char *onnx_file(const char *name, const char *suffix)
{
    char both[100];
    snprintf(both, sizeof both, "%s%s", name, suffix);
    return files_path(folder, both);
}

/* Every fourth step is all 0, for masks. */
static CornuArray draw(CornuShape shape, bool whole)
{
    const CornuType  type = cornu_type_from(whole ? CORNU_I32 : CORNU_F32, shape);
    const CornuArray to = cornu_array_from(malloc(cornu_type_bytes(type)), type);
    const int64_t    count = cornu_type_count(type);
    const int64_t    step = shape.rank == 3 ? shape.extent[2] : count;
    for (int64_t i = 0; i < count; i++)
        cornu_array_set(to, i, whole                ? (double)(i * 7 % 10)
                               : i / step % 4 == 3 ? 0.0
                                                   : (double)(i * 37 % 101) / 25 - 2);
    return to;
}

/* Gives every weight a distinct value, so that none can be confused: between -0.4 and 0.6,
 * statistics at least 0. */
static void set_weights(CornuModel *model, bool near)
{
    uint32_t random = 1;
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        CornuWeight  *weight = cornu_model_weight(model, i);
        const int64_t count = cornu_type_count(weight->type);
        CornuArray    array = cornu_array_from(malloc(cornu_type_bytes(weight->type)),
                                               weight->type);
        float        *values = array.data;
        if (near) expect_ok(cornu_weight_read(weight, array));
        for (int64_t k = 0; k < count; k++) {
            random = random * 1664525 + 1013904223;
            const float drawn = (float)(random >> 8) / (float)(1 << 24);
            if (!near) values[k] = drawn - (weight->non_trainable ? 0 : 0.4f);
            else if (weight->type.shape.rank == 1) values[k] += 0.1f * drawn;
        }
        expect_ok(cornu_weight_write(weight, array));
        free(values);
    }
}

static CornuShape with_rows(CornuShape shape, int64_t unknown)
{
    for (int i = 1; i < shape.rank; i++)
        if (shape.extent[i] == CORNU_NONE) shape.extent[i] = unknown;
    shape.extent[0] = ROWS;
    return shape;
}

void onnx_write_case(CornuDevice *device, const char *name, CornuModel *model, bool near,
                     int64_t unknown, int opset)
{
    onnx_write_as(device, name, ".onnx", model, near, unknown, opset);
}

void onnx_write_as(CornuDevice *device, const char *name, const char *suffix, CornuModel *model,
                   bool near, int64_t unknown, int opset)
{
    CornuNamedArray arrays[2 * CORNU_MAX_MODEL_TENSORS];
    char            names[2 * CORNU_MAX_MODEL_TENSORS][16];
    CornuArray      in[CORNU_MAX_MODEL_TENSORS], out[CORNU_MAX_MODEL_TENSORS];
    int             count = 0;
    if (!model) fail_msg("%s: %s", name, cornu_error_message());
    set_weights(model, near);
    expect_ok(cornu_compile(model, .device = device));
    for (int i = 0; i < cornu_model_input_count(model); i++, count++) {
        const CornuShape shape = cornu_symbol_shape(cornu_model_input(model, i));
        in[i] = draw(with_rows(shape, unknown), cornu__model_takes_integers(model, i));
        snprintf(names[count], sizeof names[count], "x%d", i);
        arrays[count] = (CornuNamedArray){ names[count], in[i] };
    }
    for (int i = 0; i < cornu_model_output_count(model); i++, count++) {
        const CornuShape shape = cornu_symbol_shape(cornu_model_output(model, i));
        out[i] = draw(with_rows(shape, unknown), false);
        snprintf(names[count], sizeof names[count], "p%d", i);
        arrays[count] = (CornuNamedArray){ names[count], out[i] };
    }
    if (cornu_predict_on_batch_many(model, in, out))
        fail_msg("%s: %s", name, cornu_error_message());
    expect_ok(cornu_npz_write(onnx_file(name, ".npz"), arrays, count));
    if (cornu_model_export(model, onnx_file(name, suffix), opset))
        fail_msg("%s: %s", name, cornu_error_message());
    for (int i = 0; i < count; i++) free(arrays[i].array.data);
    cornu_model_free(model);
}

void onnx_run_elsewhere(int count, const char *outputs)
{
    const char *python = getenv("CORNU_PYTHON") ? getenv("CORNU_PYTHON") : "python3";
    char        command[800];
    snprintf(command, sizeof command, "%s -c 'import importlib.util as u; "
             "exit(not (u.find_spec(\"onnx\") and u.find_spec(\"onnxruntime\")))' 2>/dev/null",
             python);
    if (system(command) != 0)
        SKIP_FOR("onnxruntime: CORNU_PYTHON=an interpreter with onnx and onnxruntime");
    snprintf(command, sizeof command,
             "%s tests/nn/saving/onnx/check_onnx.py %s %d %s >/dev/null", python,
             folder, count, outputs);
    assert_int_equal(system(command), 0);
}
