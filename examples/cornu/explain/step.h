/* A network's compiled training step, and its model on a TPU: what the parts of explain share. */
#ifndef CORNU_EXAMPLES_EXPLAIN_STEP_H
#define CORNU_EXAMPLES_EXPLAIN_STEP_H

#include <cornu/cornu.h>

#include "../common/options.h"

/* A network with its published optimizer on a device, and its training step for one batch size. The
 * caller frees the model, which owns the step. */
typedef struct {
    CornuModel      *model;
    CornuType        x, y;
    CornuExecutable *executable;
} ExplainStep;

CornuStatus explain_make(ExplainStep *step, const CornuReferenceModel *reference,
                         CornuDevice *device, int64_t batch);

/* Compiles the step for another batch size. */
CornuStatus explain_take_batch(ExplainStep *step, int64_t batch);

/* The passes of a product of f32, by --precision. */
int explain_passes(const Options *options);

/* Models the executable on the profile, NULL for that of its device; the caller frees it. */
CornuStatus explain_model(const Options *options, const CornuExecutable *executable,
                          const CornuTpuProfile *profile, const CornuTpuModel **to);

#endif
