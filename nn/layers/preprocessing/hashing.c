/* Hashing and HashedCrossing. Source: keras/src/layers/preprocessing/hashing.py,
 * hashed_crossing.py; tensorflow/core/kernels/sparse_cross_op.cc. */
#include <string.h>

#include "hash_internal.h"
#include "host_internal.h"

static bool is_hashable(CornuDtype dtype)
{
    return dtype == CORNU_STRING || dtype == CORNU_I64 || dtype == CORNU_I32 ||
           dtype == CORNU_U32 || dtype == CORNU_U8;
}

/* ---- Hashing ---- */

typedef struct {
    CornuLayer         base;
    CornuHashingConfig config;
    uint64_t           key[2];
} Hashing;

static CornuStatus hashing_type(const CornuLayer *layer, const CornuArray *in, int in_count,
                                CornuType *out)
{
    const CornuHashingConfig *config = &((const Hashing *)layer)->config;
    const CornuDtype          dtype = in[0].type.dtype;
    (void)in_count;
    if (dtype == CORNU_STRING ? config->mask_value != 0 : !!config->mask_string)
        return cornu__fail(CORNU_ERR_DTYPE, "the input is %s, but the mask value is %s",
                           cornu_dtype_name(dtype),
                           config->mask_string ? "a string" : "an integer");
    return cornu__host_encoded_type(in[0].type.shape, config->output_mode, config->num_bins, out);
}

/* The bin of element i. Floats are truncated to integers, as Keras does. */
static int64_t bin_of(const Hashing *self, CornuArray in, int64_t i)
{
    const CornuHashingConfig *config = &self->config;
    char          decimal[24];
    const char   *text = cornu__host_text(in, i, decimal);
    const bool    masks = (config->mask_value || config->mask_string) && config->num_bins > 1;
    const bool    masked = !masks ? false
                         : config->mask_string ? !strcmp(text, config->mask_string)
                         : cornu_array_get(in, i) == (double)cornu__integer(config->mask_value, 0);
    if (masked) return 0;
    return (masks ? 1 : 0) + cornu__hash_bin(text, strlen(text),
                                             config->salt.values ? self->key : NULL,
                                             config->num_bins - (masks ? 1 : 0));
}

static CornuStatus hashing_call(const CornuLayer *layer, const CornuArray *in, int in_count,
                                CornuArray out)
{
    const Hashing *self = (const Hashing *)layer;
    const int64_t  count = cornu_type_count(in[0].type);
    (void)in_count;
    CORNU__TRY(cornu__host_check_whole(in[0]));
    int64_t *places = cornu__allocate((size_t)count, sizeof *places);
    if (!places) return CORNU_ERR_MEMORY;
    for (int64_t i = 0; i < count; i++) places[i] = bin_of(self, in[0], i);
    cornu__host_encode(places, in[0].type.shape, self->config.output_mode, self->config.num_bins,
                       NULL, out);
    cornu__release(places);
    return CORNU_OK;
}

static CornuStatus hashing_resolve(CornuLayer *layer)
{
    Hashing            *self = (Hashing *)layer;
    CornuHashingConfig *config = &self->config;
    const char         *name = cornu_layer_name(layer);
    CORNU__TRY(cornu__positive(name, "num_bins", config->num_bins));
    CORNU__TRY(cornu__check_output_mode(name, &config->output_mode, CORNU_INT_OUTPUT,
                                        CORNU_INT_OUTPUT, CORNU_COUNT_OUTPUT));
    CORNU__TRY(cornu__read_salt(name, &config->salt, self->key));
    if (config->mask_value && config->mask_string)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: both .mask_value and .mask_string are given, "
                           "expected one", name);
    CORNU__TRY(cornu__layer_copy_text(layer, &config->mask_string));
    return cornu__layer_copy_numbers(layer, &config->salt);
}

#define HASHING(name) offsetof(CornuHashingConfig, name)
static const CornuField hashing_fields[] = {
    { "num_bins", CORNU_FIELD_INTEGER, HASHING(num_bins) },
    { "mask_value", CORNU_FIELD_INTEGER_OR_NONE, HASHING(mask_value) },
    { "mask_value", CORNU_FIELD_TEXT_OR_DEFAULT, HASHING(mask_string) },
    { "salt", CORNU_FIELD_INTEGERS, HASHING(salt) },
    { "output_mode", CORNU_FIELD_OUTPUT_MODE, HASHING(output_mode) },
    { 0 },
};

