/* SHA-256: FIPS 180-4, "Secure Hash Standard", section 6.2. */
#ifndef CORNU_DEVICE_SHA256_INTERNAL_H
#define CORNU_DEVICE_SHA256_INTERNAL_H

#include "../status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CORNU__SHA256_BLOCK = 64, CORNU__SHA256_SIZE = 32, CORNU__SHA256_TEXT = 65 };

/* A digest of bytes that arrive in pieces: begin, add each piece, end. */
typedef struct {
    uint32_t      state[8];
    uint64_t      bytes;                          /* added so far */
    unsigned char left[CORNU__SHA256_BLOCK];      /* those of an incomplete block */
} CornuSha256;

void cornu__sha256_begin(CornuSha256 *sum);
void cornu__sha256_add(CornuSha256 *sum, const void *bytes, size_t size);
/* The digest, or the same as 64 hexadecimal digits, lower case. */
void cornu__sha256_digest(CornuSha256 *sum, unsigned char digest[CORNU__SHA256_SIZE]);
void cornu__sha256_end(CornuSha256 *sum, char text[CORNU__SHA256_TEXT]);

/* Adds whole blocks: by portable code, or by the instructions of an x86-64 processor that has them
 * (sha256_x86.c). */
extern const uint32_t cornu__sha256_constants[64];
void cornu__sha256_blocks(uint32_t state[8], const unsigned char *block, size_t count);
bool cornu__sha256_x86(void);
void cornu__sha256_blocks_x86(uint32_t state[8], const unsigned char *block, size_t count);

/* The digest of a file. CORNU_ERR_FILE if path cannot be read. */
CornuStatus cornu__sha256_file(const char *path, char text[CORNU__SHA256_TEXT]);

#endif
