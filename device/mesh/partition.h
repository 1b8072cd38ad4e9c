/*
 * Partitioning: a program for the shards of a mesh, whose values may be cut into slices.
 *
 * The program is recorded as if each value were whole, for as many shards as share the rows of a
 * batch. A layout says of an input how it is cut; the pass finds a layout for every other value and
 * records the ops on slices, with exchanges where a value is needed in another layout. So nothing
 * that records programs, no layer, gradient or optimizer, knows of layouts.
 *
 * A value is cut along some of its axes, each by some axes of the mesh; it may also be partial:
 * what each shard has is still to be summed over some axes of the mesh. An op whose operands are
 * cut keeps the cut where it treats an axis element by element (rows/axes.h), makes a partial value
 * where it sums along the axis, and else has its operand gathered first. So the product of x and W,
 * cut along its columns, is cut; the next one, of that and a W cut along its rows, is partial, and
 * summed over the shards before anything else reads it.
 *
 * Along the axes that share the batch, `data`, values vary as the recorded program says; what is
 * cut along them is gathered before it meets a value that varies or is added up, and a gradient
 * that is summed over them and wanted cut is reduced and scattered at once. A layer gathers for
 * itself, forward and backward, in ops that are kept apart, so that what is whole is in memory for
 * its turn alone. Of a program that was recorded for whole batches `data` is 0: inputs are cut
 * along the batch's axes as along any others, and ops between shards are between none.
 *
 * Source: Xu et al., GSPMD, arXiv 2105.04663, sections 3 and 4; Shoeybi et al., Megatron-LM, arXiv
 * 1909.08053, section 3.
 */
#ifndef CORNU_DEVICE_MESH_PARTITION_H
#define CORNU_DEVICE_MESH_PARTITION_H

#include "mesh_internal.h"

/* For each axis of a value the axes of the mesh, by bits, that cut it into equal slices; all
 * zeros: it is whole. An axis that is cut may be several blocks side by side, as the gates of a
 * recurrence are, of each of which a slice has its part; 0: it is one. */
typedef struct CornuLayout {
    unsigned char cut[CORNU_MAX_RANK];
    unsigned char blocks[CORNU_MAX_RANK];
} CornuLayout;

bool     cornu__layout_equal(CornuLayout a, CornuLayout b);
/* Whether they cut the axis alike. */
bool     cornu__layout_alike(CornuLayout a, CornuLayout b, int axis);
/* Blocks of the axis, at least 1. */
int64_t  cornu__layout_blocks(CornuLayout layout, int axis);
/* All axes of the mesh that cut it. */
unsigned cornu__layout_axes(CornuLayout layout);

/* The type of a slice. CORNU_ERR_SHAPE if an axis does not divide. */
CornuStatus cornu__layout_slice(const CornuMesh *mesh, CornuLayout layout, CornuType type,
                                CornuType *slice);

/* A value of the recorded program that is to be in this layout once it is made. */
typedef struct CornuLaid {
    CornuValue  value;
    CornuLayout layout;
} CornuLaid;

/* The pass, for those who call it by a pointer. */
typedef CornuProgram *CornuPartition(const CornuProgram *program, const CornuMesh *mesh,
                                     unsigned data, const CornuLayout *layouts,
                                     const CornuLaid *laid, int laid_count);

/* The partitioned copy; the caller frees it. Inputs and outputs keep their numbers: an input with a
 * layout is one per shard, of its slice, as the output that is written into it; all other outputs
 * are whole. `layouts` are by number of input. NULL, pending, after a failure:
 * CORNU_ERR_UNSUPPORTED for collectives in groups of a program's own. */
CornuProgram *cornu__partition(const CornuProgram *program, const CornuMesh *mesh, unsigned data,
                               const CornuLayout *layouts);
/* Likewise, with layouts for some of its values. */
CornuProgram *cornu__partition_laid(const CornuProgram *program, const CornuMesh *mesh,
                                    unsigned data, const CornuLayout *layouts,
                                    const CornuLaid *laid, int laid_count);

#endif
