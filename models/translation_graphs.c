/* A transformer's decoder one token at a time, of its layers' weights; the encoder is the model's
 * own. Letters: R rows, S and T lengths of source and target, C channels, N heads, H of a head. */
#include <math.h>
#include <stdio.h>

#include "../nn/model/functional.h"
#include "translation_internal.h"

static const double masked = -1e9;

/* ---- Layers by name ---- */

static CornuLayer *layer_of(const CornuDecoding *d, int block, const char *part)
{
    char name[64];
    snprintf(name, sizeof name, "decoder_%d_%s", block, part);
    return cornu_model_find_layer(d->model, name);
}

static CornuTensor *apply(const CornuDecoding *d, const CornuCall *call, int block,
                          const char *part, CornuTensor *x)
{
    CornuLayer *layer = layer_of(d, block, part);
    return layer ? cornu_op_convert(cornu_layer_call(layer, call, x), CORNU_F32)
                 : cornu__fail_null(CORNU_ERR_ARGUMENT, "%s has no layer decoder_%d_%s, expected "
                                    "one of cornu_transformer", cornu_model_name(d->model), block,
                                    part);
}

/* ---- Attention ---- */

typedef enum { QUERY, KEY, VALUE, OUTPUT } Map;

/* x (B, T, C) by the query's, key's or value's map: (B, N, T, H). */
static CornuTensor *projected(CornuLayer *attention, const CornuCall *call, Map map,
                              CornuTensor *x)
{
    CornuTensor *kernel = cornu_layer_read(attention, call, 2 * (int)map);
    CornuTensor *bias = cornu_layer_read(attention, call, 2 * (int)map + 1);
    if (!x || !kernel || !bias) return NULL;
    const CornuShape in = cornu_tensor_shape(x), heads = cornu_tensor_shape(kernel);
    const int64_t    B = in.extent[0], T = in.extent[1], C = in.extent[2];
    const int64_t    N = heads.extent[1], H = heads.extent[2];
    x = cornu_op_convert(x, cornu_tensor_type(kernel).dtype);
    CornuTensor *y = cornu_op_matmul(cornu_op_reshape(x, cornu_shape(B * T, C)),
                                     cornu_op_reshape(kernel, cornu_shape(C, N * H)));
    y = cornu_op_add(y, cornu_op_reshape(bias, cornu_shape(1, N * H)));
    y = cornu_op_reshape(y, cornu_shape(B, T, N, H));
    return cornu_op_convert(cornu_op_transpose(y, (const int[]){ 0, 2, 1, 3 }), CORNU_F32);
}

/* query (R, N, 1, H) attends to keys and values (R, N, L, H); `hidden`, which broadcasts to
 * (R, 1, 1, L), is added to the scores: (R, 1, C). */
static CornuTensor *attend(CornuLayer *attention, const CornuCall *call, CornuTensor *query,
                           CornuTensor *keys, CornuTensor *values, CornuTensor *hidden)
{
    CornuTensor *kernel = cornu_layer_read(attention, call, 2 * (int)OUTPUT);
    CornuTensor *bias = cornu_layer_read(attention, call, 2 * (int)OUTPUT + 1);
    if (!query || !kernel || !bias) return NULL;
    const CornuShape shape = cornu_tensor_shape(query), map = cornu_tensor_shape(kernel);
    const int64_t    R = shape.extent[0], NH = map.extent[0] * map.extent[1], C = map.extent[2];
    const double     scale = 1.0 / sqrt((double)map.extent[1]);
    CornuTensor *scores = cornu_op_matmul_transposed(cornu_op_scale(query, scale), false, keys,
                                                     true);
    CornuTensor *p = cornu_op_softmax(cornu_op_add(scores, hidden));
    CornuTensor *y = cornu_op_reshape(cornu_op_matmul(p, values), cornu_shape(R, NH));
    y = cornu_op_convert(y, cornu_tensor_type(kernel).dtype);
    y = cornu_op_matmul(y, cornu_op_reshape(kernel, cornu_shape(NH, C)));
    return cornu_op_reshape(cornu_op_add(y, cornu_op_reshape(bias, cornu_shape(1, C))),
                            cornu_shape(R, 1, C));
}

