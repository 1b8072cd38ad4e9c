/* HMAC-SHA-256: RFC 2104, "HMAC: Keyed-Hashing for Message Authentication", section 2. */
#ifndef CORNU_DEVICE_HMAC_INTERNAL_H
#define CORNU_DEVICE_HMAC_INTERNAL_H

#include "sha256_internal.h"

enum { CORNU_HMAC_SIZE = CORNU__SHA256_SIZE };

/* A piece of a message. */
typedef struct {
    const void *bytes;
    size_t      size;
} CornuHmacPart;

/* Of the parts, one after the other. A key may have any size. */
void cornu__hmac(const void *key, size_t key_size, const CornuHmacPart *parts, int count,
                 unsigned char code[CORNU_HMAC_SIZE]);

/* In a time that does not depend on where they differ. */
bool cornu__hmac_equal(const unsigned char a[CORNU_HMAC_SIZE],
                       const unsigned char b[CORNU_HMAC_SIZE]);

#endif
