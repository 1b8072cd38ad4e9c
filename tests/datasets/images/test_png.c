/* PNG files whose rows have every filter, of every number of channels, in several chunks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#include "../../../datasets/images/png_internal.h"

enum { HEIGHT = 11, WIDTH = 7, SPACE = 4096 };

typedef struct {
    uint8_t bytes[SPACE];
    size_t  size;
} File;

static void put_u32(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(value >> (24 - 8 * i));
}

static void add_chunk(File *file, const char *type, const uint8_t *data, size_t size)
{
    uint8_t *at = file->bytes + file->size;
    put_u32(at, (uint32_t)size);
    memcpy(at + 4, type, 4);
    if (size) memcpy(at + 8, data, size);
    put_u32(at + 8 + size, (uint32_t)crc32(0, at + 4, (uInt)size + 4));
    file->size += size + 12;
}

static uint8_t nearest(int a, int b, int c)   /* section 9.4 of the specification, as it is there */
{
    const int p = a + b - c, pa = abs(p - a), pb = abs(p - b), pc = abs(p - c);
    if (pa <= pb && pa <= pc) return (uint8_t)a;
    return (uint8_t)(pb <= pc ? b : c);
}

/* A row's byte i as the filter stores it. */
static uint8_t filtered(const uint8_t *pixels, int h, int i, int channels, int filter)
{
    const int count = WIDTH * channels;
    const int x = pixels[h * count + i], a = i < channels ? 0 : pixels[h * count + i - channels];
    const int b = h ? pixels[(h - 1) * count + i] : 0;
    const int c = h && i >= channels ? pixels[(h - 1) * count + i - channels] : 0;
    const int by[] = { 0, a, b, (a + b) / 2, nearest(a, b, c) };
    return (uint8_t)(x - by[filter]);
}

/* Rows have filters first, first + 1, … in turn, the data are in chunks of `part` bytes. */
static void write_png(File *file, const uint8_t *pixels, int channels, int first, size_t part)
{
    static const uint8_t signature[] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n' };
    static const uint8_t types[] = { 0, 0, 4, 2, 6 };
    uint8_t  header[13] = { 0 }, rows[HEIGHT * (4 * WIDTH + 1)], packed[SPACE];
    uLongf   size = sizeof packed;
    const int count = WIDTH * channels;
    for (int h = 0; h < HEIGHT; h++) {
        rows[h * (count + 1)] = (uint8_t)((first + h) % 5);
        for (int i = 0; i < count; i++)
            rows[h * (count + 1) + 1 + i] = filtered(pixels, h, i, channels, (first + h) % 5);
    }
    assert_int_equal(compress(packed, &size, rows, (uLong)(HEIGHT * (count + 1))), Z_OK);
    put_u32(header, WIDTH);
    put_u32(header + 4, HEIGHT);
    header[8] = 8;
    header[9] = types[channels];
    memcpy(file->bytes, signature, sizeof signature);
    file->size = sizeof signature;
    add_chunk(file, "IHDR", header, sizeof header);
    add_chunk(file, "tEXt", (const uint8_t *)"a\0b", 3);
    for (size_t at = 0; at < size; at += part)
        add_chunk(file, "IDAT", packed + at, size - at < part ? size - at : part);
    add_chunk(file, "IEND", NULL, 0);
}

static void make_pixels(uint8_t *pixels, int count)
{
    uint32_t state = 1;
    for (int i = 0; i < count; i++) {
        state = state * 1664525 + 1013904223;   /* Numerical Recipes' generator */
        pixels[i] = (uint8_t)(state >> 24);
    }
}

static void test_every_filter(void **state)
{
    static File file;
    uint8_t     pixels[HEIGHT * WIDTH * 4];
    (void)state;
    for (int channels = 1; channels <= 4; channels++)
        for (int first = 0; first < 5; first++) {
            int have = 0;
            make_pixels(pixels, HEIGHT * WIDTH * channels);
            write_png(&file, pixels, channels, first, first ? 17 : SPACE);
            uint8_t *decoded = cornu__png_decode(file.bytes, file.size, HEIGHT, WIDTH, &have);
            assert_non_null(decoded);
            assert_int_equal(have, channels);
            assert_memory_equal(decoded, pixels, (size_t)(HEIGHT * WIDTH * channels));
            free(decoded);
        }
}

/* Files that end early or differ in a byte are left to the other decoder or decoded; nothing is
 * read or written outside. */
static void test_damaged_files(void **state)
{
    static File file;
    uint8_t     pixels[HEIGHT * WIDTH * 3];
    int         have;
    (void)state;
    make_pixels(pixels, sizeof pixels);
    write_png(&file, pixels, 3, 1, 40);
    assert_null(cornu__png_decode(file.bytes, file.size, HEIGHT, WIDTH + 1, &have));
    for (size_t size = 0; size < file.size; size++) {
        uint8_t *part = malloc(size + 1);
        memcpy(part, file.bytes, size);
        uint8_t *decoded = cornu__png_decode(part, size, HEIGHT, WIDTH, &have);
        assert_null(decoded);
        free(part);
    }
    for (size_t at = 0; at < file.size; at++)
        for (int bit = 0; bit < 8; bit++) {
            file.bytes[at] ^= (uint8_t)(1 << bit);
            free(cornu__png_decode(file.bytes, file.size, HEIGHT, WIDTH, &have));
            file.bytes[at] ^= (uint8_t)(1 << bit);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_filter),
        cmocka_unit_test(test_damaged_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
