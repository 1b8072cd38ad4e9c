/* Pictures of a training: where things are drawn, and what is refused. */
#include "../../../nn/pictures/pictures.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../nn/training/training_internal.h"
#include "../../../nn/pictures/pictures_internal.h"

static int count_in(const CornuPlot *plot, int x0, int y0, int x1, int y1, CornuColour colour)
{
    int count = 0;
    for (int y = y0; y < y1; y++)
        for (int x = x0; x < x1; x++) count += cornu_plot_pixel(plot, x, y) == colour;
    return count;
}

static int count_all(const CornuPlot *plot, CornuColour colour)
{
    return count_in(plot, 0, 0, cornu_plot_width(plot), cornu_plot_height(plot), colour);
}

static void refused(CornuPlot *plot, CornuStatus status, const char *message)
{
    assert_null(plot);
    assert_int_equal(cornu_error_take(), status);
    if (!strstr(cornu_error_message(), message)) fail_msg("%s", cornu_error_message());
}

/* ---- Curves ---- */

/* A history of these losses; a NaN in `validation` is a missing value, all NaN a missing key. */
static CornuHistory *history_of(int epochs, const double *loss, const double *validation,
                                bool metric)
{
    CornuHistory *history = cornu__history_create();
    for (int i = 0; i < epochs; i++) {
        CornuLog        logs[3] = { { "loss", loss[i] } };
        int             count = 1;
        const CornuInfeed infeed = { 0 };
        if (metric) logs[count++] = (CornuLog){ "accuracy", 0.5 };
        if (validation && !isnan(validation[i]))
            logs[count++] = (CornuLog){ "val_loss", validation[i] };
        assert_int_equal(cornu__history_add(history, i, &(CornuLogs){ count, logs }, 1.0, 1,
                                            &infeed), CORNU_OK);
    }
    return history;
}

/* Pixels of both lines, and the height of the picture. */
static void curves_of(CornuHistory *history, int *training, int *validation, int *height)
{
    CornuPlot *plot = cornu_picture_curves(history, "title");
    assert_non_null(plot);
    *training = count_all(plot, CORNU__BLUE);
    *validation = count_all(plot, CORNU__ORANGE);
    *height = cornu_plot_height(plot);
    cornu_plot_free(plot);
    cornu_history_free(history);
}

static void curves_show_what_there_is(void **state)
{
    (void)state;
    const double loss[] = { 2.0, 1.0, 0.5 }, some[] = { 2.5, NAN, 1.0 };
    int          blue, orange, height, one_blue, one_height;
    curves_of(history_of(3, loss, some, true), &blue, &orange, &height);
    assert_true(blue > 700 && orange > 300);     /* lines, across the picture, and legends */
    curves_of(history_of(3, loss, NULL, false), &blue, &orange, &one_height);
    assert_int_equal(orange, 0);
    assert_true(blue > 300 && one_height < height);
    curves_of(history_of(1, loss, NULL, false), &one_blue, &orange, &height);
    assert_true(one_blue > 15 && one_blue < 60);  /* a point */
    assert_int_equal(height, one_height);
    curves_of(history_of(0, loss, NULL, false), &blue, &orange, &height);
    assert_int_equal(blue + orange, 0);
}

/* ---- Predictions ---- */

enum { N = 4, SIDE = 64, CELL = SIDE + 10, TOP = CORNU__PICTURE_HEAD };

static const char *const names[] = { "a", "b" };
static uint8_t images[N][2][2], labels[N] = { 0, 1, 1, 0 };
static float   predictions[N][2] = { { 1, 0 }, { 0.9F, 0.1F }, { 0, 1 }, { 0.5F, 0.6F } };

/* Numbers 1 and 3 are wrong; each image has a grey of its own. */
static CornuPicturePredictions four(void)
{
    for (int i = 0; i < N; i++) memset(images[i], 40 * (i + 1), 4);
    return (CornuPicturePredictions){
        .title = "t", .images = cornu_array(images, CORNU_U8, N, 2, 2),
        .labels = cornu_array(labels, CORNU_U8, N),
        .predictions = cornu_array(predictions, CORNU_F32, N, 2), .names = names };
}

