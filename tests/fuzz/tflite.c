/* .tflite files: the bytes are a whole file, as a graph and as a model. */
#include "fuzz.h"

#include "../../nn/lite/file/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CornuLiteGraph *graph;
    if (fuzz_done(cornu__lite_read(data, size, &graph))) {
        CornuMessage file = { 0 };
        fuzz_done(cornu__lite_write(graph, &file));
        fuzz_read(file.bytes, file.size);
        free(file.bytes);
    }
    cornu__lite_graph_free(graph);
    CornuModel *model = cornu_model_load(fuzz_file("a.tflite", data, size));
    fuzz_loaded(model);
    cornu_model_free(model);
    return 0;
}
