/* The part of a model that runs on the host, before the step. */
#ifndef CORNU_NN_HOST_STAGE_INTERNAL_H
#define CORNU_NN_HOST_STAGE_INTERNAL_H

#include "../layers/preprocessing/host_program_internal.h"
#include "model_internal.h"

/* Whether a layer of the model runs on the host. */
bool cornu__model_on_host(const CornuModel *model);

/* The values that a step is fed with: the model's inputs, unless layers run on the host. Returns
 * their number. */
int cornu__model_fed(const CornuModel *model, CornuSymbol *fed[CORNU_MAX_MODEL_TENSORS]);

/* The program that computes them from the inputs. Of `given` arrays those after the inputs are
 * passed on. Its calls are freed with cornu__release. */
CornuStatus cornu__model_host_program(const CornuModel *model, int given, CornuHostProgram *to);

#endif
