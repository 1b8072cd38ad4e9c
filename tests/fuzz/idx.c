/* idx files, uncompressed and compressed. */
#include "fuzz.h"

#include "../../datasets/mnist/idx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CornuArray array = { 0 };
    if (fuzz_done(cornu_idx_load(fuzz_file("idx", data, size), &array)))
        fuzz_read(array.data, cornu_type_bytes(array.type));
    free(array.data);
    return 0;
}
