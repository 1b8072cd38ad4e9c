#include "cpu.h"
#include "vector.h"

const CornuVectors *cornu__vectors(void)
{
    CornuIsa isa;
    if (cornu__cpu_isa(&isa) != CORNU_OK) isa = CORNU_ISA_PORTABLE;
#if defined(__x86_64__)
    if (isa >= CORNU_ISA_AVX512) return &cornu__vectors_avx512;
    if (isa >= CORNU_ISA_AVX2) return &cornu__vectors_avx2;
#endif
    return &cornu__vectors_portable;
}

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
