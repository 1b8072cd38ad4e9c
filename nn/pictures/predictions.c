/* Samples with what is predicted below them. */
#include "pictures_internal.h"

#include <math.h>
#include <stdio.h>

enum {
    ACROSS = 24, DOWN = 7, SIDE = 64, NAME_SIZE = 8, NAME_MOST = 110, BESIDE = 10,
    BELOW = 38,    /* the two lines of text and the room to the next row */
    MOST_IMAGES = 16384,
};

/* The samples to show, in order; where the wrong ones end. */
typedef struct {
    int64_t *index;
    int      count;
    int64_t  wrong;    /* of all */
    int64_t  across;
} Choice;

static int64_t at(CornuArray classes, int64_t i) { return (int64_t)cornu_array_get(classes, i); }

static bool is_wrong(const CornuPicturePredictions *config, int64_t i)
{
    return at(config->predicted, i) != at(config->labels, i);
}

/* ---- Checks ---- */

static CornuStatus check_classes(const CornuPicturePredictions *config, CornuArray classes,
                                 const char *what)
{
    const int64_t count = config->images.type.shape.extent[0];
    CornuText     text;
    if (cornu_dtype_is_float(classes.type.dtype) || classes.type.shape.rank != 1 ||
        classes.type.shape.extent[0] != count)
        return cornu__fail(CORNU_ERR_SHAPE, "predictions: %s are %s, expected whole numbers (%lld)",
                           what, cornu_type_print(&text, classes.type), (long long)count);
    for (int64_t i = 0; i < count; i++)
        if (at(classes, i) < 0 || at(classes, i) >= config->classes)
            return cornu__fail(CORNU_ERR_VALUE, "predictions: %s: number %lld is class %lld, "
                               "expected 0 to %d", what, (long long)i, (long long)at(classes, i),
                               config->classes - 1);
    return CORNU_OK;
}

static CornuStatus check(const CornuPicturePredictions *config)
{
    const CornuType type = config->images.type;
    const int64_t  *extent = type.shape.extent;
    const bool      grey = type.shape.rank == 3 || (type.shape.rank == 4 && extent[3] == 1);
    CornuText       text;
    if (type.dtype != CORNU_U8 || !grey || extent[0] < 1 || extent[1] < 1 || extent[2] < 1)
        return cornu__fail(CORNU_ERR_SHAPE, "predictions: images are %s, expected u8 (N, H, W) or "
                           "(N, H, W, 1) with N at least 1", cornu_type_print(&text, type));
    if (config->across < 0 || config->down < 0 || config->across > MOST_IMAGES ||
        config->down > MOST_IMAGES)
        return cornu__fail(CORNU_ERR_ARGUMENT, "predictions: %d by %d samples, expected 1 to %d",
                           config->across, config->down, MOST_IMAGES);
    CORNU__TRY(check_classes(config, config->labels, "labels"));
    return check_classes(config, config->predicted, "predicted classes");
}

/* ---- Choosing ---- */

static CornuStatus choose(const CornuPicturePredictions *config, Choice *choice)
{
    const int64_t all = config->images.type.shape.extent[0];
    const int64_t across = config->across ? config->across : ACROSS;
    const int64_t places = across * (config->down ? config->down : DOWN);
    const int64_t most = places < all ? places : all;
    *choice = (Choice){ .index = cornu__allocate((size_t)most, sizeof *choice->index),
                        .across = across < all ? across : all };
    if (!choice->index) return CORNU_ERR_MEMORY;
    for (int right = 0; right <= 1; right++)
        for (int64_t i = 0; i < all; i++) {
            if (is_wrong(config, i) == right) continue;
            choice->wrong += !right;
            if (choice->count < most) choice->index[choice->count++] = i;
        }
    return CORNU_OK;
}

/* ---- Drawing ---- */

