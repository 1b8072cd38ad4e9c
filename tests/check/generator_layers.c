/* Random programs: several ops that layers put together. */
#include "generator_internal.h"

static CornuValue scaled(Generator *g, CornuValue x, double factor)
{
    if (x == CORNU_NO_VALUE) return x;
    const CornuType type = gen_type_of(g, x);
    return gen_emit2(g, CORNU_OP_MULTIPLY, x,
                     gen_fit(g, gen_scalar(g, type.dtype, factor), type));
}

static CornuValue mean(Generator *g, CornuValue x, int64_t axes, bool keep)
{
    if (x == CORNU_NO_VALUE) return x;
    CornuAttributes reduce = { .reduce = { axes, keep, 0 } };
    const int64_t   all = cornu_type_count(gen_type_of(g, x));
    CornuValue      sum = gen_emit(g, CORNU_OP_REDUCE_SUM, &reduce, &x, 1);
    if (sum == CORNU_NO_VALUE) return sum;
    return scaled(g, sum, (double)cornu_type_count(gen_type_of(g, sum)) / (double)all);
}

/* (x - mean) / sqrt(variance + epsilon) over some axes. */
static CornuValue make_normalized(Generator *g)
{
    CornuValue x = gen_any_value(g, CORNU_F32);
    if (x == CORNU_NO_VALUE || gen_type_of(g, x).shape.rank == 0) return CORNU_NO_VALUE;
    const CornuType type = gen_type_of(g, x);
    const int64_t   axes = chance(g, 50) ? INT64_C(1) << (type.shape.rank - 1)
                                         : 1 + draw(g, (INT64_C(1) << type.shape.rank) - 1);
    CornuValue mu = mean(g, x, axes, true);
    if (mu == CORNU_NO_VALUE) return mu;
    CornuValue centred = gen_emit2(g, CORNU_OP_SUBTRACT, x, gen_fit(g, mu, type));
    if (centred == CORNU_NO_VALUE) return centred;
    CornuValue variance =
        mean(g, gen_emit2(g, CORNU_OP_MULTIPLY, centred, centred), axes, true);
    if (variance == CORNU_NO_VALUE) return variance;
    const CornuType row = gen_type_of(g, variance);
    variance = gen_emit2(g, CORNU_OP_ADD, variance,
                         gen_fit(g, gen_scalar(g, CORNU_F32, 1e-3), row));
    CornuValue inverse = gen_emit1(g, CORNU_OP_RSQRT, variance);
    return inverse == CORNU_NO_VALUE
               ? inverse
               : gen_emit2(g, CORNU_OP_MULTIPLY, centred, gen_fit(g, inverse, type));
}

static CornuValue make_mean(Generator *g)
{
    CornuValue x = gen_any_float(g);
    if (x == CORNU_NO_VALUE) return x;
    return mean(g, x, draw(g, INT64_C(1) << gen_type_of(g, x).shape.rank), chance(g, 30));
}

/* A product or convolution, a bias or two, an activation, perhaps a pool. */
static CornuValue make_layer(Generator *g)
{
    static const CornuOpId activations[] = { CORNU_OP_RELU, CORNU_OP_TANH, CORNU_OP_SIGMOID,
                                             CORNU_OP_ELU, CORNU_OP_SOFTPLUS,
                                             CORNU_OP_BOUNDED_RELU };
    const bool image = chance(g, 50);
    CornuValue             y =
        image ? gen_make_conv2d(g, CORNU_OP_CONV2D) : gen_make_matmul(g, CORNU_OP_MATMUL);
    for (int i = (int)draw(g, 3); i > 0 && y != CORNU_NO_VALUE; i--) {
        const CornuType type = gen_type_of(g, y);
        const CornuType bias = cornu_type(type.dtype, type.shape.extent[type.shape.rank - 1]);
        y = gen_emit2(g, CORNU_OP_ADD, y, gen_fit(g, gen_want(g, bias, ANY), type));
    }
    const CornuAttributes alpha = { .alpha = { chance(g, 75) ? 1.0 : -0.5 } };
    const CornuAttributes bound = { .bound = { 0.5 } };
    if (y != CORNU_NO_VALUE && chance(g, 70))
    {
        const CornuOpId id = activations[draw(g, 6)];
        y = gen_emit(g, id, id == CORNU_OP_ELU ? &alpha
                          : id == CORNU_OP_BOUNDED_RELU ? &bound : NULL, &y, 1);
    }
    if (y != CORNU_NO_VALUE && image && chance(g, 50)) {
        CornuAttributes pool = { .window = { .size = { 2, 2 }, .strides = { 2, 2 } } };
        y = gen_emit(g, chance(g, 70) ? CORNU_OP_MAX_POOL2D : CORNU_OP_AVERAGE_POOL2D,
                     &pool, &y, 1);
    }
    return y;
}

