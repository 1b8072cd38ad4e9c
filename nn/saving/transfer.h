/*
 * Weights of another model: Keras' load_weights with by_name and skip_mismatch.
 *
 *     int loaded;
 *     cornu_model_load_by_name(model, "digits.safetensors", .skip_mismatch = true,
 *                              .file = stdout, .loaded = &loaded);
 *
 * Source: keras/src/legacy/saving/legacy_h5_format.py, load_weights_from_hdf5_group_by_name.
 */
#ifndef CORNU_NN_TRANSFER_H
#define CORNU_NN_TRANSFER_H

#include "../model/model.h"

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    char        unset;
    CornuModel *model;          /* required; built */
    const char *path;           /* required: a .safetensors file */
    bool        skip_mismatch;  /* skips weights of another shape, else they are an error */
    FILE       *file;           /* for a line per skipped weight, with the reason; or NULL */
    int        *loaded;         /* set to the number of loaded weights; or NULL */
} CornuLoadByNameConfig;

/* Loads the weights of the model that are in the file under the same name, "conv2d/kernel", and
 * skips the others; the optimizer's variables stay. Nothing is changed on failure: CORNU_ERR_SHAPE
 * or CORNU_ERR_DTYPE naming a weight and both sides, also if no weight could be loaded. */
CornuStatus cornu_model_load_by_name_from(const CornuLoadByNameConfig *config);
#define cornu_model_load_by_name(...) \
    cornu_model_load_by_name_from(&(CornuLoadByNameConfig){ .unset = 0, __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
