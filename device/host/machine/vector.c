#include "vector.h"

CornuClass cornu__class_of(CornuDtype dtype)
{
    switch (dtype) {
    case CORNU_F32: case CORNU_BF16: case CORNU_F16: return CORNU_CLASS_F32;
    case CORNU_F64: return CORNU_CLASS_F64;
    case CORNU_BOOL: return CORNU_CLASS_BOOL;
    default: return CORNU_CLASS_I64;
    }
}

size_t cornu__class_size(CornuClass class)
{
    static const size_t sizes[CORNU_CLASS_COUNT] = {
        [CORNU_CLASS_F32] = 4, [CORNU_CLASS_F64] = 8, [CORNU_CLASS_I64] = 8,
        [CORNU_CLASS_BOOL] = 1,
    };
    return sizes[class];
}
