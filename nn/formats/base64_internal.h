/* Base64 (RFC 4648, section 4). */
#ifndef CORNU_NN_BASE64_INTERNAL_H
#define CORNU_NN_BASE64_INTERNAL_H

#include <stddef.h>

/* NULL with CORNU_ERR_MEMORY, or CORNU_ERR_FORMAT. The caller releases the result. */
char          *cornu__base64(const void *bytes, size_t size);
unsigned char *cornu__base64_bytes(const char *text, size_t *size);

#endif
