#include "output_internal.h"

#include <fcntl.h>

#include "../../device/open.h"
#include "../../device/processes/processes_internal.h"

bool cornu__output_writes(void) { return cornu__processes_writes(); }

int cornu__output_open(const char *path, int flags, mode_t mode)
{
    return cornu__processes_writes() ? cornu__open(path, flags, mode)
                                     : cornu__open("/dev/null", O_WRONLY, 0);
}

CornuStatus cornu__output_folders_above(const char *path)
{
    return cornu__processes_writes() ? cornu__make_folders_above(path) : CORNU_OK;
}

CornuStatus cornu__output_settle(const CornuDevice *device, const char *what, CornuStatus status)
{
    CornuProcesses *processes = device ? cornu_device_processes(device) : NULL;
    return cornu__processes_check(processes, what, status);
}
