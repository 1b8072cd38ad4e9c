/*
 * Models in files; the suffix chooses the format.
 *
 *     .safetensors   whole models and weights, in and out: the native format
 *     .keras         Keras' whole models, in and out, with what they were compiled with
 *     .weights.h5    Keras' weights, in and out
 *     .h5            whole models and weights of older Kerases, in
 *     .npz           NumPy's named arrays: weights, in and out
 *     .onnx          models for other programs to run, in f32, with an open batch, out
 *
 * A .safetensors file holds the weights under Keras' variable paths ("conv2d/kernel") in Keras'
 * shapes, the optimizer's variables ("adam/iteration"), and texts in its metadata:
 *
 *     architecture   JSON of the model as Keras writes it: class_name, config, layers
 *     input          JSON {"scale": 0.00392…}: what whole-number data are multiplied by; a list
 *                    of models with several inputs
 *     notes          JSON {"class_names": […], KEY: string, …}: those of the model, if any
 *     weights        JSON list of the weights' names, in the model's order
 *     optimizer      JSON list of the optimizer's variables, in its order
 *
 * A .keras file is a zip archive of metadata.json, config.json and model.weights.h5, as Keras 3
 * writes them. Keras ignores `input` and `notes` in its metadata: what whole-number data are
 * multiplied by here, its programs do themselves. A model compiled with something that Keras does
 * not have (an optimizer, loss or metric of one's own) is written as one that is not compiled.
 *
 * An .onnx file takes floats, as fit takes them (indices as i32), under the names of its inputs,
 * and gives "NAME_out" for the layer that gives an output, "NAME_out_1" for the next one of the
 * same. Layers are what they are at inference: those that drop or draw in training are nothing.
 * What ONNX does not have is refused, naming the layer and why: masks that reach a recurrent layer,
 * .stateful, activations of recurrent layers that their operators do not know, classes of one's
 * own.
 *
 * No time, host or path: equal models give equal bytes, and the date that Keras writes is always
 * 1980-01-01. HDF5 files need libhdf5's header when Cornu is built and the library when a program
 * first meets one (in one that is linked statically, beside the shared glibc it was built with);
 * they are refused without. Files from others are checked: what is damaged, links elsewhere, or
 * declares more than it can hold is an error.
 */
#ifndef CORNU_NN_FILES_H
#define CORNU_NN_FILES_H

#include "../model/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Architecture, weights and the optimizer's variables, if there are any. The file appears whole
 * or not at all. CORNU_ERR_FILE if it cannot be written, CORNU_ERR_UNSUPPORTED for a suffix of
 * a format that cannot hold it, CORNU_ERR_ARGUMENT for a model that is not built. */
CornuStatus cornu_model_save(CornuModel *model, const char *path);

/* Everything but the architecture. A .weights.h5 file finds weights by the order and the classes of
 * layers, an .npz file by their paths. */
CornuStatus cornu_model_save_weights(CornuModel *model, const char *path);

/* Whether a model could be saved there, asked before a long training: a suffix that can be saved,
 * the library that it needs, which is loaded, and a place that can be written. CORNU_ERR_FILE and
 * its like as cornu_model_save; leaves nothing behind. */
CornuStatus cornu_model_save_check(const char *path);

/* A model as it was saved, built and not compiled: its weights are on the host until it is.
 * NULL if the file is damaged or holds a layer that Cornu does not have. */
CornuModel *cornu_model_load(const char *path);

/* The same, compiled for a device (NULL as in cornu_compile) with the optimizer, loss and metrics
 * that it was saved with, and with the optimizer's variables: to go on training. Of .keras and
 * older .h5 files; NULL and CORNU_ERR_UNSUPPORTED if the file does not say, or names what Cornu
 * does not have. Keras' load_model. */
CornuModel *cornu_model_load_compiled(const char *path, CornuDevice *device);

/* Loads the weights of a model of the same architecture: they are paired in the models' order,
 * or by name with files of other origin. If the model has the optimizer whose variables are in
 * the file, they are loaded too. Nothing is changed unless everything fits; CORNU_ERR_SHAPE
 * names the weight and both shapes. */
CornuStatus cornu_model_load_weights(CornuModel *model, const char *path);

#ifdef __cplusplus
}
#endif
#endif
