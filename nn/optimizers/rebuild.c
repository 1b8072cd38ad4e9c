/* Building an optimizer anew for other weights, before its first step or after a file was read into
 * it: what belongs to weights that stay goes on as it is. */
#include "optimizer_internal.h"

#include <string.h>

/* What the optimizer's variables hold, in their order. */
typedef struct {
    int         count;
    char      **names;
    CornuArray *values;
} Saved;

static void free_saved(Saved *saved)
{
    for (int i = 0; i < saved->count; i++) {
        cornu__release(saved->names[i]);
        cornu__release(saved->values[i].data);
    }
    cornu__release(saved->names);
    cornu__release(saved->values);
}

static CornuStatus save(const CornuVariable *variable, Saved *saved)
{
    const CornuType type = cornu_variable_host_type(variable);
    const int       i = saved->count++;
    saved->names[i] = cornu__copy_text(cornu_variable_name(variable));
    saved->values[i] = cornu_array_from(cornu__allocate(cornu_type_bytes(type), 1), type);
    if (!saved->names[i] || !saved->values[i].data) return CORNU_ERR_MEMORY;
    return cornu_variable_read(variable, saved->values[i]);
}

static CornuStatus save_all(const CornuOptimizer *optimizer, Saved *saved)
{
    const int count = cornu__optimizer_saved_count(optimizer);
    saved->names = cornu__allocate((size_t)count, sizeof *saved->names);
    saved->values = cornu__allocate((size_t)count, sizeof *saved->values);
    if (!saved->names || !saved->values) return CORNU_ERR_MEMORY;
    for (int i = 0; i < count; i++) CORNU__TRY(save(optimizer->variables[i], saved));
    return CORNU_OK;
}

/* Variables that stay keep their order, and some have the same name: the scalars of two optimizers
 * of one class. */
static CornuStatus restore(const CornuOptimizer *optimizer, const Saved *saved)
{
    int next = 0;
    for (int i = 0; i < cornu__optimizer_saved_count(optimizer); i++) {
        CornuVariable  *variable = optimizer->variables[i];
        const CornuType type = cornu_variable_host_type(variable);
        int             at = next;
        while (at < saved->count && (strcmp(saved->names[at], cornu_variable_name(variable)) ||
                                    !cornu_type_equal(saved->values[at].type, type)))
            at++;
        if (at == saved->count) continue;
        CORNU__TRY(cornu_variable_write(variable, saved->values[at]));
        next = at + 1;
    }
    return CORNU_OK;
}

CornuStatus cornu__optimizer_rebuild(CornuOptimizer *optimizer, CornuDevice *device,
                                     CornuVariable *const *w, int count)
{
    Saved       saved = { .count = 0 };
    CornuStatus status = save_all(optimizer, &saved);
    if (!status) {
        cornu__optimizer_unbuild(optimizer);
        status = count > 0 ? cornu_optimizer_build(optimizer, w, count)
                           : cornu__optimizer_build_empty(optimizer, device);
    }
    if (!status) status = restore(optimizer, &saved);
    free_saved(&saved);
    return status;
}
