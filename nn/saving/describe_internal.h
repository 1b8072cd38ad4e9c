/* How a class is described (describe_fields.c), for the kinds of classes (describe.c). */
#ifndef CORNU_NN_DESCRIBE_INTERNAL_H
#define CORNU_NN_DESCRIBE_INTERNAL_H

#include "architecture/architecture_internal.h"

/* A class to describe. `made` makes an object of a value of JSON, and returns its config, or NULL
 * where the value is refused. */
typedef struct CornuDescribed {
    const char                  *kind;      /* "layers" */
    const char                  *class_name;
    const CornuField            *fields;
    const CornuWeightRuleFamily *family;    /* of a rule of weights */
    json_t *(*made)(const struct CornuDescribed *self, const json_t *value);
} CornuDescribed;

/* {"class_name": …, "fields": […]}. NULL when out of memory. */
json_t *cornu__describe(const CornuDescribed *described);

/* The fields, a list that it takes, in Keras' order of the class. */
json_t *cornu__describe_in_order(const char *kind, const char *class_name, json_t *fields);

#endif
