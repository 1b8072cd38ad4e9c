#include "tpu_embedding.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../device/memory_internal.h"
#include "../layers/layer_internal.h"
#include "../optimizers/optimizer_internal.h"

typedef struct {
    int64_t          vocabulary_size, dim;
    CornuInitializer initializer;
    CornuOptimizer  *optimizer;        /* until it is handed out */
    CornuCombiner    combiner;
    char            *name;
} Table;

typedef struct {
    int     table;
    int64_t max_sequence_length;
    int     weights;                   /* the number of its input, or 0 */
    char   *name;
} Feature;

typedef struct {
    CornuLayer      base;
    Table           tables[CORNU_MAX_FEATURES];
    Feature         features[CORNU_MAX_FEATURES];
    int             table_count, feature_count, input_count;
    CornuOptimizer *optimizer;
    bool            handed_out, duplicated;
} Embedding;

/* ---- Lookups ---- */

static CornuStatus tpu_embedding_build(CornuLayer *layer, const CornuShape *in, int in_count)
{
    const Embedding *embedding = (Embedding *)layer;
    CornuText        a, b;
    if (in_count != embedding->input_count)
        return cornu__fail(CORNU_ERR_SHAPE, "%d inputs, expected %d: %d features, and %d with "
                           "weights", in_count, embedding->input_count, embedding->feature_count,
                           embedding->input_count - embedding->feature_count);
    for (int f = 0; f < embedding->feature_count; f++) {
        const Feature *feature = &embedding->features[f];
        if (in[f].rank != 1 && in[f].rank != 2)
            return cornu__fail(CORNU_ERR_SHAPE, "%s is %s, expected (B) or (B, L)", feature->name,
                               cornu_shape_print(&a, in[f]));
        if (feature->weights && !cornu_shape_equal(in[feature->weights], in[f]))
            return cornu__fail(CORNU_ERR_SHAPE, "the weights of %s are %s, expected %s",
                               feature->name, cornu_shape_print(&a, in[feature->weights]),
                               cornu_shape_print(&b, in[f]));
    }
    for (int t = 0; t < embedding->table_count; t++) {
        const Table *table = &embedding->tables[t];
        CORNU__TRY(cornu_layer_weight(layer, table->name,
                                      cornu_shape(table->vocabulary_size, table->dim),
                                      table->initializer, false));
        layer->weights[layer->own_count - 1]->sparse_gradient = true;
        layer->weights[layer->own_count - 1]->sliced = !embedding->duplicated;
    }
    return CORNU_OK;
}

/* x (B, L), or (B, L, 1) broadcast to the rows. */
static CornuTensor *of_rows(CornuTensor *x, CornuTensor *rows)
{
    const CornuShape shape = cornu_tensor_shape(rows);
    x = cornu_op_reshape(x, cornu_shape(shape.extent[0], shape.extent[1], 1));
    return cornu_op_broadcast(x, shape);
}

/* The sum over the list, of x (B, L): (B, 1) for a divisor of the combined rows, 1 for 0. */
static CornuTensor *divisor(CornuTensor *x, bool root)
{
    CornuTensor *sum = cornu_op_reduce_sum(x, INT64_C(1) << 1, true);
    if (root) sum = cornu_op_sqrt(sum);
    if (!sum) return NULL;
    CornuTensor *is_zero = cornu_op_compare(sum, CORNU_EQUAL, cornu_op_constant_like(sum, 0.0));
    return cornu_op_select(is_zero, cornu_op_constant_like(sum, 1.0), sum);
}

