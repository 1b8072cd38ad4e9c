/* Optimizers by name. */
#include <ctype.h>
#include <string.h>

#include "../../device/text/nearest.h"
#include "optimizer_internal.h"

enum { MOST_OPTIMIZERS = 32 };

/* Keras looks strings up as its class names in lower case. */
static bool is_class_in_lower_case(const char *name, const CornuOptimizerClass *kind)
{
    const char *given = kind->class_name;
    while (*name && tolower((unsigned char)*given) == *name) name++, given++;
    return !*name && !*given;
}

CornuOptimizer *cornu_optimizer(const char *name)
{
    CORNU__NEED_TO_MAKE(name);
    const char *names[MOST_OPTIMIZERS];
    int         count = 0;
    for (const CornuOptimizerRow *row = cornu__optimizers; row->name; row++) {
        names[count++] = row->name;
        if (strcmp(name, row->name) && !is_class_in_lower_case(name, row->kind)) continue;
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
        if (!strcmp(row->kind->class_name, class_name)) return row->kind;
    return NULL;
}
