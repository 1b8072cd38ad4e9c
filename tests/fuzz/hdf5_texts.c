/* Strings of variable length in HDF5 files, which are read without libhdf5; the first two bytes are
 * the position of the object's header. */
#include "fuzz.h"

#include "../../nn/formats/hdf5_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) return 0;
    const uint64_t header = data[0] | (uint64_t)data[1] << 8;
    for (int64_t i = 0; i < 4; i++) {
        const char *text;
        size_t      length;
        if (cornu__hdf5_find_text(data + 2, size - 2, header, "name", i, &text, &length))
            fuzz_read(text, length);
    }
    return 0;
}
