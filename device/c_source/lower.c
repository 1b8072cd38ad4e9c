/* Programs in the ops that have rules. A convolution's padding becomes an op of its own, so that
 * its loops have no conditions, and the gradient of its input convolutions. */
#include <string.h>

#include "source_internal.h"

#include "../host/compile/passes.h"
#include "../ops/build.h"
#include "../ops/rewrite.h"
#include "../ops/window.h"

const CornuCRule cornu__c_decomposed, cornu__c_refused, cornu__c_seen;

static bool is_convolution(CornuOpId id)
{
    return id == CORNU_OP_CONV2D || id == CORNU_OP_GROUPED_CONV2D;
}

static bool is_filter_gradient(CornuOpId id)
{
    return id == CORNU_OP_CONV2D_GRAD_FILTER || id == CORNU_OP_GROUPED_CONV2D_GRAD_FILTER;
}

static bool is_input_gradient(CornuOpId id)
{
    return id == CORNU_OP_CONV2D_GRAD_INPUT || id == CORNU_OP_GROUPED_CONV2D_GRAD_INPUT;
}

static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* x with zeros at the ends of `axis` and the next, or without some: low and high may be
 * negative. */
static CornuValue bordered(CornuBuilder *b, CornuValue x, int axis, const int64_t *low,
                           const int64_t *high)
{
    if (b->status) return CORNU_NO_VALUE;
    const CornuShape shape = cornu_program_type(b->program, x).shape;
    CornuAttributes  slice = { .slice = { .starts = { 0 } } };
    CornuAttributes  pad = { .pad = { .value = 0.0 } };
    memcpy(slice.slice.sizes, shape.extent, sizeof slice.slice.sizes);
    for (int i = 0; i < 2; i++) {
        slice.slice.starts[axis + i] = most(-low[i], 0);
        slice.slice.sizes[axis + i] -= most(-low[i], 0) + most(-high[i], 0);
        pad.pad.low[axis + i] = most(low[i], 0);
        pad.pad.high[axis + i] = most(high[i], 0);
    }
    if (low[0] < 0 || low[1] < 0 || high[0] < 0 || high[1] < 0)
        x = cornu__build(b, CORNU_OP_SLICE, &slice, &x, 1);
    if (low[0] > 0 || low[1] > 0 || high[0] > 0 || high[1] > 0)
        x = cornu__build(b, CORNU_OP_PAD, &pad, &x, 1);
    return x;
}

/* An input's gradient is a convolution of y, with borders, for each place within a stride: with the
 * taps that reach it, reversed, and with channels and filters exchanged. */
enum { MOST_STRIDE = 4 };

static bool is_convolved(CornuOpId id, const CornuAttributes_CONV2D_GRAD *conv)
{
    const int64_t stride = most(conv->strides[0], conv->strides[1]);
    const int64_t dilation = most(conv->dilation[0], conv->dilation[1]);
    return id == CORNU_OP_CONV2D_GRAD_INPUT && stride <= MOST_STRIDE &&
           (stride <= 1 || dilation <= 1);
}

/* Every stride-th tap of the filter (h, w, c, f), from `place` on, as (h / stride, w / stride, f,
 * c). */
static CornuValue taps_of(CornuBuilder *b, CornuValue filter, const int64_t stride[2],
                          const int64_t place[2])
{
    if (b->status) return CORNU_NO_VALUE;
    const CornuShape all = cornu_program_type(b->program, filter).shape;
    const int64_t    h = all.extent[0] / stride[0], w = all.extent[1] / stride[1];
    const int64_t    c = all.extent[2], f = all.extent[3];
    CornuValue       x = cornu__build_reshape(b, filter,
                                              cornu_shape(h, stride[0], w, stride[1], c, f));
    x = cornu__build(b, CORNU_OP_SLICE, &(CornuAttributes){ .slice = {
            .starts = { 0, place[0], 0, place[1], 0, 0 }, .sizes = { h, 1, w, 1, c, f } } }, &x, 1);
    x = cornu__build_reshape(b, x, cornu_shape(h, w, c, f));
    for (int i = 0; i < 2; i++)
        x = cornu__build(b, CORNU_OP_FLIP, &(CornuAttributes){ .axis = { .axis = i } }, &x, 1);
    return cornu__build(b, CORNU_OP_TRANSPOSE, &(CornuAttributes){ .permutation = {
                            .axes = { 0, 1, 3, 2 } } }, &x, 1);
}

