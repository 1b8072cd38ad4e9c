/* Small models for the tests of .tflite files; together they have every layer that these can have,
 * with all arguments that change the operators. */
#ifndef CORNU_TESTS_NN_LITE_MODELS_H
#define CORNU_TESTS_NN_LITE_MODELS_H

#include "../../../nn/cornu.h"

typedef struct {
    const char *name;
    CornuModel *(*make)(void);
    const char *operators;   /* "CONV_2D 3 MUL 0": how many of some operators */
} LiteCase;

extern const LiteCase lite_cases[];
extern const int      lite_case_count;

#endif
