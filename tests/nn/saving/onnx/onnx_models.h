/* Small models for the tests of ONNX files; together they have every class of layers and all
 * arguments that change the nodes. */
#ifndef CORNU_TESTS_NN_ONNX_MODELS_H
#define CORNU_TESTS_NN_ONNX_MODELS_H

#include "../../../../nn/cornu.h"

typedef struct {
    const char *name;
    CornuModel *(*make)(void);
    const char *nodes;   /* "Conv 3 Transpose 2": how many of some operators; "constants 5" */
} OnnxCase;

/* A model of user-defined layers (onnx_own.c). */
CornuModel *onnx_own_layers(void);
/* Models of layers that prepare data (onnx_prepared.c). */
CornuModel *onnx_augmented(void);
CornuModel *onnx_categories(void);
CornuModel *onnx_tiles(void);
CornuModel *onnx_sounds(void);

/* onnx_scores.c */
CornuModel *onnx_scores(void);
CornuModel *onnx_products(void);

extern const OnnxCase onnx_cases[];
extern const int      onnx_case_count;

#endif
