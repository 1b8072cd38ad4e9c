/* The parts of ModelCheckpoint, for tests. */
#ifndef CORNU_NN_CHECKPOINT_INTERNAL_H
#define CORNU_NN_CHECKPOINT_INTERNAL_H

#include "checkpoint.h"

typedef CornuStatus CornuSave(CornuModel *model, const char *path, bool weights_only);

/* A checkpoint that saves through `save`. */
CornuCallback *cornu__checkpoint_create(const CornuModelCheckpointConfig *config, CornuSave *save);

/* Fills {epoch}, {batch} (negative: there is none) and {LOG}, as Python's str.format. The
 * caller releases *path by cornu__release. */
CornuStatus cornu__fill_path(const char *filepath, int64_t epoch, int64_t batch,
                             const CornuLogs *logs, char **path);

#endif
