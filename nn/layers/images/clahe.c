/* ContrastLimitedAdaptiveHistogramEqualization.
 * Source: keras/src/layers/preprocessing/image_preprocessing/clahe.py; Zuiderveld, "Contrast
 * Limited Adaptive Histogram Equalization", Graphics Gems IV, 1994. */
#include "moves_internal.h"

enum { LEVELS = 256 };

typedef CORNU__LAYER(CornuClaheConfig) Clahe;

/* The tiles: a grid of rows and columns, each of so many pixels. */
typedef struct { int64_t B, C, grid[2], tile[2]; } Tiles;

/* The image grown to whole tiles, by its mirror below and to the right. */
static CornuTensor *grown(CornuTensor *x, const Tiles *tiles)
{
    static const CornuSampling mirror = { CORNU_FILL_REFLECT, CORNU_NEAREST, 0.0 };
    const CornuShape s = cornu_tensor_shape(x);
    const CornuType  type = cornu_type(CORNU_F32, s.extent[0], tiles->grid[0] * tiles->tile[0],
                                       tiles->grid[1] * tiles->tile[1]);
    if (type.shape.extent[1] == s.extent[1] && type.shape.extent[2] == s.extent[2]) return x;
    CornuGraph *graph = cornu_tensor_graph(x);
    return cornu__pixels(x, cornu_op_iota(graph, type, 1), cornu_op_iota(graph, type, 2), &mirror);
}

/* The whole number of a value along an axis, in the shape of x, in f32. */
static CornuTensor *index_of(CornuTensor *x, int axis)
{
    return cornu_op_iota(cornu_tensor_graph(x), cornu_tensor_type(x), axis);
}

/* a n + b, i64; b is of any number type. */
static CornuTensor *step(CornuTensor *a, int64_t n, CornuTensor *b)
{
    if (!a) return NULL;
    a = cornu_op_multiply(a, cornu_op_constant_like(a, (double)n));
    return cornu_op_add(a, cornu_op_convert(b, CORNU_I64));
}

/* The place of each level in the table of its channel in a tile, i64; tiles are given by row and
 * column. */
static CornuTensor *place_of(const Tiles *tiles, CornuTensor *level, CornuTensor *row,
                             CornuTensor *column)
{
    CornuTensor *image = cornu_op_convert(index_of(level, 0), CORNU_I64);
    CornuTensor *at = step(step(image, tiles->grid[0], row), tiles->grid[1], column);
    return step(step(at, tiles->C, index_of(level, 3)), LEVELS, level);
}

/* (B rows columns C, levels): the new levels of each tile. */
static CornuTensor *tables(const Tiles *tiles, CornuTensor *level, double limit)
{
    const double  pixels = (double)(tiles->tile[0] * tiles->tile[1]);
    const int64_t N = cornu_shape_count(cornu_tensor_shape(level));
    const int64_t rows = tiles->B * tiles->grid[0] * tiles->grid[1] * tiles->C;
    CornuTensor *row = cornu_op_floor(cornu_op_scale(cornu_op_shift(index_of(level, 1), 0.5),
                                                     1.0 / (double)tiles->tile[0]));
    CornuTensor *column = cornu_op_floor(cornu_op_scale(cornu_op_shift(index_of(level, 2), 0.5),
                                                        1.0 / (double)tiles->tile[1]));
    CornuTensor *at = cornu_op_reshape(place_of(tiles, level, row, column), cornu_shape(N));
    CornuTensor *ones = cornu_op_constant(cornu_tensor_graph(level), cornu_type(CORNU_F32, N, 1),
                                          1.0);
    CornuTensor *counts = cornu_op_reshape(cornu_op_segment_sum(ones, at, rows * LEVELS),
                                           cornu_shape(rows, LEVELS));
    if (limit > 0.0) {
        CornuTensor *clipped = cornu_op_clip(counts, 0.0, limit * pixels / LEVELS);
        CornuTensor *excess = cornu_op_reduce_sum(cornu_op_subtract(counts, clipped), 1 << 1, true);
        counts = cornu_op_add(clipped, cornu_op_scale(excess, 1.0 / LEVELS));
    }
    if (!counts) return NULL;
    const CornuType square = cornu_type(CORNU_F32, LEVELS, LEVELS);
    CornuGraph     *graph = cornu_tensor_graph(level);
    CornuTensor    *earlier = cornu_op_compare(cornu_op_iota(graph, square, 0), CORNU_LESS_EQUAL,
                                               cornu_op_iota(graph, square, 1));
    CornuTensor *sums = cornu_op_matmul(counts, cornu_op_convert(earlier, CORNU_F32));
    CornuTensor *first = cornu_op_slice(sums, (const int64_t[]){ 0, 0 },
                                        (const int64_t[]){ rows, 1 });   /* the least */
    CornuTensor *rest = cornu_op_shift(cornu_op_negative(first), pixels);
    if (!rest) return NULL;
    CornuTensor *none = cornu_op_compare(rest, CORNU_EQUAL, cornu_op_constant_like(rest, 0.0));
    rest = cornu_op_select(none, cornu_op_constant_like(rest, 1.0), rest);
    sums = cornu_op_scale(cornu_op_subtract(sums, first), 255.0);
    return cornu_op_clip(cornu_op_divide(sums, rest), 0.0, 255.0);
}

