/* Attention with several heads: weights, masks, the products. Source:
 * keras/src/layers/attention/multi_head_attention.py, grouped_query_attention.py. */
#include "../../../tensor/functions/functions_internal.h"
#include "../steps/past_internal.h"
#include "heads_internal.h"

#include <math.h>
#include <stdio.h>

enum { QUERY = CORNU_HEADS_QUERY, VALUE = CORNU_HEADS_VALUE, KEY = CORNU_HEADS_KEY,
       MASK = CORNU_HEADS_MASK };

/* The linear maps, in the order of their weights; only layers with use_gate have a gate. */
typedef enum { MAP_QUERY, MAP_KEY, MAP_GATE, MAP_VALUE, MAP_OUTPUT } Map;

int cornu__heads_outputs(const CornuLayer *layer)
{
    return ((const CornuHeads *)layer)->config.return_attention_scores ? 2 : 1;
}

/* ---- Arguments ---- */

CornuStatus cornu__heads_resolve(CornuHeads *self, int64_t key_value_heads)
{
    CornuMultiHeadAttentionConfig *config = &self->config;
    if (config->sliding_window < 0 || config->sliding_window > INT32_MAX)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .sliding_window is %lld, expected 1 to %d",
                           cornu_layer_name(&self->base), (long long)config->sliding_window,
                           INT32_MAX);
    CORNU__TRY(cornu__resolve_rate(&self->base, "dropout", &config->dropout));
    if (!config->value_dim) config->value_dim = config->key_dim;
    self->key_value_heads = key_value_heads;
    return CORNU_OK;
}

/* ---- Weights ---- */

/* A linear map of the last axis, or axes, of a shape: the last `results` axes of the kernel are
 * those of the result. */
static CornuStatus declare(CornuLayer *layer, const char *map, CornuShape kernel, int results)
{
    const CornuMultiHeadAttentionConfig *config = &((CornuHeads *)layer)->config;
    const int64_t all = (INT64_C(1) << kernel.rank) - 1;
    const int64_t summed = (INT64_C(1) << (kernel.rank - results)) - 1;
    CornuShape bias = { .rank = results };
    char       name[40];
    snprintf(name, sizeof name, "%s/kernel", map);
    CORNU__TRY(cornu_layer_weight(layer, name, kernel,
                                  cornu__initializer_along(config->kernel_initializer, summed,
                                                           all & ~summed), false));
    CORNU__TRY(cornu_layer_weight_rules(layer, config->kernel_regularizer,
                                        config->kernel_constraint));
    if (config->no_bias) return CORNU_OK;
    for (int i = 0; i < results; i++) bias.extent[i] = kernel.extent[kernel.rank - results + i];
    snprintf(name, sizeof name, "%s/bias", map);
    CORNU__TRY(cornu_layer_weight(layer, name, bias, config->bias_initializer, false));
    return cornu_layer_weight_rules(layer, config->bias_regularizer, config->bias_constraint);
}

/* The index of a map's kernel; its bias is the next weight. */
static int kernel_number(const CornuMultiHeadAttentionConfig *config, Map map)
{
    const int number = map > MAP_GATE && !config->use_gate ? (int)map - 1 : (int)map;
    return config->no_bias ? number : 2 * number;
}

/* Keras compares steps by axis 1 of the inputs. */
static CornuStatus check_distance(const CornuHeads *self, const CornuAttentionLayout *layout,
                                  const CornuShape *in, int value)
{
    const CornuMultiHeadAttentionConfig *config = &self->config;
    CornuText text;
    if (layout->rank == 3 || (!config->use_causal_mask && !config->sliding_window))
        return CORNU_OK;
    const int axis = layout->order[layout->rank - 2];
    if (layout->attended == 1 && in[QUERY].extent[axis] == in[QUERY].extent[1] &&
        in[value].extent[axis] == in[value].extent[1])
        return CORNU_OK;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "the query is %s, and %s is only available along one "
                       "axis of as many steps as axis 1 has", cornu_shape_print(&text, in[QUERY]),
                       config->use_causal_mask ? ".use_causal_mask" : ".sliding_window");
}

