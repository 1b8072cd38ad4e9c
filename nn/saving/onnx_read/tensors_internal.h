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

#endif
