/* Updates of the rows that were looked up. They end a step: gradients never pass through them. */
#include "../graph_internal.h"

CornuTensor *cornu_op_unique_rows(CornuTensor *indices, int64_t rows, CornuTensor **positions)
{
    CornuTensor    *out[CORNU_MAX_OUTPUTS] = { NULL };
    CornuAttributes attributes = { .rows = { .rows = rows } };
    CornuTensor    *unique = cornu__record(CORNU_OP_UNIQUE_ROWS, &attributes, &indices, 1, out);
    *positions = unique ? out[1] : NULL;
    return unique;
}
CornuGradient *const cornu__unique_rows_gradient = CORNU_NO_GRADIENT;

CornuTensor *cornu_op_scatter_rows(CornuTensor *table, CornuTensor *indices, CornuTensor *values)
{
    CornuTensor *in[3] = { table, indices, values }, *out[CORNU_MAX_OUTPUTS];
    return cornu__record(CORNU_OP_SCATTER_ROWS, NULL, in, 3, out);
}
CornuGradient *const cornu__scatter_rows_gradient = CORNU_NO_GRADIENT;

/* ---- Gradients as lists of rows ---- */

/* The lookups whose gradients are added up. */
typedef struct {
    CornuTensor **rows, **indices;
    int           count, row_space, index_space;
} Lookups;

/* Padding, -1, as row `rows` of the table, which there is not. */
static CornuTensor *without_padding(CornuTensor *indices, int64_t rows)
{
    if (!indices) return NULL;
    CornuTensor *is_row = cornu_op_compare(indices, CORNU_GREATER_EQUAL,
                                           cornu_op_constant_like(indices, 0.0));
    return cornu_op_select(is_row, indices, cornu_op_constant_like(indices, (double)rows));
}

/* cornu_gradients adds up the gradients of several lookups, and those alone. */
static CornuStatus collect(CornuTensor *gradient, Lookups *lookups)
{
    const CornuProgram *program = gradient->graph->program;
    const int           maker = program->values[gradient->value].op;
    const CornuOpId     id = maker < 0 ? CORNU_OP_COUNT : program->ops[maker].id;
    if (id != CORNU_OP_ADD && id != CORNU_OP_GATHER_GRAD)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "the gradient comes from %s, expected lookups "
                           "alone", id == CORNU_OP_COUNT ? "an input" : cornu_op_name(id));
    CornuTensor *in[2];
    for (int k = 0; k < 2; k++) {
        const CornuProgramOp *op = &gradient->graph->program->ops[maker];
        in[k] = cornu__tensor(gradient->graph,
                              cornu_program_operands(gradient->graph->program, op)[k]);
        if (!in[k]) return cornu_error_take();
    }
    if (id == CORNU_OP_ADD) {
        CORNU__TRY(collect(in[0], lookups));
        return collect(in[1], lookups);
    }
    CORNU__TRY(cornu__reserve(&lookups->rows, &lookups->row_space, lookups->count, 1,
                              sizeof *lookups->rows));
    CORNU__TRY(cornu__reserve(&lookups->indices, &lookups->index_space, lookups->count, 1,
                              sizeof *lookups->indices));
    const bool    is_padded = gradient->graph->program->ops[maker].attributes.gather_grad.padded ==
                              CORNU_PADDED_BELOW;
    const int64_t table = cornu_tensor_shape(gradient).extent[0];
    const int64_t count = cornu_type_count(cornu_tensor_type(in[1]));
    CornuTensor  *indices = cornu_op_convert(cornu_op_reshape(in[1], cornu_shape(count)),
                                             CORNU_I32);
    const int64_t columns = cornu_tensor_shape(gradient).extent[1];
    CornuTensor  *rows = cornu_op_reshape(in[0], cornu_shape(count, columns));
    lookups->rows[lookups->count] = cornu_op_convert(rows, CORNU_F32);
    lookups->indices[lookups->count++] = is_padded ? without_padding(indices, table) : indices;
    return CORNU_OK;
}

CornuStatus cornu_op_gradient_rows(CornuTensor *gradient, CornuTensor **rows,
                                   CornuTensor **indices)
{
    Lookups     lookups = { 0 };
    CornuStatus status = gradient ? collect(gradient, &lookups) : cornu_error_take();
    if (!status && lookups.count > 0) {
        const bool several = lookups.count > 1;
        *rows = several ? cornu_op_concat(lookups.rows, lookups.count, 0) : lookups.rows[0];
        *indices = several ? cornu_op_concat(lookups.indices, lookups.count, 0)
                           : lookups.indices[0];
        status = cornu_error_pending() ? cornu_error_take() : CORNU_OK;
    }
    cornu__release(lookups.rows);
    cornu__release(lookups.indices);
    return status;
}
