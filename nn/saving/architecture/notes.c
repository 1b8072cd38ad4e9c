/* The notes of a model, which its files keep: the names of its classes, and strings of the user. */
#include "architecture_internal.h"

#include <stdio.h>
#include <string.h>

static const char class_names[] = "class_names";

static CornuStatus fail_text(const CornuModel *model, const char *what)
{
    return cornu__fail(CORNU_ERR_VALUE, "%s: %s is not UTF-8, which is all that files of models "
                       "hold", cornu_model_name(model), what);
}

/* Sets a key to a value, which it takes; NULL means out of memory. */
static CornuStatus put(CornuModel *model, const char *key, json_t *value)
{
    if (!model->notes) model->notes = json_object();
    if (value && model->notes && json_object_set_new(model->notes, key, value) == 0)
        return CORNU_OK;
    if (!model->notes) json_decref(value);
    return cornu__fail(CORNU_ERR_MEMORY, "%s: no memory for the note %s", cornu_model_name(model),
                       key);
}

CornuStatus cornu_model_set_note(CornuModel *model, const char *key, const char *text)
{
    CORNU__TRY(cornu__model_check(model));
    if (!key || !*key || !strcmp(key, class_names))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: the note's key is %s%s, expected a string of "
                           "the caller's", cornu_model_name(model), key ? "\"" : "missing",
                           key && *key ? "class_names\", which cornu_model_set_class_names sets"
                                       : key ? "\"" : "");
    if (!cornu__is_utf8(key)) return fail_text(model, "the note's key");
    if (text && !cornu__is_utf8(text)) return fail_text(model, key);
    if (text) return put(model, key, json_string(text));
    if (model->notes) json_object_del(model->notes, key);
    return CORNU_OK;
}

const char *cornu_model_note(const CornuModel *model, const char *key)
{
    return json_string_value(json_object_get(model->notes, key));
}

static CornuStatus check_class_name(const CornuModel *model, const char *name, size_t i)
{
    char what[48];
    if (!name || !*name)
        return cornu__fail(CORNU_ERR_VALUE, "%s: the name of class %zu is %s, expected a string",
                           cornu_model_name(model), i, name ? "empty" : "missing");
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7F)
            return cornu__fail(CORNU_ERR_VALUE, "%s: the name of class %zu holds the control "
                               "character %d", cornu_model_name(model), i, *c);
    snprintf(what, sizeof what, "the name of class %zu", i);
    return cornu__is_utf8(name) ? CORNU_OK : fail_text(model, what);
}

CornuStatus cornu_model_set_class_names(CornuModel *model, const char *const *names, int count)
{
    CORNU__TRY(cornu__model_check(model));
    json_t *list = json_array();
    for (int i = 0; i < count; i++) {
        if (check_class_name(model, names[i], (size_t)i)) {
            json_decref(list);
            return cornu_error_status();
        }
        list = cornu__json_append(list, json_string(names[i]));
    }
    return put(model, class_names, list);
}

const char *cornu_model_class_name(const CornuModel *model, int64_t i)
{
    const json_t *list = json_object_get(model->notes, class_names);
    return i < 0 ? NULL : json_string_value(json_array_get(list, (size_t)i));
}

CornuStatus cornu__notes_read(CornuModel *model, const json_t *notes)
{
    const char   *key;
    const json_t *value;
    if (!notes) return CORNU_OK;
    if (!json_is_object(notes)) return cornu__fail(CORNU_ERR_FORMAT, "notes is not an object");
    json_object_foreach((json_t *)notes, key, value) {
        const bool names = !strcmp(key, class_names);
        if (names ? !json_is_array(value) : !json_is_string(value))
            return cornu__fail(CORNU_ERR_FORMAT, "notes: %.100s is not a %s", key,
                               names ? "list" : "string");
        for (size_t i = 0; names && i < json_array_size(value); i++)
            CORNU__TRY(check_class_name(model, json_string_value(json_array_get(value, i)), i));
    }
    model->notes = json_deep_copy(notes);
    return model->notes ? CORNU_OK : cornu__fail(CORNU_ERR_MEMORY, "no memory for the notes");
}
