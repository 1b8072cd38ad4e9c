/* TextVectorization. Source: keras/src/layers/preprocessing/text_vectorization.py. */
#include <math.h>
#include <string.h>

#include "../../fields/field_internal.h"
#include "../../fields/own_objects_internal.h"
#include "string_index_internal.h"
#include "text_tokens_internal.h"

typedef struct {
    CornuLayer                   base;
    CornuTextVectorizationConfig config;
    CornuTextRules               rules;
    CornuStringIndex             index;
} Vectorization;

CornuStringIndex *cornu__text_vectorization_index(CornuLayer *layer)
{
    return &((Vectorization *)layer)->index;
}

/* ---- Rows of tokens ---- */

/* The strings of a row: one where they are split, else those along the last axis. */
static int64_t row_strings(const Vectorization *self, CornuShape shape)
{
    return self->rules.split == CORNU_NO_SPLIT && shape.rank == 2 ? shape.extent[1] : 1;
}

static CornuStatus check_input(const Vectorization *self, CornuType type)
{
    const CornuShape shape = type.shape;
    CornuText        text;
    const bool       split = self->rules.split != CORNU_NO_SPLIT;
    if (type.dtype == CORNU_STRING &&
        (shape.rank == 1 || (shape.rank == 2 && (!split || shape.extent[1] == 1))))
        return CORNU_OK;
    return cornu__fail(CORNU_ERR_SHAPE, "the input is %s, expected strings (B,) or (B, %s)",
                       cornu_type_print(&text, type), split ? "1" : "T");
}

static CornuStatus count_one(void *context, const char *token, size_t length)
{
    (void)token, (void)length;
    ++*(int64_t *)context;
    return CORNU_OK;
}

/* The largest number of tokens of a row. */
static CornuStatus longest(const Vectorization *self, CornuArray in, int64_t *most)
{
    CornuTextScratch scratch = { 0 };
    CornuStatus      status = CORNU_OK;
    const int64_t    rows = in.type.shape.extent[0], each = row_strings(self, in.type.shape);
    *most = 0;
    for (int64_t b = 0; b < rows && !status; b++) {
        int64_t count = 0;
        status = cornu__each_token(&self->rules, (const char *const *)in.data + b * each, each,
                                   &scratch, count_one, &count);
        if (count > *most) *most = count;
    }
    cornu__text_scratch_free(&scratch);
    return status;
}

/* Without a split and n-grams every row has as many tokens as strings. */
static CornuStatus length_of(const Vectorization *self, CornuArray in, int64_t *length)
{
    *length = CORNU_NONE;
    if (self->config.output_sequence_length) *length = self->config.output_sequence_length;
    else if (self->rules.split == CORNU_NO_SPLIT && !self->rules.ngrams[0])
        *length = row_strings(self, in.type.shape);
    else if (in.data) return longest(self, in, length);
    return CORNU_OK;
}

static CornuStatus type_of(const CornuLayer *layer, const CornuArray *in, int in_count,
                           CornuType *out)
{
    const Vectorization    *self = (const Vectorization *)layer;
    const CornuStringIndex *index = &self->index;
    int64_t                 length = 1;
    (void)in_count;
    CORNU__TRY(check_input(self, in[0].type));
    if (index->mode == CORNU_INT_OUTPUT || index->mode == CORNU_ONE_HOT_OUTPUT)
        CORNU__TRY(length_of(self, in[0], &length));
    return cornu__host_encoded_type(cornu_shape(in[0].type.shape.extent[0], length), index->mode,
                                    cornu__string_index_depth(index), out);
}

/* The places of the tokens of a row. */
typedef struct {
    const CornuStringIndex *index;
    int64_t                *places;
    int                     count, space;
} Row;

static CornuStatus add_place(void *context, const char *token, size_t length)
{
    Row *row = context;
    CORNU__TRY(cornu__reserve(&row->places, &row->space, row->count, 1, sizeof *row->places));
    return cornu__string_index_find(row->index, token, length, &row->places[row->count++]);
}