/* The tiles whose centers are before and after each row or column, and the second one's weight. */
static CornuTensor *beside(CornuTensor *x, int axis, int64_t tile, int64_t grid,
                           CornuTensor *tiles[2])
{
    const double size = (double)tile, last = (double)(grid - 1);
    CornuTensor *place = cornu_op_shift(index_of(x, axis), -0.5 * size);
    place = place ? cornu_op_divide(place, cornu_op_constant_like(place, size)) : NULL;
    CornuTensor *before = cornu_op_floor(place);
    tiles[0] = cornu_op_clip(before, 0.0, last);
    tiles[1] = cornu_op_clip(cornu_op_shift(before, 1.0), 0.0, last);
    return cornu_op_subtract(place, before);
}

static CornuTensor *mixed(CornuTensor *a, CornuTensor *b, CornuTensor *part)
{
    return cornu_op_add(a, cornu_op_multiply(cornu_op_subtract(b, a), part));
}

static CornuTensor *equalize(const CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuClaheConfig *config = &((const Clahe *)layer)->config;
    const CornuShape        s = cornu_tensor_shape(x);
    Tiles                   tiles = { s.extent[0], s.extent[3], { 0 }, { 0 } };
    CornuTensor            *rows[2], *columns[2], *found[2][2];
    (void)call;
    for (int i = 0; i < 2; i++) {
        tiles.grid[i] = config->tile_grid_size[i];
        tiles.tile[i] = (s.extent[i + 1] + tiles.grid[i] - 1) / tiles.grid[i];
    }
    CornuTensor *y = grown(cornu__map_range(x, config->value_range, cornu__bytes), &tiles);
    if (!y) return NULL;
    CornuTensor *level = cornu_op_floor(cornu_op_clip(y, 0.0, 255.0));
    CornuTensor *table = tables(&tiles, level, cornu__number(config->clip_limit, 0.0));
    if (!table) return NULL;
    table = cornu_op_reshape(table, cornu_shape(cornu_shape_count(cornu_tensor_shape(table)), 1));
    CornuTensor *down = beside(level, 1, tiles.tile[0], tiles.grid[0], rows);
    CornuTensor *right = beside(level, 2, tiles.tile[1], tiles.grid[1], columns);
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++) {
            found[i][k] = cornu_op_gather(table, place_of(&tiles, level, rows[i], columns[k]));
            found[i][k] = cornu_op_reshape(found[i][k], cornu_tensor_shape(level));
        }
    y = mixed(mixed(found[0][0], found[0][1], right), mixed(found[1][0], found[1][1], right), down);
    y = cornu_op_slice(y, (const int64_t[]){ 0, 0, 0, 0 }, s.extent);
    return cornu__map_range(y, cornu__bytes, config->value_range);
}

static CornuStatus clahe_resolve(CornuLayer *layer)
{
    CornuClaheConfig *config = &((Clahe *)layer)->config;
    if (config->clip_limit == 0.0) config->clip_limit = 4.0;
    CORNU__TRY(cornu__pair(cornu_layer_name(layer), "tile_grid_size", "tile_grid_size", 0,
                           config->tile_grid_size, 8, config->tile_grid_size));
    return cornu__resolve_value_range(layer, config->value_range);
}

static const CornuField fields[] = {
    { "value_range", CORNU_FIELD_RANGE_OR_NONE, offsetof(CornuClaheConfig, value_range) },
    { "clip_limit", CORNU_FIELD_NUMBER, offsetof(CornuClaheConfig, clip_limit) },
    { "tile_grid_size", CORNU_FIELD_PAIR, offsetof(CornuClaheConfig, tile_grid_size) },
    { "data_format", CORNU_FIELD_DATA_FORMAT, offsetof(CornuClaheConfig, data_format) },
    { 0 },
};

const CornuLayerClass cornu__contrast_limited_adaptive_histogram_equalization_class = {
    .class_name = "ContrastLimitedAdaptiveHistogramEqualization", .size = sizeof(Clahe),
    CORNU__CHANGES_IMAGES(equalize, true),
    .keras = &(const CornuKerasClass){ CORNU__CONFIG(fields, Clahe, clahe_resolve) },
};

CORNU__CONSTRUCTOR(contrast_limited_adaptive_histogram_equalization, CornuClaheConfig)
