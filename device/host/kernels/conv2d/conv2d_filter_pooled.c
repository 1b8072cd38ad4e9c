/*
 * conv2d_grad_filter after a max pooling of two by two:
 *
 *     d_filter[u,v,c,f] = sum over b, windows i, j of
 *                         x[b, 2 i + p + u d - low, 2 j + q + v d - low, c] d_y[b,i,j,f]
 *
 * where (p, q) is the element of the window that the pool took for filter f. The other three
 * elements of the map's gradient are zero, so this is a quarter of the multiplications. x is copied
 * so that the four elements that a window may meet are adjacent, for each row and column where a
 * window can begin; a vector of filters then selects from them the elements of its windows.
 *
 * Reference: device/ops/conv2d.c and pool.c; tests/device/host/kernels/test_kernels.c compares
 *     them.
 * Source: own; the selection is a permutation of a register (vpermw, vpermps).
 * Gain, Zen 4, processor time of a step at 128 with and without: fashion_mnist_cnn 296 and 362 ms,
 *     on tpu 204 and 240; mnist_cnn 15.0 and 17.6.
 */
#include <string.h>

#include "../../../integer_internal.h"
#include "../kernels.h"
#include "conv2d_filter.h"

/* Operands of one column of both rows of windows, for a group of channels. */
enum { COLUMN = CORNU_WINDOW / 2 };

/* Distance from the first output's tap 0. */
static int64_t tap_offset(const CornuAxis *axis, int64_t tap) { return tap * axis->dilation; }

static void cut(CornuFilterGradient *g, int64_t threads, int64_t shards)
{
    (void)threads;
    for (int a = 0; a < 2; a++) {
        const CornuAxis *axis = &g->walk.axis[a];
        g->windows[a] = axis->out / 2;
        g->extent[a] = 2 * g->windows[a] - 1 + tap_offset(axis, axis->taps - 1);
    }
    cornu__filter_cut_batch(g, 2 * g->extent[0] * (g->extent[1] + 1) * g->walk.in_channels,
                            2 * g->windows[0] * g->windows[1] * g->padded, shards);
    g->line_count = g->walk.axis[1].in * g->walk.in_channels;
}

/* Copies row `row` of x into its line, zeros if there is none. */
static const float *line_of(const CornuFilterGradient *g, const CornuImages *copy, int64_t row)
{
    const int64_t to = (row & 1) * g->line_count;
    if (row >= 0 && row < g->walk.axis[0].in)
        cornu__filter_row(g, copy, row * g->line_count, to, g->line_count);
    else
        memset(copy->to + to, 0, (size_t)g->line_count * sizeof(float));
    return copy->to + to;
}

/* Joins a group of channels of two rows of x: both rows of each column, zeros beside x included. */
static void join_lines(const CornuFilterGradient *g, const float *restrict upper,
                       const float *restrict lower, float *restrict to)
{
    const CornuAxis *width = &g->walk.axis[1];
    const int64_t    C = g->walk.in_channels, columns = g->extent[1] + 1, low = width->low;
    const int64_t    first = larger(0, -low), end = smaller(width->in, columns - low);
    const int64_t    left = smaller(larger(0, low), columns);
    const int64_t    right = larger(0, columns - larger(left, end + low));
    memset(to, 0, (size_t)(left * COLUMN) * sizeof *to);
    to += left * COLUMN;
    for (int64_t q = first; q < end; q++, to += COLUMN)
        for (int k = 0; k < CORNU_SELECT_GROUP; k++) {
            to[2 * k] = upper[q * C + k];
            to[2 * k + 1] = lower[q * C + k];
        }
    memset(to, 0, (size_t)(right * COLUMN) * sizeof *to);
}

/* Channels of a tile from `c` on. */
static int64_t tile_channels(const CornuFilterGradient *g, int64_t c)
{
    return g->walk.in_channels - c < CORNU_SELECT_ROWS ? CORNU_SELECT_GROUP : CORNU_SELECT_ROWS;
}

/* Copies x of images b to b_end as CornuOuter's selection wants it: for a tile of channels where
 * windows can begin, row by row, and of these the groups of channels. */
