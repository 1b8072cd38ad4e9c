/* IntegerLookup: by a binary search in the sorted vocabulary.
 * Source: keras/src/layers/preprocessing/index_lookup.py, integer_lookup.py. */
#include <stdlib.h>

#include "adapt_internal.h"
#include "categories_internal.h"
#include "host_internal.h"

typedef struct { int64_t token, place; } Entry;

typedef struct {
    CornuLayer               base;
    CornuIntegerLookupConfig config;
    Entry                   *sorted;      /* the vocabulary by token */
} Lookup;

/* ---- Places ---- */

static int64_t size_of(const CornuIntegerLookupConfig *c)
{
    return c->vocabulary.values ? c->vocabulary.shape.extent[0] : 0;
}

static int64_t oov_of(const CornuIntegerLookupConfig *c)
{
    return cornu__integer(c->num_oov_indices, 1);
}

/* The place of the first integer that is not in the vocabulary. */
static int64_t oov_start(const CornuIntegerLookupConfig *c)
{
    return c->mask_token != 0 && c->output_mode == CORNU_INT_OUTPUT ? 1 : 0;
}

static int64_t vocabulary_start(const CornuIntegerLookupConfig *c)
{
    return oov_start(c) + oov_of(c);
}

static int64_t depth_of(const CornuIntegerLookupConfig *c)
{
    return c->pad_to_max_tokens ? c->max_tokens : vocabulary_start(c) + size_of(c);
}

static int by_token(const void *a, const void *b)
{
    const int64_t x = ((const Entry *)a)->token, y = ((const Entry *)b)->token;
    return (x > y) - (x < y);
}

/* Sorts the vocabulary. CORNU_ERR_ARGUMENT for a number twice, or one that is not whole. */
static CornuStatus sort(Lookup *self, const char *name)
{
    const CornuNumbers *given = &self->config.vocabulary;
    const int64_t       count = size_of(&self->config);
    Entry              *sorted = cornu__allocate((size_t)count + 1, sizeof *sorted);
    if (!sorted || cornu__layer_keep(&self->base, sorted)) return CORNU_ERR_MEMORY;
    for (int64_t i = 0; i < count; i++) {
        const double token = given->values[i];
        if (!(token >= -0x1p53 && token <= 0x1p53) || token != (double)(int64_t)token)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .vocabulary has %g, expected whole numbers "
                               "up to 2^53", name, token);
        sorted[i] = (Entry){ (int64_t)token, i };
    }
    qsort(sorted, (size_t)count, sizeof *sorted, by_token);
    for (int64_t i = 1; i < count; i++)
        if (sorted[i].token == sorted[i - 1].token)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .vocabulary has %lld twice", name,
                               (long long)sorted[i].token);
    self->sorted = sorted;
    return CORNU_OK;
}

/* ---- The layer ---- */

/* The tokens (`places` false) or their places as an i64 constant (n, 1). */
static CornuTensor *column(const Lookup *self, const CornuCall *call, bool places)
{
    const int64_t   count = size_of(&self->config);
    int64_t      *values = cornu__allocate((size_t)count, sizeof *values);
    if (!values) return cornu__null();
    for (int64_t i = 0; i < count; i++)
        values[i] = places ? self->sorted[i].place : self->sorted[i].token;
    CornuTensor *y = cornu__constant_array(call, cornu_array(values, CORNU_I64, count, 1));
    cornu__release(values);
    return y;
}

static CornuTensor *plus(CornuTensor *x, int64_t term)
{
    return x ? cornu_op_add(x, cornu_op_constant_like(x, (double)term)) : NULL;
}

/* Element `at` of a column, clipped to its ends; in the shape of `at`. */
static CornuTensor *element(CornuTensor *column, CornuTensor *at, int64_t count)
{
    if (!column || !at) return NULL;
    at = cornu_op_minimum(at, cornu_op_constant_like(at, (double)(count - 1)));
    at = cornu_op_maximum(at, cornu_op_constant_like(at, 0.0));
    return cornu_op_reshape(cornu_op_gather(column, at), cornu_tensor_shape(at));
}

