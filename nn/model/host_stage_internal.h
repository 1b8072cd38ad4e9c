/* The part of a model that runs on the host, before the step. */
#ifndef CORNU_NN_HOST_STAGE_INTERNAL_H
#define CORNU_NN_HOST_STAGE_INTERNAL_H

#include "../layers/preprocessing/host_program_internal.h"
#include "model_internal.h"

/* Whether a layer of the model, or of a model in it, runs on the host. */
bool cornu__model_on_host(const CornuModel *model);

/* The values that a step is fed with: the model's inputs, unless layers run on the host; then those
 * that the step takes, and the results of these layers. Returns their number. */
int cornu__model_fed(const CornuModel *model, CornuSymbol *fed[CORNU_MAX_MODEL_TENSORS]);

/* Records the model's calls, for values of these types in the order of cornu__model_fed, in a graph
 * that is never run. False with a pending error. */
bool cornu__model_trace(const CornuModel *model, CornuGraph *graph, const CornuType *types,
                        CornuTensor **in, CornuTensor **out);

/* Puts what the model is fed with in its places among the values and masks; begin[i] is where in
 * `in` that of a model begins which is called by calls[i] and has layers on the host, else -1. It
 * is set where the model has layers on the host. */
void cornu__model_place_fed(const CornuModel *model, CornuTensor *const *in,
                            CornuTensor *const *in_masks, CornuTensor **values,
                            CornuTensor **masks, int *begin);

/* Makes the operands of such a call what the model within is fed with, given the results of its
 * layers on the host. Returns their number. */
int cornu__model_feed_within(const CornuModelCall *call, CornuTensor *const *results,
                             CornuTensor **x, CornuTensor **x_masks);

/* For the classes of models, as CornuHostStage has them. */
bool        cornu__stage_has(const CornuLayer *layer);
bool        cornu__stage_takes(const CornuLayer *layer, int operand);
CornuStatus cornu__stage_types(const CornuLayer *layer, const CornuType *in, int in_count,
                               CornuType *out);

/* The program that computes them from the inputs. Of `given` arrays those after the inputs are
 * passed on. Its calls are freed with cornu__release. */
CornuStatus cornu__model_host_program(const CornuModel *model, int given, CornuHostProgram *to);

#endif
