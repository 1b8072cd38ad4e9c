/* What files.c shares with the callbacks that save, and with the registry of layers. */
#ifndef CORNU_NN_FILES_INTERNAL_H
#define CORNU_NN_FILES_INTERNAL_H

#include "json_internal.h"
#include "files.h"
#include "safetensors.h"

/* Whether a model can be saved under this name: CORNU_ERR_UNSUPPORTED or CORNU_ERR_ARGUMENT
 * naming the suffixes that can. */
CornuStatus cornu__check_save_path(const char *path);

/* Whether an array of a file, NULL if it has none of that name, is what the model has as `name`:
 * CORNU_ERR_FORMAT, CORNU_ERR_SHAPE or CORNU_ERR_DTYPE naming both sides. */
CornuStatus cornu__check_fit(const CornuNamedArray *array, const char *name, CornuType type);

/* The model in Keras' JSON; NULL, not pending, if it holds a layer that files cannot hold. */
json_t *cornu__model_config(const CornuModel *model);

/* The model that the JSON describes, built; NULL with a pending error. Nothing in the JSON is
 * trusted but its nesting. */
CornuModel *cornu__model_from_config(const json_t *architecture, double input_scale);

#endif
