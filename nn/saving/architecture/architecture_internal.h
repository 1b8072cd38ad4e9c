/* Keras' JSON of layers, of models and of the calls that link layers. */
#ifndef CORNU_NN_ARCHITECTURE_INTERNAL_H
#define CORNU_NN_ARCHITECTURE_INTERNAL_H

#include "../files_internal.h"
#include "../../fields/field_internal.h"
#include "../../layers/operations/operation_internal.h"
#include "../../model/model_internal.h"
#include "../../model/traced/traced_internal.h"
#include "../../weights/weight_rules_internal.h"

/* ---- Lists and dictionaries of tensors ---- */

/* Calls `leaf` for each value in nested lists and dictionaries, in Keras' order: a tensor,
 * [layer, call, result], or anything else that is not a list or dictionary. */
typedef CornuStatus CornuLeaf(void *context, const json_t *value);
CornuStatus cornu__each_leaf(const json_t *value, CornuLeaf *leaf, void *context);

/* The keys of a dictionary of tensors, in Keras' order, which it owns; none for any other form. And
 * a form with these keys. */
CornuStatus cornu__form_keys(const json_t *form, const char **keys, size_t most);
json_t     *cornu__form_of_keys(char *const *keys, int count);

/* The keys of an object, which owns them, in Keras' order; the caller releases the list. NULL with
 * an error when out of memory. */
const char **cornu__sorted_keys(const json_t *object);

/* A copy in which each is replaced by the next of others. NULL when out of memory. */
typedef json_t *CornuNextLeaf(void *context);
json_t *cornu__with_leaves(const json_t *value, CornuNextLeaf *next, void *context);

/* ---- Keywords (keywords.c) ---- */

/* Takes the next of the words in *text, which blanks separate; false after the last. */
bool cornu__next_word(const char **text, char word[64]);
/* Removes the mark of a list, if there is one. */
bool cornu__cut_star(char word[64]);
/* Whether one of the words is this one; the mark of a list is ignored. */
bool cornu__has_word(const char *words, const char *wanted);

/* ---- Writing: NULL when out of memory, or if an operand is NULL ---- */

/* Whether files can hold the layer and those in it, by their classes and arguments. */
CornuStatus cornu__check_layers(const CornuLayer *layer);

/* `usual` is the policy of the enclosing model, which applies to layers without one of their own;
 * or NULL. Every layer in it must be of a class that files can hold. */
json_t *cornu__layer_to_json(const CornuLayer *layer, const CornuPolicy *usual);
json_t *cornu__model_to_json(const CornuModel *model, const CornuPolicy *usual);

/* A Functional model, and an InputLayer, with which a model begins. */
json_t *cornu__functional_to_json(const CornuModel *model, const CornuPolicy *usual);
json_t *cornu__input_to_json(const CornuModel *model, const CornuSymbol *symbol);

/* "float32" */
const char *cornu__keras_dtype(CornuDtype dtype);

/* A policy that was chosen. One that the device chose does not belong to the architecture: it is
 * written as "float32", Keras' default. */
json_t *cornu__policy_to_json(const CornuPolicy *policy);

/* That of a layer whose kernel is quantized; and its quantization_config (quantized.c). */
json_t *cornu__quantized_policy_to_json(const CornuLayer *layer);
json_t *cornu__quantization_to_json(const CornuLayer *layer);

/* An operation, and a call of it, in which to_json writes operand i. */
typedef json_t *CornuTensorToJson(void *context, int i);
json_t *cornu__operation_to_json(const CornuLayer *layer);
json_t *cornu__operation_call_to_json(const CornuLayer *layer, CornuTensorToJson *to_json,
                                      void *context);

/* ---- Layers in several places (sharing.c): from begin, writing or reading, to end ---- */

CornuStatus cornu__sharing_write(const CornuModel *model);
void        cornu__sharing_read(void);
void        cornu__sharing_end(void);
/* The JSON of a layer with its id, if it stands in several places. */
json_t     *cornu__shared_to_json(const CornuLayer *layer, json_t *value);
/* The layer of the value's id, which the caller releases; NULL if there is none yet. And this one
 * for that id from now on. */
