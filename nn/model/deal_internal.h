/*
 * Dealing the rows of a batch over shards. Every shard has room for the same number of rows; the
 * valid ones are dealt as evenly as possible, in their order, so that shard s gets rows
 * first[s], first[s] + 1, … of the batch. What is left of a shard's room counts nothing; it holds
 * the shard's rows again and again, or row 0 of the batch where the shard has none: whatever a
 * model makes of valid rows, a division by 0 or an index out of range, it makes no more of these.
 */
#ifndef CORNU_NN_DEAL_INTERNAL_H
#define CORNU_NN_DEAL_INTERNAL_H

#include "../../device/type.h"

enum { CORNU_MOST_SHARDS = 8 };

typedef struct {
    int     shards;
    int64_t rows;                        /* room of a shard */
    int64_t count[CORNU_MOST_SHARDS];    /* valid rows of each */
    int64_t first[CORNU_MOST_SHARDS];    /* the number of its first row in the batch */
} CornuDeal;

CornuDeal cornu__deal(int shards, int64_t rows, int64_t valid);

/* The row of the batch that is in this place of a shard's room. */
int64_t cornu__dealt_row(const CornuDeal *deal, int shard, int64_t place);

/* Whether the batch as it is in memory is already dealt. */
bool cornu__dealt_in_place(const CornuDeal *deal);

/* The valid rows, of row_bytes, from the shards' room back to the batch. */
void cornu__deal_back(const CornuDeal *deal, size_t row_bytes, const void *room, void *batch);

#endif
