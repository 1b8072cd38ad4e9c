/* Guards for what only one thread may use at a time: a second one gets an error and never waits. */
#ifndef CORNU_DEVICE_GUARD_INTERNAL_H
#define CORNU_DEVICE_GUARD_INTERNAL_H

#include <stdatomic.h>
#include <stdint.h>

#include "status_internal.h"

/* A lock that knows its holder; all zeros is one that is free. */
typedef struct {
    _Atomic(const char *) function;   /* the holder's outermost one; NULL: free */
    _Atomic uintptr_t     thread;     /* the holder; 0 until it is known */
    int                   depth;      /* nested calls; only the holder reads it */
} CornuGuard;

/* Takes the guard for `function`, a string constant. CORNU_ERR_BUSY, naming both functions and
 * `what`, while another thread holds it; its holder may take it again. A NULL guard is ignored.
 * `advice` ends the message: what several threads can use instead; or "". */
CornuStatus cornu__guard_enter(CornuGuard *guard, const char *what, const char *function,
                               const char *advice);

/* Undoes the last cornu__guard_enter. */
void cornu__guard_leave(CornuGuard *guard);

#endif
