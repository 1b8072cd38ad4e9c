/* JSON from files nobody vouches for. */
#ifndef CORNU_NN_JSON_INTERNAL_H
#define CORNU_NN_JSON_INTERNAL_H

#include "../../device/status_internal.h"

#include <jansson.h>
#include <stdbool.h>

/* Parses `size` bytes. Repeated keys, more than `depth` brackets inside each other, anything
 * behind the value, and bytes that are no UTF-8 are CORNU_ERR_FORMAT. NULL on failure, without
 * making the error pending. The caller decrefs. */
json_t *cornu__json_parse(const char *bytes, size_t size, int depth);

/* The text of a value: keys sorted, no blanks; the caller frees it with free(). NULL and
 * CORNU_ERR_MEMORY (not pending) if there is no room or `value` is NULL, as after a json_pack
 * without memory. */
char *cornu__json_text(const json_t *value);

/* Whether json_string takes the text if there is memory: jansson does not say which it lacked. */
bool cornu__is_utf8(const char *text);

#endif
