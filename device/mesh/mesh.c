#include "mesh_internal.h"

#include <stdio.h>
#include <string.h>

CornuStatus cornu_mesh_check(const CornuMesh *mesh)
{
    int64_t shards = 1;
    CORNU__NEED(mesh);
    if (mesh->axes < 0 || mesh->axes > CORNU_MESH_AXES)
        return cornu__fail(CORNU_ERR_ARGUMENT, "a mesh of %d axes, expected at most %d", mesh->axes,
                           CORNU_MESH_AXES);
    for (int i = 0; i < mesh->axes; i++) {
        const char *name = mesh->name[i];
        if (!*name || !memchr(name, 0, CORNU_MESH_NAME))
            return cornu__fail(CORNU_ERR_ARGUMENT, "axis %d of the mesh: expected a name of 1 to "
                               "%d characters", i, CORNU_MESH_NAME - 1);
        if (strchr(name, '+'))   /* joins axes in layouts */
            return cornu__fail(CORNU_ERR_ARGUMENT, "an axis of the mesh is called %s, expected a "
                               "name without +", name);
        if (cornu_mesh_axis(mesh, name) != i)
            return cornu__fail(CORNU_ERR_ARGUMENT, "two axes of the mesh are called %s", name);
        if (mesh->extent[i] < 1 || (shards *= mesh->extent[i]) > CORNU_MAX_SHARDS)
            return cornu__fail(CORNU_ERR_ARGUMENT, "axis %s of the mesh: %d shards, expected 1 to "
                               "%d, and no more of all axes together", name, mesh->extent[i],
                               CORNU_MAX_SHARDS);
    }
    return CORNU_OK;
}

int cornu_mesh_axis(const CornuMesh *mesh, const char *name)
{
    CORNU__NEED_OR(mesh, -1);
    CORNU__NEED_OR(name, -1);
    for (int i = 0; i < mesh->axes; i++)
        if (!strcmp(mesh->name[i], name)) return i;
    return -1;
}

const char *cornu_mesh_print(CornuMeshText *to, const CornuMesh *mesh)
{
    size_t at = 0;
    CORNU__NEED_OR(to, "");
    to->text[0] = '\0';
    CORNU__NEED_OR(mesh, to->text);
    for (int i = 0; i < mesh->axes; i++)
        at += (size_t)snprintf(to->text + at, sizeof to->text - at, "%s%s=%d", i ? ", " : "(",
                               mesh->name[i], mesh->extent[i]);
    snprintf(to->text + at, sizeof to->text - at, mesh->axes ? ")" : "()");
    return to->text;
}

/* The first shard of each group has place 0 in it. Groups are in the order of their first members,
 * and members ascend, as attributes.def wants. */
CornuAttributes_SHARDS cornu__mesh_shards(const CornuMesh *mesh, unsigned axes,
                                          int listed[CORNU_MAX_SHARDS])
{
    const int      shards = cornu_mesh_size(mesh, ~0u);
    const unsigned others = cornu__mesh_all(mesh) & ~axes;
    CornuAttributes_SHARDS all = { .size = cornu_mesh_size(mesh, axes), .axes = axes };
    if (!others) return all;
    int count = 0;
    for (int first = 0; first < shards; first++) {
        if (cornu_mesh_index(mesh, axes, first) != 0) continue;
        for (int shard = first; shard < shards; shard++)
            if (cornu_mesh_index(mesh, others, shard) == cornu_mesh_index(mesh, others, first))
                listed[count++] = shard;
    }
    all.groups = (CornuInts){ count, listed };
    return all;
}
