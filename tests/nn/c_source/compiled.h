/* Models as C source, compiled here and loaded: what tests call of them. */
#ifndef CORNU_TESTS_COMPILED_H
#define CORNU_TESTS_COMPILED_H

#include "../../../nn/cornu.h"

typedef struct {
    void  *library;
    void (*init)(void);                            /* of a model with a step, as is: */
    void (*step)(const void *x, const void *y);
    void (*predict)(const void *x, void *y);       /* of these weights, or the trained ones */
    void (*save)(unsigned char *bytes);
    void (*load)(const unsigned char *bytes);
    size_t (*bytes)(void);                         /* of the weights */
} Compiled;

/* Whether there is a compiler, `cc`. */
bool     has_compiler(void);

/* Runs "COMPILER FLAGS" on FOLDER/NAME.c with every warning an error. */
void     compiles(const char *compiler, const char *name);

/* Writes, compiles and loads a model; compiled_close ends it. */
Compiled compiled_open(const char *name, CornuModel *model, bool train, int64_t batch_size);
void     compiled_close(Compiled *compiled);

#endif