/* The place of x in the vocabulary, from 0; -1 if it is not there. */
static CornuTensor *find(const Lookup *self, const CornuCall *call, CornuTensor *x)
{
    const int64_t count = size_of(&self->config);
    CornuTensor  *none = cornu_op_constant_like(x, -1.0), *at = none;
    if (count == 0) return none;
    CornuTensor *tokens = column(self, call, false);
    int64_t      stride = 1;
    while (stride * 2 <= count) stride *= 2;
    for (; stride > 0; stride /= 2) {        /* at: of the last token that is not above x */
        CornuTensor *next = plus(at, stride);
        CornuTensor *fits = next ? cornu_op_compare(element(tokens, next, count),
                                                    CORNU_LESS_EQUAL, x) : NULL;
        CornuTensor *there = next ? cornu_op_compare(next, CORNU_LESS,
                                                     cornu_op_constant_like(next, (double)count))
                                  : NULL;
        at = cornu_op_select(there, cornu_op_select(fits, next, at), at);
    }
    CornuTensor *same = cornu_op_compare(element(tokens, at, count), CORNU_EQUAL, x);
    CornuTensor *place = element(column(self, call, true), at, count);
    place = cornu_op_select(same, place, none);
    return at ? cornu_op_select(cornu_op_compare(at, CORNU_EQUAL, none), none, place) : NULL;
}

/* x modulo n, not negative; exact to 2^24 quotients of f32 are not enough for large x, so by halves
 * of the range: x - n floor(x / n) in f64. */
static CornuTensor *modulo(CornuTensor *x, int64_t n)
{
    CornuTensor *wide = cornu_op_convert(x, CORNU_F64);
    if (!wide) return NULL;
    CornuTensor *laps = cornu_op_floor(cornu_op_divide(wide, cornu_op_constant_like(wide,
                                                                                    (double)n)));
    wide = cornu_op_subtract(wide, cornu_op_scale(laps, (double)n));
    return cornu_op_convert(wide, CORNU_I64);
}

static CornuTensor *places_of(const Lookup *self, const CornuCall *call, CornuTensor *x)
{
    const CornuIntegerLookupConfig *c = &self->config;
    CornuTensor *place = find(self, call, x);
    if (!place) return NULL;
    CornuTensor *missing = cornu_op_compare(place, CORNU_EQUAL, cornu_op_constant_like(x, -1.0));
    CornuTensor *other = cornu_op_constant_like(x, -1.0);
    if (oov_of(c) == 1) other = cornu_op_constant_like(x, (double)oov_start(c));
    if (oov_of(c) > 1) other = plus(modulo(x, oov_of(c)), oov_start(c));
    place = cornu_op_select(missing, other, plus(place, vocabulary_start(c)));
    if (c->mask_token == 0) return place;
    const double mask = (double)cornu__integer(c->mask_token, 0);
    CornuTensor *masked = cornu_op_compare(x, CORNU_EQUAL, cornu_op_constant_like(x, mask));
    /* In other modes than int a masked integer is in no category. */
    const double to = c->output_mode == CORNU_INT_OUTPUT ? 0.0 : -1.0;
    return cornu_op_select(masked, cornu_op_constant_like(x, to), place);
}

/* The integer at a place. */
static CornuTensor *token_of(const Lookup *self, const CornuCall *call, CornuTensor *x)
{
    const CornuIntegerLookupConfig *c = &self->config;
    const int64_t count = size_of(c), start = vocabulary_start(c);
    CornuTensor  *other = cornu_op_constant_like(x, (double)cornu__integer(c->oov_token, -1));
    CornuTensor  *y = other;
    if (count > 0) {
        int64_t *values = cornu__allocate((size_t)count, sizeof *values);
        if (!values) return cornu__null();
        for (int64_t i = 0; i < count; i++)
            values[self->sorted[i].place] = self->sorted[i].token;
        CornuTensor *tokens = cornu__constant_array(call, cornu_array(values, CORNU_I64, count, 1));
        cornu__release(values);
        CornuTensor *at = plus(x, -start), *found = element(tokens, at, count);
        CornuTensor *low = cornu_op_compare(x, CORNU_LESS,
                                            cornu_op_constant_like(x, (double)start));
        CornuTensor *high = cornu_op_compare(x, CORNU_GREATER_EQUAL,
                                             cornu_op_constant_like(x, (double)(start + count)));
        y = cornu_op_select(low, other, cornu_op_select(high, other, found));
    }
    if (c->mask_token == 0) return y;
    CornuTensor *masked = cornu_op_compare(x, CORNU_EQUAL, cornu_op_constant_like(x, 0.0));
    const double mask = (double)cornu__integer(c->mask_token, 0);
    return cornu_op_select(masked, cornu_op_constant_like(x, mask), y);
}

