/* Logging to what cornu_set_log or CORNU_LOG chose. Allocates nothing. */
#ifndef CORNU_DEVICE_LOG_INTERNAL_H
#define CORNU_DEVICE_LOG_INTERNAL_H

#include <stdbool.h>

#include "log.h"
#include "status_internal.h"

/* Whether messages of this level go anywhere: checked before formatting costly ones. */
bool cornu__logs(CornuLogLevel level);

/* One line, without a newline. Leaves the thread's error alone. */
void cornu__log(CornuLogLevel level, const char *format, ...) CORNU__PRINTF(2, 3);

/* Reads CORNU_LOG again. CORNU_ERR_ARGUMENT for an unknown level. */
CornuStatus cornu__log_open(void);

#endif
