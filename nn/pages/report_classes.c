/* The classes and the filters of a report. */
#include "report_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../device/memory_internal.h"
#include "../formats/json_internal.h"
#include "../metrics/report_internal.h"
#include "../training/fit.h"

/* Of more classes than MOST_CLASSES only the most confused are drawn: cells would be smaller than a
 * finger. Predictions are made of so many rows at once that they take PREDICTED_BYTES. */
enum { MOST_CLASSES = 100, MOST_CONFUSED = 20, IN_A_CELL = 12, PICTURE_BYTES = 1200000,
       PREDICTED_BYTES = 64 << 20, BATCH = 256 };

/* ---- Samples ---- */

/* A sample and how much of a surprise it is to find it in its cell: of wrong ones the probability
 * of the class predicted, of right ones that of the others together. */
typedef struct {
    int64_t index, label, predicted;
    float   confidence, surprise;
} Sample;

/* A cell of the confusion matrix that is not empty. */
typedef struct {
    int64_t label, predicted, count;
} Cell;

typedef struct {
    int64_t         classes, count;   /* of the model, and of samples */
    Sample         *samples;          /* by cell, and within it by surprise */
    CornuClassSums *sums;             /* of each class */
    int64_t         not_a_number;     /* the first sample whose prediction is none; -1 */
    Cell           *cells;            /* by label and predicted class */
    int64_t         cell_count;
    int            *place;            /* of each class among those that are shown; -1 */
    int64_t        *shown;            /* classes, ascending */
    int             shown_count;
} Classes;

static void release_classes(Classes *all)
{
    cornu__release(all->samples);
    cornu__release(all->sums);
    cornu__release(all->cells);
    cornu__release(all->place);
    cornu__release(all->shown);
}

static CornuStatus reserve_classes(Classes *all, const CornuModel *model, CornuArray x)
{
    *all = (Classes){ .classes = cornu_model_output_shape(model).extent[1],
                      .count = x.type.shape.extent[0], .not_a_number = -1 };
    all->samples = cornu__allocate((size_t)all->count, sizeof *all->samples);
    all->cells = cornu__allocate((size_t)all->count, sizeof *all->cells);
    all->sums = cornu__allocate((size_t)all->classes, sizeof *all->sums);
    all->place = cornu__allocate((size_t)all->classes, sizeof *all->place);
    all->shown = cornu__allocate((size_t)all->classes, sizeof *all->shown);
    return all->samples && all->cells && all->sums && all->place && all->shown ? CORNU_OK
                                                                               : CORNU_ERR_MEMORY;
}

/* Adds those of these predictions (rows, classes), which begin with sample `first`. */
static void add_samples(Classes *all, CornuArray y, const float *predictions, int64_t first,
                        int64_t rows)
{
    for (int64_t i = first; i < first + rows; i++) {
        const float  *row = predictions + (i - first) * all->classes;
        const int64_t best = cornu_predicted_class(row, all->classes);
        const int64_t label = cornu__label_at(y, i);
        if (best < 0) {
            if (all->not_a_number < 0) all->not_a_number = i;
            continue;
        }
        all->samples[i] = (Sample){ .index = i, .label = label, .predicted = best,
                                    .confidence = row[best],
                                    .surprise = best == label ? 1.0f - row[best] : row[best] };
        all->sums[label].support++;
        all->sums[label].right += best == label;
        all->sums[best].predicted++;
    }
}

static CornuStatus predict_samples(Classes *all, CornuModel *model, const CornuReportConfig *config)
{
    const int64_t fit = PREDICTED_BYTES / ((int64_t)sizeof(float) * all->classes * BATCH);
    const int64_t most = BATCH * (fit ? fit : 1);
    const size_t  stride = cornu_type_bytes(config->x.type) / (size_t)all->count;
    float *predictions = cornu__allocate((size_t)(most < all->count ? most : all->count),
                                         (size_t)all->classes * sizeof *predictions);
    CornuStatus status = predictions ? CORNU_OK : CORNU_ERR_MEMORY;
    for (int64_t first = 0; first < all->count && !status; first += most) {
        const int64_t rows = all->count - first < most ? all->count - first : most;
        CornuArray    x = config->x;
        x.type.shape.extent[0] = rows;
        x.data = (char *)config->x.data + (size_t)first * stride;
        status = cornu_predict(model, .x = x, .batch_size = BATCH, .verbose = CORNU_SILENT,
                               .to = cornu_array(predictions, CORNU_F32, rows, all->classes));
        if (!status) add_samples(all, config->y, predictions, first, rows);
    }
    cornu__release(predictions);
    return status;
}

