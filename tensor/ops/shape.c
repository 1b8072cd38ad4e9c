/* Ops that move elements: recording, where two may cancel, and gradients. */
#include "../graph_internal.h"

static CornuTensor *record_shape(CornuOpId id, const CornuAttributes *attributes, CornuTensor *x)
{
    CornuTensor *out[CORNU_MAX_OUTPUTS];
    return cornu__record(id, attributes, &x, 1, out);
}

CornuTensor *cornu_op_reshape(CornuTensor *x, CornuShape shape)
{
    if (!x) return cornu__fail_null(CORNU_ERR_ARGUMENT, "reshape: operand 0 is NULL");
    int     unknown = -1;
    int64_t count = cornu_type_count(cornu_tensor_type(x)), known = 1;
    for (int i = 0; i < shape.rank && i < CORNU_MAX_RANK; i++) {
        if (shape.extent[i] == CORNU_NONE && unknown < 0) unknown = i;
        else known *= shape.extent[i];
    }
    if (unknown >= 0 && (known <= 0 || count % known != 0)) {
        CornuText   a, b;
        const char *scope = cornu__scope(x->graph);
        return cornu__fail_null(CORNU_ERR_SHAPE, "%s%sreshape: %s does not divide into %s", scope,
                                *scope ? ": " : "", cornu_shape_print(&a, cornu_tensor_shape(x)),
                                cornu_shape_print(&b, shape));
    }
    if (unknown >= 0) shape.extent[unknown] = count / known;
    if (cornu_shape_equal(cornu_tensor_shape(x), shape)) return x;
    CornuAttributes attributes = cornu__shape_attributes(shape);
    return record_shape(CORNU_OP_RESHAPE, &attributes, x);
}

static void reshape_gradient(const CornuRecorded *op, CornuTensor *const *d, CornuTensor **d_x)
{
    d_x[0] = cornu_op_reshape(d[0], cornu_tensor_shape(op->in[0]));
}
CornuGradient *const cornu__reshape_gradient = reshape_gradient;

/* If x is a transpose itself: makes `axes` those of the transpose of its operand, which is
 * returned; else x. */
static CornuTensor *before_transpose(CornuTensor *x, int64_t *axes)
{
    const CornuProgram *program = x->graph->program;
    const int           at = program->values[x->value].op;
    if (at < 0 || program->ops[at].id != CORNU_OP_TRANSPOSE) return x;
    const CornuProgramOp *first = &program->ops[at];
    for (int i = 0; i < cornu_tensor_shape(x).rank; i++)
        axes[i] = first->attributes.permutation.axes[axes[i]];
    return cornu__tensor(x->graph, cornu_program_operands(program, first)[0]);
}

/* Two transposes are recorded as one, or as none if they cancel: those of adjacent layers with
 * channels first do. */
CornuTensor *cornu_op_transpose(CornuTensor *x, const int *axes)
{
    if (!x) return cornu__fail_null(CORNU_ERR_ARGUMENT, "transpose: operand 0 is NULL");
    CornuAttributes attributes = { .permutation = { .axes = { 0 } } };
    const int rank = cornu_tensor_shape(x).rank;
    bool      valid = true, moves = false;
    for (int i = 0; i < rank; i++) {
        attributes.permutation.axes[i] = axes[i];
        valid = valid && axes[i] >= 0 && axes[i] < rank;
    }
    if (!valid) return record_shape(CORNU_OP_TRANSPOSE, &attributes, x);   /* which refuses it */
    CornuTensor *source = before_transpose(x, attributes.permutation.axes);
    for (int i = 0; i < rank; i++) moves |= attributes.permutation.axes[i] != i;
    return moves && source ? record_shape(CORNU_OP_TRANSPOSE, &attributes, source) : source;
}

/* d_x = d with the axes moved back: by the inverse permutation. */
static void transpose_gradient(const CornuRecorded *op, CornuTensor *const *d, CornuTensor **d_x)
{
    int inverse[CORNU_MAX_RANK];
    for (int i = 0; i < cornu_tensor_shape(d[0]).rank; i++)
        inverse[op->attributes->permutation.axes[i]] = i;
    d_x[0] = cornu_op_transpose(d[0], inverse);
}
CornuGradient *const cornu__transpose_gradient = transpose_gradient;

