/* Attention and AdditiveAttention, which differ in their scores. */
#include "../../fields/field_internal.h"
#include "../layer_internal.h"

/* The inputs, in Keras' order, and the ranks of tensors: (B, T, C), or with more axes before T. */
enum { QUERY, VALUE, KEY, MAX_INPUTS, MIN_RANK = 3 };

const CornuFieldKind cornu_field_score_mode = {
    .name = "score_mode", CORNU__FIELD_OF_WORDS(CornuScoreMode),
    .words = { [CORNU_SCORE_DOT] = "dot", [CORNU_SCORE_CONCAT] = "concat" },
};

const char *cornu_score_mode_name(CornuScoreMode mode)
{
    return cornu__field_word(CORNU_FIELD_SCORE_MODE, (int)mode);
}

/* ---- Shapes ---- */

static CornuStatus check_shapes(const CornuShape *in, int in_count, bool concat)
{
    static const char *const names[] = { "query", "value", "key" };
    const int most = CORNU_MAX_RANK - concat;   /* concat has an axis for C beside T and S */
    const int key = in_count > KEY ? KEY : VALUE, rank = in[QUERY].rank;
    CornuText a, b;
    if (in_count < KEY || in_count > MAX_INPUTS)
        return cornu__fail(CORNU_ERR_ARGUMENT, "got %d tensors, expected query and value, or "
                           "query, value and key", in_count);
    for (int i = 0; i < in_count; i++)
        if (in[i].rank < MIN_RANK || in[i].rank > most || in[i].rank != rank)
            return cornu__fail(CORNU_ERR_SHAPE, "the %s is %s, expected (B, T, C) with the rank of "
                               "the query, at most %d", names[i], cornu_shape_print(&a, in[i]),
                               most);
    if (in[key].extent[rank - 1] != in[QUERY].extent[rank - 1])
        return cornu__fail(CORNU_ERR_SHAPE, "the query is %s and the %s %s, expected the same last "
                           "extent", cornu_shape_print(&a, in[QUERY]), names[key],
                           cornu_shape_print(&b, in[key]));
    if (in[key].extent[rank - 2] != in[VALUE].extent[rank - 2])
        return cornu__fail(CORNU_ERR_SHAPE, "the value is %s and the key %s, expected the same "
                           "number of steps", cornu_shape_print(&a, in[VALUE]),
                           cornu_shape_print(&b, in[key]));
    return CORNU_OK;
}

/* The shape with an extent of 1 before axis `axis`. */
static CornuTensor *expanded(CornuTensor *x, int axis)
{
    if (!x) return NULL;
    const CornuShape from = cornu_tensor_shape(x);
    CornuShape       shape = { .rank = from.rank + 1 };
    for (int i = 0; i < shape.rank; i++)
        shape.extent[i] = i == axis ? 1 : from.extent[i - (i > axis)];
    return cornu_op_reshape(x, shape);
}

/* query (…, T, 1, C) + key (…, 1, S, C) */
static CornuTensor *sums(CornuTensor *query, CornuTensor *key)
{
    const int rank = cornu_tensor_shape(query).rank;
    return cornu_op_add(expanded(query, rank - 1), expanded(key, rank - 2));
}

static CornuTensor *over_last(CornuTensor *x)
{
    if (!x) return NULL;
    return cornu_op_reduce_sum(x, INT64_C(1) << (cornu_tensor_shape(x).rank - 1), false);
}

/* ---- From scores to the output ---- */

/* What both layers have besides scores. */
typedef struct {
    double dropout;
    bool   causal, returns_scores;
} Settings;

static CornuTensor *both(CornuTensor *a, CornuTensor *b)
{
    return !a ? b : !b ? a : cornu_op_select(a, b, a);
}

