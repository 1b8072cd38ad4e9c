/* Plots: where ink goes, how long bars are, and the file. */
#include "../../../nn/pictures/plot.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../datasets/images/image.h"
#include "../../../nn/pictures/axis_internal.h"

enum { WHITE = 0xffffff, RED = 0xcc0000, BLUE = 0x0000cc, GREEN = 0x008800 };

static CornuPlot *paper(int width, int height)
{
    CornuPlot *plot = cornu_plot_create(width, height, WHITE);
    assert_non_null(plot);
    return plot;
}

/* Pixels of this colour in a row. */
static int count_in_row(const CornuPlot *plot, int y, CornuColour colour)
{
    int count = 0;
    for (int x = 0; x < cornu_plot_width(plot); x++)
        count += cornu_plot_pixel(plot, x, y) == colour;
    return count;
}

static int count_all(const CornuPlot *plot, CornuColour colour)
{
    int count = 0;
    for (int y = 0; y < cornu_plot_height(plot); y++) count += count_in_row(plot, y, colour);
    return count;
}

static void rectangles_end_where_they_should(void **state)
{
    (void)state;
    CornuPlot *plot = paper(20, 10);
    cornu_plot_fill(plot, 2, 3, 5.5, 4, 0x000000);
    assert_int_equal(count_all(plot, 0x000000), 5 * 4);
    assert_int_equal(cornu_plot_pixel(plot, 2, 3), 0x000000);
    assert_int_equal(cornu_plot_pixel(plot, 1, 3), WHITE);
    assert_int_equal(cornu_plot_pixel(plot, 2, 2), WHITE);
    assert_int_equal(cornu_plot_pixel(plot, 7, 4), 0x808080);   /* half a pixel */
    assert_int_equal(cornu_plot_pixel(plot, 8, 4), WHITE);
    cornu_plot_fill(plot, -100, -100, 1000, 1000, RED);         /* beyond every edge */
    assert_int_equal(count_all(plot, RED), 200);
    cornu_plot_free(plot);
}

static void lines_are_as_thick_as_asked(void **state)
{
    (void)state;
    CornuPlot *plot = paper(40, 20);
    cornu_plot_line(plot, 5, 10, 35, 10, 4, 0x000000);
    for (int y = 0; y < 20; y++)
        assert_int_equal(cornu_plot_pixel(plot, 20, y), y >= 8 && y < 12 ? 0x000000 : WHITE);
    assert_int_equal(cornu_plot_pixel(plot, 0, 10), WHITE);
    cornu_plot_free(plot);
}

/* ---- Text ---- */

static void characters_differ(void **state)
{
    (void)state;
    CornuPlot *plots[95];
    for (int i = 0; i < 95; i++) {
        plots[i] = paper(32, 40);
        cornu_plot_text(plots[i], (char[]){ (char)(' ' + i), '\0' }, 4, 28, .size = 18);
        assert_true((count_all(plots[i], WHITE) < 32 * 40) == (i > 0));
        for (int k = 0; k < i; k++) {
            int differ = 0;
            for (int p = 0; p < 32 * 40; p++)
                differ += cornu_plot_pixel(plots[i], p % 32, p / 32) !=
                          cornu_plot_pixel(plots[k], p % 32, p / 32);
            if (differ < 4) fail_msg("'%c' looks like '%c'", ' ' + i, ' ' + k);
        }
    }
    for (int i = 0; i < 95; i++) cornu_plot_free(plots[i]);
}

/* The bounding box of the ink: x0 y0 x1 y1. */
static void ink_box(const CornuPlot *plot, int box[4])
{
    box[0] = box[1] = 10000;
    box[2] = box[3] = -1;
    for (int y = 0; y < cornu_plot_height(plot); y++)
        for (int x = 0; x < cornu_plot_width(plot); x++) {
            if (cornu_plot_pixel(plot, x, y) == WHITE) continue;
            if (x < box[0]) box[0] = x;
            if (y < box[1]) box[1] = y;
            if (x > box[2]) box[2] = x;
            if (y > box[3]) box[3] = y;
        }
}

