#include "reorder_internal.h"

#include <string.h>

/* Elements that lie a stride apart, one after the other. */
static void gather(const char *from, int64_t stride, int64_t count, size_t size, char *to)
{
    if (size == 4)   /* most of all, and much faster with a size that is known */
        for (int64_t i = 0; i < count; i++) memcpy(to + 4 * i, from + 4 * i * stride, 4);
    else
        for (int64_t i = 0; i < count; i++)
            memcpy(to + (size_t)i * size, from + (size_t)(i * stride) * size, size);
}

/* Fills the elements of the result in order, by runs along its last axis. */
void cornu__reorder(const void *from, CornuShape shape, size_t size, const int *order, void *to)
{
    int64_t   strides[CORNU_MAX_RANK] = { 0 }, at[CORNU_MAX_RANK] = { 0 }, count = 1;
    const int last = shape.rank - 1;
    for (int i = last; i >= 0; i--) {
        strides[i] = count;
        count *= shape.extent[i];
    }
    const int64_t run = shape.rank ? shape.extent[order[last]] : 1;
    const int64_t stride = shape.rank ? strides[order[last]] : 1;
    for (int64_t n = 0; n < count; n += run) {
        int64_t place = 0;
        for (int i = 0; i < last; i++) place += at[i] * strides[order[i]];
        gather((const char *)from + (size_t)place * size, stride, run, size,
               (char *)to + (size_t)n * size);
        for (int i = last - 1; i >= 0 && ++at[i] == shape.extent[order[i]]; i--) at[i] = 0;
    }
}
