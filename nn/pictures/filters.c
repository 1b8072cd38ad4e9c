/* The kernels of a convolution. */
#include "pictures_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIDE = 60, BESIDE = 8, BETWEEN = 12, LEAST_ACROSS = 8, MOST_ACROSS = 16, CHANNELS = 8 };

/* White is zero. */
static CornuColour diverging(double part)
{
    enum { BELOW = 0xb2182b, ABOVE = 0x2166ac };
    return part < 0.5 ? cornu__picture_blend(CORNU__WHITE, BELOW, 1.0 - 2.0 * part)
                      : cornu__picture_blend(CORNU__WHITE, ABOVE, 2.0 * part - 1.0);
}

/* The number of filters in a row: with as few empty places in the last row as possible, then as
 * close to a square as possible. */
static int64_t choose_across(int64_t filters)
{
    if (filters <= LEAST_ACROSS) return filters;
    int64_t best = 0, best_empty = 0, best_bend = 0;
    for (int64_t across = LEAST_ACROSS; across <= MOST_ACROSS; across++) {
        const int64_t empty = (across - filters % across) % across;
        const int64_t bend = llabs(across * across - filters);
        if (best && (empty > best_empty || (empty == best_empty && bend >= best_bend))) continue;
        best = across;
        best_empty = empty;
        best_bend = bend;
    }
    return best;
}

/* The largest finite |weight|; 1 if all are zero. */
static double largest(CornuArray kernel)
{
    double most = 0.0;
    for (int64_t i = 0; i < cornu_type_count(kernel.type); i++)
        most = fmax(most, isfinite(cornu_array_get(kernel, i)) ? fabs(cornu_array_get(kernel, i))
                                                               : 0.0);
    return most > 0.0 ? most : 1.0;
}

/* Three channels are red, green and blue: one picture, grey where all are zero. */
enum { RGB = 3 };

static CornuColour grey(double part)
{
    return cornu__picture_blend(0x000000, CORNU__WHITE, part);
}

/* Of an element, or of three, of which `first` is the first. */
static CornuColour colour_of(CornuArray kernel, int64_t first, double most)
{
    CornuColour colour = 0;
    if (kernel.type.shape.extent[2] != RGB) {
        const double value = cornu_array_get(kernel, first);
        return isfinite(value) ? diverging(0.5 + 0.5 * value / most) : CORNU__AXIS;
    }
    for (int c = 0; c < RGB; c++) {
        const double value = cornu_array_get(kernel, first + c * kernel.type.shape.extent[3]);
        if (!isfinite(value)) return CORNU__AXIS;
        colour = colour << 8 | (grey(0.5 + 0.5 * value / most) & 0xff);
    }
    return colour;
}

static void draw_kernel(CornuPlot *plot, CornuArray kernel, int64_t channel, int64_t filter,
                        double most, double x, double y, int scale)
{
    const int64_t *extent = kernel.type.shape.extent;
    const int64_t  H = extent[0], W = extent[1], C = extent[2], F = extent[3];
    cornu_plot_fill(plot, x - 1, y - 1, (double)(W * scale) + 2, (double)(H * scale) + 2,
                    CORNU__RULE);
    for (int64_t h = 0; h < H; h++)
        for (int64_t w = 0; w < W; w++)
            cornu_plot_fill(plot, x + (double)(w * scale), y + (double)(h * scale), scale, scale,
                            colour_of(kernel, ((h * W + w) * C + channel) * F + filter, most));
}

static void describe_filters(char note[CORNU__PICTURE_TEXT], const int64_t *extent)
{
    const long long H = extent[0], W = extent[1], C = extent[2], F = extent[3];
    const int       length = snprintf(note, CORNU__PICTURE_TEXT, "%lld filter%s of %lld x %lld",
                                      F, F == 1 ? "" : "s", H, W);
    const size_t    room = CORNU__PICTURE_TEXT - (size_t)length;
    if (C == RGB)
        snprintf(note + length, room, " as red, green and blue; zero is grey");
    else if (C > CHANNELS)
        snprintf(note + length, room, ", the first %d of %lld channels below each other", CHANNELS,
                 C);
    else if (C > 1)
        snprintf(note + length, room, ", %lld channels below each other", C);
}

CornuPlot *cornu_picture_filters(CornuArray kernel, const char *title)
{
    const int64_t *extent = kernel.type.shape.extent, H = extent[0], W = extent[1];
    CornuText      text;
    if (kernel.type.dtype != CORNU_F32 || kernel.type.shape.rank != 4 ||
        cornu_type_count(kernel.type) < 1)
        return cornu__fail_null(CORNU_ERR_SHAPE, "filters: the kernel is %s, expected f32 "
                                "(H, W, C, F)", cornu_type_print(&text, kernel.type));
    const bool    rgb = extent[2] == RGB;
    const int64_t channels = rgb ? 1 : extent[2] < CHANNELS ? extent[2] : CHANNELS;
    const int64_t filters = extent[3];
    const int64_t across = choose_across(filters), blocks = (filters + across - 1) / across;
    const int     side = (int)fmax(1.0, floor((double)SIDE / (double)(H > W ? H : W)));
    const double  cell_x = (double)(W * side) + BESIDE, cell_y = (double)(H * side) + BESIDE;
    const double  block = (double)channels * cell_y + (channels > 1 ? BETWEEN : 0);
    const double  right = CORNU__MARGIN + (double)across * cell_x;
    const double  height = fmax((double)blocks * block, 2 * SIDE);
    const double  most = largest(kernel);
    char          note[CORNU__PICTURE_TEXT];
    describe_filters(note, extent);
    CornuPlot *plot = cornu__picture_create(right + CORNU__PICTURE_SCALE, height, title, note);
    if (!plot) return NULL;
    for (int64_t f = 0; f < filters; f++) {
        const int64_t row = f / across, column = f % across;
        for (int64_t c = 0; c < channels; c++)
            draw_kernel(plot, kernel, c, f, most, CORNU__MARGIN + (double)column * cell_x,
                        CORNU__PICTURE_HEAD + (double)row * block + (double)c * cell_y, side);
    }
    const CornuPictureScale scale = { -most, most, rgb ? grey : diverging, NULL };
    cornu__picture_scale(plot, &scale, right + BETWEEN, CORNU__PICTURE_HEAD,
                         fmin(height - BESIDE, 4 * SIDE));
    return plot;
}
