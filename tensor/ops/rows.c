/* Updates of the rows that were looked up. They end a step, so gradients never pass through them. */
#include "../tensor_internal.h"

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
