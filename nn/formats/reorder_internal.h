/* Arrays as other formats have their axes. */
#ifndef CORNU_NN_REORDER_INTERNAL_H
#define CORNU_NN_REORDER_INTERNAL_H

#include "../../device/type.h"

/* Copies packed elements of `size` bytes with the axes in another order: axis i of the result is
 * axis order[i]. */
void cornu__reorder(const void *from, CornuShape shape, size_t size, const int *order, void *to);

#endif
