/* What layers of images share: calls, random numbers, arguments. */
#include "image_internal.h"

#include <math.h>

const double cornu__bytes[2] = { (double)CORNU_ZERO, 255.0 };

/* ---- Calls ---- */

CornuTensor *cornu__image_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuImageFamily *family = layer->kind->family;
    x = cornu_op_convert(x, layer->compute);
    if (!x || !(call->training || call->augments || family->always)) return x;
    const int rank = cornu_tensor_shape(x).rank;
    x = cornu__as_batch(x);
    CornuTensor *y = x ? family->change(layer, call, cornu_op_convert(x, CORNU_F32)) : NULL;
    return cornu_op_convert(cornu__of_batch(y, rank), layer->compute);
}

/* ---- Random numbers ---- */

CornuDraws cornu__draws(const CornuLayer *layer, const CornuCall *call, CornuTensor *x,
                        int64_t count)
{
    if (!x) return (CornuDraws){ 0 };
    const CornuShape shape = cornu_shape(cornu_tensor_shape(x).extent[0], count);
    return (CornuDraws){ .numbers = cornu_op_random_uniform(shape, call->seed, call->iteration,
                                                            call->position, layer->generator) };
}

/* The last row that a batch can have. */
CornuDraws cornu__shared_draws(const CornuLayer *layer, const CornuCall *call, int64_t count)
{
    CornuTensor *position = cornu_op_constant_like(call->position, (double)UINT32_MAX);
    return (CornuDraws){ .numbers = cornu_op_random_uniform(cornu_shape(1, count), call->seed,
                                                            call->iteration, position,
                                                            layer->generator) };
}

CornuTensor *cornu__draw_many(CornuDraws *draws, int64_t count)
{
    if (!draws->numbers) return NULL;
    const int64_t starts[2] = { 0, draws->next };
    const int64_t sizes[2] = { cornu_tensor_shape(draws->numbers).extent[0], count };
    draws->next += count;
    return cornu_op_slice(draws->numbers, starts, sizes);
}

CornuTensor *cornu__draw(CornuDraws *draws)
{
    CornuTensor *one = cornu__draw_many(draws, 1);
    return one ? cornu_op_reshape(one, cornu_shape(cornu_tensor_shape(one).extent[0], 1, 1, 1))
               : NULL;
}

CornuTensor *cornu__draw_between(CornuDraws *draws, const double range[2])
{
    const double low = cornu__end(range, 0), width = cornu__end(range, 1) - low;
    return cornu_op_shift(cornu_op_scale(cornu__draw(draws), width), low);
}

CornuTensor *cornu__draw_chance(CornuDraws *draws, const double range[2])
{
    CornuTensor *chance = cornu__draw_between(draws, range);
    return cornu__less(cornu__draw(draws), chance);
}

/* sqrt(-2 log(1 - u)) cos(2 pi v).
 * Source: Box and Muller, "A Note on the Generation of Random Normal Deviates", 1958. */
static CornuTensor *normal_of(CornuTensor *u, CornuTensor *v)
{
    u = cornu_op_log(cornu_op_shift(cornu_op_negative(u), 1.0));
    return cornu_op_multiply(cornu_op_sqrt(cornu_op_scale(u, -2.0)),
                             cornu_op_cos(cornu_op_scale(v, 2.0 * acos(-1.0))));
}

CornuTensor *cornu__draw_normal(CornuDraws *draws, CornuShape shape)
{
    int64_t row = 1;
    for (int i = 1; i < shape.rank; i++) row *= shape.extent[i];
    CornuTensor *u = cornu__draw_many(draws, row), *v = cornu__draw_many(draws, row);
    return cornu_op_reshape(normal_of(u, v), shape);
}

/* One of six tries that is accepted, each with a probability above 0.95; of alpha + 1, as smaller
 * ones than 1 would not do, then times u^(1 / alpha).
 * Source: Marsaglia and Tsang, "A Simple Method for Generating Gamma Variables", 2000. */
