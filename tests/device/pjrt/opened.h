/* The pjrt device of a plugin for CPUs, which tests of it skip without. */
#ifndef CORNU_TESTS_DEVICE_PJRT_OPENED_H
#define CORNU_TESTS_DEVICE_PJRT_OPENED_H

#include <cornu/device/device.h>

/* The name of the device: of the library CORNU_PJRT if it is one, else "pjrt:cpu". */
const char *pjrt_name(void);

/* Skips the test, saying why, if no plugin is found; fails it if the plugin cannot be opened. The
 * caller closes the device. */
CornuDevice *pjrt_open(int shards);

#endif
