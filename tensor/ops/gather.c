/* Lookups of rows: indices, gathering, sums by index: recording and gradients. */
#include "../tensor_internal.h"

CornuTensor *cornu_op_indices(CornuTensor *x)
{
    if (!x || !cornu_dtype_is_float(cornu_tensor_type(x).dtype)) return x;
    CornuTensor *whole = cornu_op_convert(x, CORNU_I64);
    CornuTensor *nan = whole ? cornu_op_constant_like(whole, (double)CORNU__NAN_INDEX) : NULL;
    return cornu_op_select(cornu_op_compare(x, CORNU_NOT_EQUAL, x), nan, whole);
}

static CornuTensor *record_gather(CornuTensor *table, CornuTensor *indices, int64_t padded)
{
    CornuTensor    *in[2] = { table, indices }, *out[CORNU_MAX_OUTPUTS];
    CornuAttributes attributes = { .gather = { .padded = padded } };
    return cornu__record(CORNU_OP_GATHER, &attributes, in, 2, out);
}

CornuTensor *cornu_op_gather(CornuTensor *table, CornuTensor *indices)
{
    return record_gather(table, indices, 0);
}

CornuTensor *cornu_op_gather_padded(CornuTensor *table, CornuTensor *indices)
{
    return record_gather(table, indices, CORNU_PADDED_BELOW);
}

CornuTensor *cornu_op_gather_rows(CornuTensor *table, CornuTensor *rows)
{
    return record_gather(table, rows, CORNU_PADDED_ABOVE);
}

static CornuTensor *segment_sum(CornuTensor *x, CornuTensor *indices, int64_t rows,
                                CornuDtype dtype, int64_t padded)
{
    CornuTensor    *in[2] = { x, indices }, *out[CORNU_MAX_OUTPUTS];
    CornuAttributes attributes = { .gather_grad = { .rows = rows, .dtype = dtype,
                                                    .padded = padded } };
    return cornu__record(CORNU_OP_GATHER_GRAD, &attributes, in, 2, out);
}

CornuTensor *cornu_op_segment_sum(CornuTensor *x, CornuTensor *indices, int64_t rows)
{
    return segment_sum(x, indices, rows, CORNU_F32, 0);
}

/* Each row of d_table is the sum of the d_y that were gathered from it. */
static void gather_gradient(const CornuRecorded *op, CornuTensor *const *d, CornuTensor **d_x)
{
    d_x[0] = segment_sum(d[0], op->in[1], cornu_tensor_shape(op->in[0]).extent[0],
                         cornu__gradient_dtype(op->in[0]), op->attributes->gather.padded);
}
CornuGradient *const cornu__gather_gradient = gather_gradient;

/* Linear in d_y: its gradient gathers the rows. */
static void gather_grad_gradient(const CornuRecorded *op, CornuTensor *const *d, CornuTensor **d_x)
{
    CornuTensor *of_table = cornu_op_convert(d[0], cornu_tensor_type(op->in[0]).dtype);
    d_x[0] = record_gather(of_table, op->in[1], op->attributes->gather_grad.padded);
}
CornuGradient *const cornu__gather_grad_gradient = gather_grad_gradient;
