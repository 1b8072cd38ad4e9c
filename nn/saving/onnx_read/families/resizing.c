/* Resize and Upsample: each axis is resampled by a matrix of weights.
 * Source: docs/Operators.md of ONNX, Resize. */
#include "../run_internal.h"

#include "../../../../device/integer_internal.h"

#include <math.h>
#include <string.h>

/* Sizes are numbers of files: they are bounded before memory and time are taken. */
enum { MOST_TAPS = 1024, MOST_PIXELS = 1 << 16, MOST_WEIGHTS = 1 << 25 };

typedef struct {
    const char *mode, *coordinates, *nearest;
    double      a, extrapolation, scale, wide;   /* wide: n times scale, before it is rounded */
    double      begin, end;                      /* of the region of interest */
    bool        antialias, exclude;
    int64_t     in, out;
} Axis;

static double source_of(const Axis *axis, double i)
{
    const char *how = axis->coordinates;
    const double n = (double)axis->in, half = (i + 0.5) / axis->scale - 0.5;
    if (!strcmp(how, "asymmetric")) return i / axis->scale;
    if (!strcmp(how, "align_corners"))
        return axis->out == 1 ? 0.0 : i * (n - 1.0) / (axis->wide - 1.0);
    if (!strcmp(how, "pytorch_half_pixel")) return axis->out == 1 ? 0.0 : half;
    if (!strcmp(how, "half_pixel_symmetric"))
        return n / 2.0 * (1.0 - (double)axis->out / axis->wide) + half;
    if (!strcmp(how, "tf_crop_and_resize")) {
        const double span = (axis->end - axis->begin) * (n - 1.0);
        const double at = axis->out == 1 ? span / 2.0 : i * span / ((double)axis->out - 1.0);
        return at + axis->begin * (n - 1.0);
    }
    return half;
}

static double cubic(double x, double a)
{
    x = fabs(x);
    if (x <= 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
    if (x < 2.0) return ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a;
    return 0.0;
}

/* The weights of the elements from *first on, relative to the one below the source; ratio is what
 * the source is above it, in (0, 1]. Returns their number, 0 if they are too many. */
static int taps_of(const Axis *axis, double ratio, double *weights, int64_t *first)
{
    const bool   nearest = axis->mode[0] == 'n', smooth = axis->mode[0] == 'c';
    const double scale = axis->antialias && axis->scale < 1.0 ? axis->scale : 1.0;
    if (nearest) {
        const char *how = axis->nearest;
        const bool  low = !strcmp(how, "floor") ? ratio < 1.0 : !strcmp(how, "ceil") ? false
                        : !strcmp(how, "round_prefer_ceil") ? ratio < 0.5 : ratio <= 0.5;
        weights[0] = low;
        weights[1] = !low;
        *first = 0;
        return 2;
    }
    const double reach = smooth ? 2.0 : 1.0;
    const double start = floor(-reach / scale) + 1.0;
    if (!(start > -0.5 * MOST_TAPS)) return 0;
    const int count = (int)(2.0 - 2.0 * start);
    double    sum = 0.0;
    *first = (int64_t)start;
    for (int k = 0; k < count; k++) {
        const double x = (start + k - ratio) * scale;
        weights[k] = smooth ? cubic(x, axis->a) : fmax(0.0, 1.0 - fabs(x));
        sum += weights[k];
    }
    for (int k = 0; k < count && scale != 1.0; k++) weights[k] /= sum;
    return count;
}

/* Fills row i of the matrix. */
static CornuStatus fill_row(const Axis *axis, int64_t i, float *row)
{
    double       weights[MOST_TAPS], sum = 0.0;
    int64_t      first;
    const double at = source_of(axis, (double)i), below = ceil(at) - 1.0;
    if (!(fabs(at) < 0x1p31)) return cornu__fail(CORNU_ERR_SHAPE, "a scale of %g", axis->scale);
    if (!strcmp(axis->coordinates, "tf_crop_and_resize") &&
        (at < 0.0 || at > (double)axis->in - 1.0))
        return CORNU_OK;
    const int count = taps_of(axis, at - below, weights, &first);
    if (!count) return cornu__fail(CORNU_ERR_UNSUPPORTED, "a scale of %g", axis->scale);
    for (int k = 0; k < count; k++) {
        const int64_t place = (int64_t)below + first + k;
        if (axis->exclude && (place < 0 || place >= axis->in)) weights[k] = 0.0;
        sum += weights[k];
    }
    for (int k = 0; k < count; k++) {
        int64_t place = (int64_t)below + first + k;
        if (axis->exclude && sum != 0.0) weights[k] /= sum;
        place = place < 0 ? 0 : place >= axis->in ? axis->in - 1 : place;
        row[place] += (float)weights[k];
    }
    return CORNU_OK;
}

/* Whether each element is repeated as often as any other, and nothing else: the matrix of nearest
 * neighbours for whole scales. */
static bool repeats(const float *matrix, int64_t in, int64_t out)
{
    if (out % in) return false;
    for (int64_t i = 0; i < out; i++)
        for (int64_t k = 0; k < in; k++)
            if (matrix[i * in + k] != (k == i / (out / in) ? 1.0F : 0.0F)) return false;
    return true;
}

static CornuTensor *resized(CornuReadRun *run, CornuTensor *x, int i, const Axis *axis)
{
    if (!x) return NULL;
    CornuShape shape = cornu_tensor_shape(x), flat = { 3, { 1, 1, 1 } };
    if (axis->out > MOST_PIXELS || axis->in > MOST_WEIGHTS / larger(axis->out, 1))
        return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "%lld pixels as %lld along an axis, "
                                "expected at most %d and a matrix of at most %d weights",
                                (long long)axis->in, (long long)axis->out, MOST_PIXELS,
                                MOST_WEIGHTS);
    const CornuArray matrix = cornu__host_array(run, cornu_type(CORNU_F32, axis->out, axis->in));
    CornuStatus      status = matrix.data ? CORNU_OK : CORNU_ERR_MEMORY;
    for (int64_t k = 0; k < axis->out && !status; k++)
        status = fill_row(axis, k, (float *)matrix.data + k * axis->in);
    if (status) return cornu__null();
    if (!repeats(matrix.data, axis->in, axis->out))
        return cornu_op_resample(x, cornu__tensor_of(run, matrix), i);
    for (int k = 0; k < shape.rank; k++) flat.extent[k < i ? 0 : k == i ? 1 : 2] *= shape.extent[k];
    shape.extent[i] = axis->out;
    x = cornu_op_reshape(x, cornu_shape(flat.extent[0], flat.extent[1], 1, flat.extent[2]));
    x = cornu_op_broadcast(x, cornu_shape(flat.extent[0], flat.extent[1], axis->out / axis->in,
                                          flat.extent[2]));
    return cornu_op_reshape(x, shape);
}

