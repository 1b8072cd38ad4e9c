/*
 * The tiles of AVX512-BF16 with the instructions emulated, on registers of the set
 * compiled for, so that a processor without them tests the rest: parts of pairs, packing,
 * remainders.
 */
#ifndef CORNU_TESTS_DEVICE_BF16_EMULATION_H
#define CORNU_TESTS_DEVICE_BF16_EMULATION_H

#include <cornu/device/host/isa/product.h>

#if defined(__x86_64__)
extern const CornuProducts cornu__products_emulated_bf16;
#endif

#endif
