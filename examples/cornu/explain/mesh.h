/* cornu explain --mesh, --pipeline: how a mesh would cut a model, and stages; modelled, nothing
 * runs. */
#ifndef CORNU_EXAMPLES_EXPLAIN_MESH_H
#define CORNU_EXAMPLES_EXPLAIN_MESH_H

#include <cornu/cornu.h>

#include "../common/options.h"

typedef struct {
    const char *mesh;      /* "batch=2,model=4"; "auto": chosen. NULL: none */
    const char *pipeline;  /* "4,8", stages and microbatches. NULL: none */
    OptionTexts layouts;   /* "dense/kernel=,model", "auto"; none: as cornu train's */
    const char *profile;   /* NULL: that of the device, else v3-8 */
    const char *json;      /* a file for all of it, or NULL */
} MeshFlags;

/* CORNU_ERR_ARGUMENT for flags that do not belong together. ignored: the name of one that is given
 * and that the page of a mesh would not heed, or NULL. */
CornuStatus explain_mesh_check(const MeshFlags *flags, const Options *options,
                               const char *ignored);

/* Prints the page of the mesh, or of the stages, or for "auto" the three best meshes and layouts;
 * `config` has the model and what it is explained with. */
CornuStatus explain_mesh(const MeshFlags *flags, const Options *options,
                         const CornuExplainConfig *config);

#endif