/* bool, broadcast to the scores (…, T, S): step t attends to step s. NULL: to all. */
static CornuTensor *mask_of(const CornuCall *call, const Settings *settings, CornuShape scores)
{
    const int64_t T = scores.extent[scores.rank - 2], S = scores.extent[scores.rank - 1];
    CornuTensor  *mask = call->masks[VALUE] ? expanded(call->masks[VALUE], 1) : NULL;
    if (!settings->causal) return mask;
    CornuTensor *t = cornu_op_iota(call->graph, cornu_type(CORNU_I32, T, 1), 0);
    CornuTensor *s = cornu_op_iota(call->graph, cornu_type(CORNU_I32, 1, S), 1);
    CornuTensor *earlier = cornu_op_compare(s, CORNU_LESS_EQUAL, t);
    return mask ? both(cornu_op_broadcast(mask, cornu_shape(scores.extent[0], T, S)), earlier)
                : earlier;
}

/* Keras subtracts from masked scores, so that those of a row with every step masked still
 * differ. */
static CornuTensor *probabilities(CornuLayer *layer, CornuTensor *scores, CornuTensor *mask)
{
    const double far = layer->compute == CORNU_F16 ? 65504.0 : 1e9;
    scores = cornu_op_convert(scores, CORNU_F32);
    if (mask) scores = cornu_op_select(mask, scores, cornu_op_shift(scores, -far));
    return cornu_op_softmax(scores);
}

static CornuTensor *attend(CornuLayer *layer, const CornuCall *call, const Settings *settings,
                           CornuTensor *scores, CornuTensor *const *in, CornuTensor **out)
{
    if (!scores) return NULL;
    const CornuShape shape = cornu_tensor_shape(scores);
    if (shape.rank > MIN_RANK && (call->masks[QUERY] || call->masks[VALUE]))
        return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "%s: its inputs have %d axes and masks, "
                                "which are only available for (B, T, C)", cornu_layer_name(layer),
                                shape.rank);
    CornuTensor *p = probabilities(layer, scores, mask_of(call, settings, shape));
    if (settings->dropout > 0.0 && call->training)
        p = cornu_op_dropout(p, settings->dropout, call->seed, call->iteration, call->position,
                             layer->generator);
    CornuTensor *y = cornu_op_matmul_to(cornu_op_convert(p, layer->compute), in[VALUE],
                                        layer->result);
    if (y && call->masks[QUERY])
        y = cornu_op_select(expanded(call->masks[QUERY], 2), y, cornu_op_constant_like(y, 0.0));
    if (settings->returns_scores) out[1] = cornu_op_convert(p, layer->result);
    out[0] = y;
    return settings->returns_scores && !out[1] ? NULL : y;
}

static CornuTensor *query_mask(CornuLayer *layer, const CornuCall *call, CornuTensor *const *in,
                               int in_count, CornuTensor *const *masks, CornuTensor **out_masks)
{
    (void)layer, (void)call, (void)in, (void)in_count, (void)out_masks;
    return masks[QUERY];
}

/* ---- Attention ---- */

typedef CORNU__LAYER(CornuAttentionConfig) Attention;

static CornuStatus attention_build(CornuLayer *layer, const CornuShape *in, int in_count)
{
    const CornuAttentionConfig *config = &((Attention *)layer)->config;
    const bool                  concat = config->score_mode == CORNU_SCORE_CONCAT;
    const CornuShape            scalar = { .rank = 0 };
    CORNU__TRY(check_shapes(in, in_count, concat));
    if (config->use_scale)
        CORNU__TRY(cornu_layer_weight(layer, "scale", scalar, CORNU_ONES, false));
    return concat ? cornu_layer_weight(layer, "concat_score_weight", scalar, CORNU_ONES, false)
                  : CORNU_OK;
}

