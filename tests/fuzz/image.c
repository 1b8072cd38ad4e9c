/* Images, decoded to each number of channels and resized. What is larger than a thousand pixels
 * along an axis is left: it takes time, and says no more. */
#include "fuzz.h"

#include "../../datasets/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file("image", data, size);
    int64_t     height = 0, width = 0;
    if (!fuzz_done(cornu_image_size(path, &height, &width)) || height * width > 1000000) return 0;
    for (int channels = 0; channels <= 3; channels++) {
        uint8_t    small[7 * 5 * 3];
        CornuArray image = { 0 };
        if (!fuzz_done(cornu_image_load(path, channels, &image))) continue;
        fuzz_read(image.data, cornu_type_bytes(image.type));
        const CornuArray to = cornu_array(small, CORNU_U8, 7, 5, image.type.shape.extent[2]);
        fuzz_done(cornu_image_resize(image, CORNU_IMAGE_BILINEAR, size % 2, to));
        free(image.data);
    }
    return 0;
}
