/* The parts of an estimator. */
#ifndef CORNU_NN_ESTIMATOR_INTERNAL_H
#define CORNU_NN_ESTIMATOR_INTERNAL_H

#include "../../device/memory_internal.h"
#include "../formats/safetensors.h"
#include "../training/training_internal.h"
#include "estimator.h"

struct CornuTPUEstimator {
    CornuModelFn  *model_fn;
    char          *model_dir, *master, *evaluation_master;   /* NULL: the default */
    char          *feature_names[CORNU_MAX_MODEL_TENSORS];
    int            feature_count;
    CornuRunConfig config;         /* resolved, without the strings, which are those above */
    const void    *params;
    bool           use_tpu, eval_on_tpu;
    int64_t        batch_size[CORNU_MODE_PREDICT + 1];       /* of a mode */
    CornuDevice   *device, *eval_device;                     /* NULL: not opened yet; may be one */
    char          *latest;         /* see cornu_estimator_latest_checkpoint */
};

struct CornuTPUEstimatorSpec {
    CornuTPUEstimatorSpecConfig config;   /* names are copies */
};

void cornu__spec_free(CornuTPUEstimatorSpec *spec);

/* ---- RunConfig ---- */

/* CORNU_ERR_ARGUMENT or CORNU_ERR_UNSUPPORTED naming a wrong field. */
CornuStatus cornu__tpu_config_check(const CornuTPUConfig *config);
CornuStatus cornu__run_config_check(const CornuRunConfig *config);

/* With the defaults filled in: keep_checkpoint_max is CORNU_NONE for all, and of
 * save_checkpoints_steps and _secs one is 0, or both where none are written. */
CornuRunConfig cornu__run_config_resolve(const CornuRunConfig *config);

/* ---- The models of the modes ---- */

/* A compiled model and its data, as a mode needs them. */
typedef struct {
    CornuModel            *model;
    CornuTPUEstimatorSpec *spec;         /* what is left of it: hooks, names */
    CornuDataset          *data;         /* batched; the components in the model's order */
    int                    copied[CORNU_MAX_COMPONENTS];  /* the component that is each of them, if
                                                             they had to be put in order */
    int                    components;
    char                  *keys[CORNU_MAX_MODEL_TENSORS]; /* the outputs of a prediction, sorted */
    int                    key_count;
} CornuEstimatorModel;

/* Calls input_fn and model_fn, and makes and compiles the model. `exports`: its outputs are those
 * of an exported model. On failure everything is closed. */
CornuStatus cornu__estimator_model_open(CornuTPUEstimator *estimator, CornuModeKeys mode,
                                        CornuInputFn *input_fn, bool exports,
                                        CornuEstimatorModel *to);
void        cornu__estimator_model_close(CornuEstimatorModel *of);

/* The device that trains, or evaluates and predicts; opened by the first call. NULL with a pending
 * error. */
CornuDevice *cornu__estimator_device(CornuTPUEstimator *estimator, CornuModeKeys mode);

/* ---- Checkpoints ---- */

/* The file `checkpoint`: the global steps of the checkpoints in a folder, the newest last. */
typedef struct {
    int64_t *steps;
    int      count, space;
} CornuCheckpoints;

/* CORNU_ERR_FORMAT, naming the line, for a file that is not of this form. No file: no checkpoints.
 * The caller releases them. */
CornuStatus cornu__checkpoints_read(const char *folder, CornuCheckpoints *to);
void        cornu__checkpoints_release(CornuCheckpoints *checkpoints);

/* Appends a step, in place of those that are not before it, and writes the file; then removes the
 * oldest checkpoints but the newest `keep` (CORNU_NONE: none). */
CornuStatus cornu__checkpoints_add(const char *folder, int64_t step, int64_t keep);

/* "FOLDER/model.ckpt-300.safetensors"; the caller releases it. NULL when out of memory. */
char *cornu__checkpoint_path(const char *folder, int64_t step);

/* Removes what a killed process was writing in the folder, which no other process writes. */
void cornu__checkpoints_clean(const char *folder);

/* Sets the model's weights to those of the checkpoint at the path or, without one, the newest in
 * the folder, and *step to its global step. Without any the weights stay: CORNU_OK, step 0. */
CornuStatus cornu__checkpoint_load(const CornuTPUEstimator *estimator, const char *path,
                                   CornuModel *model, const char *what, int64_t *step);

/* ---- Training ---- */

/* A hook that goes on from a checkpoint, writes checkpoints and events, and logs. NULL with a
 * pending error. */
CornuCallback *cornu__estimator_hook(const CornuTPUEstimator *estimator, int64_t max_steps);

#endif