/* Whole pixels, as many as come near to SIDE. */
static int scale_of(int64_t height, int64_t width)
{
    const int scale = (int)round((double)SIDE / (double)(height > width ? height : width));
    return scale > 1 ? scale : 1;
}

static void draw_image(CornuPlot *plot, const uint8_t *image, int64_t H, int64_t W, double x,
                       double y, int scale)
{
    for (int64_t h = 0; h < H; h++)
        for (int64_t w = 0; w < W; w++) {
            const CornuColour grey = 0xff - (CornuColour)image[h * W + w];
            cornu_plot_fill(plot, x + (double)(w * scale), y + (double)(h * scale), scale, scale,
                            grey << 16 | grey << 8 | grey);
        }
}

static void draw_name(CornuPlot *plot, const char *name, double middle, double y, double width,
                      CornuColour colour)
{
    char text[CORNU__PICTURE_TEXT];
    cornu_plot_text(plot, cornu__picture_name(text, name, NAME_SIZE, width), middle, y, NAME_SIZE,
                    CORNU_PLOT_CENTRE, .colour = colour);
}

void cornu__predictions_note(char note[CORNU__PICTURE_TEXT], int64_t shown, int64_t count,
                             int64_t wrong)
{
    snprintf(note, CORNU__PICTURE_TEXT, "%lld of %lld shown, wrong ones first, in red with what "
             "they are; %lld of all %lld (%.2f %%) are wrong", (long long)shown, (long long)count,
             (long long)wrong, (long long)count, 100.0 * (double)wrong / (double)count);
}

static CornuPlot *draw(const CornuPicturePredictions *config, const Choice *choice)
{
    const int64_t *extent = config->images.type.shape.extent, H = extent[1], W = extent[2];
    const int      scale = scale_of(H, W);
    const double   is_room = cornu_plot_text_width("is ", NAME_SIZE);
    const double   names = cornu__picture_widest(config->names, config->classes, NAME_SIZE,
                                                 NAME_MOST) + is_room;
    const double   cell = fmax((double)(W * scale), ceil(names)) + BESIDE;
    const double   row = (double)(H * scale) + BELOW;
    const int64_t  rows = (choice->count + choice->across - 1) / choice->across;
    char           note[CORNU__PICTURE_TEXT];
    cornu__predictions_note(note, choice->count, extent[0], choice->wrong);
    CornuPlot *plot = cornu__picture_create(
        (int)fmin((double)choice->across * cell - BESIDE + 2 * CORNU__MARGIN, INT32_MAX),
        (int)fmin((double)rows * row, INT16_MAX), config->title, note);
    for (int i = 0; plot && i < choice->count; i++) {
        const int64_t  sample = choice->index[i];
        const double   middle = CORNU__MARGIN + (double)(i % choice->across) * cell +
                              (cell - BESIDE) / 2;
        const double   top = CORNU__PICTURE_HEAD + (double)(i / choice->across) * row;
        const double   baseline = top + (double)(H * scale) + NAME_SIZE + 5;
        const uint8_t *image = (const uint8_t *)config->images.data + sample * H * W;
        const bool     wrong = is_wrong(config, sample);
        draw_image(plot, image, H, W, floor(middle - (double)(W * scale) / 2), top, scale);
        draw_name(plot, config->names[at(config->predicted, sample)], middle, baseline,
                  cell - BESIDE, wrong ? CORNU__RED : CORNU__INK);
        if (!wrong) continue;
        char truth[CORNU__PICTURE_TEXT];
        snprintf(truth, sizeof truth, "is %s", config->names[at(config->labels, sample)]);
        draw_name(plot, truth, middle, baseline + NAME_SIZE + 5, cell - BESIDE, CORNU__RED);
    }
    return plot;
}

CornuPlot *cornu_picture_predictions_from(const CornuPicturePredictions *config)
{
    Choice choice;
    if (check(config) || choose(config, &choice)) return cornu__null();
    CornuPlot *plot = draw(config, &choice);
    cornu__release(choice.index);
    return plot;
}
