/* Normalization. */
#include "rules_internal.h"

#include <math.h>

#include "../../../device/memory_internal.h"

/* ---- By the moving statistics of batches ---- */

/* Weights in Keras' order: gamma and beta if the layer has them, then the statistics. */
static CornuStatus batch_normalization(const CornuOnnxCall *call)
{
    CornuOnnx        *to = call->to;
    const CornuLayer *layer = call->layer;
    const int         rank = call->shapes[0].rank;
    const int64_t     axis = whole(layer, "axis"), at = axis < 0 ? axis + rank : axis;
    const CornuShape  channels = cornu_shape(call->shapes[0].extent[at]);
    const double      epsilon = number(layer, "epsilon");
    int               next = 0;
    int64_t           order[CORNU_MAX_RANK] = { 0, at }, back[CORNU_MAX_RANK] = { 0 };
    for (int i = 1, k = 2; i < rank; i++)
        if (i != at) order[k++] = i;
    for (int i = 0; i < rank; i++) back[order[i]] = i;
    const int x = cornu__onnx_transpose(to, call->in[0], order, rank);
    const int gamma = given(layer, "scale") ? cornu__onnx_weight(to, layer, next++)
                                            : cornu__onnx_filled(to, channels, 1.0f);
    const int beta = given(layer, "center") ? cornu__onnx_weight(to, layer, next++)
                                            : cornu__onnx_filled(to, channels, 0.0f);
    const int in[] = { x, gamma, beta, cornu__onnx_weight(to, layer, next),
                       cornu__onnx_weight(to, layer, next + 1) };
    const int y = CORNU__ONNX_NODE(to, "BatchNormalization", in,
                                   { .name = "epsilon", .numbers = &epsilon });
    *call->out = cornu__onnx_transpose(to, y, back, rank);
    return CORNU_OK;
}

/* ---- By the statistics of each row ---- */

/* sqrt(mean of x^2 over the axes + epsilon) */
static int root_of(CornuOnnx *to, int x, int rank, int64_t axes, double epsilon)
{
    const int mean = cornu__onnx_reduce(to, "ReduceMean", two(to, "Mul", x, x), rank, axes, true);
    return one(to, "Sqrt", shifted(to, mean, epsilon));
}

static int centred(CornuOnnx *to, int x, int rank, int64_t axes)
{
    return two(to, "Sub", x, cornu__onnx_reduce(to, "ReduceMean", x, rank, axes, true));
}

/* Multiplies by gamma and adds beta, if the layer has them, both in the shape `kept`. */
static int scale_and_center(const CornuOnnxCall *call, int y, CornuShape kept)
{
    int next = 0;
    const bool *rms = cornu__layer_argument(call->layer, "rms_scaling");
    if (given(call->layer, "scale") || (rms && *rms))
        y = two(call->to, "Mul", y,
                cornu__onnx_weight_as(call->to, call->layer, next++, NULL, kept));
    if (given(call->layer, "center"))
        y = two(call->to, "Add", y,
                cornu__onnx_weight_as(call->to, call->layer, next, NULL, kept));
    return y;
}

/* ONNX has an operator for the last axes. */
static int normalize_last(const CornuOnnxCall *call, int first, CornuShape kept)
{
    CornuOnnx        *to = call->to;
    const CornuLayer *layer = call->layer;
    const bool        has_scale = given(layer, "scale");
    const double      epsilon = number(layer, "epsilon");
    const int         in[] = {
        call->in[0],
        has_scale ? cornu__onnx_weight(to, layer, 0) : cornu__onnx_filled(to, kept, 1.0f),
        given(layer, "center") ? cornu__onnx_weight(to, layer, has_scale) : CORNU_ONNX_NONE,
    };
    const CornuOnnxAttribute attributes[] = { { .name = "axis", .whole = first },
                                              { .name = "epsilon", .numbers = &epsilon } };
    /* An absent bias is not even named: onnxruntime 1.32 reads it. */
    return cornu__onnx_node(to, "LayerNormalization", in, in[2] ? 3 : 2, attributes, 2, 1);
}

