/* RandomShear, RandomPerspective and RandomElasticTransform. */
#include <math.h>

#include "moves_internal.h"

/* ---- Moves ---- */

/* (B, 1, 1, 1) as (B, 1, 1). */
static CornuTensor *flat(CornuTensor *number)
{
    return number ? cornu_op_reshape(number, cornu_shape(cornu_tensor_shape(number).extent[0], 1,
                                                         1)) : NULL;
}

/* Both either way. */
CornuTensor *cornu__shear(CornuTensor *x, CornuDraws *draws, const double x_factor[2],
                          const double y_factor[2], const CornuSampling *sampling)
{
    CornuTensor *way = cornu__below(flat(cornu__draw(draws)), 0.5);
    CornuTensor *across = flat(cornu__draw_between(draws, x_factor));
    CornuTensor *down = flat(cornu__draw_between(draws, y_factor));
    across = cornu_op_select(way, across, cornu_op_negative(across));
    down = cornu_op_select(way, down, cornu_op_negative(down));
    if (!across || !down) return NULL;
    CornuTensor *zero = cornu_op_constant_like(down, 0.0), *one = cornu_op_constant_like(down, 1.0);
    CornuTensor *const a[3] = { one, across, zero }, *const b[3] = { down, one, zero };
    return cornu__project(x, a, b, NULL, sampling);
}

CornuTensor *cornu__translate(CornuTensor *x, CornuDraws *draws, const double height[2],
                              const double width[2], const CornuSampling *sampling)
{
    if (!x) return NULL;
    const CornuShape s = cornu_tensor_shape(x);
    CornuTensor *down = cornu_op_scale(flat(cornu__draw_between(draws, height)),
                                       -(double)s.extent[1]);
    CornuTensor *right = cornu_op_scale(flat(cornu__draw_between(draws, width)),
                                        -(double)s.extent[2]);
    if (!down || !right) return NULL;
    CornuTensor *zero = cornu_op_constant_like(down, 0.0), *one = cornu_op_constant_like(down, 1.0);
    CornuTensor *const a[3] = { one, zero, right }, *const b[3] = { zero, one, down };
    return cornu__project(x, a, b, NULL, sampling);
}

/* About the center (p, q): x' = cos (x - p) - sin (y - q) + p. */
CornuTensor *cornu__rotate(CornuTensor *x, CornuDraws *draws, const double factor[2],
                           const CornuSampling *sampling)
{
    if (!x) return NULL;
    const CornuShape s = cornu_tensor_shape(x);
    const double     q = 0.5 * (double)(s.extent[1] - 1), p = 0.5 * (double)(s.extent[2] - 1);
    CornuTensor *angle = cornu_op_scale(flat(cornu__draw_between(draws, factor)), 2.0 * acos(-1.0));
    CornuTensor *sine = cornu_op_sin(angle), *cosine = cornu_op_cos(angle);
    CornuTensor *back = cornu_op_negative(sine);
    CornuTensor *right = cornu_op_subtract(cornu_op_scale(sine, q), cornu_op_scale(cosine, p));
    CornuTensor *down = cornu_op_add(cornu_op_scale(sine, -p), cornu_op_scale(cosine, -q));
    CornuTensor *const a[3] = { cosine, back, cornu_op_shift(right, p) };
    CornuTensor *const b[3] = { sine, cosine, cornu_op_shift(down, q) };
    return cornu__project(x, a, b, NULL, sampling);
}

/* ---- RandomShear ---- */

typedef CORNU__LAYER(CornuRandomShearConfig) RandomShear;   /* with resolved ranges */

static CornuTensor *shear(const CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuRandomShearConfig *c = &((const RandomShear *)layer)->config;
    const CornuSampling           sampling = { c->fill_mode, c->interpolation, c->fill_value };
    CornuDraws                    draws = cornu__draws(layer, call, x, 3);
    return cornu__shear(x, &draws, c->x_factor, c->y_factor, &sampling);
}

static CornuStatus shear_resolve(CornuLayer *layer)
{
    CornuRandomShearConfig *config = &((RandomShear *)layer)->config;
    CORNU__TRY(cornu__resolve_factor(layer, "x_factor", &config->x, config->x_factor, 0.0, -1.0,
                                     1.0));
    CORNU__TRY(cornu__resolve_factor(layer, "y_factor", &config->y, config->y_factor, 0.0, -1.0,
                                     1.0));
    return cornu__resolve_sampling(layer, config->fill_mode, &config->interpolation,
                                   &config->fill_value);
}

static const CornuField shear_fields[] = {
    { "x_factor", CORNU_FIELD_REACH, offsetof(CornuRandomShearConfig, x_factor) },
    { "y_factor", CORNU_FIELD_REACH, offsetof(CornuRandomShearConfig, y_factor) },
    CORNU__SAMPLING_FIELDS(CornuRandomShearConfig),
};

const CornuLayerClass cornu__random_shear_class = {
    .class_name = "RandomShear", .size = sizeof(RandomShear), CORNU__CHANGES_IMAGES(shear, false),
    .keras = &(const CornuKerasClass){ CORNU__CONFIG(shear_fields, RandomShear, shear_resolve) },
};

