/* Guards: what one thread uses at a time refuses a second one, by name, and never waits. */
#ifndef CORNU_DEVICE_GUARD_INTERNAL_H
#define CORNU_DEVICE_GUARD_INTERNAL_H

#include <stdatomic.h>
#include <stdint.h>

#include "status_internal.h"

/* All zero is free. */
typedef struct {
    _Atomic(const char *) function;   /* the holder's outermost one; NULL: nobody holds it */
    _Atomic uintptr_t     thread;     /* the holder; 0 while that is not known */
    int                   depth;      /* the holder's alone: calls within calls */
} CornuGuard;

/* Takes the guard for `function`, a constant. CORNU_ERR_BUSY, naming both functions and `what`,
 * while another thread holds it; the thread that holds it may take it again. NULL takes nothing. */
CornuStatus cornu__guard_enter(CornuGuard *guard, const char *what, const char *function);

/* Gives up what the last call of enter took. */
void cornu__guard_leave(CornuGuard *guard);

#endif
