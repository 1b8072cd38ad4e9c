/* What files hold of losses and metrics: Keras' class, and the arguments it was made with. */
#ifndef CORNU_NN_SERIALIZABLE_INTERNAL_H
#define CORNU_NN_SERIALIZABLE_INTERNAL_H

#include "../layers/layer.h"
#include "../metrics/metric.h"

/* One for each constructor. A config's 0 is Keras' default. */
struct CornuSerializableClass {
    const char       *class_name;  /* Keras': "Huber". NULL: its name, a text, says it all */
    const char       *name;        /* of objects that are given none: "huber" */
    const CornuField *fields;      /* the arguments in the config, besides its .name */
    size_t            config_size, name_offset;
    void           *(*from)(const void *config);  /* gives a CornuLoss or a CornuMetric */
    const char       *dtype;       /* Keras' of a metric; NULL: "float32" */
    /* A metric that is the mean of a loss of this class; its config is the loss's, and `from` is
     * NULL. */
    const CornuSerializableClass *loss;
    bool              whole_labels;               /* its labels are numbers of classes */
};

/* Defines cornu__FUNCTION_class, the class of what `make` makes; the other members follow. */
#define CORNU__SERIALIZABLE_CLASS_OF(function, make, keras_class, usual_name, Config, ...)    \
    static void *function##_object(const void *config) { return make(config); }                \
    const CornuSerializableClass cornu__##function##_class = {                                 \
        .class_name = keras_class, .name = usual_name, .config_size = sizeof(Config),          \
        .name_offset = offsetof(Config, name), .from = function##_object, __VA_ARGS__ }
#define CORNU__SERIALIZABLE_CLASS(function, keras_class, usual_name, Config, ...)            \
    CORNU__SERIALIZABLE_CLASS_OF(function, cornu_##function##_from, keras_class, usual_name, \
                                 Config, __VA_ARGS__)

/* An object of `size` bytes, all 0; behind it copies of the config, if there is a kind, and of the
 * name: the config's or, where that is NULL, `usual`. NULL with a pending error. */
void *cornu__serializable_create(size_t size, const CornuSerializableClass *kind,
                                 const void *config, const char *usual,
                                 const void **config_copy, const char **name);

/* With all its defaults; name may be NULL. NULL with a pending error. */
void *cornu__serializable_default(const CornuSerializableClass *kind, const char *name);

/* Whether the field is one of those that are left out as defaults (layer.h), and one now. */
bool cornu__is_default(const CornuField *field, const void *config);

/* A class, and how a program asks for it: by its name, by an alias or, as it must have arguments,
 * not at all; files name it by class_name. */
typedef struct {
    const CornuSerializableClass *kind;
    const char             *alias;
    bool                    needs_arguments;
} CornuSerializableRow;

typedef struct {
    const char           *word;    /* of messages: "loss" */
    const CornuSerializableRow *rows;
    int                   count;
} CornuSerializableTable;

extern const CornuSerializableTable cornu__losses, cornu__metrics;

/* The class by Keras' name for it; NULL if there is none. */
const CornuSerializableClass *cornu__serializable_class(const CornuSerializableTable *table,
                                                        const char *class_name);

/* The class by its name or an alias; NULL with a pending error that names the nearest one. */
const CornuSerializableClass *cornu__serializable_find(const CornuSerializableTable *table,
                                                       const char *name);

#endif
