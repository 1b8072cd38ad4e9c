/* What .safetensors and .npz files share. */
#ifndef CORNU_NN_SAFETENSORS_INTERNAL_H
#define CORNU_NN_SAFETENSORS_INTERNAL_H

#include "../../device/status_internal.h"
#include "safetensors.h"

/* CORNU_ERR_ARGUMENT, naming the public function, for a negative count and for arrays without a
 * name or data. */
CornuStatus cornu__check_named(const char *function, const CornuNamedArray *arrays, int count);

#endif
