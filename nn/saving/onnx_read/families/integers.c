/*
 * Products of integers of 8 bits, as ops of their own: where the processor has loops for them
 * (device/edgetpu/kernels.h, CornuInt8Sums) they are exact, else they are composed of products of
 * f32. Formulas: docs/Operators.md, ConvInteger, MatMulInteger.
 */
#include "../../../../device/edgetpu/kernels.h"
#include "../../../../device/integer_internal.h"
#include "../../../../tensor/custom.h"
#include "quantized_internal.h"
#include "window_internal.h"

#include <string.h>

/* ---- integer_image: x (B, H, W, C) u8, zero i32; numbers: rows above, below, columns left, right.
 * y: x between rows and columns of zeros. ---- */

static void compose_image(const CornuOpArguments *call, CornuTensor *const *x, CornuTensor **y)
{
    const double *n = call->numbers;
    CornuTensor  *zero = cornu_op_convert(x[1], CORNU_F32);
    CornuTensor  *image = cornu_op_subtract(cornu_op_convert(x[0], CORNU_F32), zero);
    image = cornu__pad_axis(image, 1, (int64_t)n[0], (int64_t)n[1], 0.0);
    image = cornu__pad_axis(image, 2, (int64_t)n[2], (int64_t)n[3], 0.0);
    y[0] = cornu_op_convert(cornu_op_add(image, zero), CORNU_U8);
}

static CornuStatus image_type(const CornuOpArguments *call, CornuType *out)
{
    for (int i = 0; i < 2; i++)
        out[0].shape.extent[1 + i] += (int64_t)(call->numbers[2 * i] + call->numbers[2 * i + 1]);
    return CORNU_OK;
}

static CornuStatus run_image(const CornuOpArguments *call, const void *const *in,
                             const CornuType *out_type, void *const *out)
{
    const int64_t *x = call->in[0].shape.extent, *y = out_type[0].shape.extent;
    const int64_t  above = (int64_t)call->numbers[0], left = (int64_t)call->numbers[2] * x[3];
    const int64_t  row = x[2] * x[3], wide = y[2] * y[3];
    const int      zero = *(const int32_t *)in[1];
    for (int64_t i = 0; i < y[0] * y[1]; i++) {
        const int64_t  at = i % y[1] - above;
        unsigned char *to = (unsigned char *)out[0] + i * wide;
        const unsigned char *from =
            (const unsigned char *)in[0] + (i / y[1] * x[1] + at) * row;
        if (at < 0 || at >= x[1]) {
            memset(to, zero, (size_t)wide);
            continue;
        }
        memset(to, zero, (size_t)left);
        memcpy(to + left, from, (size_t)row);
        memset(to + left + row, zero, (size_t)(wide - left - row));
    }
    return CORNU_OK;
}

/* ---- integer_sums: x (B, H, W, C) u8, zero i32, the filter's panels, its zeros and totals (F)
 * i32; numbers: height and width of the window, strides, dilations, rows of x that no window
 * reaches. y (B, Ho, Wo, F) i32. ---- */

static CornuInt8Window window_of(const CornuOpArguments *call)
{
    const double  *n = call->numbers;
    const int64_t *x = call->in[0].shape.extent;
    CornuInt8Window w = {
        .batch = x[0], .in_height = x[1], .in_width = x[2], .in_channels = x[3],
        .out_channels = call->in[3].shape.extent[0], .height = (int64_t)n[0],
        .width = (int64_t)n[1], .stride_height = (int64_t)n[2], .stride_width = (int64_t)n[3],
        .dilation_height = (int64_t)n[4], .dilation_width = (int64_t)n[5],
    };
    const int64_t height = x[1] - (int64_t)n[6] - (w.height - 1) * w.dilation_height - 1;
    w.out_height = height / w.stride_height + 1;
    w.out_width = (x[2] - (w.width - 1) * w.dilation_width - 1) / w.stride_width + 1;
    return w;
}

static CornuStatus sums_type(const CornuOpArguments *call, CornuType *out)
{
    const CornuInt8Window w = window_of(call);
    out[0] = cornu_type(CORNU_I32, w.batch, w.out_height, w.out_width, w.out_channels);
    return CORNU_OK;
}

