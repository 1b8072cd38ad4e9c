/*
 * Random models: layers, each called on the input or an earlier layer, some on two of these.
 * A stack is plain data, so that it can be shrunk, built on any device, and printed as a program.
 */
#ifndef CORNU_TESTS_CHECK_STACK_H
#define CORNU_TESTS_CHECK_STACK_H

#include <cornu/cornu.h>

#include "trial.h"

enum { STACK_LAYERS = 16, STACK_STEPS = 3 };

typedef struct {
    int             kind;
    int             from, other;   /* 0: the input; i: layer i - 1. `other` of merges */
    int64_t         n, k, s;       /* extents, windows, strides, and other integers */
    CornuActivation act;
    CornuPadding    pad;
    bool            flag, more;    /* options of the layer */
} StackLayer;

typedef struct {
    uint64_t    seed;
    int64_t     input[4];          /* without the batch; ends at the first 0 */
    int64_t     batch;
    bool        whole;             /* data are integers from 0 to 4, else reals */
    StackLayer  layers[STACK_LAYERS];
    int         count;
    int         optimizer;
    const char *loss;
    int         shards;            /* on tpu */
} Stack;

/* How many kinds of layers there are, and the name of one: "dense". */
int         stack_kind_count(void);
const char *stack_kind_name(int kind);
const char *stack_optimizer(const Stack *stack);   /* "cornu_sgd(...)" */

/* The stack of a seed, without the layers that do not fit where they would be; false if none is
 * left. */
bool stack_generate(uint64_t seed, Stack *stack);

/* Setting number `i` to try it in; false past the last. */
bool stack_setting(const Stack *stack, int i, Setting *setting);

/* Predictions, three training steps, predictions again: on the reference device with a bound for
 * each number, and in this setting. */
Verdict stack_run(const Stack *stack, const Setting *setting);   /* in another process */
Verdict stack_run_here(const Stack *stack, const Setting *setting);

void    stack_guilty(const Stack *stack, const Setting *setting, char *text, size_t size);

/* Removes and simplifies layers while it still fails. */
void stack_shrink(Stack *stack, const Setting *setting, double seconds);

/* Its training step as compiled, with its inputs; false if there is none. */
bool stack_trial(const Stack *stack, Trial *trial);

/* A C program that prints what the setting's device and the reference predict. */
void stack_print(const Stack *stack, const Setting *setting, FILE *to);

#endif
