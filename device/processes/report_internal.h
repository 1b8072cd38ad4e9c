/* What cornu run is told of a failure, so that it names the rank that failed, and does not start
 * again what would fail again. */
#ifndef CORNU_DEVICE_REPORT_INTERNAL_H
#define CORNU_DEVICE_REPORT_INTERNAL_H

#include "../status_internal.h"

/* CORNU_REPORT_FD, which is closed when this process becomes another program; nothing without. */
void cornu__report_begin(void);

/* This rank fails by itself: one line, "RANK STATUS MESSAGE". Never waits. */
void cornu__report(int rank, CornuStatus status, const char *message);

#endif
