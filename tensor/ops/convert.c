/* convert: in its own file, since gradients of most families use it. */
#include "../graph_internal.h"

CornuTensor *cornu_op_convert(CornuTensor *x, CornuDtype dtype)
{
    if (x && cornu_tensor_type(x).dtype == dtype) return x;
    CornuAttributes attributes = { .convert = { .dtype = dtype } };
    CornuTensor    *out[CORNU_MAX_OUTPUTS];
    return cornu__record(CORNU_OP_CONVERT, &attributes, &x, 1, out);
}

/* The gradient of a float converts back; integers have none. */
static void convert_gradient(const CornuRecorded *op, CornuTensor *const *d, CornuTensor **d_x)
{
    CornuDtype from = cornu_tensor_type(op->in[0]).dtype;
    if (cornu_dtype_is_float(from)) d_x[0] = cornu_op_convert(d[0], from);
}
CornuGradient *const cornu__convert_gradient = convert_gradient;

CornuTensor *cornu__argument_of(CornuTensor *y, CornuOpId op)
{
    if (!y) return NULL;
    const CornuProgram *program = y->graph->program;
    const CornuDtype    dtype = cornu_tensor_type(y).dtype;
    CornuValue          value = y->value;
    while (program->values[value].op >= 0) {
        const CornuProgramOp *made = &program->ops[program->values[value].op];
        const CornuValue      in = cornu_program_operands(program, made)[0];
        if (made->id == op)
            return cornu_op_convert(cornu__tensor(y->graph, in), dtype);
        if (made->id != CORNU_OP_CONVERT || !cornu_dtype_is_float(program->values[in].type.dtype))
            break;
        value = in;
    }
    return NULL;
}