/* A convolution with as many channels and filters as vectors have elements, and its pool. */
CornuValue gen_make_wide_layer(Generator *g)
{
    const CornuDtype dtype = chance(g, 60) ? CORNU_F32 : CORNU_BF16;
    const CornuType  image = cornu_type(dtype, 1 + draw(g, 3), 4 + draw(g, 4), 4 + draw(g, 4), 16);
    const CornuType  filter = cornu_type(dtype, 3, 3, 16, 16 + 16 * draw(g, 2));
    CornuAttributes  conv = { .conv2d = { .strides = { 1, 1 },
                                          .dtype = chance(g, 80) ? dtype : CORNU_F32 } };
    CornuAttributes  pool = { .window = { .size = { 2, 2 }, .strides = { 2, 2 } } };
    if (chance(g, 50)) conv.conv2d.low[0] = conv.conv2d.low[1] = 1;
    if (chance(g, 50)) conv.conv2d.high[0] = conv.conv2d.high[1] = 1;
    CornuValue y = gen_emit(
        g, CORNU_OP_CONV2D, &conv,
        (CornuValue[]){ gen_want(g, image, ANY), gen_want(g, filter, SMALL) }, 2);
    if (y == CORNU_NO_VALUE) return y;
    if (chance(g, 60)) {
        CornuValue bias =
            gen_want(g, cornu_type(gen_type_of(g, y).dtype, filter.shape.extent[3]), ANY);
        y = gen_emit2(g, CORNU_OP_ADD, y, gen_fit(g, bias, gen_type_of(g, y)));
    }
    if (y != CORNU_NO_VALUE && chance(g, 60)) y = gen_emit1(g, CORNU_OP_RELU, y);
    return y == CORNU_NO_VALUE ? y : gen_emit(g, CORNU_OP_MAX_POOL2D, &pool, &y, 1);
}

/* Rows of a small table, a product, a bias: what a step on characters does. */
CornuValue gen_make_lookup(Generator *g)
{
    const int64_t    rows = 2 + draw(g, 6), columns = 1 + draw(g, 6), units = 1 + draw(g, 9);
    const CornuDtype dtype = chance(g, 75) ? CORNU_F32 : CORNU_BF16;
    const CornuShape lookup = cornu_shape(1 + draw(g, 4), 1 + draw(g, 9));
    CornuValue table = gen_fresh_for(g, cornu_type(dtype, rows, columns), ANY, 0, false);
    CornuValue w = gen_fresh_for(g, cornu_type(dtype, columns, units), SMALL, 0, false);
    CornuValue bias = gen_fresh_for(g, cornu_type(CORNU_F32, units), ANY, 0, false);
    CornuValue indices = gen_fresh_for(g, cornu_type_from(CORNU_I32, lookup), LABELS,
                                       rows, g->c->shards > 1);
    CornuValue x = gen_emit2(g, CORNU_OP_GATHER, table, indices);
    if (x == CORNU_NO_VALUE) return x;
    x = gen_shaped(g, CORNU_OP_RESHAPE, x,
                   cornu_shape(lookup.extent[0] * lookup.extent[1], columns));
    const CornuAttributes product = { .matmul = { .dtype = CORNU_F32 } };
    CornuValue y = gen_emit(g, CORNU_OP_MATMUL, &product, (CornuValue[]){ x, w }, 2);
    if (y == CORNU_NO_VALUE || chance(g, 30)) return y;
    return gen_emit2(g, CORNU_OP_ADD, y, gen_fit(g, bias, gen_type_of(g, y)));
}

/* The gradient of a lookup on each shard, ops linear in it, and sums of those over shards. */
static CornuValue make_lookup_gradient(Generator *g)
{
    const int64_t rows = 8 * (1 + draw(g, 3)), units = 1 + draw(g, 9), count = 1 + draw(g, 9);
    const bool    varies = g->c->shards > 1;
    CornuAttributes grad = { .gather_grad = { .rows = rows, .dtype = CORNU_F32 } };
    CornuAttributes sum = { .reduce = { 1 + draw(g, 3), draw(g, 2), 0 } };
    CornuAttributes left = { .matmul = { .dtype = CORNU_F32, .transpose_b = draw(g, 2) } };
    CornuAttributes right = { .matmul = { .dtype = CORNU_F32, .transpose_a = 1 } };
    CornuAttributes all = { .shards = { .size = g->c->shards } };
    CornuValue      d_y =
        gen_fresh_for(g, cornu_type(CORNU_F32, count, units), ANY, 0, varies);
    CornuValue indices =
        gen_fresh_for(g, cornu_type(CORNU_I32, count), LABELS, rows, varies);
    CornuValue d_table =
        gen_emit(g, CORNU_OP_GATHER_GRAD, &grad, (CornuValue[]){ d_y, indices }, 2);
    for (int i = 1 + (int)draw(g, 3); i > 0 && d_table != CORNU_NO_VALUE; i--) {
        CornuValue made = CORNU_NO_VALUE;
        const int  kind = (int)draw(g, 3);
        if (kind == 0) made = gen_emit(g, CORNU_OP_REDUCE_SUM, &sum, &d_table, 1);
        if (kind == 1) {
            CornuType w = cornu_type(CORNU_F32, units, 3);
            if (left.matmul.transpose_b) w = cornu_type(CORNU_F32, 3, units);
            made = gen_emit(
                g, CORNU_OP_MATMUL, &left,
                (CornuValue[]){ d_table, gen_fresh_for(g, w, SMALL, 0, false) }, 2);
        }
        if (kind == 2)
            made =
                gen_emit(g, CORNU_OP_MATMUL, &right,
                         (CornuValue[]){ gen_fresh_for(g, cornu_type(CORNU_F32, rows, 2),
                                                       SMALL, 0, false),
                                         d_table },
                         2);
        if (made != CORNU_NO_VALUE) gen_emit(g, CORNU_OP_ALL_REDUCE, &all, &made, 1);
    }
    return d_table;
}

bool gen_layer(Generator *g, int64_t kind)
{
    if (kind < 8) make_normalized(g);
    else if (kind < 14) make_mean(g);
    else if (kind < 22) make_layer(g);
    else if (kind < 24) gen_make_lookup(g);
    else if (kind < 25) make_lookup_gradient(g);
    else if (kind < 28) gen_make_wide_layer(g);
    else return false;
    return true;
}
