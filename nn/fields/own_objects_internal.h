/* What {"class_name": "__own__", "config": i} in JSON stands for (own_objects.h). */
#ifndef CORNU_NN_OWN_OBJECTS_INTERNAL_H
#define CORNU_NN_OWN_OBJECTS_INTERNAL_H

#include "own_objects.h"

struct json_t;

/* The object that the value is of this thread's; NULL for other values. */
void *cornu__own_object(const struct json_t *value);

#endif