/* The kept rows `parents` with `fresh` (R, N, 1, H) at `position`, which is kept in their place:
 * (R, N, T, H). */
static CornuTensor *kept(CornuDecoding *d, CornuVariable *variable, CornuTensor *fresh)
{
    if (!fresh) return NULL;
    const CornuShape one = cornu_tensor_shape(fresh);
    const int64_t    R = one.extent[0], N = one.extent[1], H = one.extent[3];
    const CornuShape all = cornu_shape(R, N, d->target_length, H);
    CornuTensor *old = cornu_op_gather(cornu_read(d->step, variable), d->parents);
    CornuTensor *at = cornu_op_iota(d->step, cornu_type(CORNU_I32, 1, 1, d->target_length, 1), 2);
    at = cornu_op_compare(at, CORNU_EQUAL, cornu_op_reshape(d->position, cornu_shape(1, 1, 1, 1)));
    CornuTensor *now = cornu_op_select(cornu_op_broadcast(at, all), cornu_op_broadcast(fresh, all),
                                       cornu_op_reshape(old, all));
    CornuTensor *flat = cornu_op_reshape(now, cornu_shape(R, N * d->target_length * H));
    return flat && !cornu_assign(variable, flat) ? now : NULL;
}

/* ---- The step ---- */

static CornuTensor *plus(CornuTensor *x, CornuTensor *y)
{
    return cornu_op_add(x, cornu_op_convert(y, CORNU_F32));
}

static CornuTensor *decode_block(CornuDecoding *d, const CornuCall *call, int block,
                                 CornuTensor *x, CornuTensor *future)
{
    const CornuBlockCache *cache = &d->caches[block];
    CornuLayer            *self = layer_of(d, block, "attention");
    CornuLayer            *cross = layer_of(d, block, "cross");
    CornuTensor *y = apply(d, call, block, "attention_norm", x);
    CornuTensor *keys = kept(d, cache->keys, projected(self, call, KEY, y));
    CornuTensor *values = kept(d, cache->values, projected(self, call, VALUE, y));
    x = plus(x, attend(self, call, projected(self, call, QUERY, y), keys, values, future));
    CornuTensor *padding = cornu_op_reshape(cornu_read(d->step, d->padding),
                                            cornu_shape(d->rows, 1, 1, d->source_length));
    y = apply(d, call, block, "cross_norm", x);
    y = attend(cross, call, projected(cross, call, QUERY, y),
               cornu_read(d->step, cache->cross_keys), cornu_read(d->step, cache->cross_values),
               padding);
    x = plus(x, y);
    y = apply(d, call, block, "dense", apply(d, call, block, "dense_norm", x));
    return plus(x, apply(d, call, block, "dense_out", y));
}