static void wrong_predictions_come_first_and_red(void **state)
{
    (void)state;
    const CornuPicturePredictions config = four();
    const int                     order[] = { 1, 3, 0, 2 };
    CornuPlot                    *plot = cornu_picture_predictions_from(&config);
    assert_non_null(plot);
    for (int i = 0; i < N; i++) {
        const int         left = CORNU__MARGIN + i * CELL;
        const CornuColour grey = 0xffU - 40U * (unsigned)(order[i] + 1);
        assert_int_equal(cornu_plot_pixel(plot, left + SIDE / 2, TOP + SIDE / 2),
                         grey << 16 | grey << 8 | grey);
        int red = 0;
        for (int y = TOP + SIDE; y < TOP + SIDE + 40; y++)
            for (int x = left; x < left + SIDE; x++) {
                const CornuColour colour = cornu_plot_pixel(plot, x, y);
                red += (colour >> 16) > (colour & 0xff) + 40;
            }
        assert_true(i < 2 ? red > 5 : red == 0);
    }
    cornu_plot_free(plot);
}

static void predictions_are_as_many_as_asked(void **state)
{
    (void)state;
    CornuPicturePredictions config = four();
    CornuPlot              *all = cornu_picture_predictions_from(&config);
    config.across = 2;
    CornuPlot *square = cornu_picture_predictions_from(&config);
    config.down = 1;
    CornuPlot *row = cornu_picture_predictions_from(&config);
    const int  line = cornu_plot_height(square) - cornu_plot_height(row);
    assert_true(line > SIDE + 20);
    assert_int_equal(cornu_plot_height(all), cornu_plot_height(row));
    assert_int_equal(cornu_plot_width(square), cornu_plot_width(row));
    cornu_plot_free(all);
    cornu_plot_free(square);
    cornu_plot_free(row);

    char note[CORNU__PICTURE_TEXT];
    cornu__predictions_note(note, 120, 10000, 312);
    assert_string_equal(note, "120 of 10000 shown, wrong ones first: in red, with the "
                              "probability, above the true class. "
                              "Of all 10000, 312 are wrong (3.12 %)");
}

/* Of 1,000 wrong predictions and 30 right ones: a page, whose last rows are right ones. */
static void a_page_has_right_ones(void **state)
{
    (void)state;
    enum { MANY = 1030, ACROSS = 12, DOWN = 10, ROW = SIDE + 56 };
    static uint8_t many[MANY][2][2], truth[MANY];
    static float   guesses[MANY][2];
    for (int i = 0; i < MANY; i++) {
        memset(many[i], 200, 4);
        truth[i] = i >= 1000;
        guesses[i][1] = 0.75F;
    }
    CornuPlot *plot = cornu_picture_predictions(
        "t", cornu_array(many, CORNU_U8, MANY, 2, 2), cornu_array(truth, CORNU_U8, MANY),
        cornu_array(guesses, CORNU_F32, MANY, 2), names);
    assert_non_null(plot);
    const double shape = (double)cornu_plot_height(plot) / cornu_plot_width(plot);
    assert_true(shape > 1.3 && shape < 1.45);           /* A4: 1.414 */
    assert_true(cornu_plot_width(plot) <= 1000);
    for (int row = 0; row < DOWN; row++) {
        int red = 0, ink = 0;
        for (int y = TOP + row * ROW + SIDE; y < TOP + (row + 1) * ROW; y++)
            for (int x = CORNU__MARGIN; x < CORNU__MARGIN + ACROSS * CELL; x++) {
                const CornuColour colour = cornu_plot_pixel(plot, x, y);
                red += (colour >> 16) > (colour & 0xff) + 40;
                ink += colour != 0xffffff;
            }
        assert_true(row < 8 ? red > 60 : red == 0);
        assert_true(ink > 300);
    }
    cornu_plot_free(plot);
}

