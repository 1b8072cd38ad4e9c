/* The pixels of images at other places. */
#include "sampling_internal.h"

/* Maps integers i, in f32, into [0, n) by the fill mode; *inside tells which were there already,
 * which is all that "constant" needs. */
static CornuTensor *folded(CornuTensor *i, int64_t n, CornuFillMode mode, CornuTensor **inside)
{
    if (!i) return *inside = NULL;
    const double period = (double)(mode == CORNU_FILL_REFLECT ? 2 * n : n);
    CornuTensor *clamped = cornu_op_clip(i, 0.0, (double)(n - 1));
    *inside = cornu_op_compare(i, CORNU_EQUAL, clamped);
    if (mode == CORNU_FILL_CONSTANT || mode == CORNU_FILL_NEAREST) return clamped;
    /* Half a pixel keeps i / period away from integers despite rounding. */
    CornuTensor *times = cornu_op_floor(cornu_op_scale(cornu_op_shift(i, 0.5), 1.0 / period));
    CornuTensor *rest = cornu_op_subtract(i, cornu_op_scale(times, period));
    if (mode == CORNU_FILL_WRAP) return rest;
    return cornu_op_minimum(rest, cornu_op_shift(cornu_op_negative(rest), period - 1.0));
}

/* The pixels of x (B, H, W, C) at integer rows and columns (B, H, W), given in f32, as f32. */
CornuTensor *cornu__pixels(CornuTensor *x, CornuTensor *row, CornuTensor *column,
                           const CornuSampling *sampling)
{
    if (!x || !row || !column) return NULL;
    const CornuShape s = cornu_tensor_shape(x), grid = cornu_tensor_shape(row);
    const int64_t    B = s.extent[0], H = s.extent[1], W = s.extent[2], C = s.extent[3];
    CornuTensor     *row_inside, *column_inside;
    row = cornu_op_convert(folded(row, H, sampling->fill_mode, &row_inside), CORNU_I64);
    column = cornu_op_convert(folded(column, W, sampling->fill_mode, &column_inside), CORNU_I64);
    if (!row || !column) return NULL;
    CornuTensor *image = cornu_op_iota(cornu_tensor_graph(x), cornu_type_from(CORNU_I64, grid), 0);
    CornuTensor *at = cornu_op_multiply(image, cornu_op_constant_like(image, (double)H));
    at = cornu_op_add(at, row);
    at = cornu_op_add(cornu_op_multiply(at, cornu_op_constant_like(at, (double)W)), column);
    CornuTensor *found = cornu_op_gather(cornu_op_reshape(x, cornu_shape(B * H * W, C)), at);
    found = cornu_op_convert(found, CORNU_F32);
    if (sampling->fill_mode != CORNU_FILL_CONSTANT) return found;
    const CornuShape each = cornu_shape(B, grid.extent[1], grid.extent[2], 1);
    CornuTensor     *fill = cornu_op_constant_like(found, sampling->fill_value);
    found = cornu_op_select(cornu_op_reshape(row_inside, each), found, fill);
    return cornu_op_select(cornu_op_reshape(column_inside, each), found, fill);
}

/* a + (b - a) part */
static CornuTensor *mixed(CornuTensor *a, CornuTensor *b, CornuTensor *part)
{
    return cornu_op_add(a, cornu_op_multiply(cornu_op_subtract(b, a), part));
}

/* Interpolates x (B, H, W, C) at rows and columns (B, H, W) in f32. As in Keras, pixels outside are
 * filled first and then interpolated; halves are rounded away from zero.
 * Source: jax.scipy.ndimage.map_coordinates. */
CornuTensor *cornu__sample(CornuTensor *x, CornuTensor *row, CornuTensor *column,
                           const CornuSampling *sampling)
{
    if (!x || !row || !column) return NULL;
    const CornuType type = cornu_tensor_type(x);
    CornuTensor    *at[2] = { row, column }, *part[2], *next[2];
    for (int i = 0; i < 2; i++) {
        CornuTensor *where = at[i];
        if (sampling->interpolation == CORNU_NEAREST) {
            CornuTensor *size = cornu_op_floor(cornu_op_shift(cornu_op_absolute(where), 0.5));
            at[i] = cornu_op_multiply(cornu_op_sign(where), size);
            continue;
        }
        at[i] = cornu_op_floor(where);
        next[i] = cornu_op_shift(at[i], 1.0);
        part[i] = cornu_op_reshape(cornu_op_subtract(where, at[i]),
                                   cornu_shape(type.shape.extent[0], type.shape.extent[1],
                                               type.shape.extent[2], 1));
    }
    CornuTensor *y = cornu__pixels(x, at[0], at[1], sampling);
    if (sampling->interpolation == CORNU_BILINEAR) {
        y = mixed(y, cornu__pixels(x, at[0], next[1], sampling), part[1]);
        CornuTensor *below = mixed(cornu__pixels(x, next[0], at[1], sampling),
                                   cornu__pixels(x, next[0], next[1], sampling), part[1]);
        y = mixed(y, below, part[0]);
    }
    return cornu_op_convert(y, type.dtype);
}

/* The index of each row or column, (B, H, W) in f32. */
CornuTensor *cornu__counted(CornuTensor *x, int axis)
{
    const CornuShape s = cornu_tensor_shape(x);
    return cornu_op_iota(cornu_tensor_graph(x),
                         cornu_type(CORNU_F32, s.extent[0], s.extent[1], s.extent[2]), axis);
}

/* a x + b y + c */
static CornuTensor *linear(CornuTensor *a, CornuTensor *x, CornuTensor *b, CornuTensor *y,
                           CornuTensor *c)
{
    return cornu_op_add(cornu_op_add(cornu_op_multiply(x, a), cornu_op_multiply(y, b)), c);
}

CornuTensor *cornu__project(CornuTensor *x, CornuTensor *const a[3], CornuTensor *const b[3],
                            CornuTensor *const *c, const CornuSampling *sampling)
{
    if (!x) return NULL;
    CornuTensor *right = cornu__counted(x, 2), *down = cornu__counted(x, 1);
    CornuTensor *column = linear(a[0], right, a[1], down, a[2]);
    CornuTensor *row = linear(b[0], right, b[1], down, b[2]);
    if (c && right) {
        CornuTensor *k = linear(c[0], right, c[1], down, cornu_op_constant_like(c[0], 1.0));
        column = cornu_op_divide(column, k);
        row = cornu_op_divide(row, k);
    }
    return cornu__sample(x, row, column, sampling);
}

CornuStatus cornu__resolve_sampling(const CornuLayer *layer, CornuFillMode fill_mode,
                                    CornuInterpolation *interpolation, double *fill_value)
{
    const char *name = cornu_layer_name(layer);
    *fill_value = cornu__number(*fill_value, 0.0);
    if (!cornu_fill_mode_name(fill_mode))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .fill_mode is %d, expected 0 to 3", name,
                           (int)fill_mode);
    return cornu__check_interpolation(name, interpolation, CORNU_BILINEAR, CORNU_BILINEAR);
}
