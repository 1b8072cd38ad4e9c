/* The key of a job: a secret by which its ranks know each other, and strangers are told apart. */
#ifndef CORNU_DEVICE_KEY_INTERNAL_H
#define CORNU_DEVICE_KEY_INTERNAL_H

#include <stddef.h>

#include "../hash/sha256_internal.h"

typedef struct { unsigned char bytes[CORNU__SHA256_SIZE]; } CornuKey;

/* That of `secret`, else of CORNU_KEY, else of the file CORNU_KEY_FILE, which no other user may
 * read. CORNU_ERR_ARGUMENT if there is none, or it is too short to be one. No message has any of
 * it. */
CornuStatus cornu__key_read(CornuKey *key, const char *secret);

/* Bytes that nobody can foresee. CORNU_ERR_PROCESS if the system has none. */
CornuStatus cornu__random_bytes(void *bytes, size_t size);

#endif
