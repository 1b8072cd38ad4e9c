/* Attention: T steps attend to S steps; in MultiHeadAttention with N heads of key size H and value
 * size V. */
#include "rules_internal.h"

#include <math.h>

#include "../../../device/memory_internal.h"

/* The inputs, and the order of the linear maps; the gate is optional. */
enum { QUERY, VALUE, KEY, MASK };
enum { MAP_QUERY, MAP_KEY, MAP_GATE };

/* Applies a linear map to x (B, T, n): (B, T, m), with its bias. In a kernel n and m are one axis
 * or several each. */
static int mapped(const CornuOnnxCall *call, int map, int64_t features, int x)
{
    CornuOnnx        *to = call->to;
    const bool        has_bias = given(call->layer, "use_bias");
    const int         kernel = has_bias ? 2 * map : map;
    const CornuShape  own = call->layer->weights[kernel]->type.shape;
    const int64_t     outputs = cornu_shape_count(own) / features;
    const int y = joined(to, "MatMul", x,
                         cornu__onnx_weight_as(to, call->layer, kernel, NULL,
                                               cornu_shape(features, outputs)));
    if (!has_bias) return y;
    return two(to, "Add", y, cornu__onnx_weight_as(to, call->layer, kernel + 1, NULL,
                                                   cornu_shape(outputs)));
}

/* Heads of the query, N, and of key and value, G; sizes of keys, H, and values, V. */
typedef struct {
    int64_t query, shared, key_size, value_size;
} Heads;

static Heads heads_of(const CornuLayer *layer)
{
    if (!cornu__layer_argument(layer, "num_key_value_heads"))
        return (Heads){ whole(layer, "num_heads"), whole(layer, "num_heads"),
                        whole(layer, "key_dim"), whole(layer, "value_dim") };
    const int64_t size = whole(layer, "head_dim");
    return (Heads){ whole(layer, "num_query_heads"), whole(layer, "num_key_value_heads"), size,
                    size };
}

/* (B, T, heads size) split into heads, with the axes (B, T, heads, size) in this order. */
static int split(const CornuOnnxCall *call, int x, int64_t steps, int64_t heads, int64_t size,
                 const int64_t order[4])
{
    const CornuShape apart = cornu_shape(0, steps, heads, size);
    return cornu__onnx_transpose(call->to, cornu__onnx_reshape(call->to, x, apart), order, 4);
}

/* ---- Masks: bool, broadcast to (B, N, T, S) ---- */

static int both(CornuOnnx *to, int a, int b)
{
    return a && b ? two(to, "And", a, b) : a ? a : b;
}

/* The mask (B, steps) of a sequence, for axis 2 or 3 of the scores. */
static int of_sequence(CornuOnnx *to, int mask, int64_t steps, int axis)
{
    CornuShape shape = cornu_shape(0, 1, 1, 1);
    shape.extent[axis] = steps;
    return mask ? cornu__onnx_reshape(to, mask, shape) : CORNU_ONNX_NONE;
}

/* The numbers 0, 1, … below an extent, along the first axis of two or the second. */
static int steps_of(CornuOnnx *to, int64_t extent, bool along_second)
{
    static const int64_t begin = 0, step = 1;
    const CornuType whole = cornu_scalar(CORNU_I64);
    int       in[3];
    in[1] = joined(to, "Squeeze", cornu__onnx_vector(to, &extent, 1),
                   cornu__onnx_integers(to, &begin, 1));
    in[0] = cornu__onnx_constant(to, cornu_array_from((void *)&begin, whole));
    in[2] = cornu__onnx_constant(to, cornu_array_from((void *)&step, whole));
    const int numbers = cornu__onnx_node(to, "Range", in, 3, NULL, 0, 1);
    return joined(to, "Unsqueeze", numbers,
                  cornu__onnx_integers(to, along_second ? &begin : &step, 1));
}

/* As of_distance, for extents that are known when the model runs. */
static int of_open_distance(CornuOnnx *to, int64_t T, int64_t S, bool causal, int64_t window)
{
    const int t = steps_of(to, T, false), s = steps_of(to, S, true);
    int       mask = causal ? two(to, "LessOrEqual", s, t) : CORNU_ONNX_NONE;
    if (!window) return mask;
    const CornuArray most = cornu_array_from(&window, cornu_scalar(CORNU_I64));
    const int        limit = cornu__onnx_constant(to, most);
    const int        near = two(to, "Less", one(to, "Abs", two(to, "Sub", t, s)), limit);
    return both(to, mask, near);
}