static CornuStatus check_shapes(const CornuHeads *self, const CornuAttentionLayout *layout,
                                const CornuShape *given, int in_count)
{
    const int  value = in_count > VALUE ? VALUE : QUERY;
    const int  rank = given[QUERY].rank;
    int        extents = 1;
    CornuText  a, b;
    CornuShape sequences[MASK] = { { 0 } };
    for (int i = 0; i < in_count && i < MASK; i++)
        sequences[i] = cornu__attention_sequence_shape(layout, given[i]);
    if (in_count > KEY && sequences[KEY].extent[1] != sequences[VALUE].extent[1])
        return cornu__fail(CORNU_ERR_SHAPE, "the key is %s and the value %s, expected the same "
                           "number of steps", cornu_shape_print(&a, given[KEY]),
                           cornu_shape_print(&b, given[VALUE]));
    while (extents < CORNU_MAX_RANK && self->config.output_shape[extents]) extents++;
    if (rank > 3 && rank - 1 + extents > CORNU_MAX_RANK)
        return cornu__fail(CORNU_ERR_SHAPE, "the query is %s with %d extents of .output_shape, "
                           "expected a result of at most %d axes",
                           cornu_shape_print(&a, given[QUERY]), extents, CORNU_MAX_RANK);
    CORNU__TRY(check_distance(self, layout, given, value));
    if (in_count <= MASK) return CORNU_OK;
    return cornu__attention_check_mask(layout, given[QUERY], given[value], self->config.num_heads,
                                       given[MASK]);
}

CornuStatus cornu__heads_build(CornuLayer *layer, const CornuShape *given, int in_count)
{
    const CornuHeads                    *self = (CornuHeads *)layer;
    const CornuMultiHeadAttentionConfig *config = &self->config;
    if (in_count > CORNU_HEADS_INPUTS)
        return cornu__fail(CORNU_ERR_ARGUMENT, "got %d tensors, expected at most query, value, key "
                           "and mask", in_count);
    CORNU__TRY(cornu__attention_check_axes(config->attention_axes, given, in_count));
    const int                  last = given[QUERY].rank - 1;
    const CornuAttentionLayout layout = cornu__attention_layout(config->attention_axes, last + 1);
    CORNU__TRY(check_shapes(self, &layout, given, in_count));
    const int64_t query = given[QUERY].extent[last];
    const int64_t value = in_count > VALUE ? given[VALUE].extent[last] : query;
    const int64_t key = in_count > KEY ? given[KEY].extent[last] : value;
    const int64_t heads = config->num_heads, shared = self->key_value_heads;
    CORNU__TRY(declare(layer, "query", cornu_shape(query, heads, config->key_dim), 2));
    CORNU__TRY(declare(layer, "key", cornu_shape(key, shared, config->key_dim), 2));
    if (config->use_gate)
        CORNU__TRY(declare(layer, "gate", cornu_shape(query, heads, config->value_dim), 2));
    CORNU__TRY(declare(layer, "value", cornu_shape(value, shared, config->value_dim), 2));
    CornuShape output = cornu_shape(heads, config->value_dim, query);
    for (int i = 0; i < CORNU_MAX_RANK - 2 && config->output_shape[i]; i++) {
        output.rank = 3 + i;
        output.extent[2 + i] = config->output_shape[i];
    }
    return declare(layer, "attention_output", output, output.rank - 2);
}

/* ---- Linear maps ---- */

static CornuTensor *weight(CornuLayer *layer, const CornuCall *call, int i, double factor,
                           CornuDtype dtype)
{
    CornuTensor *value = cornu_layer_read_as(layer, call, i, CORNU_F32);
    return cornu_op_convert(factor == 1.0 ? value : cornu_op_scale(value, factor), dtype);
}

/* Applies map `map`, scaled by a factor, to x (B, T, …) as one matrix product: the kernel's first
 * axes are the last axes of x, its others those of the result (B, T, …), in `dtype`. The factor is
 * applied to the weights, where it is cheapest. */
