#include "processes_internal.h"

#include <stdatomic.h>

static _Atomic(CornuProcesses *) current;

bool cornu__processes_enter(CornuProcesses *processes)
{
    CornuProcesses *none = NULL;
    return atomic_compare_exchange_strong(&current, &none, processes);
}

void cornu__processes_leave(CornuProcesses *processes)
{
    atomic_compare_exchange_strong(&current, &processes, NULL);
}

CornuProcesses *cornu__processes_current(void) { return atomic_load(&current); }

bool cornu__processes_writes(void) { return cornu_process_rank(atomic_load(&current)) == 0; }

CornuStatus cornu_processes_any(CornuProcesses *processes, bool *flag)
{
    unsigned char all[CORNU_MAX_PROCESSES];
    CORNU__NEED(flag);
    const unsigned char own = *flag;
    const int           ranks = cornu_process_count(processes);
    CORNU__TRY(cornu__processes_gather(processes, "whether to stop", &own, 1, all));
    *flag = false;
    for (int rank = 0; rank < ranks; rank++) *flag |= all[rank] != 0;
    return CORNU_OK;
}

CornuStatus cornu_processes_gather(CornuProcesses *processes, const double *own, int count,
                                   double *all)
{
    CORNU__NEED(own);
    CORNU__NEED(all);
    if (count < 0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%d numbers of each process, expected 0 or more",
                           count);
    return cornu__processes_gather(processes, "numbers of all processes", own,
                                   (size_t)count * sizeof *own, all);
}

void cornu_processes_leave(CornuProcesses *processes, CornuStatus status)
{
    if (status != CORNU_ERR_INTERRUPTED) cornu__processes_fail(processes, status);
    cornu_processes_close(processes);
}
