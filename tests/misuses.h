/*
 * Misuse of the public interface: each ends with a status, or NULL, and a message that names the
 * function, the argument and the error. A test_misuse.c has a list of them by MISUSE.
 */
#ifndef CORNU_TESTS_MISUSES_H
#define CORNU_TESTS_MISUSES_H

#include "../nn/cornu.h"
#include "datasets/files.h"

typedef struct {
    const char *what;          /* the misuse */
    const char *says;          /* parts of the message, separated by | */
    bool      (*misuse)(void); /* whether it failed as it should */
} Misuse;

#define MISUSE(name, says) { #name, says, name }

/* The main of a test_misuse.c. Each runs in its own process, so that a crash is counted and
 * named. */
int misuses_run(const Misuse *misuses, size_t count);

/* True where the status was a failure. */
static inline bool failed(CornuStatus status) { return status != CORNU_OK; }

/* True if there is no result; takes a pending error. */
static inline bool nothing(const void *object)
{
    cornu_error_take();
    return !object;
}

static inline const char *file(const char *name) { return files_path(folder, name); }

/* ---- A model and its data ---- */

static float x[32][2], y[32][1];

static inline CornuArray data_x(void) { return cornu_array(x, CORNU_F32, 32, 2); }
static inline CornuArray data_y(void) { return cornu_array(y, CORNU_F32, 32, 1); }

static inline CornuModel *built(void)
{
    CornuModel *model = cornu_sequential(.name = "model", .input_shape = { 2 });
    cornu_model_add(model, cornu_dense(1));
    return model;
}

static inline CornuModel *compiled(void)
{
    CornuModel *model = built();
    cornu_compile(model, .loss = CORNU_MEAN_SQUARED_ERROR);
    return model;
}

static inline CornuDataset *dataset(void)
{
    return cornu_dataset_from_arrays((CornuArray[]){ data_x(), data_y() }, 2);
}

#endif
