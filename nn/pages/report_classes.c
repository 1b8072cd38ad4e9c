/* The classes and the filters of a report. */
#include "report_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../device/memory_internal.h"
#include "../formats/json_internal.h"
#include "../metrics/report.h"
#include "../training/fit.h"

/* A matrix of more classes is not drawn: its cells would be smaller than a finger. */
enum { MOST_CLASSES = 100, IN_A_CELL = 12, PICTURE_BYTES = 1200000 };

/* ---- Samples ---- */

/* A sample and how much of a surprise it is to find it in its cell: of wrong ones the probability
 * of the class predicted, of right ones that of the others together. */
typedef struct {
    int64_t index, label, predicted;
    float   confidence, surprise;
} Sample;

static int64_t label_at(CornuArray y, int64_t i)
{
    switch (y.type.dtype) {
    case CORNU_U8:  return ((const uint8_t *)y.data)[i];
    case CORNU_I32: return ((const int32_t *)y.data)[i];
    default:        return ((const int64_t *)y.data)[i];
    }
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

static Sample *sort_samples(CornuArray predictions, CornuArray y)
{
    const int64_t count = predictions.type.shape.extent[0];
    const int64_t classes = predictions.type.shape.extent[1];
    Sample       *samples = cornu__allocate((size_t)count, sizeof *samples);
    for (int64_t i = 0; i < count && samples; i++) {
        const float  *row = (const float *)predictions.data + i * classes;
        const int64_t best = cornu_predicted_class(row, classes), label = label_at(y, i);
        samples[i] = (Sample){ .index = i, .label = label, .predicted = best,
                               .confidence = row[best],
                               .surprise = best == label ? 1.0f - row[best] : row[best] };
    }
    if (samples) qsort(samples, (size_t)count, sizeof *samples, by_surprise);
    return samples;
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

static json_t *describe_sample(const Sample *sample, json_t *picture)
{
    return json_pack("{s:I, s:I, s:I, s:o, s:o}", "index", (json_int_t)sample->index,
                     "label", (json_int_t)sample->label, "predicted",
                     (json_int_t)sample->predicted, "confidence",
                     cornu__page_number(sample->confidence), "picture", picture);
}

/* The first of each cell, then the second of each, while their pictures have room. */
static json_t *describe_samples(const Sample *samples, int64_t count, CornuArray array)
{
    const Pictures pictures = find_pictures(array);
    json_t        *list = json_array();
    size_t         bytes = 0;
    for (int turn = 0; turn < IN_A_CELL; turn++)
        for (int64_t i = 0, first = 0; i < count && bytes < PICTURE_BYTES; i++) {
            if (samples[i].label != samples[first].label ||
                samples[i].predicted != samples[first].predicted)
                first = i;
            if (i - first != turn) continue;
            json_t *picture = pictures.size[2] ? picture_at(&pictures, samples[i].index)
                                               : json_null();
            bytes += 100 + json_string_length(picture);
            list = cornu__json_append(list, describe_sample(&samples[i], picture));
        }
    return list;
}

/* ---- Classes ---- */

static json_t *describe_scores(const CornuClassScores *scores)
{
    return json_pack("{s:f, s:f, s:f, s:I}", "precision", scores->precision, "recall",
                     scores->recall, "f1", scores->f1, "support", (json_int_t)scores->support);
}

static json_t *describe_names(const CornuModel *model, const CornuReportConfig *config,
                              int64_t classes)
{
    json_t *names = json_array();
    for (int64_t i = 0; i < classes; i++) {
        const char *name = i < config->classes && config->names ? config->names[i]
                                                                : cornu_model_class_name(model, i);
        names = cornu__json_append(names, name ? json_string(name)
                                               : json_sprintf("%lld", (long long)i));
    }
    return names;
}

static json_t *describe_counts(const int64_t *counts, int64_t classes)
{
    json_t *rows = json_array();
    for (int64_t i = 0; i < classes; i++) {
        json_t *row = json_array();
        for (int64_t j = 0; j < classes; j++)
            row = cornu__json_append(row, json_integer((json_int_t)counts[i * classes + j]));
        rows = cornu__json_append(rows, row);
    }
    return rows;
}

/* counts and each: memory for them. */
static CornuStatus describe_classes(CornuModel *model, const CornuReportConfig *config,
                                    CornuArray predictions, CornuArray counts,
                                    CornuClassScores *each, json_t **made)
{
    const int64_t    classes = predictions.type.shape.extent[1];
    CornuClassScores macro, weighted;
    double           accuracy;
    CORNU__TRY(cornu_confusion(predictions, config->y, counts));
    CORNU__TRY(cornu_class_scores(counts, each, &macro, &weighted, &accuracy));
    Sample *samples = sort_samples(predictions, config->y);
    if (!samples) return CORNU_ERR_MEMORY;
    json_t *scores = json_array();
    for (int64_t i = 0; i < classes; i++)
        scores = cornu__json_append(scores, describe_scores(&each[i]));
    *made = json_pack("{s:o, s:o, s:o, s:o, s:o, s:f, s:o}", "names",
                      describe_names(model, config, classes), "counts",
                      describe_counts(counts.data, classes), "scores", scores, "macro",
                      describe_scores(&macro), "weighted", describe_scores(&weighted), "accuracy",
                      accuracy, "samples",
                      describe_samples(samples, predictions.type.shape.extent[0],
                                       config->pictures.data ? config->pictures : config->x));
    cornu__release(samples);
    return *made ? CORNU_OK : CORNU_ERR_MEMORY;
}

CornuStatus cornu__report_check(const CornuModel *model)
{
    const CornuShape shape = cornu_model_output_shape(model);
    CornuText        text;
    if (shape.rank == 2 && shape.extent[1] >= 2 && shape.extent[1] <= MOST_CLASSES) return CORNU_OK;
    return cornu__fail(CORNU_ERR_SHAPE, "report: .x of a model with the output %s, expected "
                       "(B, classes) with 2 to %d classes", cornu_shape_print(&text, shape),
                       MOST_CLASSES);
}

CornuStatus cornu__report_classes(CornuModel *model, const CornuReportConfig *config,
                                  json_t **made)
{
    const int64_t     rows = config->x.type.shape.extent[0];
    const int64_t     classes = cornu_model_output_shape(model).extent[1];
    const CornuType   table = cornu_type(CORNU_I64, classes, classes);
    const CornuArray  predictions = cornu_array_from(
        cornu__allocate((size_t)rows, (size_t)classes * sizeof(float)),
        cornu_type(CORNU_F32, rows, classes));
    const CornuArray  counts = cornu_array_from(cornu__allocate(cornu_type_bytes(table), 1), table);
    CornuClassScores *each = cornu__allocate((size_t)classes, sizeof *each);
    CornuStatus status = predictions.data && counts.data && each ? CORNU_OK : CORNU_ERR_MEMORY;
    if (!status)
        status = cornu_predict(model, .x = config->x, .batch_size = 256, .verbose = CORNU_SILENT,
                               .to = predictions);
    if (!status) status = describe_classes(model, config, predictions, counts, each, made);
    cornu__release(predictions.data);
    cornu__release(counts.data);
    cornu__release(each);
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
