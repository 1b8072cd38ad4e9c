/* Samples with their predictions below them. */
#include "pictures_internal.h"

#include <math.h>
#include <stdio.h>

#include "../metrics/report.h"

enum {
    PAGE_WIDTH = 960, PAGE_HEIGHT = 1358,   /* the shape of A4 and what is close to it */
    SIDE = 64, NAME_SIZE = 10, SMALL_NAME = 8, NAME_MOST = 110, BESIDE = 10,
    BELOW = 56,       /* three lines of text and the gap to the next row */
    RIGHT_PART = 5,   /* one row of so many is kept for right predictions */
    MOST_IMAGES = 16384,
};

/* The samples to show, in order, and how many of all are wrong. */
typedef struct {
    int64_t *index;
    int64_t  count, wrong, across;
} Choice;

/* The layout of all samples. */
typedef struct {
    CornuPlot *plot;
    double     scale, side;    /* of the images: magnification, and height in pixels */
    double     width, size;    /* of names: pixels, and height of their capitals */
} Style;

static int64_t label_of(const CornuPicturePredictions *config, int64_t i)
{
    return (int64_t)cornu_array_get(config->labels, i);
}

static int64_t predicted_of(const CornuPicturePredictions *config, int64_t i)
{
    const int64_t classes = config->predictions.type.shape.extent[1];
    return cornu_predicted_class((const float *)config->predictions.data + i * classes, classes);
}

static bool is_wrong(const CornuPicturePredictions *config, int64_t i)
{
    return predicted_of(config, i) != label_of(config, i);
}

/* ---- Checks ---- */

static CornuStatus check_types(const CornuPicturePredictions *config)
{
    const CornuType images = config->images.type, labels = config->labels.type;
    const CornuType predictions = config->predictions.type;
    const int64_t  *extent = images.shape.extent;
    const int       rank = images.shape.rank;
    const bool      fit = rank == 3 || (rank == 4 && (extent[3] == 1 || extent[3] == 3));
    CornuText       text;
    if (images.dtype != CORNU_U8 || !fit || cornu_type_count(images) < 1)
        return cornu__fail(CORNU_ERR_SHAPE, "predictions: images are %s, expected u8 (N, H, W) or "
                           "(N, H, W, 1 or 3) with N at least 1", cornu_type_print(&text, images));
    if (cornu_dtype_is_float(labels.dtype) || labels.shape.rank != 1 ||
        labels.shape.extent[0] != extent[0])
        return cornu__fail(CORNU_ERR_SHAPE, "predictions: labels are %s, expected whole numbers "
                           "(%lld)", cornu_type_print(&text, labels), (long long)extent[0]);
    if (predictions.dtype != CORNU_F32 || predictions.shape.rank != 2 ||
        predictions.shape.extent[0] != extent[0] || predictions.shape.extent[1] < 1)
        return cornu__fail(CORNU_ERR_SHAPE, "predictions: they are %s, expected f32 (%lld, "
                           "classes)", cornu_type_print(&text, predictions),
                           (long long)extent[0]);
    return CORNU_OK;
}

static CornuStatus check_predictions(const CornuPicturePredictions *config)
{
    CORNU__TRY(check_types(config));
    const int64_t classes = config->predictions.type.shape.extent[1];
    for (int64_t i = 0; i < config->images.type.shape.extent[0]; i++) {
        const int64_t label = label_of(config, i);
        if (label < 0 || label >= classes)
            return cornu__fail(CORNU_ERR_VALUE, "predictions: label %lld is %lld, expected 0 to "
                               "%lld", (long long)i, (long long)label, (long long)classes - 1);
        if (predicted_of(config, i) < 0)
            return cornu__fail(CORNU_ERR_VALUE, "predictions: prediction %lld is NaN for some "
                               "class, expected numbers", (long long)i);
    }
    if (config->across < 0 || config->down < 0 || config->across > MOST_IMAGES ||
        config->down > MOST_IMAGES)
        return cornu__fail(CORNU_ERR_ARGUMENT, "predictions: %d by %d samples, expected 1 to %d",
                           config->across, config->down, MOST_IMAGES);
    return CORNU_OK;
}

/* ---- Choosing ---- */

