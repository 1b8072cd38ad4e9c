#include "cpu.h"
#include "normalize.h"
#include "pool.h"
#include "product.h"
#include "vector.h"

#if defined(__x86_64__)
#define TABLES(name) { &name##_portable, &name##_avx2, &name##_avx512 }
#else
#define TABLES(name) { &name##_portable, &name##_portable, &name##_portable }
#endif

static const CornuProducts   *const products[] = TABLES(cornu__products);
static const CornuPools      *const pools[] = TABLES(cornu__pools);
static const CornuNormalizes *const normalizes[] = TABLES(cornu__normalizes);
static const CornuVectors    *const vectors[] = TABLES(cornu__vectors);

/* A wrong CORNU_ISA is refused when a device opens; here it is too late to. */
static int chosen(void)
{
    CornuIsa isa;
    if (cornu__cpu_isa(&isa) != CORNU_OK) return CORNU_ISA_PORTABLE;
    return isa < CORNU_ISA_AVX512 ? (int)isa : CORNU_ISA_AVX512;
}

const CornuProducts   *cornu__products(void)   { return products[chosen()]; }
const CornuPools      *cornu__pools(void)      { return pools[chosen()]; }
const CornuNormalizes *cornu__normalizes(void) { return normalizes[chosen()]; }
const CornuVectors    *cornu__vectors(void)    { return vectors[chosen()]; }