/* By cell, and within a cell the greatest surprise first. */
static int by_surprise(const void *a, const void *b)
{
    const Sample *x = a, *y = b;
    if (x->label != y->label) return x->label < y->label ? -1 : 1;
    if (x->predicted != y->predicted) return x->predicted < y->predicted ? -1 : 1;
    if (x->surprise != y->surprise) return x->surprise > y->surprise ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static void sort_samples(Classes *all)
{
    qsort(all->samples, (size_t)all->count, sizeof *all->samples, by_surprise);
    for (int64_t i = 0; i < all->count; i++) {
        const Sample *sample = &all->samples[i];
        Cell         *last = all->cells + all->cell_count - 1;
        if (all->cell_count && last->label == sample->label &&
            last->predicted == sample->predicted)
            last->count++;
        else
            all->cells[all->cell_count++] = (Cell){ sample->label, sample->predicted, 1 };
    }
}

/* ---- Which classes are shown ---- */

/* Wrong ones first, the fullest first. */
static int by_confusion(const void *a, const void *b)
{
    const Cell *x = a, *y = b;
    const bool  x_right = x->label == x->predicted, y_right = y->label == y->predicted;
    if (x_right != y_right) return x_right ? 1 : -1;
    if (x->count != y->count) return x->count > y->count ? -1 : 1;
    if (x->label != y->label) return x->label < y->label ? -1 : 1;
    return x->predicted < y->predicted ? -1 : x->predicted > y->predicted;
}

static void show_class(Classes *all, int64_t class, int most)
{
    if (all->place[class] >= 0 || all->shown_count == most) return;
    all->place[class] = 0;
    all->shown_count++;
}

/* All, or those of the fullest wrong cells; were there too few, then of right ones. */
static void choose_classes(Classes *all)
{
    const bool many = all->classes > MOST_CLASSES;
    const int  most = many ? MOST_CONFUSED : (int)all->classes;
    for (int64_t c = 0; c < all->classes; c++) all->place[c] = -1;
    if (many) qsort(all->cells, (size_t)all->cell_count, sizeof *all->cells, by_confusion);
    for (int64_t i = 0; i < all->cell_count && many; i++) {
        show_class(all, all->cells[i].label, most);
        show_class(all, all->cells[i].predicted, most);
    }
    for (int64_t c = 0; c < all->classes; c++) show_class(all, c, most);
    for (int64_t c = 0, at = 0; c < all->classes; c++) {
        if (all->place[c] < 0) continue;
        all->place[c] = (int)at;
        all->shown[at++] = c;
    }
}

/* Leaves only the samples of the matrix that is shown, whose order stays. */
static void keep_shown(Classes *all)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < all->count; i++) {
        const Sample *sample = &all->samples[i];
        if (all->place[sample->label] >= 0 && all->place[sample->predicted] >= 0)
            all->samples[kept++] = *sample;
    }
    all->count = kept;
}

/* ---- Pictures ---- */

/* Samples as pictures. */
typedef struct {
    CornuArray array;
    int64_t    size[3];       /* height, width, channels; 0 channels: they are not pictures */
    double     least, most;   /* of f32 pixels: black and white */
} Pictures;

static Pictures find_pictures(CornuArray array)
{
    const CornuShape *shape = &array.type.shape;
    const int64_t     channels = shape->rank == 3 ? 1 : shape->extent[3];
    Pictures          pictures = { .array = array, .least = INFINITY, .most = -INFINITY };
    if ((array.type.dtype != CORNU_U8 && array.type.dtype != CORNU_F32) ||
        (shape->rank != 3 && shape->rank != 4) || (channels != 1 && channels != 3))
        return pictures;
    memcpy(pictures.size, (int64_t[]){ shape->extent[1], shape->extent[2], channels },
           sizeof pictures.size);
    const int64_t count = array.type.dtype == CORNU_F32 ? cornu_type_count(array.type) : 0;
    for (int64_t i = 0; i < count; i++) {
        pictures.least = fmin(pictures.least, (double)((const float *)array.data)[i]);
        pictures.most = fmax(pictures.most, (double)((const float *)array.data)[i]);
    }
    if (count && !(pictures.most > pictures.least)) pictures.most = pictures.least + 1.0;
    return pictures;
}

