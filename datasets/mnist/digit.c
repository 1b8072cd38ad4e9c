/* Finding the ink of a picture, scaling and centring it. */
#include "digit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../device/status_internal.h"

enum { SIZE = CORNU_DIGIT_SIZE, BOX = 20 };

/* Ink is the difference of a value from the paper, in the direction of the strongest ink. */
typedef struct {
    const uint8_t *pixels;
    int64_t        height, width;
    int            paper, strongest; /* grey values                     */
    int            toward;           /* -1: dark ink on light paper, +1 */
    int            grain;            /* range of the paper's values     */
} Picture;

static int ink_at(const Picture *picture, int64_t h, int64_t w)
{
    int ink = picture->toward * (picture->pixels[h * picture->width + w] - picture->paper);
    return ink > 0 ? ink : 0;
}

/* The smallest value such that at least `part` of the total counts do not exceed it. */
static int quantile(const int64_t count[256], int64_t total, double part)
{
    int64_t seen = 0;
    for (int value = 0; value < 255; value++)
        if ((double)(seen += count[value]) >= part * (double)total) return value;
    return 255;
}

/* The paper is the median of the border, shifted towards the ink by its grain, which is twice the
 * spread of the border, so that the grain of a photograph does not count as ink; a drawing has
 * none. */
static Picture examine(CornuArray image)
{
    Picture picture = { .pixels = image.data, .height = image.type.shape.extent[0],
                        .width = image.type.shape.extent[1] };
    int64_t all[256] = { 0 }, border[256] = { 0 }, spread[256] = { 0 }, total = 0;
    for (int64_t h = 0; h < picture.height; h++)
        for (int64_t w = 0; w < picture.width; w++) {
            uint8_t value = picture.pixels[h * picture.width + w];
            bool    edge = h == 0 || w == 0 || h == picture.height - 1 || w == picture.width - 1;
            all[value]++;
            border[value] += edge;
            total += edge;
        }
    picture.paper = quantile(border, total, 0.5);
    picture.toward = picture.paper > 127 ? -1 : 1;
    picture.strongest = picture.toward > 0 ? 255 : 0;
    while (!all[picture.strongest]) picture.strongest -= picture.toward;
    for (int value = 0; value < 256; value++) spread[abs(value - picture.paper)] += border[value];
    picture.grain = 2 * quantile(spread, total, 0.9);
    picture.paper += picture.toward * picture.grain;
    return picture;
}

/* Where the ink is: rows [top, bottom), columns [left, right). */
typedef struct {
    int64_t top, bottom, left, right;
} Box;

/* The bounding box of all but the faintest ink, such as the halo of a scan or a JPEG file or a rare
 * speck of grain, which would make the box too large. */
static Box find_box(const Picture *picture)
{
    int faint = (picture->strongest - picture->paper) * picture->toward / 32 + picture->grain;
    Box box = { .top = picture->height, .left = picture->width };
    for (int64_t h = 0; h < picture->height; h++)
        for (int64_t w = 0; w < picture->width; w++) {
            if (ink_at(picture, h, w) <= faint) continue;
            if (h < box.top) box.top = h;
            if (w < box.left) box.left = w;
            if (w >= box.right) box.right = w + 1;
            box.bottom = h + 1;
        }
    return box;
}

/* The length of [i, i + 1) inside [from, to). */
static double overlap(int64_t i, double from, double to)
{
    return fmin((double)(i + 1), to) - fmax((double)i, from);
}

/* The mean ink of the square [top, top + side) x [left, left + side); outside the box there is
 * none. */
static double mean_ink(const Picture *picture, Box box, double top, double left, double side)
{
    double sum = 0.0;
    for (int64_t h = (int64_t)top; h < box.bottom && (double)h < top + side; h++)
        for (int64_t w = (int64_t)left; w < box.right && (double)w < left + side; w++)
            sum += ink_at(picture, h, w) * overlap(h, top, top + side) *
                   overlap(w, left, left + side);
    return sum / (side * side);
}

/* The first pixel of a line of `size` pixels with its centre of mass at pixel `centre`, so that the
 * centre ends up in [13.5, 14.5) as in every image of MNIST. */
static int placed(double centre, int size)
{
    int first = (int)ceil(0.5 * (SIZE - 1) - centre);
    return first < 0 ? 0 : first > SIZE - size ? SIZE - size : first;
}

/* Scales the box to fit BOX x BOX and centres it. */
static void draw_scaled(const Picture *picture, Box box, uint8_t *out)
{
    int64_t height = box.bottom - box.top, width = box.right - box.left;
    double  side = (double)(height > width ? height : width) / BOX;
    int     rows = (int)ceil((double)height / side - 1e-9);
    int     columns = (int)ceil((double)width / side - 1e-9);
    double  ink[BOX][BOX], most = 0.0, sum = 0.0, sum_h = 0.0, sum_w = 0.0;
    for (int h = 0; h < rows; h++)
        for (int w = 0; w < columns; w++) {
            ink[h][w] = mean_ink(picture, box, (double)box.top + h * side,
                                 (double)box.left + w * side, side);
            most = fmax(most, ink[h][w]);
            sum += ink[h][w];
            sum_h += ink[h][w] * h;
            sum_w += ink[h][w] * w;
        }
    int top = placed(sum_h / sum, rows), left = placed(sum_w / sum, columns);
    memset(out, 0, SIZE * SIZE);
    for (int h = 0; h < rows; h++)
        for (int w = 0; w < columns; w++)
            out[(top + h) * SIZE + left + w] = (uint8_t)lround(255.0 * ink[h][w] / most);
}

CornuStatus cornu_digit_prepare(CornuArray image, uint8_t out[SIZE * SIZE])
{
    CornuShape shape = image.type.shape;
    CornuText  text;
    bool       grey = shape.rank == 2 || (shape.rank == 3 && shape.extent[2] == 1);
    if (image.type.dtype != CORNU_U8 || !grey || shape.extent[0] < 1 || shape.extent[1] < 1)
        return cornu__fail(CORNU_ERR_SHAPE,
                           "digit: the image is %s, expected u8 (H, W) or (H, W, 1)",
                           cornu_type_print(&text, image.type));
    Picture picture = examine(image);
    if (picture.height == SIZE && picture.width == SIZE) {
        for (int i = 0; i < SIZE * SIZE; i++)
            out[i] = picture.toward > 0 ? picture.pixels[i] : (uint8_t)(255 - picture.pixels[i]);
        return CORNU_OK;
    }
    int least = 16 + 2 * picture.grain; /* more than find_box ignores as faint */
    if ((picture.strongest - picture.paper) * picture.toward < least)
        return cornu__fail(CORNU_ERR_VALUE,
                           "digit: no ink found: the paper is %d of 255, the strongest other "
                           "grey %d, expected a difference of %d or more", picture.paper,
                           picture.strongest, least);
    draw_scaled(&picture, find_box(&picture), out);
    return CORNU_OK;
}
