/* Opening the transport of a group. */
#ifndef CORNU_DEVICE_PROCESSES_OPEN_INTERNAL_H
#define CORNU_DEVICE_PROCESSES_OPEN_INTERNAL_H

#include "launch_internal.h"
#include "transport_internal.h"

/* Meets the others as the launch says, checks that all are alike, and chooses what moves the bytes.
 * The description is of the group. NULL without a pending error. */
CornuTransport *cornu__transport_open(CornuLaunch *launch, const _Atomic bool *stop,
                                      char *description, size_t size);

/* Closes a transport, and the transports that it was opened by. */
void cornu__transport_close(CornuTransport *transport);

/* The messages of the group's own that collectives send, 2 for each rank. */
CornuMessage *cornu__processes_messages(CornuProcesses *processes);

#endif
