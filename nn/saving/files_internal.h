/* What files.c shares with the formats, the callbacks that save, and the registry of layers. */
#ifndef CORNU_NN_FILES_INTERNAL_H
#define CORNU_NN_FILES_INTERNAL_H

#include "../formats/json_internal.h"
#include "files.h"
#include "../formats/safetensors.h"

/* How deep JSON of models may nest: models in models take three levels each. */
enum { CORNU_ARCHITECTURE_DEPTH = 64 };

/* A model's weights, then its optimizer's variables, each in its order. */
typedef struct {
    CornuNamedArray *arrays;
    int              weights, variables;
} CornuValues;

/* Their names and types, the data NULL; or room for all of them, too. */
CornuStatus cornu__values_list(const CornuModel *model, CornuValues *values);
CornuStatus cornu__values_create(const CornuModel *model, CornuValues *values);
void        cornu__values_free(CornuValues *values);

/* Copies them out of the model, or into it. */
CornuStatus cornu__values_read(const CornuModel *model, CornuValues *values);
CornuStatus cornu__values_write(CornuModel *model, const CornuValues *values);

/* What can be done with files of one suffix; NULL for what cannot. Messages of what is read do not
 * name the file. */
typedef struct {
    const char *suffix;
    CornuStatus (*save)(const CornuModel *model, const CornuValues *values, const char *path);
    CornuStatus (*save_weights)(const CornuModel *model, const CornuValues *values,
                                const char *path);
    /* Built, with its weights; with `compile` compiled for the device, with its optimizer's
     * variables. NULL with a pending error. */
    CornuModel *(*load)(const char *path, bool compile, CornuDevice *device);
    CornuStatus (*load_weights)(CornuModel *model, const char *path);
    CornuStatus (*check)(void);     /* loads what saving needs; NULL: nothing */
} CornuFormat;

/* The formats of formats.def; NULL ends them. */
extern const CornuFormat *const cornu__formats[];

/* Whether a model, or with weights_only its weights, can be saved under this name:
 * CORNU_ERR_UNSUPPORTED or CORNU_ERR_ARGUMENT naming the suffixes that can; CORNU_ERR_UNSUPPORTED
 * where libhdf5, which they need, cannot be loaded. */
CornuStatus cornu__check_save_path(const char *path, bool weights_only);

/* Whether an array of a file, NULL if it has none of that name, is what the model has as `name`:
 * CORNU_ERR_FORMAT, CORNU_ERR_SHAPE or CORNU_ERR_DTYPE naming both sides. */
CornuStatus cornu__check_fit(const CornuNamedArray *array, const char *name, CornuType type);

/* The model in Keras' JSON; NULL, not pending, if it holds a layer that files cannot hold. */
json_t *cornu__model_config(const CornuModel *model);

/* {"scale": …}: what whole-number data of its input, or each of a list, are multiplied by. NULL
 * without memory. */
json_t *cornu__input_config(const CornuModel *model);

/* Gives the model notes that were read (notes.c), NULL for none. Nothing in them is trusted. */
CornuStatus cornu__notes_read(CornuModel *model, const json_t *notes);

/* The model that the JSON describes, built where it says its input's shape; input is what
 * cornu__input_config said, or NULL. NULL with a pending error. Nothing in the JSON is trusted but
 * its nesting. */
CornuModel *cornu__model_from_config(const json_t *architecture, const json_t *input);

#endif