/* The first of the axes if they are the last ones of the tensor; else 0. */
static int first_of_last(int64_t axes, int rank)
{
    for (int first = 1; first < rank; first++)
        if (axes == (INT64_C(1) << rank) - (INT64_C(1) << first)) return first;
    return 0;
}

static CornuStatus layer_normalization(const CornuOnnxCall *call)
{
    CornuOnnx *to = call->to;
    const int  x = call->in[0], rank = call->shapes[0].rank;
    const bool rms = flag(call->layer, "rms_scaling");
    int64_t    axes;
    CORNU__TRY(cornu__axis_bits(cornu__layer_argument(call->layer, "axis"), call->shapes[0],
                                &axes));
    const int first = first_of_last(axes, rank);
    if (first && !rms && to->opset >= 17) {
        *call->out = normalize_last(call, first, cornu__along(call->shapes[0], axes, false));
        return CORNU_OK;
    }
    const int centre = centred(to, x, rank, axes);
    const int y = two(to, "Div", rms ? x : centre,
                      root_of(to, centre, rank, axes, number(call->layer, "epsilon")));
    *call->out = scale_and_center(call, y, cornu__along(call->shapes[0], axes, true));
    return CORNU_OK;
}

static CornuStatus rms_normalization(const CornuOnnxCall *call)
{
    CornuOnnx *to = call->to;
    const int  x = call->in[0], rank = call->shapes[0].rank;
    int64_t    axes;
    CORNU__TRY(cornu__axis_bits(cornu__layer_argument(call->layer, "axis"), call->shapes[0],
                                &axes));
    const CornuShape kept = cornu__along(call->shapes[0], axes, true);
    const int y = two(to, "Div", x, root_of(to, x, rank, axes, number(call->layer, "epsilon")));
    *call->out = two(to, "Mul", y, cornu__onnx_weight_as(to, call->layer, 0, NULL, kept));
    return CORNU_OK;
}

static CornuStatus unit_normalization(const CornuOnnxCall *call)
{
    int64_t axes;
    CORNU__TRY(cornu__axis_bits(cornu__layer_argument(call->layer, "axis"), call->shapes[0],
                                &axes));
    *call->out = cornu__onnx_unit(call->to, call->in[0], call->shapes[0].rank, axes);
    return CORNU_OK;
}

/* Splits the axis of channels in two: groups, and the channels of a group. */
static CornuStatus group_normalization(const CornuOnnxCall *call)
{
    CornuOnnx       *to = call->to;
    const CornuShape shape = call->shapes[0];
    const int64_t    given_axis = whole(call->layer, "axis"), groups = whole(call->layer, "groups");
    const int        axis = (int)(given_axis < 0 ? given_axis + shape.rank : given_axis);
    CornuShape       split = { .rank = shape.rank + 1 };
    for (int i = 0; i < shape.rank; i++) split.extent[i + (i > axis)] = shape.extent[i];
    split.extent[axis] = groups > 0 ? groups : shape.extent[axis];
    split.extent[axis + 1] = shape.extent[axis] / split.extent[axis];
    const int64_t in_groups = INT64_C(1) << axis, channels = in_groups << 1;
    const int64_t axes = ((INT64_C(1) << split.rank) - 1) & ~in_groups & ~INT64_C(1);
    const int x = centred(to, cornu__onnx_reshape(to, call->in[0], split), split.rank, axes);
    const int y = two(to, "Div", x,
                      root_of(to, x, split.rank, axes, number(call->layer, "epsilon")));
    const CornuShape kept = cornu__along(split, in_groups | channels, true);
    *call->out = cornu__onnx_reshape(to, scale_and_center(call, y, kept), shape);
    return CORNU_OK;
}

