/*
 * Convolutions and their gradients, each as one convolution of StableHLO. With stride s, dilation
 * d, padding low and an effective filter of k = d (size - 1) + 1:
 *
 *     input gradient    d_y with s - 1 zeros between its elements, padded by k - 1 - low, and the
 *                       filter reversed, its last two axes swapped
 *     filter gradient   x with the batch as its channels, d_y as a filter that is dilated by s
 *
 * Elements of x that a negative padding or the stride leaves out are sliced off first, and padded
 * with zeros in the input gradient: on GPUs a negative padding of convolution is slow.
 */
#include "../../ops/window.h"
#include "emit.h"

typedef struct {
    const char *numbers;   /* how axes are named: [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f] */
    int64_t     strides[2], low[2], high[2], left_dilation[2], right_dilation[2];
    int64_t     feature_groups, batch_groups;
} Convolution;

/* Operands are bf16, f16 or f32 and sums f32, or all f64. */
static CornuName convolution(CornuEmitter *e, const CornuEmitCall *call, CornuName left,
                             CornuName right, CornuType out, const Convolution *c)
{
    CornuName          in[2] = { left, right };
    const PjrtType     sums = cornu__hlo_factors(e, call, in);
    const PjrtType     result = e->target.narrow_convolutions ? cornu__hlo_of(e, in[0]).element
                                                              : sums;
    const CornuHloType type = cornu__hlo_as(cornu__hlo_type(out), result);
    const CornuName    y = cornu__begin(e, "convolution", type, in, 2);
    cornu__write(e, " {dimension_numbers = #stablehlo.conv<%s>, window_strides = ", c->numbers);
    cornu__write_array(e, c->strides, 2);
    cornu__write(e, ", padding = dense<[[%lld, %lld], [%lld, %lld]]> : tensor<2x2xi64>",
                 (long long)c->low[0], (long long)c->high[0], (long long)c->low[1],
                 (long long)c->high[1]);
    cornu__write(e, ", lhs_dilation = ");
    cornu__write_array(e, c->left_dilation, 2);
    cornu__write(e, ", rhs_dilation = ");
    cornu__write_array(e, c->right_dilation, 2);
    cornu__write(e, ", window_reversal = array<i1: false, false>, feature_group_count = %lld : "
                 "i64, batch_group_count = %lld : i64, ", (long long)c->feature_groups,
                 (long long)c->batch_groups);
    cornu__hlo_precision(e, e->target.precision);
    cornu__write(e, "}");
    cornu__end(e, y, in, 2);
    return cornu__hlo_convert(e, y, cornu__pjrt_type(out.dtype));
}

static int64_t at_least_0(int64_t x) { return x > 0 ? x : 0; }

/* How far the windows of a sweep reach: they read x from -low to this position. */
static int64_t reach(const CornuSweep *s)
{
    return (s->out - 1) * s->stride + s->dilation * (s->size - 1) - s->low;
}

/* The part of x that windows read, by the elements before and after it: the sweeps become those of
 * the part, which have no negative padding. False if it is all. */
static bool take_read(CornuSweep sweeps[2], int64_t before[4], int64_t after[4])
{
    for (int i = 0; i < 4; i++) before[i] = after[i] = 0;
    for (int i = 0; i < 2; i++) {
        CornuSweep   *s = &sweeps[i];
        const int64_t end = reach(s) + 1 < s->in ? reach(s) + 1 : s->in;
        before[1 + i] = at_least_0(-s->low);
        after[1 + i] = s->in - end;
        s->high = at_least_0(reach(s) + 1 - s->in);
        s->low = at_least_0(s->low);
        s->in = end - before[1 + i];
    }
    return before[1] + before[2] + after[1] + after[2] > 0;
}

static CornuName slice_read(CornuEmitter *e, CornuName x, CornuSweep sweeps[2])
{
    int64_t          before[4], after[4], sizes[4];
    const CornuShape shape = cornu__hlo_of(e, x).shape;
    if (!take_read(sweeps, before, after)) return x;
    for (int i = 0; i < 4; i++) sizes[i] = shape.extent[i] - before[i] - after[i];
    return cornu__hlo_slice(e, x, before, sizes, NULL);
}

