/* Names of classes, from a file and as a list; byte 0 is their number. */
#include "fuzz.h"

#include "../../datasets/pipeline/labels.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    const int count = data[0];
    char    **names = cornu_labels_read(fuzz_file("labels", data + 1, size - 1), count);
    if (fuzz_made(names))
        for (int i = 0; i < count; i++) fuzz_read(names[i], strlen(names[i]));
    free(names);

    /* With a comma it is not a path. */
    char *list = calloc(size + 1, 1);
    if (!list) abort();
    memcpy(list, data, size);
    list[0] = ',';
    names = cornu_labels_read(list, count);
    fuzz_made(names);
    free(names);
    free(list);
    return 0;
}