/* Below the image: the class, then "100 %", which is wider than "50 %", as no other line is. */
static void predictions_have_probabilities(void **state)
{
    (void)state;
    CornuPicturePredictions config = four();
    int                     pixels[2];
    for (int k = 0; k < 2; k++) {
        float sure[N][2] = { { 1, 0 }, { 1, 0 }, { 0, 1 }, { 0, 1 } };
        if (k) sure[0][0] = 0.5F;
        config.predictions.data = sure;
        CornuPlot *plot = cornu_picture_predictions_from(&config);
        const int  left = CORNU__MARGIN + 2 * CELL;   /* the first of the right ones */
        pixels[k] = 0;
        for (int y = TOP + SIDE + 19; y < TOP + SIDE + 30; y++)
            for (int x = left; x < left + SIDE; x++)
                pixels[k] += cornu_plot_pixel(plot, x, y) != 0xffffff;
        cornu_plot_free(plot);
    }
    assert_true(pixels[0] > pixels[1] && pixels[1] > 20);
}

/* As they are, where grey ones are inverted unless they are photographs. */
static void colours_are_kept(void **state)
{
    (void)state;
    static uint8_t          rgb[N][2][2][3];
    CornuPicturePredictions config = four();
    for (int i = 0; i < N * 4; i++)
        memcpy(&rgb[0][0][0][0] + 3 * i, (uint8_t[]){ 200, 100, 50 }, 3);
    config.images = cornu_array(rgb, CORNU_U8, N, 2, 2, 3);
    CornuPlot *plot = cornu_picture_predictions_from(&config);
    assert_non_null(plot);
    assert_int_equal(cornu_plot_pixel(plot, CORNU__MARGIN + SIDE / 2, TOP + SIDE / 2), 0xc86432);
    cornu_plot_free(plot);
    config = four();
    config.dark_on_light = true;
    plot = cornu_picture_predictions_from(&config);
    assert_int_equal(cornu_plot_pixel(plot, CORNU__MARGIN + SIDE / 2, TOP + SIDE / 2), 0x505050);
    cornu_plot_free(plot);
}

static void all_right_has_no_red(void **state)
{
    (void)state;
    CornuPicturePredictions config = four();
    uint8_t                 zeros[N] = { 0 };
    float                   ones[N] = { 1, 1, 1, 1 };
    config.labels.data = zeros;
    config.predictions = cornu_array(ones, CORNU_F32, N, 1);   /* one class */
    CornuPlot *plot = cornu_picture_predictions_from(&config);
    assert_non_null(plot);
    assert_int_equal(count_all(plot, CORNU__RED), 0);
    cornu_plot_free(plot);
}

static void wrong_predictions_are_refused(void **state)
{
    (void)state;
    CornuPicturePredictions config = four();
    config.images.type.shape.extent[0] = 0;
    refused(cornu_picture_predictions_from(&config), CORNU_ERR_SHAPE,
            "images are u8 (0, 2, 2), expected u8 (N, H, W)");
    config = four();
    config.labels.type.shape.extent[0] = 3;
    refused(cornu_picture_predictions_from(&config), CORNU_ERR_SHAPE,
            "labels are u8 (3,), expected whole numbers (4)");
    config = four();
    config.predictions.type.shape.extent[0] = 2;
    refused(cornu_picture_predictions_from(&config), CORNU_ERR_SHAPE, "expected f32 (4, classes)");
    config = four();
    config.across = -1;
    refused(cornu_picture_predictions_from(&config), CORNU_ERR_ARGUMENT, "-1 by 0 samples");
    uint8_t beyond[N] = { 0, 1, 2, 0 };
    config = four();
    config.labels.data = beyond;
    refused(cornu_picture_predictions_from(&config), CORNU_ERR_VALUE,
            "label 2 is 2, expected 0 to 1");
    float none[N][2] = { { 1, 0 }, { 1, NAN } };
    config = four();
    config.predictions.data = none;
    refused(cornu_picture_predictions_from(&config), CORNU_ERR_VALUE,
            "prediction 1 is NaN for some class");
}

/* ---- Filters ---- */

