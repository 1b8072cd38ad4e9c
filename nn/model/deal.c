#include "deal_internal.h"

#include <string.h>

CornuDeal cornu__deal(int shards, int64_t rows, int64_t valid)
{
    CornuDeal deal = { .shards = shards, .rows = rows };
    for (int s = 0, more = (int)(valid % shards); s < shards; s++) {
        deal.count[s] = valid / shards + (s < more);
        deal.first[s] = s ? deal.first[s - 1] + deal.count[s - 1] : 0;
    }
    return deal;
}

int64_t cornu__dealt_row(const CornuDeal *deal, int shard, int64_t place)
{
    const int64_t count = deal->count[shard];
    return count > 0 ? deal->first[shard] + place % count : 0;
}

bool cornu__dealt_in_place(const CornuDeal *deal)
{
    for (int s = 1; s < deal->shards; s++)
        if (deal->first[s] != s * deal->rows) return false;
    return true;
}

void cornu__deal_back(const CornuDeal *deal, size_t row_bytes, const void *room, void *batch)
{
    for (int s = 0; s < deal->shards; s++)
        memcpy((char *)batch + (size_t)deal->first[s] * row_bytes,
               (const char *)room + (size_t)(s * deal->rows) * row_bytes,
               (size_t)deal->count[s] * row_bytes);
}
