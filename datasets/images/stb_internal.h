/* stb_image, which decodes PNG and JPEG files. */
#ifndef CORNU_DATASETS_STB_INTERNAL_H
#define CORNU_DATASETS_STB_INTERNAL_H

#include "format_internal.h"

/* The size, channels and bits of a file, from its header. */
CornuStatus cornu__stb_header(const CornuImageBytes *file, const CornuImageFormat *format,
                              CornuImageHeader *header);

/* As a format's decode, with these channels, or 0: the file's; samples of 16 bits become f32 if
 * `full`, with the file's. */
CornuStatus cornu__stb_decode(const CornuImageBytes *file, const CornuImageFormat *format,
                              const CornuImageHeader *header, int channels, bool full,
                              CornuArray *image);

#endif