/* The weights of all places: those that are not the vocabulary's have the mean. */
static CornuTensor *idf_of(const Lookup *self, const CornuCall *call)
{
    const CornuIntegerLookupConfig *c = &self->config;
    const int64_t count = size_of(c), depth = depth_of(c), start = vocabulary_start(c);
    double        sum = 0.0;
    double       *values = cornu__allocate((size_t)depth, sizeof *values);
    if (!values) return cornu__null();
    for (int64_t i = 0; i < count; i++) sum += c->idf_weights.values[i];
    for (int64_t i = 0; i < depth; i++)
        values[i] = i < start ? sum / (double)count
                  : i < start + count ? c->idf_weights.values[i - start] : 0.0;
    const CornuShape shape = cornu_shape(depth);
    CornuTensor *weights = cornu__numbers_tensor(call, &(CornuNumbers){ values, shape }, shape);
    cornu__release(values);
    return weights;
}

static CornuStatus integer_lookup_build(CornuLayer *layer, CornuShape input)
{
    return cornu__check_encoded(input, ((Lookup *)layer)->config.output_mode);
}

static CornuTensor *integer_lookup_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const Lookup                   *self = (Lookup *)layer;
    const CornuIntegerLookupConfig *c = &self->config;
    x = cornu_op_convert(cornu__refuse_nan(call, x), CORNU_I64);
    if (!x) return NULL;
    if (!c->vocabulary.values && !call->shapes_only)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: has no vocabulary, expected .vocabulary "
                                "or cornu_adapt before it is used", cornu_layer_name(layer));
    if (c->invert) return cornu_op_convert(token_of(self, call, x), CORNU_I32);
    CornuTensor *y = cornu__encode(layer, places_of(self, call, x), c->output_mode, depth_of(c),
                                   NULL);
    if (c->output_mode != CORNU_TF_IDF_OUTPUT) return y;
    return cornu_op_multiply(y, cornu_op_convert(idf_of(self, call), layer->compute));
}

/* ---- On the host ---- */

static CornuStatus type_of(const CornuLayer *layer, const CornuArray *in, int in_count,
                           CornuType *out)
{
    const CornuIntegerLookupConfig *c = &((const Lookup *)layer)->config;
    (void)in_count;
    if (c->invert || c->output_mode != CORNU_INT_OUTPUT)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "on the host, where a layer takes the result, "
                           "the places of integers are found: expected the output mode \"int\"");
    return cornu__host_encoded_type(in[0].type.shape, CORNU_INT_OUTPUT, depth_of(c), out);
}

static int64_t place_of(const Lookup *self, int64_t token)
{
    const CornuIntegerLookupConfig *c = &self->config;
    const int64_t other = oov_of(c);
    if (c->mask_token != 0 && token == cornu__integer(c->mask_token, 0)) return 0;
    const Entry *found = bsearch(&(Entry){ .token = token }, self->sorted, (size_t)size_of(c),
                                 sizeof *self->sorted, by_token);
    if (found) return found->place + vocabulary_start(c);
    return other == 0 ? -1 : oov_start(c) + (token % other + other) % other;
}

static CornuStatus integer_lookup_host(const CornuLayer *layer, const CornuArray *in, int in_count,
                                       CornuArray out)
{
    const Lookup *self = (const Lookup *)layer;
    const int64_t count = cornu_type_count(in[0].type);
    (void)in_count;
    CORNU__TRY(cornu__host_check_whole(in[0]));
    if (!self->config.vocabulary.values)
        return cornu__fail(CORNU_ERR_ARGUMENT, "has no vocabulary, expected .vocabulary or "
                           "cornu_adapt before it is used");
    for (int64_t i = 0; i < count; i++)
        ((int32_t *)out.data)[i] = (int32_t)place_of(self, cornu__host_whole(in[0], i));
    return CORNU_OK;
}

#define LOOKUP(name) offsetof(CornuIntegerLookupConfig, name)
static const CornuField fields[] = {
    { "max_tokens", CORNU_FIELD_INTEGER_OR_NONE, LOOKUP(max_tokens) },
    { "num_oov_indices", CORNU_FIELD_INTEGER_OR_DEFAULT, LOOKUP(num_oov_indices) },
    { "mask_token", CORNU_FIELD_INTEGER_OR_NONE, LOOKUP(mask_token) },
    { "oov_token", CORNU_FIELD_INTEGER_OR_DEFAULT, LOOKUP(oov_token) },
    { "vocabulary", CORNU_FIELD_INTEGERS, LOOKUP(vocabulary) },
    { "invert", CORNU_FIELD_FLAG, LOOKUP(invert) },
    { "output_mode", CORNU_FIELD_OUTPUT_MODE, LOOKUP(output_mode) },
    { "pad_to_max_tokens", CORNU_FIELD_FLAG, LOOKUP(pad_to_max_tokens) },
    { "idf_weights", CORNU_FIELD_NUMBERS, LOOKUP(idf_weights) },
    { 0 },
};

