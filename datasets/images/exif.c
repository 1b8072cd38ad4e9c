#include <string.h>

#include "format_internal.h"

int cornu__exif_orientation(const uint8_t *tiff, size_t size)
{
    enum { HEADER = 8, ENTRY = 12, ORIENTATION = 0x0112, SHORT = 3 };
    if (size < HEADER || (memcmp(tiff, "II*\0", 4) && memcmp(tiff, "MM\0*", 4))) return 1;
    uint32_t (*const u16)(const uint8_t *) = tiff[0] == 'I' ? cornu__le16 : cornu__be16;
    uint32_t (*const u32)(const uint8_t *) = tiff[0] == 'I' ? cornu__le32 : cornu__be32;
    const size_t directory = u32(tiff + 4);
    if (directory > size - 2) return 1;
    const size_t   entries = u16(tiff + directory);
    const uint8_t *entry = tiff + directory + 2;
    for (size_t i = 0; i < entries && (size_t)(tiff + size - entry) >= ENTRY; i++, entry += ENTRY) {
        if (u16(entry) != ORIENTATION || u16(entry + 2) != SHORT) continue;
        const uint32_t orientation = u16(entry + 8);
        return orientation >= 1 && orientation <= 8 ? (int)orientation : 1;
    }
    return 1;
}
