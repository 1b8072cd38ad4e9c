/* How losses that are layers are read: for loss_config.c, on which the readers of layers depend. */
#include "architecture_internal.h"

CornuLoss *(*const cornu__read_traced_loss)(const json_t *value) = cornu__traced_loss_from_json;
