#include "access.h"

#include <string.h>

CornuAccess cornu__access(CornuShape from, CornuShape to)
{
    CornuAccess access = { .rank = 0 };
    int64_t     stride = 1;
    /* From the last axis to the first, merging each with the one after it where it continues it;
     * reversed at the end. */
    for (int i = 0; i < to.rank; i++) {
        int64_t extent = to.extent[to.rank - 1 - i];
        int64_t own = i < from.rank ? from.extent[from.rank - 1 - i] : 1;
        if (extent == 1) continue;
        int64_t step = own == 1 ? 0 : stride;
        stride *= own;
        int last = access.rank - 1;
        if (last >= 0 && step == access.stride[last] * access.extent[last]) {
            access.extent[last] *= extent;
        } else {
            access.extent[access.rank] = extent;
            access.stride[access.rank++] = step;
        }
    }
    for (int i = 0, j = access.rank - 1; i < j; i++, j--) {
        int64_t extent = access.extent[i], step = access.stride[i];
        access.extent[i] = access.extent[j], access.stride[i] = access.stride[j];
        access.extent[j] = extent, access.stride[j] = step;
    }
    if (access.rank == 1 && access.stride[0] == 0) access.rank = 0;
    return access;
}

bool cornu__access_is_whole(const CornuAccess *access)
{
    return access->rank == 1 && access->stride[0] == 1;
}

bool cornu__access_is_period(const CornuAccess *access)
{
    return access->rank == 2 && access->stride[0] == 0 && access->stride[1] == 1;
}

void cornu__repeat(void *to, size_t period, size_t bytes)
{
    for (size_t done = period; done < bytes; done *= 2)
        memcpy((char *)to + done, to, done < bytes - done ? done : bytes - done);
}

void cornu__fill(void *to, const void *element, size_t size, int64_t count)
{
    if (count <= 0) return;
    memcpy(to, element, size);
    cornu__repeat(to, size, (size_t)count * size);
}

/* Strides 1 0, of few repetitions: each copied by itself. With `size` known, a move. */
static inline void gather_repeated(const char *x, size_t size, int64_t each, int64_t first,
                                   int64_t count, char *y)
{
    int64_t left = each - first % each;
    x += (size_t)(first / each) * size;
    for (; count > 0; count--, y += size) {
        memcpy(y, x, size);
        if (--left == 0) x += size, left = each;
    }
}

void cornu__gather(const CornuAccess *access, void *to, const void *from, size_t size,
                   int64_t first, int64_t count)
{
    const char *x = from;
    char       *y = to;
    int         last = access->rank - 1;
    if (last < 0) {
        cornu__fill(y, x, size, count);
        return;
    }
    enum { FEW = 16 };
    const int64_t each = access->extent[last];
    if (access->rank == 2 && access->stride[0] == 1 && !access->stride[1] && each <= FEW) {
        switch (size) {
        case 2: gather_repeated(x, 2, each, first, count, y); return;
        case 4: gather_repeated(x, 4, each, first, count, y); return;
        default: gather_repeated(x, size, each, first, count, y); return;
        }
    }
    int64_t index[CORNU_MAX_RANK], offset = 0;
    for (int i = last; i >= 0; i--) {
        index[i] = first % access->extent[i];
        first /= access->extent[i];
        offset += index[i] * access->stride[i];
    }
    /* Run by run along the last axis, stepping the others as an odometer does. */
    for (int64_t done = 0; done < count;) {
        int64_t run = access->extent[last] - index[last];
        if (run > count - done) run = count - done;
        if (access->stride[last])
            memcpy(y, x + (size_t)offset * size, (size_t)run * size);
        else cornu__fill(y, x + (size_t)offset * size, size, run);
        done += run;
        y += (size_t)run * size;
        offset -= index[last] * access->stride[last];
        index[last] = 0;
        for (int i = last - 1; i >= 0; i--) {
            offset += access->stride[i];
            if (++index[i] < access->extent[i]) break;
            offset -= access->extent[i] * access->stride[i];
            index[i] = 0;
        }
    }
}