/* Step t of T attends to step s of S if s <= t; and, with a window, if |t - s| < window. (T, S) */
static CornuStatus of_distance(const CornuOnnxCall *call, int64_t T, int64_t S, int *mask)
{
    const bool    causal = flag(call->layer, "use_causal_mask");
    const bool    has_window = cornu__layer_argument(call->layer, "sliding_window");
    const int64_t window = has_window ? whole(call->layer, "sliding_window") : 0;
    *mask = CORNU_ONNX_NONE;
    if (!causal && !window) return CORNU_OK;
    if (cornu__onnx_is_open(T) || cornu__onnx_is_open(S)) {
        *mask = of_open_distance(call->to, T, S, causal, window);
        return CORNU_OK;
    }
    unsigned char *looks = cornu__allocate((size_t)(T * S), 1);
    if (!looks) return CORNU_ERR_MEMORY;
    for (int64_t t = 0; t < T; t++)
        for (int64_t s = 0; s < S; s++)
            looks[t * S + s] = (!causal || s <= t) &&
                               (!window || (s < t ? t - s : s - t) < window);
    *mask = cornu__onnx_constant(call->to, cornu_array(looks, CORNU_BOOL, T, S));
    cornu__release(looks);
    return CORNU_OK;
}

/* The attention_mask argument, whose axis of heads is optional. */
static int given_mask(const CornuOnnxCall *call)
{
    const CornuShape shape = call->shapes[MASK];
    const int        mask = cast(call->to, call->in[MASK], CORNU_ONNX_BOOL);
    if (shape.rank == 4) return mask;
    return cornu__onnx_reshape(call->to, mask,
                               cornu_shape(0, 1, shape.extent[1], shape.extent[2]));
}

static CornuStatus mask_of(const CornuOnnxCall *call, int value, int *mask)
{
    CornuOnnx    *to = call->to;
    const int64_t T = call->shapes[QUERY].extent[1], S = call->shapes[value].extent[1];
    CORNU__TRY(of_distance(call, T, S, mask));
    *mask = both(to, *mask, of_sequence(to, call->masks[QUERY], T, 2));
    *mask = both(to, *mask, of_sequence(to, call->masks[value], S, 3));
    if (call->in_count > KEY) *mask = both(to, *mask, of_sequence(to, call->masks[KEY], S, 3));
    if (call->in_count > MASK) *mask = both(to, *mask, given_mask(call));
    return CORNU_OK;
}

/* ---- The layer ---- */

/* x (B, N, T, n) by y (B, G, n, m), each head of which serves N / G of x: (B, N, T, m) */
static int by_heads(CornuOnnx *to, int x, CornuShape shape, int y, int64_t G, int64_t m)
{
    const int64_t N = shape.extent[1], T = shape.extent[2];
    if (N == G) return joined(to, "MatMul", x, y);
    x = cornu__onnx_reshape(to, x, cornu_shape(0, G, cornu__onnx_times(to, N / G, T),
                                               shape.extent[3]));
    return cornu__onnx_reshape(to, joined(to, "MatMul", x, y), cornu_shape(0, N, T, m));
}

