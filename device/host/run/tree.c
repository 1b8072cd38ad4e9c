#include "tree.h"

#include "../../integer_internal.h"
#include "../../memory_internal.h"

/* The largest node that begins at a shard and ends before `end`. */
static CornuRange largest_node(int first, int end, int shards)
{
    int size = 1;
    while (first + size < shards && first % (2 * size) == 0 &&
           smaller(first + 2 * size, shards) <= end)
        size *= 2;
    return (CornuRange){ first, (int)smaller(first + size, shards) - first };
}

static void find_nodes(CornuTree *tree, int shards, int ranks)
{
    for (int rank = 0; rank < ranks; rank++) {
        const CornuRange own = cornu__range_of(shards, rank, ranks);
        const int        end = own.first + own.count;
        tree->first[rank] = tree->count;
        for (int shard = own.first; shard < end; shard += tree->nodes[tree->count++].count)
            tree->nodes[tree->count] = largest_node(shard, end, shards);
    }
    tree->first[ranks] = tree->count;
}

/* Below a node of the tree that has room for `size` shards: a node of the list, or two halves. */
static void find_order(CornuTree *tree, int first, int size, int shards, int *next)
{
    const CornuRange node = tree->nodes[*next];
    if (node.count == smaller(size, shards - first)) {
        tree->order[tree->order_count++] = (*next)++;
        return;
    }
    find_order(tree, first, size / 2, shards, next);
    if (first + size / 2 >= shards) return;
    find_order(tree, first + size / 2, size / 2, shards, next);
    tree->order[tree->order_count++] = CORNU_TREE_ADD;
}

static bool is_regular(const CornuTree *tree)
{
    const int each = tree->nodes[0].count;
    for (int i = 0; i < tree->count; i++)
        if (tree->nodes[i].first != i * each) return false;
    return (each & (each - 1)) == 0;
}

CornuStatus cornu__tree_make(CornuTree *tree, int shards, int ranks)
{
    int size = 1, next = 0;
    while (size < shards) size *= 2;
    *tree = (CornuTree){ .nodes = cornu__allocate((size_t)shards, sizeof *tree->nodes),
                         .first = cornu__allocate((size_t)ranks + 1, sizeof *tree->first),
                         .order = cornu__allocate(2 * (size_t)shards, sizeof *tree->order) };
    if (!tree->nodes || !tree->first || !tree->order) return CORNU_ERR_MEMORY;
    find_nodes(tree, shards, ranks);
    find_order(tree, 0, size, shards, &next);
    tree->is_regular = is_regular(tree);
    return CORNU_OK;
}

void cornu__tree_free(CornuTree *tree)
{
    cornu__release(tree->nodes);
    cornu__release(tree->first);
    cornu__release(tree->order);
}
