#include "device_internal.h"

#include <stddef.h>

/* Its address identifies the thread. */
static _Thread_local char self;

CornuStatus cornu__guard_enter(CornuGuard *guard, const char *what, const char *function,
                               const char *advice)
{
    const char *other = NULL;
    if (!guard) return CORNU_OK;
    if (atomic_load(&guard->thread) != (uintptr_t)&self) {
        if (!atomic_compare_exchange_strong(&guard->function, &other, function))
            return cornu__fail(CORNU_ERR_BUSY, "%s: %s is called while another thread is in %s; "
                               "expected one thread at a time%s", what, function, other, advice);
        atomic_store(&guard->thread, (uintptr_t)&self);
    }
    guard->depth++;
    return CORNU_OK;
}

void cornu__guard_leave(CornuGuard *guard)
{
    if (!guard || --guard->depth > 0) return;
    atomic_store(&guard->thread, (uintptr_t)0);
    atomic_store(&guard->function, NULL);
}
