/* JSON from untrusted files. */
#ifndef CORNU_NN_JSON_INTERNAL_H
#define CORNU_NN_JSON_INTERNAL_H

#include "../../device/status_internal.h"

#include <jansson.h>
#include <stdbool.h>

/* The most bytes that are parsed: values take up to twenty times as much memory as their text. */
#define CORNU__MOST_JSON ((size_t)128 << 20)

/* Parses `size` bytes. CORNU_ERR_FORMAT for more than CORNU__MOST_JSON, repeated keys, nesting
 * deeper than `depth`, anything after the value, and invalid UTF-8. NULL on failure, without
 * making the error pending. The caller owns the reference. */
json_t *cornu__json_parse(const char *bytes, size_t size, int depth);

/* Prints a value, keys sorted, no blanks; the caller frees the string with free(). NULL and
 * CORNU_ERR_MEMORY (not pending) if out of memory or if `value` is NULL, as after a json_pack that
 * was. */
char *cornu__json_text(const json_t *value);

/* Whether json_string accepts the string: if it fails, jansson does not say whether for lack of
 * memory. */
bool cornu__is_utf8(const char *text);

/* As json_equal, but numbers are equal by value: 0 and 0.0. And whether a value is that of a JSON
 * text of the program's own. */
bool cornu__json_same(const json_t *a, const json_t *b);
bool cornu__json_is(const json_t *value, const char *text);

/* A copy in which `leaf` may replace values: where it returns true, *made, a new reference or NULL
 * when out of memory, takes the place of the value; else lists and objects are gone through, and
 * other values stay. The other function takes an object as one whatever `leaf` says of it. */
typedef bool CornuJsonLeaf(void *context, const json_t *value, json_t **made);
json_t *cornu__json_map(const json_t *value, CornuJsonLeaf *leaf, void *context);
json_t *cornu__json_map_members(const json_t *object, CornuJsonLeaf *leaf, void *context);

/* The list with one more value, the object with one more member; they take both. NULL when out of
 * memory or given NULL, so that one check at the end of a chain of calls suffices. */
json_t *cornu__json_append(json_t *list, json_t *value);
json_t *cornu__json_with(json_t *object, const char *key, json_t *value);

#endif