/* Pads or truncates to the row's length, then encodes. */
static CornuStatus write_row(const CornuStringIndex *index, Row *row, CornuArray out, int64_t b)
{
    CornuType     one = out.type;
    const int64_t depth = cornu__string_index_depth(index);
    one.shape.extent[0] = 1;
    const CornuArray to = { one, (char *)out.data + (size_t)b * cornu_type_bytes(one) };
    int64_t          steps = row->count;
    if (index->mode == CORNU_INT_OUTPUT || index->mode == CORNU_ONE_HOT_OUTPUT) {
        steps = cornu_type_count(one) / (index->mode == CORNU_INT_OUTPUT ? 1 : depth);
        const int missing = steps > row->count ? (int)(steps - row->count) : 0;
        CORNU__TRY(cornu__reserve(&row->places, &row->space, row->count, missing,
                                  sizeof *row->places));
        for (int i = 0; i < missing; i++) row->places[row->count + i] = 0;
    }
    cornu__host_encode(row->places, cornu_shape(1, steps), index->mode, depth, index->idf, to);
    return CORNU_OK;
}

static CornuStatus text_vectorization_call(const CornuLayer *layer, const CornuArray *in,
                                           int in_count, CornuArray out)
{
    const Vectorization *self = (const Vectorization *)layer;
    const int64_t        rows = in[0].type.shape.extent[0];
    const int64_t        each = row_strings(self, in[0].type.shape);
    CornuTextScratch     scratch = { 0 };
    Row                  row = { .index = &self->index };
    CornuStatus          status = CORNU_OK;
    (void)in_count;
    if (!self->index.given && self->index.tokens.count == 0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "has no vocabulary, expected .vocabulary or "
                           "cornu_adapt before it is used");
    for (int64_t b = 0; b < rows && !status; b++) {
        row.count = 0;
        status = cornu__each_token(&self->rules, (const char *const *)in[0].data + b * each, each,
                                   &scratch, add_place, &row);
        if (!status) status = write_row(&self->index, &row, out, b);
    }
    cornu__release(row.places);
    cornu__text_scratch_free(&scratch);
    return status;
}

/* ---- A vocabulary from data ---- */

static CornuStatus keep_arguments(CornuLayer *layer);

typedef struct {
    Vectorization    *self;
    CornuStringCounts counts;
    CornuTextScratch  scratch;
} Seen;

static CornuStatus see(void *context, const char *token, size_t length)
{
    return cornu__string_counts_add(context, token, length);
}

static CornuStatus add_batch(void *context, CornuArray rows, int64_t count)
{
    Seen *seen = context;
    if (rows.type.shape.rank == 0) rows.type.shape = cornu_shape(1);   /* a single string */
    CORNU__TRY(check_input(seen->self, rows.type));
    const int64_t each = row_strings(seen->self, rows.type.shape);
    for (int64_t b = 0; b < count; b++, seen->counts.documents++)
        CORNU__TRY(cornu__each_token(&seen->self->rules,
                                     (const char *const *)rows.data + b * each, each,
                                     &seen->scratch, see, &seen->counts));
    return CORNU_OK;
}

CornuStatus cornu__adapt_text_vectorization(const CornuAdaptConfig *config)
{
    Seen seen = { .self = (Vectorization *)config->layer };
    if (seen.self->index.given)
        return cornu__fail(CORNU_ERR_ARGUMENT, "has the vocabulary that it was made with, so none "
                           "is learnt");
    CornuStatus status = cornu__adapt_each(config, add_batch, &seen);
    if (!status) status = cornu__string_index_learn(&seen.self->index, &seen.counts);
    if (!status) status = keep_arguments(config->layer);
    cornu__tokens_free(&seen.counts.seen);
    cornu__text_scratch_free(&seen.scratch);
    return status;
}

/* ---- Class ---- */

static void free_index(CornuLayer *layer)
{
    cornu__string_index_free(&((Vectorization *)layer)->index);
}

#define TEXT(name) offsetof(CornuTextVectorizationConfig, name)
static const CornuField fields[] = {
    { "max_tokens", CORNU_FIELD_INTEGER_OR_NONE, TEXT(max_tokens) },
    { "standardize", CORNU_FIELD_STANDARDIZE, TEXT(standardize) },
    { "standardize", CORNU_FIELD_TEXT_FUNCTION, TEXT(standardize_by) },
    { "split", CORNU_FIELD_SPLIT, TEXT(split) },
    { "split", CORNU_FIELD_TEXT_FUNCTION, TEXT(split_by) },
    { "ngrams", CORNU_FIELD_INTEGER_OR_NONE, TEXT(ngrams) },
    { "ngrams", CORNU_FIELD_INTEGERS, TEXT(ngram_sizes) },
    { "output_mode", CORNU_FIELD_OUTPUT_MODE, TEXT(output_mode) },
    { "output_sequence_length", CORNU_FIELD_INTEGER_OR_NONE, TEXT(output_sequence_length) },
    { "pad_to_max_tokens", CORNU_FIELD_FLAG, TEXT(pad_to_max_tokens) },
    { "vocabulary", CORNU_FIELD_TEXTS, TEXT(vocabulary) },
    { "idf_weights", CORNU_FIELD_NUMBERS, TEXT(idf_weights) },
    { "vocabulary_size", CORNU_FIELD_INTEGER_OR_DEFAULT, TEXT(vocabulary_size) },
    { "encoding", CORNU_FIELD_TEXT, TEXT(encoding) },
    { 0 },
};

