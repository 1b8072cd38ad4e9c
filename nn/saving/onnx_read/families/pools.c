/* Pools: over two axes by Cornu's ops, otherwise one position of the window after another. */
#include "window_internal.h"

/* x with its padding. */
static CornuTensor *padded(CornuTensor *x, const CornuReadWindow *window, bool extra, double value)
{
    int64_t low[CORNU_MAX_RANK] = { 0 }, high[CORNU_MAX_RANK] = { 0 };
    for (int i = 0; i < window->axes; i++) {
        low[i + 2] = window->low[i];
        high[i + 2] = window->high[i] + (extra ? window->extra[i] : 0);
    }
    return cornu_op_pad(x, low, high, value);
}

static CornuTensor *only_extra(CornuTensor *x, const CornuReadWindow *window)
{
    CornuReadWindow rest = *window;
    for (int i = 0; i < window->axes; i++) rest.low[i] = rest.high[i] = 0;
    return padded(x, &rest, true, 0.0);
}

/* The pools of Cornu: two axes, no dilation, padding less than the window. */
static bool fits_op(CornuTensor *x, const CornuReadWindow *window)
{
    bool fits = window->axes == 2 && cornu_dtype_is_float(cornu__dtype_of(x)) &&
                cornu__window_size(window) <= 255;
    for (int i = 0; i < window->axes && fits; i++)
        fits = window->dilation[i] == 1 && window->low[i] >= 0 && window->high[i] >= 0 &&
               window->low[i] < window->kernel[i] &&
               window->high[i] + window->extra[i] < window->kernel[i];
    return fits;
}

static CornuWindow op_window(const CornuReadWindow *window, bool pads)
{
    CornuWindow to = { .size = { 0 } };
    for (int i = 0; i < 2; i++) {
        to.size[i] = window->kernel[i];
        to.strides[i] = window->strides[i];
        to.low[i] = pads ? window->low[i] : 0;
        to.high[i] = (pads ? window->high[i] : 0) + window->extra[i];
    }
    return to;
}

static CornuStatus too_large(const CornuReadWindow *window)
{
    enum { MOST = 4096 };
    if (cornu__window_size(window) <= MOST) return CORNU_OK;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "a window of %lld positions, expected at most %d",
                       (long long)cornu__window_size(window), MOST);
}

/* The largest of each window and, if `at` is not NULL, its place among the elements of x. */
static CornuTensor *largest(CornuReadStep *step, CornuTensor *x, const CornuReadWindow *window,
                            CornuTensor **at)
{
    const CornuDtype dtype = cornu__dtype_of(x);
    if (!cornu_dtype_is_float(dtype)) x = cornu_op_convert(x, CORNU_F32);
    CornuTensor *wide = padded(x, window, true, -1.0 / 0.0), *most = NULL, *places = NULL;
    if (at) {
        const CornuShape shape = cornu_tensor_shape(x);
        const bool       columns = cornu__whole(step, "storage_order", 0);
        CornuTensor     *sum = NULL;
        int64_t          stride = 1;
        for (int n = 0; n < shape.rank; n++) {
            /* Row-major from the last axis on; with storage_order the spatial axes from the
             * first. */
            const int axes = window->axes;
            const int axis = n >= axes ? shape.rank - 1 - n : columns ? 2 + n
                                                                      : shape.rank - 1 - n;
            CornuTensor *i = cornu__count_along(step->run->graph, CORNU_I64, shape.rank, axis,
                                                shape.extent[axis]);
            i = cornu_op_multiply(i, cornu_op_constant_like(i, (double)stride));
            sum = sum ? cornu_op_add(sum, i) : i;
            stride *= shape.extent[axis];
        }
        places = padded(sum, window, true, 0.0);
    }
    for (int64_t i = 0; i < cornu__window_size(window); i++) {
        CornuTensor *slice = cornu__window_slice(wide, window, i);
        CornuTensor *place = at ? cornu__window_slice(places, window, i) : NULL;
        if (at) {
            CornuTensor *more = most ? cornu_op_compare(slice, CORNU_GREATER, most) : NULL;
            *at = most ? cornu_op_select(more, place, *at) : place;
        }
        most = most ? cornu_op_maximum(most, slice) : slice;
    }
    return cornu_op_convert(most, dtype);
}

