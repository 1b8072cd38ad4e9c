/*
 * Models of Keras 2 and tf.keras (1.0 to 2.15, and the package tf-keras): their JSON is rewritten
 * to that of Keras 3, which alone is parsed. JSON of Keras 3 stays as it is.
 *
 * Sources: tf_keras/src/engine/functional.py, saving/legacy/hdf5_format.py, saving_utils.py.
 */
#ifndef CORNU_NN_KERAS2_INTERNAL_H
#define CORNU_NN_KERAS2_INTERNAL_H

#include "../../formats/json_internal.h"

/* ---- What files.c and keras.c use (models.c, training.c) ---- */

/* The JSON of a model in Keras 3's form, a new reference. `version` is what the file says of the
 * Keras that wrote it, "2.2.4-tf", or NULL: then the JSON shows it. NULL with a pending error:
 * CORNU_ERR_UNSUPPORTED names the layer that Keras 3 has no equal of. */
json_t *cornu__keras2_model(const json_t *model, const char *version);

/* The same of the arguments of compile, a file's "training_config" or "compile_config". */
json_t *cornu__keras2_training(const json_t *training, const char *version);

/* ---- Shared by the files of this folder ---- */

/* The members of a functional model, by name. */
typedef struct {
    const json_t *layers;         /* as the file has them */
    json_t       *places;         /* the index of each name */
    int          *first;          /* the number by which each counts its first call: 0 or 1 */
} CornuKeras2Links;

/* The calls of a layer as Keras 3 writes them, from "inbound_nodes" (calls.c); and a tensor of the
 * model's inputs or outputs, [layer, call, result]. */
json_t *cornu__keras2_calls(const CornuKeras2Links *links, const json_t *nodes);
json_t *cornu__keras2_end(const CornuKeras2Links *links, const json_t *history);

/* Of the config of a model. */
CornuStatus cornu__keras2_links(const json_t *config, CornuKeras2Links *links);
void        cornu__keras2_links_free(CornuKeras2Links *links);

/* Applies the rules of rules.def to an object {"class_name", "config"}, of which it owns both, and
 * sets its class (rules.c). */
CornuStatus cornu__keras2_apply(const char *class_name, json_t *object, json_t *config);

/* Whether a layer is a TensorFlow function; and its operation of keras.ops, whose calls are
 * Keras 3's (functions.c). NULL with a pending error for a function that is not available. */
bool    cornu__keras2_is_function(const char *class_name);
json_t *cornu__keras2_function(const char *name, const json_t *config, const json_t *calls);

#endif
