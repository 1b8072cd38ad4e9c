/* Keras' JSON of models. A model that was read is written and read again, with the same JSON. */
#include "fuzz.h"

#include "../../nn/saving/files_internal.h"

static json_t *written(CornuModel *model)
{
    json_t *config = cornu__model_config(model);
    fuzz_expect(config != NULL, "JSON of a model that was read");
    return config;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *config = cornu__json_parse((const char *)data, size, CORNU_ARCHITECTURE_DEPTH);
    CornuModel *model = config ? cornu__model_from_config(config, NULL) : NULL;
    if (config && fuzz_made(model)) {
        json_t     *first = written(model);
        CornuModel *again = cornu__model_from_config(first, NULL);
        fuzz_expect(fuzz_made(again), "a model of the JSON that was written");
        json_t *second = written(again);
        fuzz_expect(json_equal(first, second), "the same JSON");
        json_decref(second);
        cornu_model_free(again);
        json_decref(first);
    }
    cornu_model_free(model);
    json_decref(config);
    return 0;
}