static CornuTensor *scores_of(CornuLayer *layer, const CornuCall *call, CornuTensor *query,
                              CornuTensor *key)
{
    const CornuAttentionConfig *config = &((Attention *)layer)->config;
    CornuTensor *scale = config->use_scale ? cornu_layer_read(layer, call, 0) : NULL;
    if (config->score_mode == CORNU_SCORE_DOT) {
        CornuTensor *scores = cornu_op_matmul_transposed(query, false, key, true);
        return scale ? cornu_op_multiply(scores, scale) : scores;
    }
    CornuTensor *x = sums(query, key);
    if (scale) x = cornu_op_multiply(x, scale);
    return cornu_op_multiply(over_last(cornu_op_tanh(x)),
                             cornu_layer_read(layer, call, config->use_scale));
}

/* Without a mask of the steps, whose effect on fully masked rows is Keras' own, nor p as a
 * result. */
static bool is_usual(const CornuLayer *layer, const CornuCall *call, CornuTensor *query)
{
    const CornuAttentionConfig *config = &((const Attention *)layer)->config;
    return config->score_mode == CORNU_SCORE_DOT && !config->return_attention_scores &&
           !(config->dropout > 0.0 && call->training) && !call->masks[VALUE] &&
           cornu_tensor_shape(query).rank == MIN_RANK && layer->result == layer->compute;
}

/* With one head. */
static CornuTensor *attended(CornuLayer *layer, const CornuCall *call, CornuTensor *query,
                             CornuTensor *key, CornuTensor *value)
{
    const CornuAttentionConfig *config = &((Attention *)layer)->config;
    if (config->use_scale) query = cornu_op_multiply(query, cornu_layer_read(layer, call, 0));
    CornuTensor *y = cornu_op_attention(expanded(query, 2), expanded(key, 2), expanded(value, 2),
                                        &(CornuAttention){ .causal = config->use_causal_mask },
                                        NULL);
    if (!y) return NULL;
    const CornuShape shape = cornu_tensor_shape(y);
    return cornu_op_reshape(y, cornu_shape(shape.extent[0], shape.extent[1], shape.extent[3]));
}

/* Operands of one row beside others of B, such as weights, are broadcast, as by Keras' products. */
static void of_one_batch(CornuTensor *const *in, int in_count, CornuTensor **x)
{
    int64_t B = 1;
    for (int i = 0; i < in_count; i++)
        if (cornu_tensor_shape(in[i]).extent[0] > 1) B = cornu_tensor_shape(in[i]).extent[0];
    for (int i = 0; i < in_count; i++) {
        CornuShape shape = cornu_tensor_shape(in[i]);
        const bool one = shape.extent[0] == 1 && B > 1;
        shape.extent[0] = B;
        x[i] = one ? cornu_op_broadcast(in[i], shape) : in[i];
    }
}

static CornuTensor *call_many(CornuLayer *layer, const CornuCall *call, CornuTensor *const *x,
                              int in_count, CornuTensor **out)
{
    const CornuAttentionConfig *config = &((Attention *)layer)->config;
    CornuTensor                *in[MAX_INPUTS] = { NULL };
    of_one_batch(x, in_count, in);
    if (is_usual(layer, call, in[QUERY])) {
        CornuTensor *y = attended(layer, call, in[QUERY], in[in_count > KEY ? KEY : VALUE],
                                  in[VALUE]);
        if (y && call->masks[QUERY])
            y = cornu_op_select(expanded(call->masks[QUERY], 2), y, cornu_op_constant_like(y, 0.0));
        return out[0] = y;
    }
    const Settings settings = { config->dropout, config->use_causal_mask,
                                config->return_attention_scores };
    return attend(layer, call, &settings,
                  scores_of(layer, call, in[QUERY], in[in_count > KEY ? KEY : VALUE]), in, out);
}

static int outputs(const CornuLayer *layer)
{
    return ((const Attention *)layer)->config.return_attention_scores ? 2 : 1;
}

static CornuStatus attention_resolve(CornuLayer *layer)
{
    CornuAttentionConfig *config = &((Attention *)layer)->config;
    CORNU__TRY(cornu__resolve_rate(layer, "dropout", &config->dropout));
    if (cornu_score_mode_name(config->score_mode)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .score_mode is %d, expected CORNU_SCORE_DOT or "
                       "CORNU_SCORE_CONCAT", cornu_layer_name(layer), (int)config->score_mode);
}

