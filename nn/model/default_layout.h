/*
 * A layout map for a model, layer by layer, where none is written by hand.
 *
 *     const CornuMesh mesh = cornu_device_mesh(.shape = { 2, 4 });
 *     CornuLayoutRow *rows = cornu_default_layout(model, mesh);
 *     CornuStrategy  *parallel = cornu_model_parallel(.mesh = mesh, .layout_map = rows);
 *     cornu_layout_free(rows);
 *
 * Of two dense layers or convolutions in a row the first is cut along its outputs, the second along
 * its inputs, so that both together exchange one sum; attention along its heads, recurrent layers
 * by units, embeddings along their rows, the vocabulary. What the mesh does not divide stays whole,
 * and so does every other weight.
 */
#ifndef CORNU_NN_DEFAULT_LAYOUT_H
#define CORNU_NN_DEFAULT_LAYOUT_H

#include "../../device/mesh/layout_map.h"
#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The rows for a model that is built, which cut along the axis "model" of the mesh, else the last
 * one that rows of a batch are not dealt over; none if there is no such axis of 2 or more shards.
 * The caller frees them. NULL, pending, for a model whose weights are not known yet or a mesh that
 * cornu_mesh_check refuses (CORNU_ERR_ARGUMENT). */
CornuLayoutRow *cornu_default_layout(const CornuModel *model, CornuMesh mesh);
/* Frees such rows; NULL does nothing. */
void            cornu_layout_free(CornuLayoutRow *rows);

#ifdef __cplusplus
}
#endif
#endif
