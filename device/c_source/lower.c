/* Programs in the ops that have rules. A convolution's padding becomes an op of its own, so that
 * its loops have no conditions. */
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

/* x with rows and columns of zeros, or without some: low and high may be negative. */
static CornuValue bordered(CornuBuilder *b, CornuValue x, const int64_t *low, const int64_t *high)
{
    if (b->status) return CORNU_NO_VALUE;
    const CornuShape shape = cornu_program_type(b->program, x).shape;
    CornuAttributes  slice = { .slice = { .sizes = { shape.extent[0], 0, 0, shape.extent[3] } } };
    CornuAttributes  pad = { .pad = { .value = 0.0 } };
    for (int i = 0; i < 2; i++) {
        slice.slice.starts[i + 1] = most(-low[i], 0);
        slice.slice.sizes[i + 1] = shape.extent[i + 1] - most(-low[i], 0) - most(-high[i], 0);
        pad.pad.low[i + 1] = most(low[i], 0);
        pad.pad.high[i + 1] = most(high[i], 0);
    }
    if (low[0] < 0 || low[1] < 0 || high[0] < 0 || high[1] < 0)
        x = cornu__build(b, CORNU_OP_SLICE, &slice, &x, 1);
    if (low[0] > 0 || low[1] > 0 || high[0] > 0 || high[1] > 0)
        x = cornu__build(b, CORNU_OP_PAD, &pad, &x, 1);
    return x;
}

/* The convolution or gradient of an x with borders, which has none left. */
static CornuStatus record_bordered(CornuRewrite *rewrite, const CornuProgramOp *op)
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
    if (!is_input_gradient(op->id)) in[0] = bordered(&b, in[0], low, high);
    CornuValue y = cornu__build(&b, op->id, &attributes, in, 2);
    if (is_input_gradient(op->id))
        y = bordered(&b, y, (int64_t[2]){ -low[0], -low[1] }, (int64_t[2]){ -high[0], -high[1] });
    rewrite->map[op->out_first] = y;
    return b.status;
}

static CornuStatus record(CornuRewrite *rewrite, const CornuProgramOp *op, const void *context)
{
    (void)context;
    const CornuAttributes_CONV2D *conv = &op->attributes.conv2d;
    if (*cornu__c_table[op->id] == CORNU_C_DECOMPOSED &&
        !cornu__is_primitive(op->id, &op->attributes))
        return cornu__rewrite_decompose(rewrite, op);
    if ((is_convolution(op->id) || is_filter_gradient(op->id) || is_input_gradient(op->id)) &&
        (conv->low[0] || conv->low[1] || conv->high[0] || conv->high[1]))
        return record_bordered(rewrite, op);
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
