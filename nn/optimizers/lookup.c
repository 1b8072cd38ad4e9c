/* Optimizers by name. */
#include <string.h>
#include <strings.h>

#include "../../device/text/nearest.h"
#include "optimizer_internal.h"

enum { MOST_OPTIMIZERS = 32 };

/* Keras looks class names up in any case: "RMSprop", "rmsprop", "RMSPROP".
 * Source: keras/src/optimizers/__init__.py, deserialize. */
static bool is_class(const char *name, const CornuOptimizerClass *kind)
{
    return !strcasecmp(name, kind->class_name);
}

CornuOptimizer *cornu_optimizer(const char *name)
{
    CORNU__NEED_TO_MAKE(name);
    const char *names[MOST_OPTIMIZERS];
    int         count = 0;
    for (const CornuOptimizerRow *row = cornu__optimizers; row->name; row++) {
        names[count++] = row->name;
        if (strcmp(name, row->name) && !is_class(name, row->kind)) continue;
        void *config = cornu__allocate(1, row->kind->config_size);
        if (!config) return cornu__null();
        CornuOptimizer *optimizer = row->kind->from(config);
        cornu__release(config);
        return optimizer;
    }
    const char *near = cornu_nearest(name, names, count);
#define OPTIMIZER(known) " " #known
    return cornu__fail_null(CORNU_ERR_ARGUMENT, "optimizer \"%s\" is not known; known are"
#include "optimizers.def"
                            "%s%s%s", name, near ? "; is \"" : "", near ? near : "",
                            near ? "\" meant?" : "");
#undef OPTIMIZER
}

const CornuOptimizerClass *cornu__optimizer_class(const char *class_name)
{
    for (const CornuOptimizerRow *row = cornu__optimizers; row->name; row++)
        if (is_class(class_name, row->kind)) return row->kind;
    return NULL;
}