static const float *copy_windows(const CornuFilterGradient *g, int64_t b, int64_t b_end, int thread)
{
    const CornuAxis *height = &g->walk.axis[0];
    const int64_t    C = g->walk.in_channels, group = (g->extent[1] + 1) * COLUMN;
    float           *x = g->x + thread * g->x_part, *to = x;
    CornuImages      copy = { .to = g->lines + 2 * thread * g->line_count };
    for (; b < b_end; b += g->products->depth) {
        cornu__filter_images(g, 0, height->in * g->line_count, b, thread, &copy);
        const float *upper = line_of(g, &copy, -height->low);
        for (int64_t i = 0; i < g->extent[0]; i++) {
            const float *lower = line_of(g, &copy, i + 1 - height->low);
            for (int64_t c = 0; c < C; c += CORNU_SELECT_GROUP) {
                const int64_t tile = c / CORNU_SELECT_ROWS * CORNU_SELECT_ROWS;
                const int64_t row = g->extent[0] * tile + i * tile_channels(g, tile) + c - tile;
                join_lines(g, upper + c, lower + c, to + row / CORNU_SELECT_GROUP * group);
            }
            upper = lower;
        }
        to += g->extent[0] * C / CORNU_SELECT_GROUP * group;
    }
    return x;
}

/* The number of the operand that is element `index` of a window of two by two. */
static uint32_t operand_of(uint8_t index)
{
    return (index & 1) * (CORNU_WINDOW / 2) + (index >> 1);
}

/* Operands that select elements `a` of windows and, of pairs, `b` of another image's. */
static void find_selection(const CornuFilterGradient *g, const uint8_t *restrict a,
                           const uint8_t *restrict b, int64_t count,
                           uint32_t *restrict selection)
{
    for (int64_t n = 0; n < count; n++)
        selection[n] = g->products->depth == 1 ? operand_of(a[n])
                 : 2 * operand_of(a[n]) | (2 * operand_of(b[n]) + 1) << 16;
}

/* Notes if the index of image b names no element of a window. */
static void check_index(CornuFilterGradient *g, int64_t b)
{
    const uint8_t *index = g->unpool.index + b * g->unpool.pooled;
    uint8_t        all = 0;
    for (int64_t n = 0; n < g->unpool.pooled; n++) all |= index[n];
    if (all >= 4) atomic_store(&g->unpool.bad_row, b);
}

/* Copies d_y of the windows of images b to b_end and, after the space of them all, the selection.
 * */
static const float *copy_selection(CornuFilterGradient *g, int64_t b, int64_t b_end, int thread)
{
    const int64_t depth = g->products->depth, count = g->unpool.pooled;
    float        *d_y = g->d_y + thread * g->y_part, *selection = d_y + g->y_part / 2;
    CornuImages   copy = { .to = d_y };
    for (; b < b_end; b += depth, copy.to += count, selection += count) {
        const uint8_t *index = g->unpool.index + b * count;
        const bool     two = depth == 2 && b + 1 < g->walk.batch;
        cornu__filter_images(g, 1, count, b, thread, &copy);
        cornu__filter_row(g, &copy, 0, 0, count);
        find_selection(g, index, index + two * count, count, (uint32_t *)(void *)selection);
        check_index(g, b);
        if (two) check_index(g, b + 1);
    }
    return d_y;
}

/* A tap's windows [*from, *to) along an axis: those with an output at which it meets x. */
static void window_range(const CornuFilterGradient *g, int axis, int64_t tap, int64_t *from,
                         int64_t *to)
{
    cornu__filter_range(&g->walk.axis[axis], tap, from, to);
    *to = smaller((*to + 1) / 2, g->windows[axis]);
    *from = smaller(*from / 2, *to);
}

/* All taps of some channels and filters; x, y, selection and sum are those of the first window and
 * tap. */
