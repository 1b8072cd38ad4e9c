#include "stb_internal.h"

#include <stdlib.h>
#include <string.h>

#include "../../device/status_internal.h"

/* The decoder's allocations, limited, as a small file may request any amount; zeroed, as the
 * decoder uses tables that a file does not define. */
static void *take_memory(size_t size) { return size <= CORNU_IMAGE_BYTES ? calloc(1, size) : NULL; }
static void *grow_memory(void *memory, size_t size)
{
    return size <= CORNU_IMAGE_BYTES ? realloc(memory, size) : NULL;
}
/* memcpy for the decoder, which copies 0 bytes to NULL: undefined for memcpy itself. */
static void *copy_some(void *to, const void *from, size_t size)
{
    return size ? memcpy(to, from, size) : to;
}
#define STBI_MALLOC take_memory
#define STBI_REALLOC grow_memory
#define STBI_FREE free

/* The decoder is compiled into this file, with the two formats we read by it. It declares functions
 * that it does not define then, which gcc reports at the end of the file. */
#pragma GCC diagnostic ignored "-Wunused-function"
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_PNG
#define STBI_ONLY_JPEG
#define STBI_NO_STDIO
#define STBI_NO_HDR
#define STBI_NO_LINEAR
#define STBI_MAX_DIMENSIONS CORNU_IMAGE_EXTENT
/* Doubles the width of a row of colour, of w > 0 samples. The decoder's own function of this name,
 * up to 2.27, swaps the weights of the last pixel but one; the macro, which applies where a bracket
 * follows, renames its definition, so that the pointer to it, elsewhere, is to this one. */
static unsigned char *stbi__resample_row_h_2(unsigned char *out, unsigned char *near,
                                             unsigned char *far, int w, int scale);
#define stbi__resample_row_h_2(out, near, far, w, scale) \
    resample_row_h_2_of_stb(out, near, far, w, scale)
/* It adds 0 to NULL, which clang's sanitizer reports. */
#ifdef __clang__
#pragma clang attribute push(__attribute__((no_sanitize("pointer-overflow"))), apply_to = function)
#endif
#define memcpy copy_some
#include <stb/stb_image.h>
#undef memcpy
#undef stbi__resample_row_h_2
#ifdef __clang__
#pragma clang attribute pop
#endif

static unsigned char *stbi__resample_row_h_2(unsigned char *out, unsigned char *near,
                                             unsigned char *far, int w, int scale)
{
    resample_row_h_2_of_stb(out, near, far, w, scale);
    if (w > 1) out[2 * w - 2] = (unsigned char)((3 * near[w - 1] + near[w - 2] + 2) / 4);
    return out;
}

static CornuStatus unreadable(const CornuImageBytes *file, const CornuImageFormat *format)
{
    return cornu__fail(CORNU_ERR_FORMAT, "%s: not a readable %s image: %s", file->path,
                       format->name, stbi_failure_reason());
}

CornuStatus cornu__stb_header(const CornuImageBytes *file, const CornuImageFormat *format,
                              CornuImageHeader *header)
{
    int width, height;
    if (!stbi_info_from_memory(file->bytes, (int)file->size, &width, &height, &header->channels))
        return unreadable(file, format);
    header->width = width;
    header->height = height;
    header->bits = stbi_is_16_bit_from_memory(file->bytes, (int)file->size) ? 16 : 8;
    return CORNU_OK;
}

/* Samples of 16 bits as numbers. */
static CornuStatus decode_deep(const CornuImageBytes *file, const CornuImageFormat *format,
                               CornuArray *image)
{
    int             width, height, channels;
    unsigned short *samples = stbi_load_16_from_memory(file->bytes, (int)file->size, &width,
                                                       &height, &channels, 0);
    if (!samples) return unreadable(file, format);
    const CornuImageHeader decoded = { .height = height, .width = width, .channels = channels };
    float        *values = cornu__image_allocate(file, &decoded, sizeof *values);
    const int64_t count = (int64_t)width * height * channels;
    for (int64_t i = 0; values && i < count; i++) values[i] = samples[i];
    free(samples);
    *image = cornu_array(values, CORNU_F32, height, width, channels);
    return values ? CORNU_OK : CORNU_ERR_MEMORY;
}

CornuStatus cornu__stb_decode(const CornuImageBytes *file, const CornuImageFormat *format,
                              const CornuImageHeader *header, int channels, bool full,
                              CornuArray *image)
{
    int width, height, stored;
    if (full && header->bits == 16) return decode_deep(file, format, image);
    uint8_t *pixels = stbi_load_from_memory(file->bytes, (int)file->size, &width, &height,
                                            &stored, channels);
    if (!pixels) return unreadable(file, format);
    *image = cornu_array(pixels, CORNU_U8, height, width, channels ? channels : stored);
    return CORNU_OK;
}
