/* The pjrt device that tests run on: of a plugin for CPUs, which they skip without, or of the one
 * that CORNU_TEST_PJRT names, "cuda,preallocate=false". */
#ifndef CORNU_TESTS_DEVICE_PJRT_OPENED_H
#define CORNU_TESTS_DEVICE_PJRT_OPENED_H

#include <cornu/device/device.h>

/* The name of the device, "pjrt:cpu". */
const char *pjrt_name(void);

/* Skips the test, saying why, if no plugin is found or it has fewer devices than shards; fails it
 * if the plugin cannot be opened. The caller closes the device. */
CornuDevice *pjrt_open(int shards);

/* The same with options besides, ",deterministic=true". */
CornuDevice *pjrt_open_with(const char *options, int shards);

/* As many shards as can be opened; skips the test without a plugin. */
int pjrt_most_shards(void);

#endif
