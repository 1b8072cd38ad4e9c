/* The JSON of models as Keras 2 writes it, which is made Keras 3's. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *json = malloc(size + 1);
    if (!json) return 0;
    memcpy(json, data, size);
    json[size] = '\0';
    CornuModel *model = cornu_model_from_json(json);
    fuzz_loaded(model);
    cornu_model_free(model);
    free(json);
    return 0;
}
