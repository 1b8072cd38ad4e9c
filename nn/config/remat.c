#include <stdatomic.h>
#include <string.h>

#include "../../device/memory_internal.h"
#include "../../device/status_internal.h"
#include "keywords.h"
#include "remat_internal.h"

enum { DEEPEST = 8, USUAL_THRESHOLD = 1024 };

struct CornuRemat {
    CornuRematMode mode;
    int64_t        threshold;
    const char   **names;      /* of the same memory as the struct; ends with NULL */
    atomic_int     users;      /* references: models made in one thread are freed in any */
};

const CornuRemat cornu__remat_full = { .mode = CORNU_REMAT_FULL };

static _Thread_local CornuRemat *scopes[DEEPEST];
static _Thread_local int         depth;   /* including scopes beyond the limit */

const char *cornu_remat_mode_name(CornuRematMode mode)
{
    static const char *const names[CORNU_REMAT_MODES] = {
        [CORNU_REMAT_FULL] = "full", [CORNU_REMAT_ACTIVATIONS] = "activations",
        [CORNU_REMAT_LARGER_THAN] = "larger_than",
        [CORNU_REMAT_LIST_OF_LAYERS] = "list_of_layers", [CORNU_REMAT_OFF] = "none",
    };
    return (unsigned)mode < CORNU_REMAT_MODES ? names[mode] : NULL;
}

static CornuRemat *copy(const CornuRematConfig *config)
{
    size_t count = 0, bytes = 0;
    for (; config->layer_names && config->layer_names[count]; count++)
        bytes += strlen(config->layer_names[count]) + 1;
    const size_t pointers = (count + 1) * sizeof(char *);
    CornuRemat  *remat = cornu__allocate(1, sizeof *remat + pointers + bytes);
    if (!remat) return NULL;
    remat->mode = config->mode;
    remat->threshold = config->output_size_threshold == 0 ? USUAL_THRESHOLD
                     : config->output_size_threshold == CORNU_ZERO
                         ? 0 : config->output_size_threshold;
    remat->names = (void *)(remat + 1);
    char *next = (char *)(remat + 1) + pointers;
    for (size_t i = 0; i < count; i++) {
        const size_t size = strlen(config->layer_names[i]) + 1;
        remat->names[i] = memcpy(next, config->layer_names[i], size);
        next += size;
    }
    atomic_init(&remat->users, 1);
    return remat;
}

bool cornu_remat_enter(const CornuRematConfig *config)
{
    if (!config || !cornu_remat_mode_name(config->mode)) {
        cornu__fail_null(CORNU_ERR_ARGUMENT, "CORNU_REMAT_SCOPE: .mode is %d, expected 0 to %d",
                         config ? (int)config->mode : -1, CORNU_REMAT_MODES - 1);
    } else if (depth >= DEEPEST) {
        cornu__fail_null(CORNU_ERR_ARGUMENT, "CORNU_REMAT_SCOPE: %d scopes in each other, expected "
                         "%d at most; return and goto do not leave a scope", depth + 1, DEEPEST);
    } else if ((scopes[depth] = copy(config)) == NULL) {
        cornu__null();
    }
    depth++;
    return true;
}

bool cornu_remat_leave(void)
{
    if (depth > 0) depth--;
    if (depth < DEEPEST) {
        cornu__remat_release(scopes[depth]);
        scopes[depth] = NULL;
    }
    return false;
}

const CornuRemat *cornu__remat_in_scope(void)
{
    return cornu__remat_retain(depth > 0 && depth <= DEEPEST ? scopes[depth - 1] : NULL);
}

const CornuRemat *cornu__remat_retain(const CornuRemat *remat)
{
    CornuRemat *own = (CornuRemat *)(uintptr_t)remat;
    if (own && remat != &cornu__remat_full) atomic_fetch_add(&own->users, 1);
    return remat;
}

void cornu__remat_release(const CornuRemat *remat)
{
    CornuRemat *own = (CornuRemat *)(uintptr_t)remat;
    if (own && remat != &cornu__remat_full && atomic_fetch_sub(&own->users, 1) == 1)
        cornu__release(own);
}

CornuRematMode cornu__remat_mode(const CornuRemat *remat)
{
    return remat ? remat->mode : CORNU_REMAT_OFF;
}

int64_t cornu__remat_threshold(const CornuRemat *remat) { return remat->threshold; }

bool cornu__remat_lists(const CornuRemat *remat, const char *name)
{
    for (const char *const *listed = (const char *const *)remat->names; listed && *listed; listed++)
        if (strcmp(*listed, name) == 0) return true;
    return false;
}
