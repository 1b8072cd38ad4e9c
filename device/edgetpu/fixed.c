#include "fixed.h"

#include <math.h>

CornuMultiplier cornu__multiplier(double factor)
{
    if (!(factor < 0x1p31)) return (CornuMultiplier){ INT32_MAX, 31 };
    int     shift;
    int64_t mantissa = (int64_t)round(frexp(factor, &shift) * 0x1p31);
    if (mantissa == INT64_C(1) << 31) {
        mantissa /= 2;
        shift++;
    }
    if (mantissa == 0 || shift < -31) return (CornuMultiplier){ 0, 0 };
    return (CornuMultiplier){ (int32_t)mantissa, shift };
}
