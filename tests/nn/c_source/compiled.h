/* Models as C source, compiled here and loaded: what tests call of them. */
#ifndef CORNU_TESTS_COMPILED_H
#define CORNU_TESTS_COMPILED_H

#include "../../../nn/cornu.h"

typedef struct {
    void  *library;
    void (*init)(void);                            /* of a model with a step, as is: */
    void (*step)(const void *x, const void *y);    /* its first input, its first output */
    void (*predict)(const void *const *x, void *y);/* of these weights, or the trained ones; all
                                                      inputs, the first output */
    void (*save)(unsigned char *bytes);
    void (*load)(const unsigned char *bytes);
    size_t (*bytes)(void);                         /* of the weights */
} Compiled;

/* Whether there is a compiler, `cc`. */
bool     has_compiler(void);

/* Runs "COMPILER FLAGS" on FOLDER/NAME.c with every warning an error. */
void     compiles(const char *compiler, const char *name);

/* Writes, compiles and loads a model; compiled_close ends it. .path and .name are those of `name`.
 * Weights in a file of their own, .weights, are read when the model predicts first. */
Compiled compiled_open(const char *name, CornuCompileToCConfig config);
void     compiled_close(Compiled *compiled);

#endif