static void text_stands_where_it_is_put(void **state)
{
    (void)state;
    const CornuPlotAlignment alignments[] = { CORNU_PLOT_LEFT, CORNU_PLOT_CENTRE,
                                              CORNU_PLOT_RIGHT };
    const double width = cornu_plot_text_width("HOME", 24);
    for (int i = 0; i < 3; i++) {
        CornuPlot *plot = paper(300, 60);
        int        box[4];
        cornu_plot_text(plot, "HOME", 150, 40, .size = 24, .alignment = alignments[i]);
        ink_box(plot, box);
        const double left = 150 - width * i / 2;
        assert_true(fabs(box[0] - left) <= 3 && fabs(box[2] - (left + width)) <= 8);
        assert_true(abs(box[1] - (40 - 24)) <= 3 && abs(box[3] - 40) <= 3);   /* on the baseline */
        cornu_plot_free(plot);
    }
    assert_float_equal(cornu_plot_text_width("HOMEHOME", 12), width, 1e-9);
    assert_float_equal(cornu_plot_text_width("1", 12), cornu_plot_text_width("0", 12), 1e-9);
}

static void what_is_not_ascii_is_a_question_mark(void **state)
{
    (void)state;
    CornuPlot *seen = paper(60, 30), *expected = paper(60, 30);
    cornu_plot_text(seen, "\xc3\xa4\x07", 5, 20);
    cornu_plot_text(expected, "???", 5, 20);
    for (int p = 0; p < 60 * 30; p++)
        assert_int_equal(cornu_plot_pixel(seen, p % 60, p / 60),
                         cornu_plot_pixel(expected, p % 60, p / 60));
    cornu_plot_free(seen);
    cornu_plot_free(expected);
}

/* ---- Bars ---- */

static const CornuPlotSeries series[] = { { "native", BLUE }, { "emulated", RED } };

/* Length of the bar of this colour; there is one of each. */
static int bar_length(const CornuPlot *plot, CornuColour colour)
{
    int most = 0;
    for (int y = 0; y < cornu_plot_height(plot); y++)
        if (count_in_row(plot, y, colour) > most) most = count_in_row(plot, y, colour);
    return most;
}

/* The mean position of the pixels of this colour below the legend. */
static double mean_column(const CornuPlot *plot, CornuColour colour)
{
    double sum = 0.0, count = 0.0;
    for (int y = 50; y < cornu_plot_height(plot); y++)
        for (int x = 0; x < cornu_plot_width(plot); x++) {
            sum += cornu_plot_pixel(plot, x, y) == colour ? x : 0;
            count += cornu_plot_pixel(plot, x, y) == colour;
        }
    return sum / count;
}

static void bars_are_as_long_as_their_values(void **state)
{
    (void)state;
    const CornuPlotBar bars[] = { { "cpu", 4.0, "4 s", 0 }, { "tpu", 1.0, "1 s", 1 },
                                  { "none", NAN, NULL, 1 }, { "below", -3.0, NULL, 1 } };
    CornuPlot *plot = paper(800, 300);
    cornu_plot_bars(plot, 10, 10, 780, 280, "Epochs", "seconds", bars, 4, series, 2);
    const int cpu = bar_length(plot, BLUE), tpu = bar_length(plot, RED);
    assert_in_range(cpu, 400, 780);
    assert_true(fabs(cpu - 4.0 * tpu) <= 8);
    cornu_plot_free(plot);

    /* A logarithmic axis has no 0 for bars to begin at: there are dots, of one size, where their
     * values are on an axis from 0.5, which is the first below 1 / 1.5, to 500. */
    const CornuPlotBar far[] = { { "a", 5.0, NULL, 0 }, { "b", 500.0, NULL, 1 },
                                 { "c", 1.0, NULL, 2 } };
    const CornuPlotSeries colours[] = { { "a", BLUE }, { "b", RED }, { "c", GREEN } };
    plot = paper(800, 300);
    cornu_plot_bars(plot, 10, 10, 780, 280, .bars = far, .count = 3, .series = colours,
                    .series_count = 3, .logarithmic = true);
    const double a = mean_column(plot, BLUE), b = mean_column(plot, RED);
    const double c = mean_column(plot, GREEN);
    assert_true(fabs((b - a) - 2.0 * (a - c) / log10(5.0)) <= 2);
    assert_true(b - c > 300);
    for (int i = 0; i < 3; i++) assert_in_range(bar_length(plot, colours[i].colour), 8, 12);
    cornu_plot_free(plot);

    plot = paper(100, 60);
    cornu_plot_bars(plot, 0, 0, 100, 60, .count = 0);   /* no bars, no harm */
    cornu_plot_free(plot);
}

