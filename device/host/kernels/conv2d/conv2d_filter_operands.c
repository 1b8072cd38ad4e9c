/*
 * Copies of x and d_y in the form that products take, for conv2d_filter.c and
 * conv2d_filter_pooled.c.
 */
#include "conv2d_filter.h"

#include <string.h>

#include "../../../integer_internal.h"

void cornu__filter_row(const CornuFilterGradient *g, const CornuImages *images, int64_t from,
                       int64_t to, int64_t count)
{
    if (g->products->depth == 1) {
        cornu__parts(&g->how, images->image[0], from, count, images->to + to, images->to_part);
        return;
    }
    for (int part = 0; part < g->how.parts; part++) {
        const uint16_t *a = (const uint16_t *)images->image[0] + part * images->image_part + from;
        const uint16_t *b = images->image[1] ? (const uint16_t *)images->image[1] +
                                             part * images->image_part + from : NULL;
        float *pairs = images->to + part * images->to_part + to;
        cornu__bf16()->pair(a, b, count, (uint32_t *)(void *)pairs);
    }
}

void cornu__filter_images(const CornuFilterGradient *g, int operand, int64_t count, int64_t b,
                          int thread, CornuImages *images)
{
    images->image_part = count;
    for (int i = 0; i < g->products->depth; i++) {
        images->image[i] = NULL;
        if (b + i >= g->walk.batch) continue;
        images->image[i] = cornu__in_memory(&g->how, g->call->in[operand], (b + i) * count);
        if (g->products->depth == 1 || g->how.in_place) continue;
        cornu__parts(&g->how, images->image[i], 0, count, cornu__filter_half(g, thread, i), count);
        images->image[i] = cornu__filter_half(g, thread, i);
    }
}

/* ---- Slabs ---- */

int64_t cornu__filter_slab_row(const CornuFilterGradient *g, int64_t width, int64_t channels)
{
    return g->slab_axis == 0 ? width * channels : channels;
}

int64_t cornu__filter_slab_outputs(const CornuFilterGradient *g)
{
    return g->half ? g->half : g->walk.axis[g->slab_axis].out;
}

/* Rows of x and of its padding from the first that so many outputs meet to the last. */
static int64_t rows_met(const CornuAxis *axis, int64_t outputs)
{
    return (outputs - 1) * axis->stride + (axis->taps - 1) * axis->dilation + 1;
}

void cornu__filter_cut_pieces(CornuFilterGradient *g, int64_t bytes, int64_t most)
{
    const CornuAxis *height = &g->walk.axis[0], *width = &g->walk.axis[1];
    const int        depth = g->products->depth;
    g->slab_axis = height->in == 1 && height->out == 1;
    const CornuAxis *axis = &g->walk.axis[g->slab_axis];
    g->half = 0;
    g->slab = axis->out;
    if (g->pooled || g->gather || (depth > 1 && !g->how.in_place)) return;
    if (depth > 1 && g->walk.batch == 1 && g->padded == g->walk.out_channels && axis->out > 1)
        g->half = ceil_divide(axis->out, 2);
    else bytes *= depth;
    const int64_t outputs = cornu__filter_slab_outputs(g), slabs = ceil_divide(bytes, most);
    g->slab = outputs;
    if (g->piece_images <= depth && slabs > 1)
        g->slab = smaller(outputs, larger(ceil_divide(outputs, slabs),
                                          2 * axis->taps * axis->dilation));
    if (g->slab == axis->out) return;
    const int64_t rows = rows_met(axis, g->slab);
    if (g->copy_x)
        g->x_part = (g->half ? rows : smaller(axis->in, rows)) *
                    cornu__filter_slab_row(g, width->in, g->walk.in_channels);
    if (g->copy_y) g->y_part = g->slab * cornu__filter_slab_row(g, width->out, g->padded);
}

CornuSlab cornu__filter_slab(const CornuFilterGradient *g, int64_t from)
{
    const CornuAxis *axis = &g->walk.axis[g->slab_axis];
    const int64_t    outputs = cornu__filter_slab_outputs(g), to = smaller(from + g->slab, outputs);
    if (g->slab >= axis->out) return (CornuSlab){ 0, axis->out, 0, axis->in };
    CornuSlab slab = { from, to, from * axis->stride - axis->low, 0 };
    slab.x_to = slab.x_from + rows_met(axis, to - from);
    if (g->half) return slab;
    slab.x_from = larger(0, smaller(slab.x_from, axis->in));
    slab.x_to = larger(slab.x_from, smaller(slab.x_to, axis->in));
    return slab;
}

/* Pairs of rows [from, to) of an image's `rows` rows of so many elements with those `apart` later,
 * zeros for those that it does not have. */
