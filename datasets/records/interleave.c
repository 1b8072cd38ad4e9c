#include "interleave_internal.h"

#include "../../device/memory_internal.h"

CornuStatus cornu__interleave_begin(CornuInterleave *order, int files, int64_t cycle, int64_t block)
{
    *order = (CornuInterleave){ .files = files, .block = block,
                                .cycle = cycle < files ? (int)cycle : files };
    order->slot = cornu__allocate((size_t)order->cycle, sizeof *order->slot);
    if (!order->slot) return CORNU_ERR_MEMORY;
    for (int i = 0; i < order->cycle; i++) order->slot[i] = -1;
    return CORNU_OK;
}

void cornu__interleave_free(CornuInterleave *order) { cornu__release(order->slot); }

static void next_turn(CornuInterleave *order)
{
    order->turn = (order->turn + 1) % order->cycle;
    order->used = 0;
}

int cornu__interleave_file(CornuInterleave *order)
{
    while (order->open || order->next < order->files) {
        int *slot = &order->slot[order->turn];
        if (*slot < 0 && order->next < order->files) {
            *slot = order->next++;
            order->open++;
        }
        if (*slot >= 0) return *slot;
        next_turn(order);
    }
    return -1;
}

void cornu__interleave_taken(CornuInterleave *order)
{
    if (++order->used == order->block) next_turn(order);
}

void cornu__interleave_ended(CornuInterleave *order)
{
    order->slot[order->turn] = -1;
    order->open--;
    next_turn(order);
}
