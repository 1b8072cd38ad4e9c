/* Shared by files.c, the formats, and the callbacks that save. */
#ifndef CORNU_NN_FILES_INTERNAL_H
#define CORNU_NN_FILES_INTERNAL_H

#include "../formats/json_internal.h"
#include "files.h"
#include "../formats/safetensors.h"

/* The nesting allowed in JSON of models; each nested model takes three levels. */
enum { CORNU_ARCHITECTURE_DEPTH = 64 };

/* The weights of a model in its order, then the variables of its optimizer in theirs. */
typedef struct {
    CornuNamedArray *arrays;
    int              weights, variables;
    int64_t          shard_bytes;  /* the most of arrays in one of several files; 0: 5 GiB */
} CornuValues;

/* Names and types, with NULL for data; create also allocates the data. */
CornuStatus cornu__values_list(const CornuModel *model, CornuValues *values);
CornuStatus cornu__values_create(const CornuModel *model, CornuValues *values);
void        cornu__values_free(CornuValues *values);

/* Adds to each kernel the product of its lora_a and lora_b, which become 0. */
CornuStatus cornu__values_merge_lora(const CornuModel *model, CornuValues *values);

/* Copies the values from the model, or into it. */
CornuStatus cornu__values_read(const CornuModel *model, CornuValues *values);
CornuStatus cornu__values_write(CornuModel *model, const CornuValues *values);

/* The shapes of inputs, CornuLoadConfig.input_shapes. */
typedef const int64_t CornuInputShapes[CORNU_MAX_RANK];

/* What files of one suffix support; NULL for what they do not. Messages of loading do not name the
 * file. */
typedef struct {
    const char *suffix;
    CornuStatus (*save)(const CornuModel *model, const CornuValues *values, const char *path);
    CornuStatus (*save_weights)(const CornuModel *model, const CornuValues *values,
                                const char *path);
    /* For other programs. */
    CornuStatus (*export_model)(const CornuModel *model, const CornuValues *values,
                                const CornuExportConfig *config);
    /* Returns a built model with its weights; with `compile`, compiled for the device, with the
     * variables of its optimizer. NULL with a pending error. */
    CornuModel *(*load)(const char *path, bool compile, CornuDevice *device);
    /* Likewise with shapes of the inputs, which a graph may leave open. */
    CornuModel *(*load_shaped)(const char *path, CornuInputShapes *shapes);
    CornuStatus (*load_weights)(CornuModel *model, const char *path);
    bool        merges_lora;        /* what is saved is cornu__values_merge_lora's */
    CornuStatus (*check)(void);     /* loads the library that saving needs; NULL if none */
    CornuStatus (*known)(void);     /* makes the classes of its layers known to files of any format;
                                       NULL if there are none */
} CornuFormat;

/* Reads .onnx files (onnx_read/), and makes the class of their layers known to files. */
CornuModel *cornu__onnx_load(const char *path, bool compile, CornuDevice *device);
CornuModel *cornu__onnx_load_shaped(const char *path, CornuInputShapes *shapes);
CornuStatus cornu__onnx_register(void);
/* The same of bytes; `shapes` may be NULL. *model is NULL on failure. */
CornuStatus cornu__onnx_load_bytes(const void *bytes, size_t size, CornuInputShapes *shapes,
                                   CornuModel **model);

/* CORNU_ERR_UNSUPPORTED for what another framework writes: what it is, and what to export. */
CornuStatus cornu__refuse_foreign(const char *path);

extern const CornuFormat cornu__keras_shards_format;

/* The formats of formats.def, followed by NULL. */
extern const CornuFormat *const cornu__formats[];

/* Whether a model, or with weights_only its weights, can be saved under this name:
 * CORNU_ERR_UNSUPPORTED or CORNU_ERR_ARGUMENT naming the suffixes that can; CORNU_ERR_UNSUPPORTED
 * if libhdf5 is needed and cannot be loaded. */
CornuStatus cornu__check_save_path(const char *path, bool weights_only);

/* Whether an array of a file, NULL if it is missing, has the type of `name` in the model:
 * CORNU_ERR_FORMAT, CORNU_ERR_SHAPE or CORNU_ERR_DTYPE naming both sides. */
CornuStatus cornu__check_fit(const CornuNamedArray *array, const char *name, CornuType type);

/* The same where bf16 and f16 fill f32, for weights: other programs publish them so. And copies
 * such an array, which may be unaligned, into one of the model's type. */
CornuStatus cornu__check_fills(const CornuNamedArray *array, const char *name, CornuType type);
void        cornu__fill_from(CornuArray to, CornuArray from);

/* The model as Keras' JSON; NULL, not pending, if it has a layer that files cannot hold. */
json_t *cornu__model_config(const CornuModel *model);

/* {"scale": …}: the factor for integer data of its input, or a list of one for each input. NULL
 * when out of memory. */
json_t *cornu__input_config(const CornuModel *model);

/* Sets the notes of a model (notes.c) from untrusted JSON, which may be NULL. */
CornuStatus cornu__notes_read(CornuModel *model, const json_t *notes);

/* Makes a model from untrusted JSON, of which only the nesting has been checked, and builds it if
 * the JSON has the shape of its input. `input` is what cornu__input_config wrote, or NULL. NULL
 * with a pending error. */
CornuModel *cornu__model_from_config(const json_t *architecture, const json_t *input);

#endif