/* Of sequences (B, T, C). */
static CornuStatus attend(const CornuOnnxCall *call)
{
    static const int64_t heads_first[] = { 0, 2, 1, 3 }, steps_last[] = { 0, 2, 3, 1 };
    CornuOnnx        *to = call->to;
    const CornuLayer *layer = call->layer;
    const Heads       heads = heads_of(layer);
    const int         value = call->in_count > VALUE ? VALUE : QUERY;
    const int         key = call->in_count > KEY ? KEY : value, gate = flag(layer, "use_gate");
    const CornuShape  query = call->shapes[QUERY];
    const int64_t     T = query.extent[1], S = call->shapes[value].extent[1];
    const int64_t     wide = heads.query * heads.value_size;
    const bool        scores_too = cornu_layer_outputs(layer) > 1;
    int               mask;
    const int q = mapped(call, MAP_QUERY, query.extent[2], call->in[QUERY]);
    const int k = mapped(call, MAP_KEY, call->shapes[key].extent[2], call->in[key]);
    const int v = mapped(call, MAP_GATE + gate, call->shapes[value].extent[2], call->in[value]);
    const int keys = split(call, k, S, heads.shared, heads.key_size, steps_last);
    const int queries = split(call, scaled(to, q, 1.0 / sqrt((double)heads.key_size)), T,
                              heads.query, heads.key_size, heads_first);
    int       scores = by_heads(to, queries, cornu_shape(0, heads.query, T, heads.key_size), keys,
                                heads.shared, S);
    CORNU__TRY(mask_of(call, value, &mask));
    if (mask) scores = selected(to, mask, scores, cornu__onnx_scalar(to, -1e9));
    scores = cornu__onnx_softmax(to, scores, -1);
    if (mask && (scores_too || number(layer, "dropout") > 0.0))   /* see layers/attention/heads.c */
        scores = selected(to, mask, scores, cornu__onnx_scalar(to, 0.0));
    int y = by_heads(to, scores, cornu_shape(0, heads.query, T, S),
                     split(call, v, S, heads.shared, heads.value_size, heads_first), heads.shared,
                     heads.value_size);
    y = cornu__onnx_transpose(to, y, heads_first, 4);
    y = cornu__onnx_reshape(to, y, cornu_shape(0, T, wide));
    if (gate)
        y = two(to, "Mul", y,
                one(to, "Sigmoid", mapped(call, MAP_GATE, query.extent[2], call->in[QUERY])));
    y = mapped(call, MAP_GATE + 1 + gate, wide, y);
    call->out[0] = call->results[0].rank == 3 ? y : cornu__onnx_reshape(to, y, call->results[0]);
    if (scores_too) call->out[1] = scores;
    return CORNU_OK;
}

/* The order of axes that turns an image into sequences: the axes without attention join the batch,
 * then the attention axes, which are the steps, then the channels. Sets T. */
static CornuShape as_sequences(const CornuOnnxCall *call, CornuShape shape, int64_t *order)
{
    const int64_t *axes = cornu__layer_argument(call->layer, "attention_axes");
    int64_t        set = 0, steps = 1;
    int            count = 0;
    for (int i = 0; i < CORNU_MAX_RANK && axes[i]; i++)
        set |= INT64_C(1) << (axes[i] < 0 ? axes[i] + shape.rank : axes[i]);
    if (!set) set = (INT64_C(1) << (shape.rank - 1)) - 2;
    for (int i = 0; i < shape.rank - 1; i++)
        if (!(set >> i & 1)) order[count++] = i;
    for (int i = 0; i < shape.rank - 1; i++)
        if (set >> i & 1) {
            order[count++] = i;
            steps = cornu__onnx_times(call->to, steps, shape.extent[i]);
        }
    order[count] = shape.rank - 1;
    return cornu_shape(CORNU_NONE, steps, shape.extent[shape.rank - 1]);
}

/* Tensors of higher rank: as sequences, and back. */
static CornuStatus multi_head_attention(const CornuOnnxCall *call)
{
    const int     rank = call->shapes[QUERY].rank, made = call->results[0].rank;
    int           in[MASK];
    int64_t       order[CORNU_MAX_RANK] = { 0 }, back[CORNU_MAX_RANK];
    CornuShape    shapes[MASK], result, apart = { .rank = made };
    CornuOnnxCall own = *call;
    if (rank == 3) return attend(call);
    if (call->in_count > MASK || cornu_layer_outputs(call->layer) > 1)
        return cornu__onnx_refuse(call->layer, "attention along several axes with a mask or scores",
                                  "whose axes differ from theirs");
    for (int i = call->in_count - 1; i >= 0; i--) {   /* the order of the query remains */
        shapes[i] = as_sequences(call, call->shapes[i], order);
        in[i] = cornu__onnx_reshape(call->to, cornu__onnx_transpose(call->to, call->in[i], order,
                                                                    rank), shapes[i]);
    }
    result = shapes[QUERY];
    result.rank = 2;
    for (int i = 0; i < made; i++) {
        if (i >= rank - 1) order[i] = i;
        if (i >= rank - 1) result.extent[result.rank++] = call->results[0].extent[i];
        apart.extent[i] = call->results[0].extent[order[i]];
        back[order[i]] = i;
    }
    own.in = in;
    own.shapes = shapes;
    own.results = &result;
    CORNU__TRY(attend(&own));
    *call->out = cornu__onnx_transpose(
        call->to, cornu__onnx_reshape(call->to, *call->out, apart), back, made);
    return CORNU_OK;
}

