/* Arguments as Keras' JSON, by the table of a config's fields. */
#include "field_internal.h"
#include "own_objects_internal.h"

#include <string.h>

bool cornu__is_default(const CornuField *field, const void *config)
{
    return field->kind->is_default &&
           field->kind->is_default((const char *)config + field->offset);
}

json_t *cornu__fields_to_json(const CornuLayersInside *inside, const CornuField *field,
                              const void *config, json_t *object)
{
    for (; field && field->name; field++) {
        const CornuFieldSource from = { field->kind, (const char *)config + field->offset, inside };
        if (!cornu__is_default(field, config))
            object = cornu__json_with(object, field->name, field->kind->write(&from));
    }
    return object;
}

CornuStatus cornu__read_field(const CornuLayersInside *inside, const CornuField *field,
                              const json_t *value, void *config)
{
    const CornuFieldTarget to = {
        field->kind, field->name, (char *)config + field->offset, inside,
    };
    return field->kind->read(&to, value);
}

/* The row of an argument. Of two with the same name the second one is for lists, strings or objects
 * of the caller's. */
static const CornuField *find_field(const CornuField *field, const char *name, const json_t *value)
{
    const CornuField *found = NULL;
    const bool        listed = json_is_array(cornu__json_list_in(value));
    for (; field && field->name; field++) {
        const bool fits = field->kind->for_own       ? cornu__own_object(value) != NULL
                          : field->kind->for_strings ? json_is_string(value)
                                                     : !found || listed;
        if (!strcmp(field->name, name) && fits) found = field;
    }
    return found;
}

/* Arguments of every layer, whatever its class. */
static bool is_common(const char *name)
{
    static const char *const names[] = { "name", "trainable", "dtype", "lora_rank", "lora_alpha",
                                         "quantization_config" };
    size_t i = 0;
    while (i < sizeof names / sizeof *names && strcmp(name, names[i])) i++;
    return i < sizeof names / sizeof *names;
}

/* Arguments that Keras writes and no class here has, with the value that they must have; NULL if
 * any value will do. */
static const struct { const char *name, *value; } foreign[] = {
    { "data_format", "\"channels_last\"" }, { "seed", NULL },
    { "rms_scaling", "false" },
    { "fill_mode", "\"constant\"" }, { "sparse", "false" },
    { "ragged", "false" },
    { "vocabulary_size", NULL }, { "vocabulary_dtype", NULL }, { "oov_method", "\"floormod\"" },
};

static CornuStatus check_foreign(const char *name, const json_t *value)
{
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        if (strcmp(foreign[i].name, name)) continue;
        if (!foreign[i].value || cornu__json_is(value, foreign[i].value)) return CORNU_OK;
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "the argument \"%s\" is only available as %s",
                           name, foreign[i].value);
    }
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "the argument \"%.60s\" is not known", name);
}

CornuStatus cornu__read_arguments(const CornuLayersInside *inside, const CornuField *fields,
                                  const json_t *config, void *arguments)
{
    const char *name;
    json_t     *value;
    json_object_foreach((json_t *)config, name, value) {
        const CornuField *field = find_field(fields, name, value);
        if (json_is_null(value) && !(field && field->kind->takes_null)) continue;   /* not given */
        if (field)
            CORNU__TRY(cornu__read_field(inside, field, value, arguments));
        else if (!is_common(name))
            CORNU__TRY(check_foreign(name, value));
    }
    return CORNU_OK;
}