CORNU__CONSTRUCTOR(random_shear, CornuRandomShearConfig)

/* ---- RandomPerspective ---- */

/* With the resolved range. */
typedef CORNU__LAYER(CornuRandomPerspectiveConfig) RandomPerspective;

static CornuTensor *product(CornuTensor *a, CornuTensor *b, CornuTensor *c, CornuTensor *d)
{
    return cornu_op_subtract(cornu_op_multiply(a, b), cornu_op_multiply(c, d));
}

/* The map from the quadrilateral with these corners (right[i], down[i]), in the order (0, 0),
 * (1, 0), (0, 1), (1, 1), to the unit square: the inverse of the map of the square to it.
 * Source: Heckbert, "Fundamentals of Texture Mapping and Image Warping", 1989, section 2.2.3. */
static void to_square(CornuTensor *const right[4], CornuTensor *const down[4], CornuTensor *map[9])
{
    CornuTensor *const *p[2] = { right, down };
    CornuTensor *u[2], *v[2], *sum[2], *g, *h, *m[3][3];
    for (int i = 0; i < 2; i++) {
        u[i] = cornu_op_subtract(p[i][1], p[i][3]);
        v[i] = cornu_op_subtract(p[i][2], p[i][3]);
        sum[i] = cornu_op_add(cornu_op_subtract(p[i][0], p[i][1]),
                              cornu_op_subtract(p[i][3], p[i][2]));
    }
    CornuTensor *area = product(u[0], v[1], v[0], u[1]);
    g = cornu_op_divide(product(sum[0], v[1], v[0], sum[1]), area);
    h = cornu_op_divide(product(u[0], sum[1], sum[0], u[1]), area);
    for (int i = 0; i < 2; i++) {
        m[i][0] = cornu_op_add(cornu_op_subtract(p[i][1], p[i][0]), cornu_op_multiply(g, p[i][1]));
        m[i][1] = cornu_op_add(cornu_op_subtract(p[i][2], p[i][0]), cornu_op_multiply(h, p[i][2]));
        m[i][2] = p[i][0];
    }
    m[2][0] = g, m[2][1] = h;
    m[2][2] = g ? cornu_op_constant_like(g, 1.0) : NULL;
    for (int i = 0; i < 3; i++)       /* the adjugate */
        for (int k = 0; k < 3; k++) {
            const int a = (k + 1) % 3, b = (k + 2) % 3, c = (i + 1) % 3, d = (i + 2) % 3;
            map[3 * i + k] = product(m[a][c], m[b][d], m[a][d], m[b][c]);
        }
}

static CornuTensor *perspective(const CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuRandomPerspectiveConfig *c = &((const RandomPerspective *)layer)->config;
    const CornuSampling sampling = { CORNU_FILL_CONSTANT, c->interpolation, c->fill_value };
    const CornuShape    s = cornu_tensor_shape(x);
    const double        size[2] = { (double)(s.extent[2] - 1), (double)(s.extent[1] - 1) };
    const double        scale = cornu__number(c->scale, 0.0);
    const double        reach[2] = { -0.5 * scale, 0.5 * scale };
    CornuDraws          draws = cornu__draws(layer, call, x, 10);
    CornuTensor        *chosen = cornu__draw_chance(&draws, c->factor), *corner[2][4], *map[9];
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 2; k++) {
            /* The corner moves by a part of its coordinates. */
            const double place = (k == 0 ? i & 1 : i >> 1) ? size[k] : 0.0;
            CornuTensor *part = flat(cornu__draw_between(&draws, reach));
            corner[k][i] = cornu_op_scale(cornu_op_shift(part, 1.0), place);
        }
    to_square(corner[0], corner[1], map);
    for (int i = 0; i < 8; i++)
        map[i] = cornu_op_scale(cornu_op_divide(map[i], map[8]),
                                i < 3 ? size[0] : i < 6 ? size[1] : 1.0);
    CornuTensor *y = cornu__project(x, map, map + 3, map + 6, &sampling);
    return cornu_op_select(chosen, y, x);
}

static CornuStatus perspective_resolve(CornuLayer *layer)
{
    CornuRandomPerspectiveConfig *config = &((RandomPerspective *)layer)->config;
    const double                  scale = cornu__number(config->scale, 1.0);
    config->scale = scale == 0.0 ? (double)CORNU_ZERO : scale;
    if (!(scale >= 0.0 && scale <= 1.0))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .scale is %g, expected 0 to 1",
                           cornu_layer_name(layer), scale);
    CORNU__TRY(cornu__resolve_factor(layer, "factor", &config->most, config->factor, 1.0, 0.0,
                                     1.0));
    return cornu__resolve_sampling(layer, CORNU_FILL_CONSTANT, &config->interpolation,
                                   &config->fill_value);
}