static CornuStatus keep_arguments(CornuLayer *layer)
{
    Vectorization *self = (Vectorization *)layer;
    return cornu__string_index_arguments(&self->index, layer, &self->config.vocabulary,
                                         &self->config.idf_weights);
}

static CornuNumbers get_array(const CornuLayer *layer)
{
    return cornu__string_index_array(&((const Vectorization *)layer)->index);
}

static CornuStatus set_array(CornuLayer *layer, CornuArray array)
{
    CORNU__TRY(cornu__string_index_set_array(&((Vectorization *)layer)->index, array));
    return keep_arguments(layer);
}

static bool needs_asset(const CornuLayer *layer)
{
    return !((const Vectorization *)layer)->index.given;
}

static CornuStatus read_asset(CornuLayer *layer, const char *bytes, size_t size)
{
    CORNU__TRY(cornu__string_index_read(cornu__text_vectorization_index(layer),
                                        cornu_layer_name(layer), bytes, size));
    return keep_arguments(layer);
}

static CornuStatus text_vectorization_resolve(CornuLayer *layer);

const CornuLayerClass cornu__text_vectorization_class = {
    .class_name = "TextVectorization", .size = sizeof(Vectorization), .types = cornu__host_types,
    .call_many = cornu__host_call_refused, .mask = cornu__no_mask, .takes_integers = true,
    .free = free_index, .host_type = type_of, .host_call = text_vectorization_call,
    .keras = &(const CornuKerasClass){
        CORNU__CONFIG(fields, Vectorization, text_vectorization_resolve), .never_typed = true,
        .asset = "vocabulary.txt", .needs_asset = needs_asset, .read_asset = read_asset,
        .array = "idf_weights", .array_folder = "_lookup_layer", .get_array = get_array,
        .set_array = set_array,
    },
};

const CornuFieldKind cornu_field_standardize = {
    .name = "standardize", CORNU__FIELD_OF_WORDS(CornuStandardize), .takes_null = true,
    .null = CORNU_NO_STANDARDIZE,
    .words = { [CORNU_LOWER_AND_STRIP_PUNCTUATION] = "lower_and_strip_punctuation",
               [CORNU_LOWER] = "lower", [CORNU_STRIP_PUNCTUATION] = "strip_punctuation" },
};

const char *cornu_standardize_name(CornuStandardize standardize)
{
    return cornu__field_word(CORNU_FIELD_STANDARDIZE, (int)standardize);
}

const CornuFieldKind cornu_field_split = {
    .name = "split", CORNU__FIELD_OF_WORDS(CornuSplit), .takes_null = true, .null = CORNU_NO_SPLIT,
    .words = { [CORNU_SPLIT_WHITESPACE] = "whitespace", [CORNU_SPLIT_CHARACTER] = "character" },
};

const char *cornu_split_name(CornuSplit split)
{
    return cornu__field_word(CORNU_FIELD_SPLIT, (int)split);
}

/* As Keras writes a function, which a program registers under its name. */
static json_t *write_function(const CornuFieldSource *from)
{
    const CornuTextFunction *function = from->at;
    const char              *name = function->name ? function->name : "function";
    json_t *object = cornu__json_object("builtins", "function", json_string(name));
    return cornu__json_with(object, "registered_name", json_string("function"));
}

static CornuStatus read_function(const CornuFieldTarget *to, const json_t *value)
{
    *(CornuTextFunction *)to->at = *(const CornuTextFunction *)cornu__own_object(value);
    return CORNU_OK;
}

static bool no_function(const void *at) { return !((const CornuTextFunction *)at)->call; }