/* rows (B, L, C), zeros for padding; w (B, L), zeros for padding; NULL: rows have no weights. */
static CornuTensor *combined(CornuTensor *rows, CornuTensor *indices, CornuTensor *w,
                             CornuCombiner combiner)
{
    const CornuShape shape = cornu_tensor_shape(rows);
    if (shape.extent[1] == 1 && !w)   /* of one row or none all are that row */
        return cornu_op_reshape(rows, cornu_shape(shape.extent[0], shape.extent[2]));
    if (w) rows = cornu_op_multiply(rows, of_rows(w, rows));
    CornuTensor *sum = cornu_op_reduce_sum(rows, INT64_C(1) << 1, false);
    if (combiner == CORNU_COMBINER_SUM) return sum;
    if (!w)
        w = cornu_op_convert(cornu_op_compare(indices, CORNU_GREATER_EQUAL,
                                              cornu_op_constant_like(indices, 0.0)), CORNU_F32);
    else if (combiner == CORNU_COMBINER_SQRTN)
        w = cornu_op_square(w);
    CornuTensor *by = divisor(w, combiner == CORNU_COMBINER_SQRTN);
    return by ? cornu_op_divide(sum, cornu_op_broadcast(by, cornu_tensor_shape(sum))) : NULL;
}

/* Rows of a sequence: the first `length`, zeros after them. */
static CornuTensor *sequence(CornuTensor *rows, int64_t length)
{
    const CornuShape shape = cornu_tensor_shape(rows);
    const int64_t    more = length - shape.extent[1];
    const int64_t    zeros[3] = { 0 }, high[3] = { 0, more > 0 ? more : 0, 0 };
    const int64_t    sizes[3] = { shape.extent[0], length, shape.extent[2] };
    return more < 0 ? cornu_op_slice(rows, zeros, sizes) : cornu_op_pad(rows, zeros, high, 0.0);
}

static CornuTensor *at_least(CornuTensor *x, double least)
{
    return x ? cornu_op_compare(x, CORNU_GREATER_EQUAL, cornu_op_constant_like(x, least)) : NULL;
}

/* Rows of a table of `total` rows of which this shard has a slice: all shards look up what is in
 * theirs, zeros for the rest, and each gets the sums of its own lists. An index of no row is given
 * to the lookup as it is, which refuses it: it is beyond every slice. */
static CornuTensor *rows_of_slices(CornuTensor *slice, CornuTensor *indices, int64_t total)
{
    const CornuShape list = cornu_tensor_shape(indices);
    const CornuShape shape = cornu_tensor_shape(slice);
    CornuTensor *flat = cornu_op_reshape(indices, cornu_shape(list.extent[0] * list.extent[1]));
    CornuTensor *all = cornu_op_convert(cornu_op_all_gather(flat, NULL), CORNU_I64);
    CornuTensor *shard = cornu_op_replica_id(cornu_tensor_graph(slice));
    if (!all || !shard) return NULL;
    CornuTensor *rows = cornu_op_constant_like(shard, (double)shape.extent[0]);
    CornuTensor *place = cornu_op_subtract(all, cornu_op_multiply(shard, rows));
    CornuTensor *none = cornu_op_constant_like(all, -1.0);
    CornuTensor *elsewhere = cornu_op_select(at_least(all, (double)total), all,
                                             cornu_op_select(at_least(all, -1.0), none, all));
    CornuTensor *low = cornu_op_select(at_least(place, 0.0), place, elsewhere);
    CornuTensor *high = cornu_op_select(at_least(place, (double)shape.extent[0]), elsewhere, low);
    CornuTensor *own = cornu_op_select(at_least(all, (double)total), all, high);
    CornuTensor *found = cornu_op_gather_padded(slice, own);
    return cornu_op_reshape(cornu_op_reduce_scatter(found, NULL),
                            cornu_shape(list.extent[0], list.extent[1], shape.extent[1]));
}

