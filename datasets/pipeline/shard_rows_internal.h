/*
 * How the rows of a batch are split over shards. All shards hold the same number of rows; the valid
 * ones are spread as evenly as possible, in order, so that shard s gets rows first[s],
 * first[s] + 1, … of the batch. The remaining places of a shard are padding and count nothing: they
 * repeat the shard's rows, or row 0 of the batch where it has none, so that padding never causes a
 * division by 0 or an index out of range that the valid rows do not cause.
 *
 * A process that owns some of a device's shards needs only their rows, its share of the batch.
 */
#ifndef CORNU_DATASETS_SHARD_ROWS_INTERNAL_H
#define CORNU_DATASETS_SHARD_ROWS_INTERNAL_H

#include "../../device/device.h"

typedef struct {
    int     shards;
    int64_t rows;                       /* of a shard, padding included */
    int64_t count[CORNU_MAX_SHARDS];    /* valid rows of each */
    int64_t first[CORNU_MAX_SHARDS];    /* the index of its first row in the batch */
} CornuShardRows;

CornuShardRows cornu__shard_rows(int shards, int64_t rows, int64_t valid);

/* The row of the batch that is row `place` of a shard. */
int64_t cornu__shard_row(const CornuShardRows *split, int shard, int64_t place);

/* Whether the shards' rows are contiguous in the batch, so that nothing needs to be copied. */
bool cornu__shard_rows_contiguous(const CornuShardRows *split);

/* Copies the valid rows, of row_bytes each, from the shards' results back into the batch. */
void cornu__shard_rows_gather(const CornuShardRows *split, size_t row_bytes, const void *from,
                              void *batch);

/* ---- The share of a process ---- */

/* Those of a device's shards that a process owns: `count` of them, from shard `first` on. All zeros
 * for a process that owns all, whatever their number. */
typedef struct {
    int shards, first, count;
} CornuShare;

/* Of this process; of no device it is all. */
CornuShare cornu__share_of(const CornuDevice *device);

static inline bool cornu__share_is_whole(CornuShare share) { return share.count == share.shards; }

/* The valid rows of a batch that the own shards read: `count` from row `first` on, and row 0, if
 * it is not one of these but repeated where an own shard has none. */
typedef struct {
    int64_t first, count;
    bool    row_0;
} CornuOwnRows;

CornuOwnRows cornu__own_rows(CornuShare share, int64_t valid);

#endif
