/* What the parts of the reader share: read_internal.h. */
#include <string.h>

#include "../../../device/memory_internal.h"
#include "read_internal.h"

enum {
    MOST_SHARED = 16,            /* copies of the file's bytes: tables can be shared */
    MOST_REPEATED = 1 << 28,     /* bytes of the turns of loops */
};

CornuStatus cornu__lite_damaged(const char *what)
{
    return cornu__fail(CORNU_ERR_FORMAT, "not a .tflite file, or damaged: %s", what);
}

CornuStatus cornu__lite_take(CornuLiteReader *reader, size_t bytes)
{
    if (reader->loops && (bytes > MOST_REPEATED || (reader->repeated += bytes) > MOST_REPEATED))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "loops of over %d MiB, as they are read turn by "
                           "turn", MOST_REPEATED >> 20);
    if (reader->loops) return CORNU_OK;
    if (bytes > SIZE_MAX - reader->copied ||
        (reader->copied += bytes) / MOST_SHARED > reader->from.size)
        return cornu__fail(CORNU_ERR_FORMAT, "damaged: its tensors take more than %d times the "
                           "bytes of the file", MOST_SHARED);
    return CORNU_OK;
}

const char *cornu__lite_text(CornuLiteReader *reader, CornuLiteText *name,
                             const CornuFlatTable *table, int slot, const char *usual)
{
    const CornuFlatVector text = cornu__flat_vector_at(&reader->from, table, slot, 1);
    if (!text.given) return usual;
    const size_t size = text.count < CORNU_LITE_MOST_NAME ? text.count : CORNU_LITE_MOST_NAME;
    for (size_t i = 0; i < size; i++)   /* control characters would garble messages */
        name->text[i] = text.bytes[i] < ' ' || text.bytes[i] == 127 ? '?' : (char)text.bytes[i];
    name->text[size] = 0;
    return name->text;
}

int32_t cornu__lite_integer(const CornuFlatVector *vector, size_t i)
{
    int32_t value;
    memcpy(&value, vector->bytes + 4 * i, sizeof value);
    return value;
}

/* Numbers of the subgraph's tensors as those of the graph. */
CornuStatus cornu__lite_read_numbers(CornuLiteReader *reader, const CornuFlatTable *table, int slot,
                                     bool omit, int **numbers, int *count)
{
    const CornuFlatVector given = cornu__flat_vector_at(&reader->from, table, slot, 4);
    *count = 0;
    CORNU__TRY(cornu__lite_take(reader, 4 * given.count));
    if (!(*numbers = cornu__allocate(given.count, sizeof **numbers))) return CORNU_ERR_MEMORY;
    *count = (int)given.count;
    for (int i = 0; i < *count; i++) {
        const int32_t number = cornu__lite_integer(&given, (size_t)i);
        if (number >= reader->number_count || number < (omit ? -1 : 0))
            return cornu__lite_damaged("a number of a tensor that there is not");
        (*numbers)[i] = number < 0 ? CORNU_LITE_OMITTED : reader->numbers[number];
    }
    return CORNU_OK;
}
