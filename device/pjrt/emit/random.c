/*
 * random_uniform: Philox 4x32-10 as random.h says, in ui32 and ui64, so that every platform draws
 * the numbers of the other devices. One counter gives four elements of a row.
 */
#include "emit.h"

/* (rows, quads): each row's element is the scalar's, a ui32. */
static CornuName every(CornuEmitter *e, CornuName scalar, CornuShape shape)
{
    return cornu__hlo_repeat(e, cornu__hlo_convert(e, scalar, PJRT_U32), shape);
}

/* The two words of a 64-bit product with a constant. */
static void multiply(CornuEmitter *e, CornuName x, uint32_t factor, CornuName *high,
                     CornuName *low)
{
    const CornuName    wide = cornu__hlo_convert(e, x, PJRT_U64);
    const CornuHloType type = cornu__hlo_of(e, wide);
    const CornuName product = cornu__hlo2(e, "multiply", wide, cornu__hlo_integer(e, type, factor));
    const CornuName shifted = cornu__hlo2(e, "shift_right_logical", product,
                                          cornu__hlo_integer(e, type, 32));
    *high = cornu__hlo_convert(e, shifted, PJRT_U32);
    *low = cornu__hlo2(e, "multiply", x, cornu__hlo_integer(e, cornu__hlo_of(e, x), factor));
}

static CornuName mixed(CornuEmitter *e, CornuName a, CornuName b, CornuName key)
{
    return cornu__hlo2(e, "xor", cornu__hlo2(e, "xor", a, b), key);
}

static void philox(CornuEmitter *e, CornuName c[4], CornuName key[2])
{
    static const uint32_t weyl[2] = { 0x9E3779B9, 0xBB67AE85 };
    const CornuHloType    type = cornu__hlo_of(e, c[0]);
    for (int round = 0; round < 10; round++) {
        CornuName high[2], low[2];
        multiply(e, c[0], 0xD2511F53, &high[0], &low[0]);
        multiply(e, c[2], 0xCD9E8D57, &high[1], &low[1]);
        c[0] = mixed(e, high[1], c[1], key[0]);
        c[1] = low[1];
        c[2] = mixed(e, high[0], c[3], key[1]);
        c[3] = low[0];
        for (int i = 0; i < 2 && round < 9; i++)
            key[i] = cornu__hlo2(e, "add", key[i], cornu__hlo_integer(e, type, weyl[i]));
    }
}

static void random_uniform(CornuEmitter *e, const CornuEmitCall *call)
{
    const CornuShape shape = call->out_type[0].shape;
    const int64_t    rows = shape.rank > 0 ? shape.extent[0] : 1;
    const int64_t    row = rows ? cornu_shape_count(shape) / rows : 0, quads = (row + 3) / 4;
    const CornuShape grid = cornu_shape(rows, quads);
    const CornuHloType type = { PJRT_U32, grid }, real = { PJRT_F32, cornu_shape(rows, 4 * quads) };
    const CornuHloType word = cornu__hlo_scalar(PJRT_S64);
    const CornuName    seed = call->in[0], iteration = call->in[1], position = call->in[2];
    if (cornu_shape_count(shape) == 0) {
        call->out[0] = cornu__hlo_constant(e, cornu__hlo_type(call->out_type[0]), 0.0);
        return;
    }
    cornu__hlo_check(e, call, "iteration", iteration, INT64_C(1) << 32);
    cornu__hlo_check(e, call, "position", position, (INT64_C(1) << 32) - rows + 1);
    const CornuName upper = cornu__hlo2(e, "shift_right_logical", seed,
                                        cornu__hlo_integer(e, word, 32));
    CornuName key[2] = { every(e, seed, grid), every(e, upper, grid) };
    CornuName c[4] = {
        cornu__hlo_iota(e, type, 1),
        cornu__hlo2(e, "add", cornu__hlo_iota(e, type, 0), every(e, position, grid)),
        every(e, iteration, grid),
        cornu__hlo_integer(e, type, call->op.attributes->random.generator),
    };
    philox(e, c, key);
    for (int i = 0; i < 4; i++) c[i] = cornu__hlo_reshape(e, c[i], cornu_shape(rows, quads, 1));
    CornuName bits = cornu__hlo_reshape(e, cornu__hlo_concat(e, c, 4, 2), real.shape);
    bits = cornu__hlo2(e, "shift_right_logical", bits,
                       cornu__hlo_integer(e, cornu__hlo_of(e, bits), 8));
    CornuName y = cornu__hlo2(e, "multiply", cornu__hlo_convert(e, bits, PJRT_F32),
                              cornu__hlo_constant(e, real, 0x1p-24));
    const int64_t starts[2] = { 0, 0 }, sizes[2] = { rows, row };
    if (row < 4 * quads) y = cornu__hlo_slice(e, y, starts, sizes, NULL);
    call->out[0] = cornu__hlo_reshape(e, y, shape);
}
CornuEmit *const cornu__random_uniform_stablehlo = random_uniform;
