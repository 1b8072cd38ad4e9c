/* SHA-256 of a file: FIPS 180-4, "Secure Hash Standard", section 6.2. */
#ifndef CORNU_DATASETS_SHA256_INTERNAL_H
#define CORNU_DATASETS_SHA256_INTERNAL_H

#include "../device/status.h"

enum { CORNU__SHA256_TEXT = 65 };

/* The digest as 64 hexadecimal digits, lower case. CORNU_ERR_FILE if path cannot be read. */
CornuStatus cornu__sha256_file(const char *path, char text[CORNU__SHA256_TEXT]);

#endif
