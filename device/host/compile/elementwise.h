/*
 * Groups: elementwise ops that run as one kernel.
 *
 * All ops of a group have the same number of elements. The group runs block by block:
 * each op is one vector loop (vector.h) over a block, values between ops stay in
 * registers, which are arrays in the first-level cache, and only what others need goes to
 * memory. So an Adam update reads and writes each of w, m and v once.
 *
 * A group also looks through ops that compute nothing: a reshape is read in place, a
 * broadcast through an access, a constant becomes a register filled once.
 */
#ifndef CORNU_DEVICE_HOST_ELEMENTWISE_H
#define CORNU_DEVICE_HOST_ELEMENTWISE_H

#include "../../program.h"
#include "../machine/threads.h"
#include "../machine/vector.h"

/*
 * Which element of an operand belongs to element i of the group: i is taken apart by
 * `extent`, row-major, and the indices are weighed by `stride`, in elements. Axes that
 * can be merged are.
 *     rank 0                        a scalar
 *     rank 1, stride 1              every element in turn
 *     rank 2, strides 0 1           period: a bias along the last axis
 *     rank 2, strides 1 0           each element repeated: a row's maximum
 */
typedef struct {
    int     rank;
    int64_t extent[CORNU_MAX_RANK], stride[CORNU_MAX_RANK];
} CornuAccess;

/* The value that is really read where a group reads `value`, and how. */
CornuValue cornu__elementwise_source(const CornuProgram *program, CornuValue value,
                                     CornuAccess *access);

/* Whether a group can compute the op. Broadcast, reshape and constant are looked through
 * and do not count. */
bool cornu__elementwise_computes(const CornuVectors *vectors, const CornuProgram *program,
                                 const CornuProgramOp *op);

typedef struct CornuGroup CornuGroup;

/*
 * Makes a group of the ops whose numbers stand in `ops`, ascending. `outputs` are the
 * values to be written to memory: those of members, or a broadcast, reshape or constant
 * to be written out. NULL and CORNU_ERR_MEMORY.
 */
CornuGroup *cornu__group_create(const CornuVectors *vectors, const CornuProgram *program,
                                const int *ops, int op_count, const CornuValue *outputs,
                                int output_count);
void        cornu__group_free(CornuGroup *group);

/* The values it reads, in the order in which cornu__group_run takes them. */
int               cornu__group_input_count(const CornuGroup *group);
const CornuValue *cornu__group_inputs(const CornuGroup *group);

/* Whether output `out` may be written over input `in`: each of its elements is written
 * after all that is computed from the same element of the input. */
bool cornu__group_in_place(const CornuGroup *group, int in, int out);

/* Prints " of 1024: multiply add relu". */
void cornu__group_print(const CornuGroup *group, FILE *to);

/* Bytes of scratch memory for cornu__group_run. */
size_t cornu__group_scratch(const CornuGroup *group, int threads);

/* CORNU_ERR_VALUE if the operands of a random_uniform do not fit in 32 bits. */
CornuStatus cornu__group_run(const CornuGroup *group, const void *const *in, void *const *out,
                             CornuThreads *threads, void *scratch);

#endif
