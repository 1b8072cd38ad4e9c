/* Resolving and checking the arguments of layers; paddings. */
#include "arguments_internal.h"
#include "../fields/field_internal.h"
#include "../weights/weight_rules_internal.h"

#include <math.h>
#include <string.h>

const void *cornu__layer_argument(const CornuLayer *layer, const char *name)
{
    const CornuField *field = cornu__keras_class(layer)->fields;
    while (field->name && strcmp(field->name, name)) field++;
    if (!field->name) return NULL;
    return (const char *)cornu__config(layer) + field->offset;
}

const CornuNumbers *cornu__layer_numbers(const CornuLayer *layer, const char *name)
{
    const CornuField *field = cornu__keras_class(layer)->fields;
    while (strcmp(field->name, name) || (field->kind != CORNU_FIELD_NUMBERS &&
                                         field->kind != CORNU_FIELD_INTEGERS))
        field++;
    return (const void *)((const char *)cornu__config(layer) + field->offset);
}

const CornuFieldKind cornu_field_padding = {
    .name = "padding", CORNU__FIELD_OF_WORDS(CornuPadding),
    .words = { [CORNU_VALID] = "valid", [CORNU_SAME] = "same", [CORNU_CAUSAL] = "causal" },
};

const char *cornu_padding_name(CornuPadding padding)
{
    return cornu__field_word(CORNU_FIELD_PADDING, (int)padding);
}

CornuStatus cornu__check_padding(const char *layer, CornuPadding padding)
{
    if (padding == CORNU_VALID || padding == CORNU_SAME) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .padding is %d, expected CORNU_VALID or CORNU_SAME",
                       layer, (int)padding);
}

CornuStatus cornu__extents(const char *layer, const char *argument, const char *cube, int64_t one,
                           const int64_t *given, int64_t usual, int axes, int64_t *to)
{
    bool any = false;
    for (int i = 0; i < axes; i++) any |= given[i] != 0;
    if (one && any)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: both .%s and .%s are given, expected one",
                           layer, cube, argument);
    if (!one && !given[0] && !usual)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .%s is required", layer, argument);
    for (int i = 0; i < axes; i++) {
        to[i] = one ? one : given[i] ? given[i] : i ? to[0] : usual;
        if (to[i] < 1 || to[i] > INT32_MAX)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .%s is %lld, expected 1 to %d", layer,
                               argument, (long long)to[i], INT32_MAX);
    }
    return CORNU_OK;
}

CornuStatus cornu__pair(const char *layer, const char *argument, const char *square, int64_t one,
                        const int64_t pair[2], int64_t usual, int64_t to[2])
{
    return cornu__extents(layer, argument, square, one, pair, usual, 2, to);
}

CornuStatus cornu__positive(const char *name, const char *argument, int64_t value)
{
    if (value >= 1 && value <= INT32_MAX) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .%s is %lld, expected 1 to %d", name, argument,
                       (long long)value, INT32_MAX);
}

CornuStatus cornu__resolve_rate(const CornuLayer *layer, const char *argument, double *rate)
{
    *rate = cornu__number(*rate, 0.0);
    if (*rate >= 0.0 && *rate < 1.0) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .%s is %g, expected 0 or more, below 1",
                       cornu_layer_name(layer), argument, *rate);
}

void cornu__padding(CornuPadding padding, int64_t extent, int64_t window, int64_t stride,
                    int64_t dilation, int64_t *low, int64_t *high)
{
    *low = *high = 0;
    if (padding == CORNU_CAUSAL) *low = dilation * (window - 1);
    if (padding != CORNU_SAME) return;
    int64_t out = (extent - 1) / stride + 1;
    int64_t total = (out - 1) * stride + dilation * (window - 1) + 1 - extent;
    if (total <= 0) return;
    *low = total / 2;
    *high = total - *low;
}

CornuInitializer cornu__initializer(CornuInitializer given, CornuInitializer usual)
{
    return given.kind == CORNU_DEFAULT_INITIALIZER && !given.call ? usual : given;
}

static void list_axes(int64_t bits, int64_t axes[CORNU_MAX_RANK])
{
    int count = 0;
    for (int i = 0; i < CORNU_MAX_RANK; i++)
        if (bits >> i & 1) axes[count++] = i == 0 ? CORNU_ZERO : i;
}

