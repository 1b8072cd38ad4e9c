/* How an op whose operands are cut is done slice by slice (partition.h). */
#ifndef CORNU_DEVICE_MESH_SPLIT_H
#define CORNU_DEVICE_MESH_SPLIT_H

#include "partition.h"

/* An op, and what becomes of it. Whoever asks fills the first half. */
typedef struct {
    const CornuMesh   *mesh;
    const CornuOpCall *call;              /* its operands whole */
    const CornuType   *out;               /* likewise its results */
    int                out_count;
    const CornuLayout *have;              /* of the operands */
    unsigned           barred;            /* axes of the mesh by which nothing may be cut here */
    CornuLayout        wish;              /* of the results, for ops that go element by element and
                                             whose operands do not say */

    CornuLayout       *want;              /* of the operands; room for all */
    CornuLayout        made[CORNU_MAX_OUTPUTS];   /* of the results */
    unsigned           partial;           /* axes over which they are still to be summed */
    unsigned char      summed_blocks;     /* of the axis that is summed along, as in CornuLayout */
    unsigned           largest;           /* over which they are the largest of each slice */
    unsigned           rows;              /* which cut the axis that the op has places of */
    CornuAttributes    attributes;        /* of the op on slices */
} CornuSplit;

void cornu__split(CornuSplit *split);

/* Whether the op, which would gather an operand, keeps its cut as the ops that it is made of. */
bool cornu__split_expands(const CornuSplit *split);

/* Whether an element of a result is made of those at its place of the operands of its shape. */
bool cornu__split_goes_by_element(CornuOpId id);

/* Whether an element of a result has the same bits whatever else is computed with it: the op goes
 * by element, or moves elements. A kernel that adds up may do so otherwise for a slice. */
bool cornu__split_keeps_bits(CornuOpId id);

/* Whether the op joins blocks of axes, or pads with them: fills `want` of its operands for a result
 * in this layout. */
bool cornu__split_joins_blocks(CornuSplit *split, CornuLayout made);

/* The op that makes this layout of its results, from operands that it asks for in `want`; false if
 * that takes the whole results. For ops that make much of little, as broadcast. */
bool cornu__split_for(CornuSplit *split, CornuLayout made);

#endif
