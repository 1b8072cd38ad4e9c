/* Turning a matrix of elements of 4 bytes, f32 or pairs of bf16, on its way into a panel. */
#ifndef CORNU_DEVICE_HOST_ISA_TURN_H
#define CORNU_DEVICE_HOST_ISA_TURN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* TURNED elements of a row are a line of the cache, read once: rows that are a power of two apart
 * share a set of the first-level cache, from which they would be gone by the next column. */
enum { TURNED = 16, TURN_AHEAD = 16 * TURNED };

/* Element (i, n) of `to`, `count` rows `width` elements apart, is element i of the row that begins
 * `apart` bytes after that of n - 1, the first at `from`; columns after `columns` are zero. */
static void turn(void *to, int64_t width, const void *from, ptrdiff_t apart, int64_t count,
                 int64_t columns)
{
    uint32_t *restrict y = to;
    for (int64_t i = 0; i < count; i += TURNED, y += TURNED * width) {
        const int64_t rows = count - i < TURNED ? count - i : TURNED;
        for (int64_t n = 0; n < columns; n++) {
            const char *x = (const char *)from + n * apart + i * (int64_t)sizeof *y;
            uint32_t    row[TURNED];
            __builtin_prefetch((const void *)((uintptr_t)x + TURN_AHEAD), 0, 2);
            memcpy(row, x, (size_t)rows * sizeof *row);
            for (int64_t k = 0; k < rows; k++) y[k * width + n] = row[k];
        }
        for (int64_t k = 0; k < rows && columns < width; k++)
            memset(y + k * width + columns, 0, (size_t)(width - columns) * sizeof *y);
    }
}

#endif
