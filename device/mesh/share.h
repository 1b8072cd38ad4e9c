/*
 * A program shared by ranks of which each has some of its variables.
 *
 * What depends on the variables of one rank alone is computed there; what depends on those of
 * several, such as the norm of all gradients, by all of them, once they have been sent its
 * operands. So a program has rounds, between which ranks exchange values; the last one writes the
 * outputs.
 */
#ifndef CORNU_DEVICE_SHARE_H
#define CORNU_DEVICE_SHARE_H

#include "phase.h"

enum { CORNU__SHARE_ROUNDS = 6 };

/* A value that rank `from` sends to all others after a round. */
typedef struct {
    CornuValue value;
    int        from, round;
} CornuSharedValue;

typedef struct {
    int               rounds;
    CornuPhase        phases[CORNU__SHARE_ROUNDS];   /* of this rank */
    CornuSharedValue *crossings;
    int               crossing_count;
    uint32_t         *written;        /* of each output: bit r: rank r computes and writes it */
} CornuShared;

/*
 * Shares a program whose outputs are all written into inputs. held[i], bit r: rank r has input i;
 * where deals[i], held[i] becomes the ranks that compute what is written into it. On failure `to`
 * can be freed. CORNU_ERR_UNSUPPORTED if it takes too many rounds.
 */
CornuStatus cornu__share_program(const CornuProgram *program, int ranks, int rank, uint32_t *held,
                                 const bool *deals, CornuShared *to);
void        cornu__shared_free(CornuShared *shared);

#endif
