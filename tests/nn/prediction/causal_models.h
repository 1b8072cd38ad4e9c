/* Small causal models of tokens, for the tests of generators. */
#ifndef CORNU_TESTS_NN_CAUSAL_MODELS_H
#define CORNU_TESTS_NN_CAUSAL_MODELS_H

#include "../../../nn/cornu.h"

enum { VOCABULARY = 23, CAUSAL_STEPS = 256, CASES = 7 };

/* What is between embeddings of tokens and logits; `windowed`: it needs a window. */
typedef struct {
    const char *name;
    CornuSymbol *(*layers)(CornuSymbol *x);
    bool windowed;
} CausalCase;

extern const CausalCase causal_cases[CASES];
enum { CAUSAL_GPT, CAUSAL_LSTM = 2, CAUSAL_WAVENET = 5, CAUSAL_MIXED };   /* some of them */

/* Model i of these for so many tokens, at most CAUSAL_STEPS, on the device or on its own. */
CornuModel *causal_model(int i, int64_t steps, CornuDevice *device);

/* Its parts. */
CornuSymbol *causal_embedded(CornuSymbol *tokens);
CornuSymbol *causal_lstm(CornuSymbol *x);
CornuModel  *causal_predicting(CornuSymbol *tokens, CornuSymbol *x);

#endif
