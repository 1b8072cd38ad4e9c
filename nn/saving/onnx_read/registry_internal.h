/* Looking up registered operators (operators.h). */
#ifndef CORNU_NN_ONNX_REGISTRY_INTERNAL_H
#define CORNU_NN_ONNX_REGISTRY_INTERNAL_H

#include "../operators.h"
#include "parse_internal.h"

/* Operators of .tflite files are nodes of ONNX' own domain, of a type that begins so. */
#define CORNU_READ_LITE "tflite:"

/* NULL if there is none. */
CornuOperatorFunction *cornu__registered_operator(const char *domain, const char *name);
CornuOperatorFunction *cornu__registered_node(const CornuReadNode *node);

#endif
