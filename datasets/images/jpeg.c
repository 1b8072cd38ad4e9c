/* Sources: ITU-T T.81, annex B, for markers; ITU-T T.872, section 6.5.3, for Adobe's. */
#include "jpeg_internal.h"

#include <string.h>

enum { IMAGE = 0xD8, FRAME = 0xC0, LAST_FRAME = 0xC2, SCAN = 0xDA, ADOBE = 0xEE };
enum { CMYK = 0, YCCK = 2 };   /* Adobe's transforms of four components */

/* The marker with length, name, version, flags and transform. */
static const uint8_t adobe[CORNU_JPEG_ROOM] = { 0xFF, ADOBE, 0, 14, 'A', 'd', 'o', 'b', 'e',
                                                0, 100, 0, 0, 0, 0, CMYK };

uint8_t *cornu__jpeg_mark_colours(uint8_t *file, size_t *size)
{
    enum { BEGIN = 2, NAME = 4, TRANSFORM = 15, COMPONENTS = 9 };
    uint8_t *transform = NULL, components = 0;
    if (*size < BEGIN || file[0] != 0xFF || file[1] != IMAGE) return file;
    for (size_t at = BEGIN; at + CORNU_JPEG_ROOM <= *size && file[at] == 0xFF;) {
        const uint8_t *segment = file + at, marker = segment[1];
        if (marker == SCAN) break;
        if (marker == 0xFF) {   /* fills up */
            at++;
            continue;
        }
        const size_t length = (size_t)segment[2] << 8 | segment[3];
        if (marker >= FRAME && marker <= LAST_FRAME) components = segment[COMPONENTS];
        if (marker == ADOBE && length >= sizeof adobe - 2 && !memcmp(segment + NAME, "Adobe", 5))
            transform = file + at + TRANSFORM;
        at += 2 + length;
    }
    if (components != 4) return file;
    if (transform) {
        if (*transform != CMYK) *transform = YCCK;
        return file;
    }
    memcpy(file - CORNU_JPEG_ROOM, file, BEGIN);
    memcpy(file - CORNU_JPEG_ROOM + BEGIN, adobe, sizeof adobe);
    *size += sizeof adobe;
    return file - CORNU_JPEG_ROOM;
}