static CornuTensor *mapped(CornuLayer *layer, const CornuCall *call, Map map, CornuTensor *x,
                           double factor, CornuDtype dtype)
{
    const CornuMultiHeadAttentionConfig *config = &((CornuHeads *)layer)->config;
    const int        number = kernel_number(config, map);
    const CornuShape kernel = layer->weights[number]->type.shape;
    if (!x) return NULL;
    CornuShape shape = cornu_tensor_shape(x);
    const int  bound = shape.rank - 2;
    int64_t    features = 1;
    for (int i = 0; i < bound; i++) features *= kernel.extent[i];
    CornuTensor *flat = bound == 1 ? x
                                   : cornu_op_reshape(x, cornu_shape(shape.extent[0],
                                                                     shape.extent[1], features));
    shape.rank = 2;
    for (int i = bound; i < kernel.rank; i++) shape.extent[shape.rank++] = kernel.extent[i];
    for (int i = shape.rank; i < CORNU_MAX_RANK; i++) shape.extent[i] = 0;
    CornuTensor *matrix = cornu_op_reshape(weight(layer, call, number, factor, layer->compute),
                                           cornu_shape(features, CORNU_NONE));
    CornuTensor *bias = NULL;
    if (!config->no_bias)
        bias = cornu_op_reshape(weight(layer, call, number + 1, factor, dtype),
                                cornu_shape(CORNU_NONE));
    return cornu_op_reshape(cornu__dense(flat, matrix, bias, dtype), shape);
}

/* ---- Masks: bool, broadcast to (B, N, T, S); NULL masks nothing ---- */

static CornuTensor *both(CornuTensor *a, CornuTensor *b)
{
    return a && b ? cornu_op_select(a, b, a) : a ? a : b;
}

/* The mask (B, T) of a sequence, whose steps are along axis 2 or 3 of the scores. */
static CornuTensor *of_sequence(CornuTensor *mask, int axis)
{
    if (!mask) return NULL;
    const CornuShape steps = cornu_tensor_shape(mask);
    CornuShape       shape = cornu_shape(steps.extent[0], 1, 1, 1);
    shape.extent[axis] = steps.extent[1];
    return cornu_op_reshape(mask, shape);
}

/* Step t of T attends to step s of S if s <= t; with a window, only if |t - s| < window. */
static CornuTensor *of_distance(const CornuHeads *self, CornuGraph *graph, int64_t T, int64_t S)
{
    const CornuMultiHeadAttentionConfig *config = &self->config;
    CornuTensor *mask = NULL;
    if (!config->use_causal_mask && !config->sliding_window) return NULL;
    CornuTensor *t = cornu_op_iota(graph, cornu_type(CORNU_I32, T, 1), 0);
    CornuTensor *s = cornu_op_iota(graph, cornu_type(CORNU_I32, 1, S), 1);
    if (config->use_causal_mask) mask = cornu_op_compare(s, CORNU_LESS_EQUAL, t);
    if (config->sliding_window) {
        CornuTensor *apart = cornu_op_absolute(cornu_op_subtract(t, s));
        CornuTensor *window = apart ? cornu_op_constant_like(apart, (double)config->sliding_window)
                                    : NULL;
        mask = both(mask, cornu_op_compare(apart, CORNU_LESS, window));
    }
    return mask;
}

/* Of inputs `given`, apart from the steps' distance. */
static CornuTensor *mask_of(const CornuHeads *self, const CornuCall *call,
                            const CornuAttentionLayout *layout, CornuTensor *const *given,
                            int in_count)
{
    const int    value = in_count > VALUE ? VALUE : QUERY;
    CornuTensor *mask = of_sequence(call->masks[QUERY], 2);
    mask = both(mask, of_sequence(call->masks[value], 3));
    if (in_count > KEY) mask = both(mask, of_sequence(call->masks[KEY], 3));
    if (in_count <= MASK) return mask;
    return both(mask, cornu__attention_mask(layout, cornu_tensor_shape(given[QUERY]),
                                            cornu_tensor_shape(given[value]),
                                            self->config.num_heads,
                                            cornu_op_convert(given[MASK], CORNU_BOOL)));
}

/* ---- The call ---- */

/* softmax of q k' over the last axis, (B, N, T, S): q (B, N, T, H), k (B, G, H, S) for G heads,
 * each of which serves N / G heads of q. Keras' fused product attends to all steps where every one
 * is masked; where it is not used, for dropout, scores or more axes, such a step gets 0. */
