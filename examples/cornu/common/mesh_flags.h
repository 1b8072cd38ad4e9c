/*
 * --mesh, --layout, --fully-sharded: the shards of a device as a mesh, and how it cuts a model.
 *
 *     --mesh batch=2,model=4                  8 shards; rows of a batch are dealt over "batch"
 *     --layout 'dense/kernel=,model'          of this weight, or of all in which the expression is
 *                                             found, the second axis is cut along "model"
 *
 *     --fully-sharded                         weights are cut over the axis of the batch as well;
 *                                             without --mesh it is the only one, of all shards
 *
 * Without --layout the model is cut as cornu_default_layout says. The rows of a batch are dealt
 * over the axis "batch", else the first one, which then is not called "model".
 *
 * --pipeline: the stages of layers that a model trains in, each on all of these shards.
 *
 *     --pipeline 4,8                          4 stages, 8 microbatches of each batch
 *     --pipeline 4,8,gpipe                    by another schedule than 1f1b
 */
#ifndef CORNU_EXAMPLES_MESH_FLAGS_H
#define CORNU_EXAMPLES_MESH_FLAGS_H

#include <cornu/cornu.h>

#include "options.h"

/* CORNU_ERR_ARGUMENT for a mesh that is none, one of another number of shards than --shards, for
 * --layout without one or that is none. */
CornuStatus mesh_check(const Options *options);

/* The value of --mesh, or none without axes for NULL. */
CornuStatus mesh_read(const char *text, CornuMesh *mesh);

/* The rows of the layout map that --layout, or its absence, means: for all commands the same. */
typedef struct {
    const CornuLayoutRow *rows;
    CornuLayoutRow       *by_class, own[OPTION_MAX_TEXTS + 1];
    char                 *text[OPTION_MAX_TEXTS];   /* the strings of own[] */
} MeshLayouts;

/* Free them also after a failure. */
CornuStatus mesh_layouts(const OptionTexts *given, const CornuModel *model, CornuMesh mesh,
                         MeshLayouts *to);
void        mesh_free_layouts(MeshLayouts *layouts);

/* The number of shards of --mesh; 0 without. */
int mesh_shards(const Options *options);

/* Whether mesh_lay_out does something. */
bool mesh_is_given(const Options *options);

/* Of a compile, or move, over the mesh: that of the flags, as a --layout for no weight, if they are
 * what is refused (options_blame). */
CornuStatus mesh_blame(const Options *options, CornuStatus status);

/* The value of --pipeline: its stages, microbatches and schedule. */
CornuStatus pipeline_read(const char *text, CornuPipelineParallelConfig *to);

/* --pipeline: opens its device, which cornu_strategy_device names and mesh_lay_out gives its mesh,
 * for these processes. NULL with a pending error. */
CornuStrategy *pipeline_open(const Options *options, CornuPrecision precision,
                             CornuProcesses *processes);

/* Gives the device, on which nothing has been made yet, the mesh, to cut this model, which is
 * built; says so the first time. Does nothing without these flags, or options. */
CornuStatus mesh_lay_out(const Options *options, const CornuModel *model, CornuDevice *device);

#endif
