/* Zip archives and .npz files. */
#include "fuzz.h"

#include "../../device/memory_internal.h"
#include "../../device/files/zip_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file("a.npz", data, size);
    CornuZip   *zip = cornu__zip_open(path);
    if (fuzz_made(zip))
        for (int i = 0; i < cornu__zip_count(zip); i++) {
            unsigned char *bytes;
            size_t         length;
            fuzz_expect(cornu__zip_find(zip, cornu__zip_name(zip, i)) == i, "a member by its name");
            if (!fuzz_done(cornu__zip_read(zip, i, &bytes, &length))) continue;
            fuzz_read(bytes, length + 1);
            cornu__release(bytes);
        }
    cornu__zip_close(zip);
    CornuNpz *arrays = cornu_npz_open(path);
    fuzz_loaded(arrays);
    cornu_npz_close(arrays);
    return 0;
}
