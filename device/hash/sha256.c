/*
 * SHA-256, written out here because no library that we link has it: zlib has CRC-32 and Adler-32,
 * jansson and BLIS have no hashes. libcrypto would be a dependency of every program for these 90
 * lines, and loading it at run time would leave downloads and weight files unchecked where it is
 * absent. tests/device/hash/test_sha256.c checks it against the published test vectors.
 */
#include "sha256_internal.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "../open.h"

enum { BLOCK = CORNU__SHA256_BLOCK, LENGTH_AT = 56 };

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
const uint32_t cornu__sha256_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, int bits) { return x >> bits | x << (32 - bits); }

static void add_block(uint32_t state[8], const unsigned char block[BLOCK])
{
    uint32_t w[64];
    for (int t = 0; t < 16; t++)
        w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 |
               (uint32_t)block[4 * t + 2] << 8 | block[4 * t + 3];
    for (int t = 16; t < 64; t++) {
        uint32_t s0 = rotate(w[t - 15], 7) ^ rotate(w[t - 15], 18) ^ w[t - 15] >> 3;
        uint32_t s1 = rotate(w[t - 2], 17) ^ rotate(w[t - 2], 19) ^ w[t - 2] >> 10;
        w[t] = s1 + w[t - 7] + s0 + w[t - 16];
    }
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (int t = 0; t < 64; t++) {
        uint32_t t1 = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) +
                      cornu__sha256_constants[t] + w[t];
        uint32_t t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +
                      ((a & b) ^ (a & c) ^ (b & c));
        h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
    state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

void cornu__sha256_blocks(uint32_t state[8], const unsigned char *block, size_t count)
{
    for (size_t i = 0; i < count; i++) add_block(state, block + i * BLOCK);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void (*add_blocks)(uint32_t state[8], const unsigned char *block, size_t count);

static void choose_add_blocks(void)
{
    add_blocks = cornu__sha256_x86() ? cornu__sha256_blocks_x86 : cornu__sha256_blocks;
}

void cornu__sha256_begin(CornuSha256 *sum)
{
    pthread_once(&once, choose_add_blocks);
    *sum = (CornuSha256){ .state = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 } };
}

void cornu__sha256_add(CornuSha256 *sum, const void *bytes, size_t size)
{
    const unsigned char *from = bytes;
    const size_t         left = (size_t)(sum->bytes % BLOCK);
    sum->bytes += size;
    if (left + size < BLOCK) {
        if (size) memcpy(sum->left + left, from, size);
        return;
    }
    if (left) {
        memcpy(sum->left + left, from, BLOCK - left);
        add_blocks(sum->state, sum->left, 1);
        from += BLOCK - left;
        size -= BLOCK - left;
    }
    add_blocks(sum->state, from, size / BLOCK);
    memcpy(sum->left, from + size / BLOCK * BLOCK, size % BLOCK);
}

/* The last block or two: a one bit, zeros, the length in bits. */
void cornu__sha256_digest(CornuSha256 *sum, unsigned char digest[CORNU__SHA256_SIZE])
{
    const size_t  rest = (size_t)(sum->bytes % BLOCK);
    unsigned char block[BLOCK] = { 0 };
    memcpy(block, sum->left, rest);
    block[rest] = 0x80;
    if (rest >= LENGTH_AT) {
        add_blocks(sum->state, block, 1);
        memset(block, 0, sizeof block);
    }
    for (int i = 0; i < 8; i++)
        block[LENGTH_AT + i] = (unsigned char)(8 * sum->bytes >> (56 - 8 * i));
    add_blocks(sum->state, block, 1);
    for (int i = 0; i < CORNU__SHA256_SIZE; i++)
        digest[i] = (unsigned char)(sum->state[i / 4] >> (24 - i % 4 * 8));
}

void cornu__sha256_end(CornuSha256 *sum, char text[CORNU__SHA256_TEXT])
{
    unsigned char digest[CORNU__SHA256_SIZE];
    cornu__sha256_digest(sum, digest);
    for (int i = 0; i < CORNU__SHA256_SIZE; i++) snprintf(text + 2 * i, 3, "%02x", digest[i]);
}

CornuStatus cornu__sha256_file(const char *path, char text[CORNU__SHA256_TEXT])
{
    FILE *file;
    CORNU__TRY(cornu__open_to_read(path, &file));
    unsigned char buffer[256 * BLOCK];
    CornuSha256   sum;
    size_t        got;
    cornu__sha256_begin(&sum);
    do {
        got = fread(buffer, 1, sizeof buffer, file);
        cornu__sha256_add(&sum, buffer, got);
    } while (got == sizeof buffer);
    bool failed = ferror(file);
    fclose(file);
    if (failed) return cornu__fail(CORNU_ERR_FILE, "%s: cannot be read", path);
    cornu__sha256_end(&sum, text);
    return CORNU_OK;
}