/* Names are as wide as the images; wider ones are set smaller and widen the columns. */
static Style choose_style(const CornuPicturePredictions *config)
{
    const int64_t *extent = config->images.type.shape.extent, H = extent[1], W = extent[2];
    const int      classes = (int)config->predictions.type.shape.extent[1];
    const double   scale = (double)SIDE / (double)(H > W ? H : W);
    const double   large = cornu__picture_widest(config->names, classes, NAME_SIZE, INFINITY);
    const double   size = large > SIDE ? SMALL_NAME : NAME_SIZE;
    const double   names = cornu__picture_widest(config->names, classes, size, NAME_MOST);
    return (Style){ .scale = scale, .side = floor((double)H * scale),
                    .width = fmax(SIDE, ceil(names)), .size = size };
}

/* As many as fit a page, unless the numbers are given. Of them, the last rows are for right
 * predictions, unless there are too few. */
static CornuStatus choose_predictions(const CornuPicturePredictions *config, const Style *style,
                                      Choice *choice)
{
    const int64_t all = config->images.type.shape.extent[0];
    const int64_t wide = (int64_t)((PAGE_WIDTH - 2 * CORNU__MARGIN + BESIDE) /
                                   (style->width + BESIDE));
    const int64_t high = (int64_t)((PAGE_HEIGHT - CORNU__PICTURE_HEAD - CORNU__MARGIN) /
                                   (style->side + BELOW));
    const int64_t across = config->across ? config->across : wide > 1 ? wide : 1;
    const int64_t down = config->down ? config->down : high > 1 ? high : 1;
    const int64_t most = across * down < all ? across * down : all;
    int64_t       room[2];   /* of wrong and of right ones */
    *choice = (Choice){ .index = cornu__allocate((size_t)most, sizeof *choice->index),
                        .across = across < all ? across : all };
    if (!choice->index) return CORNU_ERR_MEMORY;
    for (int64_t i = 0; i < all; i++) choice->wrong += is_wrong(config, i);
    const int64_t right = all - choice->wrong, kept = (down + RIGHT_PART - 1) / RIGHT_PART * across;
    room[1] = right < kept && down > 1 ? right : down > 1 ? kept : 0;
    room[0] = most - room[1] < choice->wrong ? most - room[1] : choice->wrong;
    room[1] = most - room[0];
    for (int shown = 0; shown <= 1; shown++)
        for (int64_t i = 0; i < all && room[shown] > 0; i++) {
            if (is_wrong(config, i) == shown) continue;
            choice->index[choice->count++] = i;
            room[shown]--;
        }
    return CORNU_OK;
}

/* ---- Drawing ---- */

/* A position among `extent` pixels, between pixel `low` and the next. */
typedef struct {
    int64_t low, high;
    double  part;
} Between;

static Between between(double place, int64_t extent)
{
    const double inside = fmax(0.0, fmin(place, (double)(extent - 1)));
    const int64_t low = (int64_t)inside;
    return (Between){ low, low + 1 < extent ? low + 1 : low, inside - (double)low };
}

/* Channel c of the image between four pixels. */
static double mix(const uint8_t *image, int64_t W, int64_t C, int64_t c, Between v, Between u)
{
    const double above = (1.0 - u.part) * image[(v.low * W + u.low) * C + c] +
                         u.part * image[(v.low * W + u.high) * C + c];
    const double below = (1.0 - u.part) * image[(v.high * W + u.low) * C + c] +
                         u.part * image[(v.high * W + u.high) * C + c];
    return (1.0 - v.part) * above + v.part * below;
}

/* Enlarged or reduced by bilinear interpolation. */
static void draw_image(CornuPlot *plot, const uint8_t *image, const int64_t extent[3],
                       bool inverted, double scale, int x, int y)
{
    const int64_t H = extent[0], W = extent[1], C = extent[2];
    for (int j = 0; j < (int)((double)H * scale); j++)
        for (int i = 0; i < (int)((double)W * scale); i++) {
            const Between v = between((j + 0.5) / scale - 0.5, H);
            const Between u = between((i + 0.5) / scale - 0.5, W);
            CornuColour   colour = 0;
            for (int c = 0; c < 3; c++) {
                const double light = mix(image, W, C, C == 3 ? c : 0, v, u);
                const CornuColour shade = (CornuColour)(light + 0.5);
                colour = colour << 8 | (inverted ? 0xff - shade : shade);
            }
            cornu_plot_fill(plot, x + i, y + j, 1, 1, colour);
        }
}

