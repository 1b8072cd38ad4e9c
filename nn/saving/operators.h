/*
 * Operators that files of others have and Cornu does not: custom operators of .tflite files, and
 * nodes of a domain of their own in .onnx files. A function that records them as ops is registered
 * before such a file is loaded; the model then predicts, trains and is saved as any other.
 *
 *     static CornuStatus scale_shift(const CornuOperatorCall *call)
 *     {
 *         float by[2];
 *         if (call->option_bytes < sizeof by) return CORNU_ERR_FORMAT;
 *         memcpy(by, call->options, sizeof by);
 *         call->out[0] = cornu_op_shift(cornu_op_scale(call->in[0], by[0]), by[1]);
 *         return CORNU_OK;
 *     }
 *     cornu_register_operator("tflite", "ScaleShift", scale_shift);
 */
#ifndef CORNU_NN_OPERATORS_H
#define CORNU_NN_OPERATORS_H

#include "../../tensor/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A node that is recorded. Tensors have the axes of the file: images of .tflite files are NHWC,
 * those of .onnx files NCHW. Shapes are those of the batch that is recorded. */
typedef struct {
    CornuGraph         *graph;
    const char         *name;          /* of the operator */
    CornuTensor *const *in;            /* NULL: an omitted operand */
    int                 in_count;
    CornuTensor       **out;           /* to be set, all of them */
    int                 out_count;
    const void         *options;       /* of a .tflite file: the operator's own bytes, as its */
    size_t              option_bytes;  /* maker laid them out; else NULL and 0               */
    const void         *node;          /* internal */
} CornuOperatorCall;

/* CORNU_OK, or another status, which fails the load; a pending error of an op has its own
 * message. */
typedef CornuStatus CornuOperatorFunction(const CornuOperatorCall *call);

/* `domain` is that of .onnx nodes, such as "com.example", or "tflite". Both strings are copied. A
 * function registered again replaces the other; NULL removes it. From any thread. Models of such
 * files, and those saved from them, need the registration wherever they are loaded.
 * CORNU_ERR_ARGUMENT for an empty string, one of over 100 characters, the domains "" and "ai.onnx",
 * or more than 256 operators. */
CornuStatus cornu_register_operator(const char *domain, const char *name,
                                    CornuOperatorFunction *function);

/* Whether there is a function for it. */
bool cornu_operator_registered(const char *domain, const char *name);

/* A float attribute of an .onnx node; `usual` where it has none of this name. */
double      cornu_operator_number(const CornuOperatorCall *call, const char *attribute,
                                  double usual);
/* Likewise an integer. */
int64_t     cornu_operator_integer(const CornuOperatorCall *call, const char *attribute,
                                   int64_t usual);
/* Likewise a string, valid during the call. */
const char *cornu_operator_text(const CornuOperatorCall *call, const char *attribute,
                                const char *usual);

#ifdef __cplusplus
}
#endif
#endif
