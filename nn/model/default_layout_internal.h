/* What makes layout maps by the weights of a model. */
#ifndef CORNU_NN_DEFAULT_LAYOUT_INTERNAL_H
#define CORNU_NN_DEFAULT_LAYOUT_INTERNAL_H

#include "default_layout.h"

/* The axis of the mesh that cuts weights beside the batch's: "model", else the last one left. -1:
 * there is none, or it would cut into one slice. */
int cornu__mesh_model_axis(const CornuMesh *mesh);

/* Rows that are being added, for one weight each at most. They own their strings: cornu_layout_free
 * frees all. */
typedef struct {
    CornuLayoutRow *rows, *next;
    char           (*names)[CORNU_MESH_NAME];   /* of the mesh's axes; patterns follow */
    char            *end;
} CornuLayoutRows;

CornuStatus cornu__layout_rows(CornuLayoutRows *to, const CornuModel *model, const CornuMesh *mesh);

/* Cuts this axis of the weight by axis `along` of the mesh. */
void cornu__layout_rows_add(CornuLayoutRows *to, const CornuWeight *weight, int axis, int along);

#endif
