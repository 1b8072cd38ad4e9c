/* .tflite files as a format of models (saving/formats.def). */
#include "file/file.h"
#include "rules/from_model.h"
#include "onnx/to_onnx.h"

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

/* Each operator becomes the layer of an ONNX node. */
static CornuStatus load_graph(const char *path, CornuInputShapes *shapes, CornuModel **model)
{
    CornuLiteGraph *graph;
    CornuMessage    file = { 0 };
    *model = NULL;
    CORNU__TRY(cornu__lite_open(path, &graph));
    CornuStatus status = cornu__lite_to_onnx(graph, true, &file);
    cornu__lite_graph_free(graph);
    if (!status) status = cornu__onnx_load_bytes(file.bytes, file.size, shapes, model);
    cornu__release(file.bytes);
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
