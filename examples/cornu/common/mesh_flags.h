/*
 * --mesh and --layout: the shards of a device as a mesh, and how it cuts a model.
 *
 *     --mesh batch=2,model=4                  8 shards; rows of a batch are dealt over "batch"
 *     --layout 'dense/kernel=,model'          of this weight, or of all in which the expression is
 *                                             found, the second axis is cut along "model"
 *
 * Without --layout the model is cut as cornu_default_layout says.
 */
#ifndef CORNU_EXAMPLES_MESH_FLAGS_H
#define CORNU_EXAMPLES_MESH_FLAGS_H

#include <cornu/cornu.h>

#include "options.h"

/* CORNU_ERR_ARGUMENT for a mesh that is none, one of another number of shards than --shards, for
 * --layout without one or that is none. */
CornuStatus mesh_check(const Options *options);

/* The mesh's number of shards; 0 without --mesh. */
int mesh_shards(const Options *options);

/* Gives the device, on which nothing has been made yet, the mesh, to cut this model, which is
 * built; says so the first time. Does nothing without --mesh, or options. */
CornuStatus mesh_lay_out(const Options *options, const CornuModel *model, CornuDevice *device);

#endif
