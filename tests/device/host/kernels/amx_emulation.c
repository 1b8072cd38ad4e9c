/*
 * As in "Intel 64 and IA-32 Architectures Software Developer's Manual", volume 2: LDTILECFG,
 * TILELOADD, TILESTORED, TDPBF16PS, TILERELEASE, of palette 1. Subnormal numbers are kept.
 */
#include "amx_emulation.h"

#if defined(__x86_64__)
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

#include <cornu/device/type.h>

enum { REGISTERS = 8, ROWS = 16, ROW_BYTES = 64 };

typedef struct {
    int           rows, row_bytes;
    unsigned char data[ROWS][ROW_BYTES];
} Register;

static Register registers[REGISTERS];

static void release(void) { memset(registers, 0, sizeof registers); }

static void load_configuration(const void *from)
{
    unsigned char bytes[64];
    memcpy(bytes, from, sizeof bytes);
    release();
    assert_int_equal(bytes[0], 1);
    for (int i = 1; i < 16; i++) assert_int_equal(bytes[i], 0);
    for (int i = 0; i < 16; i++) {
        const int row_bytes = bytes[16 + 2 * i] | bytes[17 + 2 * i] << 8, rows = bytes[48 + i];
        assert_true(row_bytes <= ROW_BYTES && rows <= ROWS);
        assert_true((row_bytes == 0) == (rows == 0));
        if (i >= REGISTERS) assert_int_equal(rows, 0);
        else registers[i].rows = rows, registers[i].row_bytes = row_bytes;
    }
}

static Register *configured(int number)
{
    assert_in_range(number, 0, REGISTERS - 1);
    if (!registers[number].rows) fail_msg("AMX register %d is not configured", number);
    return &registers[number];
}

static void load_register(int number, const void *from, ptrdiff_t stride)
{
    Register *to = configured(number);
    memset(to->data, 0, sizeof to->data);
    for (int i = 0; i < to->rows; i++)
        memcpy(to->data[i], (const char *)from + i * stride, (size_t)to->row_bytes);
}

static void store_register(int number, void *to, ptrdiff_t stride)
{
    const Register *from = configured(number);
    for (int i = 0; i < from->rows; i++)
        memcpy((char *)to + i * stride, from->data[i], (size_t)from->row_bytes);
}

static float bf16_at(const Register *x, int row, int index)
{
    uint16_t bits;
    memcpy(&bits, x->data[row] + 2 * index, sizeof bits);
    return cornu_bf16_to_float(bits);
}

/* The first and the second elements of the pairs are summed apart, then added. */
static void multiply_pairs(int sum_number, int a_number, int b_number)
{
    Register       *sum = configured(sum_number);
    const Register *a = configured(a_number), *b = configured(b_number);
    assert_true(sum_number != a_number && sum_number != b_number && a_number != b_number);
    assert_int_equal(sum->rows, a->rows);
    assert_int_equal(sum->row_bytes, b->row_bytes);
    assert_int_equal(a->row_bytes, 4 * b->rows);
    for (int m = 0; m < sum->rows; m++)
        for (int n = 0; n < sum->row_bytes / 4; n++) {
            float parts[2] = { 0.0f, 0.0f }, total;
            for (int k = 0; k < b->rows; k++)
                for (int i = 0; i < 2; i++)
                    parts[i] += bf16_at(a, m, 2 * k + i) * bf16_at(b, k, 2 * n + i);
            memcpy(&total, sum->data[m] + 4 * n, sizeof total);
            total += parts[0] + parts[1];
            memcpy(sum->data[m] + 4 * n, &total, sizeof total);
        }
}

#undef _tile_loadd
#undef _tile_stream_loadd
#undef _tile_stored
#undef _tile_dpbf16ps
#define _tile_loadconfig   load_configuration
#define _tile_release      release
#define _tile_loadd        load_register
#define _tile_stream_loadd load_register
#define _tile_stored       store_register
#define _tile_dpbf16ps     multiply_pairs

#define CORNU_ISA_NAME emulated_amx
/* NOLINTNEXTLINE(bugprone-suspicious-include): its macros */
#include "../../../../device/host/isa/product_amx.c"
#endif