/* ---- Lines ---- */

/* The mean row of a colour's pixels in a column; NaN without any. */
static double height_at(const CornuPlot *plot, int x, CornuColour colour)
{
    double sum = 0.0, count = 0.0;
    for (int y = 0; y < cornu_plot_height(plot); y++) {
        if (cornu_plot_pixel(plot, x, y) != colour) continue;
        sum += y;
        count++;
    }
    return sum / count;
}

static void lines_go_from_value_to_value(void **state)
{
    (void)state;
    enum { COUNT = 101 };   /* too many for points */
    double        values[COUNT], few[COUNT];
    const double *lines[] = { values, few };
    const CornuPlotSeries both[] = { { "a", BLUE }, { "b", RED } };
    for (int i = 0; i < COUNT; i++) {
        values[i] = i;
        few[i] = i % 50 ? NAN : 100 - i;   /* three values, and a line from each to the next */
    }
    CornuPlot *plot = paper(600, 300);
    cornu_plot_lines(plot, 10, 10, 580, 280, "Title", "epoch", lines, COUNT, both, 2, .first = 1);
    const double left = height_at(plot, 200, BLUE), middle = height_at(plot, 300, BLUE);
    const double right = height_at(plot, 400, BLUE);
    assert_true(left > middle + 20 && fabs(left + right - 2 * middle) <= 2);
    const double down = height_at(plot, 200, RED) - height_at(plot, 300, RED);
    assert_true(fabs(down + left - middle) <= 2);
    cornu_plot_free(plot);

    /* The last values stand right of the area, in their colours, apart from each other. */
    few[COUNT - 1] = 99.5;
    plot = paper(600, 300);
    cornu_plot_lines(plot, 10, 10, 580, 280, "Title", "epoch", lines, COUNT, both, 2, .first = 1,
                     .last_values = true);
    int of[2][2] = { { 0 } };   /* of each series: first and last row with its colour */
    for (int y = 0; y < 300; y++)
        for (int x = 536; x < 590; x++)
            for (int s = 0; s < 2; s++) {
                if (cornu_plot_pixel(plot, x, y) != both[s].colour) continue;
                if (!of[s][0]) of[s][0] = y;
                of[s][1] = y;
            }
    assert_true(of[0][0] > 0 && of[1][0] > of[0][1]);
    cornu_plot_free(plot);

    /* One value is a point in the middle; none is nothing. */
    plot = paper(600, 300);
    cornu_plot_lines(plot, 10, 10, 580, 280, .values = lines, .count = 1, .series = both,
                     .series_count = 1);
    assert_in_range(count_all(plot, BLUE), 15, 50);
    cornu_plot_free(plot);
    plot = paper(600, 300);
    values[0] = INFINITY;
    cornu_plot_lines(plot, 10, 10, 580, 280, .values = lines, .count = 1, .series = both,
                     .series_count = 1);
    cornu_plot_lines(plot, 10, 10, 580, 280, .count = 0);
    assert_int_equal(count_all(plot, BLUE), 0);
    cornu_plot_free(plot);
}

