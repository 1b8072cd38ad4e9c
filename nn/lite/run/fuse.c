/*
 * Operators that run as one. A convolution of which only a max pool of 2 x 2 reads scales the
 * largest sum of each four alone, and computes none that the pool drops. A function between them
 * that never falls is computed after the pool, on a quarter of the elements.
 */
#include "steps.h"

/* The only operator that reads a tensor; CORNU_LITE_NONE if there are others, or none, or it is an
 * output. */
static int only_reader(const CornuLiteGraph *graph, int tensor)
{
    int reader = CORNU_LITE_NONE;
    for (int i = 0; i < graph->output_count; i++)
        if (graph->outputs[i].tensor == tensor) return CORNU_LITE_NONE;
    for (int o = 0; o < graph->operator_count; o++)
        for (int i = 0; i < graph->operators[o].in_count; i++) {
            if (graph->operators[o].in[i] != tensor) continue;
            if (reader != CORNU_LITE_NONE) return CORNU_LITE_NONE;
            reader = o;
        }
    return reader;
}

static bool never_falls(const CornuLiteStep *step)
{
    for (int i = 1; i < 256; i++)
        if (step->table.y[i] < step->table.y[i - 1]) return false;
    return true;
}

/* Pools whole windows of 2 x 2 side by side. */
static bool pools_fours(const CornuLiteStep *step)
{
    const CornuInt8Window *w = &step->window;
    return step->op->code == CORNU_LITE_MAX_POOL_2D && w->height == 2 && w->width == 2 &&
           w->stride_height == 2 && w->stride_width == 2 && w->pad_height == 0 &&
           w->pad_width == 0 && 2 * w->out_height <= w->in_height &&
           2 * w->out_width <= w->in_width;
}

static CornuStatus fuse_pool(CornuLiteStep *conv, CornuLiteStep *table, CornuLiteStep *pool)
{
    CornuInt8Conv pooled = conv->conv;
    pooled.pooled = true;
    if (!table) {
        pooled.bounds.low = cornu__fixed_clamp(pooled.bounds.low, pool->bounds.low,
                                               pool->bounds.high);
        pooled.bounds.high = cornu__fixed_clamp(pooled.bounds.high, pool->bounds.low,
                                                pool->bounds.high);
    }
    cornu__int8_pack_free(conv->packed);
    conv->conv = pooled;
    conv->packed = cornu__int8_pack_create(&conv->conv);
    if (!conv->packed) return CORNU_ERR_MEMORY;
    conv->scratch = cornu__int8_conv2d_scratch(conv->packed);
    if (table) {
        table->out = pool->out;
        table->to = pool->to;
    } else {
        conv->to = pool->to;
    }
    pool->to = CORNU_LITE_NONE;
    return CORNU_OK;
}

CornuStatus cornu__steps_fuse(const CornuLiteGraph *graph, CornuLiteStep *steps)
{
    for (int o = 0; o < graph->operator_count; o++) {
        CornuLiteStep *conv = &steps[o], *table = NULL;
        if (graph->operators[o].code != CORNU_LITE_CONV_2D || !conv->packed ||
            !cornu__int8_is_monotonic(conv->packed)) continue;
        int next = only_reader(graph, conv->to);
        if (next != CORNU_LITE_NONE && cornu__step_is_table(&steps[next]) &&
            never_falls(&steps[next])) {
            table = &steps[next];
            next = only_reader(graph, table->to);
        }
        if (next == CORNU_LITE_NONE || !pools_fours(&steps[next])) continue;
        const CornuBounds bounds = steps[next].bounds;
        if (table && (bounds.low > CORNU_INT8_MIN || bounds.high < CORNU_INT8_MAX)) continue;
        CORNU__TRY(fuse_pool(conv, table, &steps[next]));
    }
    return CORNU_OK;
}
