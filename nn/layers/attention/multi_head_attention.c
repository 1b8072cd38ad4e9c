#include "../layer_internal.h"

#include <math.h>
#include <stdio.h>

typedef struct {
    CornuLayer                    base;
    CornuMultiHeadAttentionConfig config;
} Attention;

/* The inputs, in Keras' order. */
enum { QUERY, VALUE, KEY, MASK, MAX_INPUTS };

/* ---- Axes ---- */

/* The permutation from (B, …, C) to (B', T, C): the axes without attention are folded into the
 * batch, the others, `attended` of them, into T. */
typedef struct {
    int rank, attended, order[CORNU_MAX_RANK];
} Layout;

static Layout layout_of(const Attention *self, int rank)
{
    Layout  layout = { .rank = rank };
    int64_t set = 0;
    int     count = 1;
    for (int i = 0; i < CORNU_MAX_RANK && self->config.attention_axes[i]; i++) {
        const int64_t axis = self->config.attention_axes[i];
        set |= INT64_C(1) << (axis < 0 ? axis + rank : axis);
    }
    for (int attended = 0; attended < 2; attended++)
        for (int i = 1; i < rank - 1; i++) {
            if ((set == 0 || (set >> i & 1)) != attended) continue;
            layout.order[count++] = i;
            layout.attended += attended;
        }
    layout.order[count] = rank - 1;
    return layout;
}

/* (B', T, C); B' is unknown where the batch is. */
static CornuShape sequence_shape(const Layout *layout, CornuShape shape)
{
    int64_t rows = shape.extent[0], steps = 1;
    for (int i = 1; i < layout->rank - 1; i++) {
        const int64_t extent = shape.extent[layout->order[i]];
        if (i >= layout->rank - 1 - layout->attended) steps *= extent;
        else if (rows != CORNU_NONE) rows *= extent;
    }
    return cornu_shape(rows, steps, shape.extent[layout->rank - 1]);
}

static CornuTensor *as_sequence(const Layout *layout, CornuTensor *x)
{
    if (!x || layout->rank == 3) return x;
    const CornuShape shape = sequence_shape(layout, cornu_tensor_shape(x));
    return cornu_op_reshape(cornu_op_transpose(x, layout->order), shape);
}

/* y (B', T, …) with the axes of `query` restored, except its last one. */
static CornuTensor *from_sequence(const Layout *layout, CornuShape query, CornuTensor *y)
{
    if (!y || layout->rank == 3) return y;
    const CornuShape made = cornu_tensor_shape(y);
    CornuShape       shape = { .rank = layout->rank - 1 };
    int              back[CORNU_MAX_RANK];
    for (int i = 0; i < layout->rank - 1; i++) {
        shape.extent[i] = query.extent[layout->order[i]];
        back[layout->order[i]] = i;
    }
    for (int i = 2; i < made.rank; i++) {
        back[shape.rank] = shape.rank;
        shape.extent[shape.rank++] = made.extent[i];
    }
    return cornu_op_transpose(cornu_op_reshape(y, shape), back);
}

/* ---- Weights ---- */

/* A linear map of the last axis, or axes, of a shape. */
static CornuStatus declare(CornuLayer *layer, const char *map, CornuShape kernel, int bias_axes)
{
    const CornuMultiHeadAttentionConfig *config = &((Attention *)layer)->config;
    CornuShape bias = { .rank = bias_axes };
    char       name[40];
    snprintf(name, sizeof name, "%s/kernel", map);
    CORNU__TRY(cornu_layer_weight(layer, name, kernel, config->kernel_initializer, false));
    CORNU__TRY(cornu_layer_weight_rules(layer, config->kernel_regularizer,
                                        config->kernel_constraint));
    if (config->no_bias) return CORNU_OK;
    for (int i = 0; i < bias_axes; i++)
        bias.extent[i] = kernel.extent[kernel.rank - bias_axes + i];
    snprintf(name, sizeof name, "%s/bias", map);
    CORNU__TRY(cornu_layer_weight(layer, name, bias, config->bias_initializer, false));
    return cornu_layer_weight_rules(layer, config->bias_regularizer, config->bias_constraint);
}

/* The index of a map's kernel; its bias is the next weight. */
static int kernel_number(const CornuMultiHeadAttentionConfig *config, int map)
{
    return config->no_bias ? map : 2 * map;
}

