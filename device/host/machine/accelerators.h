/* Which accelerators this machine has, as far as files of the system say. */
#ifndef CORNU_DEVICE_HOST_ACCELERATORS_H
#define CORNU_DEVICE_HOST_ACCELERATORS_H

#include <stdbool.h>

/* Whether the machine may have a TPU; false only if there surely is none. */
bool cornu__has_tpu(void);

/* Whether a driver for NVIDIA's GPUs is there. */
bool cornu__has_gpu(void);

#endif
