/* How broadcast operands are read; CornuAccess is described in elementwise.h. */
#ifndef CORNU_DEVICE_HOST_ACCESS_H
#define CORNU_DEVICE_HOST_ACCESS_H

#include "../compile/elementwise.h"

/* Reading a value of shape `from` as if broadcast to shape `to`. */
CornuAccess cornu__access(CornuShape from, CornuShape to);
bool        cornu__access_is_whole(const CornuAccess *access);
bool        cornu__access_is_period(const CornuAccess *access);

/* Writes elements first, first+1, …, `count` of them, packed; `size` bytes each. */
void cornu__gather(const CornuAccess *access, void *to, const void *from, size_t size,
                   int64_t first, int64_t count);

/* Repeats the first `period` bytes until there are `bytes`. */
void cornu__repeat(void *to, size_t period, size_t bytes);

/* `count` copies of one element of `size` bytes. */
void cornu__fill(void *to, const void *element, size_t size, int64_t count);

#endif
