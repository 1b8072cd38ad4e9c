/* The pixels of images (B, H, W, C) at other places, which are given for a new grid (B, h, w). */
#ifndef CORNU_NN_SAMPLING_INTERNAL_H
#define CORNU_NN_SAMPLING_INTERNAL_H

#include "../layer_internal.h"
#include "../random.h"

typedef struct {
    CornuFillMode      fill_mode;
    CornuInterpolation interpolation;    /* nearest or bilinear */
    double             fill_value;
} CornuSampling;

/* The pixels at integer rows and columns (B, h, w), given in f32, as f32. */
CornuTensor *cornu__pixels(CornuTensor *x, CornuTensor *row, CornuTensor *column,
                           const CornuSampling *sampling);

/* Interpolates at rows and columns (B, h, w) in f32, in x's dtype. */
CornuTensor *cornu__sample(CornuTensor *x, CornuTensor *row, CornuTensor *column,
                           const CornuSampling *sampling);

/* Pixel (column x, row y) of the result is the image's at column (a[0] x + a[1] y + a[2]) / k, row
 * (b[0] x + b[1] y + b[2]) / k, k = c[0] x + c[1] y + 1; the coefficients are (B, 1, 1) or
 * (1, 1, 1), c may be NULL. */
CornuTensor *cornu__project(CornuTensor *x, CornuTensor *const a[3], CornuTensor *const b[3],
                            CornuTensor *const *c, const CornuSampling *sampling);

/* The index of each row (axis 1) or column (2), (B, H, W) in f32. */
CornuTensor *cornu__counted(CornuTensor *x, int axis);

/* Resolves such arguments of a layer. */
CornuStatus cornu__resolve_sampling(const CornuLayer *layer, CornuFillMode fill_mode,
                                    CornuInterpolation *interpolation, double *fill_value);

/* For class tables: the rows of `fields` of a config with these arguments, which end the table. */
#define CORNU__SAMPLING_FIELDS(Config)                                                 \
    { "fill_mode", CORNU_FIELD_FILL_MODE, offsetof(Config, fill_mode) },               \
    { "interpolation", CORNU_FIELD_INTERPOLATION, offsetof(Config, interpolation) },   \
    { "fill_value", CORNU_FIELD_NUMBER, offsetof(Config, fill_value) },                \
    { "data_format", CORNU_FIELD_DATA_FORMAT, offsetof(Config, data_format) },         \
    { 0 }

#endif
