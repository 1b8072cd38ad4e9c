#include "processes_internal.h"

#include <string.h>

#include "../memory_internal.h"

struct CornuProcesses {
    int          rank, count;
    CornuTraffic traffic;
};

CornuProcesses *cornu_processes_open_from(const CornuProcessesConfig *config)
{
    (void)config;
    CornuProcesses *processes = cornu__refused() ? NULL : cornu__allocate(1, sizeof *processes);
    if (!processes) return cornu__null();
    processes->count = 1;
    return processes;
}

void cornu_processes_close(CornuProcesses *processes) { cornu__release(processes); }

int cornu_process_rank(const CornuProcesses *processes) { return processes ? processes->rank : 0; }
int cornu_process_count(const CornuProcesses *processes)
{
    return processes ? processes->count : 1;
}

const char *cornu_processes_description(const CornuProcesses *processes)
{
    (void)processes;
    return "1 process";
}

CornuTraffic cornu_processes_traffic(const CornuProcesses *processes)
{
    return processes ? processes->traffic : (CornuTraffic){ .exchanges = 0 };
}

CornuStatus cornu__exchange_start(CornuProcesses *processes, CornuExchange *exchange)
{
    (void)processes, (void)exchange;
    return CORNU_OK;
}

CornuStatus cornu__exchange_finish(CornuProcesses *processes, CornuExchange *exchange)
{
    (void)processes, (void)exchange;
    return CORNU_OK;
}

CornuStatus cornu__processes_gather(CornuProcesses *processes, const char *what, const void *own,
                                    size_t bytes, void *all)
{
    (void)processes, (void)what;
    memcpy(all, own, bytes);
    return CORNU_OK;
}

CornuStatus cornu__processes_share(CornuProcesses *processes, const char *what, void *data,
                                   size_t bytes)
{
    (void)processes, (void)what, (void)data, (void)bytes;
    return CORNU_OK;
}

CornuStatus cornu__processes_agree(CornuProcesses *processes, const char *what, const char *text)
{
    (void)processes, (void)what, (void)text;
    return CORNU_OK;
}

CornuStatus cornu__processes_settle(CornuProcesses *processes, const char *what, CornuStatus status)
{
    (void)processes, (void)what;
    return status;
}

CornuStatus cornu__processes_fail(CornuProcesses *processes, CornuStatus status)
{
    (void)processes;
    return status;
}
