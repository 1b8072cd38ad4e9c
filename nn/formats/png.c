#include "png_internal.h"

#include <stdlib.h>

/* The encoder is compiled into this file alone, without its own file access. */
#pragma GCC diagnostic ignored "-Wunused-function"
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#define STBI_WRITE_NO_STDIO
/* clang-tidy assumes that rows may be empty, and objects to allocations of 0 bytes. */
#define STBIW_MALLOC(size)            malloc((size) + 1)
#define STBIW_REALLOC(memory, size)   realloc(memory, size)
#define STBIW_FREE(memory)            free(memory)
#include <stb/stb_image_write.h>

CornuStatus cornu__png_write(int width, int height, int channels, const uint8_t *pixels,
                             CornuWriteBytes *write, void *context)
{
    if (stbi_write_png_to_func(write, context, width, height, channels, pixels, width * channels))
        return CORNU_OK;
    return cornu__fail(CORNU_ERR_MEMORY, "no memory to encode the picture as PNG");
}