static CornuTensor *scores_of(CornuTensor *q, CornuTensor *k, CornuTensor *mask, bool fused)
{
    if (!q || !k) return NULL;
    const CornuShape wide = cornu_tensor_shape(q), narrow = cornu_tensor_shape(k);
    const int64_t    B = wide.extent[0], N = wide.extent[1], T = wide.extent[2];
    const int64_t    G = narrow.extent[1];
    const CornuShape folded = cornu_shape(B, G, N / G * T, wide.extent[3]);
    CornuTensor *scores = cornu_op_matmul_to(cornu_op_reshape(q, folded), k, CORNU_F32);
    scores = cornu_op_reshape(scores, cornu_shape(B, N, T, narrow.extent[3]));
    if (!scores || !mask) return cornu_op_softmax(scores);
    scores = cornu_op_softmax(cornu_op_select(mask, scores,
                                              cornu_op_constant_like(scores, -1e9)));
    if (!scores || fused) return scores;
    return cornu_op_select(mask, scores, cornu_op_constant_like(scores, 0.0));
}

/* p v, (B, N, T, V): p (B, N, T, S), v (B, G, S, V) */
static CornuTensor *weighed(CornuTensor *p, CornuTensor *v)
{
    if (!p || !v) return NULL;
    const CornuShape of_p = cornu_tensor_shape(p), of_v = cornu_tensor_shape(v);
    const int64_t    B = of_p.extent[0], N = of_p.extent[1], T = of_p.extent[2], G = of_v.extent[1];
    CornuTensor *y = cornu_op_matmul(
        cornu_op_reshape(p, cornu_shape(B, G, N / G * T, of_p.extent[3])), v);
    return cornu_op_reshape(y, cornu_shape(B, N, T, of_v.extent[3]));
}

/* For `rows` of the batch; the others of p are drawn with theirs. */
static CornuTensor *dropped(CornuLayer *layer, const CornuCall *call, CornuTensor *p, int64_t rows)
{
    if (!p) return NULL;
    const CornuShape s = cornu_tensor_shape(p);
    p = cornu_op_reshape(p, cornu_shape(rows, s.extent[0] / rows * s.extent[1], s.extent[2],
                                        s.extent[3]));
    p = cornu_op_dropout(p, ((CornuHeads *)layer)->config.dropout, call->seed, call->iteration,
                         call->position, layer->generator);
    return cornu_op_reshape(p, s);
}

/* in[i] as (B', T, C); NULL where it is NULL, or has a mask but several axes. */
static bool sequences(const CornuAttentionLayout *layout, const CornuCall *call,
                      CornuTensor *const *in, int in_count, CornuTensor **to)
{
    for (int i = 0; i < in_count; i++) {
        if (layout->rank > 3 && call->masks[i]) {
            cornu__fail_null(CORNU_ERR_UNSUPPORTED, "input %d has a mask, which is only "
                             "available for (B, T, C)", i);
            return false;
        }
        if (!(to[i] = i < MASK ? cornu__attention_sequence(layout, in[i]) : in[i])) return false;
    }
    return true;
}

/* y (B, T, N, V) of q (B, T, N, H), k (B, S, G, H), v (B, S, G, V), with p in memory: *p, before
 * dropout, which applies to `rows` of the batch. */
static CornuTensor *attended(CornuLayer *layer, const CornuCall *call, CornuTensor *q,
                             CornuTensor *k, CornuTensor *v, CornuTensor *mask, bool fused,
                             int64_t rows, CornuTensor **p)
{
    static const int heads_first[] = { 0, 2, 1, 3 }, steps_last[] = { 0, 2, 3, 1 };
    const CornuHeads *self = (CornuHeads *)layer;
    if (!q || !k) return NULL;
    mask = both(of_distance(self, call->graph, cornu_tensor_shape(q).extent[1],
                            cornu_tensor_shape(k).extent[1]), mask);
    CornuTensor *weights = *p = scores_of(cornu_op_transpose(q, heads_first),
                                          cornu_op_transpose(k, steps_last), mask, fused);
    if (call->training && self->config.dropout > 0.0)
        weights = dropped(layer, call, weights, rows);
    return cornu_op_transpose(weighed(cornu_op_convert(weights, layer->compute),
                                      cornu_op_transpose(v, heads_first)), heads_first);
}

/* The linear map of the results y (B, T, N, V), after the gate of the query. */
static CornuTensor *output_of(CornuLayer *layer, const CornuCall *call, CornuTensor *query,
                              CornuTensor *y)
{
    if (((CornuHeads *)layer)->config.use_gate) {
        CornuTensor *gate = mapped(layer, call, MAP_GATE, query, 1.0, layer->compute);
        y = cornu_op_multiply(y, cornu_op_sigmoid(gate));
    }
    return mapped(layer, call, MAP_OUTPUT, y, 1.0, layer->result);
}

