/* What a JPEG file says about its colours. */
#ifndef CORNU_DATASETS_JPEG_INTERNAL_H
#define CORNU_DATASETS_JPEG_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

/* Bytes that precede a file, in which cornu__jpeg_mark_colours may write. */
enum { CORNU_JPEG_ROOM = 16 };

/*
 * Marks how the four components of a JPEG are stored, where the file does not: without Adobe's
 * marker as cyan, magenta, yellow and black, with one that names no such transform as YCCK, as
 * libjpeg takes them, so that the decoder does not take them for YCbCr. Full ink is 0, as Adobe
 * writes it: so do Pillow and browsers read unmarked files, while TensorFlow takes 0 for no ink.
 * Changes nothing else. Returns where the file begins now, at most CORNU_JPEG_ROOM bytes earlier,
 * and adds them to *size.
 */
uint8_t *cornu__jpeg_mark_colours(uint8_t *file, size_t *size);

#endif
