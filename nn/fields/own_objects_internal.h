/* What {"class_name": "__own__", "config": i} in JSON stands for (own_objects.h). */
#ifndef CORNU_NN_OWN_OBJECTS_INTERNAL_H
#define CORNU_NN_OWN_OBJECTS_INTERNAL_H

#include <stdbool.h>

#include "own_objects.h"

struct json_t;

/* The object that the value is of this thread's; NULL for other values. */
void *cornu__own_object(const struct json_t *value);

/* What the program's resolver has for a value that names a class or a function that is not the
 * library's; NULL, without an error, if it has none. */
void *cornu__resolve(const char *kind, const struct json_t *value);

/* Whether a value names a class or a function of the program's, by Keras' rules: it has a
 * registered_name, and its module is not keras or in it. */
bool cornu__is_of_program(const struct json_t *value);

/* The name that a record has for its class or function, for messages. */
const char *cornu__record_name(const struct json_t *record);

#endif
