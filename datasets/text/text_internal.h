/* Decoding UTF-8, for text and for files that contain some. */
#ifndef CORNU_DATASETS_TEXT_INTERNAL_H
#define CORNU_DATASETS_TEXT_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

/* Decodes the character at s, with `left` bytes left, and returns its length; 0 if it is not valid.
 * Source: The Unicode Standard, section 3.9, table 3-7: the shortest form, no surrogates, nothing
 * above 10FFFF. */
int cornu__utf8_read(const unsigned char *s, size_t left, uint32_t *code);

#endif
