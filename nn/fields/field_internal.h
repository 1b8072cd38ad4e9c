/*
 * Kinds of fields: how the arguments of a class are written as Keras' JSON and read from it. Kinds
 * of numbers, extents and lists are in this folder; one of an enumeration, of layers or of rules
 * for weights is beside its type.
 */
#ifndef CORNU_NN_FIELD_INTERNAL_H
#define CORNU_NN_FIELD_INTERNAL_H

#include "../../device/type.h"
#include "../config/policy.h"
#include "../formats/json_internal.h"
#include "field.h"

#include <stdbool.h>

typedef struct CornuLayer CornuLayer;

/* Writes and reads layers that are arguments of layers, with the policy of the enclosing model.
 * NULL for tables of fields without layers. */
typedef struct {
    const CornuPolicy *usual;
    json_t     *(*to_json)(const CornuLayer *layer, const CornuPolicy *usual);
    CornuStatus (*from_json)(const json_t *value, const CornuPolicy *usual, CornuLayer **layer);
} CornuLayersInside;

/* A value to write, and the place in a config, whose bytes are 0, for one that is read. */
typedef struct {
    const CornuFieldKind    *kind;
    const void              *at;
    const CornuLayersInside *inside;
} CornuFieldSource;

typedef struct {
    const CornuFieldKind    *kind;
    const char              *name;   /* for messages */
    void                    *at;
    const CornuLayersInside *inside;
} CornuFieldTarget;

typedef json_t     *CornuFieldWrite(const CornuFieldSource *from);   /* NULL when out of memory */
typedef CornuStatus CornuFieldRead(const CornuFieldTarget *to, const json_t *value);

enum { CORNU__FIELD_EXAMPLES = 3, CORNU__MOST_WORDS = 8 };

struct CornuFieldKind {
    const char      *name;        /* in descriptions (saving/describe.h): "integer" */
    CornuFieldWrite *write;
    CornuFieldRead  *read;
    size_t           size;        /* of a value, if its bytes are its value; or 0 */
    bool             none;        /* 0 stands for null or a default, and CORNU_ZERO for 0 */
    bool             takes_null;  /* null is a value; else it is as if the argument were missing */

    /* Of two rows of the same name the second one is for strings alone, or for objects of the
     * caller's; else for lists. */
    bool             for_strings, for_own;

    /* Whether a value is the default, which files omit; NULL: they omit none. */
    bool           (*is_default)(const void *at);

    /* The memory that reading has allocated for the value, or NULL; NULL: none. It is freed once
     * the object is made, unless the object `keeps` it, as values that are copied refer to it. */
    void          *(*memory)(const void *at);
    bool             keeps;

    int              axes;        /* extents: of so many spatial axes */
    int              most_layers; /* how many layers it holds at most */
    const struct CornuWeightRuleFamily *family; /* rules of weights: of which there are */

    /* Enumerations: the strings of the values; and the value of null, if the kind takes it. */
    const char      *words[CORNU__MOST_WORDS];
    int              null;

    /* Values, as JSON, for an argument that a class requires: the next is tried where it refuses
     * one. */
    const char      *examples[CORNU__FIELD_EXAMPLES];
};

/* For kinds of enumerations. */
#define CORNU__FIELD_OF_WORDS(Enum) \
    .size = sizeof(Enum), .read = cornu__field_read_word, .write = cornu__field_write_word
CornuFieldWrite cornu__field_write_word;
CornuFieldRead  cornu__field_read_word;
/* The string of a value, NULL if it has none. */
static inline const char *cornu__field_word(const CornuFieldKind *kind, int value)
{
    return (unsigned)value < CORNU__MOST_WORDS ? kind->words[value] : NULL;
}

/* ---- Tables ---- */

/* Adds the fields of a config, less defaults that Keras omits, to an object, which it takes. NULL
 * when out of memory, or given NULL. */
json_t *cornu__fields_to_json(const CornuLayersInside *inside, const CornuField *fields,
                              const void *config, json_t *object);

/* One field of a config, from its value. */
CornuStatus cornu__read_field(const CornuLayersInside *inside, const CornuField *field,
                              const json_t *value, void *config);

/* Reads the members of an object by a table; ignores members outside it that every layer has, and
 * those that have Keras' default. */
CornuStatus cornu__read_arguments(const CornuLayersInside *inside, const CornuField *fields,
                                  const json_t *config, void *arguments);

/* Whether files omit the field, as it has its default value. */
bool cornu__is_default(const CornuField *field, const void *config);

/* ---- Values ---- */

json_t *cornu__json_list(const int64_t *numbers, int count);
/* CORNU_NONE is null. */
json_t *cornu__json_shape(CornuShape shape);
/* {"module", "class_name", "config", "registered_name": null}; takes config. */
json_t *cornu__json_object(const char *module, const char *class_name, json_t *config);

/* Up to `most` integers; null is CORNU_NONE. */
CornuStatus cornu__read_list(const json_t *value, const char *name, int64_t *numbers, size_t most,
                             size_t *count);

/* A NumPy array is written with its dtype, others as nested lists: the list in either. */
const json_t *cornu__json_list_in(const json_t *value);

/* CORNU_ERR_FORMAT: the member is not of the expected kind. */
CornuStatus cornu__unexpected(const char *name, const char *expected);

#endif
