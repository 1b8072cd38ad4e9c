/*
 * A mesh: the shards of a device, or of several processes, as an array with named axes.
 *
 *     CornuMesh mesh = { 2, { 2, 4 }, { "batch", "model" } };
 *
 * Shards are numbered in row-major order: of a mesh (2, 4) shard 5 is at (1, 1). A set of axes is a
 * mask, bit i for axis i. The shards that differ along these axes alone are a group: over "batch"
 * the mesh above has the groups 0 4, 1 5, 2 6, 3 7; over both axes, one of all shards.
 *
 * Source: keras.distribution.DeviceMesh; jax.sharding.Mesh.
 */
#ifndef CORNU_DEVICE_MESH_H
#define CORNU_DEVICE_MESH_H

#include <stdbool.h>

#include "../op.h"
#include "../status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CORNU_MESH_AXES = 4, CORNU_MESH_NAME = 24 };

/* Plain data. No axes: there is no mesh, and all shards are one group. */
typedef struct {
    int  axes;                                  /* 0 to CORNU_MESH_AXES */
    int  extent[CORNU_MESH_AXES];               /* their product is the number of shards */
    char name[CORNU_MESH_AXES][CORNU_MESH_NAME];
} CornuMesh;

/* CORNU_ERR_ARGUMENT for extents below 1, more shards than CORNU_MAX_SHARDS, names that are empty
 * or equal, or have a "+", which joins axes in layouts. */
CornuStatus cornu_mesh_check(const CornuMesh *mesh);

/* The product of the extents of these axes. */
static inline int cornu_mesh_size(const CornuMesh *mesh, unsigned axes)
{
    int size = 1;
    for (int i = 0; i < mesh->axes; i++)
        if (axes >> i & 1) size *= mesh->extent[i];
    return size;
}

/* The place of a shard in its group over these axes. */
static inline int cornu_mesh_index(const CornuMesh *mesh, unsigned axes, int shard)
{
    int index = 0, step = 1;
    for (int i = mesh->axes - 1; i >= 0; shard /= mesh->extent[i--]) {
        if (!(axes >> i & 1)) continue;
        index += shard % mesh->extent[i] * step;
        step *= mesh->extent[i];
    }
    return index;
}

/* The axis of that name; -1 if there is none. */
int cornu_mesh_axis(const CornuMesh *mesh, const char *name);

/* The buffer of a printed mesh: each argument of a printf needs one of its own. */
typedef struct { char text[CORNU_MESH_AXES * (CORNU_MESH_NAME + 8)]; } CornuMeshText;

/* Prints "(batch=2, model=4)". Returns the string, which is in `to`. */
const char *cornu_mesh_print(CornuMeshText *to, const CornuMesh *mesh);

#ifdef __cplusplus
}
#endif
#endif
