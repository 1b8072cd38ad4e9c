/* Layers that run on the host, before a step: see nn/layers/README.md. */
#ifndef CORNU_NN_HOST_INTERNAL_H
#define CORNU_NN_HOST_INTERNAL_H

#include "categories_internal.h"
#include "../text_layers.h"

/* Whether the layer runs on the host. */
static inline bool cornu__on_host(const CornuLayer *layer)
{
    return layer->kind->host_call && (!layer->kind->moves_to_host || layer->moved_to_host);
}

/* For class tables, kind->types, made of kind->host_type. */
CornuStatus cornu__host_types(CornuLayer *layer, const CornuType *in, int in_count, CornuType *out);
/* For class tables, kind->call_many: the refusal of a call on tensors. */
CornuTensor *cornu__host_call_refused(CornuLayer *layer, const CornuCall *call,
                                      CornuTensor *const *in, int in_count, CornuTensor **out);

/* The type of places of this shape, encoded; `axis_1` is the extent that modes other than int and
 * one_hot sum. */
CornuStatus cornu__host_encoded_type(CornuShape shape, CornuOutputMode mode, int64_t depth,
                                     CornuType *out);
/* Encodes places of this shape; one that is not in [0, depth) is in no category. With weights, of
 * tf_idf, one for each place. */
void cornu__host_encode(const int64_t *places, CornuShape shape, CornuOutputMode mode,
                        int64_t depth, const double *weights, CornuArray out);

/* CORNU_ERR_VALUE for a NaN among numbers that are to be whole. */
CornuStatus cornu__host_check_whole(CornuArray array);
/* Element i, a number, truncated; one beyond i64 is the last one there. */
int64_t     cornu__host_whole(CornuArray array, int64_t i);

/* The string of element i, "" for NULL; a number, truncated, as a decimal, in `decimal`. */
const char *cornu__host_text(CornuArray array, int64_t i, char decimal[24]);

/* salt[2] from one number or two. CORNU_ERR_ARGUMENT unless they are whole. */
CornuStatus cornu__read_salt(const char *layer, const CornuNumbers *salt, uint64_t key[2]);
/* Below `bins`: by SipHash with a key, or else FarmHash. */
int64_t cornu__hash_bin(const char *text, size_t length, const uint64_t *key, int64_t bins);

#endif
