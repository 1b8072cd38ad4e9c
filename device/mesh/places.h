/*
 * Ops that number the places along an axis, on slices of that axis (split.h). The slice of a shard
 * begins at a place of its own: what is looked up there is shifted by it, and the largest elements
 * of all slices are compared.
 */
#ifndef CORNU_DEVICE_MESH_PLACES_H
#define CORNU_DEVICE_MESH_PLACES_H

#include "../ops/build.h"
#include "mesh_internal.h"

/* An axis of `extent` elements, cut by these axes of the mesh; `program` is that of a shard. */
typedef struct {
    CornuProgram    *program;
    const CornuMesh *mesh;
    unsigned         axes;
    int64_t          extent;
} CornuCutAxis;

/* Indices of the axis become i64 ones of this shard's slice, as CORNU_PADDED_ABOVE has them: the
 * slice's extent stands for places of other shards and for no row. As unsplit, an index that is
 * neither in the axis nor what `padded` allows fails when the program runs. */
CornuStatus cornu__own_places(const CornuCutAxis *cut, int64_t padded, CornuValue *indices);

/* A slice of an iota along the axis, or of the one-hot rows of labels; the attributes are those of
 * the slice. */
CornuStatus cornu__own_iota(const CornuCutAxis *cut, const CornuAttributes *attributes,
                            CornuValue *out);
CornuStatus cornu__own_one_hot(const CornuCutAxis *cut, CornuDtype dtype, CornuValue labels,
                               CornuValue *out);

/* The largest of what each shard found in its slice: two numbers of each shard for a row of the
 * result at most are exchanged. NaN is larger than any number. */
CornuStatus cornu__join_max(const CornuCutAxis *cut, CornuValue *largest);
/* Likewise; of equal ones the first, whose index is in the whole axis. `x` is the slice, `index`
 * its argmax along `axis`. */
CornuStatus cornu__join_argmax(const CornuCutAxis *cut, CornuValue x, int64_t axis,
                               CornuValue *index);

#endif
