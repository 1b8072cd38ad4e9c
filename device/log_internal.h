/* Saying something to whom cornu_set_log or CORNU_LOG has chosen. Allocates nothing. */
#ifndef CORNU_DEVICE_LOG_INTERNAL_H
#define CORNU_DEVICE_LOG_INTERNAL_H

#include <stdbool.h>

#include "log.h"
#include "status_internal.h"

/* Whether somebody listens at this level: to be asked before what costs time is worked out. */
bool cornu__logs(CornuLogLevel level);

/* One line, without its end. The thread's error stays what it is. */
void cornu__log(CornuLogLevel level, const char *format, ...) CORNU__PRINTF(2, 3);

/* Reads CORNU_LOG again. CORNU_ERR_ARGUMENT for a word that is no level. */
CornuStatus cornu__log_open(void);

#endif
