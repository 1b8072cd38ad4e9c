/* What is known of tensors besides the graph: transposes that are not written before another
 * operator needs them, and extents for two sizes of an open batch. */
#include "recorded_internal.h"

#include "../../../device/memory_internal.h"
#include "../../formats/reorder_internal.h"

#include <stdio.h>
#include <string.h>

const int64_t cornu__lite_batches[CORNU_LITE_WORLDS] = { 5, 7 };

/* Of a tensor: what it is a transpose of, and whether an operator is still to make it. */
typedef struct CornuLiteView {
    bool       given, pending, noted;
    int        source, order[CORNU_MAX_RANK];
    CornuShape worlds[CORNU_LITE_WORLDS];
} View;

static View *view_of(const CornuLite *to, int x)
{
    return x >= 0 && x < to->view_space && to->views[x].given ? &to->views[x] : NULL;
}

/* The entry of a tensor, which is made; NULL when out of memory. */
static View *entry_of(CornuLite *to, int x)
{
    const int before = to->view_space;
    if (x >= before) {
        if (cornu__reserve(&to->views, &to->view_space, before, x + 1 - before,
                           sizeof *to->views)) {
            to->graph->status = CORNU_ERR_MEMORY;
            return NULL;
        }
        memset(to->views + before, 0, (size_t)(to->view_space - before) * sizeof *to->views);
    }
    return &to->views[x];
}

/* The same transpose, if there is one among the latest tensors. */
static int find(const CornuLite *to, const View *view, int rank)
{
    enum { LATEST = 64 };
    for (int i = to->view_space - 1, seen = 0; i >= 0 && seen < LATEST; i--) {
        const View *other = &to->views[i];
        if (!other->given) continue;
        seen++;
        if (other->source == view->source &&
            !memcmp(other->order, view->order, (size_t)rank * sizeof *view->order))
            return i;
    }
    return CORNU_LITE_NONE;
}

/* A constant with its axes in this order. */
static int turned(CornuLite *to, int x, const int *order)
{
    const CornuLiteTensor from = to->graph->tensors[x];
    CornuShape            shape = from.shape;
    for (int i = 0; i < shape.rank; i++) shape.extent[i] = from.shape.extent[order[i]];
    const int made = cornu__lite_add_constant(to->graph, from.name, from.dtype, shape, NULL);
    if (made >= 0)
        cornu__reorder(from.data, from.shape, cornu__lite_dtype_size(from.dtype), order,
                       to->graph->tensors[made].data);
    return made;
}

int cornu__lite_turn(CornuLite *to, int x, const int *order)
{
    if (x < 0) return x;
    if (to->graph->tensors[x].data) return turned(to, x, order);
    const View *from = view_of(to, x);
    CornuShape  shape = shape_of(to, x);
    View        view = { .given = true, .pending = true, .source = from ? from->source : x };
    bool        moves = false;
    char        name[200];
    for (int i = 0; i < shape.rank; i++) {
        view.order[i] = from ? from->order[order[i]] : order[i];
        moves |= view.order[i] != i;
    }
    if (!moves) return view.source;
    const int known = find(to, &view, shape.rank);
    if (known >= 0) return known;
    const CornuShape own = shape_of(to, view.source);
    for (int i = 0; i < shape.rank; i++) shape.extent[i] = own.extent[view.order[i]];
    snprintf(name, sizeof name, "%.150s/TRANSPOSE", to->name);
    for (int w = 0; w < CORNU_LITE_WORLDS; w++) {
        const CornuShape from_world = cornu__lite_noted(to, view.source, w);
        view.worlds[w] = shape;
        for (int i = 0; i < shape.rank; i++)
            view.worlds[w].extent[i] = from_world.extent[view.order[i]];
    }
    view.noted = true;
    const int made = cornu__lite_add_tensor(to->graph, name, to->graph->tensors[x].dtype, shape);
    View *entry = made < 0 ? NULL : entry_of(to, made);
    if (entry) *entry = view;
    return entry ? made : CORNU_LITE_NONE;
}

int cornu__lite_source(const CornuLite *to, int x, int order[CORNU_MAX_RANK])
{
    const View *view = view_of(to, x);
    if (!view) return CORNU_LITE_NONE;
    memcpy(order, view->order, sizeof view->order);
    return view->source;
}

void cornu__lite_settle(CornuLite *to, int x)
{
    View *view = view_of(to, x);
    if (!view || !view->pending) return;
    view->pending = false;
    const int in[] = { view->source,
                       cornu__lite_add_integers(to->graph, view->order, shape_of(to, x).rank) };
    cornu__lite_add_operator(to->graph, CORNU_LITE_TRANSPOSE, in, 2, &x, 1, NULL);
}

void cornu__lite_note(CornuLite *to, int x, CornuShape first, CornuShape second)
{
    View *view = x < 0 ? NULL : entry_of(to, x);
    if (!view) return;
    view->worlds[0] = first;
    view->worlds[1] = second;
    view->noted = true;
}

CornuShape cornu__lite_noted(const CornuLite *to, int x, int world)
{
    if (x >= 0 && x < to->view_space && to->views[x].noted) return to->views[x].worlds[world];
    CornuShape shape = shape_of(to, x);
    for (int i = 0; i < shape.rank; i++)
        if (shape.extent[i] == CORNU_NONE) shape.extent[i] = cornu__lite_batches[world];
    return shape;
}
