/* Text in each encoding, from memory and from a file; its alphabet; its sequences. */
#include "fuzz.h"

#include "../../datasets/text/text.h"

static void check_tokens(const CornuTextData *text, const uint8_t *data, size_t size)
{
    char       character[5];
    CornuArray again = { 0 };
    for (int64_t i = 0; i < cornu_type_count(text->tokens.type); i++) {
        const int64_t token = (int64_t)cornu_array_get(text->tokens, i);
        fuzz_expect(token >= 0 && token < text->vocabulary, "tokens below the vocabulary");
        fuzz_expect(cornu_text_decode(text, token, character) > 0, "a token that is a character");
    }
    if (fuzz_done(cornu_text_encode(text, (const char *)data, size, &again)))
        fuzz_expect(text->dropped || !memcmp(again.data, text->tokens.data,
                                             cornu_type_bytes(text->tokens.type)),
                    "equal tokens of an equal text");
    free(again.data);
}

static void check_dataset(const CornuTextData *text, int64_t length)
{
    CornuDataset *dataset = cornu_text_dataset(text, length);
    if (!fuzz_made(dataset)) return;
    const CornuBatch *batch;
    CornuIterator    *iterator = cornu_iterator_begin(dataset, 0);
    while (cornu_iterator_next(iterator, &batch) == CORNU_OK && batch)
        fuzz_read(batch->arrays[0].data, cornu_type_bytes(batch->arrays[0].type));
    cornu_iterator_free(iterator);
    cornu_dataset_free(dataset);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    const CornuTextEncoding encoding = data[0] % 3;
    CornuTextData *text = cornu_text_parse((const char *)data + 1, size - 1, encoding, "text");
    if (fuzz_loaded(text)) {
        check_tokens(text, data + 1, size - 1);
        check_dataset(text, 1 + data[0] / 3);
    }
    cornu_text_free(text);
    text = cornu_text_load(.file = fuzz_file("text", data + 1, size - 1), .encoding = encoding,
                           .limit = data[0] / 3);
    fuzz_loaded(text);
    cornu_text_free(text);
    return 0;
}
