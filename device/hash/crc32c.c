/*
 * Source of the tables: Kounavis and Berry, "A Systematic Approach to Building High Performance
 * Software-based CRC Generators", 2005: eight bytes at a time ("slicing by 8").
 */
#include "crc32c_internal.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

enum { SLICES = 8 };
#define POLYNOMIAL UINT32_C(0x82F63B78)   /* bits reversed */

static uint32_t       table[SLICES][256];   /* [k][b]: byte b, k bytes before the last */
static bool           by_instruction;
static pthread_once_t prepared = PTHREAD_ONCE_INIT;

#if defined(__x86_64__)
#include <nmmintrin.h>

static bool has_instruction(void) { return __builtin_cpu_supports("sse4.2") != 0; }

__attribute__((target("sse4.2")))
static uint32_t add_by_instruction(uint32_t crc, const unsigned char *at, size_t size)
{
    uint64_t sum = crc;
    for (; size >= 8; at += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        sum = _mm_crc32_u64(sum, word);
    }
    for (; size > 0; at++, size--) sum = _mm_crc32_u8((uint32_t)sum, *at);
    return (uint32_t)sum;
}
#else
static bool has_instruction(void) { return false; }

static uint32_t add_by_instruction(uint32_t crc, const unsigned char *at, size_t size)
{
    (void)at, (void)size;
    return crc;
}
#endif

static void prepare(void)
{
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t crc = b;
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
        table[0][b] = crc;
    }
    for (int k = 1; k < SLICES; k++)
        for (int b = 0; b < 256; b++)
            table[k][b] = table[k - 1][b] >> 8 ^ table[0][table[k - 1][b] & 0xFF];
    by_instruction = has_instruction();
}

static uint32_t add_by_tables(uint32_t crc, const unsigned char *at, size_t size)
{
    for (; size >= SLICES; at += SLICES, size -= SLICES) {
        uint32_t next = 0;
        for (int k = 0; k < SLICES; k++) {
            const unsigned byte = at[k] ^ (k < 4 ? crc >> 8 * k & 0xFF : 0);
            next ^= table[SLICES - 1 - k][byte];
        }
        crc = next;
    }
    for (; size > 0; at++, size--) crc = crc >> 8 ^ table[0][(crc ^ *at) & 0xFF];
    return crc;
}

uint32_t cornu__crc32c_portable(const void *bytes, size_t size)
{
    pthread_once(&prepared, prepare);
    return ~add_by_tables(UINT32_MAX, bytes, size);
}

uint32_t cornu__crc32c(const void *bytes, size_t size)
{
    pthread_once(&prepared, prepare);
    return by_instruction ? ~add_by_instruction(UINT32_MAX, bytes, size)
                          : ~add_by_tables(UINT32_MAX, bytes, size);
}