const CornuLayerClass cornu__hashing_class = {
    .class_name = "Hashing", .size = sizeof(Hashing), .types = cornu__host_types,
    .call_many = cornu__host_call_refused, .mask = cornu__no_mask, .takes_integers = true,
    .host_type = hashing_type, .host_call = hashing_call,
    .keras = &(const CornuKerasClass){ CORNU__CONFIG(hashing_fields, Hashing, hashing_resolve),
                                       .never_typed = true },
};

CORNU__CONSTRUCTOR(hashing, CornuHashingConfig)

/* ---- HashedCrossing ---- */

typedef CORNU__LAYER(CornuHashedCrossingConfig) Crossing;

static CornuStatus crossing_type(const CornuLayer *layer, const CornuArray *in, int in_count,
                                 CornuType *out)
{
    const CornuHashedCrossingConfig *config = &((const Crossing *)layer)->config;
    const CornuShape                 shape = in[0].type.shape;
    CornuText                        text;
    if (in_count < 2)
        return cornu__fail(CORNU_ERR_ARGUMENT, "got 1 input, expected two or more");
    for (int i = 0; i < in_count; i++)
        if (!is_hashable(in[i].type.dtype) || !cornu_shape_equal(in[i].type.shape, shape) ||
            shape.rank > 2 || (shape.rank == 2 && shape.extent[1] != 1))
            return cornu__fail(CORNU_ERR_SHAPE, "input %d is %s, expected strings or integers, "
                               "(B,) or (B, 1) like the others", i,
                               cornu_type_print(&text, in[i].type));
    return cornu__host_encoded_type(shape, config->output_mode, config->num_bins, out);
}

static CornuStatus crossing_call(const CornuLayer *layer, const CornuArray *in, int in_count,
                                 CornuArray out)
{
    const CornuHashedCrossingConfig *config = &((const Crossing *)layer)->config;
    const uint64_t first = UINT64_C(0xDECAFCAFFE);     /* TensorFlow's hash_key */
    const int64_t  count = cornu_type_count(in[0].type);
    int64_t       *places = cornu__allocate((size_t)count, sizeof *places);
    if (!places) return CORNU_ERR_MEMORY;
    for (int64_t i = 0; i < count; i++) {
        uint64_t hash = first;
        for (int k = 0; k < in_count; k++) {
            char        decimal[24];
            const char *text = cornu__host_text(in[k], i, decimal);
            hash = cornu__hash_pair(hash, in[k].type.dtype == CORNU_STRING
                                              ? cornu__farm_hash(text, strlen(text))
                                              : (uint64_t)cornu__host_whole(in[k], i));
        }
        places[i] = (int64_t)(hash % (uint64_t)config->num_bins);
    }
    cornu__host_encode(places, in[0].type.shape, config->output_mode, config->num_bins, NULL, out);
    cornu__release(places);
    return CORNU_OK;
}

static CornuStatus crossing_resolve(CornuLayer *layer)
{
    CornuHashedCrossingConfig *config = &((Crossing *)layer)->config;
    const char                *name = cornu_layer_name(layer);
    CORNU__TRY(cornu__positive(name, "num_bins", config->num_bins));
    return cornu__check_output_mode(name, &config->output_mode, CORNU_INT_OUTPUT, CORNU_INT_OUTPUT,
                                    CORNU_ONE_HOT_OUTPUT);
}

static const CornuField crossing_fields[] = {
    { "num_bins", CORNU_FIELD_INTEGER, offsetof(CornuHashedCrossingConfig, num_bins) },
    { "output_mode", CORNU_FIELD_OUTPUT_MODE, offsetof(CornuHashedCrossingConfig, output_mode) },
    { 0 },
};

const CornuLayerClass cornu__hashed_crossing_class = {
    .class_name = "HashedCrossing", .size = sizeof(Crossing), .types = cornu__host_types,
    .call_many = cornu__host_call_refused, .mask = cornu__no_mask, .takes_integers = true,
    .host_type = crossing_type, .host_call = crossing_call,
    .keras = &(const CornuKerasClass){ CORNU__CONFIG(crossing_fields, Crossing, crossing_resolve),
                                       .never_typed = true },
};

CORNU__CONSTRUCTOR(hashed_crossing, CornuHashedCrossingConfig)
