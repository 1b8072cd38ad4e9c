/*
 * Keras' own files: .weights.h5, .keras, and the older whole models in .h5, which are only read.
 * Source: keras/src/saving/saving_lib.py, keras/src/legacy/saving/legacy_h5_format.py.
 */
#ifndef CORNU_NN_KERAS_INTERNAL_H
#define CORNU_NN_KERAS_INTERNAL_H

#include "files_internal.h"
#include "../formats/hdf5_internal.h"
#include "../model/model_internal.h"

/* ---- Where Keras keeps weights (keras_layout.c) ---- */

/* A group "layers/dense/vars" and what is in it: arrays "0", "1", …. */
typedef struct {
    char *path;
    char *name;           /* the group's attribute: that of the layer */
    int   first, count;   /* weights order[first … first + count) of the layout */
} CornuKerasGroup;

typedef struct {
    CornuKerasGroup *groups;
    int              count, space;
    int             *order;          /* numbers of the model's weights, each once */
    int              placed;
} CornuKerasLayout;

/* Groups are named by the classes of layers, not by their names: "layers/dense_1" is the second
 * Dense. `layers` is what holds a model's layers, "layers". */
CornuStatus cornu__keras_layout(const CornuModel *model, const char *layers,
                                CornuKerasLayout *layout);
void        cornu__keras_layout_free(CornuKerasLayout *layout);

/* ---- Arrays in HDF5 (keras_weights.c) ---- */

/* Writes weights and the optimizer's variables; reads them, converted to their types, into memory
 * that they get where they have none, and sets values->variables to 0 if the file has none of this
 * optimizer. */
CornuStatus cornu__keras_write_values(CornuHdf5 *file, const CornuModel *model,
                                      const CornuValues *values);
CornuStatus cornu__keras_read_values(CornuHdf5 *file, const CornuModel *model,
                                     CornuValues *values);
/* Likewise from an older file. */
CornuStatus cornu__keras_read_older(CornuHdf5 *file, const CornuModel *model, CornuValues *values);

/* ---- What a model is compiled with (compile_config.c) ---- */

/* Keras' compile_config: {} for a model that is not compiled, or with something that Keras does not
 * have. NULL without memory. */
json_t *cornu__compile_config(const CornuModel *model);

/* Arguments of optimizers and schedules: added to an object, which is taken, out of the struct that
 * has them; and into a constructor's config, where 0, which would be a default, is CORNU_ZERO. */
json_t     *cornu__arguments_write(json_t *config, const CornuOptimizerField *fields,
                                   const void *self);
CornuStatus cornu__arguments_read(const json_t *config, const CornuOptimizerField *fields,
                                  void *to);

/* Compiles the model so. CORNU_ERR_UNSUPPORTED names what Cornu does not have. */
CornuStatus cornu__compile_from_config(CornuModel *model, const json_t *config,
                                       CornuDevice *device);

#endif