CornuLayer *cornu__shared_layer(const json_t *value);
CornuStatus cornu__share_layer(const json_t *value, CornuLayer *layer);

/* ---- Reading ---- */

/* A layer or model, which the caller releases by cornu_layer_free; messages begin with its name.
 * NULL on failure. */
CornuStatus cornu__layer_from_json(const json_t *value, const CornuPolicy *usual,
                                   CornuLayer **layer);

/* Likewise; NULL with a pending error. */
CornuModel *cornu__model_from_json(const json_t *value, const CornuPolicy *usual);

/* Whether a dtype is a policy that quantizes, which the next function gives to the layer, and the
 * last one its quantization_config, or null (quantized.c). */
bool        cornu__is_quantized_policy(const json_t *dtype);
CornuStatus cornu__read_quantized_policy(const json_t *dtype, CornuLayer *layer);
CornuStatus cornu__read_quantization(const json_t *value, CornuLayer *layer);

/* The class of an operation, or NULL; and an operation of a known class, which the caller releases
 * by cornu_layer_free. */
const CornuOperationClass *cornu__operation_of_json(const json_t *value);
CornuStatus cornu__operation_from_json(const json_t *value, CornuLayer **layer);

/* The arguments of a call of an operation, { "args", "kwargs" }, with its tensors as numbers; their
 * histories are appended to a list. NULL when out of memory. */
json_t *cornu__operation_operands(const json_t *call, json_t *histories);

/* A Functional model from its config; policy is the name of its own, or NULL. Layers that graphs of
 * a traced layer call by the same name are those, with their weights; NULL: none are. */
CornuModel *cornu__functional_from_json(const json_t *config, const char *policy,
                                        const CornuPolicy *usual, const CornuTraced *shared);

/* A traced layer, likewise as other layers: what Keras writes of a class of the program, so that
 * Keras reads it where that class is registered, and beside it, as "traced", its weights and
 * graphs. */
json_t     *cornu__traced_to_json(const CornuLayer *layer, const CornuPolicy *usual);
bool        cornu__is_traced_json(const json_t *value);
CornuStatus cornu__traced_from_json(const json_t *value, CornuLayer **layer);

/* A member of an InputLayer of a function, whose batch_shape is all of its shape. Keras cannot load
 * one. */
#define CORNU__WHOLE_INPUT "whole"

/* Whether it is an InputLayer; and its batch_shape, whose batch may be null, its dtype and its
 * name, into a struct of zeros. */
bool        cornu__is_input_json(const json_t *value);
CornuStatus cornu__read_input(const json_t *value, CornuInputConfig *input);
/* Whether it is one of a function, cornu__whole_input_node; and that, with its type. */
bool        cornu__is_whole_input(const json_t *value);
CornuStatus cornu__read_whole_input(const json_t *value, CornuInputConfig *input, CornuType *type);

/* A loss that is a layer (loss_layers.c), likewise. */
json_t     *cornu__loss_layer_to_json(const CornuLayer *layer);
bool        cornu__is_loss_layer_json(const json_t *value);
CornuStatus cornu__loss_layer_from_json(const json_t *value, CornuLayer **layer);

/* A loss of the program's own, of which the JSON has what it computes: {"layer", a traced layer of
 * y_true and y_pred, "reduction", "each_row"} as "traced". NULL with a pending error. Layers are
 * read by files that read losses, too, which therefore find it in a table (loss_readers.c). */
CornuLoss *cornu__traced_loss_from_json(const json_t *value);
extern CornuLoss *(*const cornu__read_traced_loss)(const json_t *value);

/* The class that the JSON of a layer names; NULL if there is none. */
const CornuLayerClass *cornu__json_class(const json_t *value);

/* Whether it is a class of models. */
bool cornu__is_model_class(const char *class_name);

/* A policy as it was written; *name is NULL if none was chosen. */
CornuStatus cornu__read_policy(const json_t *dtype, const char **name);

#endif
