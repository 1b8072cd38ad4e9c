/*
 * The tiles of AVX512-BF16 with the instructions emulated, on registers of whatever the compiler
 * was told of, so that a processor without them tests all else: parts of pairs, packing, leftovers.
 */
#ifndef CORNU_TESTS_DEVICE_BF16_EMULATION_H
#define CORNU_TESTS_DEVICE_BF16_EMULATION_H

#include <cornu/device/host/product.h>

#if defined(__x86_64__)
extern const CornuProducts cornu__products_emulated_bf16;
#endif

#endif
