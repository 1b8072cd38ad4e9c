/* Random numbers and dropout: recording; the gradient of dropout draws the mask again. */
#include "../tensor_internal.h"

CornuTensor *cornu_op_random_uniform(CornuShape shape, CornuTensor *seed, CornuTensor *iteration,
                                     CornuTensor *position, int64_t generator)
{
    CornuAttributes attributes = { .random = { .rank = shape.rank, .generator = generator } };
    for (int i = 0; i < shape.rank && i < CORNU_MAX_RANK; i++)
        attributes.random.extents[i] = shape.extent[i];
    CornuTensor *in[3] = { seed, iteration, position }, *out[CORNU_MAX_OUTPUTS];
    return cornu__record(CORNU_OP_RANDOM_UNIFORM, &attributes, in, 3, out);
}
CornuGradient *const cornu__random_uniform_gradient = CORNU_NO_GRADIENT;

CornuTensor *cornu_op_dropout(CornuTensor *x, double rate, CornuTensor *seed,
                              CornuTensor *iteration, CornuTensor *position, int64_t generator)
{
    CornuAttributes attributes = { .dropout = { .rate = rate, .generator = generator } };
    CornuTensor    *in[4] = { x, seed, iteration, position }, *out[CORNU_MAX_OUTPUTS];
    return cornu__record(CORNU_OP_DROPOUT, &attributes, in, 4, out);
}

/* d_x = d times the mask, which is drawn again instead of being kept. */
static void dropout_gradient(const CornuRecorded *op, CornuTensor *const *d, CornuTensor **d_x)
{
    d_x[0] = cornu_op_dropout(d[0], op->attributes->dropout.rate, op->in[1], op->in[2], op->in[3],
                              op->attributes->dropout.generator);
}
CornuGradient *const cornu__dropout_gradient = dropout_gradient;
