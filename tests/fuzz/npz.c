/* NumPy arrays, as two members of an archive that is made here with right checksums. Byte 0 is the
 * size of the first. */
#include "fuzz.h"

#include "../../device/files/zip_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    const size_t first = data[0] < size - 1 ? data[0] : size - 1;
    const CornuZipMember members[] = { { "dense/kernel.npy", data + 1, first },
                                       { "b.npy", data + 1 + first, size - 1 - first } };
    const char *path = fuzz_path("a.npz");
    fuzz_expect(fuzz_done(cornu__zip_write(path, members, first < size - 1 ? 2 : 1)), "an archive");
    static char kernel[400];
    snprintf(kernel, sizeof kernel, "%s:dense/kernel", path);
    fuzz_read_dataset(cornu_npy_dataset(kernel));
    CornuNpz *file = cornu_npz_open(path);
    if (!fuzz_loaded(file)) return 0;
    for (int i = 0; i < cornu_npz_count(file); i++) {
        const CornuArray array = cornu_npz_at(file, i)->array;
        fuzz_read(array.data, cornu_type_bytes(array.type));
    }
    cornu_npz_close(file);
    return 0;
}
