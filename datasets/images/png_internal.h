/* PNG files of the usual kinds, decompressed by zlib. */
#ifndef CORNU_DATASETS_PNG_INTERNAL_H
#define CORNU_DATASETS_PNG_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

/*
 * The pixels (height, width, *channels), freed with free(): 1 is grey, 2 grey and alpha, 3 red,
 * green and blue, 4 these and alpha. NULL, without an error, for what this does not decode: files
 * that are no PNG, have another size than this, other than 8 bits a channel, a palette, a
 * transparent colour or interlaced rows, or are damaged, and if there is no memory.
 */
uint8_t *cornu__png_decode(const uint8_t *file, size_t size, int64_t height, int64_t width,
                           int *channels);

#endif
