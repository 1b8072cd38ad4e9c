/*
 * Buckets: the weights divided into runs, by layer, each packed, and its slots likewise.
 *
 * The backward pass makes the gradients of the last layers first, and those of a bucket can be
 * summed over the shards while it goes on to the layers before. The division depends on the weights
 * alone, so that results do not depend on how the shards are distributed. A table with a sparse
 * gradient, and a weight that a mesh cuts, is a bucket by itself and stays where it is.
 */
#include "../../tensor/tensor_internal.h"
#include "optimizer_internal.h"

#include <stdio.h>
#include <string.h>

/* Of f32. A sum of fewer bytes takes hardly less time; with more, less of it can overlap. */
enum { BUCKET_BYTES = 1 << 20 };

/* "dense/kernel" and "dense/bias" are; a name without '/' is a layer by itself. */
static bool are_of_one_layer(const CornuVariable *a, const CornuVariable *b)
{
    const char *x = cornu_variable_name(a), *y = cornu_variable_name(b);
    const char *end_x = strrchr(x, '/'), *end_y = strrchr(y, '/');
    return end_x && end_y && end_x - x == end_y - y && memcmp(x, y, (size_t)(end_x - x)) == 0;
}

static bool is_sparse(const CornuOptimizer *optimizer, int i)
{
    return cornu_variable_has_sparse_gradient(optimizer->w[i]);
}

static bool is_cut(const CornuOptimizer *optimizer, int i)
{
    return cornu_variable_is_cut(optimizer->w[i]);
}

static bool is_alone(const CornuOptimizer *optimizer, int i)
{
    return is_sparse(optimizer, i) || is_cut(optimizer, i);
}

/* Whether weights i - 1 and i may be in one bucket: the slots of one are rounded together. */
static bool are_alike(const CornuOptimizer *optimizer, int i)
{
    return !is_alone(optimizer, i - 1) && !is_alone(optimizer, i) &&
           cornu_variable_precision(optimizer->w[i - 1]) ==
           cornu_variable_precision(optimizer->w[i]);
}

/* The first weight of the bucket that ends before weight `end`. */
static int first_before(const CornuOptimizer *optimizer, int end)
{
    const size_t enough = optimizer->bucket_bytes ? optimizer->bucket_bytes : BUCKET_BYTES;
    size_t       bytes = 0;
    int          first = end;
    do {
        bytes += cornu_type_bytes(cornu_variable_type(optimizer->w[--first]));
    } while (first > 0 && are_alike(optimizer, first) &&
             (bytes < enough ||
              are_of_one_layer(optimizer->w[first - 1], optimizer->w[first])));
    return first;
}

void cornu__optimizer_divide(CornuOptimizer *optimizer)
{
    optimizer->bucket_count = 0;
    for (int end = optimizer->count; end > 0;) {
        const int first = first_before(optimizer, end);
        optimizer->buckets[optimizer->bucket_count++] =
            (CornuBucket){ .first = first, .count = end - first,
                           .sparse = is_sparse(optimizer, first),
                           .cut = is_cut(optimizer, first) };
        end = first;
    }
}

/* Packs parts of bucket b as `name`, "weights", with several buckets "weights (1 of 2)": counted
 * in the order of the weights. */
static CornuVariable *pack_bucket(const CornuOptimizer *optimizer, int b,
                                  CornuVariable *const *parts, CornuSpread spread, const char *name)
{
    const int count = optimizer->bucket_count;
    char      text[160];
    snprintf(text, sizeof text, count > 1 ? "%s (%d of %d)" : "%s", name, count - b, count);
    return cornu_variable_pack(parts, optimizer->buckets[b].count, spread, text);
}

CornuStatus cornu__optimizer_pack(CornuOptimizer *optimizer)
{
    const bool apart = cornu__optimizer_has_groups(optimizer);
    for (int b = 0; b < optimizer->bucket_count; b++) {
        CornuBucket          *bucket = &optimizer->buckets[b];
        CornuVariable *const *w = optimizer->w + bucket->first;
        bucket->weights = cornu__is_alone(bucket) ? w[0]
                        : pack_bucket(optimizer, b, w, apart ? CORNU_DUPLICATED : CORNU_SHARED,
                                      "weights");
    }
    return cornu_error_take();
}

/* By the order of its parts: another variable may have come to the address of a freed one. */
static bool is_packed(const CornuOptimizer *optimizer, const CornuBucket *bucket)
{
    CornuVariable *const *w = optimizer->w + bucket->first;
    const CornuVariable  *whole = w[0]->whole;
    if (!whole || whole != bucket->weights || whole->segment_count != bucket->count) return false;
    for (int i = 0; i < bucket->count; i++)
        if (whole->segments[i].part != w[i]) return false;
    return true;
}

CornuStatus cornu__optimizer_check_packed(const CornuOptimizer *optimizer)
{
    for (int b = 0; b < optimizer->bucket_count; b++) {
        const CornuBucket *bucket = &optimizer->buckets[b];
        if (!cornu__is_alone(bucket) && !is_packed(optimizer, bucket))
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: apply: another optimizer was built for %s "
                               "since; expected one optimizer for each weight", optimizer->name,
                               cornu_variable_name(optimizer->w[bucket->first]));
    }
    return CORNU_OK;
}

CornuStatus cornu__optimizer_pack_slots(CornuOptimizer *optimizer, int slot, const char *name)
{
    const CornuSpread spread =
        cornu__optimizer_has_groups(optimizer) ? CORNU_DUPLICATED : CORNU_SLICED;
    CornuVariable **parts = cornu__allocate((size_t)optimizer->count, sizeof(CornuVariable *));
    char            text[128];
    if (!parts) return CORNU_ERR_MEMORY;
    snprintf(text, sizeof text, "%s/%s", optimizer->name, name);
    for (int i = 0; i < optimizer->count; i++)
        parts[i] = optimizer->slots[i * optimizer->slot_count + slot];
    for (int b = 0; b < optimizer->bucket_count; b++) {
        CornuBucket          *bucket = &optimizer->buckets[b];
        CornuVariable *const *own = parts + bucket->first;
        bucket->slots[slot] =
            cornu__is_alone(bucket) ? own[0] : pack_bucket(optimizer, b, own, spread, text);
    }
    cornu__release(parts);
    return cornu_error_take();
}
