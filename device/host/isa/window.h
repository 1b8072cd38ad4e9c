/* The largest element of a window, as max_pool2d finds it. */
#ifndef CORNU_DEVICE_HOST_ISA_WINDOW_H
#define CORNU_DEVICE_HOST_ISA_WINDOW_H

#include "lanes.h"

/* Adds a tap of a window: keeps the largest value, the first of equal ones, or the first NaN, and
 * the tap it is from. */
INLINE void window_take(Lanes value, int tap, Lanes *most, Mask *at)
{
    const Mask take = ~(value <= *most) & (*most == *most);
    *most = (Lanes)((take & (Mask)value) | (~take & (Mask)*most));
    *at = (take & tap) | (~take & *at);
}

#endif
