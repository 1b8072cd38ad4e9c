/* JSON of requests, as TensorFlow Serving's json_tensor.cc takes it, and its messages. */
#ifndef CORNU_SERVE_JSON_H
#define CORNU_SERVE_JSON_H

#include <jansson.h>

#include "reply.h"

/* Parses an object; what follows it is ignored. NaN, Infinity and -Infinity are numbers, which
 * json_number reads. The caller drops it. NULL with a problem. */
json_t *json_parse(const char *bytes, size_t size, Problem *problem);

/* Whether a value is a number, not only an integer; and its value. */
bool json_number(const json_t *value, double *number);

/* "Number", "Array", … */
const char *json_kind(const json_t *value);

/* The value as text for messages, cut after 256 bytes. */
typedef struct { char text[264]; } JsonShown;
const char *json_show(JsonShown *to, const json_t *value);

/* Whether it is { "b64": "…" } and nothing else. */
bool json_is_base64(const json_t *value);

/* Decodes such a value, adding a zero that *size does not count; the caller frees it. */
char *json_decode_base64(const json_t *value, size_t *size, Problem *problem);

#endif
