#include "base64_internal.h"

#include <string.h>

#include "../../device/memory_internal.h"
#include "../../device/status_internal.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *cornu__base64(const void *bytes, size_t size)
{
    const unsigned char *from = bytes;
    char *text = cornu__allocate(size / 3 + 2, 4), *to = text;
    for (size_t i = 0; text && i < size; i += 3) {
        const size_t   left = size - i;
        const unsigned three = (unsigned)from[i] << 16 |
                               (left > 1 ? (unsigned)from[i + 1] << 8 : 0) |
                               (left > 2 ? (unsigned)from[i + 2] : 0);
        *to++ = digits[three >> 18];
        *to++ = digits[three >> 12 & 63];
        *to++ = left > 1 ? digits[three >> 6 & 63] : '=';
        *to++ = left > 2 ? digits[three & 63] : '=';
    }
    return text;
}

unsigned char *cornu__base64_bytes(const char *text, size_t *size)
{
    const size_t   length = strlen(text);
    unsigned char *bytes = cornu__allocate(length / 4 + 1, 3);
    *size = 0;
    for (size_t i = 0; bytes && i < length; i += 4) {
        unsigned four = 0;
        int      given = 0;
        for (int k = 0; k < 4 && i + 3 < length; k++) {
            const char *digit = strchr(digits, text[i + (size_t)k]);
            const bool  end = text[i + (size_t)k] == '=' && i + 4 == length && k > 1;
            if (digit && given == k) given++;
            else if (!end) given = -1;
            four = four << 6 | (unsigned)(digit ? digit - digits : 0);
        }
        if (given < 2) {
            cornu__release(bytes);
            cornu__fail(CORNU_ERR_FORMAT, "the graph is not base64");
            return NULL;
        }
        for (int k = 0; k < given - 1; k++)
            bytes[(*size)++] = (unsigned char)(four >> (16 - 8 * k));
    }
    return bytes;
}
