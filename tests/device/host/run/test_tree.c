/* The tree over shards, cut where ranks' ranges end: for every number of shards up to 130 and every
 * number of ranks it is that of kernels/collective.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../../../device/host/kernels/collective.h"
#include "../../../../device/host/run/tree.h"

enum { MOST = 130 };

/* A sum by its terms' order and its brackets: two are equal if they add the same in the same order,
 * but for collisions of 64 bits. Shards count from 1, as a tree of nothing is 0. */
typedef struct { uint64_t hash; int first, end; } Sum;

static Sum shard(int i) { return (Sum){ 0x9e3779b97f4a7c15u * (uint64_t)(i + 1), i, i + 1 }; }

static Sum add(Sum a, Sum b)
{
    const uint64_t hash = (a.hash ^ (a.hash >> 31)) * 0xbf58476d1ce4e5b9u +
                          (b.hash ^ (b.hash >> 27)) * 0x94d049bb133111ebu;
    assert_int_equal(a.end, b.first);
    return (Sum){ hash ^ (hash >> 29), a.first, b.end };
}

/* The documented tree over shards first to end - 1, which begins where a tree of `size` places
 * does: neighbours first. */
static Sum documented(int first, int end, int size)
{
    if (end - first == 1) return shard(first);
    if (first + size / 2 >= end) return documented(first, end, size / 2);
    return add(documented(first, first + size / 2, size / 2),
               documented(first + size / 2, end, size / 2));
}

static int room_for(int count)
{
    int size = 1;
    while (size < count) size *= 2;
    return size;
}

/* What a process adds up by itself: the tree over the node's members, as any group of so many. */
static Sum node_sum(CornuRange node)
{
    Sum   sums[MOST];
    int   count = node.count;
    for (int i = 0; i < count; i++) sums[i] = shard(node.first + i);
    for (; count > 1; count = (count + 1) / 2)
        for (int i = 0; i < count; i += 2)
            sums[i / 2] = i + 1 < count ? add(sums[i], sums[i + 1]) : sums[i];
    return sums[0];
}

static Sum follow(const CornuTree *tree)
{
    Sum sums[CORNU_TREE_DEEPEST];
    int depth = 0, next = 0;
    for (int i = 0; i < tree->order_count; i++) {
        if (tree->order[i] == CORNU_TREE_ADD) {
            assert_true(depth >= 2);
            depth--;
            sums[depth - 1] = add(sums[depth - 1], sums[depth]);
        } else {
            assert_true(depth < CORNU_TREE_DEEPEST);
            assert_int_equal(tree->order[i], next++);   /* by their first shard */
            sums[depth++] = node_sum(tree->nodes[tree->order[i]]);
        }
    }
    assert_int_equal(depth, 1);
    assert_int_equal(next, tree->count);
    return sums[0];
}

/* A regular tree is finished as one over its nodes. */
static void expect_regular(const CornuTree *tree, uint64_t hash)
{
    Sum sums[MOST];
    int count = tree->count;
    for (int i = 0; i < count; i++) sums[i] = node_sum(tree->nodes[i]);
    for (; count > 1; count = (count + 1) / 2)
        for (int i = 0; i < count; i += 2)
            sums[i / 2] = i + 1 < count ? add(sums[i], sums[i + 1]) : sums[i];
    assert_true(sums[0].hash == hash);
}

/* A rank's nodes are its own shards, few of them: a subtree that it owns whole is one node. */
static void expect_nodes(const CornuTree *tree, int shards, int ranks)
{
    int next = 0;
    assert_int_equal(tree->first[0], 0);
    assert_int_equal(tree->first[ranks], tree->count);
    for (int rank = 0; rank < ranks; rank++) {
        const CornuRange own = cornu__range_of(shards, rank, ranks);
        assert_int_equal(own.first, next);
        assert_true(tree->first[rank + 1] > tree->first[rank]);
        for (int i = tree->first[rank]; i < tree->first[rank + 1]; i++) {
            const CornuRange node = tree->nodes[i];
            const int        size = room_for(node.count);
            assert_int_equal(node.first, next);
            assert_int_equal(node.first % size, 0);
            if (size != node.count) assert_int_equal(node.first + node.count, shards);
            next += node.count;
            /* Its parent is not the rank's, or it would have been the node. */
            const int parent = node.first / (2 * size) * 2 * size;
            const int end = parent + 2 * size < shards ? parent + 2 * size : shards;
            if (end - parent > node.count)
                assert_true(parent < own.first || end > own.first + own.count);
        }
    }
    assert_int_equal(next, shards);
}

static void trees_are_the_documented_one(void **state)
{
    (void)state;
    int regular = 0;
    for (int shards = 1; shards <= MOST; shards++) {
        const uint64_t hash = documented(0, shards, room_for(shards)).hash;
        for (int ranks = 1; ranks <= shards; ranks++) {
            CornuTree tree;
            assert_int_equal(cornu__tree_make(&tree, shards, ranks), CORNU_OK);
            expect_nodes(&tree, shards, ranks);
            if (follow(&tree).hash != hash) fail_msg("%d shards, %d ranks", shards, ranks);
            if (tree.is_regular) expect_regular(&tree, hash);
            regular += tree.is_regular;
            cornu__tree_free(&tree);
        }
    }
    assert_true(regular > 2 * MOST);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(trees_are_the_documented_one) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