/* Scales for `count` axes; NULL if there are none. Of Upsample up to opset 8 they are an
 * attribute. */
static CornuStatus read_scales(CornuReadStep *step, int i, int count, double *to,
                               const double **scales)
{
    const CornuReadAttribute *list = cornu__attribute(step, "scales");
    CornuArray                array;
    *scales = list && list->number_count == count ? list->numbers : NULL;
    if (*scales || !cornu__given(step, i)) return CORNU_OK;
    CORNU__TRY(cornu__known(step, i, &array));
    if (cornu_type_count(array.type) != count) return CORNU_OK;
    for (int k = 0; k < count; k++) to[k] = cornu_array_get(array, k);
    *scales = to;
    return CORNU_OK;
}

/* The extents of the result and the scales, from `scales` or `sizes` for the axes. */
static CornuStatus extents_of(CornuReadStep *step, int scales_at, int sizes_at, Axis *axes,
                              const int *chosen, int count)
{
    const double *scales;
    double        numbers[CORNU_MAX_RANK];
    int64_t       sizes[CORNU_MAX_RANK];
    int           given = -1;
    const char   *policy = cornu__word(step, "keep_aspect_ratio_policy", "stretch");
    CORNU__TRY(read_scales(step, scales_at, count, numbers, &scales));
    if (!scales)
        CORNU__TRY(cornu__known_integers(step, sizes_at, sizes, CORNU_MAX_RANK, &given));
    if (!scales && given != count)
        return cornu__fail(CORNU_ERR_FORMAT, "expected scales or sizes for %d axes", count);
    double common = 0.0;
    for (int i = 0; i < count && !scales; i++) {
        const double scale = (double)sizes[i] / (double)axes[chosen[i]].in;
        if (i == 0 || (policy[4] == 'l' ? scale < common : scale > common)) common = scale;
    }
    for (int i = 0; i < count; i++) {
        Axis *axis = &axes[chosen[i]];
        axis->scale = scales ? scales[i] : (double)sizes[i] / (double)axis->in;
        axis->wide = (double)axis->in * axis->scale;
        if (!scales && policy[0] == 'n') {
            axis->scale = common;
            axis->wide = floor((double)axis->in * common + 0.5);
            sizes[i] = (int64_t)axis->wide;
        }
        if (!(axis->scale > 0.0) || !(axis->wide < 0x1p31))
            return cornu__fail(CORNU_ERR_SHAPE, "a scale of %g for %lld elements", axis->scale,
                               (long long)axis->in);
        axis->out = scales ? (int64_t)floor(axis->wide) : sizes[i];
        if (!scales) axis->wide = (double)axis->out;
        if (axis->out < 1) return cornu__fail(CORNU_ERR_SHAPE, "a scale of %g", axis->scale);
    }
    return CORNU_OK;
}

