/*
 * Digits, garments and text drawn by code, in the form of MNIST, Fashion-MNIST and a text file, for
 * machines without the files or a network. They exercise a program; scores on them say nothing
 * about the real sets and are reported with the word "synthetic".
 */
#ifndef CORNU_DATASETS_SYNTHETIC_H
#define CORNU_DATASETS_SYNTHETIC_H

#include <stdint.h>

#include "../../device/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CORNU_SYNTHETIC_SIZE = 28 };

/*
 * Draws digits: images first, first + 1, ... of the series given by seed: images are u8 (count, 28,
 * 28), light on black, labels u8 (count,), all classes equally likely. An image depends only on the
 * seed and its number, 0 to 2^32 - 1.
 */
void cornu_synthetic_digits(uint64_t seed, int64_t first, int64_t count, uint8_t *images,
                            uint8_t *labels);
/* Draws garments, likewise. */
void cornu_synthetic_garments(uint64_t seed, int64_t first, int64_t count, uint8_t *images,
                              uint8_t *labels);

/* The first `count` characters of the text given by seed, without a terminating NUL: lines of words
 * of an invented language in lower case, with blanks, commas and full stops. */
void cornu_synthetic_text(uint64_t seed, int64_t count, char *text);

/* Pairs of sentences by the rules of text/pairs.h, 1 to 2^20, into source[count] and target[count],
 * which point into *texts, one block of the library's memory, also after a failure. */
CornuStatus cornu_synthetic_pairs(uint64_t seed, int64_t count, const char **source,
                                  const char **target, char **texts);

#ifdef __cplusplus
}
#endif
#endif