static CornuStatus record_step(CornuDecoding *d)
{
    CornuGraph *graph = d->step = cornu_graph_create(cornu_model_device(d->model));
    if (!graph) return cornu_error_take();
    CornuLayer *tokens = cornu_model_find_layer(d->model, "decoder_tokens");
    CornuLayer *positions = cornu_model_find_layer(d->model, "decoder_positions");
    CornuLayer *norm = cornu_model_find_layer(d->model, "decoder_norm");
    CornuLayer *token = cornu_model_find_layer(d->model, "token");
    if (!tokens || !positions || !norm || !token)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: expected a model of cornu_transformer",
                           cornu_model_name(d->model));
    d->tokens = cornu_graph_input(graph, cornu_type(CORNU_I32, d->rows, 1));
    d->parents = cornu_graph_input(graph, cornu_type(CORNU_I32, d->rows));
    d->position = cornu_graph_input(graph, cornu_type(CORNU_I32, 1));
    CornuTensor *one = cornu_op_constant(graph, cornu_scalar(CORNU_I64), 1.0);
    const CornuCall call = { .graph = graph, .count = one, .total = one, .seed = one,
                             .iteration = one, .position = one };
    CornuTensor *x = cornu_op_convert(cornu_layer_call(tokens, &call, d->tokens), CORNU_F32);
    if (!x) return cornu_error_take();
    const int64_t C = cornu_tensor_shape(x).extent[2];
    CornuTensor  *place = cornu_op_gather(cornu_layer_read_as(positions, &call, 0, CORNU_F32),
                                          d->position);
    x = cornu_op_add(x, cornu_op_reshape(place, cornu_shape(1, 1, C)));
    /* Tokens to come hold what earlier sentences have left there. */
    CornuTensor *future = cornu_op_iota(graph, cornu_type(CORNU_I32, 1, 1, 1, d->target_length), 3);
    future = cornu_op_compare(future, CORNU_GREATER,
                              cornu_op_reshape(d->position, cornu_shape(1, 1, 1, 1)));
    future = cornu_op_scale(cornu_op_convert(future, CORNU_F32), masked);
    for (int i = 0; i < d->blocks && x; i++) x = decode_block(d, &call, i, x, future);
    x = cornu_layer_call(norm, &call, x);
    CornuTensor *p = cornu_op_convert(cornu_layer_call(token, &call, x), CORNU_F32);
    d->probabilities = cornu_op_reshape(p, cornu_shape(d->rows, d->vocabulary));
    return cornu_error_take();
}

/* ---- The encoder ---- */

/* Each sentence's for all its hypotheses. */
static CornuTensor *repeated(const CornuDecoding *d, CornuTensor *x, CornuShape shape)
{
    if (!x) return NULL;
    const int64_t each = cornu_shape_count(cornu_tensor_shape(x)) / d->sentences;
    x = cornu_op_broadcast(cornu_op_reshape(x, cornu_shape(d->sentences, 1, each)),
                           cornu_shape(d->sentences, d->beams, each));
    return cornu_op_reshape(x, shape);
}

static CornuStatus record_encode(CornuDecoding *d)
{
    CornuGraph *graph = d->encode = cornu_graph_create(cornu_model_device(d->model));
    if (!graph) return cornu_error_take();
    d->source = cornu_graph_input(graph, cornu_type(CORNU_I32, d->sentences, d->source_length));
    const CornuCall call = { .graph = graph };
    CornuTensor *x = cornu_model_call(d->encoder, d->source, &call);
    for (int i = 0; i < d->blocks && x; i++) {
        CornuLayer *cross = layer_of(d, i, "cross");
        const CornuShape shape = cornu_variable_type(d->caches[i].cross_keys).shape;
        CornuTensor *y = apply(d, &call, i, "source_norm", x);
        CornuTensor *keys = repeated(d, projected(cross, &call, KEY, y), shape);
        CornuTensor *values = repeated(d, projected(cross, &call, VALUE, y), shape);
        if (!keys || !values) break;
        CORNU__TRY(cornu_assign(d->caches[i].cross_keys, keys));
        CORNU__TRY(cornu_assign(d->caches[i].cross_values, values));
    }
    CornuTensor *padding = cornu_op_compare(d->source, CORNU_EQUAL,
                                            cornu_op_constant_like(d->source, 0.0));
    padding = cornu_op_scale(cornu_op_convert(padding, CORNU_F32), masked);
    padding = repeated(d, padding, cornu_shape(d->rows, d->source_length));
    if (padding) CORNU__TRY(cornu_assign(d->padding, padding));
    return cornu_error_take();
}

/* ---- Opening ---- */

static CornuVariable *variable_of(const CornuDecoding *d, CornuShape shape)
{
    return cornu_variable_create(cornu_model_device(d->model), cornu_type_from(CORNU_F32, shape));
}

