/*
 * CRC-32C, Castagnoli's checksum, and how records of TensorFlow store it.
 * Sources: RFC 3720, "Internet Small Computer Systems Interface", appendix B.4; TensorFlow,
 * tensorflow/core/lib/hash/crc32c.h, Mask.
 */
#ifndef CORNU_DEVICE_CRC32C_INTERNAL_H
#define CORNU_DEVICE_CRC32C_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

/* Of all bytes: by SSE 4.2 where the processor has it, else by eight tables. */
uint32_t cornu__crc32c(const void *bytes, size_t size);

/* By tables, on any processor. */
uint32_t cornu__crc32c_portable(const void *bytes, size_t size);

/* As it is stored, so that the checksum of bytes that hold checksums is not degenerate. */
static inline uint32_t cornu__crc32c_masked(const void *bytes, size_t size)
{
    const uint32_t crc = cornu__crc32c(bytes, size);
    return (crc >> 15 | crc << 17) + UINT32_C(0xA282EAD8);
}

#endif
