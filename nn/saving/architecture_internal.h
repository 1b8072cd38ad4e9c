/* Layers (architecture.c) and their arguments (fields.c), models (architecture_models.c) and the
 * calls that link layers (architecture_functional.c) in Keras' JSON. */
#ifndef CORNU_NN_ARCHITECTURE_INTERNAL_H
#define CORNU_NN_ARCHITECTURE_INTERNAL_H

#include "files_internal.h"
#include "../model/model_internal.h"

/* ---- Out: NULL without memory, and of operands that are NULL ---- */

/* `usual` is the policy of the model around, which rules layers without one of their own; or NULL.
 * Every layer in it must be of a class that files can hold. */
json_t *cornu__layer_to_json(const CornuLayer *layer, const CornuPolicy *usual);
json_t *cornu__model_to_json(const CornuModel *model, const CornuPolicy *usual);

/* A Functional model, and an InputLayer, the beginning of a model. */
json_t *cornu__functional_to_json(const CornuModel *model, const CornuPolicy *usual);
json_t *cornu__input_to_json(const CornuModel *model, const CornuSymbol *symbol);

/* "float32" */
const char *cornu__keras_dtype(CornuDtype dtype);

/* Appends a value, which is taken; NULL, and the list is gone, without memory. */
json_t *cornu__json_append(json_t *list, json_t *value);

/* The object with one member more; both are taken. */
json_t *cornu__json_with(json_t *object, const char *key, json_t *value);

/* CORNU_NONE is null. */
json_t *cornu__json_list(const int64_t *numbers, int count);

/* {"module", "class_name", "config", "registered_name": null}; config is taken. */
json_t *cornu__json_object(const char *module, const char *class_name, json_t *config);

/* How layers that are arguments of layers are written and read: with the policy of the model around
 * them. NULL for tables of fields without layers. */
typedef struct {
    const CornuPolicy *usual;
    json_t     *(*to_json)(const CornuLayer *layer, const CornuPolicy *usual);
    CornuStatus (*from_json)(const json_t *value, const CornuPolicy *usual, CornuLayer **layer);
} CornuLayersInside;

/* The fields of a config, except defaults that are left out, added to an object, which is taken. */
json_t *cornu__fields_to_json(const CornuLayersInside *inside, const CornuField *fields,
                              const void *config, json_t *object);

/* A policy that was chosen. What the device chose is none of the architecture's: "float32", which
 * Keras reads as such. */
json_t *cornu__policy_to_json(const CornuPolicy *policy);

/* ---- In ---- */

/* The layer, or model, that its caller gives up with cornu_layer_free; messages begin with its
 * name. NULL on failure. */
CornuStatus cornu__layer_from_json(const json_t *value, const CornuPolicy *usual,
                                   CornuLayer **layer);

/* Likewise; NULL with a pending error. */
CornuModel *cornu__model_from_json(const json_t *value, const CornuPolicy *usual);

/* Of a Functional model's config; policy is its own, by name, or NULL. */
CornuModel *cornu__functional_from_json(const json_t *config, const char *policy,
                                        const CornuPolicy *usual);

/* Whether it is an InputLayer; and its batch_shape, of which the batch may be null, dtype and name,
 * into what is all zeros. */
bool        cornu__is_input_json(const json_t *value);
CornuStatus cornu__read_input(const json_t *value, CornuInputConfig *input);

/* The class of layers that a layer's JSON names; NULL if there is none. */
const CornuLayerClass *cornu__json_class(const json_t *value);

/* Whether a class is one of models. */
bool cornu__is_model_class(const char *class_name);

/* Up to `most` whole numbers; null is CORNU_NONE. */
CornuStatus cornu__read_list(const json_t *value, const char *name, int64_t *numbers, size_t most,
                             size_t *count);

/* One field of a config, from its value. */
CornuStatus cornu__read_field(const CornuLayersInside *inside, const CornuField *field,
                              const json_t *value, void *config);

/* The members of an object, by a table; of those that it does not have the ones that every layer
 * has are passed over, and what is Keras' default. */
CornuStatus cornu__read_arguments(const CornuLayersInside *inside, const CornuField *fields,
                                  const json_t *config, void *arguments);

/* CORNU_ERR_FORMAT: the member is not what was expected. */
CornuStatus cornu__unexpected(const char *name, const char *expected);

/* A policy as it was written: NULL in *name where none was chosen. */
CornuStatus cornu__read_policy(const json_t *dtype, const char **name);

#endif