static CornuStatus integer_lookup_check(const char *name, const CornuIntegerLookupConfig *c)
{
    const int64_t count = size_of(c);
    if (c->vocabulary.values && c->vocabulary.shape.rank != 1)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .vocabulary has %d axes, expected a list", name,
                           c->vocabulary.shape.rank);
    if (oov_of(c) < 0 || oov_of(c) > INT32_MAX || c->max_tokens < 0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .num_oov_indices is %lld and .max_tokens %lld, "
                           "expected 0 or more", name, (long long)oov_of(c),
                           (long long)c->max_tokens);
    if (c->max_tokens && vocabulary_start(c) + count > c->max_tokens)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .vocabulary makes %lld tokens, expected at "
                           "most .max_tokens, %lld", name, (long long)(vocabulary_start(c) + count),
                           (long long)c->max_tokens);
    if (c->pad_to_max_tokens && !c->max_tokens)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .pad_to_max_tokens without .max_tokens", name);
    if (c->invert && c->output_mode != CORNU_INT_OUTPUT)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .invert needs the output mode \"int\"", name);
    if ((c->output_mode == CORNU_TF_IDF_OUTPUT) != !!c->idf_weights.values ||
        (c->idf_weights.values && (c->idf_weights.shape.rank != 1 ||
                                   c->idf_weights.shape.extent[0] != count)))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .idf_weights are for the output mode "
                           "\"tf_idf\", one for each of the %lld integers", name,
                           (long long)count);
    return CORNU_OK;
}

/* An adapted vocabulary, a line for each place; the first ones are the special tokens. */
static bool needs_asset(const CornuLayer *layer)
{
    return !((const Lookup *)layer)->config.vocabulary.values;
}

static CornuStatus read_asset(CornuLayer *layer, const char *bytes, size_t size)
{
    Lookup       *self = (Lookup *)layer;
    const int64_t special = vocabulary_start(&self->config);
    int64_t       lines = 0, count = 0;
    for (size_t i = 0; i < size; i++) lines += bytes[i] == '\n';
    double *values = cornu__allocate((size_t)lines + 1, sizeof *values);
    if (!values || cornu__layer_keep(layer, values)) return CORNU_ERR_MEMORY;
    size_t at = 0;
    for (int64_t line = 0; at < size; line++) {
        char   text[32] = { 0 }, *end = text;
        size_t length = 0;
        for (; at < size && bytes[at] != '\n'; at++)
            if (length + 1 < sizeof text) text[length++] = bytes[at];
        at++;
        if (length == 0) break;
        const long long token = strtoll(text, &end, 10);
        if (*end != '\0' && *end != '\r')
            return cornu__fail(CORNU_ERR_FORMAT, "line %lld of the vocabulary is \"%s\", expected "
                               "a whole number", (long long)line + 1, text);
        if (line >= special) values[count++] = (double)token;
    }
    self->config.vocabulary = (CornuNumbers){ count ? values : NULL, cornu_shape(count) };
    CORNU__TRY(integer_lookup_check(cornu_layer_name(layer), &self->config));
    return sort(self, cornu_layer_name(layer));
}

static CornuStatus integer_lookup_resolve(CornuLayer *layer)
{
    Lookup                   *self = (Lookup *)layer;
    CornuIntegerLookupConfig *config = &self->config;
    const char               *name = cornu_layer_name(layer);
    config->max_tokens = cornu__integer(config->max_tokens, 0);
    if (config->num_oov_indices == 0) config->num_oov_indices = 1;
    if (config->oov_token == 0) config->oov_token = -1;
    CORNU__TRY(cornu__check_output_mode(name, &config->output_mode, CORNU_INT_OUTPUT,
                                        CORNU_INT_OUTPUT, CORNU_TF_IDF_OUTPUT));
    CORNU__TRY(integer_lookup_check(name, config));
    CORNU__TRY(cornu__layer_copy_numbers(layer, &config->vocabulary));
    CORNU__TRY(cornu__layer_copy_numbers(layer, &config->idf_weights));
    return sort(self, name);
}

