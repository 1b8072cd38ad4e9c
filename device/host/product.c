#include "product.h"

#include "cpu.h"

const CornuProducts *cornu__products(void)
{
    CornuIsa isa;
    if (cornu__cpu_isa(&isa) != CORNU_OK) isa = CORNU_ISA_PORTABLE;
#if defined(__x86_64__)
    if (isa >= CORNU_ISA_AVX512) return &cornu__products_avx512;
    if (isa >= CORNU_ISA_AVX2) return &cornu__products_avx2;
#endif
    return &cornu__products_portable;
}
