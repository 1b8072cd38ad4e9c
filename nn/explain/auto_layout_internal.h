/* Shared by the files that choose layouts: what can be cut and how. */
#ifndef CORNU_NN_AUTO_LAYOUT_INTERNAL_H
#define CORNU_NN_AUTO_LAYOUT_INTERNAL_H

#include "auto_layout.h"
#include "explain_internal.h"

/* How the kernels of a layer are cut. */
typedef enum {
    CORNU_CUT_NOT, CORNU_CUT_COLUMNS, CORNU_CUT_ROWS, CORNU_CUT_FULLY, CORNU_CUTS
} CornuCut;

enum { CORNU_AUTO_GROUPS = 24 };

/* Layers that are cut alike. */
typedef struct {
    char     name[96];    /* of the first */
    uint64_t key;         /* of names without numbers, and of shapes */
    bool     attention;
    int      layers;
} CornuCutGroup;

typedef struct {
    const CornuModel *model;
    CornuCutGroup     groups[CORNU_AUTO_GROUPS];
    int               count;
    int              *group_of;   /* by weight of the model; -1: it stays whole */
} CornuCutGroups;

/* A cut for each group. */
typedef struct { unsigned char of[CORNU_AUTO_GROUPS]; } CornuCutting;

/* The axes of a mesh that cut kernels; -1: none has two shards or more. */
typedef struct {
    CornuMesh mesh;
    int       data, model;   /* its numbers: of the batch, of columns and rows */
} CornuCutMesh;

/* cornu_auto_layout; `usual`: with few layouts that are often good, for an answer at once. */
CornuAutoLayout *cornu__auto_layout(const CornuAutoLayoutConfig *config, bool usual);

/* The layers of a model that have kernels, in their order; groups beyond the most stay whole. */
CornuStatus cornu__cut_groups(const CornuModel *model, CornuCutGroups *to);
void        cornu__cut_groups_free(CornuCutGroups *groups);

/* Which axes cut: "batch", else the first, fully; "model", else the last other one, the rest. */
CornuCutMesh cornu__cut_mesh(CornuMesh mesh);

/* Whether the layers of a group can be cut so: all their kernels divide. */
bool cornu__cut_divides(const CornuCutGroups *groups, const CornuCutMesh *mesh, int group,
                        CornuCut cut);

/* The rows of a cutting, in one piece of memory with their strings, which cornu__release frees;
 * NULL, pending, without memory. */
CornuLayoutRow *cornu__cut_rows(const CornuCutGroups *groups, const CornuCutMesh *mesh,
                                CornuCutting cutting);

/* "heads of attention; columns of dense, dense_2; all else whole". */
void cornu__cut_summary(const CornuCutGroups *groups, CornuCutting cutting, char *to, size_t size);

#endif
