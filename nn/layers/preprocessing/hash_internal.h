/* Hashes of strings, as TensorFlow's string operations compute them. */
#ifndef CORNU_NN_HASH_INTERNAL_H
#define CORNU_NN_HASH_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

/* FarmHash's Fingerprint64, which is tf.strings.to_hash_bucket_fast before the remainder.
 * Source: github.com/google/farmhash, namespace farmhashna. */
uint64_t cornu__farm_hash(const char *text, size_t length);

/* SipHash-2-4 with a key: tf.strings.to_hash_bucket_strong likewise.
 * Source: Aumasson and Bernstein, "SipHash: a fast short-input PRF", section 2. */
uint64_t cornu__sip_hash(const uint64_t key[2], const char *text, size_t length);

/* Two fingerprints as one. Source: tensorflow/core/platform/fingerprint.h, FingerprintCat64. */
uint64_t cornu__hash_pair(uint64_t a, uint64_t b);

#endif
