/* Sums of products of u8 by int8, against loops one can check by eye. */
#include <stdlib.h>
#include <string.h>

#include "../../../device/edgetpu/isa/int8.h"
#include "../../../device/edgetpu/kernels.h"
#include "../isas.h"
#include "../../skip.h"

enum { CASES = 300 };

static uint64_t seed = 1;

static int64_t draw(int64_t low, int64_t high)   /* both included */
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return low + (int64_t)((seed >> 33) % (uint64_t)(high - low + 1));
}

/* A window, its filter (h, w, C, F), and an image with what may be read past it. */
typedef struct {
    CornuInt8Sums sums;
    int8_t       *filter;
    uint8_t      *x, *panels;
    int32_t      *zeros, *totals;
} Case;

static CornuInt8Window draw_window(void)
{
    CornuInt8Window w = {
        .batch = draw(1, 3), .in_channels = draw(0, 2) ? draw(1, 9) : draw(10, 700),
        .out_channels = draw(0, 3) ? draw(1, 70) : draw(250, 600), .height = draw(1, 3),
        .width = draw(1, 3), .stride_height = draw(1, 2), .stride_width = draw(1, 2),
        .dilation_height = draw(1, 2), .dilation_width = draw(1, 2),
        .out_height = draw(1, 7), .out_width = draw(0, 3) ? draw(1, 30) : draw(90, 210),
    };
    if (!draw(0, 2)) w.height = w.width = w.stride_height = w.stride_width = 1;
    w.in_height = (w.out_height - 1) * w.stride_height + (w.height - 1) * w.dilation_height + 1;
    w.in_width = (w.out_width - 1) * w.stride_width + (w.width - 1) * w.dilation_width + 1;
    return w;
}

static int64_t filter_at(const CornuInt8Window *w, int64_t i, int64_t j, int64_t c, int64_t f)
{
    return ((i * w->width + j) * w->in_channels + c) * w->out_channels + f;
}

static uint8_t *pack(const CornuInt8Window *w, const int8_t *filter)
{
    int64_t       elements;
    const int64_t segments = cornu__int8_segments(w, &elements), groups = (elements + 3) / 4;
    uint8_t      *to = calloc((size_t)((w->out_channels + 15) / 16 * segments * groups), 64);
    for (int64_t f = 0; f < w->out_channels; f++)
        for (int64_t k = 0; k < segments * elements; k++) {
            const int64_t at = k % elements;
            to[((f / 16 * segments + k / elements) * groups + at / 4) * 64 + f % 16 * 4 + at % 4] =
                (uint8_t)filter[k * w->out_channels + f];
        }
    return to;
}

static Case draw_case(bool centred)
{
    const CornuInt8Window w = draw_window();
    const int64_t depth = w.height * w.width * w.in_channels;
    const int64_t pixels = w.batch * w.in_height * w.in_width * w.in_channels;
    Case of = { .filter = malloc((size_t)(depth * w.out_channels)),
                .x = malloc((size_t)pixels + 3),
                .zeros = malloc((size_t)w.out_channels * sizeof(int32_t)),
                .totals = malloc((size_t)w.out_channels * sizeof(int32_t)) };
    for (int64_t i = 0; i < depth * w.out_channels; i++)   /* often as large as they can be */
        of.filter[i] = (int8_t)(draw(0, 3) ? 127 : draw(-128, 127));
    for (int64_t i = 0; i < pixels + 3; i++) of.x[i] = (uint8_t)(draw(0, 3) ? 255 : draw(0, 255));
    for (int64_t f = 0; f < w.out_channels; f++) {
        of.zeros[f] = centred ? 0 : (int32_t)draw(-128, 127);
        of.totals[f] = 0;
        for (int64_t k = 0; k < depth; k++)
            of.totals[f] += of.filter[k * w.out_channels + f] - of.zeros[f];
    }
    of.panels = pack(&w, of.filter);
    of.sums = (CornuInt8Sums){ w, (int32_t)draw(0, 255), of.panels, of.zeros, of.totals };
    return of;
}

static int32_t sum_at(const Case *of, int64_t b, int64_t h, int64_t v, int64_t f)
{
    const CornuInt8Window *w = &of->sums.window;
    int32_t                sum = 0;
    for (int64_t i = 0; i < w->height; i++)
        for (int64_t j = 0; j < w->width; j++)
            for (int64_t c = 0; c < w->in_channels; c++) {
                const int64_t row = h * w->stride_height + i * w->dilation_height;
                const int64_t column = v * w->stride_width + j * w->dilation_width;
                const int64_t at = ((b * w->in_height + row) * w->in_width + column) *
                                       w->in_channels + c;
                sum += (of->x[at] - of->sums.x_zero) *
                       (of->filter[filter_at(w, i, j, c, f)] - of->zeros[f]);
            }
    return sum;
}

static void expect_sums(const Case *of, const int32_t *y, int number)
{
    const CornuInt8Window *w = &of->sums.window;
    for (int64_t i = 0; i < w->batch * w->out_height * w->out_width * w->out_channels; i++) {
        if (i % 7 && i % w->out_channels > 3) continue;   /* some of them, and each row's first */
        const int64_t f = i % w->out_channels, pixel = i / w->out_channels;
        const int32_t want = sum_at(of, pixel / w->out_width / w->out_height,
                                    pixel / w->out_width % w->out_height, pixel % w->out_width, f);
        if (y[i] != want) fail_msg("case %d: %d at %lld, expected %d", number, y[i],
                                   (long long)i, want);
    }
}

static void sums(void **state)
{
    (void)state;
    if (!cornu__int8_sums_run()) SKIP_FOR(SKIP_ISA);
    for (int i = 0; i < CASES; i++) {
        const Case             of = draw_case(i % 3 == 0);
        const CornuInt8Window *w = &of.sums.window;
        const size_t count = (size_t)(w->batch * w->out_height * w->out_width * w->out_channels);
        int32_t     *y = malloc(count * sizeof *y);
        memset(y, 0x55, count * sizeof *y);
        for (int64_t block = cornu__int8_sums_blocks(&of.sums); block-- > 0;)
            cornu__int8_sums(&of.sums, block, of.x, y);
        expect_sums(&of, y, i);
        free(y);
        free(of.filter);
        free(of.x);
        free(of.panels);
        free(of.zeros);
        free(of.totals);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(sums) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
