#include "json_internal.h"

#include <stdbool.h>

/* How deep brackets nest, not looking into strings. */
static int nesting(const char *bytes, size_t size)
{
    int  depth = 0, deepest = 0;
    bool in_string = false;
    for (size_t i = 0; i < size; i++) {
        const char c = bytes[i];
        if (in_string) {
            if (c == '\\') i++;
            else if (c == '"') in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > deepest) deepest = depth;
        } else if (c == '}' || c == ']') {
            depth--;
        }
    }
    return deepest;
}

json_t *cornu__json_parse(const char *bytes, size_t size, int depth)
{
    const int found = nesting(bytes, size);
    if (found > depth) {
        cornu__fail(CORNU_ERR_FORMAT, "JSON nests %d deep, expected at most %d", found, depth);
        return NULL;
    }
    json_error_t error;
    json_t *value = json_loadb(bytes, size, JSON_REJECT_DUPLICATES, &error);
    if (!value)
        cornu__fail(json_error_code(&error) == json_error_out_of_memory ? CORNU_ERR_MEMORY
                                                                        : CORNU_ERR_FORMAT,
                    "JSON: %s, at byte %d", error.text, error.position);
    return value;
}

char *cornu__json_text(const json_t *value)
{
    char *text = value ? json_dumps(value, JSON_SORT_KEYS | JSON_COMPACT) : NULL;
    if (!text) cornu__fail(CORNU_ERR_MEMORY, "no memory for JSON text");
    return text;
}
