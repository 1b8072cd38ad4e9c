/*
 * Embedding tables, as tf.tpu.experimental.embedding has them: several tables, features that look
 * rows up in them, an optimizer for each table. A layer with an input and an output for each
 * feature.
 *
 *     CornuEmbeddingTableConfig users = { .vocabulary_size = 100000, .dim = 32 };
 *     CornuEmbeddingTableConfig films = { .vocabulary_size = 20000, .dim = 32,
 *                                         .optimizer = cornu_adagrad(0.05),
 *                                         .combiner = CORNU_COMBINER_SUM };
 *     CornuLayer *embedding = cornu_tpu_embedding(
 *         .feature_config = { { .table = &users, .name = "user" },
 *                             { .table = &films, .name = "film" },
 *                             { .table = &films, .name = "watched", .max_sequence_length = 20 } },
 *         .optimizer = cornu_sgd(0.1));
 *     CornuSymbol *user = cornu_call(embedding, user_ids, film_ids, watched_ids);
 *     CornuSymbol *film = cornu_call_result(user, 1), *watched = cornu_call_result(user, 2);
 *     …
 *     cornu_compile(model, .optimizer = cornu_tpu_embedding_optimizer(embedding, cornu_adam()), …);
 *
 * An input is i32 (B, L), a list of rows of the table for each sample, ended by -1; or (B). Ragged
 * data, offsets and indices, become such lists by cornu_tpu_embedding_rows. An output is (B, dim),
 * the rows combined:
 *
 *     sum     the sum of w row             mean    that, divided by the sum of w
 *     sqrtn   that, divided by the root of the sum of w^2
 *
 * with weights w of 1 or, for features that are .weighted, of further inputs f32 (B, L), in the
 * order of these features, after all lists. A sample without rows has zeros. But for sums rows
 * whose weight is not above 0 are left out. With max_sequence_length an output is
 * (B, max_sequence_length, dim), the rows themselves, then zeros; longer lists end there.
 *
 * Steps touch only the rows that were looked up (cornu_embedding's .sparse_gradient, sequences.h).
 * On several shards each has a slice of the rows of every table and of its slots. All shards get
 * all lists, look up the rows of their slices, and the sums of these are scattered: an all_gather
 * and a reduce_scatter in place of two exchanges of all with all, which collectives here have not.
 * With .duplicated every shard has all rows, looks up its own lists, and gets the gradients of all.
 *
 * Sources: tensorflow/python/tpu/tpu_embedding_v2_utils.py, TableConfig and FeatureConfig;
 * tensorflow/python/ops/embedding_ops.py, safe_embedding_lookup_sparse.
 */
#ifndef CORNU_NN_TPU_EMBEDDING_H
#define CORNU_NN_TPU_EMBEDDING_H

#include "../../datasets/tables/ragged.h"
#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { CORNU_COMBINER_MEAN, CORNU_COMBINER_SUM, CORNU_COMBINER_SQRTN } CornuCombiner;

/* Features are of one table if they have the same address here; it is needed no longer than the
 * call. */
typedef struct {
    int64_t          vocabulary_size, dim;    /* required */
    CornuInitializer initializer;             /* default normal, truncated, 1 / sqrt(dim) */
    CornuOptimizer  *optimizer;               /* default the layer's; taken */
    CornuCombiner    combiner;
    const char      *name;                    /* default table, table_1, … */
} CornuEmbeddingTableConfig;

typedef struct {
    const CornuEmbeddingTableConfig *table;            /* required */
    int64_t                 max_sequence_length;   /* 0: rows are combined */
    bool                    weighted;
    const char             *name;             /* for messages; default feature, feature_1, … */
} CornuEmbeddingFeatureConfig;

enum { CORNU_MAX_FEATURES = 32 };

typedef struct {
    char               unset;
    /* Ends at the first without a table. */
    CornuEmbeddingFeatureConfig feature_config[CORNU_MAX_FEATURES];
    CornuOptimizer    *optimizer;             /* of the tables; default that of the other weights */
    bool               duplicated;            /* tables are not sliced over the shards */
    const char        *name;
    bool               frozen;
    const char        *dtype;
} CornuTpuEmbeddingConfig;

/* The layer cannot be saved in a model's file; its weights, named after the tables, can. */
CornuLayer *cornu_tpu_embedding_from(const CornuTpuEmbeddingConfig *config);
#define cornu_tpu_embedding(...) \
    cornu_tpu_embedding_from(&(CornuTpuEmbeddingConfig){ .unset = 0, __VA_ARGS__ })

/* An optimizer for all weights of a model: the tables' own, the layer's for other tables, `others`
 * for the rest, which it takes, as those of the layer. Once the layer is part of a model, and once:
 * CORNU_ERR_ARGUMENT otherwise, and for more than 7 tables with an optimizer of their own. */
CornuOptimizer *cornu_tpu_embedding_optimizer(CornuLayer *embedding, CornuOptimizer *others);

/* Lists of a feature for the layer, i32 (R, L), from ragged data; weights_to f32 (R, L), its data
 * NULL where the feature is not weighted. Lists that are too long end there if the feature is a
 * sequence, and are refused if not. CORNU_ERR_VALUE as cornu_ragged_rows, naming feature and
 * row. */
CornuStatus cornu_tpu_embedding_rows(const CornuLayer *embedding, int feature,
                                     const CornuRagged *ragged, CornuArray to,
                                     CornuArray weights_to);

#ifdef __cplusplus
}
#endif
#endif
