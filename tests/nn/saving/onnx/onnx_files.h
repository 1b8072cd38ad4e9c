/* Models of tests as files, and what the ONNX runtime makes of them. */
#ifndef CORNU_TESTS_NN_ONNX_FILES_H
#define CORNU_TESTS_NN_ONNX_FILES_H

#include "../../../../nn/cornu.h"

/* A path in the folder of the test. */
const char *onnx_file(const char *name, const char *suffix);

/* Writes NAME.onnx, and inputs and outputs to NAME.npz: of batches whose unknown extents are
 * `unknown`. `opset` 0 is the usual one. Every weight is distinct, so that none can be confused;
 * with `near` it is close to the initial value, for models too deep for others. Frees the model. */
void onnx_write_case(CornuDevice *device, const char *name, CornuModel *model, bool near,
                     int64_t unknown, int opset);

/* The same as a file of another suffix. */
void onnx_write_as(CornuDevice *device, const char *name, const char *suffix, CornuModel *model,
                   bool near, int64_t unknown, int opset);

/* Runs all `count` files that were written; skipped without a runtime. `outputs` is the file for
 * what it computed, or "". */
void onnx_run_elsewhere(int count, const char *outputs);

#endif
