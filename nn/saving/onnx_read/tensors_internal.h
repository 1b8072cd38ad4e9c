/* Shared by the files that read ONNX messages. */
#ifndef CORNU_NN_ONNX_TENSORS_INTERNAL_H
#define CORNU_NN_ONNX_TENSORS_INTERNAL_H

#include "parse_internal.h"

static inline CornuStatus cornu__onnx_damaged(const char *what)
{
    return cornu__fail(CORNU_ERR_FORMAT, "%s is damaged: not a protobuf message of ONNX", what);
}

/* Files of external data, each read once. */
typedef struct CornuReadFiles CornuReadFiles;
void cornu__onnx_close_files(CornuReadFiles **files);

/* A TensorProto. `files` NULL: it is of a layer's graph, whose weights have no data, and external
 * data are refused. */
CornuStatus cornu__onnx_read_tensor(CornuArena *arena, const void *bytes, size_t size,
                                    CornuReadFiles **files, const char *path,
                                    CornuReadTensor *tensor);

/* The local functions of a model of this opset; NULL if it has none. */
typedef struct CornuReadFunctions CornuReadFunctions;
CornuStatus cornu__onnx_functions(CornuArena *arena, const CornuProtobufField *model,
                                  int64_t opset, CornuReadFunctions **to);

/* The nodes of a graph, without calls, as fields 1 of a message in the arena. Once for a model. */
CornuStatus cornu__onnx_expand(CornuReadFunctions *functions, const CornuProtobufField *graph,
                               CornuProtobufField *nodes);

#endif
