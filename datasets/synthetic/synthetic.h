/*
 * Digits, garments and a text drawn by code, in the form of MNIST, Fashion-MNIST and a text file,
 * for a machine that has neither files nor network. They exercise a program; what a model scores
 * on them says nothing about the real sets and is reported with the word "synthetic".
 */
#ifndef CORNU_DATASETS_SYNTHETIC_H
#define CORNU_DATASETS_SYNTHETIC_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { CORNU_SYNTHETIC_SIZE = 28 };

/*
 * Draws image first, first + 1, ... of the endless series that belongs to seed: images are u8
 * (count, 28, 28), light on black, labels u8 (count,), each class as likely. An image depends on
 * seed and its number alone. Numbers are 0 to 2^32 - 1.
 */
void cornu_synthetic_digits(uint64_t seed, int64_t first, int64_t count, uint8_t *images,
                            uint8_t *labels);
void cornu_synthetic_garments(uint64_t seed, int64_t first, int64_t count, uint8_t *images,
                              uint8_t *labels);

/* The first `count` characters of the text that belongs to seed, without a terminating 0: lines of
 * words of a small language in small letters, blanks, commas and full stops. */
void cornu_synthetic_text(uint64_t seed, int64_t count, char *text);

#ifdef __cplusplus
}
#endif
#endif
