/* What PJRT plugins for accelerators need to run on. */
#ifndef CORNU_DEVICE_PJRT_HARDWARE_H
#define CORNU_DEVICE_PJRT_HARDWARE_H

#include <stdbool.h>

/* Whether the machine may have a TPU; false only if there surely is none. */
bool cornu__pjrt_has_tpu(void);

/* Whether a driver for NVIDIA's GPUs is there. */
bool cornu__pjrt_has_gpu(void);

#endif
