/* The pass of partition.h at work: partition.c goes through the ops, forms.c brings their operands
 * into other layouts, loop.c has those whose attributes hold a program. */
#ifndef CORNU_DEVICE_MESH_PARTITION_INTERNAL_H
#define CORNU_DEVICE_MESH_PARTITION_INTERNAL_H

#include "places.h"
#include "split.h"

/* A value of the recorded program in one layout. */
typedef struct {
    CornuLayout   layout;
    CornuValue    value;     /* of the partitioned program */
    unsigned char partial;   /* axes over which it is still to be summed */
    int           turn;      /* gathered for this layer's turn alone; 0: for all readers */
    int           next;      /* another form of the same value; -1: none */
} Form;

/* In which layout all that read a value want it. */
typedef struct {
    CornuLayout layout;
    enum { NOBODY, ALIKE, OTHERWISE } readers;
} Wish;

typedef struct {
    const CornuProgram *from;
    CornuProgram       *to;
    const CornuMesh    *mesh;
    const CornuLayout  *layouts;   /* by input */
    const CornuLaid    *laid;
    int                 laid_count;
    unsigned            data;
    int                 turn;      /* counts the runs of ops of one layer, forward or backward   */
    int                 apart;     /* the largest number of ops kept apart in `from`           */
    int                *uses;      /* by value: how often it is an operand */
    int                *forms;     /* by value: as the op made it, then those it was brought to */
    Wish               *wishes;    /* by value */
    Form               *form;
    int                 form_count, form_space;
    CornuType          *types;     /* room for an op's operands */
    CornuLayout        *have, *want;
    CornuValue         *in;
} Partition;

/* ---- partition.c ---- */

/* Room for what is known of the values of `from`, and for an op. Release it also on failure. */
CornuStatus cornu__partition_reserve(Partition *p);
void        cornu__partition_release(Partition *p);

/* Somebody reads the value in this layout; NULL: in any. */
void cornu__partition_wish(Partition *p, CornuValue value, const CornuLayout *layout);
/* From the wishes for outputs those for what they are made of. */
void cornu__partition_spread_wishes(Partition *p);

/* Records what becomes of an op that is none between shards. */
CornuStatus cornu__partition_op(Partition *p, const CornuProgramOp *op);

/* ---- loop.c ---- */

/* Whether the op is a loop, or one that is made of a loop, by a constant that is cut: it is done in
 * slices. A recurrence whose gates are no blocks is not. */
bool        cornu__partition_loops(const Partition *p, const CornuProgramOp *op);
/* Records a scan in slices. */
CornuStatus cornu__partition_loop(Partition *p, const CornuProgramOp *op);

/* ---- forms.c ---- */

/* A value of the recorded program has this form, too. */
CornuStatus cornu__form_add(Partition *p, CornuValue old, CornuLayout layout, unsigned partial,
                            int turn, CornuValue value);
/* As its op made it, or as an input is given. */
const Form *cornu__form_made(const Partition *p, CornuValue old);
/* The value in this layout, summed. */
CornuStatus cornu__form_bring(Partition *p, CornuValue old, CornuLayout want, CornuValue *out);
/* Of a value that all shards have each one's slice. */
CornuStatus cornu__form_slice(Partition *p, CornuLayout layout, CornuValue *x);

CornuCutAxis cornu__form_cut(const Partition *p, unsigned axes, int64_t extent);

#endif
