#include "shard_rows_internal.h"

#include <string.h>

CornuShardRows cornu__shard_rows(int shards, int64_t rows, int64_t valid)
{
    CornuShardRows split = { .shards = shards, .rows = rows };
    for (int s = 0, more = (int)(valid % shards); s < shards; s++) {
        split.count[s] = valid / shards + (s < more);
        split.first[s] = s ? split.first[s - 1] + split.count[s - 1] : 0;
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
