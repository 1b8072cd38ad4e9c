/* The rows of a table that were looked up: which they are, and their replacement. */
#include "rules.h"

static CornuStatus expect_indices(const CornuOpCall *call, int i, const char *names)
{
    if (cornu__is_integer(call->in[i].dtype)) return CORNU_OK;
    return cornu__refuse(call, CORNU_ERR_DTYPE, names, "expected integers as indices");
}

static CornuStatus check_index(double index, int64_t i, int64_t count, int64_t rows)
{
    if (index >= 0.0 && index <= (double)rows) return CORNU_OK;
    return cornu__fail_element((CornuFault){ .index = i, .count = count }, "index",
                               cornu__as_integer(index), rows);
}

/*
 * unique_rows: integer indices (N) in [0, rows] give the distinct ones, ascending, and where each
 * index is among them: i32 (N), i32 (N). The first result is filled up with `rows`, which stands
 * for no row.
 */
static CornuStatus unique_rows_type(const CornuOpCall *call, CornuType *out)
{
    static const char names[] = "indices";
    const int64_t     rows = call->attributes->rows.rows;
    CORNU__TRY(expect_indices(call, 0, names));
    CORNU__TRY(cornu__expect_rank(call, 0, 1, names));
    if (rows < 0 || rows > INT32_MAX)
        return cornu__refuse(call, CORNU_ERR_SHAPE, names, "a table of %lld rows, expected 0 to %d",
                             (long long)rows, INT32_MAX);
    out[0] = out[1] = cornu_type(CORNU_I32, call->in[0].shape.extent[0]);
    return CORNU_OK;
}

static CornuStatus unique_rows_reference(const CornuReferenceCall *call)
{
    const double *x = call->in[0], rows = (double)call->op.attributes->rows.rows;
    double       *unique = call->out[0], *position = call->out[1];
    for (int64_t i = 0; i < call->count; i++)
        CORNU__TRY(check_index(x[i], i, call->count, call->op.attributes->rows.rows));
    double last = -1.0;
    for (int64_t k = 0; k < call->count; k++) {   /* the smallest index above the last one */
        double next = rows;
        for (int64_t i = 0; i < call->count; i++)
            if (x[i] > last && x[i] < next) next = x[i];
        unique[k] = last = next;
    }
    for (int64_t i = 0; i < call->count; i++)
        for (position[i] = 0.0; unique[(int64_t)position[i]] != x[i];) position[i]++;
    return CORNU_OK;
}

const CornuOpRules cornu__unique_rows_rules = {
    unique_rows_type, CORNU_NO_FLOPS, CORNU_PRIMITIVE, unique_rows_reference,
};

/*
 * scatter_rows: table (V, C), integer indices (N) and values (N, C) of the table's dtype give the
 * table with row indices[i] replaced by values[i]. Indices that are V are skipped; the others
 * differ from each other.
 */
static CornuStatus scatter_rows_type(const CornuOpCall *call, CornuType *out)
{
    static const char names[] = "table indices values";
    const CornuType  *in = call->in;
    CORNU__TRY(cornu__expect_rank(call, 0, 2, names));
    CORNU__TRY(expect_indices(call, 1, names));
    CORNU__TRY(cornu__expect_rank(call, 1, 1, names));
    CORNU__TRY(cornu__expect_rank(call, 2, 2, names));
    CORNU__TRY(cornu__expect_dtype(call, 2, in[0].dtype, names));
    if (in[2].shape.extent[0] != in[1].shape.extent[0] ||
        in[2].shape.extent[1] != in[0].shape.extent[1])
        return cornu__refuse(call, CORNU_ERR_SHAPE, names, "expected a row of the table for each "
                             "index");
    out[0] = in[0];
    return CORNU_OK;
}

static CornuStatus scatter_rows_reference(const CornuReferenceCall *call)
{
    const CornuShape shape = call->op.in[0].shape;
    const int64_t    count = cornu_type_count(call->op.in[1]), columns = shape.extent[1];
    for (int64_t i = 0; i < count; i++)
        CORNU__TRY(check_index(call->in[1][i], i, count, shape.extent[0]));
    for (int64_t i = 0; i < call->count; i++) call->out[0][i] = call->in[0][i];
    for (int64_t i = 0; i < count; i++)
        for (int64_t k = 0; k < columns && call->in[1][i] < (double)shape.extent[0]; k++)
            call->out[0][(int64_t)call->in[1][i] * columns + k] = call->in[2][i * columns + k];
    return CORNU_OK;
}

const CornuOpRules cornu__scatter_rows_rules = {
    scatter_rows_type, CORNU_NO_FLOPS, CORNU_PRIMITIVE, scatter_rows_reference,
};
