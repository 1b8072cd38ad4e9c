/* Values of JSON that many kinds have, and the strings of enumerations. Out of memory jansson
 * returns NULL; given NULL it fails. Functions that write do the same, so that one check at the
 * end suffices. */
#include "field_internal.h"

#include <stdio.h>
#include <string.h>

json_t *cornu__json_list(const int64_t *numbers, int count)
{
    json_t *result = json_array();
    for (int i = 0; i < count; i++)
        result = cornu__json_append(result, json_integer(numbers[i]));
    return result;
}

json_t *cornu__json_shape(CornuShape shape)
{
    json_t *result = json_array();
    for (int i = 0; i < shape.rank; i++)
        result = cornu__json_append(result, shape.extent[i] == CORNU_NONE
                                                ? json_null() : json_integer(shape.extent[i]));
    return result;
}

json_t *cornu__json_object(const char *module, const char *class_name, json_t *config)
{
    return json_pack("{s:s, s:s, s:o, s:n}", "module", module, "class_name", class_name,
                     "config", config, "registered_name");
}

CornuStatus cornu__unexpected(const char *name, const char *expected)
{
    return cornu__fail(CORNU_ERR_FORMAT, "%s is not %s", name, expected);
}

CornuStatus cornu__read_list(const json_t *value, const char *name, int64_t *numbers, size_t most,
                             size_t *count)
{
    *count = json_array_size(value);
    if (!json_is_array(value) || *count > most)
        return cornu__fail(CORNU_ERR_FORMAT, "%s is not a list of at most %zu numbers", name, most);
    for (size_t i = 0; i < *count; i++) {
        const json_t *number = json_array_get(value, i);
        if (!json_is_integer(number) && !json_is_null(number))
            return cornu__unexpected(name, "a list of whole numbers");
        numbers[i] = json_is_null(number) ? CORNU_NONE : json_integer_value(number);
    }
    return CORNU_OK;
}

/* A NumPy array is written with its dtype, others as nested lists. */
const json_t *cornu__json_list_in(const json_t *value)
{
    const char *class_name = json_string_value(json_object_get(value, "class_name"));
    if (!class_name || strcmp(class_name, "__numpy__")) return value;
    return json_object_get(json_object_get(value, "config"), "value");
}

json_t *cornu__field_write_word(const CornuFieldSource *from)
{
    const char *word = cornu__field_word(from->kind, *(const int *)from->at);
    return word ? json_string(word) : json_null();
}

CornuStatus cornu__field_read_word(const CornuFieldTarget *to, const json_t *value)
{
    const CornuFieldKind *kind = to->kind;
    const char           *word = json_string_value(value);
    const char           *words[CORNU__MOST_WORDS];
    char                  all[160] = "one of ";
    int                   count = 0;
    if (kind->takes_null && json_is_null(value)) {
        *(int *)to->at = kind->null;
        return CORNU_OK;
    }
    if (!word)
        return cornu__unexpected(to->name, kind->takes_null ? "null or a string" : "a string");
    for (int i = 0; i < CORNU__MOST_WORDS; i++) {
        if (!(words[count] = kind->words[i])) continue;
        *(int *)to->at = i;
        if (!strcmp(word, words[count++])) return CORNU_OK;
    }
    if (count == 2)
        snprintf(all, sizeof all, "%s or %s", words[0], words[1]);
    else
        for (int i = 0; i < count; i++)
            snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? ", " : "", words[i]);
    return cornu__fail(CORNU_ERR_FORMAT, "%s is \"%.40s\", expected %s", to->name, word, all);
}
