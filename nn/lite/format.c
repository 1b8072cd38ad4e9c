/* .tflite files as a format of models (saving/formats.def). */
#include "file.h"
#include "from_model.h"

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

const CornuFormat cornu__tflite_format = {
    .suffix = ".tflite", .save = save, .export_model = export_model, .merges_lora = true,
};
