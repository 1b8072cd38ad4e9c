/* Processors that the processes of a group share. */
#ifndef CORNU_DEVICE_HOST_PROCESSORS_H
#define CORNU_DEVICE_HOST_PROCESSORS_H

#include "../../device.h"

/* The threads of a device opened so: those asked for; else the processors that this process may run
 * on, dealt over the group's processes that may run on the same ones. All processes of the group ask
 * at the same time. CORNU_ERR_PROCESS. */
CornuStatus cornu__processor_threads(const CornuDeviceConfig *config, int *threads);

#endif
