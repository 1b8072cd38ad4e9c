#include "image.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The decoder is compiled into this file alone, with the two formats we read. It declares
 * functions that it then does not define, which gcc reports at the end of the file. */
#pragma GCC diagnostic ignored "-Wunused-function"
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_PNG
#define STBI_ONLY_JPEG
#define STBI_NO_HDR
#define STBI_NO_LINEAR
#define STBI_MAX_DIMENSIONS 16384
#include <stb/stb_image.h>

#include "../device/status_internal.h"

/* What is seen of a value where it covers alpha / 255 of white paper. */
static uint8_t on_white(uint8_t value, uint8_t alpha)
{
    return (uint8_t)((value * alpha + 255 * (255 - alpha) + 127) / 255);
}

/* Luma in 256ths: ITU-R BT.601, section 2.5.1. */
static uint8_t luma(const uint8_t rgb[3])
{
    return (uint8_t)((77 * rgb[0] + 150 * rgb[1] + 29 * rgb[2] + 128) >> 8);
}

/* Turns count pixels of `have` channels, of which 2 and 4 end in alpha, into `want`, 1 or 3. to
 * may equal from where pixels do not grow. */
static void convert(uint8_t *to, int want, const uint8_t *from, int have, size_t count)
{
    int colours = have < 3 ? 1 : 3;
    for (size_t i = 0; i < count; i++, from += have, to += want) {
        uint8_t rgb[3];
        for (int c = 0; c < 3; c++) {
            rgb[c] = from[c < colours ? c : 0];
            if (have > colours) rgb[c] = on_white(rgb[c], from[colours]);
        }
        if (want == 3)
            memcpy(to, rgb, 3);
        else
            to[0] = colours == 1 ? rgb[0] : luma(rgb);
    }
}

CornuStatus cornu_image_load(const char *path, int channels, CornuArray *image)
{
    if (channels != 0 && channels != 1 && channels != 3)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: %d channels wanted, expected 0, 1 or 3", path,
                           channels);
    FILE *file = fopen(path, "rb");
    if (!file)
        return cornu__fail(CORNU_ERR_FILE, "%s: cannot be opened: %s", path, strerror(errno));
    int      width, height, have;
    uint8_t *pixels = stbi_load_from_file(file, &width, &height, &have, 0);
    fclose(file);
    if (!pixels)
        return cornu__fail(CORNU_ERR_FORMAT, "%s: not a readable PNG or JPEG image: %s", path,
                           stbi_failure_reason());
    int      want = channels ? channels : have < 3 ? 1 : 3;
    size_t   count = (size_t)width * (size_t)height;
    uint8_t *converted = want > have ? malloc(count * (size_t)want) : pixels;
    if (converted && want != have) convert(converted, want, pixels, have, count);
    if (converted != pixels) free(pixels);
    if (!converted)
        return cornu__fail(CORNU_ERR_MEMORY, "%s: no memory for %zu bytes", path,
                           count * (size_t)want);
    pixels = converted;
    *image = cornu_array(pixels, CORNU_U8, height, width, want);
    return CORNU_OK;
}