#define FIELD(field) offsetof(CornuAttentionConfig, field)
static const CornuField fields[] = {
    { "use_scale", CORNU_FIELD_FLAG, FIELD(use_scale) },
    { "score_mode", CORNU_FIELD_SCORE_MODE, FIELD(score_mode) },
    { "dropout", CORNU_FIELD_NUMBER, FIELD(dropout) },
    { "use_causal_mask", CORNU_FIELD_FLAG, FIELD(use_causal_mask) },
    { "return_attention_scores", CORNU_FIELD_FLAG, FIELD(return_attention_scores) },
    { 0 },
};
#undef FIELD

#define COMMON .mask_many = query_mask

const CornuLayerClass cornu__attention_class = {
    .class_name = "Attention", .size = sizeof(Attention), .build_many = attention_build,
    .call_many = call_many, .outputs = outputs, COMMON,
    .keras = &(const CornuKerasClass){
        CORNU__TRAINED(fields, Attention, attention_resolve),
        .call_arguments = "use_causal_mask return_attention_scores",
    },
};

CORNU__CONSTRUCTOR(attention, CornuAttentionConfig)

/* ---- AdditiveAttention ---- */

typedef CORNU__LAYER(CornuAdditiveAttentionConfig) AdditiveAttention;

static CornuStatus additive_build(CornuLayer *layer, const CornuShape *in, int in_count)
{
    CORNU__TRY(check_shapes(in, in_count, true));
    if (((AdditiveAttention *)layer)->config.no_scale) return CORNU_OK;
    return cornu_layer_weight(layer, "scale", cornu_shape(in[QUERY].extent[in[QUERY].rank - 1]),
                              CORNU_GLOROT_UNIFORM, false);
}

static CornuTensor *additive_call(CornuLayer *layer, const CornuCall *call,
                                  CornuTensor *const *in, int in_count, CornuTensor **out)
{
    const CornuAdditiveAttentionConfig *config = &((AdditiveAttention *)layer)->config;
    const Settings settings = { config->dropout, config->use_causal_mask,
                                config->return_attention_scores };
    CornuTensor *x = cornu_op_tanh(sums(in[QUERY], in[in_count > KEY ? KEY : VALUE]));
    if (!config->no_scale) x = cornu_op_multiply(x, cornu_layer_read(layer, call, 0));
    return attend(layer, call, &settings, over_last(x), in, out);
}

static int additive_outputs(const CornuLayer *layer)
{
    return ((const AdditiveAttention *)layer)->config.return_attention_scores ? 2 : 1;
}

static CornuStatus additive_resolve(CornuLayer *layer)
{
    return cornu__resolve_rate(layer, "dropout",
                               &((AdditiveAttention *)layer)->config.dropout);
}

#define FIELD(field) offsetof(CornuAdditiveAttentionConfig, field)
static const CornuField additive_fields[] = {
    { "use_scale", CORNU_FIELD_NOT, FIELD(no_scale) },
    { "dropout", CORNU_FIELD_NUMBER, FIELD(dropout) },
    { "use_causal_mask", CORNU_FIELD_FLAG, FIELD(use_causal_mask) },
    { "return_attention_scores", CORNU_FIELD_FLAG, FIELD(return_attention_scores) },
    { 0 },
};

const CornuLayerClass cornu__additive_attention_class = {
    .class_name = "AdditiveAttention", .size = sizeof(AdditiveAttention),
    .build_many = additive_build, .call_many = additive_call, .outputs = additive_outputs, COMMON,
    .keras = &(const CornuKerasClass){
        CORNU__TRAINED(additive_fields, AdditiveAttention, additive_resolve),
        .call_arguments = "use_causal_mask return_attention_scores",
    },
};

CORNU__CONSTRUCTOR(additive_attention, CornuAdditiveAttentionConfig)
