#include "bf16.h"
#include "col2im.h"
#include "cpu.h"
#include "depthwise.h"
#include "normalize.h"
#include "pool.h"
#include "product.h"
#include "recurrent.h"
#include "vector.h"

#include <stddef.h>

#if defined(__x86_64__)
#define TABLES(name) { &name##_portable, &name##_avx2, &name##_avx512 }
#else
#define TABLES(name) { &name##_portable, &name##_portable, &name##_portable }
#endif

static const CornuProducts   *const products[] = TABLES(cornu__products);
static const CornuPools      *const pools[] = TABLES(cornu__pools);
static const CornuDepthwises *const depthwises[] = TABLES(cornu__depthwises);
static CornuCol2im           *const col2ims[] = TABLES(cornu__col2im);
static const CornuNormalizes *const normalizes[] = TABLES(cornu__normalizes);
static const CornuVectors    *const vectors[] = TABLES(cornu__vectors);
static const CornuBf16       *const bf16[] = TABLES(cornu__bf16);
static const CornuCells      *const cells[] = {
#if defined(__x86_64__)
    &cornu__cells_portable, &cornu__cells_avx2, &cornu__cells_avx512, &cornu__cells_avx512bf16,
#else
    &cornu__cells_portable,
#endif
};
static const CornuProducts   *const products_of_bf16[] = {
#if defined(__x86_64__)
    &cornu__products_portable, &cornu__products_avx2, &cornu__products_avx512,
    &cornu__products_avx512bf16, &cornu__products_amx,
#else
    &cornu__products_portable,
#endif
};

/* The one in use, or the last there is. */
static size_t chosen(size_t count)
{
    const size_t isa = cornu__isa_in_use();
    return isa < count ? isa : count - 1;
}

#define CHOSEN(table) table[chosen(sizeof table / sizeof *table)]

const CornuProducts   *cornu__products(void)   { return CHOSEN(products); }
const CornuPools      *cornu__pools(void)      { return CHOSEN(pools); }
const CornuDepthwises *cornu__depthwises(void) { return CHOSEN(depthwises); }
CornuCol2im           *cornu__col2im(void)     { return CHOSEN(col2ims); }
const CornuNormalizes *cornu__normalizes(void) { return CHOSEN(normalizes); }
const CornuCells      *cornu__cells(void)      { return CHOSEN(cells); }
const CornuVectors    *cornu__vectors(void)    { return CHOSEN(vectors); }
const CornuBf16       *cornu__bf16(void)       { return CHOSEN(bf16); }

const CornuProducts *cornu__products_of_bf16(void) { return CHOSEN(products_of_bf16); }