/* The filter (h, w, C, F), f32, of its panels. */
static CornuTensor *unpacked(const CornuInt8Window *w, CornuTensor *panels)
{
    int64_t       elements;
    const int64_t segments = cornu__int8_segments(w, &elements);
    const CornuShape shape = cornu_tensor_shape(panels);
    CornuTensor *x = cornu__signed_bytes(panels);
    x = cornu_op_transpose(x, (const int[]){ 1, 2, 4, 0, 3 });
    x = cornu_op_reshape(x, cornu_shape(segments, 4 * shape.extent[2], 16 * shape.extent[0]));
    x = cornu__slice_axis(cornu__slice_axis(x, 1, 0, elements), 2, 0, w->out_channels);
    return cornu_op_reshape(x, cornu_shape(w->height, w->width, w->in_channels, w->out_channels));
}

static void compose_sums(const CornuOpArguments *call, CornuTensor *const *x, CornuTensor **y)
{
    const CornuInt8Window w = window_of(call);
    CornuTensor *image = cornu_op_subtract(cornu_op_convert(x[0], CORNU_F32),
                                           cornu_op_convert(x[1], CORNU_F32));
    CornuTensor *filter = cornu_op_subtract(unpacked(&w, x[2]), cornu_op_convert(x[3], CORNU_F32));
    CornuTensor *sums;
    image = cornu__slice_axis(image, 1, 0, w.in_height - (int64_t)call->numbers[6]);
    if (w.height * w.width * w.stride_height * w.stride_width == 1)
        sums = cornu_op_matmul(image, cornu_op_reshape(filter, cornu_shape(w.in_channels,
                                                                           w.out_channels)));
    else
        sums = cornu_op_conv2d(image, filter, &(CornuConvolution){
            .strides = { w.stride_height, w.stride_width },
            .dilation = { w.dilation_height, w.dilation_width } });
    y[0] = cornu_op_convert(sums, CORNU_I32);
}

typedef struct {
    CornuInt8Sums  sums;
    const uint8_t *x;
    int32_t       *y;
} Work;

static void run_block(void *context, int64_t block)
{
    const Work *work = context;
    cornu__int8_sums(&work->sums, block, work->x, work->y);
}

static CornuStatus run_sums(const CornuOpArguments *call, const void *const *in,
                            const CornuType *out_type, void *const *out)
{
    Work work = { { window_of(call), *(const int32_t *)in[1], in[2], in[3], in[4] }, in[0],
                  out[0] };
    (void)out_type;
    cornu_op_parallel(call, cornu__int8_sums_blocks(&work.sums), run_block, &work);
    return CORNU_OK;
}

static int64_t flops_of(const CornuOpArguments *call)
{
    const CornuInt8Window w = window_of(call);
    return 2 * w.batch * w.out_height * w.out_width * w.out_channels * w.height * w.width *
           w.in_channels;
}

/* The op of this name, which whoever needs it first registers. */
static CornuOp *op_of(CornuOpDefinition definition)
{
    CornuOp *op = cornu_op_find(definition.name);
    if (op) return op;
    if (!cornu__int8_sums_run()) definition.kernel = NULL;
    op = cornu_op_register(&definition);
    if (op) return op;
    cornu_error_take();
    return cornu_op_find(definition.name);   /* another thread has */
}

static CornuTensor *image_of(CornuTensor *x, CornuTensor *zero, const double numbers[4])
{
    const CornuOpDefinition definition = {
        .name = "integer_image", .inputs = 2, .type = image_type, .composition = compose_image,
        .kernel = run_image
    };
    CornuTensor *in[] = { x, zero };
    return cornu_op_custom(op_of(definition), in, 2, numbers, 4, NULL);
}

static CornuTensor *sums_of(CornuTensor *const in[5], const double numbers[7])
{
    const CornuOpDefinition definition = {
        .name = "integer_sums", .inputs = 5, .type = sums_type, .flops = flops_of,
        .composition = compose_sums, .kernel = run_sums
    };
    return cornu_op_custom(op_of(definition), in, 5, numbers, 7, NULL);
}

/* ---- Recording ---- */

