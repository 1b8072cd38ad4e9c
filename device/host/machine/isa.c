/* The tables of the code compiled per instruction set, and the choice of the set in use. */
#include <stddef.h>

#include "../isa/attention.h"
#include "../isa/col2im.h"
#include "../isa/depthwise.h"
#include "../isa/normalize.h"
#include "../isa/pool.h"
#include "../isa/product.h"
#include "../isa/recurrent.h"
#include "../isa/resample.h"
#include "../isa/transpose.h"
#include "../isa/winograd.h"
#include "bf16.h"
#include "cpu.h"
#include "vector.h"

#define F32(name)  CORNU__F32_ISAS(CORNU__ADDRESS, , name)
#if defined(CORNU_INFERENCE)   /* the cpu device multiplies f32 */
#define BF16(name)
#define TILE(name)
#else
#define BF16(name) CORNU__BF16_ISAS(CORNU__ADDRESS, , name)
#define TILE(name) CORNU__TILE_ISAS(CORNU__ADDRESS, , name)
#endif

static const CornuProducts   *const products[] = { F32(cornu__products) };
static const CornuPools      *const pools[] = { F32(cornu__pools) };
static const CornuDepthwises *const depthwises[] = { F32(cornu__depthwises) };
static const CornuWinograds  *const winograds[] = { F32(cornu__winograds) };
static CornuCol2im           *const col2ims[] = { F32(cornu__col2im) };
static const CornuTransposes *const transposes[] = { F32(cornu__transposes) };
static const CornuResamples  *const resamples[] = { F32(cornu__resamples) };
static const CornuNormalizes *const normalizes[] = { F32(cornu__normalizes) };
static const CornuVectors    *const vectors[] = { F32(cornu__vectors) };
static const CornuBf16       *const bf16[] = { F32(cornu__bf16) };
static const CornuCells      *const cells[] = { F32(cornu__cells) BF16(cornu__cells) };
static const CornuAttends    *const attends[] = { F32(cornu__attends) };
static const CornuAttends    *const attends_of_bf16[] = {
    F32(cornu__attends) BF16(cornu__attends)
};
static const CornuProducts   *const products_of_bf16[] = {
    F32(cornu__products) BF16(cornu__products) TILE(cornu__products)
};

/* Of the set in use, or of the last that the table has. */
static size_t chosen(size_t count)
{
    const size_t isa = cornu__isa_in_use();
    return isa < count ? isa : count - 1;
}

#define CHOSEN(table) table[chosen(sizeof table / sizeof *table)]

const CornuProducts   *cornu__products(void)   { return CHOSEN(products); }
const CornuPools      *cornu__pools(void)      { return CHOSEN(pools); }
const CornuDepthwises *cornu__depthwises(void) { return CHOSEN(depthwises); }
const CornuWinograds  *cornu__winograds(void)  { return CHOSEN(winograds); }
CornuCol2im           *cornu__col2im(void)     { return CHOSEN(col2ims); }
const CornuTransposes *cornu__transposes(void) { return CHOSEN(transposes); }
const CornuResamples  *cornu__resamples(void)  { return CHOSEN(resamples); }
const CornuNormalizes *cornu__normalizes(void) { return CHOSEN(normalizes); }
const CornuCells      *cornu__cells(void)      { return CHOSEN(cells); }
const CornuVectors    *cornu__vectors(void)    { return CHOSEN(vectors); }
const CornuBf16       *cornu__bf16(void)       { return CHOSEN(bf16); }

const CornuAttends    *cornu__attends(void)    { return CHOSEN(attends); }

const CornuAttends  *cornu__attends_of_bf16(void)  { return CHOSEN(attends_of_bf16); }
const CornuProducts *cornu__products_of_bf16(void) { return CHOSEN(products_of_bf16); }
