#include "hmac_internal.h"

#include <string.h>

enum { BLOCK = CORNU__SHA256_BLOCK, INNER = 0x36, OUTER = 0x5c };

/* Begins a sum with the key, each byte of it combined with the pad. */
static void begin(CornuSha256 *sum, const unsigned char key[BLOCK], unsigned char pad)
{
    unsigned char padded[BLOCK];
    for (int i = 0; i < BLOCK; i++) padded[i] = key[i] ^ pad;
    cornu__sha256_begin(sum);
    cornu__sha256_add(sum, padded, sizeof padded);
}

void cornu__hmac(const void *key, size_t key_size, const CornuHmacPart *parts, int count,
                 unsigned char code[CORNU_HMAC_SIZE])
{
    CornuSha256   sum;
    unsigned char block[BLOCK] = { 0 };
    if (key_size > BLOCK) {
        cornu__sha256_begin(&sum);
        cornu__sha256_add(&sum, key, key_size);
        cornu__sha256_digest(&sum, block);
    } else if (key_size > 0) {
        memcpy(block, key, key_size);
    }
    begin(&sum, block, INNER);
    for (int i = 0; i < count; i++) cornu__sha256_add(&sum, parts[i].bytes, parts[i].size);
    cornu__sha256_digest(&sum, code);
    begin(&sum, block, OUTER);
    cornu__sha256_add(&sum, code, CORNU_HMAC_SIZE);
    cornu__sha256_digest(&sum, code);
}

bool cornu__hmac_equal(const unsigned char a[CORNU_HMAC_SIZE],
                       const unsigned char b[CORNU_HMAC_SIZE])
{
    volatile unsigned char difference = 0;
    for (int i = 0; i < CORNU_HMAC_SIZE; i++) difference |= a[i] ^ b[i];
    return difference == 0;
}
