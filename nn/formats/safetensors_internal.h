/* What .safetensors and .npz files share, and files that another process has read. */
#ifndef CORNU_NN_SAFETENSORS_INTERNAL_H
#define CORNU_NN_SAFETENSORS_INTERNAL_H

#include "../../device/status_internal.h"
#include "../../device/files/file_internal.h"
#include "safetensors.h"

/* CORNU_ERR_ARGUMENT, naming the public function, for a negative count and for arrays without a
 * name or data. */
CornuStatus cornu__check_named(const char *function, const CornuNamedArray *arrays, int count);

/* cornu_safetensors_open for the bytes of a file, which are taken; messages name no file. */
CornuSafetensors *cornu__safetensors_of(CornuFileBytes *bytes);

/* All bytes of an open file, which keeps them. */
CornuFileBytes cornu__safetensors_bytes(const CornuSafetensors *file);

#endif