static CornuTensor *look_up(CornuLayer *layer, const CornuCall *call, const Feature *feature,
                            CornuTensor *indices, CornuTensor *w)
{
    const Table     *table = &((Embedding *)layer)->tables[feature->table];
    const CornuShape shape = cornu_tensor_shape(indices);
    const CornuShape list = cornu_shape(shape.extent[0], shape.rank > 1 ? shape.extent[1] : 1);
    indices = cornu_op_reshape(cornu__indices(call, indices), list);
    if (!indices) return NULL;
    if (w) {
        w = cornu_op_convert(cornu_op_reshape(w, list), CORNU_F32);
        CornuTensor *none = cornu_op_constant_like(indices, -1.0);
        CornuTensor *zero = w ? cornu_op_constant_like(w, 0.0) : NULL;
        if (table->combiner != CORNU_COMBINER_SUM)
            indices = cornu_op_select(cornu_op_compare(w, CORNU_GREATER, zero), indices, none);
        w = cornu_op_select(cornu_op_compare(indices, CORNU_GREATER, none), w, zero);
    }
    CornuTensor *of_table = cornu_layer_read_as(layer, call, feature->table, CORNU_F32);
    const CornuVariable *variable = layer->weights[feature->table]->variable;
    CornuTensor *rows = variable && cornu_variable_is_sliced(variable)
                      ? rows_of_slices(of_table, indices, table->vocabulary_size)
                      : cornu_op_gather_padded(of_table, indices);
    if (!rows) return NULL;
    return cornu_op_convert(feature->max_sequence_length
                                ? sequence(rows, feature->max_sequence_length)
                                : combined(rows, indices, w, table->combiner), layer->compute);
}

static CornuTensor *call_many(CornuLayer *layer, const CornuCall *call, CornuTensor *const *in,
                              int in_count, CornuTensor **out)
{
    const Embedding *embedding = (Embedding *)layer;
    (void)in_count;
    for (int f = 0; f < embedding->feature_count; f++) {
        const Feature *feature = &embedding->features[f];
        out[f] = look_up(layer, call, feature, in[f],
                         feature->weights ? in[feature->weights] : NULL);
        if (!out[f]) return NULL;
    }
    return out[0];
}

static int outputs(const CornuLayer *layer) { return ((const Embedding *)layer)->feature_count; }

/* ---- Making one ---- */

static void free_embedding(CornuLayer *layer)
{
    Embedding *embedding = (Embedding *)layer;
    for (int t = 0; t < embedding->table_count; t++) {
        cornu_optimizer_free(embedding->tables[t].optimizer);
        cornu__release(embedding->tables[t].name);
    }
    for (int f = 0; f < embedding->feature_count; f++)
        cornu__release(embedding->features[f].name);
    cornu_optimizer_free(embedding->optimizer);
}

static const CornuLayerClass embedding_class = {
    .class_name = "TPUEmbedding", .size = sizeof(Embedding), .build_many = tpu_embedding_build,
    .call_many = call_many, .outputs = outputs, .free = free_embedding, .takes_integers = true,
    .keeps_dtypes = true,
    .keras = &(const CornuKerasClass){ .label = "tpu_embedding" },
};

/* "table" for number 0, "table_1" for the next; or the name that is given. */
static char *name_of(const char *given, const char *kind, int number)
{
    char text[64];
    snprintf(text, sizeof text, number > 0 ? "%s_%d" : "%s", kind, number);
    return cornu__copy_text(given ? given : text);
}