void cornu__predictions_note(char note[CORNU__PICTURE_TEXT], int64_t shown, int64_t count,
                             int64_t wrong)
{
    cornu__format(note, CORNU__PICTURE_TEXT, "%lld of %lld shown, wrong ones first: in red, with "
                  "the probability, above the true class. Of all %lld, %lld are wrong (%.2f %%)",
                  (long long)shown,
                  (long long)count, (long long)count, (long long)wrong,
                  100.0 * (double)wrong / (double)count);
}

static void draw_name(const Style *style, const char *name, double middle, double y,
                      CornuColour colour)
{
    char text[CORNU__PICTURE_TEXT];
    cornu_plot_text(style->plot, cornu__picture_name(text, name, style->size, style->width), middle,
                    y, style->size, CORNU_PLOT_CENTRE, .colour = colour);
}

/* "97 %", or a number where predictions are not probabilities. */
static void draw_probability(const Style *style, float value, double middle, double y)
{
    char text[32];
    const double number = (double)value;
    if (number >= 0.0 && number <= 1.0) snprintf(text, sizeof text, "%.0f %%", 100.0 * number);
    else cornu__format(text, sizeof text, "%.3g", number);
    cornu_plot_text(style->plot, text, middle, y, SMALL_NAME, CORNU_PLOT_CENTRE,
                    .colour = CORNU__FAINT_INK);
}

static void draw_sample(const Style *style, const CornuPicturePredictions *config, int64_t sample,
                        double x, double y)
{
    const CornuShape shape = config->images.type.shape;
    const int64_t   *extent = shape.extent, C = shape.rank == 4 ? extent[3] : 1;
    const int64_t    one[3] = { extent[1], extent[2], C }, guess = predicted_of(config, sample);
    const int64_t    classes = config->predictions.type.shape.extent[1];
    const uint8_t   *image = (const uint8_t *)config->images.data + sample * one[0] * one[1] * C;
    const double     middle = x + style->width / 2, line = style->size + 5;
    const double     baseline = y + style->side + line;
    const bool       wrong = is_wrong(config, sample);
    draw_image(style->plot, image, one, C == 1 && !config->dark_on_light, style->scale,
               (int)(middle - (double)one[1] * style->scale / 2), (int)y);
    draw_name(style, config->names[guess], middle, baseline, wrong ? CORNU__RED : CORNU__INK);
    draw_probability(style, ((const float *)config->predictions.data)[sample * classes + guess],
                     middle, baseline + SMALL_NAME + 5);
    if (wrong)
        draw_name(style, config->names[label_of(config, sample)], middle,
                  baseline + SMALL_NAME + 5 + line, CORNU__INK);
}

static CornuPlot *draw_predictions(const CornuPicturePredictions *config, Style style,
                                   const Choice *choice)
{
    const double  cell = style.width + BESIDE, row = style.side + BELOW;
    const int64_t rows = (choice->count + choice->across - 1) / choice->across;
    char          note[CORNU__PICTURE_TEXT];
    cornu__predictions_note(note, choice->count, config->images.type.shape.extent[0],
                            choice->wrong);
    style.plot = cornu__picture_create(2 * CORNU__MARGIN + (double)choice->across * cell - BESIDE,
                                       (double)rows * row, config->title, note);
    for (int64_t i = 0; style.plot && i < choice->count; i++) {
        const int64_t down = i / choice->across, across = i % choice->across;
        draw_sample(&style, config, choice->index[i], CORNU__MARGIN + (double)across * cell,
                    CORNU__PICTURE_HEAD + (double)down * row);
    }
    return style.plot;
}

CornuPlot *cornu_picture_predictions_from(const CornuPicturePredictions *config)
{
    Choice choice;
    if (check_predictions(config)) return cornu__null();
    const Style style = choose_style(config);
    if (choose_predictions(config, &style, &choice)) return cornu__null();
    CornuPlot *plot = draw_predictions(config, style, &choice);
    cornu__release(choice.index);
    return plot;
}