CornuTensor *cornu_op_slice(CornuTensor *x, const int64_t *starts, const int64_t *sizes)
{
    if (!x) return cornu__fail_null(CORNU_ERR_ARGUMENT, "slice: operand 0 is NULL");
    CornuAttributes attributes = { .slice = { .starts = { 0 } } };
    for (int i = 0; i < cornu_tensor_shape(x).rank; i++) {
        attributes.slice.starts[i] = starts[i];
        attributes.slice.sizes[i] = sizes[i];
    }
    return record_shape(CORNU_OP_SLICE, &attributes, x);
}

/* d in its place, zeros around it. */
static void slice_gradient(const CornuRecorded *op, CornuTensor *const *d, CornuTensor **d_x)
{
    CornuShape     x = cornu_tensor_shape(op->in[0]);
    int64_t        high[CORNU_MAX_RANK];
    const int64_t *starts = op->attributes->slice.starts, *sizes = op->attributes->slice.sizes;
    for (int i = 0; i < x.rank; i++) high[i] = x.extent[i] - starts[i] - sizes[i];
    d_x[0] = cornu_op_pad(d[0], starts, high, 0.0);
}
CornuGradient *const cornu__slice_gradient = slice_gradient;

CornuTensor *cornu_op_pad(CornuTensor *x, const int64_t *low, const int64_t *high, double value)
{
    if (!x) return cornu__fail_null(CORNU_ERR_ARGUMENT, "pad: operand 0 is NULL");
    CornuAttributes attributes = { .pad = { .value = value } };
    for (int i = 0; i < cornu_tensor_shape(x).rank; i++) {
        attributes.pad.low[i] = low[i];
        attributes.pad.high[i] = high[i];
    }
    return record_shape(CORNU_OP_PAD, &attributes, x);
}

static void pad_gradient(const CornuRecorded *op, CornuTensor *const *d, CornuTensor **d_x)
{
    d_x[0] = cornu_op_slice(d[0], op->attributes->pad.low, cornu_tensor_shape(op->in[0]).extent);
}
CornuGradient *const cornu__pad_gradient = pad_gradient;

CornuTensor *cornu_op_concat(CornuTensor *const *x, int count, int axis)
{
    CornuAttributes attributes = { .axis = { .axis = axis } };
    CornuTensor    *out[CORNU_MAX_OUTPUTS];
    return cornu__record(CORNU_OP_CONCAT, &attributes, x, count, out);
}

CornuTensor *cornu_op_flip(CornuTensor *x, int axis)
{
    CornuAttributes attributes = { .axis = { .axis = axis } };
    return record_shape(CORNU_OP_FLIP, &attributes, x);
}

static void flip_gradient(const CornuRecorded *op, CornuTensor *const *d, CornuTensor **d_x)
{
    d_x[0] = cornu_op_flip(d[0], (int)op->attributes->axis.axis);
}
CornuGradient *const cornu__flip_gradient = flip_gradient;

/* Each operand gets its slice of d. */
static void concat_gradient(const CornuRecorded *op, CornuTensor *const *d, CornuTensor **d_x)
{
    int64_t axis = op->attributes->axis.axis, starts[CORNU_MAX_RANK] = { 0 };
    for (int i = 0; i < op->in_count; i++) {
        CornuShape part = cornu_tensor_shape(op->in[i]);
        if (op->wanted[i]) d_x[i] = cornu_op_slice(d[0], starts, part.extent);
        starts[axis] += part.extent[axis];
    }
}
CornuGradient *const cornu__concat_gradient = concat_gradient;

CornuTensor *cornu_op_pack(CornuTensor *const *x, int count, int64_t segment, int64_t extent)
{
    CornuAttributes attributes = { .pack = { .segment = segment, .extent = extent } };
    CornuTensor    *out[CORNU_MAX_OUTPUTS];
    return cornu__record(CORNU_OP_PACK, &attributes, x, count, out);
}

static void pack_gradient(const CornuRecorded *op, CornuTensor *const *d, CornuTensor **d_x)
{
    int64_t end = 0;
    for (int i = 0; i < op->in_count; i++) {
        const CornuType x = cornu_tensor_type(op->in[i]);
        const int64_t   start = cornu__pack_start(&op->attributes->pack, end);
        const int64_t   count = cornu_type_count(x);
        if (op->wanted[i])
            d_x[i] = cornu_op_reshape(cornu_op_slice(d[0], &start, &count), x.shape);
        end = start + count;
    }
}
CornuGradient *const cornu__pack_gradient = pack_gradient;
