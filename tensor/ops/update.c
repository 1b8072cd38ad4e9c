/* Optimizer updates. They end a step, so gradients never pass through them. */
#include "../tensor_internal.h"

static CornuTensor *record_update(CornuOpId id, const CornuAttributes *attributes,
                                  CornuTensor *const *in, CornuTensor **slot_1,
                                  CornuTensor **slot_2)
{
    CornuTensor *out[CORNU_MAX_OUTPUTS] = { NULL };
    CornuTensor *w = cornu__record(id, attributes, in, cornu_op_input_count(id), out);
    *slot_1 = w ? out[1] : NULL;
    if (slot_2) *slot_2 = w ? out[2] : NULL;
    return w;
}

CornuTensor *cornu_op_momentum_update(CornuTensor *w, CornuTensor *m, CornuTensor *g,
                                      CornuTensor *learning_rate, double momentum, bool nesterov,
                                      CornuTensor **new_m)
{
    CornuAttributes attributes = { .momentum = { .momentum = momentum, .nesterov = nesterov } };
    return record_update(CORNU_OP_MOMENTUM_UPDATE, &attributes,
                         (CornuTensor *[]){ w, m, g, learning_rate }, new_m, NULL);
}
CornuGradient *const cornu__momentum_update_gradient = CORNU_NO_GRADIENT;

CornuTensor *cornu_op_rmsprop_update(CornuTensor *w, CornuTensor *v, CornuTensor *g,
                                     CornuTensor *learning_rate, double rho, double epsilon,
                                     CornuTensor **new_v)
{
    CornuAttributes attributes = { .rmsprop = { .rho = rho, .epsilon = epsilon } };
    return record_update(CORNU_OP_RMSPROP_UPDATE, &attributes,
                         (CornuTensor *[]){ w, v, g, learning_rate }, new_v, NULL);
}
CornuGradient *const cornu__rmsprop_update_gradient = CORNU_NO_GRADIENT;

CornuTensor *cornu_op_adam_update(CornuTensor *w, CornuTensor *m, CornuTensor *v, CornuTensor *g,
                                  CornuTensor *learning_rate, double beta_1, double beta_2,
                                  double epsilon, CornuTensor **new_m, CornuTensor **new_v)
{
    CornuAttributes attributes = { .adam = { .beta_1 = beta_1, .beta_2 = beta_2,
                                             .epsilon = epsilon } };
    return record_update(CORNU_OP_ADAM_UPDATE, &attributes,
                         (CornuTensor *[]){ w, m, v, g, learning_rate }, new_m, new_v);
}
CornuGradient *const cornu__adam_update_gradient = CORNU_NO_GRADIENT;