/* Query, key and value of `in`, each (B, T, heads, n). */
static void map_inputs(CornuLayer *layer, const CornuCall *call, CornuTensor *const *in,
                       int in_count, CornuTensor *to[3])
{
    const CornuMultiHeadAttentionConfig *config = &((CornuHeads *)layer)->config;
    CornuTensor *value = in_count > VALUE ? in[VALUE] : in[QUERY];
    CornuTensor *key = in_count > KEY ? in[KEY] : value;
    const double root = sqrt((double)config->key_dim);
    to[0] = mapped(layer, call, MAP_QUERY, in[QUERY], 1.0 / root, layer->compute);
    to[1] = mapped(layer, call, MAP_KEY, key, 1.0, layer->compute);
    to[2] = mapped(layer, call, MAP_VALUE, value, 1.0, layer->compute);
}

/* Keys and values of earlier steps are kept. */
CornuTensor *cornu__heads_continue(CornuLayer *layer, const CornuCall *call,
                                   CornuTensor *const *in, int in_count, CornuTensor **out)
{
    const CornuMultiHeadAttentionConfig *config = &((CornuHeads *)layer)->config;
    bool         masked = in_count > MASK;
    CornuTensor *qkv[3];
    for (int i = 0; i < in_count; i++) masked |= call->masks[i] != NULL;
    const char *why = !config->use_causal_mask            ? "is not causal (use_causal_mask)"
                      : masked                            ? "gets a mask"
                      : config->return_attention_scores   ? "returns scores"
                      : cornu_tensor_shape(in[QUERY]).rank != 3
                          ? "attends along other axes than that of the steps" : NULL;
    if (why && cornu__past_refuse(layer, why)) return cornu__null();
    map_inputs(layer, call, in, in_count, qkv);
    CornuTensor   *k = cornu__past_join(call, qkv[1]), *v = cornu__past_join(call, qkv[2]);
    CornuAttention how = { .causal = true, .window = config->sliding_window };
    if (!call->past->begins)
        how = (CornuAttention){ .mask = cornu__past_mask(call, config->sliding_window) };
    return out[0] = output_of(layer, call, in[QUERY], cornu_op_attention(qkv[0], k, v, &how, NULL));
}

CornuTensor *cornu__heads_call(CornuLayer *layer, const CornuCall *call, CornuTensor *const *given,
                               int in_count, CornuTensor **out)
{
    const CornuHeads                    *self = (CornuHeads *)layer;
    const CornuMultiHeadAttentionConfig *config = &self->config;
    const CornuShape           shape = cornu_tensor_shape(given[QUERY]);
    const CornuAttentionLayout layout = cornu__attention_layout(config->attention_axes,
                                                                shape.rank);
    CornuTensor *in[CORNU_HEADS_INPUTS] = { NULL };
    if (!sequences(&layout, call, given, in_count, in)) return NULL;
    const int    of_value = in_count > VALUE ? VALUE : QUERY;
    const bool   scores = config->return_attention_scores;
    const bool   fused = shape.rank == 3 && config->dropout == 0.0 && !scores;
    CornuTensor *qkv[3], *y, *p = NULL;
    map_inputs(layer, call, in, in_count, qkv);
    CornuTensor *mask = mask_of(self, call, &layout, given, in_count);
    const bool   drops = call->training && config->dropout > 0.0;
    const bool   never_empty = !mask && !config->sliding_window;   /* each step attends to one */
    if (!scores && !drops && (fused || never_empty))
        y = cornu_op_attention(qkv[0], qkv[1], qkv[2],
                               &(CornuAttention){ mask, config->use_causal_mask,
                                                  config->sliding_window }, NULL);
    else y = attended(layer, call, qkv[0], qkv[1], qkv[2], mask, fused, shape.extent[0], &p);
    if (scores)
        out[1] = cornu__attention_scores(&layout, shape, cornu_tensor_shape(given[of_value]),
                                         cornu_op_convert(p, layer->result));
    out[0] = cornu__attention_restored(&layout, shape, output_of(layer, call, in[QUERY], y));
    return scores && !out[1] ? NULL : out[0];
}