static void filters_diverge_from_white(void **state)
{
    (void)state;
    const float weights[] = { -2.0F, 0.0F, 2.0F, NAN };   /* four filters of 1 x 1 */
    CornuPlot  *plot = cornu_picture_filters(cornu_array((void *)weights, CORNU_F32, 1, 1, 1, 4),
                                             "t");
    assert_non_null(plot);
    CornuColour seen[4];
    for (int i = 0; i < 4; i++)
        seen[i] = cornu_plot_pixel(plot, CORNU__MARGIN + 30 + i * 68, CORNU__PICTURE_HEAD + 30);
    assert_true(seen[0] >> 16 > (seen[0] & 0xff));        /* red */
    assert_int_equal(seen[1], 0xffffff);
    assert_true(seen[2] >> 16 < (seen[2] & 0xff));        /* blue */
    assert_int_equal(seen[3], CORNU__AXIS);
    cornu_plot_free(plot);
}

static void three_channels_are_a_colour(void **state)
{
    (void)state;
    /* Of 1 x 1: red alone, nothing, all but blue, a NaN. */
    const float weights[3][4] = { { 2, 0, 2, 0 }, { -2, 0, 2, NAN }, { -2, 0, -2, 0 } };
    CornuPlot  *plot = cornu_picture_filters(cornu_array((void *)weights, CORNU_F32, 1, 1, 3, 4),
                                             "t");
    static const CornuColour wanted[] = { 0xff0000, 0x808080, 0xffff00, CORNU__AXIS };
    assert_non_null(plot);
    for (int i = 0; i < 4; i++)
        assert_int_equal(cornu_plot_pixel(plot, CORNU__MARGIN + 30 + i * 68,
                                          CORNU__PICTURE_HEAD + 30), wanted[i]);
    assert_true(cornu_plot_height(plot) < CORNU__PICTURE_HEAD + 2 * 68 + 40);   /* one row */
    cornu_plot_free(plot);
}

static void filters_stand_in_full_rows(void **state)
{
    (void)state;
    static float weights[3 * 3 * 20 * 12];
    CornuPlot   *twelve = cornu_picture_filters(cornu_array(weights, CORNU_F32, 3, 3, 1, 12), NULL);
    CornuPlot   *eight = cornu_picture_filters(cornu_array(weights, CORNU_F32, 3, 3, 1, 8), NULL);
    CornuPlot   *deep = cornu_picture_filters(cornu_array(weights, CORNU_F32, 3, 3, 20, 12), NULL);
    assert_int_equal(cornu_plot_width(twelve) - cornu_plot_width(eight), 4 * 68);
    assert_int_equal(cornu_plot_height(twelve), cornu_plot_height(eight));
    /* Eight channels of the twenty. */
    assert_in_range(cornu_plot_height(deep), 8 * 68, 8 * 68 + 120);
    cornu_plot_free(twelve);
    cornu_plot_free(eight);
    cornu_plot_free(deep);
    refused(cornu_picture_filters(cornu_array(weights, CORNU_F32, 9, 12), NULL), CORNU_ERR_SHAPE,
            "the kernel is f32 (9, 12), expected f32 (H, W, C, F)");
}

/* ---- Confusion ---- */

enum { FIRST_X = CORNU__MARGIN + 40 + 12, FIRST_Y = CORNU__PICTURE_HEAD + 22, CONFUSED = 40 };

/* The paper of a cell, near its corner. */
static CornuColour cell_colour(const CornuPlot *plot, int row, int column)
{
    return cornu_plot_pixel(plot, FIRST_X + column * CONFUSED + 2, FIRST_Y + row * CONFUSED + 2);
}

static bool is_red(CornuColour colour) { return (colour >> 16) > (colour & 0xff) + 8; }

/* Of 1,000 samples seven are wrong: each of their cells is told from an empty one. */
static void few_confusions_are_seen(void **state)
{
    (void)state;
    static const char *const three[] = { "a", "b", "c" };
    int64_t    counts[3][3] = { { 330, 1, 0 }, { 6, 327, 0 }, { 0, 0, 336 } };
    CornuPlot *plot = cornu_picture_confusion(cornu_array(counts, CORNU_I64, 3, 3), three, "t");
    assert_non_null(plot);
    const CornuColour one = cell_colour(plot, 0, 1), six = cell_colour(plot, 1, 0);
    assert_true(is_red(one) && is_red(six) && (one & 0xff) > (six & 0xff) + 60);
    assert_true((one >> 8 & 0xff) <= 0xe8);   /* against 0xff */
    assert_int_equal(cell_colour(plot, 0, 2), 0xffffff);
    assert_int_equal(cell_colour(plot, 2, 0), 0xffffff);
    cornu_plot_free(plot);
}

