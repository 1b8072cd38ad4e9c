/* A mesh as programs have it: collectives over some of its axes. */
#ifndef CORNU_DEVICE_MESH_INTERNAL_H
#define CORNU_DEVICE_MESH_INTERNAL_H

#include "../program_internal.h"
#include "mesh.h"

/* The mask of all axes; 1, as that of all shards, if there is no mesh. */
static inline unsigned cornu__mesh_all(const CornuMesh *mesh)
{
    return mesh->axes ? (1u << mesh->axes) - 1 : 1;
}

/* The attributes of a collective over these axes. `listed` has room for the groups' members, and
 * must last until the op is recorded. */
CornuAttributes_SHARDS cornu__mesh_shards(const CornuMesh *mesh, unsigned axes,
                                          int listed[CORNU_MAX_SHARDS]);

#endif