/* A filter (h, w, C, F) in panels. */
static CornuTensor *packed(CornuTensor *filter, const CornuInt8Window *w)
{
    int64_t       elements;
    const int64_t segments = cornu__int8_segments(w, &elements), filters = w->out_channels;
    const int64_t groups = ceil_divide(elements, 4), panels = ceil_divide(filters, 16);
    CornuTensor  *x = cornu_op_reshape(filter, cornu_shape(segments, elements, filters));
    x = cornu__pad_axis(cornu__pad_axis(x, 1, 0, 4 * groups - elements, 0.0), 2, 0,
                        16 * panels - filters, 0.0);
    x = cornu_op_reshape(x, cornu_shape(segments, groups, 4, panels, 16));
    return cornu_op_transpose(x, (const int[]){ 3, 0, 1, 4, 2 });
}

CornuStatus cornu__integer_filter(CornuTensor *bytes, CornuTensor *zeros,
                                  const CornuInt8Window *w, CornuIntegerFilter *filter)
{
    CornuGraph  *graph = bytes ? cornu_tensor_graph(bytes) : NULL;
    CornuTensor *none = cornu_op_constant(graph, cornu_type(CORNU_I32, w->out_channels), 0.0);
    const int64_t apart = w->dilation_width > 1 ? 2 : 1;
    CornuTensor *one = cornu_op_constant(graph, cornu_type(
        CORNU_U8, 1, w->height + 1, (w->width - 1) * apart + 1, w->in_channels), 1.0);
    filter->window = *w;
    filter->panels = packed(bytes, w);
    filter->zeros = zeros ? cornu_op_convert(cornu_op_broadcast(zeros, cornu_shape(
                                                 w->out_channels)), CORNU_I32) : none;
    /* Of elements that are 1 the sums are the totals. */
    CornuTensor *in[] = { one, cornu_op_constant(graph, cornu_scalar(CORNU_I32), 0.0),
                          filter->panels, filter->zeros, none };
    const double numbers[7] = { (double)w->height, (double)w->width, 1.0, 1.0, 1.0,
                                (double)apart, 1.0 };
    filter->totals = cornu_op_reshape(sums_of(in, numbers), cornu_shape(w->out_channels));
    return filter->totals ? CORNU_OK : cornu_error_take();
}

CornuTensor *cornu__integer_product(CornuTensor *x, CornuTensor *zero,
                                    const CornuIntegerFilter *filter, const int64_t pads[4])
{
    const CornuInt8Window *w = &filter->window;
    int64_t                elements;
    cornu__int8_segments(w, &elements);
    const double spare = elements % 4 != 0;
    const double image[4] = { (double)pads[0], (double)pads[1] + spare, (double)pads[2],
                              (double)pads[3] };
    const double numbers[7] = { (double)w->height, (double)w->width, (double)w->stride_height,
                                (double)w->stride_width, (double)w->dilation_height,
                                (double)w->dilation_width, spare };
    zero = cornu_op_convert(zero, CORNU_I32);
    if (image[0] + image[1] + image[2] + image[3] > 0.0) x = image_of(x, zero, image);
    CornuTensor *in[] = { x, zero, filter->panels, filter->zeros, filter->totals };
    return sums_of(in, numbers);
}

/* ---- For rules ---- */

/* The zero of the weights of operand b[0], as their bytes have it; a number, or a vector. */
static CornuTensor *zero_of(CornuReadStep *step, const int b[2])
{
    const double above = step->in[b[0]].onnx_type == CORNU_READ_UINT8 ? -128.0 : 0.0;
    if (!cornu__given(step, b[1]))
        return cornu_op_constant(step->run->graph, cornu_scalar(CORNU_F32), above);
    return cornu_op_shift(cornu__quantity(step, b[1], 1, 0), above);
}