/* ---- Attention and AdditiveAttention ---- */

/* The shape with an extent of 1 at an axis. */
static int expanded(CornuOnnx *to, int x, CornuShape shape, int axis)
{
    for (int i = shape.rank++; i > axis; i--) shape.extent[i] = shape.extent[i - 1];
    shape.extent[axis] = 1;
    return cornu__onnx_reshape(to, x, shape);
}

/* query (…, T, 1, C) + key (…, 1, S, C) */
static int sums(const CornuOnnxCall *call, int key)
{
    const int rank = call->shapes[QUERY].rank;
    const int query = expanded(call->to, call->in[QUERY], call->shapes[QUERY], rank - 1);
    return two(call->to, "Add", query,
               expanded(call->to, call->in[key], call->shapes[key], rank - 2));
}

static int over_last(const CornuOnnxCall *call, int x)
{
    const int rank = call->shapes[QUERY].rank + 1;
    return cornu__onnx_reduce(call->to, "ReduceSum", x, rank, INT64_C(1) << (rank - 1), false);
}

/* The output for scores (…, T, S). Masked scores are lowered, not replaced. */
static CornuStatus weigh(const CornuOnnxCall *call, int scores)
{
    CornuOnnx       *to = call->to;
    const CornuShape query = call->shapes[QUERY];
    const int64_t    T = query.extent[query.rank - 2];
    const int64_t    S = call->shapes[VALUE].extent[query.rank - 2];
    int              mask;
    CORNU__TRY(of_distance(call, T, S, &mask));
    if (call->masks[VALUE])
        mask = both(to, mask, cornu__onnx_reshape(to, call->masks[VALUE], cornu_shape(0, 1, S)));
    if (mask) scores = selected(to, mask, scores, shifted(to, scores, -1e9));
    const int p = cornu__onnx_softmax(to, scores, -1);
    call->out[0] = joined(to, "MatMul", p, call->in[VALUE]);
    if (call->masks[QUERY]) {
        const int counts = cornu__onnx_reshape(to, call->masks[QUERY], cornu_shape(0, T, 1));
        call->out[0] = selected(to, counts, call->out[0], cornu__onnx_scalar(to, 0.0));
    }
    if (cornu_layer_outputs(call->layer) > 1) call->out[1] = p;
    call->out_masks[0] = call->masks[QUERY];
    return CORNU_OK;
}

static CornuStatus attention(const CornuOnnxCall *call)
{
    CornuOnnx        *to = call->to;
    const CornuLayer *layer = call->layer;
    const int         key = call->in_count > KEY ? KEY : VALUE, rank = call->shapes[QUERY].rank;
    const bool        scale = flag(layer, "use_scale");
    const CornuScoreMode mode = *(const CornuScoreMode *)cornu__layer_argument(layer, "score_mode");
    int64_t           order[CORNU_MAX_RANK] = { 0 };
    int               scores;
    for (int i = 1; i < rank; i++) order[i] = i;
    order[rank - 2] = rank - 1;
    order[rank - 1] = rank - 2;
    if (mode == CORNU_SCORE_DOT) {
        scores = joined(to, "MatMul", call->in[QUERY],
                        cornu__onnx_transpose(to, call->in[key], order, rank));
        if (scale) scores = two(to, "Mul", scores, cornu__onnx_weight(to, layer, 0));
        return weigh(call, scores);
    }
    scores = sums(call, key);
    if (scale) scores = two(to, "Mul", scores, cornu__onnx_weight(to, layer, 0));
    scores = over_last(call, one(to, "Tanh", scores));
    return weigh(call, two(to, "Mul", scores, cornu__onnx_weight(to, layer, scale)));
}

static CornuStatus additive_attention(const CornuOnnxCall *call)
{
    CornuOnnx *to = call->to;
    int        x = one(to, "Tanh", sums(call, call->in_count > KEY ? KEY : VALUE));
    if (given(call->layer, "use_scale"))
        x = two(to, "Mul", x, cornu__onnx_weight(to, call->layer, 0));
    return weigh(call, over_last(call, x));
}

const CornuOnnxRow cornu__onnx_attention[] = {
    { "AdditiveAttention", additive_attention },
    { "Attention", attention },
    { "GroupQueryAttention", multi_head_attention },
    { "MultiHeadAttention", multi_head_attention },
    { 0 },
};