/* Picture i; NULL if out of memory. */
static json_t *picture_at(const Pictures *pictures, int64_t i)
{
    const int64_t *size = pictures->size, pixels = size[0] * size[1] * size[2];
    if (pictures->array.type.dtype == CORNU_U8)
        return cornu__page_picture(size[0], size[1], size[2],
                                   (const uint8_t *)pictures->array.data + i * pixels);
    const float *from = (const float *)pictures->array.data + i * pixels;
    uint8_t     *to = cornu__allocate((size_t)pixels, 1);
    for (int64_t p = 0; p < pixels && to; p++) {
        const double part = ((double)from[p] - pictures->least) /
                            (pictures->most - pictures->least);
        to[p] = isfinite(part) ? (uint8_t)lround(255.0 * part) : 0;
    }
    json_t *picture = to ? cornu__page_picture(size[0], size[1], size[2], to) : NULL;
    cornu__release(to);
    return picture;
}

/* Its classes are places among those that are shown. */
static json_t *describe_sample(const Classes *all, const Sample *sample, json_t *picture)
{
    return json_pack("{s:I, s:i, s:i, s:o, s:o}", "index", (json_int_t)sample->index,
                     "label", all->place[sample->label], "predicted",
                     all->place[sample->predicted], "confidence",
                     cornu__page_number(sample->confidence), "picture", picture);
}

/* The first of each cell, then the second of each, while their pictures have room. */
static json_t *describe_samples(const Classes *all, CornuArray array)
{
    const Pictures pictures = find_pictures(array);
    const Sample  *samples = all->samples;
    json_t        *list = json_array();
    size_t         bytes = 0;
    for (int turn = 0; turn < IN_A_CELL; turn++)
        for (int64_t i = 0, first = 0; i < all->count && bytes < PICTURE_BYTES; i++) {
            if (samples[i].label != samples[first].label ||
                samples[i].predicted != samples[first].predicted)
                first = i;
            if (i - first != turn) continue;
            json_t *picture = pictures.size[2] ? picture_at(&pictures, samples[i].index)
                                               : json_null();
            bytes += 100 + json_string_length(picture);
            list = cornu__json_append(list, describe_sample(all, &samples[i],
                                                             picture));
        }
    return list;
}

/* ---- Classes ---- */

static json_t *describe_scores(CornuClassScores scores)
{
    return json_pack("{s:f, s:f, s:f, s:I}", "precision", scores.precision, "recall",
                     scores.recall, "f1", scores.f1, "support", (json_int_t)scores.support);
}

static json_t *describe_names(const Classes *all, const CornuModel *model,
                              const CornuReportConfig *config)
{
    json_t *names = json_array();
    for (int i = 0; i < all->shown_count; i++) {
        const int64_t class = all->shown[i];
        const char   *name = class < config->classes && config->names
                                 ? config->names[class] : cornu_model_class_name(model, class);
        names = cornu__json_append(names, name ? json_string(name)
                                               : json_sprintf("%lld", (long long)class));
    }
    return names;
}

/* Rows of the classes that are shown; the caller has checked that they are few. */
static json_t *describe_counts(const Classes *all)
{
    const int n = all->shown_count;
    json_t   *rows = json_array();
    int64_t  *counts = cornu__allocate((size_t)(n * n), sizeof *counts);
    for (int64_t i = 0; i < all->cell_count && counts; i++) {
        const Cell *cell = &all->cells[i];
        const int   row = all->place[cell->label], column = all->place[cell->predicted];
        if (row >= 0 && column >= 0) counts[row * n + column] = cell->count;
    }
    for (int i = 0; i < n && counts; i++) {
        json_t *row = json_array();
        for (int j = 0; j < n; j++)
            row = cornu__json_append(row, json_integer((json_int_t)counts[i * n + j]));
        rows = cornu__json_append(rows, row);
    }
    if (!counts) json_decref(rows);
    cornu__release(counts);
    return counts ? rows : NULL;
}

static json_t *describe_classes(const Classes *all, const CornuModel *model,
                                const CornuReportConfig *config)
{
    CornuClassScores macro, weighted;
    double           accuracy;
    json_t          *scores = json_array();
    cornu__mean_scores(all->sums, all->classes, &macro, &weighted, &accuracy);
    for (int i = 0; i < all->shown_count; i++)
        scores = cornu__json_append(
            scores, describe_scores(cornu__scores_of(all->sums[all->shown[i]])));
    return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:f, s:o}", "of", (json_int_t)all->classes,
                     "names", describe_names(all, model, config), "counts", describe_counts(all),
                     "scores", scores, "macro", describe_scores(macro), "weighted",
                     describe_scores(weighted), "accuracy", accuracy, "samples",
                     describe_samples(all, config->pictures.data ? config->pictures : config->x));
}

