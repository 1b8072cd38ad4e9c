/* What files.c shares with the callbacks that save, and with the registry of layers. */
#ifndef CORNU_NN_FILES_INTERNAL_H
#define CORNU_NN_FILES_INTERNAL_H

#include "json_internal.h"
#include "files.h"

/* Whether a model can be saved under this name: CORNU_ERR_UNSUPPORTED or CORNU_ERR_ARGUMENT
 * naming the suffixes that can. */
CornuStatus cornu__check_save_path(const char *path);

/* The model in Keras' JSON; NULL, not pending, if it holds a layer that files cannot hold. */
json_t *cornu__model_config(const CornuModel *model);

/* {"scale": …}: what whole-number data of its input, or each of a list, are multiplied by. NULL
 * without memory. */
json_t *cornu__input_config(const CornuModel *model);

/* The model that the JSON describes, built where it says its input's shape; input is what
 * cornu__input_config said, or NULL. NULL with a pending error. Nothing in the JSON is trusted but
 * its nesting. */
CornuModel *cornu__model_from_config(const json_t *architecture, const json_t *input);

#endif
