/* A heap of numbers, the one with the least key first, of equal keys the least number.
 * Source: Knuth, "The Art of Computer Programming", volume 3, section 5.2.3. */
#ifndef CORNU_DEVICE_HOST_HEAP_H
#define CORNU_DEVICE_HOST_HEAP_H

#include <stdbool.h>

typedef struct {
    int       *items;   /* the caller's, with room for all */
    int        count;
    const int *keys;    /* by number */
} CornuHeap;

static inline bool cornu__heap_before(const CornuHeap *heap, int a, int b)
{
    return heap->keys[a] != heap->keys[b] ? heap->keys[a] < heap->keys[b] : a < b;
}

static inline void cornu__heap_push(CornuHeap *heap, int item)
{
    int at = heap->count++;
    for (; at > 0 && cornu__heap_before(heap, item, heap->items[(at - 1) / 2]); at = (at - 1) / 2)
        heap->items[at] = heap->items[(at - 1) / 2];
    heap->items[at] = item;
}

/* Of a heap that is not empty. */
static inline int cornu__heap_pop(CornuHeap *heap)
{
    const int first = heap->items[0], last = heap->items[--heap->count];
    int       at = 0;
    for (int child; (child = 2 * at + 1) < heap->count; at = child) {
        if (child + 1 < heap->count &&
            cornu__heap_before(heap, heap->items[child + 1], heap->items[child]))
            child++;
        if (!cornu__heap_before(heap, heap->items[child], last)) break;
        heap->items[at] = heap->items[child];
    }
    heap->items[at] = last;
    return first;
}

#endif
