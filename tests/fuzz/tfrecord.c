/* TFRecord files of Examples, as they are and with right checksums, which the input rarely has.
 * Byte 0 is the cycle_length. */
#include "fuzz.h"

#include "../../device/hash/crc32c_internal.h"

static void put(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(value >> 8 * i);
}

static void right_checksums(uint8_t *data, size_t size)
{
    for (size_t at = 0; size - at >= 16;) {
        uint64_t length = 0;
        for (int i = 7; i >= 0; i--) length = length << 8 | data[at + (size_t)i];
        put(data + at + 8, cornu__crc32c_masked(data + at, 8));
        if (length > size - at - 16) return;
        put(data + at + 12 + length, cornu__crc32c_masked(data + at + 12, (size_t)length));
        at += 16 + (size_t)length;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const CornuFeature features[] = {
        { "label", .dtype = CORNU_I32 },
        { "words", CORNU_FEATURE_VAR, .dtype = CORNU_I64, .shape = { 1, { 6 } }, .count = true },
        { "points", CORNU_FEATURE_VAR, .shape = { 2, { 4, 2 } }, .truncate = true },
        { "raw", CORNU_FEATURE_RAW, .shape = { 2, { 2, 3 } } },
        { "text", CORNU_FEATURE_BYTES, .shape = { 1, { 8 } }, .count = true },
        { "image", CORNU_FEATURE_IMAGE, .shape = { 3, { 6, 5, 3 } }, .resize = true },
        { "steps", .shape = { 2, { 6, 2 } }, .sequence = true, .count = true },
        { .name = NULL },
    };
    if (size < 1) return 0;
    uint8_t *copy = malloc(size);
    if (!copy) return 0;
    memcpy(copy, data, size);
    for (int right = 0; right < 2; right++) {
        if (right) right_checksums(copy + 1, size - 1);
        const char *path = fuzz_file("a.tfrecord", copy + 1, size - 1);
        fuzz_read_dataset(cornu_tfrecord_dataset(path, features, .cycle_length = data[0] % 3));
    }
    free(copy);
    return 0;
}
