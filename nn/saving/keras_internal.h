/*
 * Keras' files: .weights.h5, .keras, and .h5 files of Keras 2 (keras2/), which are only read.
 * Source: keras/src/saving/saving_lib.py, keras/src/legacy/saving/legacy_h5_format.py.
 */
#ifndef CORNU_NN_KERAS_INTERNAL_H
#define CORNU_NN_KERAS_INTERNAL_H

#include "files_internal.h"
#include "../formats/hdf5_internal.h"
#include "../../device/files/zip_internal.h"
#include "../model/model_internal.h"

/* ---- The places of weights (keras_layout.c) ---- */

/* A group "layers/dense/vars" and its arrays "0", "1", …. */
typedef struct {
    char *path;
    char *name;           /* attribute of the group: the name of the layer */
    int   first, count;   /* weights order[first … first + count) of the layout */
    bool  may_lack;       /* files may lack them all: they have their initial values */
    const CornuLayer *layer;    /* with an array beside its weights; or NULL */
} CornuKerasGroup;

typedef struct {
    CornuKerasGroup *groups;
    int              count, space;
    int             *order;          /* indices of the model's weights, each once
                                        or, where a wrapper lists it too, twice */
    int              placed;
} CornuKerasLayout;

/* Changes the path of a layer, which lies in `folder`, to the one that a file has. */
enum { CORNU_KERAS_PATH = 1024 };
typedef struct {
    CornuStatus (*find)(void *context, const CornuLayer *layer, const char *folder,
                        char path[CORNU_KERAS_PATH]);
    void *context;
} CornuKerasFinder;

/* Groups are named by the classes of layers, not by their names: "layers/dense_1" is the second
 * Dense. `layers` is the group of a model's layers, "layers". `finder` may be NULL. */
CornuStatus cornu__keras_layout(const CornuModel *model, const char *layers,
                                const CornuKerasFinder *finder, CornuKerasLayout *layout);
/* Adds the group of so many of the optimizer's variables, "optimizer/vars", as the last one; in
 * `order` they follow the weights, as in CornuValues. */
CornuStatus cornu__keras_layout_optimizer(const CornuModel *model, int variables,
                                          CornuKerasLayout *layout);
void        cornu__keras_layout_free(CornuKerasLayout *layout);

/* ---- Files of models that are subclasses (keras_attributes.c) ---- */

/* The groups of a file in which a model's layers have the names of its attributes, "encoder/first";
 * *groups is NULL for a file of a Sequential or functional model. */
typedef struct CornuKerasGroups CornuKerasGroups;
CornuStatus cornu__keras_groups(CornuHdf5 *file, CornuKerasGroups **groups);
void        cornu__keras_groups_free(CornuKerasGroups *groups);

/* Finds layers in them, by the path, the last part of it, or the name that Keras gave the layer. */
CornuKerasFinder cornu__keras_finder(CornuKerasGroups *groups);

/* CORNU_ERR_SHAPE naming a group with weights that no layer has been found for. */
CornuStatus cornu__keras_check_read(CornuHdf5 *file, const CornuKerasGroups *groups);

/* ---- Assets: what layers keep in files of their own (keras_assets.c) ---- */

/* Reads those that layers of the model need from "assets/PATH/NAME" in the archive; NULL: there is
 * none. CORNU_ERR_FORMAT naming a layer whose asset is not there. */
CornuStatus cornu__keras_read_assets(const CornuZip *zip, CornuModel *model);

/* ---- Arrays in HDF5 (keras_weights.c) ---- */

/* Writes or reads weights and the optimizer's variables. Reading converts them to the types of
 * `values`, allocates data that is NULL, and sets values->variables to 0 if the file has none of
 * this optimizer. */
CornuStatus cornu__keras_write_values(CornuHdf5 *file, const CornuModel *model,
                                      const CornuValues *values);
CornuStatus cornu__keras_read_values(CornuHdf5 *file, const CornuModel *model,
                                     CornuValues *values);
/* Writes them to several files beside `path`, "….weights.json". */
CornuStatus cornu__keras_write_shards(const CornuModel *model, const CornuValues *values,
                                      const char *path);
/* Loads libhdf5. */
CornuStatus cornu__keras_check(void);

/* ---- Arguments of compile (compile_config.c) ---- */

/* Keras' compile_config: {} for a model that is not compiled, or is compiled with something that
 * Keras does not have. NULL when out of memory. */
json_t *cornu__compile_config(const CornuModel *model);

/* Its parts (optimizer_config.c, architecture/loss_config.c); the last three fail with NULL. */
bool            cornu__optimizer_is_describable(const CornuOptimizer *optimizer);
json_t         *cornu__optimizer_to_json(const CornuOptimizer *optimizer);
json_t         *cornu__loss_to_json(const CornuLoss *loss);
/* What files have of a custom loss, metric or schedule: its `record`. */
json_t         *cornu__record_to_json(const char *record);
json_t         *cornu__metric_to_json(const CornuMetric *metric);
CornuOptimizer *cornu__optimizer_from_json(const json_t *value);
CornuLoss      *cornu__loss_from_json(const json_t *value);
CornuMetric    *cornu__metric_from_json(const json_t *value);

/* All schedules, as cornu_classes_to_json describes them. */
json_t *cornu__schedules_to_json(void);

/* Arguments of optimizers and schedules. The first adds them from a struct to an object, which it
 * takes; the second reads them into a constructor's config, where an explicit 0 is CORNU_ZERO. */
json_t     *cornu__arguments_write(json_t *config, const CornuOptimizerField *fields,
                                   const void *self);
CornuStatus cornu__arguments_read(const json_t *config, const CornuOptimizerField *fields,
                                  void *to);

/* Compiles the model accordingly. CORNU_ERR_UNSUPPORTED names what Cornu does not have. */
CornuStatus cornu__compile_from_config(CornuModel *model, const json_t *config,
                                       CornuDevice *device);

#endif
