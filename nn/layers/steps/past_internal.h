/*
 * Sequences step by step: what layers keep of earlier steps. A generator (prediction/generator.h)
 * records a model with call->past for the next T steps of B sequences; each layer that looks at
 * earlier steps has a function kind->continues, which keeps what later ones need in states: keys
 * and values, the state of a recurrence, the last inputs of a convolution. States are made in the
 * order of the calls, which is the same in each program of the generator.
 *
 * T is 1; or `begins`, so that there are no earlier steps; or there is no
 * window. With a window no sequence has more steps than that.
 */
#ifndef CORNU_NN_LAYERS_PAST_INTERNAL_H
#define CORNU_NN_LAYERS_PAST_INTERNAL_H

#include "../layer_internal.h"

typedef struct CornuPast {
    CornuTensor *position;   /* i32 (B): the steps before these, of each sequence */
    CornuTensor *count;      /* i32 (B): how many of these are the sequence's, the first ones; the
                                others are not to change anything. NULL: all are */
    CornuTensor *valid;      /* bool (B, T), the same; or NULL likewise */
    int64_t      window;     /* the most steps of a sequence that layers keep, */
    bool         windowed;   /* set by those that need such a limit */
    bool         begins;     /* position is 0 for all: what was kept before is of others */
    bool         checked;    /* layers without kind->continues were looked at before */
    void        *context;    /* the next state, of this type, zeros at first; NULL, pending */
    CornuVariable *(*state)(void *context, CornuType type);
} CornuPast;

/* For kind->continues: the next state, as the steps before left it. */
CornuTensor *cornu__past_state(const CornuCall *call, CornuType type, CornuVariable **state);
/* And what these leave. */
CornuStatus  cornu__past_keep(CornuVariable *state, CornuTensor *value);

/* x (B, T, …), in its place among those of earlier steps, (B, W, …), which are kept with it: those
 * of later steps are of any value. With call->past->begins x itself. */
CornuTensor *cornu__past_join(const CornuCall *call, CornuTensor *x);

/* bool (B, 1, 1, W): whether a step is not later than the one of T = 1, and, unless distance is 0,
 * less than that before it. */
CornuTensor *cornu__past_mask(const CornuCall *call, int64_t distance);

/* x (B, T, …) after the last `steps` of earlier x, (B, steps + T, …); keeps the last ones. */
CornuTensor *cornu__past_lead(const CornuCall *call, CornuTensor *x, int64_t steps);

/* CORNU_ERR_UNSUPPORTED: "LAYER (CLASS) WHY: …", of a layer that does not go step by step
 * (layer_trace.c). */
CornuStatus cornu__past_refuse(const CornuLayer *layer, const char *why);

#endif