/* Takes its optimizer, also on failure. */
static CornuStatus add_table(Embedding *embedding, const CornuEmbeddingTableConfig *config)
{
    Table *table = &embedding->tables[embedding->table_count];
    const CornuInitializer usual = cornu_truncated_normal(
        .stddev = 1.0 / sqrt((double)(config->dim > 0 ? config->dim : 1)));
    *table = (Table){ .vocabulary_size = config->vocabulary_size, .dim = config->dim,
                      .initializer = config->initializer.kind || config->initializer.call
                                         ? config->initializer : usual,
                      .optimizer = config->optimizer, .combiner = config->combiner,
                      .name = name_of(config->name, "table", embedding->table_count) };
    embedding->table_count++;
    if (!table->name) return CORNU_ERR_MEMORY;
    const struct { const char *argument; int64_t value; } extents[] = {
        { "vocabulary_size", config->vocabulary_size }, { "dim", config->dim },
    };
    for (int i = 0; i < 2; i++)
        if (extents[i].value < 1 || extents[i].value >= INT32_MAX)
            return cornu__fail(CORNU_ERR_ARGUMENT, "table %s: .%s is %lld, expected 1 to %d",
                               table->name, extents[i].argument, (long long)extents[i].value,
                               INT32_MAX - 1);
    if ((unsigned)config->combiner > CORNU_COMBINER_SQRTN)
        return cornu__fail(CORNU_ERR_ARGUMENT, "table %s: .combiner is %d, expected mean, sum or "
                           "sqrtn", table->name, (int)config->combiner);
    for (int t = 0; t + 1 < embedding->table_count; t++)
        if (!strcmp(embedding->tables[t].name, table->name))
            return cornu__fail(CORNU_ERR_ARGUMENT, "two tables are named %s; features of one table "
                               "have its address", table->name);
    return CORNU_OK;
}

static CornuStatus add_features(Embedding *embedding, const CornuTpuEmbeddingConfig *config)
{
    const CornuEmbeddingTableConfig *known[CORNU_MAX_FEATURES];
    CornuStatus             status = CORNU_OK;
    int                     count = 0;
    for (; count < CORNU_MAX_FEATURES && config->feature_config[count].table; count++) {
        const CornuEmbeddingFeatureConfig *given = &config->feature_config[count];
        int table = 0;
        while (table < embedding->table_count && known[table] != given->table) table++;
        if (table == embedding->table_count) {
            known[table] = given->table;
            const CornuStatus added = add_table(embedding, given->table);
            if (!status) status = added;   /* the optimizers of all tables are taken */
        }
        Feature *feature = &embedding->features[count];
        *feature = (Feature){ .table = table, .max_sequence_length = given->max_sequence_length,
                              .weights = given->weighted,
                              .name = name_of(given->name, "feature", count) };
        embedding->feature_count++;
        if (!status && !feature->name) status = CORNU_ERR_MEMORY;
        if (!status && given->max_sequence_length < 0)
            status = cornu__fail(CORNU_ERR_ARGUMENT, "feature %s: .max_sequence_length is %lld, "
                                 "expected 1 or more, or 0 to combine rows", feature->name,
                                 (long long)given->max_sequence_length);
        if (!status && given->weighted && given->max_sequence_length > 0)
            status = cornu__fail(CORNU_ERR_ARGUMENT, "feature %s: .weighted and "
                                 ".max_sequence_length are given, but rows of a sequence have no "
                                 "weights", feature->name);
    }
    embedding->input_count = count;
    for (int f = 0; f < count; f++)
        if (embedding->features[f].weights)
            embedding->features[f].weights = embedding->input_count++;
    if (status || count > 0) return status;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .feature_config is empty, expected a table and its "
                       "features", cornu_layer_name(&embedding->base));
}

CornuLayer *cornu_tpu_embedding_from(const CornuTpuEmbeddingConfig *config)
{
    CornuLayer *layer = cornu_layer_create(&embedding_class, config->name, config->dtype);
    Embedding   lost = { .feature_count = 0 };   /* what is taken, to be freed */
    Embedding  *embedding = layer ? (Embedding *)layer : &lost;
    CornuStatus status = add_features(embedding, config);
    embedding->optimizer = config->optimizer;
    if (!layer) free_embedding(&lost.base);
    if (!layer) return cornu__null();
    layer->frozen = config->frozen;
    embedding->duplicated = config->duplicated;
    if (!status) return layer;
    cornu_layer_free(layer);
    return cornu__null();
}

/* ---- Optimizers ---- */

static bool is_embedding(const CornuLayer *layer)
{
    return layer && layer->kind == &embedding_class;
}