/* Labels are checked before the training: it should not end with a message. */
static CornuStatus check_labels(const CornuReportConfig *config, int64_t classes)
{
    const CornuArray x = config->x, y = config->y;
    CornuText        text;
    if (y.type.dtype != CORNU_U8 && y.type.dtype != CORNU_I32 && y.type.dtype != CORNU_I64)
        return cornu__fail(CORNU_ERR_DTYPE, "report: .y is %s, expected u8, i32 or i64",
                           cornu_type_print(&text, y.type));
    if (x.type.shape.rank < 1 || cornu_type_count(y.type) != x.type.shape.extent[0])
        return cornu__fail(CORNU_ERR_SHAPE, "report: .y has %lld labels, expected one for each of "
                           "the %lld samples of .x", (long long)cornu_type_count(y.type),
                           (long long)(x.type.shape.rank ? x.type.shape.extent[0] : 0));
    for (int64_t i = 0; i < x.type.shape.extent[0]; i++) {
        const int64_t label = cornu__label_at(y, i);
        if (label < 0 || label >= classes)
            return cornu__fail(CORNU_ERR_VALUE, "report: label %lld is %lld, expected 0 to %lld",
                               (long long)i, (long long)label, (long long)classes - 1);
    }
    return CORNU_OK;
}

CornuStatus cornu__report_check(const CornuModel *model, const CornuReportConfig *config)
{
    const CornuShape shape = cornu_model_output_shape(model);
    CornuText        text;
    if (shape.rank == 2 && shape.extent[1] >= 2) return check_labels(config, shape.extent[1]);
    return cornu__fail(CORNU_ERR_SHAPE, "report: .x of a model with the output %s, expected "
                       "(B, classes) with 2 classes or more", cornu_shape_print(&text, shape));
}

CornuStatus cornu__report_classes(CornuModel *model, const CornuReportConfig *config,
                                  json_t **made)
{
    Classes     all;
    CornuStatus status = reserve_classes(&all, model, config->x);
    if (!status) status = predict_samples(&all, model, config);
    if (!status && all.not_a_number >= 0) {
        *made = json_pack("{s:o}", "why", json_sprintf("the prediction of sample %lld is not a "
                                                       "number", (long long)all.not_a_number));
        status = *made ? CORNU_OK : CORNU_ERR_MEMORY;
    } else if (!status) {
        sort_samples(&all);
        choose_classes(&all);
        keep_shown(&all);
        *made = describe_classes(&all, model, config);
        status = *made ? CORNU_OK : CORNU_ERR_MEMORY;
    }
    release_classes(&all);
    return status;
}

/* ---- Filters ---- */

static const CornuWeight *first_kernel(const CornuModel *model)
{
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        const CornuWeight *weight = cornu_model_weight(model, i);
        const int64_t     *extent = weight->type.shape.extent;
        if (weight->type.shape.rank == 4 && (extent[2] == 1 || extent[2] == 3)) return weight;
    }
    return NULL;
}

/* Filter f of kernel (H, W, C, F) as pixels, 127.5 at zero. */
static json_t *filter_picture(const float *kernel, const int64_t extent[4], int64_t f, double most)
{
    const int64_t pixels = extent[0] * extent[1] * extent[2];
    uint8_t      *to = cornu__allocate((size_t)pixels, 1);
    for (int64_t p = 0; p < pixels && to; p++)
        to[p] = (uint8_t)lround(127.5 + 127.5 * (double)kernel[p * extent[3] + f] / most);
    json_t *picture = to ? cornu__page_picture(extent[0], extent[1], extent[2], to) : NULL;
    cornu__release(to);
    return picture;
}

static json_t *describe_filters(const CornuWeight *weight, const float *kernel)
{
    const int64_t *extent = weight->type.shape.extent;
    const int64_t  count = extent[0] * extent[1] * extent[2] * extent[3];
    double         most = 0.0;
    for (int64_t i = 0; i < count; i++) most = fmax(most, fabs((double)kernel[i]));
    json_t *pictures = json_array();
    for (int64_t f = 0; f < extent[3] && isfinite(most) && most > 0.0; f++)
        pictures = cornu__json_append(pictures, filter_picture(kernel, extent, f, most));
    return json_pack("{s:s, s:o, s:o}", "weight", weight->path, "most", cornu__page_number(most),
                     "pictures", pictures);
}

CornuStatus cornu__report_filters(const CornuModel *model, json_t **filters)
{
    const CornuWeight *weight = first_kernel(model);
    if (!weight) return CORNU_OK;
    float      *kernel = cornu__allocate(cornu_type_bytes(weight->type), 1);
    CornuStatus status = kernel ? cornu_weight_read(weight, cornu_array_from(kernel, weight->type))
                                : CORNU_ERR_MEMORY;
    if (!status) *filters = describe_filters(weight, kernel);
    if (!status && !*filters) status = CORNU_ERR_MEMORY;
    cornu__release(kernel);
    return status;
}