const CornuFieldKind cornu_field_text_function = {
    .name = "function", .read = read_function, .write = write_function, .for_own = true,
    .is_default = no_function,
};

/* The sizes of n-grams: 1 to .ngrams, or those that are listed. */
static CornuStatus read_ngrams(const char *name, const CornuTextVectorizationConfig *c,
                               int64_t *sizes)
{
    const int64_t listed = c->ngram_sizes.values ? cornu_shape_count(c->ngram_sizes.shape) : 0;
    const int64_t upto = cornu__integer(c->ngrams, 0), count = listed ? listed : upto;
    if ((listed && upto) || count < 0 || count >= CORNU__MAX_NGRAM_SIZES)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .ngrams is %lld and .ngram_sizes has %lld, "
                           "expected one of them, below %d", name, (long long)upto,
                           (long long)listed, CORNU__MAX_NGRAM_SIZES);
    for (int64_t i = 0; i < count; i++) {
        const double size = listed ? c->ngram_sizes.values[i] : (double)(i + 1);
        if (!(size >= 1.0 && size <= 1e6) || size != trunc(size))
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .ngram_sizes has %g, expected 1 or more",
                               name, size);
        sizes[i] = (int64_t)size;
    }
    return CORNU_OK;
}

static CornuStatus text_vectorization_check(const char *name, const CornuTextVectorizationConfig *c)
{
    const int64_t length = c->output_sequence_length;
    if ((unsigned)c->standardize > CORNU_NO_STANDARDIZE || (unsigned)c->split > CORNU_NO_SPLIT)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .standardize is %d and .split %d, expected 0 "
                           "to %d and 0 to %d", name, (int)c->standardize, (int)c->split,
                           CORNU_NO_STANDARDIZE, CORNU_NO_SPLIT);
    if (length < 0 || length > INT32_MAX || (length && c->output_mode != CORNU_INT_OUTPUT))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .output_sequence_length is %lld, expected 0 "
                           "or more, of the output mode \"int\"", name, (long long)length);
    return CORNU_OK;
}

static CornuStatus text_vectorization_resolve(CornuLayer *layer)
{
    Vectorization                *self = (Vectorization *)layer;
    CornuTextVectorizationConfig *config = &self->config;
    const char                   *name = cornu_layer_name(layer);
    if (config->standardize_by.call) config->standardize = CORNU_NO_STANDARDIZE;
    if (config->split_by.call) config->split = CORNU_SPLIT_WHITESPACE;
    self->rules = (CornuTextRules){ config->standardize, config->split, config->standardize_by,
                                    config->split_by, { 0 } };
    config->max_tokens = cornu__integer(config->max_tokens, 0);
    config->output_sequence_length = cornu__integer(config->output_sequence_length, 0);
    CORNU__TRY(cornu__check_output_mode(name, &config->output_mode, CORNU_INT_OUTPUT,
                                        CORNU_INT_OUTPUT, CORNU_TF_IDF_OUTPUT));
    CORNU__TRY(text_vectorization_check(name, config));
    CORNU__TRY(read_ngrams(name, config, self->rules.ngrams));
    /* The lookup checks its arguments and copies what is given. */
    CornuLayer *lookup = cornu_string_lookup(
        .vocabulary = config->vocabulary, .max_tokens = config->max_tokens, .mask_token = "",
        .output_mode = config->output_mode, .pad_to_max_tokens = config->pad_to_max_tokens,
        .idf_weights = config->idf_weights,
        .vocabulary_size = cornu__integer(config->vocabulary_size, 0),
        .encoding = config->encoding, .name = name);
    if (!lookup) return cornu_error_status();
    CornuStringIndex *index = cornu__string_lookup_index(lookup);
    self->index = *index;
    self->index.mask_token = "";
    self->index.oov_token = "[UNK]";
    index->tokens = (CornuTokens){ 0 };
    index->idf = NULL;
    cornu_layer_free(lookup);
    config->vocabulary_size = 0;
    if (!config->encoding) config->encoding = "utf-8";
    CORNU__TRY(cornu__layer_copy_text(layer, &config->encoding));
    CORNU__TRY(cornu__layer_copy_texts(layer, &config->vocabulary));
    CORNU__TRY(cornu__layer_copy_numbers(layer, &config->idf_weights));
    return cornu__layer_copy_numbers(layer, &config->ngram_sizes);
}

CORNU__CONSTRUCTOR(text_vectorization, CornuTextVectorizationConfig)