/* All ticks of an axis, "0 0.2 0.4". */
static const char *ticks_of(const CornuAxis *axis)
{
    static char text[200];
    char        one[32];
    size_t      length = 0;
    double      tick = cornu__axis_first_tick(axis);
    for (; !isnan(tick) && length < 160; tick = cornu__axis_next_tick(axis, tick))
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s", length ? " " : "",
                                   cornu__axis_tick_text(one, tick));
    return text;
}

static void ticks_are_at_round_numbers(void **state)
{
    (void)state;
    CornuAxis axis = cornu__axis_linear(0, 100, 0.013, 0.987, 5);
    assert_string_equal(ticks_of(&axis), "0 0.2 0.4 0.6 0.8 1");
    axis = cornu__axis_linear(0, 100, -0.1, 0.1, 4);
    assert_string_equal(ticks_of(&axis), "-0.1 -0.05 0 0.05 0.1");
    axis = cornu__axis_linear(0, 100, 1.0, 1.0, 4);
    assert_string_equal(ticks_of(&axis), "0.9 0.95 1");
    axis = cornu__axis_whole(0, 100, 1, 12, 6);
    assert_string_equal(ticks_of(&axis), "2 4 6 8 10 12");
    axis = cornu__axis_whole(0, 100, 3, 3, 6);
    assert_string_equal(ticks_of(&axis), "3");
    assert_float_equal(cornu__axis_place(&axis, 3), 50, 1e-9);
    axis = cornu__axis_logarithmic(0, 100, 0.6, 9);
    assert_string_equal(ticks_of(&axis), "0.5 1 2 5 10");
}

/* ---- Files ---- */

static void a_file_holds_the_pixels(void **state)
{
    (void)state;
    char       path[] = "/tmp/cornu-plot-XXXXXX";
    CornuPlot *plot = paper(37, 23);
    CornuArray image;
    cornu_plot_fill(plot, 3, 4, 10, 11.5, RED);
    close(mkstemp(path));
    assert_int_equal(cornu_plot_save(plot, path), CORNU_OK);
    assert_int_equal(cornu_image_load(path, 3, &image), CORNU_OK);
    unlink(path);
    assert_int_equal(image.type.shape.extent[0], 23);
    assert_int_equal(image.type.shape.extent[1], 37);
    for (int p = 0; p < 37 * 23; p++) {
        const uint8_t *rgb = (const uint8_t *)image.data + (ptrdiff_t)3 * p;
        assert_int_equal(rgb[0] << 16 | rgb[1] << 8 | rgb[2],
                         cornu_plot_pixel(plot, p % 37, p / 37));
    }
    free(image.data);
    assert_int_equal(cornu_plot_save(plot, "/absent/p.png"), CORNU_ERR_FILE);
    assert_non_null(strstr(cornu_error_message(), "/absent/p.png: cannot be written"));
    cornu_plot_free(plot);
}

static void wrong_extents_are_refused(void **state)
{
    (void)state;
    assert_null(cornu_plot_create(0, 10, WHITE));
    assert_int_equal(cornu_error_take(), CORNU_ERR_ARGUMENT);
    assert_null(cornu_plot_create(10, 16385, WHITE));
    assert_int_equal(cornu_error_take(), CORNU_ERR_ARGUMENT);
    assert_non_null(strstr(cornu_error_message(), "10 by 16385 pixels, expected 1 to 16384"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rectangles_end_where_they_should),
        cmocka_unit_test(lines_are_as_thick_as_asked),
        cmocka_unit_test(characters_differ),
        cmocka_unit_test(text_stands_where_it_is_put),
        cmocka_unit_test(what_is_not_ascii_is_a_question_mark),
        cmocka_unit_test(bars_are_as_long_as_their_values),
        cmocka_unit_test(lines_go_from_value_to_value),
        cmocka_unit_test(ticks_are_at_round_numbers),
        cmocka_unit_test(a_file_holds_the_pixels),
        cmocka_unit_test(wrong_extents_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
