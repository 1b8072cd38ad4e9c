/* Building an optimizer anew for other weights, before its first step or after a file was read into
 * it: what belongs to weights that stay goes on as it is. */
#include "optimizer_internal.h"

#include <string.h>

/* What the optimizer's variables hold, in their order. */
typedef struct {
    int         count;
    char      **names;
    CornuArray *values;
} Kept;

static void free_kept(Kept *kept)
{
    for (int i = 0; i < kept->count; i++) {
        cornu__release(kept->names[i]);
        cornu__release(kept->values[i].data);
    }
    cornu__release(kept->names);
    cornu__release(kept->values);
}

static CornuStatus keep(const CornuVariable *variable, Kept *kept)
{
    const CornuType type = cornu_variable_host_type(variable);
    const int       i = kept->count++;
    kept->names[i] = cornu__copy_text(cornu_variable_name(variable));
    kept->values[i] = cornu_array_from(cornu__allocate(cornu_type_bytes(type), 1), type);
    if (!kept->names[i] || !kept->values[i].data) return CORNU_ERR_MEMORY;
    return cornu_variable_read(variable, kept->values[i]);
}

static CornuStatus keep_all(const CornuOptimizer *optimizer, Kept *kept)
{
    const int count = cornu__optimizer_kept_count(optimizer);
    kept->names = cornu__allocate((size_t)count, sizeof *kept->names);
    kept->values = cornu__allocate((size_t)count, sizeof *kept->values);
    if (!kept->names || !kept->values) return CORNU_ERR_MEMORY;
    for (int i = 0; i < count; i++) CORNU__TRY(keep(optimizer->variables[i], kept));
    return CORNU_OK;
}

/* Variables that stay keep their order, and some have the same name: the scalars of two optimizers
 * of one class. */
static CornuStatus restore(const CornuOptimizer *optimizer, const Kept *kept)
{
    int next = 0;
    for (int i = 0; i < cornu__optimizer_kept_count(optimizer); i++) {
        CornuVariable  *variable = optimizer->variables[i];
        const CornuType type = cornu_variable_host_type(variable);
        int             at = next;
        while (at < kept->count && (strcmp(kept->names[at], cornu_variable_name(variable)) ||
                                    !cornu_type_equal(kept->values[at].type, type)))
            at++;
        if (at == kept->count) continue;
        CORNU__TRY(cornu_variable_write(variable, kept->values[at]));
        next = at + 1;
    }
    return CORNU_OK;
}

CornuStatus cornu__optimizer_rebuild(CornuOptimizer *optimizer, CornuDevice *device,
                                     CornuVariable *const *w, int count)
{
    Kept        kept = { .count = 0 };
    CornuStatus status = keep_all(optimizer, &kept);
    if (!status) {
        cornu__optimizer_unbuild(optimizer);
        status = count > 0 ? cornu_optimizer_build(optimizer, w, count)
                           : cornu__optimizer_build_empty(optimizer, device);
    }
    if (!status) status = restore(optimizer, &kept);
    free_kept(&kept);
    return status;
}