CornuTensor *cornu__draw_log_gamma(CornuDraws *draws, CornuTensor *alpha)
{
    CornuTensor *d = cornu_op_shift(alpha, 1.0 - 1.0 / 3.0);
    CornuTensor *c = cornu_op_rsqrt(cornu_op_scale(d, 9.0)), *found = NULL;
    for (int try = 0; try < 6; try++) {
        CornuTensor *u = cornu__draw(draws), *v = cornu__draw(draws), *w = cornu__draw(draws);
        CornuTensor *x = normal_of(u, v);
        CornuTensor *root = cornu_op_shift(cornu_op_multiply(x, c), 1.0);
        if (!root) return NULL;
        /* (1 + c x)^3, which is accepted if log w < x^2 / 2 + d (1 - cube + log cube) */
        root = cornu_op_maximum(root, cornu_op_constant_like(root, 1e-6));
        CornuTensor *cube = cornu_op_multiply(root, cornu_op_square(root));
        CornuTensor *log_cube = cornu_op_log(cube);
        CornuTensor *bound = cornu_op_shift(cornu_op_subtract(log_cube, cube), 1.0);
        bound = cornu_op_add(cornu_op_scale(cornu_op_square(x), 0.5), cornu_op_multiply(d, bound));
        CornuTensor *log_w = cornu_op_log(cornu_op_shift(cornu_op_negative(w), 1.0));
        found = found ? cornu_op_select(cornu__less(log_w, bound), log_cube, found) : log_cube;
    }
    CornuTensor *u = cornu_op_log(cornu_op_shift(cornu_op_negative(cornu__draw(draws)), 1.0));
    return cornu_op_add(cornu_op_add(found, cornu_op_log(d)), cornu_op_divide(u, alpha));
}

/* ---- Arguments ---- */

static void mark_zeros(double range[2])
{
    for (int i = 0; i < 2; i++) range[i] = range[i] == 0.0 ? (double)CORNU_ZERO : range[i];
}

/* Sorts the ends, of which CORNU_ZERO is 0. */
static void sort(double range[2])
{
    const double a = cornu__number(range[0], 0.0), b = cornu__number(range[1], 0.0);
    range[0] = a < b ? a : b;
    range[1] = a < b ? b : a;
}

CornuStatus cornu__resolve_value_range(const CornuLayer *layer, double range[2])
{
    if (range[0] == 0.0 && range[1] == 0.0) range[1] = 255.0;
    sort(range);
    if (!(range[0] < range[1]) || !isfinite(range[1] - range[0]))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .value_range is from %g to %g, expected two "
                           "different finite numbers", cornu_layer_name(layer), range[0],
                           range[1]);
    mark_zeros(range);
    return CORNU_OK;
}

CornuStatus cornu__resolve_factor(const CornuLayer *layer, const char *argument, double *most,
                                  double range[2], double usual, double low, double high)
{
    const bool listed = range[0] != 0.0 || range[1] != 0.0;
    if (*most != 0.0 && listed)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .%s is given twice, as a number and as a "
                           "range; expected one", cornu_layer_name(layer), argument);
    if (!listed) {
        range[1] = fabs(cornu__number(*most, usual));
        range[0] = fmax(-range[1], low);
    } else {
        sort(range);
    }
    *most = 0.0;
    if (!(range[0] <= high && range[1] >= low && (listed || range[1] <= high)))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .%s is from %g to %g, expected %g to %g",
                           cornu_layer_name(layer), argument, range[0], range[1], low, high);
    mark_zeros(range);
    return CORNU_OK;
}

/* ---- Helpers ---- */

CornuTensor *cornu__map_range(CornuTensor *x, const double from[2], const double to[2])
{
    const double a = cornu__end(from, 0), b = cornu__end(from, 1);
    const double c = cornu__end(to, 0), d = cornu__end(to, 1);
    if (!x || (a == c && b == d)) return x;
    x = cornu_op_divide(cornu_op_shift(x, -a), cornu_op_constant_like(x, b - a));
    return cornu_op_shift(cornu_op_scale(x, d - c), c);
}

CornuTensor *cornu__clip_to(CornuTensor *x, const double range[2])
{
    return cornu_op_clip(x, cornu__end(range, 0), cornu__end(range, 1));
}

CornuTensor *cornu__less(CornuTensor *x, CornuTensor *y)
{
    return cornu_op_compare(x, CORNU_LESS, y);
}

CornuTensor *cornu__below(CornuTensor *x, double bound)
{
    return x ? cornu_op_compare(x, CORNU_LESS, cornu_op_constant_like(x, bound)) : NULL;
}
