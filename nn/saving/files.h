/*
 * Models in files; the suffix selects the format.
 *
 *     .safetensors   saves and loads whole models and weights: the native format
 *     .keras         saves and loads Keras' whole models, with their arguments of compile
 *     .weights.h5    saves and loads Keras' weights
 *     .weights.json  saves and loads Keras' weights in several files
 *     .h5, .hdf5     saves and loads whole models in Keras 2's format, as Keras 3 does; loads those
 *                    of Keras 2 and tf.keras, and weights alone
 *     .npz           saves and loads weights as NumPy's named arrays
 *     .onnx          saves models for other programs to run, in f32, with an open batch; loads
 *                    those of PyTorch, TensorFlow and Keras; cornu_model_export has arguments
 *     .tflite        saves models for LiteRT (TensorFlow Lite), in f32, with an open batch; loads
 *                    those of TensorFlow's converter and others, quantized ones as well
 *
 * A .safetensors file holds the weights under Keras' variable paths ("conv2d/kernel") in Keras'
 * shapes, the optimizer's variables ("adam/iteration"), and in its metadata:
 *
 *     architecture   JSON of the model as Keras writes it: class_name, config, layers
 *     input          JSON {"scale": 0.00392…}: the factor for integer data; a list for a model with
 *                    several inputs
 *     notes          JSON {"class_names": […], KEY: string, …}: the notes of the model, if any
 *     weights        JSON list of the weights' names, in the model's order
 *     optimizer      JSON list of the optimizer's variables, in its order
 *
 * Files of Keras 2 and tf.keras (1.0 to 2.15, and of the package tf-keras; also .keras files, and
 * JSON) compute what they did there: `hard_sigmoid` is 0.2 x + 0.5, here keras_2_hard_sigmoid, a
 * GRU may lack reset_after, CuDNNLSTM and CuDNNGRU are LSTM and GRU, functions of TensorFlow
 * (TFOpLambda) are operations. An optimizer's `decay` is an InverseTimeDecay, and its variables are
 * found by the names of then. What Keras 3 has no equal of is refused by its name: Lambda,
 * time_major, locally connected layers, nodes of TensorFlow graphs, and the layers of Keras 1.
 *
 * In .weights.h5 files of models that are subclasses, layers have the names of attributes: a layer
 * here is found by that path ("blocks/block_1/first"), by the name that Keras gave it, or by the
 * last part of the path.
 *
 * A .keras file is a zip archive of metadata.json, config.json and model.weights.h5, as Keras 3
 * writes them. Keras ignores `input` and `notes` in the metadata: its programs scale integer data
 * themselves. A model compiled with a user-defined optimizer, loss or metric is written as one that
 * is not compiled.
 *
 * An .onnx file takes floats, as fit does (indices as i32), under the names of its inputs. The
 * outputs are "NAME_out" of the layer NAME, "NAME_out_1" for its next output. It computes
 * inference, without dropout and other random layers of training. What ONNX cannot express is
 * refused, naming the layer and the reason. Extents of inputs that are unknown besides the batch
 * stay so; a few layers, which compute otherwise for each extent, refuse them. User-defined layers
 * are written op by op.
 *
 * A model loaded from .onnx has a layer for each node, of the file's name with dots for slashes
 * ("layer1.0.conv1.Conv"); what is constant, or depends on shapes alone, is computed when it is
 * loaded. Float constants that a node uses as parameters are weights, under their names, which are
 * trained, filters in Cornu's axes; statistics of BatchNormalization stay as they are. Tensors keep
 * ONNX' axes: images are (B, C, H, W). A graph is that of inference: Dropout does nothing. Opsets
 * from 7 on; an operator that is not supported is refused by name. Axis 0 of inputs and
 * outputs is the batch; if the file fixes it, all
 * batches have that size, and of a file of one row any number are predicted, one after the other. A
 * graph without such a batch (a scalar input, a state (2, batch, 64), time as axis 0, one number as
 * output) is a function: cornu_model_is_function. Where the graph computes along axis 0, such as a
 * softmax over the rows, so that rows depend on each other, cornu_predict and predictors compute
 * all rows at once, whatever their number, and say so where they are told to cut them; fit needs
 * all rows in one batch. Extents that are open in the file but for which one size alone fits have
 * that size. Matrices and filters that several nodes share stay one weight; vectors, of
 * which exporters merge equal ones, become one for each.
 * Weights are initializers, or, in a file that has none there, constants of Constant nodes; a model
 * without any that is trained is loaded with a warning in the log.
 *
 * Quantized numbers are the integers that they are between nodes; weights that the file only
 * dequantizes are floats, and trained. An If whose condition is known when the file is loaded is
 * its branch, else both are computed. A Loop is unrolled: up to 1,024 turns, whose number must be
 * known. Calls of local functions are the nodes of their bodies. Of other domains com.microsoft's
 * quantized and fused operators are read.
 *
 * External data are read from files beside the model, within their bounds; a symbolic link must
 * lead to a file beside the model, or beside the one that a link in the model's place leads to.
 * What a file asks for is bounded: 524,288 ops and nodes, and 64 for each of its own nodes; a
 * gigabyte and 16 times its own size of constants that are computed, or what
 * cornu_set_memory_limit and CORNU_MAX_MEMORY allow (CORNU_ERR_MEMORY, naming the node).
 *
 * A .tflite file takes floats (indices as i32), under the names of its inputs and, of its outputs,
 * of the layers, in the signature "serving_default". Batch normalization is part of the product
 * before it where nothing else reads that; recurrent layers are unrolled. What LiteRT does not have
 * is refused, naming the layer: ops without an operator there, extents that are unknown besides the
 * batch. Layers of imported nodes are written op by op, loops step by step, with the batch that
 * their file fixes.
 *
 * A model loaded from .tflite has a layer for each operator, which is one of an .onnx node, or for
 * several; images stay (B, H, W, C). Operators that are not available are refused by name and node,
 * custom ones unless they are registered (operators.h). Both sides of a branch are computed; loops
 * are unrolled, and refused where their turns depend on data. Variables are states of layers: they
 * go on from run to run, a row each, until cornu_model_reset_states. A quantized file takes and
 * gives the integers that it stores, as floats; it computes in f32, on the grids of its scales
 * where activations are quantized, and can be trained. The note "arithmetic" says so, and whether
 * cornu_int8_load (nn/lite/quantize.h) computes the file in integers alone.
 *
 * The states of stateful layers are in no file, as in Keras: a loaded model begins with zeros, and
 * an .onnx file computes every batch from zeros.
 *
 * Of several processes (device/processes) rank 0 alone writes, and those that share the model's
 * device all save it: what is dealt over them is gathered, and if rank 0 cannot write the file all
 * of them fail with its message. Each loads from its own path.
 *
 * Files contain no time, host or path: equal models give equal bytes, and the date that Keras
 * writes is always 1980-01-01. HDF5 files need libhdf5's header when Cornu is built and the library
 * when a program opens the first one (a statically linked program also needs the shared glibc it
 * was built with); without them they are refused. Untrusted files are validated: damage, links to
 * other files, and declared sizes that exceed the contents are errors. JSON has at most 128 MiB,
 * the arrays of a .npz file in all what CORNU_MAX_MEMORY allows.
 */
