/* Nodes that were read from .onnx and .tflite files. */
#include "rules_internal.h"

const CornuLiteRow cornu__lite_imported[] = { { "OnnxNode", cornu__lite_recorded }, { 0 } };
