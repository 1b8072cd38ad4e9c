/*
 * DLRM: embeddings of categories, a network for numbers, dot products of all pairs of them, and a
 * network for these. Source: Naumov et al., "Deep Learning Recommendation Model for Personalization
 * and Recommendation Systems", arXiv 1906.00091, section 2.
 */
#include "models.h"

#include "../nn/layers/layers.h"
#include "../nn/model/functional.h"

/* ---- Dot products of all pairs ---- */

/* Of F vectors (B, D): (B, D + F (F - 1) / 2), the first vector, then x_1 x_0, x_2 x_0, x_2 x_1, …
 * A layer without arguments. */
static CornuStatus pairs_build(CornuLayer *layer, const CornuShape *in, int in_count)
{
    CornuText a, b;
    (void)layer;
    if (in_count < 2 || in_count > CORNU_DLRM_FEATURES + 1)
        return cornu_error_set(CORNU_ERR_SHAPE, "%d vectors, expected 2 to %d", in_count,
                               CORNU_DLRM_FEATURES + 1);
    for (int i = 0; i < in_count; i++)
        if (in[i].rank != 2 || !cornu_shape_equal(in[i], in[0]))
            return cornu_error_set(CORNU_ERR_SHAPE, "input %d is %s and the first %s, expected "
                                   "vectors of one length", i, cornu_shape_print(&a, in[i]),
                                   cornu_shape_print(&b, in[0]));
    return CORNU_OK;
}

/* Products of elements, added up: thousands of matrices as small as these take longer. */
static CornuTensor *pairs_call(CornuLayer *layer, const CornuCall *call, CornuTensor *const *in,
                               int in_count, CornuTensor **out)
{
    enum { MOST = (CORNU_DLRM_FEATURES + 1) * CORNU_DLRM_FEATURES / 2 };
    const CornuShape shape = cornu_tensor_shape(in[0]);
    const CornuShape row = cornu_shape(shape.extent[0], 1, shape.extent[1]);
    CornuTensor     *left[MOST], *right[MOST];
    int              count = 0;
    (void)layer, (void)call, (void)out;
    for (int i = 1; i < in_count; i++)
        for (int k = 0; k < i; k++, count++) {
            left[count] = cornu_op_reshape(in[i], row);
            right[count] = cornu_op_reshape(in[k], row);
        }
    CornuTensor *products = cornu_op_multiply(cornu_op_concat(left, count, 1),
                                              cornu_op_concat(right, count, 1));
    CornuTensor *parts[2] = { in[0], cornu_op_reduce_sum(products, INT64_C(1) << 2, false) };
    return cornu_op_concat(parts, 2, 1);
}

static const CornuLayerClass pairs_class = {
    .class_name = "PairwiseDots", .size = sizeof(CornuLayer), .build_many = pairs_build,
    .call_many = pairs_call,
};

/* ---- The network ---- */

static CornuSymbol *dense_layers(CornuSymbol *x, const int64_t *units, int most)
{
    for (int i = 0; i < most && units[i] > 0; i++)
        x = cornu_call(cornu_dense(units[i], .activation = CORNU_RELU), x);
    return x;
}

/* Fills in what is not given. */
static CornuDlrmConfig resolved(CornuDlrmConfig config)
{
    if (!config.dim) config.dim = 16;
    if (!config.bottom[0]) config.bottom[0] = 64;
    if (!config.top[0]) config.top[0] = 64, config.top[1] = 32;
    return config;
}

CornuModel *cornu_dlrm_from(const CornuDlrmConfig *given)
{
    const CornuDlrmConfig     config = resolved(*given);
    CornuEmbeddingTableConfig tables[CORNU_DLRM_FEATURES];
    CornuTpuEmbeddingConfig   features = { .optimizer = config.optimizer, .name = "embedding" };
    CornuSymbol              *in[CORNU_DLRM_FEATURES + 1], *x[CORNU_DLRM_FEATURES + 1];
    int                       count = 0;
    for (; count < CORNU_DLRM_FEATURES && config.vocabulary[count] > 0; count++) {
        const char *name = config.names[count];
        tables[count] = (CornuEmbeddingTableConfig){ .vocabulary_size = config.vocabulary[count],
                                                     .dim = config.dim, .name = name };
        features.feature_config[count] = (CornuEmbeddingFeatureConfig){ .table = &tables[count],
                                                                        .name = name };
        in[count] = cornu_input(.shape = { 1 }, .dtype = CORNU_I32, .name = name);
    }
    CornuLayer *embedding = cornu_tpu_embedding_from(&features);
    in[count] = cornu_input(.shape = { config.numbers }, .name = "numbers");
    x[0] = dense_layers(in[count], config.bottom, CORNU_DLRM_LAYERS);
    x[0] = cornu_call(cornu_dense(config.dim, .activation = CORNU_RELU), x[0]);
    CornuSymbol *first = cornu_call_from(embedding, in, count);
    for (int i = 0; i < count; i++) x[1 + i] = cornu_call_result(first, i);
    CornuLayer  *pairs = cornu_layer_create(&pairs_class, NULL, NULL);
    CornuSymbol *y = cornu_call_from(pairs, x, 1 + count);
    y = dense_layers(y, config.top, CORNU_DLRM_LAYERS);
    y = cornu_call(cornu_dense(1, .activation = CORNU_SIGMOID, .dtype = "float32"), y);
    CornuModelConfig model = { .outputs = { y }, .name = "dlrm" };
    for (int i = 0; i <= count; i++) model.inputs[i] = in[i];
    return cornu_model_from(&model);
}

CornuOptimizer *cornu_dlrm_optimizer(CornuModel *model, CornuOptimizer *others)
{
    return cornu_tpu_embedding_optimizer(model ? cornu_model_find_layer(model, "embedding") : NULL,
                                         others);
}