static const CornuField perspective_fields[] = {
    { "factor", CORNU_FIELD_RANGE_OR_NONE, offsetof(CornuRandomPerspectiveConfig, factor) },
    { "scale", CORNU_FIELD_NUMBER, offsetof(CornuRandomPerspectiveConfig, scale) },
    { "interpolation", CORNU_FIELD_INTERPOLATION,
      offsetof(CornuRandomPerspectiveConfig, interpolation) },
    { "fill_value", CORNU_FIELD_NUMBER, offsetof(CornuRandomPerspectiveConfig, fill_value) },
    { "data_format", CORNU_FIELD_DATA_FORMAT, offsetof(CornuRandomPerspectiveConfig, data_format) },
    { 0 },
};

const CornuLayerClass cornu__random_perspective_class = {
    .class_name = "RandomPerspective", .size = sizeof(RandomPerspective),
    CORNU__CHANGES_IMAGES(perspective, false),
    .keras = &(const CornuKerasClass){
        CORNU__CONFIG(perspective_fields, RandomPerspective, perspective_resolve),
    },
};

CORNU__CONSTRUCTOR(random_perspective, CornuRandomPerspectiveConfig)

/* ---- RandomElasticTransform ---- */

/* With resolved ranges. */
typedef CORNU__LAYER(CornuRandomElasticTransformConfig) RandomElasticTransform;

/* Rows and columns move alike, as Keras 3.15 draws both with one seed. The blurred noise is of the
 * standard deviation sigma before it is blurred by that; the window is as large as the largest
 * sigma's. */
static CornuTensor *elastic(const CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuRandomElasticTransformConfig *c = &((const RandomElasticTransform *)layer)->config;
    const CornuSampling sampling = { c->fill_mode, c->interpolation, c->fill_value };
    const CornuShape    s = cornu_tensor_shape(x);
    const int64_t       B = s.extent[0], H = s.extent[1], W = s.extent[2];
    const double        longer = (double)(H > W ? H : W), shorter = (double)(H > W ? W : H);
    const int64_t       window = (int64_t)(0.3 * shorter * cornu__end(c->scale, 1)) | 1;
    if (cornu__end(c->scale, 1) == 0.0 || cornu__end(c->factor, 1) == 0.0) return x;
    CornuDraws   shared = cornu__shared_draws(layer, call, 1);
    CornuDraws   draws = cornu__draws(layer, call, x, 2 + 2 * H * W);
    CornuTensor *chosen = cornu__draw_chance(&draws, c->factor);
    CornuTensor *scale = cornu__draw_between(&shared, c->scale);
    CornuTensor *sigma = cornu_op_shift(cornu_op_scale(scale, 0.05 * shorter), 1e-12);
    CornuTensor *move = cornu__draw_normal(&draws, cornu_shape(B, H, W, 1));
    CornuTensor *const both[2] = { sigma, sigma };
    move = cornu__blur(cornu_op_multiply(move, sigma), (const int64_t[]){ window, window }, both);
    move = cornu_op_multiply(move, cornu_op_scale(scale, 0.1 * longer));
    move = cornu_op_reshape(move, cornu_shape(B, H, W));
    CornuTensor *y = cornu__sample(x, cornu_op_add(cornu__counted(x, 1), move),
                                   cornu_op_add(cornu__counted(x, 2), move), &sampling);
    return cornu__clip_to(cornu_op_select(chosen, y, x), c->value_range);
}

static CornuStatus elastic_resolve(CornuLayer *layer)
{
    CornuRandomElasticTransformConfig *config = &((RandomElasticTransform *)layer)->config;
    double                             none = 0.0;
    CORNU__TRY(cornu__resolve_factor(layer, "factor", &config->most, config->factor, 1.0, 0.0,
                                     1.0));
    CORNU__TRY(cornu__resolve_factor(layer, "scale", &none, config->scale, 1.0, 0.0, 1.0));
    CORNU__TRY(cornu__resolve_value_range(layer, config->value_range));
    return cornu__resolve_sampling(layer, config->fill_mode, &config->interpolation,
                                   &config->fill_value);
}

#define ELASTIC(name) offsetof(CornuRandomElasticTransformConfig, name)
static const CornuField elastic_fields[] = {
    { "factor", CORNU_FIELD_RANGE_OR_NONE, ELASTIC(factor) },
    { "scale", CORNU_FIELD_RANGE_OR_NONE, ELASTIC(scale) },
    { "interpolation", CORNU_FIELD_INTERPOLATION, ELASTIC(interpolation) },
    { "fill_mode", CORNU_FIELD_FILL_MODE, ELASTIC(fill_mode) },
    { "fill_value", CORNU_FIELD_NUMBER, ELASTIC(fill_value) },
    { "value_range", CORNU_FIELD_RANGE_OR_NONE, ELASTIC(value_range) },
    { "data_format", CORNU_FIELD_DATA_FORMAT,
      offsetof(CornuRandomElasticTransformConfig, data_format) },
    { 0 },
};

const CornuLayerClass cornu__random_elastic_transform_class = {
    .class_name = "RandomElasticTransform", .size = sizeof(RandomElasticTransform),
    CORNU__CHANGES_IMAGES(elastic, false),
    .keras = &(const CornuKerasClass){
        CORNU__CONFIG(elastic_fields, RandomElasticTransform, elastic_resolve),
    },
};

CORNU__CONSTRUCTOR(random_elastic_transform, CornuRandomElasticTransformConfig)