const CornuLayerClass cornu__integer_lookup_class = {
    .class_name = "IntegerLookup", .size = sizeof(Lookup), .build = integer_lookup_build,
    .call = integer_lookup_call, .mask = cornu__no_mask, .takes_integers = true,
    .host_type = type_of, .host_call = integer_lookup_host, .moves_to_host = true,
    .keras = &(const CornuKerasClass){ CORNU__CONFIG(fields, Lookup, integer_lookup_resolve),
                                       .asset = "vocabulary.txt", .needs_asset = needs_asset,
                                       .read_asset = read_asset },
};

CORNU__CONSTRUCTOR(integer_lookup, CornuIntegerLookupConfig)

json_t *cornu__integer_lookup_vocabulary(const CornuLayer *layer, int64_t *specials)
{
    const CornuIntegerLookupConfig *c = &((const Lookup *)layer)->config;
    json_t                         *list = json_array();
    *specials = vocabulary_start(c);
    if (oov_start(c)) list = cornu__json_append(list, json_integer(cornu__integer(c->mask_token,
                                                                                 0)));
    for (int64_t i = 0; i < oov_of(c); i++)
        list = cornu__json_append(list, json_integer(cornu__integer(c->oov_token, -1)));
    for (int64_t i = 0; i < size_of(c); i++)
        list = cornu__json_append(list, json_integer((json_int_t)c->vocabulary.values[i]));
    return list;
}

/* ---- A vocabulary from data: the most frequent integers first, of equally frequent ones the
 * larger ---- */

typedef struct {
    int64_t *tokens;
    int      count, space;
} Seen;

static CornuStatus add_batch(void *context, CornuArray rows, int64_t count)
{
    Seen         *seen = context;
    const int64_t all = rows.type.shape.rank && rows.type.shape.extent[0]
        ? cornu_type_count(rows.type) / rows.type.shape.extent[0] * count : count;
    if (all > INT32_MAX - seen->count)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "the data have more than %d numbers", INT32_MAX);
    CORNU__TRY(cornu__reserve(&seen->tokens, &seen->space, seen->count, (int)all,
                              sizeof *seen->tokens));
    CORNU__TRY(cornu__host_check_whole(rows));
    for (int64_t i = 0; i < all; i++)
        seen->tokens[seen->count++] = cornu__host_whole(rows, i);
    return CORNU_OK;
}

static int by_number(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* place: how often */
static int by_count(const void *a, const void *b)
{
    const Entry *x = a, *y = b;
    if (x->place != y->place) return x->place > y->place ? -1 : 1;
    return x->token > y->token ? -1 : x->token < y->token;
}

CornuStatus cornu__adapt_integer_lookup(const CornuAdaptConfig *config)
{
    Lookup                         *self = (Lookup *)config->layer;
    const CornuIntegerLookupConfig *c = &self->config;
    Seen                            seen = { 0 };
    int64_t                         count = 0;
    if (c->output_mode == CORNU_TF_IDF_OUTPUT)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "the output mode \"tf_idf\" cannot be adapted; "
                           "give .vocabulary and .idf_weights");
    CornuStatus status = cornu__adapt_each(config, add_batch, &seen);
    Entry      *counted = cornu__allocate((size_t)seen.count + 1, sizeof *counted);
    if (!counted) status = CORNU_ERR_MEMORY;
    if (!status && seen.count) qsort(seen.tokens, (size_t)seen.count, sizeof(int64_t), by_number);
    for (int i = 0; !status && i < seen.count; i++) {
        const bool special = (c->mask_token != 0 &&
                              seen.tokens[i] == cornu__integer(c->mask_token, 0)) ||
                             seen.tokens[i] == cornu__integer(c->oov_token, -1);
        if (special) continue;
        if (count == 0 || counted[count - 1].token != seen.tokens[i])
            counted[count++] = (Entry){ seen.tokens[i], 0 };
        counted[count - 1].place++;
    }
    if (!status) qsort(counted, (size_t)count, sizeof *counted, by_count);
    if (c->max_tokens && count > c->max_tokens - vocabulary_start(c))
        count = c->max_tokens - vocabulary_start(c);
    double *values = status ? NULL : cornu__allocate((size_t)count, sizeof *values);
    if (!status && !values) status = CORNU_ERR_MEMORY;
    for (int64_t i = 0; !status && i < count; i++) values[i] = (double)counted[i].token;
    if (!status) status = cornu__layer_keep(config->layer, values);
    if (!status) {
        self->config.vocabulary = (CornuNumbers){ count ? values : NULL, cornu_shape(count) };
        status = sort(self, cornu_layer_name(config->layer));
    }
    cornu__release(counted);
    cornu__release(seen.tokens);
    return status;
}