static CornuStatus resize(CornuReadStep *step, int scales_at, int sizes_at, const Axis *usual)
{
    CornuTensor *x = cornu__operand_of(step, 0);
    Axis         axes[CORNU_MAX_RANK];
    int64_t      list[CORNU_MAX_RANK];
    int          chosen[CORNU_MAX_RANK], count;
    const int rank = cornu__rank_of(x);
    CORNU__TRY(cornu__integers(step, "axes", list, CORNU_MAX_RANK, &count));
    for (int i = 0; i < rank; i++) {
        axes[i] = *usual;
        axes[i].in = axes[i].out = cornu__extent_of(x, i);
        axes[i].scale = 1.0;
        axes[i].wide = (double)axes[i].in;
        axes[i].end = 1.0;
        if (count < 0) chosen[i] = i;
    }
    for (int i = 0; i < count; i++) CORNU__TRY(cornu__axis_of(list[i], rank, &chosen[i]));
    if (count < 0) count = rank;
    CORNU__TRY(extents_of(step, scales_at, sizes_at, axes, chosen, count));
    const bool crops = !strcmp(usual->coordinates, "tf_crop_and_resize");
    if (crops) {
        CornuArray roi;
        CORNU__TRY(cornu__known(step, 1, &roi));
        if (cornu_type_count(roi.type) != 2 * count)
            return cornu__fail(CORNU_ERR_FORMAT, "roi has %lld numbers, expected %d",
                               (long long)cornu_type_count(roi.type), 2 * count);
        for (int i = 0; i < count; i++) {
            axes[chosen[i]].begin = cornu_array_get(roi, i);
            axes[chosen[i]].end = cornu_array_get(roi, count + i);
        }
        x = cornu_op_shift(x, -usual->extrapolation);
    }
    for (int i = rank - 1; i >= 0; i--) {   /* lines of the last axis are the dearest */
        const Axis *axis = &axes[i];
        if (axis->in == axis->out && axis->scale == 1.0 &&
            !(crops && (axis->begin != 0.0 || axis->end != 1.0)))
            continue;
        x = resized(step->run, x, i, axis);
    }
    if (crops) x = cornu_op_shift(x, usual->extrapolation);
    return cornu__result(step, 0, x);
}

static CornuStatus read_resize(CornuReadStep *step)
{
    const bool old = step->run->opset < 11;
    const Axis usual = {
        .mode = cornu__word(step, "mode", "nearest"),
        .coordinates = old ? "asymmetric" : cornu__word(step, "coordinate_transformation_mode",
                                                        "half_pixel"),
        .nearest = old ? "floor" : cornu__word(step, "nearest_mode", "round_prefer_floor"),
        .a = cornu__real(step, "cubic_coeff_a", -0.75),
        .extrapolation = cornu__real(step, "extrapolation_value", 0.0),
        .antialias = cornu__whole(step, "antialias", 0),
        .exclude = cornu__whole(step, "exclude_outside", 0),
    };
    return resize(step, old ? 1 : 2, old ? INT32_MAX : 3, &usual);
}

static CornuStatus read_upsample(CornuReadStep *step)
{
    const Axis usual = { .mode = cornu__word(step, "mode", "nearest"), .nearest = "floor",
                         .coordinates = "asymmetric", .a = -0.75 };
    return resize(step, 1, INT32_MAX, &usual);
}

const CornuReadRow cornu__read_resizing[] = {
    { "Resize", read_resize, .operands = 1 }, { "Upsample", read_upsample, .operands = 1 },
    { 0 },
};