/* Axis 0 is the batch; extents of 1 are broadcast. */
static bool fits(CornuShape mask, CornuShape scores)
{
    const int ahead = scores.rank - mask.rank;
    if (mask.rank != 3 && mask.rank != 4) return false;
    for (int i = 1; i < mask.rank; i++) {
        const int64_t extent = mask.extent[i];
        if (extent != 1 && extent != scores.extent[i + ahead]) return false;
    }
    return true;
}

/* Steps along several axes have no order, and no masks. */
static CornuStatus check_many_axes(const Attention *self, const CornuShape *in, int in_count)
{
    const CornuMultiHeadAttentionConfig *config = &self->config;
    const int   rank = in[QUERY].rank;
    const char *only = config->use_causal_mask           ? ".use_causal_mask"
                       : config->sliding_window          ? ".sliding_window"
                       : config->return_attention_scores ? ".return_attention_scores"
                       : in_count > MASK                 ? "a mask" : NULL;
    CornuText   text;
    int         extents = 1;
    while (extents < CORNU_MAX_RANK && config->output_shape[extents]) extents++;
    if (only)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "the query is %s, and %s is only available for "
                           "(B, T, C)", cornu_shape_print(&text, in[QUERY]), only);
    if (rank - 1 + extents > CORNU_MAX_RANK)
        return cornu__fail(CORNU_ERR_SHAPE, "the query is %s with %d extents of .output_shape, "
                           "expected a result of at most %d axes",
                           cornu_shape_print(&text, in[QUERY]), extents, CORNU_MAX_RANK);
    return CORNU_OK;
}

static CornuStatus check_axes(const Attention *self, const CornuShape *in, int in_count)
{
    static const char *const names[] = { "query", "value", "key" };
    const int rank = in[QUERY].rank;
    CornuText a, b;
    for (int i = 0; i < in_count && i < MASK; i++)
        if (in[i].rank < 3 || in[i].rank != rank)
            return cornu__fail(CORNU_ERR_SHAPE, "the %s is %s, expected (B, T, C) or more axes, as "
                               "many as the query has", names[i], cornu_shape_print(&a, in[i]));
    for (int i = 0; i < CORNU_MAX_RANK && self->config.attention_axes[i]; i++) {
        const int64_t given = self->config.attention_axes[i];
        const int64_t axis = given < 0 ? given + rank : given;
        if (axis < 1 || axis > rank - 2)
            return cornu__fail(CORNU_ERR_ARGUMENT, ".attention_axes has %lld, expected 1 to %d",
                               (long long)(given == CORNU_ZERO ? 0 : given), rank - 2);
    }
    const Layout layout = layout_of(self, rank);
    for (int i = 1; i < in_count && i < MASK; i++)
        for (int k = 1; k < rank - 1 - layout.attended; k++)
            if (in[i].extent[layout.order[k]] != in[QUERY].extent[layout.order[k]])
                return cornu__fail(CORNU_ERR_SHAPE, "the %s is %s and the query %s, expected the "
                                   "same along axis %d", names[i], cornu_shape_print(&a, in[i]),
                                   cornu_shape_print(&b, in[QUERY]), layout.order[k]);
    return rank == 3 ? CORNU_OK : check_many_axes(self, in, in_count);
}

/* Checks for sequences, (B, T, C). */
static CornuStatus check_shapes(const Attention *self, const CornuShape *in, int in_count)
{
    CornuText a, b;
    if (in_count > KEY && in[KEY].extent[1] != in[VALUE].extent[1])
        return cornu__fail(CORNU_ERR_SHAPE, "the key is %s and the value %s, expected the same "
                           "number of steps", cornu_shape_print(&a, in[KEY]),
                           cornu_shape_print(&b, in[VALUE]));
    if (in_count <= MASK) return CORNU_OK;
    const CornuShape scores = cornu_shape(CORNU_NONE, self->config.num_heads, in[QUERY].extent[1],
                                          in[VALUE].extent[1]);
    if (fits(in[MASK], scores)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_SHAPE, "the mask is %s, expected it to broadcast to %s, or to "
                       "that without the heads", cornu_shape_print(&a, in[MASK]),
                       cornu_shape_print(&b, scores));
}