static CornuStatus read_max_pool(CornuReadStep *step)
{
    CornuTensor    *x = cornu__operand_of(step, 0), *at = NULL;
    CornuReadWindow window;
    CORNU__TRY(cornu__read_window(step, cornu_tensor_shape(x), NULL, &window));
    if (fits_op(x, &window) && !cornu__wanted(step, 1)) {
        const CornuWindow pool = op_window(&window, true);
        x = cornu_op_max_pool2d(cornu__read_channels_last(x), &pool);
        return cornu__result(step, 0, cornu__read_channels_first(x));
    }
    CORNU__TRY(too_large(&window));
    CORNU__TRY(cornu__result(step, 0, largest(step, x, &window,
                                              cornu__wanted(step, 1) ? &at : NULL)));
    return cornu__wanted(step, 1) ? cornu__result(step, 1, at) : CORNU_OK;
}

/* The sum over each window of x with its padding. */
static CornuTensor *sums(CornuTensor *wide, const CornuReadWindow *window)
{
    CornuTensor *sum = NULL;
    for (int64_t i = 0; i < cornu__window_size(window); i++) {
        CornuTensor *slice = cornu__window_slice(wide, window, i);
        sum = sum ? cornu_op_add(sum, slice) : slice;
    }
    return sum;
}

static CornuStatus read_average_pool(CornuReadStep *step)
{
    CornuTensor    *x = cornu__operand_of(step, 0);
    CornuReadWindow window;
    CORNU__TRY(cornu__read_window(step, cornu_tensor_shape(x), NULL, &window));
    const bool pads = cornu__whole(step, "count_include_pad", 0);
    bool none = true;
    for (int i = 0; i < window.axes; i++) none &= !window.low[i] && !window.high[i];
    if (fits_op(x, &window)) {
        const CornuWindow pool = op_window(&window, !pads || none);
        if (pads && !none) x = padded(x, &window, false, 0.0);
        x = cornu_op_average_pool2d(cornu__read_channels_last(x), &pool);
        return cornu__result(step, 0, cornu__read_channels_first(x));
    }
    CORNU__TRY(too_large(&window));
    /* How many elements each window has: the same sums over ones. */
    CornuType ones = cornu_tensor_type(x);
    ones.shape.extent[0] = ones.shape.extent[1] = 1;
    CornuTensor *counts = padded(cornu_op_constant(step->run->graph, ones, 1.0), &window, false,
                                 pads ? 1.0 : 0.0);
    counts = sums(only_extra(counts, &window), &window);
    return cornu__result(step, 0, cornu_op_divide(sums(padded(x, &window, true, 0.0), &window),
                                                  counts));
}

static CornuTensor *power(CornuTensor *x, double p)
{
    if (p == 1.0 || !x) return x;
    if (p == 2.0) return cornu_op_multiply(x, x);
    if (p == 0.5) return cornu_op_sqrt(x);
    return cornu_op_power(x, cornu_op_constant_like(x, p));
}

static CornuStatus read_lp_pool(CornuReadStep *step)
{
    CornuTensor    *x = cornu__operand_of(step, 0);
    CornuReadWindow window;
    CORNU__TRY(cornu__read_window(step, cornu_tensor_shape(x), NULL, &window));
    CORNU__TRY(too_large(&window));
    const double p = (double)cornu__whole(step, "p", 2);
    x = power(cornu_op_absolute(padded(x, &window, true, 0.0)), p);
    return cornu__result(step, 0, power(sums(x, &window), 1.0 / p));
}

/* ---- Over the whole image ---- */

static CornuTensor *root_of_powers(CornuTensor *x, int64_t axes, double p)
{
    x = cornu_op_reduce_sum(power(cornu_op_absolute(x), p), axes, true);
    return power(x, 1.0 / p);
}

static CornuStatus global(CornuReadStep *step)
{
    CornuTensor  *x = cornu__operand_of(step, 0);
    const int64_t axes = ((INT64_C(1) << cornu__rank_of(x)) - 1) & ~INT64_C(3);
    const double  p = (double)cornu__whole(step, "p", 2);
    if (axes == 0) return cornu__result(step, 0, x);
    return cornu__result(step, 0, step->row->along ? step->row->along(x, axes, true)
                                                   : root_of_powers(x, axes, p));
}

const CornuReadRow cornu__read_pools[] = {
    { "AveragePool", read_average_pool, .operands = 1 },
    { "GlobalAveragePool", global, 1, .along = cornu_op_reduce_mean },
    { "GlobalLpPool", global, .operands = 1 },
    { "GlobalMaxPool", global, 1, .along = cornu_op_reduce_max },
    { "LpPool", read_lp_pool, .operands = 1 }, { "MaxPool", read_max_pool, .operands = 1 },
    { 0 },
};