static void sum_taps(const CornuFilterGradient *g, CornuOuter outer)
{
    const CornuAxis *height = &g->walk.axis[0], *width = &g->walk.axis[1];
    const float     *x = outer.x, *y = outer.y;
    const uint32_t  *selection = outer.selection;
    for (int64_t u = 0; u < height->taps; u++) {
        int64_t i, i_end;
        window_range(g, 0, u, &i, &i_end);
        outer.height = i_end - i;
        for (int64_t v = 0; v < width->taps; v++) {
            int64_t j, j_end;
            window_range(g, 1, v, &j, &j_end);
            const int64_t at = i * outer.y_row + j * outer.y_pixel;
            outer.width = j_end - j;
            outer.x = x + (2 * i + tap_offset(height, u)) * outer.x_row / 2 +
                      (2 * j + tap_offset(width, v)) * outer.x_pixel / 2;
            outer.y = y + at;
            outer.selection = selection + at;
            g->products->outer(&outer);
            outer.sum += g->walk.in_channels * g->padded;
        }
    }
}

/* All taps of some channels and filters before the next ones, so that the operands of this walk
 * stay in the cache. */
static void sum_windows(const CornuFilterGradient *g, CornuOuter outer, float *sums)
{
    const int64_t   C = g->walk.in_channels, lanes = g->products->lanes;
    const float    *x = outer.x, *y = outer.y;
    const uint32_t *selection = outer.selection;
    outer.sum_stride = g->padded;
    for (int64_t f = 0; f < g->padded; f += outer.vectors * lanes) {
        outer.vectors = (int)smaller(2, (g->padded - f) / lanes);
        outer.y = y + f;
        outer.selection = selection + f;
        for (int64_t c = 0; c < C; c += outer.rows) {
            outer.rows = (int)tile_channels(g, c);
            outer.x_row = 2 * outer.rows / CORNU_SELECT_GROUP * outer.x_group;
            outer.x = x + c / CORNU_SELECT_GROUP * g->extent[0] * outer.x_group;
            outer.sum = sums + c * g->padded + f;
            sum_taps(g, outer);
        }
    }
}

static void sum(CornuFilterGradient *g, int64_t b, int64_t b_end, int64_t share, bool add,
                int thread, float *sums)
{
    const int64_t group = (g->extent[1] + 1) * COLUMN;
    CornuOuter    outer = {
        .x = copy_windows(g, b, b_end, thread), .y = copy_selection(g, b, b_end, thread),
        .x_image = g->extent[0] * g->walk.in_channels / CORNU_SELECT_GROUP * group,
        .x_pixel = CORNU_WINDOW, .x_group = group,
        .y_image = g->unpool.pooled, .y_row = g->windows[1] * g->padded, .y_pixel = g->padded,
        .images = ceil_divide(b_end - b, g->products->depth), .add = add,
    };
    (void)share;   /* one */
    outer.selection = (const uint32_t *)outer.y + g->y_part / 2;
    sum_windows(g, outer, sums);
}

/* ---- The kernel ---- */

static const CornuFilterSums sums_of = { cut, sum };

static CornuDecline pooled_declines(const CornuQuery *q)
{
    const CornuDecline decline = cornu__filter_declines(q);
    if (decline.needs) return decline;
    if (!q->pool) return cornu__needs(false, "a max pooling to be joined with");
    const CornuFilterGradient g = cornu__filter_gradient(q);
    const CornuAxis          *height = &g.walk.axis[0], *width = &g.walk.axis[1];
    if (!g.products->selects) return cornu__needs(false, "AVX-512");
    if (g.gather || g.walk.in_channels % CORNU_SELECT_GROUP)
        return cornu__needs(false, "channels in whole groups");
    return cornu__needs(height->stride == 1 && width->stride == 1 && height->out > 1 &&
                        width->out > 1, "strides of 1, and windows");
}

static size_t scratch(const CornuQuery *q) { return cornu__filter_scratch(&sums_of, q); }

static CornuStatus grad_filter(const CornuKernelCall *call)
{
    return cornu__filter_run(&sums_of, call);
}

const CornuKernel cornu__host_conv2d_grad_filter_pooled = {
    .name = "conv2d_filter_pooled", .declines = pooled_declines, .joins = cornu__joins_two_by_two,
    .scratch = scratch, .run = grad_filter,
};
