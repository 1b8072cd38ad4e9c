/* How broadcast operands are read. */
#ifndef CORNU_DEVICE_HOST_ACCESS_H
#define CORNU_DEVICE_HOST_ACCESS_H

#include <stdbool.h>
#include <stddef.h>

#include "../../type.h"

/*
 * The element of an operand that belongs to element i of a group: i is decomposed into indices by
 * `extent`, row-major, and these are multiplied by `stride`, in elements. Axes are merged where
 * they can be.
 *     rank 0                        a scalar
 *     rank 1, stride 1              every element in turn
 *     rank 2, strides 0 1           period: a bias along the last axis
 *     rank 2, strides 1 0           each element repeated: a row's maximum
 */
typedef struct {
    int     rank;
    int64_t extent[CORNU_MAX_RANK], stride[CORNU_MAX_RANK];
} CornuAccess;

/* Reading a value of shape `from` as if broadcast to shape `to`. */
CornuAccess cornu__access(CornuShape from, CornuShape to);
bool        cornu__access_is_whole(const CornuAccess *access);
bool        cornu__access_is_period(const CornuAccess *access);

/* Writes elements first, first + 1, … of the broadcast operand, `count` of `size` bytes each,
 * packed. */
void cornu__gather(const CornuAccess *access, void *to, const void *from, size_t size,
                   int64_t first, int64_t count);

/* Repeats the first `period` bytes until there are `bytes`. */
void cornu__repeat(void *to, size_t period, size_t bytes);

/* `count` copies of one element of `size` bytes. */
void cornu__fill(void *to, const void *element, size_t size, int64_t count);

#endif