/* What is at one place of each stride: (b, h, 1, w, 1, c), to be joined. */
static CornuValue gradient_at(CornuBuilder *b, CornuValue y, CornuValue taps,
                              const int64_t dilation[2])
{
    if (b->status) return CORNU_NO_VALUE;
    const CornuShape size = cornu_program_type(b->program, taps).shape;
    CornuAttributes  conv = { .conv2d = { .strides = { 1, 1 } } };
    int64_t          border[2];
    for (int i = 0; i < 2; i++) {
        conv.conv2d.dilation[i] = most(dilation[i], 1);
        border[i] = (size.extent[i] - 1) * conv.conv2d.dilation[i];
    }
    y = bordered(b, y, 1, border, border);
    const CornuValue x = cornu__build(b, CORNU_OP_CONV2D, &conv, (CornuValue[]){ y, taps }, 2);
    if (b->status) return CORNU_NO_VALUE;
    const CornuShape is = cornu_program_type(b->program, x).shape;
    return cornu__build_reshape(b, x, cornu_shape(is.extent[0], is.extent[1], 1, is.extent[2], 1,
                                                  is.extent[3]));
}

static CornuValue joined(CornuBuilder *b, const CornuValue *x, int64_t count, int axis)
{
    if (count == 1) return x[0];
    return cornu__build(b, CORNU_OP_CONCAT, &(CornuAttributes){ .axis = { .axis = axis } }, x,
                        (int)count);
}

static CornuValue convolved(CornuBuilder *b, const CornuAttributes_CONV2D_GRAD *conv,
                            CornuValue y, CornuValue filter)
{
    const CornuShape of = cornu_program_type(b->program, y).shape;
    const CornuShape size = cornu_program_type(b->program, filter).shape;
    CornuValue       columns[MOST_STRIDE], rows[MOST_STRIDE];
    int64_t          stride[2], none[2] = { 0, 0 }, missing[2], extent[2];
    for (int i = 0; i < 2; i++) {
        stride[i] = most(conv->strides[i], 1);
        missing[i] = (stride[i] - size.extent[i] % stride[i]) % stride[i];
        const int64_t taps = (size.extent[i] + missing[i]) / stride[i];
        extent[i] = (of.extent[i + 1] + (taps - 1) * most(conv->dilation[i], 1)) * stride[i];
    }
    filter = bordered(b, filter, 0, none, missing);
    for (int64_t i = 0; i < stride[0]; i++) {
        for (int64_t j = 0; j < stride[1]; j++) {
            const CornuValue taps = taps_of(b, filter, stride, (int64_t[]){ i, j });
            columns[j] = gradient_at(b, y, taps, conv->dilation);
        }
        rows[i] = joined(b, columns, stride[1], 4);
    }
    const CornuValue x = cornu__build_reshape(b, joined(b, rows, stride[0], 2), cornu_shape(
                             of.extent[0], extent[0], extent[1], size.extent[2]));
    for (int i = 0; i < 2; i++) missing[i] = conv->extents[i] - extent[i];
    return bordered(b, x, 1, none, missing);
}

/* The convolution or gradient of an x with borders, which has none left. */
static CornuStatus record_convolution(CornuRewrite *rewrite, const CornuProgramOp *op)
{
    CornuBuilder      b = { rewrite->to, CORNU_OK };
    CornuAttributes   attributes = op->attributes;
    int64_t           low[2], high[2];
    const CornuValue *operands = cornu__rewrite_operands(rewrite, op);
    CornuValue        in[2] = { operands[0], operands[1] };
    for (int i = 0; i < 2; i++) {
        low[i] = attributes.conv2d.low[i];
        high[i] = attributes.conv2d.high[i];
        attributes.conv2d.low[i] = attributes.conv2d.high[i] = 0;
        if (is_input_gradient(op->id)) attributes.conv2d_grad.extents[i] += low[i] + high[i];
    }
    if (!is_input_gradient(op->id)) in[0] = bordered(&b, in[0], 1, low, high);
    CornuValue y = is_convolved(op->id, &attributes.conv2d_grad)
                 ? convolved(&b, &attributes.conv2d_grad, in[0], in[1])
                 : cornu__build(&b, op->id, &attributes, in, 2);
    if (is_input_gradient(op->id))
        y = bordered(&b, y, 1, (int64_t[2]){ -low[0], -low[1] },
                     (int64_t[2]){ -high[0], -high[1] });
    rewrite->map[op->out_first] = y;
    return b.status;
}

static CornuStatus record(CornuRewrite *rewrite, const CornuProgramOp *op, const void *context)
{
    (void)context;
    if (*cornu__c_table[op->id] == CORNU_C_DECOMPOSED &&
        !cornu__is_primitive(op->id, &op->attributes))
        return cornu__rewrite_decompose(rewrite, op);
    if (is_convolution(op->id) || is_filter_gradient(op->id) || is_input_gradient(op->id))
        return record_convolution(rewrite, op);
    return cornu__rewrite_keep(rewrite, op);
}

CornuProgram *cornu__c_lower(const CornuProgram *program)
{
    const CornuHost host = { .shards = 1 };
    CornuProgram   *first = cornu__simplify(&host, program);
    CornuProgram   *plain = first ? cornu__rewrite_rounds(first, record, NULL) : NULL;
    CornuProgram   *lowered = plain ? cornu__simplify(&host, plain) : NULL;
    cornu_program_free(first);
    cornu_program_free(plain);
    return lowered;
}