static void confusion_is_coloured_by_row(void **state)
{
    (void)state;
    int64_t          counts[2][2] = { { 1, 3 }, { 0, 0 } };
    const CornuArray array = cornu_array(counts, CORNU_I64, 2, 2);
    CornuPlot       *plot = cornu_picture_confusion(array, names, "t");
    assert_non_null(plot);
    assert_int_equal(cell_colour(plot, 1, 0), 0xffffff);    /* a class without samples */
    assert_int_equal(cell_colour(plot, 1, 1), 0xffffff);
    const int quarter = 0xff - (int)(cell_colour(plot, 0, 0) >> 16);
    assert_true(quarter > 30 && is_red(cell_colour(plot, 0, 1)));
    cornu_plot_free(plot);
    int64_t other[2][2] = { { 3, 1 }, { 0, 0 } };
    plot = cornu_picture_confusion(cornu_array(other, CORNU_I64, 2, 2), names, "t");
    assert_true(abs(0xff - (int)(cell_colour(plot, 0, 0) >> 16) - 3 * quarter) <= 3);
    cornu_plot_free(plot);

    /* Relative to its row, whatever the number of samples. */
    counts[1][0] = 40;
    plot = cornu_picture_confusion(array, names, "t");
    assert_int_equal(cell_colour(plot, 1, 0), 0xb2182b);
    assert_int_equal(0xff - (int)(cell_colour(plot, 0, 0) >> 16), quarter);
    cornu_plot_free(plot);

    /* A full cell is dark, and its text white. */
    int64_t one = 7;
    plot = cornu_picture_confusion(cornu_array(&one, CORNU_I64, 1, 1), names, NULL);
    assert_non_null(plot);
    assert_int_equal(cell_colour(plot, 0, 0), 0x08458c);
    assert_true(count_in(plot, FIRST_X + 8, FIRST_Y + 8, FIRST_X + 32, FIRST_Y + 32,
                         0xffffff) > 3);
    cornu_plot_free(plot);

    counts[1][0] = -1;
    refused(cornu_picture_confusion(array, names, "t"), CORNU_ERR_VALUE, "count 2 is -1");
    refused(cornu_picture_confusion(cornu_array(counts, CORNU_I64, 1, 2), names, "t"),
            CORNU_ERR_SHAPE, "counts are i64 (1, 2), expected i64 (classes, classes)");
}

static void ink_stands_out(void **state)
{
    (void)state;
    assert_int_equal(cornu__picture_ink_on(0xffffff), CORNU__INK);
    assert_int_equal(cornu__picture_ink_on(0x08458c), CORNU__WHITE);
    assert_int_equal(cornu__picture_ink_on(0xffff00), CORNU__INK);
}

static void long_names_are_shortened(void **state)
{
    (void)state;
    char text[CORNU__PICTURE_TEXT];
    assert_string_equal(cornu__picture_name(text, "ankle_boots", 8, 110), "ankle_boots");
    cornu__picture_name(text, "a name that is much longer than its place", 8, 110);
    assert_string_equal(text + strlen(text) - 2, "..");
    assert_true(cornu_plot_text_width(text, 8) <= 110 && strlen(text) > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(curves_show_what_there_is),
        cmocka_unit_test(wrong_predictions_come_first_and_red),
        cmocka_unit_test(predictions_are_as_many_as_asked),
        cmocka_unit_test(a_page_has_right_ones),
        cmocka_unit_test(predictions_have_probabilities),
        cmocka_unit_test(colours_are_kept),
        cmocka_unit_test(all_right_has_no_red),
        cmocka_unit_test(wrong_predictions_are_refused),
        cmocka_unit_test(filters_diverge_from_white),
        cmocka_unit_test(three_channels_are_a_colour),
        cmocka_unit_test(filters_stand_in_full_rows),
        cmocka_unit_test(few_confusions_are_seen),
        cmocka_unit_test(confusion_is_coloured_by_row),
        cmocka_unit_test(ink_stands_out),
        cmocka_unit_test(long_names_are_shortened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
