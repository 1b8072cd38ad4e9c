/*
 * A mesh and layouts for a model, chosen by the performance model of a TPU (device/tpu/model.h).
 *
 *     CornuAutoLayout *chosen = cornu_auto_layout(model, .profile = "v3-8", .batch_size = 64);
 *     cornu_auto_layout_print(chosen, stdout);
 *     const CornuLayoutChoice *best = cornu_auto_layout_choice(chosen, 0);
 *     CornuStrategy *parallel = cornu_model_parallel(.mesh = best->mesh, .device = "tpu:v3-8",
 *                                                    .layout_map = best->layout_map);
 *     ...
 *     cornu_auto_layout_free(chosen);
 *
 * The kernels of a layer stay whole, are cut along their columns, which for attention are its
 * heads, along their rows, or fully along the axis of the mesh that shares the batch, to be
 * gathered where they are read. Layers of the same name but for numbers, with weights of the same
 * shapes, are cut alike where there are many; of such layers in a row every other one.
 *
 * The price of a layout is the modelled time of a shard's compiled step on the profile's chips, and
 * the memory that it takes; what takes more than the HBM is out. Prices of one layer's cuts, and of
 * those of two neighbours, are computed, and the cheapest sequence of them found by dynamic
 * programming: it is the best one where each layer reads what the one before it makes. Then single
 * layers and neighbours are cut otherwise while that makes the whole step cheaper, since branches
 * have layers read what others make. Nothing runs, and the same arguments give the same answer.
 *
 * Source: Xu et al., GSPMD, arXiv 2105.04663; Zheng et al., Alpa, arXiv 2201.12023, section 4.
 */
#ifndef CORNU_NN_AUTO_LAYOUT_H
#define CORNU_NN_AUTO_LAYOUT_H

#include <stdio.h>

#include "../../device/mesh/layout_map.h"
#include "../model/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CornuAutoLayout CornuAutoLayout;

typedef struct {
    char         unset;
    CornuModel  *model;            /* required: as that of cornu_explain, which has the members
                                      without a comment here, too */
    CornuMesh    mesh;             /* default: the best one of .shards with the axes "batch" and
                                      "model" */
    const char  *profile;          /* default "v3-8" */
    int          shards;           /* where there is no mesh; default the profile's */
    int64_t      hbm_bytes;        /* of a shard; default the profile's */
    int64_t      batch_size;
    int64_t      extent;
    const char  *loss;
    CornuType    inputs[CORNU_MAX_MODEL_TENSORS];
    CornuType    labels[CORNU_MAX_MODEL_TENSORS];
} CornuAutoLayoutConfig;

/* A layout with its price. */
typedef struct {
    CornuMesh             mesh;
    const CornuLayoutRow *layout_map;       /* of cornu_model_parallel */
    char                  summary[240];     /* "heads of attention; columns of dense" */
    double                step_s;           /* of the device, modelled, without the host's part */
    double                mxu_s, vector_s, hbm_s, links_s;   /* that each unit is busy */
    int64_t               bytes;            /* of a shard */
    bool                  fits;             /* in the HBM */
} CornuLayoutChoice;

/* The caller frees it. NULL with a pending error: as cornu_explain; CORNU_ERR_ARGUMENT for a number
 * out of range; CORNU_ERR_MEMORY if no layout fits, the message says what the smallest takes. */
CornuAutoLayout *cornu_auto_layout_from(const CornuAutoLayoutConfig *config);
#define cornu_auto_layout(...) \
    cornu_auto_layout_from(&(CornuAutoLayoutConfig){ .unset = 0, __VA_ARGS__ })
void             cornu_auto_layout_free(CornuAutoLayout *chosen);   /* NULL is ignored */

/* The fastest that fits is 0, the next ones are 1 and 2; NULL: there are no more. Owned by
 * `chosen`, as all that it points to. */
const CornuLayoutChoice *cornu_auto_layout_choice(const CornuAutoLayout *chosen, int i);
/* All weights whole, and the batch over all shards; of a given mesh over its axis. NULL if the rows
 * of the batch are too few for that. */
const CornuLayoutChoice *cornu_auto_layout_data_parallel(const CornuAutoLayout *chosen);

/* Prints five lines: how many layouts were priced and how many of them do not fit, the best three,
 * and data parallelism with what sets the first apart from it. */
CornuStatus cornu_auto_layout_print(const CornuAutoLayout *chosen, FILE *to);

#ifdef __cplusplus
}
#endif
#endif