/* ---- By the statistics of a data set ---- */

static float deviation_of(double variance) { return (float)fmax(sqrt(variance), 1e-7); }

/* Weight 1 as standard deviations of this shape. */
static CornuStatus deviations(const CornuOnnxCall *call, CornuShape shape, int *deviation)
{
    const float   *variances = cornu__onnx_values(call->to, call->layer, 1);
    const int64_t  count = cornu_shape_count(shape);
    int           *place = cornu__onnx_place(call->to, call->layer, 1);
    float         *values = cornu__allocate((size_t)count, sizeof *values);
    if (!values) return CORNU_ERR_MEMORY;
    for (int64_t i = 0; i < count; i++) values[i] = deviation_of((double)variances[i]);
    if (!*place)
        *place = cornu__onnx_constant(
            call->to, cornu_array_from(values, cornu_type_from(CORNU_F32, shape)));
    *deviation = *place;
    cornu__release(values);
    return CORNU_OK;
}

/* Given variances as standard deviations of this shape. */
static CornuStatus given_deviations(CornuOnnx *to, const CornuNumbers *variances, CornuShape shape,
                                    int *deviation)
{
    const int64_t count = cornu_shape_count(shape);
    double       *values = cornu__allocate((size_t)count, sizeof *values);
    if (!values) return CORNU_ERR_MEMORY;
    for (int64_t i = 0; i < count; i++) values[i] = (double)deviation_of(variances->values[i]);
    *deviation = cornu__onnx_array(to, &(CornuNumbers){ values, shape }, shape);
    cornu__release(values);
    return CORNU_OK;
}

/* Statistics given as arguments are the same everywhere; CORNU_ZERO as the axis means no axis. */
static CornuStatus normalization(const CornuOnnxCall *call)
{
    CornuOnnx        *to = call->to;
    const CornuLayer *layer = call->layer;
    const int64_t    *axis = cornu__layer_argument(layer, "axis");
    const bool        given = *(const double *)cornu__layer_argument(layer, "variance") != 0.0;
    int64_t           axes = 0;
    int               mean, deviation;
    if (*axis != CORNU_ZERO) CORNU__TRY(cornu__axis_bits(axis, call->shapes[0], &axes));
    const CornuShape kept = cornu__along(call->shapes[0], axes, true);
    const CornuNumbers *means = cornu__layer_numbers(layer, "mean");
    CornuShape          spread;
    if (means->values) {
        CORNU__TRY(cornu__spread_numbers(means, call->shapes[0], axes, &spread));
        mean = cornu__onnx_array(to, means, spread);
        CORNU__TRY(given_deviations(to, cornu__layer_numbers(layer, "variance"), spread,
                                    &deviation));
    } else if (given) {
        mean = cornu__onnx_scalar(to, number(layer, "mean"));
        deviation = cornu__onnx_scalar(to, (double)deviation_of(number(layer, "variance")));
    } else {
        mean = cornu__onnx_weight_as(to, layer, 0, NULL, kept);
        CORNU__TRY(deviations(call, kept, &deviation));
    }
    *call->out = flag(layer, "invert")
        ? two(to, "Add", two(to, "Mul", call->in[0], deviation), mean)
        : two(to, "Div", two(to, "Sub", call->in[0], mean), deviation);
    return CORNU_OK;
}

static CornuStatus layer_scale(const CornuOnnxCall *call)
{
    *call->out = two(call->to, "Mul", call->in[0], cornu__onnx_weight(call->to, call->layer, 0));
    return CORNU_OK;
}

const CornuOnnxRow cornu__onnx_norms[] = {
    { "BatchNormalization", batch_normalization },
    { "GroupNormalization", group_normalization },
    { "LayerNormalization", layer_normalization },
    { "LayerScale", layer_scale },
    { "Normalization", normalization },
    { "RMSNormalization", rms_normalization },
    { "UnitNormalization", unit_normalization },
    { 0 },
};
