/* Tar archives of samples, as they are and with right checksums of their headers. */
#include "fuzz.h"

static void right_checksums(uint8_t *data, size_t size)
{
    enum { BLOCK = 512, SUM = 148, SUM_SIZE = 8, MAGIC = 257 };
    for (size_t at = 0; at + BLOCK <= size; at += BLOCK) {
        unsigned sum = 0;
        if (memcmp(data + at + MAGIC, "ustar", 5)) continue;
        memset(data + at + SUM, ' ', SUM_SIZE);
        for (int i = 0; i < BLOCK; i++) sum += data[at + (size_t)i];
        snprintf((char *)data + at + SUM, SUM_SIZE, "%06o", sum);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const CornuFeature fields[] = {
        { "png;jpg", CORNU_FEATURE_IMAGE, .shape = { 3, { 4, 5, 3 } }, .resize = true },
        { "cls", .dtype = CORNU_I32 },
        { "npy", CORNU_FEATURE_VAR, .shape = { 2, { 2, 3 } }, .truncate = true },
        { "txt", CORNU_FEATURE_BYTES, .shape = { 1, { 16 } }, .count = true },
        { "json:box.tags", CORNU_FEATURE_VAR, .dtype = CORNU_I64, .shape = { 1, { 3 } } },
        { .name = NULL },
    };
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy) return 0;
    if (size) memcpy(copy, data, size);
    for (int right = 0; right < 2; right++) {
        if (right) right_checksums(copy, size);
        fuzz_read_dataset(cornu_tar_dataset(fuzz_file("a.tar", copy, size), fields));
    }
    free(copy);
    return 0;
}
