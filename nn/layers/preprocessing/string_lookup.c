/* StringLookup. Source: keras/src/layers/preprocessing/index_lookup.py, string_lookup.py. */
#include <string.h>

#include "string_index_internal.h"

typedef struct {
    CornuLayer              base;
    CornuStringLookupConfig config;
    CornuStringIndex        index;
} Lookup;

CornuStringIndex *cornu__string_lookup_index(CornuLayer *layer)
{
    return &((Lookup *)layer)->index;
}

static CornuStatus type_of(const CornuLayer *layer, const CornuArray *in, int in_count,
                           CornuType *out)
{
    const CornuStringIndex *index = &((const Lookup *)layer)->index;
    CornuText               text;
    (void)in_count;
    if ((in[0].type.dtype == CORNU_STRING) == index->invert)
        return cornu__fail(CORNU_ERR_DTYPE, "the input is %s, expected %s",
                           cornu_type_print(&text, in[0].type),
                           index->invert ? "integers, as .invert is set" : "strings");
    if (!index->invert)
        return cornu__host_encoded_type(in[0].type.shape, index->mode,
                                        cornu__string_index_depth(index), out);
    *out = cornu_type_from(CORNU_STRING, in[0].type.shape);
    return CORNU_OK;
}

static CornuStatus string_lookup_call(const CornuLayer *layer, const CornuArray *in, int in_count,
                                      CornuArray out)
{
    const CornuStringIndex *index = &((const Lookup *)layer)->index;
    const int64_t           count = cornu_type_count(in[0].type);
    CornuStatus             status = CORNU_OK;
    (void)in_count;
    if (!index->given && index->tokens.count == 0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "has no vocabulary, expected .vocabulary or "
                           "cornu_adapt before it is used");
    if (index->invert) {
        CORNU__TRY(cornu__host_check_whole(in[0]));
        for (int64_t i = 0; i < count; i++)
            ((const char **)out.data)[i] =
                cornu__string_index_text(index, cornu__host_whole(in[0], i));
        return CORNU_OK;
    }
    int64_t *places = cornu__allocate((size_t)count, sizeof *places);
    if (!places) return CORNU_ERR_MEMORY;
    for (int64_t i = 0; i < count && !status; i++) {
        const char *text = ((const char *const *)in[0].data)[i];
        if (!text) text = "";
        status = cornu__string_index_find(index, text, strlen(text), &places[i]);
    }
    if (!status)
        cornu__host_encode(places, in[0].type.shape, index->mode, cornu__string_index_depth(index),
                           index->idf, out);
    cornu__release(places);
    return status;
}

/* ---- A vocabulary from data ---- */

static CornuStatus keep_arguments(CornuLayer *layer);

static CornuStatus add_batch(void *context, CornuArray rows, int64_t count)
{
    CornuStringCounts *counts = context;
    char               decimal[24];
    if (rows.type.dtype != CORNU_STRING)
        return cornu__fail(CORNU_ERR_DTYPE, "the data are %s, expected strings",
                           cornu_dtype_name(rows.type.dtype));
    const int64_t all = rows.type.shape.rank && rows.type.shape.extent[0]
        ? cornu_type_count(rows.type) / rows.type.shape.extent[0] : 1;
    for (int64_t i = 0; i < count; i++, counts->documents++)
        for (int64_t k = 0; k < all; k++) {
            const char *text = cornu__host_text(rows, i * all + k, decimal);
            CORNU__TRY(cornu__string_counts_add(counts, text, strlen(text)));
        }
    return CORNU_OK;
}

CornuStatus cornu__adapt_string_lookup(const CornuAdaptConfig *config)
{
    CornuStringIndex *index = cornu__string_lookup_index(config->layer);
    CornuStringCounts counts = { 0 };
    if (index->given)
        return cornu__fail(CORNU_ERR_ARGUMENT, "has the vocabulary that it was made with, so none "
                           "is learnt");
    CornuStatus status = cornu__adapt_each(config, add_batch, &counts);
    if (!status) status = cornu__string_index_learn(index, &counts);
    if (!status) status = keep_arguments(config->layer);
    cornu__tokens_free(&counts.seen);
    return status;
}

/* ---- Class ---- */

static void free_lookup(CornuLayer *layer) { cornu__string_index_free(&((Lookup *)layer)->index); }

#define LOOKUP(name) offsetof(CornuStringLookupConfig, name)
static const CornuField fields[] = {
    { "max_tokens", CORNU_FIELD_INTEGER_OR_NONE, LOOKUP(max_tokens) },
    { "num_oov_indices", CORNU_FIELD_INTEGER_OR_DEFAULT, LOOKUP(num_oov_indices) },
    { "mask_token", CORNU_FIELD_TEXT, LOOKUP(mask_token) },
    { "oov_token", CORNU_FIELD_TEXT, LOOKUP(oov_token) },
    { "vocabulary", CORNU_FIELD_TEXTS, LOOKUP(vocabulary) },
    { "invert", CORNU_FIELD_FLAG, LOOKUP(invert) },
    { "output_mode", CORNU_FIELD_OUTPUT_MODE, LOOKUP(output_mode) },
    { "pad_to_max_tokens", CORNU_FIELD_FLAG, LOOKUP(pad_to_max_tokens) },
    { "idf_weights", CORNU_FIELD_NUMBERS, LOOKUP(idf_weights) },
    { "salt", CORNU_FIELD_INTEGERS, LOOKUP(salt) },
    { "vocabulary_size", CORNU_FIELD_INTEGER_OR_DEFAULT, LOOKUP(vocabulary_size) },
    { "encoding", CORNU_FIELD_TEXT, LOOKUP(encoding) },
    { 0 },
};

