/* Arrays in the HDF5 files of Keras 2, and in those that Keras 3 writes in that format. */
#ifndef CORNU_NN_KERAS2_WEIGHTS_INTERNAL_H
#define CORNU_NN_KERAS2_WEIGHTS_INTERNAL_H

#include "../files_internal.h"
#include "../../formats/hdf5_internal.h"

/* Reads weights, and the variables of the model's optimizer where values->variables is not 0; sets
 * that to 0 if the file has none. As cornu__keras_read_values. */
CornuStatus cornu__keras2_read_weights(CornuHdf5 *file, const CornuModel *model,
                                       CornuValues *values);

/* Writes them as Keras 3 does into files of this format: the weights of each layer of the model,
 * and the optimizer's variables, by their names, which attributes list. CORNU_ERR_UNSUPPORTED for
 * what Keras has no place for there: weights of 8 bits, and what layers have beside their
 * weights. */
CornuStatus cornu__keras2_write_values(CornuHdf5 *file, const CornuModel *model,
                                       const CornuValues *values);

/* The part of it that reads the optimizer (optimizer_values.c). */
CornuStatus cornu__keras2_read_optimizer(CornuHdf5 *file, const CornuModel *model,
                                         CornuValues *values);

/* Whether variable i of the model's optimizer is none that Keras 2 has in its files; and its value,
 * once the iteration, the first variable, has been read. */
bool        cornu__keras2_lacks(const CornuModel *model, int i);
CornuStatus cornu__keras2_complete(const CornuModel *model, int i, CornuValues *values);

/* "group/name", or the name alone without a group. CORNU_ERR_UNSUPPORTED for a longer one. */
enum { CORNU_KERAS2_MAX_PATH = 1200 };
CornuStatus cornu__keras2_path(char path[CORNU_KERAS2_MAX_PATH], const char *group,
                               const char *name);

/* The weights of a layer in the order of such files, trainable ones first, as their numbers in the
 * model. Returns how many there are. */
int cornu__keras2_order(const CornuModel *model, const CornuLayer *layer, int *order);

/* A list of names that an attribute of the group has; *count is -1 if there is none. */
CornuStatus cornu__keras2_names(CornuHdf5 *file, const char *group, const char *name,
                                char ***texts, int64_t *count);

#endif
