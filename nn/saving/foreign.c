/* What other frameworks write and Cornu does not read: what it is, and what to export instead. */
#include "files_internal.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct { const char *suffix, *what, *advice; } foreign[] = {
    { "/saved_model.pb", "a SavedModel of TensorFlow",
      "export it to ONNX: model.export(\"model.onnx\", format=\"onnx\") in Keras 3, or python -m "
      "tf2onnx.convert --saved-model FOLDER --output model.onnx" },
    { ".pb", "a graph of TensorFlow",
      "export it to ONNX: python -m tf2onnx.convert --graphdef FILE --inputs x:0 --outputs y:0 "
      "--output model.onnx" },
    { ".pt", "a file of PyTorch, which only Python unpickles",
      "export the model to ONNX: torch.onnx.export(model, (x,), \"model.onnx\"); weights alone: "
      "safetensors.torch.save_file" },
    { ".pth", "a file of PyTorch, which only Python unpickles",
      "export the model to ONNX: torch.onnx.export(model, (x,), \"model.onnx\"); weights alone: "
      "safetensors.torch.save_file" },
    { ".ckpt", "a checkpoint of PyTorch or TensorFlow, weights without a model",
      "load it where it was written, and export the model to ONNX: torch.onnx.export, or "
      "tf2onnx.convert" },
};

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), tail = strlen(end);
    return length >= tail && !strcmp(text + length - tail, end);
}

CornuStatus cornu__refuse_foreign(const char *path)
{
    char inside[4096];
    snprintf(inside, sizeof inside, "%s/saved_model.pb", path);
    const char *is = access(inside, F_OK) ? path : inside;
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (ends_with(is, foreign[i].suffix) ||
            (*foreign[i].suffix == '/' && !strcmp(is, foreign[i].suffix + 1)))
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: this is %s, which is not read; %s", path,
                               foreign[i].what, foreign[i].advice);
    return CORNU_OK;
}
