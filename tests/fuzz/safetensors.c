/* Safetensors files. */
#include "fuzz.h"

#include "../../nn/formats/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CornuSafetensors *file = cornu_safetensors_open(fuzz_file("a.safetensors", data, size));
    if (!fuzz_loaded(file)) return 0;
    for (int i = 0; i < cornu_safetensors_count(file); i++) {
        const CornuNamedArray *array = cornu_safetensors_at(file, i);
        fuzz_read(array->array.data, cornu_type_bytes(array->array.type));
        fuzz_expect(cornu_safetensors_find(file, array->name) == array, "an array by its name");
    }
    cornu_safetensors_metadata(file, "architecture");
    cornu_safetensors_close(file);
    return 0;
}
