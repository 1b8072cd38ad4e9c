/* What the formats of images share: memory, and words of what is damaged. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../device/text/print.h"
#include "format_internal.h"

CornuStatus cornu__image_damaged(const CornuImageBytes *file, const CornuImageFormat *format,
                                 size_t at, const char *text, ...)
{
    char    why[300];
    va_list arguments;
    va_start(arguments, text);
    cornu__vformat(why, sizeof why, text, arguments);
    va_end(arguments);
    return cornu__fail(CORNU_ERR_FORMAT, "%s: a damaged %s image, byte %zu: %s", file->path,
                       format->name, at, why);
}

void *cornu__image_allocate(const CornuImageBytes *file, const CornuImageHeader *header,
                            size_t size)
{
    const size_t bytes = (size_t)header->height * (size_t)header->width *
                         (size_t)header->channels * size;
    void *memory = malloc(bytes);
    if (!memory) cornu__fail(CORNU_ERR_MEMORY, "%s: no memory for %zu bytes", file->path, bytes);
    return memory;
}
