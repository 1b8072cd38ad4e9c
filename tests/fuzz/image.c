/* Images, decoded to each number of channels and resized. Images of more than 65,536 pixels are
 * skipped, as they only take longer. */
#include "fuzz.h"

#include "../../datasets/images/image.h"

#include <zlib.h>

/* Corrects the checksums of the chunks of a PNG, as nothing after a wrong one is read. */
static void right_checksums(uint8_t *data, size_t size)
{
    for (size_t at = 8; size >= 12 && at <= size - 12;) {
        const size_t length = (size_t)data[at] << 24 | (size_t)data[at + 1] << 16 |
                              (size_t)data[at + 2] << 8 | data[at + 3];
        if (length > size - 12 - at) return;
        const uLong sum = crc32(0, data + at + 4, (uInt)length + 4);
        for (int i = 0; i < 4; i++) data[at + 8 + length + i] = (uint8_t)(sum >> (24 - 8 * i));
        at += 12 + length;
    }
}

static void see(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file("image", data, size);
    int64_t     height = 0, width = 0;
    if (!fuzz_done(cornu_image_size(path, &height, &width)) || height * width > 65536) return;
    for (int channels = 0; channels <= 3; channels++) {
        uint8_t    small[7 * 5 * 3];
        CornuArray image = { 0 };
        if (!fuzz_done(cornu_image_load(path, channels, &image))) continue;
        fuzz_read(image.data, cornu_type_bytes(image.type));
        const CornuArray to = cornu_array(small, CORNU_U8, 7, 5, image.type.shape.extent[2]);
        fuzz_done(cornu_image_resize(image, CORNU_IMAGE_BILINEAR, size % 2, to));
        free(image.data);
    }
}

/* The input as it is and, if it is a PNG, with right checksums. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = size >= 4 && !memcmp(data, "\x89PNG", 4) ? malloc(size) : NULL;
    see(data, size);
    if (!copy) return 0;
    memcpy(copy, data, size);
    right_checksums(copy, size);
    see(copy, size);
    free(copy);
    return 0;
}
