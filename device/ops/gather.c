/* Lookup of rows in a table, and its gradient with respect to the table. */
#include "rules.h"

static bool is_row(double index, int64_t rows) { return index >= 0.0 && index < (double)rows; }

static CornuStatus check_index(double index, int64_t row, int64_t count, int64_t rows,
                               int64_t padded)
{
    if (is_row(index, rows) || (padded == CORNU_PADDED_BELOW && index == -1.0) ||
        (padded == CORNU_PADDED_ABOVE && index == (double)rows))
        return CORNU_OK;
    return cornu__fail_element((CornuFault){ .index = row, .count = count }, "index",
                               cornu__as_integer(index), rows - 1);
}

static CornuStatus expect_indices(const CornuOpCall *call, const char *names)
{
    if (cornu__is_integer(call->in[1].dtype)) return CORNU_OK;
    return cornu__refuse(call, CORNU_ERR_DTYPE, names, "expected integers as indices");
}

/* gather: table (V, C) of any dtype and integer indices (..) give (.., C), a row of the table for
 * each index; where padded, zeros for the index of no row, -1 or V. Any other index outside [0, V)
 * is an error. */
static CornuStatus gather_type(const CornuOpCall *call, CornuType *out)
{
    static const char names[] = "table indices";
    CornuShape        shape = call->in[1].shape;
    CORNU__TRY(cornu__expect_rank(call, 0, 2, names));
    CORNU__TRY(expect_indices(call, names));
    if (shape.rank == CORNU_MAX_RANK)
        return cornu__refuse(call, CORNU_ERR_SHAPE, names, "the result would have rank %d, "
                             "expected at most %d", shape.rank + 1, CORNU_MAX_RANK);
    shape.extent[shape.rank++] = call->in[0].shape.extent[1];
    out[0] = cornu_type_from(call->in[0].dtype, shape);
    return CORNU_OK;
}

static CornuStatus gather_reference(const CornuReferenceCall *call)
{
    const int64_t rows = call->op.in[0].shape.extent[0], columns = call->op.in[0].shape.extent[1];
    const int64_t count = cornu_type_count(call->op.in[1]);
    for (int64_t i = 0; i < count; i++) {
        const double index = call->in[1][i];
        CORNU__TRY(check_index(index, i, count, rows, call->op.attributes->gather.padded));
        for (int64_t k = 0; k < columns; k++)
            call->out[0][i * columns + k] =
                is_row(index, rows) ? call->in[0][(int64_t)index * columns + k] : 0.0;
    }
    return CORNU_OK;
}

const CornuOpRules cornu__gather_rules = {
    gather_type, CORNU_NO_FLOPS, CORNU_PRIMITIVE, gather_reference,
};

/* gather_grad: d_y (.., C) and the indices (..) give d_table (rows, C) of the attribute's dtype:
 * each row is the sum of the d_y with its index, zero if there is none; where padded, d_y of
 * the index of no row are left out. */
static CornuStatus gather_grad_type(const CornuOpCall *call, CornuType *out)
{
    static const char                  names[] = "d_y indices";
    const CornuAttributes_GATHER_GRAD *grad = &call->attributes->gather_grad;
    CornuShape                         lookup = call->in[0].shape;
    CORNU__TRY(cornu__expect_float(call, 0, names));
    CORNU__TRY(expect_indices(call, names));
    if (!cornu_dtype_is_float(grad->dtype))
        return cornu__refuse(call, CORNU_ERR_DTYPE, names, "result dtype is %s, expected a float",
                             cornu_dtype_name(grad->dtype));
    if (lookup.rank < 1)
        return cornu__refuse(call, CORNU_ERR_SHAPE, names,
                             "expected one more axis than the indices");
    const int64_t columns = lookup.extent[--lookup.rank];
    lookup.extent[lookup.rank] = 0;
    if (!cornu_shape_equal(lookup, call->in[1].shape))
        return cornu__refuse(call, CORNU_ERR_SHAPE, names,
                             "indices must have the shape of d_y without its last axis");
    out[0] = cornu_type(grad->dtype, grad->rows, columns);
    return CORNU_OK;
}

static CornuStatus gather_grad_reference(const CornuReferenceCall *call)
{
    const int64_t rows = call->out_type[0].shape.extent[0];
    const int64_t columns = call->out_type[0].shape.extent[1];
    for (int64_t i = 0; i < call->count; i++) call->out[0][i] = 0.0;
    const int64_t count = cornu_type_count(call->op.in[1]);
    for (int64_t i = 0; i < count; i++) {
        const double index = call->in[1][i];
        CORNU__TRY(check_index(index, i, count, rows, call->op.attributes->gather_grad.padded));
        for (int64_t k = 0; k < columns && is_row(index, rows); k++)
            call->out[0][(int64_t)index * columns + k] += call->in[0][i * columns + k];
    }
    return CORNU_OK;
}

const CornuOpRules cornu__gather_grad_rules = {
    gather_grad_type, cornu__flops_per_element, CORNU_PRIMITIVE, gather_grad_reference,
};