/* "films_adam": names of optimizers differ, as files and backups have their variables by name. */
static CornuStatus rename_optimizer(CornuOptimizer *optimizer, const char *owner)
{
    char text[160];
    snprintf(text, sizeof text, "%s_%s", owner, optimizer->name);
    char *name = cornu__copy_text(text);
    if (!name) return CORNU_ERR_MEMORY;
    cornu__release(optimizer->name);
    optimizer->name = name;
    return CORNU_OK;
}

static CornuStatus map_optimizers(Embedding *embedding, CornuMultiConfig *config, char *pattern,
                                  size_t size)
{
    CornuLayer *layer = &embedding->base;
    int         count = 0;
    if (!layer->built || embedding->handed_out)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: %s, expected one call once it is part of a "
                           "model", cornu_layer_name(layer),
                           layer->built ? "its optimizers were taken before" : "not built yet");
    for (int t = 0; t < embedding->table_count; t++) {
        if (!embedding->tables[t].optimizer) continue;
        if (count >= CORNU_MAX_OPTIMIZERS - 1)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: more than %d tables have an optimizer of "
                               "their own", cornu_layer_name(layer), CORNU_MAX_OPTIMIZERS - 1);
        config->optimizer_map[count++] = (CornuMappedOptimizer){
            layer->weights[t]->path, embedding->tables[t].optimizer };
        CornuOptimizer *own = embedding->tables[t].optimizer;
        embedding->tables[t].optimizer = NULL;
        CORNU__TRY(rename_optimizer(own, embedding->tables[t].name));
    }
    if (!embedding->optimizer) return CORNU_OK;
    CornuOptimizer *common = embedding->optimizer;
    const char *path = layer->weights[0]->path;   /* up to the last '/': that of the layer */
    snprintf(pattern, size, "%.*s/[^/]*", (int)(strrchr(path, '/') - path), path);
    config->optimizer_map[count] = (CornuMappedOptimizer){ pattern, common };
    embedding->optimizer = NULL;
    return rename_optimizer(common, cornu_layer_name(layer));
}

CornuOptimizer *cornu_tpu_embedding_optimizer(CornuLayer *layer, CornuOptimizer *others)
{
    char             pattern[400];
    CornuMultiConfig config = { .default_optimizer = others };
    CornuStatus      status = others && is_embedding(layer) && !cornu_error_pending()
                            ? map_optimizers((Embedding *)layer, &config, pattern, sizeof pattern)
                            : cornu__fail(CORNU_ERR_ARGUMENT, "cornu_tpu_embedding_optimizer: "
                                          "expected a TPUEmbedding layer and an optimizer");
    if (!status) {
        ((Embedding *)layer)->handed_out = true;
        return config.optimizer_map[0].optimizer ? cornu_multi_optimizer_from(&config) : others;
    }
    for (int i = 0; i < CORNU_MAX_OPTIMIZERS; i++)
        cornu_optimizer_free(config.optimizer_map[i].optimizer);
    cornu_optimizer_free(others);
    return cornu__null();
}

/* ---- Data ---- */

CornuStatus cornu_tpu_embedding_rows(const CornuLayer *layer, int feature,
                                     const CornuRagged *ragged, CornuArray to,
                                     CornuArray weights_to)
{
    const Embedding *embedding = (const Embedding *)layer;
    if (!is_embedding(layer) || feature < 0 || feature >= embedding->feature_count)
        return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_tpu_embedding_rows: expected a TPUEmbedding "
                           "layer and the number of one of its features");
    const Feature *about = &embedding->features[feature];
    if (to.type.shape.rank != 2 || (weights_to.data && !about->weights))
        return cornu__fail(CORNU_ERR_SHAPE, "feature %s: expected lists (R, L)%s", about->name,
                           about->weights ? "" : ", without weights");
    char name[160];
    snprintf(name, sizeof name, "feature %s", about->name);
    return cornu_ragged_rows(ragged, .name = name,
                             .limit = embedding->tables[about->table].vocabulary_size,
                             .length = to.type.shape.extent[1],
                             .truncate = about->max_sequence_length > 0, .to = to,
                             .weights_to = weights_to);
}
