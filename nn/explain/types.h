/*
 * What a model takes and gives for a batch, found by recording it once; nothing runs.
 *
 *     CornuModelTypes types;
 *     cornu_model_types(model, 32, 0, &types);
 *     ... types.inputs[0] is f32 (32, 224, 224, 3), types.outputs[0] f32 (32, 1000) ...
 */
#ifndef CORNU_NN_EXPLAIN_TYPES_H
#define CORNU_NN_EXPLAIN_TYPES_H

#include "../model/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    CornuType inputs[CORNU_MAX_MODEL_TENSORS];
    int64_t   rows_of[CORNU_MAX_MODEL_TENSORS];   /* of the smallest table in which the input is
                                                     looked up, so it is of whole numbers below
                                                     that; 0: in none */
    CornuType outputs[CORNU_MAX_MODEL_TENSORS];
    CornuOpId made_by[CORNU_MAX_MODEL_TENSORS];   /* the op that makes the output, but for
                                                     conversions and reshapes; CORNU_OP_COUNT: it is
                                                     an input */
    int       input_count, output_count;
} CornuModelTypes;

/* For `batch_size` rows, where the model fixes no other number. Other extents that it leaves open
 * become `extent`; with 0 the first of a few that it takes, from 224 for images, (B, H, W, C) and
 * (B, C, H, W), and 128 for others.
 *   CORNU_ERR_ARGUMENT     a model that is not built, fewer rows than 1
 *   CORNU_ERR_SHAPE        no extent that was tried fits the model
 *   CORNU_ERR_UNSUPPORTED  layers of it run on the host before others, as those of strings do: what
 *                          the others take follows from data alone */
CornuStatus cornu_model_types(const CornuModel *model, int64_t batch_size, int64_t extent,
                              CornuModelTypes *to);

#ifdef __cplusplus
}
#endif
#endif
