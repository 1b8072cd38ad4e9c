/* What a device's class divides among the processes of a group when it opens a device. */
#ifndef CORNU_DEVICE_DIVIDE_H
#define CORNU_DEVICE_DIVIDE_H

#include "../device_internal.h"

/* The threads of a device opened so: those asked for; else the processors that this process may run
 * on, divided among the group's processes that may run on the same ones. All processes of the group
 * ask at the same time. CORNU_ERR_PROCESS. */
CornuStatus cornu__divide_threads(const CornuDeviceConfig *config, int *threads);

/* The shards of this process, of its group of processes. CORNU_ERR_ARGUMENT if a group has more
 * processes than shards, or groups are not alike. */
CornuStatus cornu__divide_shards(const CornuDeviceConfig *config, int shards, CornuRange *own);

/* Those among which the device's programs exchange: of this process' group. NULL: none.
 * CORNU_ERR_MEMORY. */
CornuStatus cornu__program_processes(const CornuDeviceConfig *config, CornuProcesses **processes);

/* All processes open the same, whose kernels give the same bits: how many threads and on what
 * processor makes no difference. CORNU_ERR_PROCESS. Comes last, when the description is filled:
 * "cpu: PROCESSOR | KERNELS | THREADS", where what is said of kernels includes the precision. */
CornuStatus cornu__agree_on_device(const CornuDeviceConfig *config, const CornuDevice *device);

/* For a class whose devices belong to one process: CORNU_ERR_ARGUMENT if there are more. */
CornuStatus cornu__expect_one_process(const CornuDeviceConfig *config);

#endif