static void copy_halves(const uint16_t *image, int64_t rows, int64_t elements, int64_t from,
                        int64_t to, int64_t apart, float *made)
{
    uint32_t *pairs = (uint32_t *)(void *)made;
    for (; from < to; from++, pairs += elements) {
        const int64_t   later = from + apart;
        const uint16_t *a = from >= 0 && from < rows ? image + from * elements : NULL;
        const uint16_t *b = later >= 0 && later < rows ? image + later * elements : NULL;
        if (a) cornu__bf16()->pair(a, b, elements, pairs);
        else
            for (int64_t k = 0; k < elements; k++) pairs[k] = b ? (uint32_t)b[k] << 16 : 0;
    }
}

const float *cornu__filter_copy_x(const CornuFilterGradient *g, int64_t b, int64_t b_end,
                                 const CornuSlab *slab, int thread)
{
    const CornuAxis *height = &g->walk.axis[0], *width = &g->walk.axis[1];
    const CornuAxis *axis = &g->walk.axis[g->slab_axis];
    const int64_t    C = g->walk.in_channels, row = g->extent[1] * C, image = g->extent[0] * row;
    const int64_t    top = larger(0, height->low), left = larger(0, width->low);
    const int64_t    kept_rows = smaller(height->in, g->extent[0] - top);
    const int64_t    kept = larger(0, smaller(width->in, g->extent[1] - left));
    const int64_t    elements = cornu__filter_slab_row(g, g->extent[1], C);
    float           *to = g->x + thread * g->how.parts * g->x_part;
    CornuImages      copy = { .to = to, .to_part = g->x_part };
    if (g->half)
        copy_halves(g->call->in[0], axis->in, elements, slab->x_from, slab->x_to,
                    g->half * axis->stride, to);
    for (; b < b_end && !g->half; b += g->products->depth, copy.to += image) {
        cornu__filter_images(g, 0, height->in * width->in * C, b, thread, &copy);
        if (!g->pad_x) {
            cornu__filter_row(g, &copy, slab->x_from * elements, 0,
                              (slab->x_to - slab->x_from) * elements);
            continue;
        }
        for (int part = 0; part < g->how.parts; part++)
            memset(copy.to + part * g->x_part, 0, (size_t)image * sizeof(float));
        for (int64_t i = 0; i < kept_rows; i++)
            cornu__filter_row(g, &copy, i * width->in * C, (top + i) * row + left * C, kept * C);
    }
    return to;
}

const float *cornu__filter_copy_y(const CornuFilterGradient *g, int64_t b, int64_t b_end,
                                 const CornuSlab *slab, int thread)
{
    const int64_t columns = cornu__filter_slab_row(g, g->walk.axis[1].out, 1);
    const int64_t first = slab->from * columns;
    const int64_t positions = (slab->to - slab->from) * columns;
    const int64_t F = g->walk.out_channels, image = positions * g->padded;
    float        *to = g->d_y + thread * g->how.parts * g->y_part;
    CornuImages   copy = { .to = to, .to_part = g->y_part };
    if (g->half)
        copy_halves(g->call->in[1], g->walk.axis[g->slab_axis].out, columns * F, slab->from,
                    slab->to, g->half, to);
    for (; b < b_end && !g->half; b += g->products->depth, copy.to += image) {
        cornu__filter_images(g, 1, g->walk.axis[0].out * g->walk.axis[1].out * F, b, thread,
                             &copy);
        if (F == g->padded) {
            cornu__filter_row(g, &copy, first * F, 0, image);
            continue;
        }
        for (int part = 0; part < g->how.parts; part++)
            memset(copy.to + part * g->y_part, 0, (size_t)image * sizeof(float));
        for (int64_t p = 0; p < positions; p++)
            cornu__filter_row(g, &copy, (first + p) * F, p * g->padded, F);
    }
    return to;
}

void cornu__filter_range(const CornuAxis *axis, int64_t tap, int64_t *from, int64_t *to)
{
    *from = 0;
    *to = axis->out;
    while (*from < *to && cornu__axis_row(axis, *from, tap) < 0) ++*from;
    while (*from < *to && cornu__axis_row(axis, *to - 1, tap) < 0) --*to;
}

void cornu__filter_slab_range(const CornuFilterGradient *g, const CornuSlab *slab, int axis,
                              int64_t tap, int64_t *from, int64_t *to)
{
    cornu__filter_range(&g->walk.axis[axis], tap, from, to);
    if (axis != g->slab_axis) return;
    *from = g->half ? slab->from : larger(*from, slab->from);
    *to = g->half ? slab->to : smaller(*to, slab->to);
}
