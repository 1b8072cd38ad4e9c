/* The table of devices, made from devices.def. */
#include "device_internal.h"

const CornuDeviceClass *const cornu__device_classes[CORNU_DEVICE_COUNT] = {
#define CORNU_DEVICE(name) &cornu__##name##_device,
#include "devices.def"
#undef CORNU_DEVICE
};
