/*
 * The tree over shards of kernels/collective.h, cut where processes' ranges end.
 *
 * A node stands for shards first to first + count - 1: all that are below it in the tree.
 */
#ifndef CORNU_DEVICE_HOST_TREE_H
#define CORNU_DEVICE_HOST_TREE_H

#include "../../device_internal.h"

typedef struct {
    CornuRange *nodes;      /* by their first shard */
    int         count;
    int        *first;      /* by rank: its nodes are first[rank] to first[rank + 1] - 1 */
    int        *order;      /* how they are added: i >= 0 pushes node i, ADD adds the last two */
    int         order_count;
    bool        is_regular; /* the order is that of the tree over `count` members */
} CornuTree;

enum { CORNU_TREE_ADD = -1, CORNU_TREE_DEEPEST = 12 };   /* sums that are waiting at most */

/* For `shards` shards dealt over `ranks`. CORNU_ERR_MEMORY. Freed after a failure, too. */
CornuStatus cornu__tree_make(CornuTree *tree, int shards, int ranks);
void        cornu__tree_free(CornuTree *tree);

#endif
