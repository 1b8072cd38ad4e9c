/*
 * Copies of x and d_y in the form that products take, for conv2d_filter.c and
 * conv2d_filter_pooled.c.
 */
#include "conv2d_filter.h"

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

void cornu__filter_range(const CornuAxis *axis, int64_t tap, int64_t *from, int64_t *to)
{
    *from = 0;
    *to = axis->out;
    while (*from < *to && cornu__axis_row(axis, *from, tap) < 0) ++*from;
    while (*from < *to && cornu__axis_row(axis, *to - 1, tap) < 0) --*to;
}