static void emit_conv2d(CornuEmitter *e, const CornuEmitCall *call)
{
    CornuSweep s[2];
    cornu__sweeps(&call->op, s);
    const CornuName x = slice_read(e, call->in[0], s);
    call->out[0] = convolution(e, call, x, call->in[1], call->out_type[0], &(Convolution){
        .numbers = "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]",
        .strides = { s[0].stride, s[1].stride },
        .low = { s[0].low, s[1].low }, .high = { s[0].high, s[1].high },
        .left_dilation = { 1, 1 }, .right_dilation = { s[0].dilation, s[1].dilation },
        .feature_groups = cornu__conv_groups(&call->op), .batch_groups = 1 });
}
CornuEmit *const cornu__conv2d_stablehlo = emit_conv2d;
CornuEmit *const cornu__grouped_conv2d_stablehlo = emit_conv2d;

/* The filter (h, w, C/G, F) of G groups as (h, w, F/G, C), the groups of C side by side. */
static CornuName swap_channels(CornuEmitter *e, CornuName filter, int64_t groups)
{
    static const int64_t swapped[] = { 0, 1, 4, 3, 2 };
    const int64_t       *f = cornu__hlo_of(e, filter).shape.extent;
    const int64_t        h = f[0], w = f[1], channels = f[2], filters = f[3];
    filter = cornu__hlo_reshape(e, filter, cornu_shape(h, w, channels, groups, filters / groups));
    filter = cornu__hlo_transpose(e, filter, swapped);
    return cornu__hlo_reshape(e, filter, cornu_shape(h, w, filters / groups, groups * channels));
}

static void conv2d_grad_input(CornuEmitter *e, const CornuEmitCall *call)
{
    static const int64_t axes[] = { 0, 1 };
    const int64_t        groups = cornu__conv_groups(&call->op);
    CornuType            part = call->out_type[0];
    CornuSweep           s[2];
    int64_t              before[4], after[4];
    cornu__sweeps(&call->op, s);
    const bool  is_part = take_read(s, before, after);
    Convolution c = { .numbers = "[b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f]", .strides = { 1, 1 },
                      .feature_groups = groups, .batch_groups = 1 };
    CornuName   filter = cornu__hlo_reverse(e, call->in[1], axes, 2);
    for (int i = 0; i < 2; i++) {
        const int64_t room = s[i].dilation * (s[i].size - 1);
        c.left_dilation[i] = s[i].stride;
        c.right_dilation[i] = s[i].dilation;
        c.low[i] = room - s[i].low;
        c.high[i] = s[i].in + s[i].low - 1 - (s[i].out - 1) * s[i].stride;
        part.shape.extent[1 + i] = s[i].in;
    }
    if (groups > 1) {
        filter = swap_channels(e, filter, groups);
        c.numbers = "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]";
    }
    const CornuName d_x = convolution(e, call, call->in[0], filter, part, &c);
    call->out[0] = is_part ? cornu__hlo_pad(e, d_x, 0.0, before, after, NULL) : d_x;
}
CornuEmit *const cornu__conv2d_grad_input_stablehlo = conv2d_grad_input;
CornuEmit *const cornu__grouped_conv2d_grad_input_stablehlo = conv2d_grad_input;

static void conv2d_grad_filter(CornuEmitter *e, const CornuEmitCall *call)
{
    CornuSweep s[2];
    cornu__sweeps(&call->op, s);
    const CornuName x = slice_read(e, call->in[0], s);
    call->out[0] = convolution(e, call, x, call->in[1], call->out_type[0], &(Convolution){
        .numbers = "[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]",
        .strides = { s[0].dilation, s[1].dilation },
        .low = { s[0].low, s[1].low }, .high = { s[0].high, s[1].high },
        .left_dilation = { 1, 1 }, .right_dilation = { s[0].stride, s[1].stride },
        .feature_groups = 1, .batch_groups = cornu__conv_groups(&call->op) });
}
CornuEmit *const cornu__conv2d_grad_filter_stablehlo = conv2d_grad_filter;
CornuEmit *const cornu__grouped_conv2d_grad_filter_stablehlo = conv2d_grad_filter;
