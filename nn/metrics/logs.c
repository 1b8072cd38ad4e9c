#include "logs.h"

#include <string.h>

bool cornu_logs_find(const CornuLogs *logs, const char *name, double *value)
{
    for (int i = 0; logs && i < logs->count; i++)
        if (!strcmp(logs->logs[i].name, name)) {
            *value = logs->logs[i].value;
            return true;
        }
    return false;
}