static CornuStatus keep_arguments(CornuLayer *layer)
{
    Lookup *self = (Lookup *)layer;
    return cornu__string_index_arguments(&self->index, layer, &self->config.vocabulary,
                                         &self->config.idf_weights);
}

static CornuNumbers get_array(const CornuLayer *layer)
{
    return cornu__string_index_array(&((const Lookup *)layer)->index);
}

static CornuStatus set_array(CornuLayer *layer, CornuArray array)
{
    CORNU__TRY(cornu__string_index_set_array(&((Lookup *)layer)->index, array));
    return keep_arguments(layer);
}

static bool needs_asset(const CornuLayer *layer) { return !((const Lookup *)layer)->index.given; }

static CornuStatus read_asset(CornuLayer *layer, const char *bytes, size_t size)
{
    CORNU__TRY(cornu__string_index_read(cornu__string_lookup_index(layer), cornu_layer_name(layer),
                                        bytes, size));
    return keep_arguments(layer);
}

static CornuStatus string_lookup_check(const char *name, const CornuStringLookupConfig *c)
{
    const int64_t oov = cornu__integer(c->num_oov_indices, 1);
    if (oov < 0 || oov > INT32_MAX || c->max_tokens < 0 || c->max_tokens == 1 ||
        c->max_tokens > INT32_MAX)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .num_oov_indices is %lld and .max_tokens %lld, "
                           "expected 0 or more, and 0 or at least 2", name, (long long)oov,
                           (long long)c->max_tokens);
    if (c->pad_to_max_tokens && !c->max_tokens)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .pad_to_max_tokens without .max_tokens", name);
    if (c->invert && c->output_mode != CORNU_INT_OUTPUT)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .invert needs the output mode \"int\"", name);
    if (c->output_mode == CORNU_TF_IDF_OUTPUT ? c->vocabulary.values && !c->idf_weights.values
                                              : !!c->idf_weights.values)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .idf_weights are for the output mode "
                           "\"tf_idf\" with a .vocabulary", name);
    if (c->vocabulary_size < 0 || c->vocabulary_size > INT32_MAX)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .vocabulary_size is %lld, expected 0 to %d",
                           name, (long long)c->vocabulary_size, INT32_MAX);
    if (strcmp(c->encoding, "utf-8"))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: .encoding is \"%.40s\", expected \"utf-8\"",
                           name, c->encoding);
    return CORNU_OK;
}

static CornuStatus string_lookup_resolve(CornuLayer *layer)
{
    Lookup                  *self = (Lookup *)layer;
    CornuStringLookupConfig *config = &self->config;
    CornuStringIndex        *index = &self->index;
    const char              *name = cornu_layer_name(layer);
    config->max_tokens = cornu__integer(config->max_tokens, 0);
    const int64_t places = cornu__integer(config->vocabulary_size, 0);
    config->vocabulary_size = places;
    if (config->num_oov_indices == 0) config->num_oov_indices = 1;
    if (!config->oov_token) config->oov_token = "[UNK]";
    if (!config->encoding) config->encoding = "utf-8";
    index->salted = config->salt.values != NULL;
    CORNU__TRY(cornu__check_output_mode(name, &config->output_mode, CORNU_INT_OUTPUT,
                                        CORNU_INT_OUTPUT, CORNU_TF_IDF_OUTPUT));
    CORNU__TRY(string_lookup_check(name, config));
    CORNU__TRY(cornu__read_salt(name, &config->salt, index->key));
    CORNU__TRY(cornu__layer_copy_text(layer, &config->mask_token));
    CORNU__TRY(cornu__layer_copy_text(layer, &config->oov_token));
    CORNU__TRY(cornu__layer_copy_text(layer, &config->encoding));
    CORNU__TRY(cornu__layer_copy_texts(layer, &config->vocabulary));
    CORNU__TRY(cornu__layer_copy_numbers(layer, &config->idf_weights));
    CORNU__TRY(cornu__layer_copy_numbers(layer, &config->salt));
    index->oov = cornu__integer(config->num_oov_indices, 1);
    index->mask_token = config->mask_token;
    index->oov_token = config->oov_token;
    index->mode = config->output_mode;
    index->invert = config->invert;
    index->pad = config->pad_to_max_tokens;
    index->max_tokens = config->max_tokens;
    index->places = places;
    config->vocabulary_size = 0;
    index->given = config->vocabulary.values != NULL;
    return index->given ? cornu__string_index_set(index, name, config->vocabulary,
                                                  &config->idf_weights) : CORNU_OK;
}

const CornuLayerClass cornu__string_lookup_class = {
    .class_name = "StringLookup", .size = sizeof(Lookup), .types = cornu__host_types,
    .call_many = cornu__host_call_refused, .mask = cornu__no_mask, .takes_integers = true,
    .free = free_lookup, .host_type = type_of, .host_call = string_lookup_call,
    .keras = &(const CornuKerasClass){ CORNU__CONFIG(fields, Lookup, string_lookup_resolve),
                                       .never_typed = true,
                                       .asset = "vocabulary.txt", .needs_asset = needs_asset,
                                       .read_asset = read_asset, .array = "idf_weights",
                                       .get_array = get_array, .set_array = set_array },
};

CORNU__CONSTRUCTOR(string_lookup, CornuStringLookupConfig)
