/* The filter of conv2d.c, packed into panels: two registers of filters, all taps and channels. */
#include "conv2d_direct.h"

enum {
    FEW = 8,       /* runs shorter than this are gathered,    */
    LONG = 1024    /* for rows of outputs that are no longer */
};

void cornu__direct_find_extents(CornuDirect *c, const CornuOpCall *op, const CornuType *out_type,
                                CornuMultiplier multiplier)
{
    c->how = cornu__multiplication(multiplier, op->in[0].dtype);
    c->products = c->how.products;
    c->walk = cornu__walk(op, out_type);
    c->taps = c->walk.axis[0].taps * c->walk.axis[1].taps;
    c->depth = ceil_multiple(c->taps * c->walk.in_channels, c->products->depth);
    c->padded = ceil_multiple(c->walk.out_channels, c->products->lanes);
    c->x_image = c->walk.axis[0].in * c->walk.axis[1].in * c->walk.in_channels;
    const CornuAxis *width = &c->walk.axis[1];
    c->gather = c->walk.in_channels == 1 && c->products->depth == 2 && !width->transposed &&
                width->taps < FEW && width->out <= LONG;
}

typedef struct {
    CornuDirect convolution;
    const void *filter;      /* its parts, one after the other */
    char       *panels;
} Pack;

static size_t panels_bytes(const CornuDirect *c)
{
    return cornu__aligned((size_t)(c->depth * c->how.parts * c->padded) * c->products->size);
}

/* After the panels there is space for the filter's parts. */
size_t cornu__direct_pack_bytes(const CornuQuery *q)
{
    CornuDirect c = { 0 };
    cornu__direct_find_extents(&c, q->op, q->out_type, q->machine.multiplier);
    return panels_bytes(&c) + cornu__parts_bytes(&c.how, cornu_type_count(q->op->in[1]));
}

/* Packs one tap of one part of the filter into all panels; after the last tap, zeros that complete
 * pairs. */
static void pack_tap(void *context, int64_t block, int thread)
{
    (void)thread;
    const Pack        *p = context;
    const CornuDirect *c = &p->convolution;
    const CornuAxis   *height = &c->walk.axis[0], *width = &c->walk.axis[1];
    const int64_t      C = c->walk.in_channels, F = c->walk.out_channels;
    const int64_t      part = block / c->taps, slot = block % c->taps;
    const int64_t      tap = cornu__axis_tap(height, slot / width->taps) * width->taps +
                             cornu__axis_tap(width, slot % width->taps);
    const int64_t      from = (part * c->taps + tap) * C * F;
    const int64_t      k_step = width->transposed ? 1 : F, n_step = width->transposed ? C : 1;
    for (int64_t first = 0, columns; first < c->padded; first += columns) {
        columns = cornu__direct_panel_width(c, first);
        char *panel = p->panels + cornu__direct_panel_offset(c, first);
        c->products->pack(panel, columns, part * c->depth + slot * C, C,
                          cornu__element(&c->how, p->filter, from + first * n_step), k_step,
                          n_step, smaller(columns, F - first));
        if (slot + 1 == c->taps && c->depth > c->taps * C)
            c->products->pack(panel, columns, part * c->depth + c->taps * C, 1, p->filter, k_step,
                              n_step, 0);
    }
}

void cornu__direct_pack(const CornuKernelCall *call)
{
    Pack p = { .panels = call->out[0] };
    cornu__direct_find_extents(&p.convolution, &call->op, call->out_type, call->multiplier);
    const CornuDirect *c = &p.convolution;
    p.filter = cornu__all_parts(&c->how, call->threads, call->in[1],
                                cornu_type_count(call->op.in[1]), p.panels + panels_bytes(c));
    cornu__threads_run(call->threads, c->taps * c->how.parts, pack_tap, &p);
}
