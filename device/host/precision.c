#include "precision.h"

enum { HIGH, MIDDLE, LOW, PARTS, SPLIT_BLOCK = 16384 };

static const int one_pass[][2] = { { HIGH, HIGH } };
static const int six_passes[][2] = {
    { LOW, HIGH }, { HIGH, LOW }, { MIDDLE, MIDDLE }, { MIDDLE, HIGH }, { HIGH, MIDDLE },
    { HIGH, HIGH },
};

CornuPrecision cornu__precision(CornuMultiplier multiplier, CornuDtype dtype)
{
    if (multiplier == CORNU_MULTIPLIES_F32)
        return (CornuPrecision){ cornu__products(), NULL, 1, 1, one_pass };
    const CornuBf16 *bf16 = cornu__bf16();
    if (dtype == CORNU_BF16) return (CornuPrecision){ &bf16->products, bf16, 1, 1, one_pass };
    return (CornuPrecision){ &bf16->products, bf16, PARTS, 6, six_passes };
}

bool cornu__product_accepts(CornuMultiplier multiplier, const CornuOpCall *call,
                            const CornuType *out_type)
{
    const CornuDtype in = call->in[0].dtype, out = out_type->dtype;
    if (in == CORNU_F32) return out == CORNU_F32;
    return multiplier == CORNU_MULTIPLIES_BF16 && in == CORNU_BF16 &&
           (out == CORNU_F32 || out == CORNU_BF16);
}

static size_t align(size_t bytes) { return (bytes + 63) / 64 * 64; }

size_t cornu__parts_bytes(const CornuPrecision *precision, int64_t count)
{
    return precision->parts == 1 ? 0 : align(PARTS * (size_t)count * sizeof(uint16_t));
}

typedef struct {
    const CornuBf16 *bf16;
    const float     *from;
    uint16_t        *to;
    int64_t          count;
} Split;

static void split_block(void *context, int64_t block, int thread)
{
    (void)thread;
    const Split  *s = context;
    const int64_t first = block * SPLIT_BLOCK, left = s->count - first;
    uint16_t     *to = s->to + first;
    s->bf16->split(s->from + first, left < SPLIT_BLOCK ? left : SPLIT_BLOCK, to, to + s->count,
                   to + 2 * s->count);
}

const void *cornu__parts(const CornuPrecision *precision, CornuThreads *threads,
                         const void *operand, int64_t count, void *to)
{
    if (precision->parts == 1) return operand;
    Split split = { precision->bf16, operand, to, count };
    cornu__threads_run(threads, (count + SPLIT_BLOCK - 1) / SPLIT_BLOCK, split_block, &split);
    return to;
}

void cornu__biases(const CornuEpilogue *epilogue, CornuDtype dtype, int64_t count, int64_t padded,
                   float *to)
{
    const CornuArray bias = { cornu_type(dtype, count), (void *)(uintptr_t)epilogue->bias };
    for (int64_t n = 0; n < padded; n++)
        to[n] = epilogue->bias && n < count ? (float)cornu_array_get(bias, n) : 0.0f;
}