CornuInitializer cornu__initializer_along(CornuInitializer initializer, int64_t input_axes,
                                          int64_t output_axes)
{
    const bool scales = initializer.kind >= CORNU_VARIANCE_SCALING_INITIALIZER &&
                        initializer.kind <= CORNU_LECUN_NORMAL_INITIALIZER;
    if (!scales || initializer.call) return initializer;
    if (initializer.input_axes[0] && initializer.output_axes[0]) return initializer;
    memset(initializer.input_axes, 0, sizeof initializer.input_axes);
    memset(initializer.output_axes, 0, sizeof initializer.output_axes);
    list_axes(input_axes, initializer.input_axes);
    list_axes(output_axes, initializer.output_axes);
    return initializer;
}

CornuActivation cornu__activation(CornuActivation given, CornuActivation usual)
{
    return given == CORNU_DEFAULT_ACTIVATION ? usual : given;
}

CornuTensor *cornu__no_mask(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    (void)layer, (void)call, (void)x;
    return NULL;
}

CornuStatus cornu__check_activity(const char *layer, const CornuRegularizer *regularizer)
{
    if (regularizer->kind != CORNU_ORTHOGONAL_REGULARIZER) return CORNU_OK;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: .activity_regularizer is an "
                       "orthogonal_regularizer, which compares the rows of a batch; that is not "
                       "available in this version", layer);
}

CornuStatus cornu__expect_input(CornuShape input, int rank, const char *axes)
{
    CornuText text;
    if (input.rank == rank) return CORNU_OK;
    return cornu__fail(CORNU_ERR_SHAPE, "the input is %s, expected %s",
                       cornu_shape_print(&text, input), axes);
}

CornuStatus cornu__expect_spatial(CornuShape input, int axes)
{
    static const char *const names[] = { "(B, C)", "(B, T, C)", "(B, H, W, C)",
                                         "(B, D, H, W, C)" };
    return cornu__expect_input(input, axes + 2, names[axes]);
}

int cornu__spatial_axes(const CornuLayerClass *kind)
{
    const char *digit = strpbrk(kind->class_name, "123");
    return digit ? *digit - '0' : 2;
}

CornuStatus cornu__build_spatial(CornuLayer *layer, CornuShape input)
{
    return cornu__expect_spatial(input, cornu__spatial_axes(layer->kind));
}

/* ---- Arrays ---- */

/* Fed once: an input keeps its value. */
CornuTensor *cornu__constant_array(const CornuCall *call, CornuArray array)
{
    const CornuDescription *description = call->description;
    if (description) return description->array(description->context, array);
    CornuTensor *input = cornu_graph_input(call->graph, array.type);
    if (!input || call->shapes_only || !cornu_graph_feed(input, array)) return input;
    return cornu__null();
}

CornuTensor *cornu__numbers_tensor(const CornuCall *call, const CornuNumbers *numbers,
                                   CornuShape shape)
{
    const int64_t count = cornu_shape_count(numbers->shape);
    float        *values = cornu__allocate((size_t)count, sizeof *values);
    if (!values) return cornu__null();
    for (int64_t i = 0; i < count; i++) values[i] = (float)numbers->values[i];
    CornuTensor *tensor = cornu__constant_array(
        call, cornu_array_from(values, cornu_type_from(CORNU_F32, shape)));
    cornu__release(values);
    return tensor;
}

CornuStatus cornu__check_numbers(const char *layer, const char *argument,
                                 const CornuNumbers *numbers)
{
    const int64_t count = numbers->values ? cornu_shape_count(numbers->shape) : 0;
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(numbers->values[i]))
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .%s has %g, expected finite numbers",
                               layer, argument, numbers->values[i]);
    return CORNU_OK;
}

CornuTensor *cornu__round_even(CornuTensor *x)
{
    CornuTensor *up = cornu_op_floor(cornu_op_shift(x, 0.5));
    if (!up) return NULL;
    CornuTensor *half = cornu_op_scale(cornu_op_floor(cornu_op_scale(up, 0.5)), 2.0);
    CornuTensor *odd = cornu_op_subtract(up, half);   /* 0 or 1 */
    CornuTensor *tie = cornu_op_compare(cornu_op_subtract(up, x), CORNU_EQUAL,
                                        cornu_op_constant_like(x, 0.5));
    return cornu_op_select(tie, cornu_op_subtract(up, odd), up);
}
