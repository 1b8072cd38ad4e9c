/*
 * The tiles of AMX with the instructions emulated, so that a processor without them tests the
 * rest: layouts, strides, configuration, remainders. What a processor would refuse fails the test.
 */
#ifndef CORNU_TESTS_DEVICE_AMX_EMULATION_H
#define CORNU_TESTS_DEVICE_AMX_EMULATION_H

#include <cornu/device/host/isa/product.h>

#if defined(__x86_64__)
extern const CornuProducts cornu__products_emulated_amx;
#endif

#endif
