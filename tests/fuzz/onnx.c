/* ONNX files: the bytes are a whole file, and the text of a layer's graph. */
#include "fuzz.h"

#include "../../nn/formats/base64_internal.h"
#include "../../nn/saving/onnx_read/layer_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CornuModel *model = cornu_model_load(fuzz_file("a.onnx", data, size));
    fuzz_loaded(model);
    cornu_model_free(model);
    char *text = cornu__base64(data, size);
    if (!text) abort();
    CornuLayer *layer = cornu__onnx_node_layer("node", &(CornuOnnxNodeConfig){ .graph = text });
    if (fuzz_made(layer)) {
        CornuShape shapes[CORNU_MAX_LAYER_TENSORS];
        const CornuReadGraph *graph = &((CornuOnnxNode *)layer)->model.graph;
        for (int i = 0; i < graph->input_count; i++) shapes[i] = graph->inputs[i].type.shape;
        fuzz_done(cornu_layer_build_many(layer, shapes, graph->input_count));
    }
    cornu_layer_free(layer);
    free(text);
    return 0;
}