static CornuStatus make_caches(CornuDecoding *d)
{
    for (d->blocks = 0; d->blocks < CORNU__MOST_BLOCKS; d->blocks++) {
        const CornuLayer *layer = layer_of(d, d->blocks, "cross");
        if (!layer) break;
        const CornuShape kernel = layer->weights[0]->type.shape;
        const int64_t    N = kernel.extent[1], H = kernel.extent[2];
        const CornuShape own = cornu_shape(d->rows, N * d->target_length * H);
        const CornuShape cross = cornu_shape(d->rows, N, d->source_length, H);
        CornuBlockCache *cache = &d->caches[d->blocks];
        *cache = (CornuBlockCache){ variable_of(d, own), variable_of(d, own),
                                    variable_of(d, cross), variable_of(d, cross) };
    }
    cornu_error_take();      /* of the layer that is not there; a failure of memory is seen below */
    d->padding = variable_of(d, cornu_shape(d->rows, d->source_length));
    for (int i = 0; i < d->blocks; i++) {
        const CornuBlockCache *cache = &d->caches[i];
        if (!cache->keys || !cache->values || !cache->cross_keys || !cache->cross_values)
            return cornu__fail(CORNU_ERR_MEMORY, "no memory for the keys and values");
    }
    if (!d->padding) return cornu_error_take();
    return d->blocks ? CORNU_OK
         : cornu__fail(CORNU_ERR_ARGUMENT, "%s: expected a model of cornu_transformer",
                       cornu_model_name(d->model));
}

CornuStatus cornu__decoding_open(CornuDecoding *d, const CornuTranslatorConfig *config)
{
    CornuText name;
    d->model = config->model;
    d->sentences = config->rows;
    d->beams = config->beams;
    d->rows = d->sentences * d->beams;
    const CornuShape out = cornu_model_output_shape(d->model);
    const CornuShape in = cornu_model_input_shape(d->model);
    if (in.rank != 2 || out.rank != 3 || cornu_model_input_count(d->model) != 2)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: expected a model of cornu_transformer",
                           cornu_model_name(d->model));
    d->source_length = in.extent[1];
    d->target_length = out.extent[1];
    d->vocabulary = out.extent[2];
    CORNU__TRY(make_caches(d));
    snprintf(name.text, sizeof name.text, "encoder_%d_out", d->blocks - 1);
    d->encoder = cornu_model(.inputs = { cornu_model_input(d->model, 0) },
                             .outputs = { cornu_model_symbol(d->model, name.text) },
                             .name = "encoder");
    CORNU__TRY(cornu_compile(d->encoder, .device = cornu_model_device(d->model)));
    CORNU__TRY(record_encode(d));
    return record_step(d);
}

void cornu__decoding_close(CornuDecoding *d)
{
    cornu_graph_free(d->encode);
    cornu_graph_free(d->step);
    cornu_model_free(d->encoder);
    for (int i = 0; i < d->blocks; i++) {
        cornu_variable_free(d->caches[i].keys);
        cornu_variable_free(d->caches[i].values);
        cornu_variable_free(d->caches[i].cross_keys);
        cornu_variable_free(d->caches[i].cross_values);
    }
    cornu_variable_free(d->padding);
}

/* ---- Running ---- */

static CornuStatus feed(CornuTensor *input, const int32_t *values)
{
    return cornu_graph_feed(input, cornu_array_from((void *)(uintptr_t)values,
                                                    cornu_tensor_type(input)));
}

CornuStatus cornu__decoding_encode(CornuDecoding *d, const int32_t *sources)
{
    CORNU__TRY(feed(d->source, sources));
    return cornu_run(d->encode, NULL, 0, NULL);
}

CornuStatus cornu__decoding_step(CornuDecoding *d, int32_t position, const int32_t *tokens,
                                 const int32_t *parents, float *probabilities)
{
    CornuArray to = cornu_array(probabilities, CORNU_F32, d->rows, d->vocabulary);
    CORNU__TRY(feed(d->position, &position));
    CORNU__TRY(feed(d->tokens, tokens));
    CORNU__TRY(feed(d->parents, parents));
    return cornu_run(d->step, &d->probabilities, 1, &to);
}