static CornuTensor *conv(CornuReadStep *step, CornuTensor *x, CornuTensor *zero, const int b[2])
{
    CornuTensor     *bytes = step->in[b[0]].bytes;
    const CornuShape shape = cornu_tensor_shape(bytes);
    CornuReadWindow  window;
    int              order[CORNU_MAX_RANK];
    if (cornu__read_window(step, cornu_tensor_shape(x), shape.extent + 2, &window))
        return cornu__null();
    CornuIntegerFilter  filter;
    const CornuInt8Window w = {
        .in_channels = shape.extent[1], .out_channels = shape.extent[0],
        .height = shape.extent[2], .width = shape.extent[3],
        .stride_height = window.strides[0], .stride_width = window.strides[1],
        .dilation_height = window.dilation[0], .dilation_width = window.dilation[1],
    };
    cornu__filter_shape(shape, order);
    if (cornu__integer_filter(cornu_op_transpose(bytes, order), zero_of(step, b), &w, &filter))
        return cornu__null();
    return cornu__read_channels_first(cornu__integer_product(
        cornu__read_channels_last(x), zero, &filter,
        (const int64_t[]){ window.low[0], window.high[0], window.low[1], window.high[1] }));
}

/* The op takes what the loops take: one group, padding that is not negative, few taps. */
static bool takes_conv(const CornuReadStep *step, CornuTensor *x, CornuTensor *bytes)
{
    const CornuShape w = cornu_tensor_shape(bytes);
    CornuReadWindow  window;
    if (w.rank != 4 || cornu__rank_of(x) != 4 || cornu__whole(step, "group", 1) != 1 ||
        w.extent[2] * w.extent[3] > CORNU_INT8_MOST_SEGMENTS ||
        cornu__extent_of(x, 1) != w.extent[1])
        return false;
    if (cornu__read_window(step, cornu_tensor_shape(x), w.extent + 2, &window))
        return cornu_error_take(), false;
    for (int i = 0; i < 2; i++)
        if (window.low[i] < 0 || window.high[i] < 0) return false;
    return true;
}

CornuTensor *cornu__integer_matmul(CornuTensor *x, CornuTensor *zero,
                                   const CornuIntegerFilter *filter)
{
    if (!x) return NULL;
    CornuShape    shape = cornu_tensor_shape(x);
    const int64_t k = filter->window.in_channels, rows = shape.rank > 1 ? shape.extent[0] : 1;
    int64_t       rest = 1;
    for (int i = 1; i + 1 < shape.rank; i++) rest *= shape.extent[i];
    x = cornu_op_reshape(x, cornu_shape(rows, 1, rest, k));
    shape.extent[shape.rank - 1] = filter->window.out_channels;
    return cornu_op_reshape(cornu__integer_product(x, zero, filter, (const int64_t[4]){ 0 }),
                            shape);
}

CornuInt8Window cornu__integer_matrix(int64_t k, int64_t n)
{
    return (CornuInt8Window){ .in_channels = k, .out_channels = n, .height = 1, .width = 1,
                              .stride_height = 1, .stride_width = 1, .dilation_height = 1,
                              .dilation_width = 1 };
}

static CornuTensor *matmul(CornuReadStep *step, CornuTensor *x, CornuTensor *zero, const int b[2])
{
    CornuTensor       *bytes = step->in[b[0]].bytes;
    CornuIntegerFilter filter;
    if (cornu__whole(step, "transB", 0)) bytes = cornu_op_transpose(bytes, (const int[]){ 1, 0 });
    const CornuInt8Window w = cornu__integer_matrix(cornu__extent_of(bytes, 0),
                                                    cornu__extent_of(bytes, 1));
    if (cornu__integer_filter(bytes, zero_of(step, b), &w, &filter)) return cornu__null();
    return cornu__integer_matmul(x, zero, &filter);
}

CornuTensor *cornu__integer_product_of(CornuReadStep *step, const char *op, CornuTensor *x,
                                       CornuTensor *zero, const int b[2])
{
    CornuTensor *bytes = step->in[b[0]].bytes;
    const bool   is_conv = *op == 'C', turned = cornu__whole(step, "transB", 0);
    if (!bytes || cornu__dtype_of(x) != CORNU_U8 || (zero && cornu__rank_of(zero) != 0))
        return NULL;
    if (!zero) zero = cornu_op_constant(step->run->graph, cornu_scalar(CORNU_F32), 0.0);
    if (is_conv) return takes_conv(step, x, bytes) ? conv(step, x, zero, b) : NULL;
    if (cornu__rank_of(bytes) != 2 || cornu__rank_of(x) < 1 || cornu__whole(step, "transA", 0) ||
        cornu__extent_of(x, cornu__rank_of(x) - 1) != cornu__extent_of(bytes, turned))
        return NULL;
    return matmul(step, x, zero, b);
}
