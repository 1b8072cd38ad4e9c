#include "shard_rows_internal.h"

#include <string.h>

/* The rows of all shards before this one: valid % shards of them have one more than the others. */
static int64_t rows_before(int shard, int shards, int64_t valid)
{
    const int64_t more = valid % shards;
    return shard * (valid / shards) + (shard < more ? shard : more);
}

CornuShardRows cornu__shard_rows(int shards, int64_t rows, int64_t valid)
{
    CornuShardRows split = { .shards = shards, .rows = rows };
    for (int s = 0; s < shards; s++) {
        split.first[s] = rows_before(s, shards, valid);
        split.count[s] = rows_before(s + 1, shards, valid) - split.first[s];
    }
    return split;
}

int64_t cornu__shard_row(const CornuShardRows *split, int shard, int64_t place)
{
    const int64_t count = split->count[shard];
    return count > 0 ? split->first[shard] + place % count : 0;
}

bool cornu__shard_rows_contiguous(const CornuShardRows *split)
{
    for (int s = 1; s < split->shards; s++)
        if (split->first[s] != s * split->rows) return false;
    return true;
}

void cornu__shard_rows_gather(const CornuShardRows *split, size_t row_bytes, const void *from,
                              void *batch)
{
    for (int s = 0; s < split->shards; s++)
        memcpy((char *)batch + (size_t)split->first[s] * row_bytes,
               (const char *)from + (size_t)(s * split->rows) * row_bytes,
               (size_t)split->count[s] * row_bytes);
}

CornuShare cornu__share_of(const CornuDevice *device)
{
    CornuShare share = { 0 };
    if (!device) return share;
    share.shards = cornu_device_shards(device);
    cornu_device_own_shards(device, &share.first, &share.count);
    return share;
}

CornuOwnRows cornu__own_rows(CornuShare share, int64_t valid)
{
    if (cornu__share_is_whole(share)) return (CornuOwnRows){ .count = valid };
    const int     end = share.first + share.count;
    const int64_t first = rows_before(share.first, share.shards, valid);
    return (CornuOwnRows){
        .first = first, .count = rows_before(end, share.shards, valid) - first,
        /* With fewer rows than shards, shard s has row s, or none. */
        .row_0 = valid > 0 && share.first > 0 && end > valid,
    };
}
