/*
 * Layouts by name: which axes of which variables are cut by which axes of a mesh.
 *
 *     const CornuLayoutRow rows[] = {
 *         { "dense_1/kernel", { NULL, "model" } },      its columns
 *         { "dense_2/kernel", { "model" } },            its rows
 *         { "embedding.*",    { "batch", "model" } },
 *         { "dense_1/output", { "batch", "model" } },   what the layer makes of a batch
 *         { 0 } };
 *
 * Source: keras.distribution.LayoutMap; "batch+model" cuts one axis by both, which Keras lacks. In
 * Keras 3.15 every expression is all of a path, and may be for variables and outputs alike.
 */
#ifndef CORNU_DEVICE_MESH_LAYOUT_MAP_H
#define CORNU_DEVICE_MESH_LAYOUT_MAP_H

#include "../type.h"
#include "mesh.h"

#ifdef __cplusplus
extern "C" {
#endif

/* pattern: a variable's path, or a POSIX extended regular expression that is found in it; the path
 * itself goes before expressions. A pattern that ends in "/output" is for what layers make: the
 * path of a layer and "/output", or an expression that is all of it. axes: for each axis of the
 * variable or output the axis of the mesh that cuts it, several joined by "+", or NULL; the rows of
 * an output, axis 0, are dealt over the batch's axis anyway, which cuts no other axis of it. The
 * last axis of a recurrent layer's weights is its gates, side by side: each gate is cut, if its
 * units divide. A row without a pattern ends the map. */
typedef struct {
    const char *pattern;
    const char *axes[CORNU_MAX_RANK];
} CornuLayoutRow;

struct CornuDevice;

/* Gives a device, on which nothing has been made yet, a mesh of as many shards as it has. The rows
 * of a batch are dealt over the axis `batch`, NULL for "batch", else the first one; `rows`, NULL
 * for none, say how the mesh cuts variables. Both are copied. CORNU_ERR_ARGUMENT for a mesh of
 * another number of shards or without that axis, a pattern that is not an expression, and axes that
 * the mesh lacks or that cut twice; the device then has no mesh. */
CornuStatus cornu_device_set_mesh(struct CornuDevice *device, const CornuMesh *mesh,
                                  const char *batch, const CornuLayoutRow *rows);

/* Weights with fewer elements than this are not worth cutting: what they take is little beside
 * the exchange of a layer. */
enum { CORNU_SHARDED_ELEMENTS = 1024 };

/* Cuts weights, beside what the rows say of them, along the axis over which the rows of a batch are
 * dealt: the first of their axes that is not cut yet and divides. Whole stay those of one axis or
 * none, as biases, those with fewer than CORNU_SHARDED_ELEMENTS elements, those of which no axis
 * divides, and those that are updated by rows, as tables with sparse gradients. For a device that
 * has just got its mesh; CORNU_ERR_ARGUMENT without one. */
CornuStatus cornu_device_shard_fully(struct CornuDevice *device);

/* Rows of its layout map that are for no variable and no output of a model are no error, as in
 * Keras, from now on. CORNU_ERR_ARGUMENT without a layout map. */
CornuStatus cornu_device_allow_unused_layouts(struct CornuDevice *device);

/* The i-th pattern, in the order of the rows, that was found in no path so far; NULL if there are
 * no more. It lives as long as the device has its map. */
const char *cornu_device_unused_layout(const struct CornuDevice *device, int i);

#ifdef __cplusplus
}
#endif
#endif
