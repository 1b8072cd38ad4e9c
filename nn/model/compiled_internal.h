/* The functions of cornu__compiled. */
#ifndef CORNU_NN_COMPILED_INTERNAL_H
#define CORNU_NN_COMPILED_INTERNAL_H

#include "model_internal.h"

CornuStatus cornu__compiled_build(CornuModel *model);
CornuStatus cornu__compiled_follow(CornuModel *model);
CornuStatus cornu__compiled_scale_loss(CornuModel *model);
CornuStatus cornu__compiled_pack(CornuModel *model);
void        cornu__compiled_free(CornuModel *model);

/* training/record_loss.c */
CornuStatus cornu__compiled_record(CornuModel *model, CornuStep *step, CornuTensor *const *masks,
                                   CornuTensor *added);
/* training/own_step.c */
CornuStatus cornu__compiled_own(CornuModel *model, CornuStep *step);
/* training/pipeline_step.c */
CornuStatus cornu__compiled_pipeline(const CornuModel *model, CornuStep *step);

/* explain/auto_advice.c */
void        cornu__compiled_advise(CornuModel *model, const CornuArray *x, const CornuArray *y);

#endif
