/* .tflite files as a format of models (saving/formats.def). */
#include "file/file.h"
#include "rules/from_model.h"
#include "onnx/to_onnx.h"
#include "run/run.h"

#include <stdio.h>
#include <string.h>

#include "../../device/memory_internal.h"

static CornuStatus save(const CornuModel *model, const CornuValues *values, const char *path)
{
    CornuLiteGraph *graph;
    CornuStatus     status = cornu__lite_from_model(model, values, &graph);
    status = status ? cornu__fail_prefix(status, path) : cornu__lite_save(graph, path);
    cornu__lite_graph_free(graph);
    return status;
}

static CornuStatus export_model(const CornuModel *model, const CornuValues *values,
                                const CornuExportConfig *config)
{
    if (config->opset_version)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .opset_version is %d; .tflite files have no "
                           "opset", config->path, config->opset_version);
    return save(model, values, config->path);
}

/* Whether a constant, or with `computed` a tensor that is computed or fed, is quantized. */
static bool is_quantized(const CornuLiteGraph *graph, bool computed)
{
    bool any = false;
    for (int i = 0; i < graph->tensor_count; i++)
        any |= graph->tensors[i].quantization.count > 0 && !graph->tensors[i].data == computed;
    return any;
}

/* Says in the note "arithmetic" how a quantized file is computed, and whether cornu_int8_load would
 * compute it in integers. */
static CornuStatus note_arithmetic(const CornuLiteGraph *graph, CornuModel *model)
{
    char text[700] = "f32, of weights that the file has as integers";
    const bool whole = is_quantized(graph, true);
    if (whole) {
        CornuLiteRun     *run = cornu__lite_run_create(graph, 1);
        const CornuStatus status = run ? CORNU_OK : cornu_error_take();
        cornu__lite_run_free(run);
        if (status == CORNU_ERR_MEMORY) return status;
        snprintf(text, sizeof text, "f32, rounded to the file's integers after each operator; %s%s",
                 run ? "cornu_int8_load computes it in integers alone"
                     : "cornu_int8_load does not compute it in integers alone: ",
                 run ? "" : cornu_error_message());
    }
    return cornu_model_set_note(model, "arithmetic", text);
}

/* Each operator becomes the layer of an ONNX node. */
static CornuStatus load_graph(const char *path, CornuInputShapes *shapes, CornuModel **model)
{
    CornuLiteGraph *graph;
    CornuMessage    file = { 0 };
    *model = NULL;
    CORNU__TRY(cornu__lite_open(path, &graph));
    CornuStatus status = cornu__lite_to_onnx(graph, true, &file);
    if (!is_quantized(graph, true) && !is_quantized(graph, false)) {   /* no note is needed */
        cornu__lite_graph_free(graph);
        graph = NULL;
    }
    if (!status) status = cornu__onnx_load_bytes(file.bytes, file.size, shapes, model);
    if (!status && graph) status = note_arithmetic(graph, *model);
    cornu__lite_graph_free(graph);
    cornu__release(file.bytes);
    cornu__give_back_memory();
    if (!status) return CORNU_OK;
    cornu_model_free(*model);
    *model = NULL;
    return status;
}

static CornuModel *load_shaped(const char *path, CornuInputShapes *shapes)
{
    CornuModel *model;
    return load_graph(path, shapes, &model) ? cornu__null() : model;
}

static CornuModel *load(const char *path, bool compile, CornuDevice *device)
{
    (void)device;
    if (compile)
        return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "does not say what it was compiled with, as "
                                ".keras files do; load it by cornu_model_load, and compile it");
    return load_shaped(path, NULL);
}

const CornuFormat cornu__tflite_format = {
    .suffix = ".tflite", .save = save, .export_model = export_model, .load = load,
    .load_shaped = load_shaped, .merges_lora = true,
};
