/* Source: LiteRT, tflite/kernels/internal/reference/integer_ops/pooling.h. */
#include <string.h>

#include "isa/int8.h"
#include "kernels.h"
#include "window.h"

typedef struct {
    CornuTaps rows, columns;
} Under;

static Under under(const CornuInt8Window *w, int64_t i, int64_t j)
{
    return (Under){
        cornu__taps(i, w->stride_height, w->pad_height, w->height, 1, w->in_height),
        cornu__taps(j, w->stride_width, w->pad_width, w->width, 1, w->in_width)
    };
}

void cornu__int8_max_pool(const CornuInt8Window *w, CornuBounds bounds, const int8_t *x, int8_t *y)
{
    const CornuInt8Loops *loops = cornu__int8_loops();
    const int64_t         channels = w->in_channels;
    for (int64_t b = 0; b < w->batch; b++, x += w->in_height * w->in_width * channels)
        for (int64_t i = 0; i < w->out_height; i++)
            for (int64_t j = 0; j < w->out_width; j++, y += channels) {
                const Under at = under(w, i, j);
                memset(y, bounds.low, (size_t)channels);
                for (int64_t h = at.rows.first; h < at.rows.end; h++)
                    for (int64_t v = at.columns.first; v < at.columns.end; v++) {
                        const int8_t *from = x + ((at.rows.begin + h) * w->in_width +
                                                  at.columns.begin + v) * channels;
                        loops->maximum(channels, from, y);
                    }
                for (int64_t c = 0; c < channels && bounds.high < CORNU_INT8_MAX; c++)
                    y[c] = y[c] > bounds.high ? (int8_t)bounds.high : y[c];
            }
}

enum { CHUNK = 64 };

/* Of up to CHUNK channels. Sums of 32 bits are emptied long before they could overflow. */
static void sum_channels(const CornuInt8Window *w, const Under *at, int64_t channels,
                         const int8_t *x, int64_t totals[CHUNK])
{
    enum { MOST_TERMS = 1 << 20 };
    const CornuInt8Loops *loops = cornu__int8_loops();
    int32_t               sums[CHUNK] = { 0 };
    int64_t               terms = 0;
    memset(totals, 0, CHUNK * sizeof *totals);
    for (int64_t h = at->rows.first; h < at->rows.end; h++)
        for (int64_t v = at->columns.first; v < at->columns.end; v++) {
            loops->accumulate(channels, x + ((at->rows.begin + h) * w->in_width +
                                             at->columns.begin + v) * w->in_channels, sums);
            if (++terms % MOST_TERMS) continue;
            for (int64_t c = 0; c < channels; c++) totals[c] += sums[c];
            memset(sums, 0, sizeof sums);
        }
    for (int64_t c = 0; c < channels; c++) totals[c] += sums[c];
}

static int8_t mean_of(int64_t sum, int64_t count, CornuBounds bounds)
{
    const int64_t half = sum > 0 ? count / 2 : -(count / 2);
    const int64_t mean = count > 0 ? (sum + half) / count : 0;
    return (int8_t)cornu__fixed_clamp((int32_t)mean, bounds.low, bounds.high);
}

void cornu__int8_average_pool(const CornuInt8Window *w, CornuBounds bounds, const int8_t *x,
                              int8_t *y)
{
    const int64_t channels = w->in_channels;
    int64_t       totals[CHUNK];
    for (int64_t b = 0; b < w->batch; b++, x += w->in_height * w->in_width * channels)
        for (int64_t i = 0; i < w->out_height; i++)
            for (int64_t j = 0; j < w->out_width; j++) {
                const Under   at = under(w, i, j);
                const int64_t count = (at.rows.end - at.rows.first) *
                                      (at.columns.end - at.columns.first);
                for (int64_t c = 0; c < channels; c += CHUNK) {
                    const int64_t some = channels - c < CHUNK ? channels - c : CHUNK;
                    sum_channels(w, &at, some, x + c, totals);
                    for (int64_t k = 0; k < some; k++) *y++ = mean_of(totals[k], count, bounds);
                }
            }
}
