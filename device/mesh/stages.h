/*
 * A training step cut into the stages of a pipeline.
 *
 * The step of one microbatch is recorded whole, as without a pipeline, and its ops are dealt to
 * 2 * stages phases: forward in stage 0, 1, …, then backward in stage …, 1, 0. An op is in the
 * phase of its layer's stage, by its scope, or in a later one if an operand is; an op that depends
 * on weights, constants and, outside of layers, data alone is in every phase that reads it. A value
 * that one phase makes and later ones read crosses: activations forward, their gradients back, and
 * what a stage keeps from forward to backward, its stash.
 */
#ifndef CORNU_DEVICE_STAGES_H
#define CORNU_DEVICE_STAGES_H

#include "../lookup_internal.h"
#include "phase.h"
#include "timetable.h"

enum { CORNU__MAX_PHASES = 2 * CORNU_MAX_STAGES };

/* A value made in phase `from`, and read in later ones. */
typedef struct {
    CornuValue value;                /* of the recorded program */
    int        from, last;
    uint64_t   readers;              /* bit p: phase p reads it; `last` is the last of them */
} CornuCrossing;

typedef struct {
    int            stages, crossing_count;
    CornuPhase     phases[CORNU__MAX_PHASES];
    CornuCrossing *crossings;
} CornuStages;

/* What each layer of a step costs: cost[layer_of(scope)] is the time of its ops, forward and
 * backward, modelled as operations and bytes moved, in operations. */
void cornu__stages_costs(const CornuProgram *program, const CornuLookup *layer_of, double *cost);

/* Cuts `count` layers, in order, into stages so that the costliest costs as little as can be;
 * stage[i] is that of layer i. A layer that costs nothing stays with the one before it. Each stage
 * has a layer that costs something: false if there are fewer of these than stages. */
bool cornu__stages_balance(const double *cost, int count, int stages, int *stage);

/* Cuts a program, whose outputs are all written into inputs. stage_of: the stage of each layer by
 * its name; fed[i]: input i is data, else a variable. On failure `to` can be freed.
 * CORNU_ERR_UNSUPPORTED if a variable is written in a phase and read in another. */
CornuStatus cornu__stages_cut(const CornuProgram *program, const CornuLookup *stage_of, int stages,
                              const bool *fed, CornuStages *to);
void        cornu__stages_free(CornuStages *stages);

#endif