static CornuStatus build(CornuLayer *layer, const CornuShape *given, int in_count)
{
    const Attention *self = (Attention *)layer;
    const CornuMultiHeadAttentionConfig *config = &self->config;
    CornuShape in[MAX_INPUTS] = { { 0 } };
    if (in_count > MAX_INPUTS)
        return cornu__fail(CORNU_ERR_ARGUMENT, "got %d tensors, expected at most query, value, key "
                           "and mask", in_count);
    CORNU__TRY(check_axes(self, given, in_count));
    const Layout layout = layout_of(self, given[QUERY].rank);
    for (int i = 0; i < in_count; i++)
        in[i] = i < MASK ? sequence_shape(&layout, given[i]) : given[i];
    CORNU__TRY(check_shapes(self, in, in_count));
    const int64_t query = in[QUERY].extent[2];
    const int64_t value = in_count > VALUE ? in[VALUE].extent[2] : query;
    const int64_t key = in_count > KEY ? in[KEY].extent[2] : value;
    const int64_t heads = config->num_heads;
    CORNU__TRY(declare(layer, "query", cornu_shape(query, heads, config->key_dim), 2));
    CORNU__TRY(declare(layer, "key", cornu_shape(key, heads, config->key_dim), 2));
    if (config->use_gate)
        CORNU__TRY(declare(layer, "gate", cornu_shape(query, heads, config->value_dim), 2));
    CORNU__TRY(declare(layer, "value", cornu_shape(value, heads, config->value_dim), 2));
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
static CornuTensor *mapped(CornuLayer *layer, const CornuCall *call, int map, CornuTensor *x,
                           double factor, CornuDtype dtype)
{
    const CornuMultiHeadAttentionConfig *config = &((Attention *)layer)->config;
    const int        number = kernel_number(config, map);
    const CornuShape kernel = layer->weights[number]->type.shape;
    if (!x) return NULL;
    CornuShape shape = cornu_tensor_shape(x);
    const int  bound = shape.rank - 2;
    int64_t    features = 1;
    for (int i = 0; i < bound; i++) features *= kernel.extent[i];
    shape.rank = 2;
    for (int i = bound; i < kernel.rank; i++) shape.extent[shape.rank++] = kernel.extent[i];
    for (int i = shape.rank; i < CORNU_MAX_RANK; i++) shape.extent[i] = 0;
    CornuTensor *matrix = cornu_op_reshape(weight(layer, call, number, factor, layer->compute),
                                           cornu_shape(features, CORNU_NONE));
    CornuTensor *y = cornu_op_matmul_to(cornu_op_reshape(x, cornu_shape(CORNU_NONE, features)),
                                        matrix, dtype);
    if (!config->no_bias) {
        CornuTensor *bias = weight(layer, call, number + 1, factor, dtype);
        y = cornu_op_add(y, cornu_op_reshape(bias, cornu_shape(CORNU_NONE)));
    }
    return cornu_op_reshape(y, shape);
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

/* The mask given as an input, with or without the axis of heads. */
static CornuTensor *given_mask(CornuTensor *mask)
{
    CornuShape shape = cornu_tensor_shape(mask);
    if (shape.rank == 3)
        shape = cornu_shape(shape.extent[0], 1, shape.extent[1], shape.extent[2]);
    return cornu_op_reshape(cornu_op_convert(mask, CORNU_BOOL), shape);
}

/* Step t of T attends to step s of S if s <= t; with a window, only if |t - s| < window. */
static CornuTensor *of_distance(const Attention *self, CornuGraph *graph, int64_t T, int64_t S)
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

static CornuTensor *mask_of(const Attention *self, const CornuCall *call, CornuTensor *const *in,
                            int in_count)
{
    const int value = in_count > VALUE ? VALUE : QUERY;
    CornuTensor *mask = of_distance(self, call->graph, cornu_tensor_shape(in[QUERY]).extent[1],
                                    cornu_tensor_shape(in[value]).extent[1]);
    mask = both(mask, of_sequence(call->masks[QUERY], 2));
    mask = both(mask, of_sequence(call->masks[value], 3));
    if (in_count > KEY) mask = both(mask, of_sequence(call->masks[KEY], 3));
    return in_count > MASK ? both(mask, given_mask(in[MASK])) : mask;
}

/* ---- The call ---- */

/* softmax of q k' over the last axis: q (B, N, T, H), k (B, N, H, S). */
static CornuTensor *scores_of(CornuTensor *q, CornuTensor *k, CornuTensor *mask)
{
    CornuTensor *scores = cornu_op_matmul_to(q, k, CORNU_F32);
    if (scores && mask)
        scores = cornu_op_select(mask, scores, cornu_op_constant_like(scores, -1e9));
    return cornu_op_softmax(scores);
}

/* For `rows` of the batch; the others of p are drawn with theirs. */
static CornuTensor *dropped(CornuLayer *layer, const CornuCall *call, CornuTensor *p, int64_t rows)
{
    if (!p) return NULL;
    const CornuShape s = cornu_tensor_shape(p);
    p = cornu_op_reshape(p, cornu_shape(rows, s.extent[0] / rows * s.extent[1], s.extent[2],
                                        s.extent[3]));
    p = cornu_op_dropout(p, ((Attention *)layer)->config.dropout, call->seed, call->iteration,
                         call->position, layer->generator);
    return cornu_op_reshape(p, s);
}

/* in[i] as (B', T, C); NULL where it is NULL, or has a mask but several axes. */
static bool sequences(const Layout *layout, const CornuCall *call, CornuTensor *const *in,
                      int in_count, CornuTensor **to)
{
    for (int i = 0; i < in_count; i++) {
        if (layout->rank > 3 && call->masks[i]) {
            cornu__fail_null(CORNU_ERR_UNSUPPORTED, "input %d has a mask, which is only "
                             "available for (B, T, C)", i);
            return false;
        }
        if (!(to[i] = i < MASK ? as_sequence(layout, in[i]) : in[i])) return false;
    }
    return true;
}

static CornuTensor *call_many(CornuLayer *layer, const CornuCall *call, CornuTensor *const *given,
                              int in_count, CornuTensor **out)
{
    static const int heads_first[] = { 0, 2, 1, 3 }, steps_last[] = { 0, 2, 3, 1 };
    const Attention *self = (Attention *)layer;
    const CornuMultiHeadAttentionConfig *config = &self->config;
    const CornuShape shape = cornu_tensor_shape(given[QUERY]);
    const Layout     layout = layout_of(self, shape.rank);
    CornuTensor     *in[MAX_INPUTS] = { NULL };
    if (!sequences(&layout, call, given, in_count, in)) return NULL;
    CornuTensor *query = in[QUERY], *value = in_count > VALUE ? in[VALUE] : query;
    CornuTensor *key = in_count > KEY ? in[KEY] : value;
    const int    gate = config->use_gate;
    const double root = sqrt((double)config->key_dim);
    CornuTensor *q = mapped(layer, call, 0, query, 1.0 / root, layer->compute);
    CornuTensor *k = mapped(layer, call, 1, key, 1.0, layer->compute);
    CornuTensor *v = mapped(layer, call, 2 + gate, value, 1.0, layer->compute);
    CornuTensor *p = scores_of(cornu_op_transpose(q, heads_first),
                               cornu_op_transpose(k, steps_last),
                               mask_of(self, call, in, in_count));
    if (config->return_attention_scores) out[1] = cornu_op_convert(p, layer->result);
    if (call->training && config->dropout > 0.0)
        p = dropped(layer, call, p, shape.extent[0]);
    CornuTensor *y = cornu_op_matmul(cornu_op_convert(p, layer->compute),
                                     cornu_op_transpose(v, heads_first));
    y = cornu_op_transpose(y, heads_first);
    if (gate) {
        CornuTensor *open = cornu_op_sigmoid(mapped(layer, call, 2, query, 1.0, layer->compute));
        y = cornu_op_multiply(y, open);
    }
    out[0] = from_sequence(&layout, shape,
                           mapped(layer, call, 3 + gate, y, 1.0, layer->result));
    return config->return_attention_scores && !out[1] ? NULL : out[0];
}

static int outputs(const CornuLayer *layer)
{
    return ((const Attention *)layer)->config.return_attention_scores ? 2 : 1;
}

static CornuLayer *from(const void *config) { return cornu_multi_head_attention_from(config); }

#define FIELD(field) offsetof(CornuMultiHeadAttentionConfig, field)
static const CornuField fields[] = {
    { "num_heads", CORNU_FIELD_INTEGER, FIELD(num_heads) },
    { "key_dim", CORNU_FIELD_INTEGER, FIELD(key_dim) },
    { "value_dim", CORNU_FIELD_INTEGER, FIELD(value_dim) },
    { "dropout", CORNU_FIELD_NUMBER, FIELD(dropout) },
    { "use_bias", CORNU_FIELD_NOT, FIELD(no_bias) },
    { "output_shape", CORNU_FIELD_SHAPE, FIELD(output_shape) },
    { "attention_axes", CORNU_FIELD_ROW_AXES, FIELD(attention_axes) },
    { "sliding_window", CORNU_FIELD_INTEGER_OR_NONE, FIELD(sliding_window) },
    { "kernel_initializer", CORNU_FIELD_INITIALIZER, FIELD(kernel_initializer) },
    { "bias_initializer", CORNU_FIELD_INITIALIZER, FIELD(bias_initializer) },
    { "kernel_regularizer", CORNU_FIELD_REGULARIZER, FIELD(kernel_regularizer) },
    { "bias_regularizer", CORNU_FIELD_REGULARIZER, FIELD(bias_regularizer) },
    { "kernel_constraint", CORNU_FIELD_CONSTRAINT, FIELD(kernel_constraint) },
    { "bias_constraint", CORNU_FIELD_CONSTRAINT, FIELD(bias_constraint) },
    { "use_gate", CORNU_FIELD_FLAG, FIELD(use_gate) },
    { "use_causal_mask", CORNU_FIELD_FLAG, FIELD(use_causal_mask) },
    { "return_attention_scores", CORNU_FIELD_FLAG, FIELD(return_attention_scores) },
    { 0 },
};

static const char *const folders[] = { "query:query_dense", "key:key_dense", "gate:gate_dense",
                                       "value:value_dense", "attention_output:output_dense", NULL };

const CornuLayerClass cornu__multi_head_attention_class = {
    .class_name = "MultiHeadAttention", .size = sizeof(Attention), .build_many = build,
    .call_many = call_many, .outputs = outputs, .fields = fields,
    .config_size = sizeof(CornuMultiHeadAttentionConfig),
    .config_offset = offsetof(Attention, config), .from = from, .folders = folders,
    .first_operand = "query", .operands = "value key attention_mask",
    .call_arguments = "use_causal_mask return_attention_scores",
};

static CornuStatus check(const CornuMultiHeadAttentionConfig *config, const char *name)
{
    const struct { const char *argument; int64_t value, least; } extents[] = {
        { "num_heads", config->num_heads, 1 }, { "key_dim", config->key_dim, 1 },
        { "value_dim", config->value_dim, 0 }, { "sliding_window", config->sliding_window, 0 },
    };
    const CornuInitializer initializers[] = { config->kernel_initializer,
                                              config->bias_initializer };
    for (size_t i = 0; i < sizeof extents / sizeof *extents; i++)
        if (extents[i].value < extents[i].least || extents[i].value > INT32_MAX)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .%s is %lld, expected 1 to %d", name,
                               extents[i].argument, (long long)extents[i].value, INT32_MAX);
    for (int i = 0; i < CORNU_MAX_RANK && config->output_shape[i]; i++)
        if (config->output_shape[i] < 1 || config->output_shape[i] > INT32_MAX ||
            i == CORNU_MAX_RANK - 2)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .output_shape[%d] is %lld; expected at "
                               "most %d extents from 1 to %d", name, i,
                               (long long)config->output_shape[i], CORNU_MAX_RANK - 2, INT32_MAX);
    const double dropout = cornu__number(config->dropout, 0.0);
    if (!(dropout >= 0.0 && dropout < 1.0))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .dropout is %g, expected 0 or more, below 1",
                           name, dropout);
    return cornu__check_enums(name, CORNU_LINEAR, initializers, 2);
}

CornuLayer *cornu_multi_head_attention_from(const CornuMultiHeadAttentionConfig *config)
{
    if (check(config, config->name ? config->name : "multi_head_attention")) return cornu__null();
    CornuLayer *layer = cornu_layer_create(&cornu__multi_head_attention_class, config->name,
                                           config->dtype);
    if (!layer) return NULL;
    CornuMultiHeadAttentionConfig *to = &((Attention *)layer)->config;
    *to = *config;
    to->name = to->dtype = NULL;
    to->value_dim = config->value_dim ? config->value_dim : config->key_dim;
    to->dropout = cornu__number(config->dropout, 0.0);
    to->kernel_initializer = cornu__initializer(to->kernel_initializer, CORNU_GLOROT_UNIFORM);
    to->bias_initializer = cornu__initializer(to->bias_initializer, CORNU_ZEROS);
    layer->frozen = config->frozen;
    return layer;
}