#ifndef CORNU_NN_FILES_H
#define CORNU_NN_FILES_H

#include "../model/functional.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Saves architecture, weights and the optimizer's variables, if there are any. The file appears
 * whole or not at all. CORNU_ERR_FILE if it cannot be written, CORNU_ERR_UNSUPPORTED for the suffix
 * of a format that cannot hold the model, CORNU_ERR_ARGUMENT for a model that is not built. */
CornuStatus cornu_model_save(CornuModel *model, const char *path);

/* Keras' export for LiteRT, and for ONNX: opsets 13 to 27. A runtime computes files of the opsets
 * that it knows, and those before. What an earlier opset lacks is composed of other operators, but
 * for:
 *
 *     before 16      sums by index, as of histograms and the bins of categories ("count")
 *
 * which is refused, naming the layer. */
typedef struct {
    char        unset;
    CornuModel *model;
    const char *path;             /* its suffix is .onnx or .tflite */
    int         opset_version;    /* of .onnx: default 18, which cornu_model_save writes */
} CornuExportConfig;

/* CORNU_ERR_VALUE for another opset, else as cornu_model_save. */
CornuStatus cornu_model_export_from(const CornuExportConfig *config);
#define cornu_model_export(...) \
    cornu_model_export_from(&(CornuExportConfig){ .unset = 0, __VA_ARGS__ })

/* Saves everything but the architecture. Weights are identified by the order and the classes of
 * layers in a .weights.h5 file, by their paths in an .npz file. */
CornuStatus cornu_model_save_weights(CornuModel *model, const char *path);

/* Keras' save_weights with max_shard_size: to several files beside the path, "NAME.weights.json",
 * which lists them: NAME_00000.weights.h5, …, each with at most so many GiB of values.
 * CORNU_ERR_ARGUMENT for a weight that is larger. cornu_model_save_weights takes 5 GiB. */
CornuStatus cornu_model_save_shards(CornuModel *model, const char *path, double max_shard_size);

/* Whether a model could be saved there, to check before a long training: the suffix, the library
 * that it needs, which is loaded, and that the file can be written. Errors are those of
 * cornu_model_save. Leaves no file. */
CornuStatus cornu_model_save_check(const char *path);

/* Loads a whole model, built but not compiled: its weights are on the host until it is. NULL if the
 * file is damaged or holds a layer that Cornu does not have.
 *
 *     cornu_model_load("network.onnx", .input_shapes = { { CORNU_NONE, 3, 48, 320 } })
 *
 * gives extents that an .onnx or .tflite file leaves open: for each input, in the file's order, all
 * of its shape, axis 0 included. CORNU_NONE stays open; axes of one name in the file have one
 * extent. CORNU_ERR_SHAPE, naming both, for another shape than the file's. */
