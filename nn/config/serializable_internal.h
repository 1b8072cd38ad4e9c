/* Losses and metrics as files store them: Keras' class name and the config with the arguments. */
#ifndef CORNU_NN_SERIALIZABLE_INTERNAL_H
#define CORNU_NN_SERIALIZABLE_INTERNAL_H

#include "../layers/layer.h"
#include "../metrics/metric.h"

/* One per constructor. A 0 in a config is Keras' default. */
struct CornuSerializableClass {
    const char       *class_name;  /* Keras': "Huber"; NULL: files store just the name */
    const char       *name;        /* the default name: "huber" */
    const CornuField *fields;      /* the config's arguments except .name */
    size_t            config_size, name_offset;
    void           *(*from)(const void *config);  /* returns a CornuLoss or a CornuMetric */
    const char       *dtype;       /* Keras' of a metric; NULL: "float32" */
    /* Set for a metric that is the mean of a loss of this class: it shares the loss's config, and
     * `from` is NULL. */
    const CornuSerializableClass *loss;
    bool              whole_labels;               /* labels are class indices */
};

/* Defines cornu__FUNCTION_class for objects made by `make`; further members may follow. */
#define CORNU__SERIALIZABLE_CLASS_OF(function, make, keras_class, usual_name, Config, ...)    \
    static void *function##_object(const void *config) { return make(config); }                \
    const CornuSerializableClass cornu__##function##_class = {                                 \
        .class_name = keras_class, .name = usual_name, .config_size = sizeof(Config),          \
        .name_offset = offsetof(Config, name), .from = function##_object, __VA_ARGS__ }
#define CORNU__SERIALIZABLE_CLASS(function, keras_class, usual_name, Config, ...)            \
    CORNU__SERIALIZABLE_CLASS_OF(function, cornu_##function##_from, keras_class, usual_name, \
                                 Config, __VA_ARGS__)

/* Allocates an object of `size` zero bytes, followed by copies of the config (if there is a `kind`)
 * and of the name: the config's or, where that is NULL, `usual`. NULL with a pending error. */
void *cornu__serializable_create(size_t size, const CornuSerializableClass *kind,
                                 const void *config, const char *usual,
                                 const void **config_copy, const char **name);

/* An object with default arguments; name may be NULL. NULL with a pending error. */
void *cornu__serializable_default(const CornuSerializableClass *kind, const char *name);

/* A class and how programs look it up: by its name, by an alias, or not at all where arguments are
 * required. Files use its class_name. */
typedef struct {
    const CornuSerializableClass *kind;
    const char             *alias;
    bool                    needs_arguments;
} CornuSerializableRow;

typedef struct {
    const char           *word;    /* for messages: "loss" */
    const CornuSerializableRow *rows;
    int                   count;
} CornuSerializableTable;

extern const CornuSerializableTable cornu__losses, cornu__metrics;

/* The class of this Keras class name, or NULL. */
const CornuSerializableClass *cornu__serializable_class(const CornuSerializableTable *table,
                                                        const char *class_name);

/* The class of this name, alias or Keras class name; NULL with a pending error that suggests the
 * nearest name. */
const CornuSerializableClass *cornu__serializable_find(const CornuSerializableTable *table,
                                                       const char *name);

#endif
