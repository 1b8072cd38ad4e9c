#include "reorder_internal.h"

#include <string.h>

/* Fills the elements of the result in order, each from its position. */
void cornu__reorder(const void *from, CornuShape shape, size_t size, const int *order, void *to)
{
    int64_t strides[CORNU_MAX_RANK], at[CORNU_MAX_RANK] = { 0 }, count = 1;
    for (int i = shape.rank - 1; i >= 0; i--) {
        strides[i] = count;
        count *= shape.extent[i];
    }
    for (int64_t n = 0; n < count; n++) {
        int64_t place = 0;
        for (int i = 0; i < shape.rank; i++) place += at[i] * strides[order[i]];
        memcpy((char *)to + (size_t)n * size, (const char *)from + (size_t)place * size, size);
        for (int i = shape.rank - 1; i >= 0 && ++at[i] == shape.extent[order[i]]; i--) at[i] = 0;
    }
}
