/*
 * Models in files.
 *
 * A .safetensors file holds the weights under Keras' variable paths ("conv2d/kernel") in Keras'
 * shapes, the optimizer's variables ("adam/iteration"), and texts in its metadata:
 *
 *     architecture   JSON of the model as Keras writes it: class_name, config, layers
 *     input          JSON {"scale": 0.00392…}: what whole-number data are multiplied by; a list
 *                    of models with several inputs
 *     weights        JSON list of the weights' names, in the model's order
 *     optimizer      JSON list of the optimizer's variables, in its order
 *
 * No time, host or path: equal models give equal bytes. examples/to_keras.py loads such a file
 * into Keras. The suffix chooses the format; others than .safetensors are refused by name.
 */
#ifndef CORNU_NN_FILES_H
#define CORNU_NN_FILES_H

#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Architecture, weights and the optimizer's variables, if there are any. The file appears whole
 * or not at all. CORNU_ERR_FILE if it cannot be written, CORNU_ERR_UNSUPPORTED for a suffix of
 * a format that is not built, CORNU_ERR_ARGUMENT for a model that is not built. */
CornuStatus cornu_model_save(CornuModel *model, const char *path);

/* Everything but the architecture. */
CornuStatus cornu_model_save_weights(CornuModel *model, const char *path);

/* Whether a model could be saved there, asked before a long training: a suffix that can be saved
 * and a place that can be written. CORNU_ERR_FILE and its like as cornu_model_save; leaves
 * nothing behind. */
CornuStatus cornu_model_save_check(const char *path);

/* A model as it was saved, built and not compiled: its weights are on the host until it is.
 * NULL if the file is damaged or holds a layer that Cornu does not have. */
CornuModel *cornu_model_load(const char *path);

/* Loads the weights of a model of the same architecture: they are paired in the models' order,
 * or by name with files of other origin. If the model has the optimizer whose variables are in
 * the file, they are loaded too. Nothing is changed unless everything fits; CORNU_ERR_SHAPE
 * names the weight and both shapes. */
CornuStatus cornu_model_load_weights(CornuModel *model, const char *path);

#ifdef __cplusplus
}
#endif
#endif