typedef struct {
    char        unset;
    const char *path;     /* required */
    int64_t     input_shapes[CORNU_MAX_MODEL_TENSORS][CORNU_MAX_RANK];
                          /* each ends at the first 0; default: as the file has it */
} CornuLoadConfig;

/* Loads a file as it is. In C the macro below stands for it, and takes the arguments above, too. */
CornuModel *cornu_model_load(const char *path);
/* Loads a file with these arguments. */
CornuModel *cornu_model_load_from(const CornuLoadConfig *config);
#ifndef __cplusplus
#define cornu_model_load(...) \
    cornu_model_load_from(&(CornuLoadConfig){ .unset = 0, __VA_ARGS__ })
#endif

/* Keras' load_model: loads a model from a .keras, .h5 or .hdf5 file and compiles it for a device
 * (NULL as in cornu_compile) with the optimizer, loss and metrics it was saved with, and with the
 * optimizer's variables, to continue training. NULL and CORNU_ERR_UNSUPPORTED if the file does not
 * have them, or Cornu does not. */
CornuModel *cornu_model_load_compiled(const char *path, CornuDevice *device);

/* Keras' to_json: the architecture as JSON, without weights and the arguments of compile. The
 * caller frees the string by free(). NULL for a model with a layer that files cannot hold. */
char       *cornu_model_to_json(const CornuModel *model);
/* Keras' model_from_json: a model of that architecture, built if the JSON has the shapes of its
 * inputs; the caller owns it. NULL for JSON that is not that of a model, or names a layer that
 * Cornu does not have. */
CornuModel *cornu_model_from_json(const char *json);

/* The same for a layer: {"class_name": "Dense", "config": {"name": "dense", "units": 10}}. */
char       *cornu_layer_to_json(const CornuLayer *layer);
/* A layer from such JSON. Arguments that are not given have Keras' defaults; describe.h lists them.
 * The name is required. The caller owns the layer, also after it is called or added to a model, and
 * releases it by cornu_layer_free. */
CornuLayer *cornu_layer_from_json(const char *json);

/* Calls the layer with Keras' arguments of a call as JSON, {"args": […], "kwargs": {…}}, in which
 * {"class_name": "__keras_tensor__", "config": i} is symbol i of `in`: operands and masks by
 * position or by their keywords, "training", and "reverse" of a ReversibleEmbedding. Otherwise as
 * cornu_call_from (functional.h). */
CornuSymbol *cornu_call_from_json(CornuLayer *layer, const char *json, CornuSymbol *const *in,
                                  int count);

/* Compiles the model for a device (NULL as in cornu_compile) with Keras' get_compile_config as
 * JSON: {"optimizer", "loss", "metrics", "loss_weights", "weighted_metrics",
 * "steps_per_execution"}, of which the first is required. A name stands for an object with default
 * arguments; several outputs have lists, or dictionaries by their names. "gradient_norm",
 * "debug_nans" and "auto_scale_loss" are as in CornuCompileConfig. */
CornuStatus cornu_compile_from_json(CornuModel *model, const char *json, CornuDevice *device);
/* Likewise with a training step of its own (own_step.h), which is taken. */
CornuStatus cornu_compile_step_from_json(CornuModel *model, const char *json, CornuDevice *device,
                                         CornuOwnStep *step);

/* An optimizer, for steps recorded by hand: {"class_name": "Adam", "config": {"learning_rate":
 * 0.01}}, or "\"adam\"". The caller owns it, and frees it by cornu_optimizer_free unless it is
 * given to a model. NULL with a pending error for other JSON. */
CornuOptimizer *cornu_optimizer_from_json(const char *json);
/* Likewise a loss; cornu_loss_free. */
CornuLoss      *cornu_loss_from_json(const char *json);
/* Likewise a schedule; cornu_schedule_free. */
CornuSchedule  *cornu_schedule_from_json(const char *json);
/* Likewise a metric; cornu_metric_free. */
CornuMetric    *cornu_metric_from_json(const char *json);

/* Keras' get_compile_config of a compiled model as JSON, which the caller frees by free(). NULL and
 * CORNU_ERR_UNSUPPORTED for one that is not compiled, or with a user-defined part. */
char *cornu_compile_to_json(const CornuModel *model);

/* Loads the weights of a model of the same architecture: by position, or by name from files that
 * other programs wrote, in which f16 and bf16 fill f32. If the model has the optimizer whose
 * variables are in the file, they are loaded too. Nothing is changed unless everything fits;
 * CORNU_ERR_SHAPE names the weight and both shapes. */
CornuStatus cornu_model_load_weights(CornuModel *model, const char *path);

#ifdef __cplusplus
}
#endif
#endif
