/*
 * What can be in a model, as JSON: the classes of layers, optimizers, losses and so on, and their
 * arguments, for programs that write Keras' JSON, bindings of other languages, and editors. It
 * comes from the tables by which files are read and written, so that a new class is in it.
 *
 *     {"layers": [{"class_name": "Dense",
 *                  "fields": [{"name": "units", "type": "integer", "required": true},
 *                             {"name": "activation", "type": "activation", "default": "linear"},
 *                             …],
 *                  "operands": "…", "call_arguments": "…"}, …],
 *      "initializers": […], "regularizers": […], "constraints": […],
 *      "optimizers": […], "schedules": […], "losses": […], "metrics": […],
 *      "operations": [{"name": "clip", "class_name": "Clip", "module": "numpy", "several": false,
 *                      "arguments": [{"name": "x", "operand": true}, {"name": "x_min"},
 *                                    {"name": "x_max"}]}, …],
 *      "names": {"activations": ["linear", …], "losses": ["mse", …], "metrics": […],
 *                "optimizers": […], "operations": ["argmax", …]}}
 *
 * Fields are in Keras' order. Their types are the names of their kinds (fields/field.h),
 * "padding", with the strings that a field takes in "choices"; in optimizers and schedules
 * "number", "integer", "flag", "strings" or "any". A field without "default" and "required"
 * belongs to a class of which no object could be made for an example. "operands" are Keras'
 * keywords of a layer's further inputs, and "call_arguments" the fields that Keras takes in a
 * call, as in CornuKerasClass; "adapts": it has Keras' adapt; "has_vocabulary": get_vocabulary.
 * Arguments that all layers have, "name", "trainable" and "dtype", are not listed. Operations are
 * Keras' functions on tensors; "operand" arguments are tensors, or numbers beside them, "many" any
 * number of these; "several": of several results.
 */
#ifndef CORNU_NN_DESCRIBE_H
#define CORNU_NN_DESCRIBE_H

#ifdef __cplusplus
extern "C" {
#endif

/* The caller frees the string by free(). NULL with a pending error when out of memory, or if one is
 * pending. */
char *cornu_classes_to_json(void);

#ifdef __cplusplus
}
#endif
#endif
